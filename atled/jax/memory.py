"""`Space`, the memory spaces of a device: targets of `device_put`."""

from __future__ import annotations

from atled.core.sharding import Space

__all__ = ["Space"]
__dir__ = __all__.copy
