"""Types for annotations: `ArrayLike` for array arguments, `DTypeLike` for objects that specify a dtype."""

from __future__ import annotations

from atled.core.array import ArrayLike, DTypeLike, SupportsDType  # noqa: F401

__all__ = ["ArrayLike", "DTypeLike"]
__dir__ = __all__.copy
