"""Scaling of programs with the number of devices: `python -m benchmarks.scale`."""
