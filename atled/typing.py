"""Types for annotations: array arguments, and objects that specify a dtype."""

from __future__ import annotations

from atled.core.array import ArrayLike, DTypeLike, SupportsDType  # noqa: F401

__all__ = ["ArrayLike", "DTypeLike"]
__dir__ = __all__.copy
