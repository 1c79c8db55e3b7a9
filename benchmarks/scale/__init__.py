"""How programs scale with the number of devices: `python -m benchmarks.scale`."""
