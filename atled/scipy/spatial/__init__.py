"""SciPy's spatial namespace: rotations, in `transform`."""

from __future__ import annotations

from atled.scipy.spatial import transform

__all__ = ["transform"]
__dir__ = __all__.copy
