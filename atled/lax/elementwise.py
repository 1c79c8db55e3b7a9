"""Elementwise functions of one operand; `arithmetic.py` contains those of two or more.

`accuracy` is validated but has no effect: every function has one implementation, the accurate one.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from atled.core.array import Array, ArrayLike
from atled.ops import conversion, elementary, elementwise, special


class AccuracyMode(enum.Enum):
    """How a function is computed: with the highest accuracy, or with the compiler's default.

    >>> float(cos(0.0, accuracy=AccuracyMode.HIGHEST))
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """The allowed error of a result: absolute, relative, and in units of the last place.

    >>> float(cos(0.0, accuracy=Tolerance(ulps=2)))
    1.0
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


def _check(name: str, accuracy: Any) -> None:
    if not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(f"{name}: the accuracy is an AccuracyMode, a Tolerance or None; got {accuracy!r}.")


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
    """1 - erf(x), accurate in the tail.

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
    """exp(x) - 1, accurate for small x.

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
    """log(1 + x), accurate for small x.

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
