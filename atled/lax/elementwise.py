"""Elementwise functions by their short names: operands of one dtype and number of axes, or scalars.

`accuracy` is validated but has no effect: there is only one implementation, the accurate one.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.promotion import broadcast_to
from atled.ops import conversion, elementary, elementwise, special


class AccuracyMode(enum.Enum):
    """How a function is computed: as accurately as can be, or as the compiler sees fit.

    >>> float(cos(0.0, accuracy=AccuracyMode.HIGHEST))
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """By how much a result may be off: absolutely, relatively, in units of the last place.

    >>> float(cos(0.0, accuracy=Tolerance(ulps=2)))
    1.0
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


def _check(name: str, accuracy: Any) -> None:
    if not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(f"{name}: the accuracy is an AccuracyMode, a Tolerance or None; got {accuracy!r}.")


def _alike(x: ArrayLike, y: ArrayLike) -> tuple[Any, Any]:
    """Two operands of as many axes, each of length one made as long as the other's."""
    first, second = type_of(x).shape, type_of(y).shape
    if first == second or len(first) != len(second):
        return x, y
    dims = tuple([n if m == 1 else m for m, n in zip(first, second)])
    found = [v if old == dims else broadcast_to(v, dims) for v, old in ((x, first), (y, second)) if _fits(old, dims)]
    return (found[0], found[1]) if len(found) == 2 else (x, y)


def _fits(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return all([m in (1, n) for m, n in zip(shape, dims)])


# -- of one operand ---------------------------------------------------------------------------------------------------


def abs(x: ArrayLike) -> Array:
    """The magnitude of x, which is real for complex x.

    >>> import atled.numpy as jnp
    >>> abs(jnp.array([-2, 3]))
    Array([2, 3], dtype=int32)
    """
    return elementary.absolute(x)


def acos(x: ArrayLike) -> Array:
    """The angle whose cosine is x.

    >>> round(float(acos(0.0)), 3)
    1.571
    """
    return elementary.acos(x)


def acosh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic cosine.

    >>> round(float(acosh(2.0)), 3)
    1.317
    """
    return elementary.acosh(x)


def asin(x: ArrayLike) -> Array:
    """The angle whose sine is x.

    >>> round(float(asin(1.0)), 3)
    1.571
    """
    return elementary.asin(x)


def asinh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic sine.

    >>> round(float(asinh(1.0)), 3)
    0.881
    """
    return elementary.asinh(x)


def atan(x: ArrayLike) -> Array:
    """The angle whose tangent is x.

    >>> round(float(atan(1.0)), 3)
    0.785
    """
    return elementary.atan(x)


def atanh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic tangent.

    >>> round(float(atanh(0.5)), 3)
    0.549
    """
    return elementary.atanh(x)


def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 0.

    >>> round(float(bessel_i0e(1.0)), 3)
    0.466
    """
    return special.bessel_i0e(x)


def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 1.

    >>> round(float(bessel_i1e(1.0)), 3)
    0.208
    """
    return special.bessel_i1e(x)


def bitwise_not(x: ArrayLike) -> Array:
    """~x.

    >>> import atled.numpy as jnp
    >>> bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return elementwise.logical_not(x)


def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cube root.

    >>> round(float(cbrt(27.0)), 3)
    3.0
    """
    if accuracy is not None:
        _check("cbrt", accuracy)
    return elementary.cbrt(x)


def ceil(x: ArrayLike) -> Array:
    """The smallest integer not below x.

    >>> import atled.numpy as jnp
    >>> ceil(jnp.array([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)
    """
    return elementary.ceil(x)


def clz(x: ArrayLike) -> Array:
    """How many leading bits of x are zero.

    >>> import atled.numpy as jnp
    >>> clz(jnp.array([1, 255], "uint16"))
    Array([15,  8], dtype=uint16)
    """
    return elementwise.clz(x)


def conj(x: ArrayLike) -> Array:
    """The complex conjugate.

    >>> import atled.numpy as jnp
    >>> conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    return conversion.conj(x)


def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cosine of x in radians.

    >>> round(float(cos(3.1416)), 3)
    -1.0
    """
    if accuracy is not None:
        _check("cos", accuracy)
    return elementary.cos(x)


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine.

    >>> round(float(cosh(1.0)), 3)
    1.543
    """
    return elementary.cosh(x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of lgamma.

    >>> round(float(digamma(1.0)), 3)
    -0.577
    """
    return special.digamma(x)


def erf(x: ArrayLike) -> Array:
    """The error function.

    >>> round(float(erf(1.0)), 3)
    0.843
    """
    return special.erf(x)


def erf_inv(x: ArrayLike) -> Array:
    """The inverse of the error function.

    >>> round(float(erf_inv(erf(0.5))), 3)
    0.5
    """
    return special.erf_inv(x)


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), exact in the tail.

    >>> round(float(erfc(1.0)), 3)
    0.157
    """
    return special.erfc(x)


def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The exponential function.

    >>> round(float(exp(1.0)), 3)
    2.718
    """
    if accuracy is not None:
        _check("exp", accuracy)
    return elementary.exp(x)


def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """2 ** x.

    >>> round(float(exp2(3.0)), 3)
    8.0
    """
    if accuracy is not None:
        _check("exp2", accuracy)
    return elementary.exp2(x)


def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """exp(x) - 1, exact for small x.

    >>> float(expm1(1e-10)) > 0
    True
    """
    if accuracy is not None:
        _check("expm1", accuracy)
    return elementary.expm1(x)


def floor(x: ArrayLike) -> Array:
    """The largest integer not above x.

    >>> import atled.numpy as jnp
    >>> floor(jnp.array([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)
    """
    return elementary.floor(x)


def imag(x: ArrayLike) -> Array:
    """The imaginary part.

    >>> import atled.numpy as jnp
    >>> imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return conversion.imag(x)


def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN.

    >>> import atled.numpy as jnp
    >>> is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    return elementary.is_finite(x)


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the magnitude of the gamma function.

    >>> round(float(lgamma(5.0)), 3), round(float(log(24.0)), 3)
    (3.178, 3.178)
    """
    return special.lgamma(x)


def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The natural logarithm.

    >>> round(float(log(10.0)), 3)
    2.303
    """
    if accuracy is not None:
        _check("log", accuracy)
    return elementary.log(x)


def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """log(1 + x), exact for small x.

    >>> float(log1p(1e-10)) > 0
    True
    """
    if accuracy is not None:
        _check("log1p", accuracy)
    return elementary.log1p(x)


def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / (1 + exp(-x)).

    >>> float(logistic(0.0))
    0.5
    """
    if accuracy is not None:
        _check("logistic", accuracy)
    return elementary.logistic(x)


def neg(x: ArrayLike) -> Array:
    """-x.

    >>> import atled.numpy as jnp
    >>> neg(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    return elementwise.neg(x)


def population_count(x: ArrayLike) -> Array:
    """How many bits of x are set.

    >>> import atled.numpy as jnp
    >>> population_count(jnp.array([7, 8]))
    Array([3, 1], dtype=int32)
    """
    return elementwise.population_count(x)


def real(x: ArrayLike) -> Array:
    """The real part.

    >>> import atled.numpy as jnp
    >>> real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return conversion.real(x)


def reciprocal(x: ArrayLike) -> Array:
    """1 / x.

    >>> import atled.numpy as jnp
    >>> reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return elementwise.reciprocal(x)


def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / sqrt(x).

    >>> round(float(rsqrt(4.0)), 3)
    0.5
    """
    if accuracy is not None:
        _check("rsqrt", accuracy)
    return elementary.rsqrt(x)


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 by the sign of x; x / abs(x) for complex x.

    >>> import atled.numpy as jnp
    >>> sign(jnp.array([-2.5, 0.0, 7.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return elementary.sign(x)


def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The sine of x in radians.

    >>> round(float(sin(0.5236)), 3)
    0.5
    """
    if accuracy is not None:
        _check("sin", accuracy)
    return elementary.sin(x)


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine.

    >>> round(float(sinh(1.0)), 3)
    1.175
    """
    return elementary.sinh(x)


def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The square root.

    >>> import atled.numpy as jnp
    >>> sqrt(jnp.array([4.0, 9.0]))
    Array([2., 3.], dtype=float32)
    """
    if accuracy is not None:
        _check("sqrt", accuracy)
    return elementary.sqrt(x)


def square(x: ArrayLike) -> Array:
    """x * x.

    >>> import atled.numpy as jnp
    >>> square(jnp.array([-2, 3]))
    Array([4, 9], dtype=int32)
    """
    return elementwise.square(x)


def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The tangent of x in radians.

    >>> round(float(tan(0.7854)), 3)
    1.0
    """
    if accuracy is not None:
        _check("tan", accuracy)
    return elementary.tan(x)


def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The hyperbolic tangent.

    >>> round(float(tanh(1.0)), 3)
    0.762
    """
    if accuracy is not None:
        _check("tanh", accuracy)
    return elementary.tanh(x)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x ** y for a fixed integer y.

    >>> import atled.numpy as jnp
    >>> integer_pow(jnp.array([2.0, 4.0]), -1)
    Array([0.5 , 0.25], dtype=float32)
    """
    return elementwise.integer_pow(*_alike(x, y))


# -- of several operands ----------------------------------------------------------------------------------------------


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y.

    >>> import atled.numpy as jnp
    >>> add(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([11, 22], dtype=int32)
    """
    return elementwise.add(*_alike(x, y))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point (y, x): the arc tangent of x / y in the right quadrant.

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
    """The larger of x and y; NaN if either is.

    >>> import atled.numpy as jnp
    >>> max(jnp.array([1, 5]), jnp.array([3, 3]))
    Array([3, 5], dtype=int32)
    """
    return elementwise.maximum(*_alike(x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if either is.

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


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = None) -> Array:
    """x * y; with `out_dtype`, the product of both in that dtype.

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
    """Derivative number m + 1 of lgamma at x, for whole m.

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
    """x kept between a lower and an upper bound.

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
