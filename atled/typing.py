"""Types for annotations: what functions of arrays take, and what stands for a dtype."""

from __future__ import annotations

from atled.core.array import ArrayLike, DTypeLike, SupportsDType  # noqa: F401

__all__ = ["ArrayLike", "DTypeLike"]
