"""Elementwise functions by their short names: operands of one dtype and number of axes, or scalars.

`accuracy` asks for a way of computing. There is one way on CPUs and GPUs, which is the accurate one, so there is
nothing to choose: what is asked for is only checked.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.promotion import broadcast_to
from atled.ops import conversion, elementary, elementwise, special


class AccuracyMode(enum.Enum):
    """How a function is computed: as accurately as can be, or as the compiler sees fit."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """By how much a result may be off: absolutely, relatively, in units of the last place."""

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
    """The magnitude of x, which is real for complex x."""
    return elementary.absolute(x)


def acos(x: ArrayLike) -> Array:
    """The angle whose cosine is x."""
    return elementary.acos(x)


def acosh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic cosine."""
    return elementary.acosh(x)


def asin(x: ArrayLike) -> Array:
    """The angle whose sine is x."""
    return elementary.asin(x)


def asinh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic sine."""
    return elementary.asinh(x)


def atan(x: ArrayLike) -> Array:
    """The angle whose tangent is x."""
    return elementary.atan(x)


def atanh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic tangent."""
    return elementary.atanh(x)


def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 0."""
    return special.bessel_i0e(x)


def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 1."""
    return special.bessel_i1e(x)


def bitwise_not(x: ArrayLike) -> Array:
    """~x."""
    return elementwise.logical_not(x)


def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cube root."""
    if accuracy is not None:
        _check("cbrt", accuracy)
    return elementary.cbrt(x)


def ceil(x: ArrayLike) -> Array:
    """The smallest integer not below x."""
    return elementary.ceil(x)


def clz(x: ArrayLike) -> Array:
    """How many leading bits of x are zero."""
    return elementwise.clz(x)


def conj(x: ArrayLike) -> Array:
    """The complex conjugate."""
    return conversion.conj(x)


def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cosine of x in radians."""
    if accuracy is not None:
        _check("cos", accuracy)
    return elementary.cos(x)


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine."""
    return elementary.cosh(x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of lgamma."""
    return special.digamma(x)


def erf(x: ArrayLike) -> Array:
    """The error function."""
    return special.erf(x)


def erf_inv(x: ArrayLike) -> Array:
    """The inverse of the error function."""
    return special.erf_inv(x)


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), exact in the tail."""
    return special.erfc(x)


def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The exponential function."""
    if accuracy is not None:
        _check("exp", accuracy)
    return elementary.exp(x)


def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """2 ** x."""
    if accuracy is not None:
        _check("exp2", accuracy)
    return elementary.exp2(x)


def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """exp(x) - 1, exact for small x."""
    if accuracy is not None:
        _check("expm1", accuracy)
    return elementary.expm1(x)


def floor(x: ArrayLike) -> Array:
    """The largest integer not above x."""
    return elementary.floor(x)


def imag(x: ArrayLike) -> Array:
    """The imaginary part."""
    return conversion.imag(x)


def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN."""
    return elementary.is_finite(x)


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the magnitude of the gamma function."""
    return special.lgamma(x)


def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The natural logarithm."""
    if accuracy is not None:
        _check("log", accuracy)
    return elementary.log(x)


def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """log(1 + x), exact for small x."""
    if accuracy is not None:
        _check("log1p", accuracy)
    return elementary.log1p(x)


def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / (1 + exp(-x))."""
    if accuracy is not None:
        _check("logistic", accuracy)
    return elementary.logistic(x)


def neg(x: ArrayLike) -> Array:
    """-x."""
    return elementwise.neg(x)


def population_count(x: ArrayLike) -> Array:
    """How many bits of x are set."""
    return elementwise.population_count(x)


def real(x: ArrayLike) -> Array:
    """The real part."""
    return conversion.real(x)


def reciprocal(x: ArrayLike) -> Array:
    """1 / x."""
    return elementwise.reciprocal(x)


def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / sqrt(x)."""
    if accuracy is not None:
        _check("rsqrt", accuracy)
    return elementary.rsqrt(x)


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 by the sign of x; x / abs(x) for complex x."""
    return elementary.sign(x)


def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The sine of x in radians."""
    if accuracy is not None:
        _check("sin", accuracy)
    return elementary.sin(x)


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine."""
    return elementary.sinh(x)


def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The square root."""
    if accuracy is not None:
        _check("sqrt", accuracy)
    return elementary.sqrt(x)


def square(x: ArrayLike) -> Array:
    """x * x."""
    return elementwise.square(x)


def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The tangent of x in radians."""
    if accuracy is not None:
        _check("tan", accuracy)
    return elementary.tan(x)


def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The hyperbolic tangent."""
    if accuracy is not None:
        _check("tanh", accuracy)
    return elementary.tanh(x)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x ** y for a fixed integer y."""
    return elementwise.integer_pow(*_alike(x, y))


# -- of several operands ----------------------------------------------------------------------------------------------


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y."""
    return elementwise.add(*_alike(x, y))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point (y, x): the arc tangent of x / y in the right quadrant."""
    return elementary.atan2(*_alike(x, y))


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """x & y."""
    return elementwise.logical_and(*_alike(x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """x | y."""
    return elementwise.logical_or(*_alike(x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """x ^ y."""
    return elementwise.logical_xor(*_alike(x, y))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex number x + iy."""
    return conversion.complex(*_alike(x, y))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y; integers are rounded towards zero."""
    return elementwise.div(*_alike(x, y))


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """x == y."""
    return elementwise.eq(*_alike(x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """x >= y."""
    return elementwise.ge(*_alike(x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """x > y."""
    return elementwise.gt(*_alike(x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """x <= y."""
    return elementwise.le(*_alike(x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """x < y."""
    return elementwise.lt(*_alike(x, y))


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; NaN if either is."""
    return elementwise.maximum(*_alike(x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if either is."""
    return elementwise.minimum(*_alike(x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """x != y."""
    return elementwise.ne(*_alike(x, y))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x ** y."""
    return elementary.pow(*_alike(x, y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y, with the sign of x."""
    return elementary.rem(*_alike(x, y))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x << y."""
    return elementwise.shift_left(*_alike(x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y, keeping the sign."""
    return elementwise.shift_right_arithmetic(*_alike(x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y, filling with zeros."""
    return elementwise.shift_right_logical(*_alike(x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y."""
    return elementwise.sub(*_alike(x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = None) -> Array:
    """x * y; with `out_dtype`, the product of both in that dtype."""
    if out_dtype is not None:
        dtype = dtypes.canonical(out_dtype)
        x, y = conversion.convert(x, dtype), conversion.convert(y, dtype)
    return elementwise.mul(*_alike(x, y))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next number after x1 towards x2."""
    return elementary.nextafter(*_alike(x1, x2))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Derivative number m + 1 of lgamma at x, for whole m."""
    return special.polygamma(m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function: the sum of (q + k) ** -x over k = 0, 1, 2, ..."""
    return special.zeta(x, q)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """x kept between a lower and an upper bound."""
    return elementwise.clamp(min, x, max)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where the condition holds, else `on_false`."""
    return elementwise.select(pred, on_true, on_false)
