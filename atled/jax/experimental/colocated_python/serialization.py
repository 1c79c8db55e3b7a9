"""A stub of `jax.experimental.colocated_python.serialization`."""

__all__ = ["DeviceList"]
DeviceList = tuple
