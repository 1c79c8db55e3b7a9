"""Elementary functions: sign, magnitude, rounding, powers, exp, log, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import conversion, elementwise
from atled.ops.elementwise_family import (
    ArrayLike,
    Elementwise,
    Flat,
    function,
    one_like,
    spread_all,
    widened,
    zero_like,
)


class Rem(Elementwise):
    """The remainder of x / y, with the sign of x."""

    hlo = "stablehlo.remainder"
    takes = "iuf"

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        return one_like(x) if i == 0 else elementwise.neg(truncate(elementwise.div(x, y)))


class Pow(Elementwise):
    """x ** y."""

    hlo = "stablehlo.power"
    takes = "fc"

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        if i == 0:
            # y * x**(y - 1), and zero where y is zero, even at x = 0
            return elementwise.select(
                elementwise.eq(y, 0), zero_like(out), elementwise.mul(y, pow(x, elementwise.sub(y, 1)))
            )
        # log(x) * x**y, defined as zero at x = 0
        is_zero = elementwise.eq(x, 0)
        slope = elementwise.mul(out, log(elementwise.select(is_zero, one_like(x), x)))
        return elementwise.select(is_zero, zero_like(out), slope)


class Sign(Flat):
    """-1, 0 or 1 by the sign of x; x / abs(x) for complex x."""

    hlo = "stablehlo.sign"
    takes = "iufc"

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.kind == "u":
            return build.apply(lambda v: conversion.convert(elementwise.ne(v, 0), v.dtype), x)
        return build.apply(self.computed["c"], x) if x.type.kind == "c" else super().lower(build, x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        if type_of(x).kind != "c":
            return out, Zero(type_of(out).tangent())
        size = absolute(x)
        is_zero = elementwise.eq(size, 0)  # the derivative is defined as zero there
        inverse = elementwise.div(1, elementwise.select(is_zero, one_like(size), size))
        inverse = conversion.convert(elementwise.select(is_zero, zero_like(size), inverse), type_of(x).dtype)
        along = conversion.convert(conversion.real(elementwise.mul(t, conversion.conj(out))), type_of(x).dtype)
        return out, elementwise.mul(elementwise.sub(t, elementwise.mul(along, out)), inverse)


class Abs(Elementwise):
    """The magnitude of x, which is real for complex x."""

    hlo = "stablehlo.abs"
    takes = "iufc"

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, dtypes.real_part(dtype), weak)

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.kind == "u":
            return x
        out = super().lower(build, x)
        return build.apply(self.computed["c"], x, out) if x.type.kind == "c" else out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        factor = sign(x)
        if type_of(x).kind == "c":
            return absolute(x), conversion.real(elementwise.mul(t, conversion.conj(factor)))
        return absolute(x), elementwise.mul(t, factor)


class Floor(Flat):
    """The largest integer not above x."""

    hlo = "stablehlo.floor"
    takes = "f"


class Ceil(Flat):
    """The smallest integer not below x."""

    hlo = "stablehlo.ceil"
    takes = "f"


class RoundNearestEven(Flat):
    """The nearest integer; halves are rounded to even."""

    hlo = "stablehlo.round_nearest_even"
    takes = "f"


class RoundAwayFromZero(Flat):
    """The nearest integer; halves are rounded away from zero."""

    hlo = "stablehlo.round_nearest_afz"
    takes = "f"


class IsFinite(Flat):
    """Whether x is neither infinite nor NaN."""

    hlo = "stablehlo.is_finite"
    takes = "f"

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, dtypes.bool_)


class NextAfter(Elementwise):
    """The next representable number after x towards y."""

    takes = "f"

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        return one_like(x) if i == 0 else None

    def lower(self, build: Any, x: Any, y: Any) -> Any:
        return build.emit(
            "chlo.broadcast_next_after", spread_all(build, self, (x, y)), (self.result_type(x.type, y.type),)
        )


# -- elementary functions -------------------------------------------------------------------------------------------


class Analytic(Elementwise):
    """Base class of functions of real and complex numbers; `complex_functions.py` implements the complex ones."""

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.kind == "c":
            return build.map(self.computed["c"], x)
        return super().lower(build, x)


class Exp(Analytic):
    """The exponential function."""

    hlo = "stablehlo.exponential"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return out


class Expm1(Analytic):
    """exp(x) - 1, accurate for small x."""

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.add(out, 1)


class Logarithm(Analytic):
    """Base class of logarithms: the tangent is t divided by `under(x)`, which gives NaN where both are infinite."""

    def under(self, x: Any) -> Any:
        """The divisor of the tangent: the inverse of the derivative."""
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        return bind(self, x), elementwise.div(t, self.under(x))


class Log(Logarithm):
    """The natural logarithm."""

    hlo = "stablehlo.log"

    def lower(self, build: Any, x: Any) -> Any:
        out = super().lower(build, x)
        if not build.has_powers or x.type.kind != "f":
            return out
        # XLA replaces log(a**b) by b * log(abs(a)), which is wrong where a**b is negative: the logarithm is NaN there
        nan = np.asarray(np.nan, x.type.dtype)
        return build.apply(lambda x, y: elementwise.select(elementwise.ge(x, zero_like(x)), y, nan), x, out)


class Log1p(Logarithm):
    """log(1 + x), accurate for small x."""

    hlo = "stablehlo.log_plus_one"

    def under(self, x: Any) -> Any:
        return elementwise.add(x, 1)


class Sin(Analytic):
    """Sine."""

    hlo = "stablehlo.sine"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return cos(x)


class Cos(Analytic):
    """Cosine."""

    hlo = "stablehlo.cosine"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.neg(sin(x))


class Tan(Analytic):
    """Tangent."""

    hlo = "stablehlo.tan"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.add(elementwise.mul(out, out), 1)


class Tanh(Analytic):
    """Hyperbolic tangent."""

    hlo = "stablehlo.tanh"  # fast and accurate in single precision

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.sub(1, elementwise.mul(out, out))


class Logistic(Elementwise):
    """1 / (1 + exp(-x))."""

    hlo = "stablehlo.logistic"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(out, elementwise.sub(1, out))


class Sqrt(Analytic):
    """The square root."""

    hlo = "stablehlo.sqrt"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(0.5, out)


class Rsqrt(Elementwise):
    """1 / sqrt(x)."""

    hlo = "stablehlo.rsqrt"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(elementwise.div(out, x), -0.5)


class Cbrt(Elementwise):
    """The cube root."""

    hlo = "stablehlo.cbrt"
    takes = "f"

    def lower(self, build: Any, x: Any) -> Any:
        return build.map(widened(self.computed["root"]), x, super().lower(build, x))

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(1 / 3, elementwise.mul(out, out))


class Exp2(Elementwise):
    """2 ** x."""

    takes = "f"

    def lower(self, build: Any, x: Any) -> Any:
        return build.map(_exp2, x)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(out, math.log(2.0))


def _exp2(x: Any) -> Any:
    """exp of the fraction of x, times a power of two, which is exact: the relative error does not grow with x."""
    t = type_of(x)
    if dtypes.bits(t.dtype) < 32:
        return conversion.convert(_exp2(conversion.convert(x, dtypes.float32)), t.dtype)
    top = np.asarray(200.0 if t.dtype is dtypes.float32 else 1200.0, t.dtype)  # 2**top overflows, 2**(top / 2) does not
    bounded = elementwise.clamp(elementwise.neg(top), x, top)
    whole = round_even(bounded)
    fraction = exp(elementwise.mul(elementwise.sub(bounded, whole), math.log(2.0)))
    half = floor(elementwise.mul(whole, 0.5))  # two factors, because one power of two may be subnormal
    out = elementwise.mul(elementwise.mul(fraction, power_of_two(half)), power_of_two(elementwise.sub(whole, half)))
    return elementwise.select(elementwise.ne(x, x), x, out)


def power_of_two(n: Any) -> Any:
    """2 ** n for integer n in the range of normal exponents, by setting the exponent bits."""
    is_single = type_of(n).dtype is dtypes.float32
    integer, bias, mantissa = (np.dtype(np.int32), 127, 23) if is_single else (np.dtype(np.int64), 1023, 52)
    bits = elementwise.shift_left(elementwise.add(conversion.convert(n, integer), bias), mantissa)
    return conversion.bitcast_convert(bits, type_of(n).dtype)


class Sinh(Analytic):
    """Hyperbolic sine."""

    def lower(self, build: Any, x: Any) -> Any:
        return super().lower(build, x) if x.type.kind == "c" else build.map(_sinh, x)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return cosh(x)


class Cosh(Analytic):
    """Hyperbolic cosine."""

    def lower(self, build: Any, x: Any) -> Any:
        return super().lower(build, x) if x.type.kind == "c" else build.map(_cosh, x)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return sinh(x)


def _half_exp(size: Any) -> tuple[Any, Any]:
    """exp(x) / 2, also where exp(x) overflows but its half does not, and exp(x), for x >= 0."""
    limit = {1: 5.0, 2: 11.0, 4: 88.0, 8: 709.0}[type_of(size).dtype.itemsize]
    is_large = elementwise.gt(size, limit)
    whole = exp(size)
    root = exp(elementwise.mul(size, 0.5))
    return elementwise.select(
        is_large, elementwise.mul(elementwise.mul(root, 0.5), root), elementwise.mul(whole, 0.5)
    ), whole


def _sinh(x: Any) -> Any:
    size = absolute(x)
    half, whole = _half_exp(size)
    far = elementwise.sub(half, elementwise.div(0.5, whole))
    small = expm1(size)
    near = elementwise.mul(elementwise.add(small, elementwise.div(small, elementwise.add(small, 1))), 0.5)
    out = elementwise.select(elementwise.lt(size, 1), near, far)
    return elementwise.select(
        elementwise.lt(x, 0), elementwise.neg(out), elementwise.select(elementwise.eq(x, 0), x, out)
    )


def _cosh(x: Any) -> Any:
    half, whole = _half_exp(absolute(x))
    return elementwise.add(half, elementwise.div(0.5, whole))


class Asin(Analytic):
    """The inverse of sine."""

    hlo = "chlo.asin"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return _inverse_root(x)


class Acos(Analytic):
    """The inverse of cosine."""

    hlo = "chlo.acos"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.neg(_inverse_root(x))


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(1 - x*x), from (1 - x) * (1 + x), which is accurate near one."""
    return rsqrt(elementwise.mul(elementwise.sub(1, x), elementwise.add(x, 1)))


class Atan(Analytic):
    """The inverse of tangent."""

    hlo = "chlo.atan"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(1, elementwise.add(elementwise.mul(x, x), 1))


class Asinh(Analytic):
    """The inverse of hyperbolic sine."""

    hlo = "chlo.asinh"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return rsqrt(elementwise.add(elementwise.mul(x, x), 1))


class Acosh(Analytic):
    """The inverse of hyperbolic cosine."""

    hlo = "chlo.acosh"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(rsqrt(elementwise.sub(x, 1)), rsqrt(elementwise.add(x, 1)))


class Atanh(Analytic):
    """The inverse of hyperbolic tangent."""

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(1, elementwise.mul(elementwise.sub(1, x), elementwise.add(x, 1)))


class Atan2(Elementwise):
    """The angle of the point (y, x): the arc tangent of x / y in the correct quadrant."""

    hlo = "stablehlo.atan2"
    takes = "fc"

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        if type_of(x).kind == "c":
            square = elementwise.add(elementwise.mul(x, x), elementwise.mul(y, y))
            return elementwise.div(y if i == 0 else elementwise.neg(x), square)
        # scaled, so squares neither over- nor underflow; zero at the origin and at infinity
        size = bind(elementwise.StopGradient(), elementwise.maximum(absolute(x), absolute(y)))
        is_zero = elementwise.logical_or(elementwise.eq(size, 0), elementwise.eq(size, np.inf))
        size = elementwise.select(is_zero, one_like(size), size)
        inverse = elementwise.div(1, size)
        x, y = elementwise.mul(x, inverse), elementwise.mul(y, inverse)
        square = elementwise.add(elementwise.mul(x, x), elementwise.mul(y, y))
        square = elementwise.select(is_zero, one_like(size), square)
        slope = elementwise.mul(elementwise.div(y if i == 0 else elementwise.neg(x), square), inverse)
        return elementwise.select(is_zero, zero_like(size), slope)


class Hypot(Elementwise):
    """sqrt(x**2 + y**2), without overflow. The derivative at the origin is zero."""

    takes = "f"

    def lower(self, build: Any, x: Any, y: Any) -> Any:
        return build.apply(self._compute, *spread_all(build, self, (x, y)))

    def _compute(self, x: Any, y: Any) -> Any:
        u, v, size = self._scaled(x, y)
        out = elementwise.mul(self._length(u, v), size)
        is_infinite = elementwise.logical_or(*[elementwise.eq(absolute(w), np.inf) for w in (x, y)])
        return elementwise.select(is_infinite, np.asarray(np.inf, type_of(x).dtype), out)  # even if the other is NaN

    def _scaled(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """Both operands divided by the larger magnitude, and this magnitude; infinite operands become their signs."""
        size = bind(elementwise.StopGradient(), elementwise.maximum(absolute(x), absolute(y)))
        is_infinite = elementwise.eq(size, np.inf)
        scale = elementwise.select(elementwise.eq(size, 0), one_like(size), size)

        def unit(v: Any) -> Any:
            limit = elementwise.select(elementwise.eq(absolute(v), np.inf), sign(v), zero_like(v))
            return elementwise.select(is_infinite, limit, elementwise.div(v, scale))

        return unit(x), unit(y), size

    def _length(self, u: Any, v: Any) -> Any:
        return sqrt(elementwise.add(elementwise.mul(u, u), elementwise.mul(v, v)))

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        u, v, size = self._scaled(x, y)
        is_zero = elementwise.eq(size, 0)
        length = elementwise.select(is_zero, one_like(size), self._length(u, v))
        return elementwise.select(is_zero, zero_like(size), elementwise.div(v if i else u, length))


# -- functions --------------------------------------------------------------------------------------------------------

rem, pow, sign, absolute = map(function, (Rem(), Pow(), Sign(), Abs()))
floor, ceil, round_even, round_away = map(function, (Floor(), Ceil(), RoundNearestEven(), RoundAwayFromZero()))
is_finite, nextafter = map(function, (IsFinite(), NextAfter()))
exp, expm1, log, log1p, sin, cos, tan, tanh = map(
    function, (Exp(), Expm1(), Log(), Log1p(), Sin(), Cos(), Tan(), Tanh())
)
exp2, sinh, cosh, asin, acos, atan, asinh, acosh, atanh = map(
    function, (Exp2(), Sinh(), Cosh(), Asin(), Acos(), Atan(), Asinh(), Acosh(), Atanh())
)
logistic, sqrt, rsqrt, cbrt = map(function, (Logistic(), Sqrt(), Rsqrt(), Cbrt()))
atan2, hypot = map(function, (Atan2(), Hypot()))


def truncate(x: ArrayLike) -> Any:
    """x rounded towards zero to an integer."""
    return elementwise.select(elementwise.lt(x, 0), ceil(x), floor(x))
