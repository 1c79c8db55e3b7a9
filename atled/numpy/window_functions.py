"""NumPy's window functions of signal processing: vectors that rise from the ends to the middle.

Windows are computed in double precision, because their ends are differences of nearly equal numbers, and returned in
the default dtype.
"""

from __future__ import annotations

import math
from typing import Any

from atled.core import dtypes
from atled.core.array import Array, ArrayLike
from atled.core.types import ArrayType
from atled.numpy.elementwise import i0
from atled.numpy.promotion import cast, inexact_dtype, operand_type
from atled.ops import conversion, elementary, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _length(name: str, m: Any) -> int:
    """The number of points; a negative number counts as zero, as in NumPy."""
    try:
        return max(m.__index__(), 0)
    except AttributeError:
        raise TypeError(f"{name}: the number of points must be an integer; got {type(m).__name__}.") from None


@library_function(static=("m", "weights"))
def _cosines(m: int, weights: tuple[float, ...]) -> Any:
    """The sum of weights[k] * cos(2 pi k n / (m - 1)) over k."""
    dtype = dtypes.default("f")
    if m <= 1:
        return shape.full(ArrayType((m,), dtype), 1)
    angle = ew.mul(shape.iota(dtypes.float64, (m,), 0), 2 * math.pi / (m - 1))
    out = shape.full(ArrayType((m,), dtypes.float64), weights[0])
    for k, weight in enumerate(weights[1:], 1):
        out = ew.add(out, ew.mul(elementary.cos(ew.mul(angle, float(k))), weight))
    return conversion.convert(out, dtype)


def blackman(M: int) -> Array:  # noqa: N803
    """The Blackman window: a constant and two cosines, with very low side lobes.

    >>> abs(blackman(5).round(2))
    Array([0.  , 0.34, 1.  , 0.34, 0.  ], dtype=float32)
    """
    return _cosines(_length("blackman", M), (0.42, -0.5, 0.08))


def hamming(M: int) -> Array:  # noqa: N803
    """The Hamming window: a raised cosine that does not quite reach zero.

    >>> hamming(3).round(2)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _cosines(_length("hamming", M), (0.54, -0.46))


def hanning(M: int) -> Array:  # noqa: N803
    """The Hann window: a raised cosine that reaches zero at both ends.

    >>> hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosines(_length("hanning", M), (0.5, -0.5))


@library_function(static=("m",))
def _triangle(m: int) -> Any:
    dtype = dtypes.default("f")
    if m <= 1:
        return shape.full(ArrayType((m,), dtype), 1)
    n = shape.iota(dtypes.float64, (m,), 0)
    return conversion.convert(ew.mul(ew.minimum(n, ew.sub(m - 1.0, n)), 2 / (m - 1)), dtype)


def bartlett(M: int) -> Array:  # noqa: N803
    """The triangular window that is zero at both ends.

    >>> bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _triangle(_length("bartlett", M))


@library_function(static=("m",))
def _kaiser(m: int, beta: Any) -> Any:
    t = operand_type("kaiser", beta)
    if t.ndim or t.kind == "c":
        raise ValueError(f"kaiser: beta must be a real scalar; got {t}.")
    dtype = dtypes.default("f") if t.weak else inexact_dtype(t.dtype)
    if m <= 1:
        return shape.full(ArrayType((m,), dtype), 1)
    beta = cast(beta, dtype)
    n = shape.iota(dtypes.float64, (m,), 0)
    # (1 - r)(1 + r) for r from -1 to 1, without cancellation at the ends
    height = ew.mul(ew.mul(n, ew.sub(m - 1.0, n)), (2 / (m - 1)) ** 2)
    root = conversion.convert(elementary.sqrt(height), dtype)
    return ew.div(i0(ew.mul(root, beta)), i0(beta))


def kaiser(M: int, beta: ArrayLike) -> Array:  # noqa: N803
    """The Kaiser window: i0(beta * sqrt(1 - r**2)) / i0(beta), for r from -1 to 1; differentiable in `beta`.

    >>> kaiser(5, 0.0)
    Array([1., 1., 1., 1., 1.], dtype=float32)
    """
    return _kaiser(_length("kaiser", M), beta)
