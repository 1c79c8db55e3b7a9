"""Devices, buffers, executables and their cache: the only folder that imports jaxlib."""
