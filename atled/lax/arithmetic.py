"""Elementwise functions of two operands or more: arithmetic, comparisons, bits, `clamp`, `select`.

Operands have the same dtype and number of axes, or are scalars; `elementwise.py` contains the functions of one operand.
"""

from __future__ import annotations

from typing import Any

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.numpy.promotion import broadcast_to
from atled.ops import conversion, elementary, elementwise, special


def _alike(x: ArrayLike, y: ArrayLike) -> tuple[Any, Any]:
    """x and y; if they have the same number of axes, axes of length one are broadcast."""
    first, second = type_of(x).shape, type_of(y).shape
    if first == second or len(first) != len(second):
        return x, y
    dims = tuple([n if m == 1 else m for m, n in zip(first, second)])
    stretched = [
        v if old == dims else broadcast_to(v, dims) for v, old in ((x, first), (y, second)) if _fits(old, dims)
    ]
    return (stretched[0], stretched[1]) if len(stretched) == 2 else (x, y)


def _fits(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return all([m in (1, n) for m, n in zip(shape, dims)])


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y.

    >>> import atled.numpy as jnp
    >>> add(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([11, 22], dtype=int32)
    """
    return elementwise.add(*_alike(x, y))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point (y, x): the arc tangent of x / y in the correct quadrant.

    >>> round(float(atan2(1.0, 0.0)), 3)
    1.571
    """
    return elementary.atan2(*_alike(x, y))


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """x & y.

    >>> import atled.numpy as jnp
    >>> bitwise_and(jnp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return elementwise.logical_and(*_alike(x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """x | y.

    >>> import atled.numpy as jnp
    >>> bitwise_or(jnp.array([6, 5]), 3)
    Array([7, 7], dtype=int32)
    """
    return elementwise.logical_or(*_alike(x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """x ^ y.

    >>> import atled.numpy as jnp
    >>> bitwise_xor(jnp.array([6, 5]), 3)
    Array([5, 6], dtype=int32)
    """
    return elementwise.logical_xor(*_alike(x, y))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex number x + iy.

    >>> import atled.numpy as jnp
    >>> complex(jnp.array([1.0]), jnp.array([2.0]))
    Array([1.+2.j], dtype=complex64)
    """
    return conversion.complex(*_alike(x, y))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y; integers are rounded towards zero.

    >>> import atled.numpy as jnp
    >>> div(jnp.array([7, -7]), 2), div(jnp.array([7.0, -7.0]), 2)
    (Array([ 3, -3], dtype=int32), Array([ 3.5, -3.5], dtype=float32))
    """
    return elementwise.div(*_alike(x, y))


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """x == y.

    >>> import atled.numpy as jnp
    >>> eq(jnp.array([1, 2, 3]), 2)
    Array([False,  True, False], dtype=bool)
    """
    return elementwise.eq(*_alike(x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """x >= y.

    >>> import atled.numpy as jnp
    >>> ge(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """
    return elementwise.ge(*_alike(x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """x > y.

    >>> import atled.numpy as jnp
    >>> gt(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """
    return elementwise.gt(*_alike(x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """x <= y.

    >>> import atled.numpy as jnp
    >>> le(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """
    return elementwise.le(*_alike(x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """x < y.

    >>> import atled.numpy as jnp
    >>> lt(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """
    return elementwise.lt(*_alike(x, y))


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; NaN if either is NaN.

    >>> import atled.numpy as jnp
    >>> max(jnp.array([1, 5]), jnp.array([3, 3]))
    Array([3, 5], dtype=int32)
    """
    return elementwise.maximum(*_alike(x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if either is NaN.

    >>> import atled.numpy as jnp
    >>> min(jnp.array([1, 5]), jnp.array([3, 3]))
    Array([1, 3], dtype=int32)
    """
    return elementwise.minimum(*_alike(x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """x != y.

    >>> import atled.numpy as jnp
    >>> ne(jnp.array([1, 2, 3]), 2)
    Array([ True, False,  True], dtype=bool)
    """
    return elementwise.ne(*_alike(x, y))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x ** y.

    >>> round(float(pow(2.0, 3.0)), 3)
    8.0
    """
    return elementary.pow(*_alike(x, y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y, with the sign of x.

    >>> import atled.numpy as jnp
    >>> rem(jnp.array([7, -7]), 2)
    Array([ 1, -1], dtype=int32)
    """
    return elementary.rem(*_alike(x, y))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x << y.

    >>> import atled.numpy as jnp
    >>> shift_left(jnp.array([1, 5]), 2)
    Array([ 4, 20], dtype=int32)
    """
    return elementwise.shift_left(*_alike(x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y, keeping the sign.

    >>> import atled.numpy as jnp
    >>> shift_right_arithmetic(jnp.array([-8], "int8"), 1)
    Array([-4], dtype=int8)
    """
    return elementwise.shift_right_arithmetic(*_alike(x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y, filling with zeros.

    >>> import atled.numpy as jnp
    >>> shift_right_logical(jnp.array([-8], "int8"), 1)
    Array([124], dtype=int8)
    """
    return elementwise.shift_right_logical(*_alike(x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y.

    >>> import atled.numpy as jnp
    >>> sub(jnp.array([10, 20]), jnp.array([1, 2]))
    Array([ 9, 18], dtype=int32)
    """
    return elementwise.sub(*_alike(x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y; with `out_dtype`, both are converted to that dtype first.

    >>> import atled.numpy as jnp
    >>> mul(jnp.array([100], "int8"), jnp.array([2], "int8"), out_dtype="int16")
    Array([200], dtype=int16)
    """
    if out_dtype is not None:
        dtype = dtypes.canonical(out_dtype)
        x, y = conversion.convert(x, dtype), conversion.convert(y, dtype)
    return elementwise.mul(*_alike(x, y))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next number after x1 towards x2.

    >>> float(nextafter(1.0, 2.0)) - 1 == 2**-23
    True
    """
    return elementary.nextafter(*_alike(x1, x2))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order m + 1 of lgamma at x, for integer m.

    >>> round(float(polygamma(1.0, 1.0)), 3)
    1.645
    """
    return special.polygamma(m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function: the sum of (q + k) ** -x over k = 0, 1, 2, ...

    >>> round(float(zeta(2.0, 1.0)), 3)
    1.645
    """
    return special.zeta(x, q)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """x clamped between a lower and an upper bound.

    >>> import atled.numpy as jnp
    >>> clamp(0.0, jnp.array([-2.0, 0.5, 3.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return elementwise.clamp(min, x, max)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where the condition holds, else `on_false`.

    >>> import atled.numpy as jnp
    >>> select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
    Array([ 1, 20], dtype=int32)
    """
    return elementwise.select(pred, on_true, on_false)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x ** y for a static integer y.

    >>> import atled.numpy as jnp
    >>> integer_pow(jnp.array([2.0, 4.0]), -1)
    Array([0.5 , 0.25], dtype=float32)
    """
    return elementwise.integer_pow(*_alike(x, y))
