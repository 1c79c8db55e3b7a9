"""Elementary functions: sign and magnitude, rounding, powers, exponentials, logarithms, circular and hyperbolic functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import conversion, elementwise
from atled.ops.family import ArrayLike, Elementwise, Flat, function, one_like, spread_all, zero_like


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
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        if i == 0:
            # y * x**(y - 1), and zero where y is zero, even at x = 0
            return elementwise.select(elementwise.eq(y, 0), zero_like(out), elementwise.mul(y, pow(x, elementwise.sub(y, 1))))
        # log(x) * x**y, continued by zero to x = 0
        return elementwise.shielded(out, log(elementwise.select(elementwise.eq(x, 0), one_like(x), x)))


class Sign(Flat):
    """-1, 0 or 1 by the sign of x; x / abs(x) for complex x."""

    hlo = "stablehlo.sign"
    takes = "iufc"

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.kind == "u":
            return build.apply(lambda v: conversion.convert(elementwise.ne(v, 0), v.dtype), x)
        return super().lower(build, x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        if type_of(x).kind != "c":
            return out, Zero(type_of(out).tangent())
        size = conversion.convert(absolute(x), type_of(x).dtype)
        along = conversion.convert(conversion.real(elementwise.mul(conversion.conj(out), t)), type_of(x).dtype)
        return out, bind(elementwise.Shielded(divides=True), elementwise.sub(t, elementwise.mul(out, along)), size)


class Abs(Elementwise):
    """The magnitude of x, which is real for complex x."""

    hlo = "stablehlo.abs"
    takes = "iufc"

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, dtypes.real_part(dtype), weak)

    def lower(self, build: Any, x: Any) -> Any:
        return x if x.type.kind == "u" else super().lower(build, x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        factor = sign(x)
        if type_of(x).kind == "c":
            return absolute(x), conversion.real(elementwise.mul(conversion.conj(factor), t))
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
    """The nearest integer; halves go to the even one."""

    hlo = "stablehlo.round_nearest_even"
    takes = "f"


class RoundAwayFromZero(Flat):
    """The nearest integer; halves go away from zero."""

    hlo = "stablehlo.round_nearest_afz"
    takes = "f"


class IsFinite(Flat):
    """Whether x is neither infinite nor NaN."""

    hlo = "stablehlo.is_finite"
    takes = "f"

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, dtypes.bool_)


class NextAfter(Flat):
    """The next number after x towards y."""

    takes = "f"

    def lower(self, build: Any, x: Any, y: Any) -> Any:
        return build.emit("chlo.broadcast_next_after", spread_all(build, self, (x, y)), (self.result_type(x.type, y.type),))


# -- elementary functions -------------------------------------------------------------------------------------------


class Exp(Elementwise):
    """The exponential function."""

    hlo = "stablehlo.exponential"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return out


class Expm1(Elementwise):
    """exp(x) - 1, exact for small x."""

    hlo = "stablehlo.exponential_minus_one"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.add(out, 1)


class Log(Elementwise):
    """The natural logarithm."""

    hlo = "stablehlo.log"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(1, x)


class Log1p(Elementwise):
    """log(1 + x), exact for small x."""

    hlo = "stablehlo.log_plus_one"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(1, elementwise.add(x, 1))


class Sin(Elementwise):
    """Sine."""

    hlo = "stablehlo.sine"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return cos(x)


class Cos(Elementwise):
    """Cosine."""

    hlo = "stablehlo.cosine"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.neg(sin(x))


class Tan(Elementwise):
    """Tangent."""

    hlo = "stablehlo.tan"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.add(elementwise.mul(out, out), 1)


class Tanh(Elementwise):
    """Hyperbolic tangent."""

    hlo = "stablehlo.tanh"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.sub(1, elementwise.mul(out, out))


class Logistic(Elementwise):
    """1 / (1 + exp(-x))."""

    hlo = "stablehlo.logistic"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(out, elementwise.sub(1, out))


class Sqrt(Elementwise):
    """The square root."""

    hlo = "stablehlo.sqrt"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(0.5, out)


class Rsqrt(Elementwise):
    """1 / sqrt(x)."""

    hlo = "stablehlo.rsqrt"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(elementwise.div(out, x), -0.5)


class Cbrt(Elementwise):
    """The cube root."""

    hlo = "stablehlo.cbrt"
    takes = "f"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.div(1 / 3, elementwise.mul(out, out))


class Atan2(Elementwise):
    """The angle of the point (y, x): the arc tangent of x / y in the right quadrant."""

    hlo = "stablehlo.atan2"
    takes = "fc"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        square = elementwise.add(elementwise.mul(x, x), elementwise.mul(y, y))
        return elementwise.div(y if i == 0 else elementwise.neg(x), square)


# -- the functions --------------------------------------------------------------------------------------------------

rem, pow, sign, absolute = map(function, (Rem(), Pow(), Sign(), Abs()))
floor, ceil, round_even, round_away = map(function, (Floor(), Ceil(), RoundNearestEven(), RoundAwayFromZero()))
is_finite, nextafter = map(function, (IsFinite(), NextAfter()))
exp, expm1, log, log1p, sin, cos, tan, tanh = map(
    function, (Exp(), Expm1(), Log(), Log1p(), Sin(), Cos(), Tan(), Tanh())
)
logistic, sqrt, rsqrt, cbrt, atan2 = map(function, (Logistic(), Sqrt(), Rsqrt(), Cbrt(), Atan2()))


def truncate(x: ArrayLike) -> Any:
    """x without its fraction."""
    return elementwise.select(elementwise.lt(x, 0), ceil(x), floor(x))
