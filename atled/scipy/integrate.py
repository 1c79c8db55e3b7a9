"""SciPy's integration of samples."""

from __future__ import annotations

from atled.numpy.differences import trapezoid

__all__ = ["trapezoid"]
