"""SciPy's sparse namespace: iterative solvers of linear equations, in `linalg`."""

from __future__ import annotations

from atled.scipy.sparse import linalg

__all__ = ["linalg"]
__dir__ = __all__.copy
