"""Arithmetic, comparison, logic and choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.arithmetic import arithmetic
from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import complex_functions, shape
from atled.ops.family import (
    ArrayLike,
    Elementwise,
    Flat,
    LinearElementwise,
    function,
    is_static_scalar,
    match,
    one_like,
    spread_all,
    spread_tangent,
    unspread,
    zero_like,
)


class Neg(LinearElementwise):
    """-x."""

    hlo = "stablehlo.negate"
    takes = "iufc"

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (neg(cotangent),)


class Add(LinearElementwise):
    """x + y."""

    hlo = "stablehlo.add"
    takes = "iufc"
    linear_in = ((0, 1),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out, (s, t) = bind(self, *primals), tangents
        total = s if type(t) is Zero else t if type(s) is Zero else add(s, t)
        return out, spread_tangent(total, out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        return tuple([unspread(cotangent, v) if type(v) is Linear else None for v in (x, y)])


class Sub(LinearElementwise):
    """x - y."""

    hlo = "stablehlo.subtract"
    takes = "iufc"
    linear_in = ((0, 1),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out, (s, t) = bind(self, *primals), tangents
        total = s if type(t) is Zero else neg(t) if type(s) is Zero else sub(s, t)
        return out, spread_tangent(total, out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        left = unspread(cotangent, x) if type(x) is Linear else None
        return left, neg(unspread(cotangent, y)) if type(y) is Linear else None


class Mul(LinearElementwise):
    """x * y."""

    hlo = "stablehlo.multiply"
    takes = "biufc"
    linear_in = ((0,), (1,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out, total = bind(self, x, y), None
        for tangent, factor in ((s, y), (t, x)):
            if type(tangent) is not Zero:
                term = shielded(tangent, factor)
                total = term if total is None else add(total, term)
        return out, spread_tangent(total, out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        if type(x) is Linear:
            return unspread(mul(cotangent, y), x), None
        return None, unspread(mul(cotangent, x), y)


_EQUAL = {"comparison_direction": "#stablehlo<comparison_direction EQ>"}


class Shielded(Elementwise):
    """x * y, and exactly zero wherever a factor is, even if the other is not finite; x / y, if `divides`.

    Derivatives are multiplied with it: where a factor is zero, a result does not move with an operand, however large
    the other factor is. A cotangent of zero may meet the infinite derivative of a branch that was not chosen, or the
    infinite cotangent in `sqrt(x * x)` the derivative zero of `x * x`. A quotient is zero wherever x is.
    """

    takes = "fc"
    hides_nans = True
    divides: bool = False

    @property
    def linear_in(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]
        return ((0,),) if self.divides else ((0,), (1,))

    def unhidden(self, x: Any, y: Any) -> Any:
        """The plain product or quotient, on NumPy arrays."""
        with np.errstate(all="ignore"):
            return x / y if self.divides else x * y

    def lower(self, build: Any, *operands: Any) -> Any:
        x, y = spread_all(build, self, operands)
        out = build.emit("stablehlo.divide" if self.divides else "stablehlo.multiply", (x, y), (x.type,))
        zero, truth = build.constant(0, x.type), (x.type.with_dtype(dtypes.bool_),)
        is_zero = build.emit("stablehlo.compare", (x, zero), truth, _EQUAL)
        if not self.divides:
            other = build.emit("stablehlo.compare", (y, zero), truth, _EQUAL)
            is_zero = build.emit("stablehlo.or", (is_zero, other), truth)
        return build.emit("stablehlo.select", (is_zero, zero, out), (out.type,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out = bind(self, x, y)
        total = None if type(s) is Zero else bind(self, s, y)
        if type(t) is not Zero:
            term = shielded(t, neg(bind(self, out, y)) if self.divides else x)
            total = term if total is None else add(total, term)
        return out, spread_tangent(total, out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        if type(x) is Linear:
            return unspread(bind(self, cotangent, y), x), None
        return None, unspread(bind(self, x, cotangent), y)


def shielded(x: Any, y: Any) -> Any:
    """x * y, with zero wherever a factor is zero."""
    return mul(x, y) if _is_safe(y) else bind(Shielded(), x, y)


def _is_safe(factor: Any) -> bool:
    """Whether a factor is written into the program, finite, and not zero."""
    value = getattr(factor, "value", factor)
    return is_static_scalar(factor) and bool(value != 0) and bool(abs(value) < np.inf)


class Div(LinearElementwise):
    """x / y; integers are rounded towards zero."""

    hlo = "stablehlo.divide"
    takes = "iufc"
    linear_in = ((0,),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out = bind(self, x, y)
        by_y = self if _is_safe(y) else Shielded(divides=True)
        total = None if type(s) is Zero else bind(by_y, s, y)
        if type(t) is not Zero:
            term = shielded(t, neg(div(out, y)))
            total = term if total is None else add(total, term)
        return out, spread_tangent(total, out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        return unspread(div(cotangent, y), x), None


def _squared(x: Any) -> Any:
    return complex_functions.square(x) if type_of(x).kind == "c" else mul(x, x)


class IntegerPow(Elementwise):
    """x ** n for a fixed integer n, by repeated multiplication."""

    takes = "iufc"
    n: int = 1

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(self._multiply, x)

    def _multiply(self, x: Any) -> Any:
        n, out = abs(self.n), None
        while n:
            if n & 1:
                out = x if out is None else mul(out, x)
            n >>= 1
            x = _squared(x) if n else x
        if out is None:
            return shape.broadcast(one_like(x), type_of(x).shape, ())
        return div(one_like(out), out) if self.n < 0 else out

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        if self.n == 0:
            return None
        return mul(integer_pow(x, self.n - 1), self.n) if self.n != 1 else one_like(x)


class Max(Elementwise):
    """The larger of x and y; NaN if either is."""

    hlo = "stablehlo.maximum"
    takes = "biufc"

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        return _share(x, y, gt if i == 0 else lt)


class Min(Elementwise):
    """The smaller of x and y; NaN if either is."""

    hlo = "stablehlo.minimum"
    takes = "biufc"

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        return _share(x, y, lt if i == 0 else gt)


def _share(x: Any, y: Any, wins: Callable[[Any, Any], Any]) -> Any:
    """1 where the operand wins, 0 where it loses, and half each on a tie."""
    half, one = np.asarray(0.5, type_of(x).dtype), one_like(x)
    return select(wins(x, y), one, select(eq(x, y), half, zero_like(x)))


class Clamp(Elementwise):
    """x kept between a lower and an upper bound."""

    hlo = "stablehlo.clamp"
    takes = "biuf"

    def derivative(self, i: int, out: Any, low: Any, x: Any, high: Any) -> Any:
        inside = logical_and(gt(x, low), lt(x, high))
        chosen = [logical_and(le(x, low), lt(low, high)), inside, ge(x, high)][i]
        return select(chosen, one_like(out), zero_like(out))


# -- comparison, logic, choice --------------------------------------------------------------------------------------


class Compare(Flat):
    """x compared with y: EQ, NE, LT, LE, GT or GE. Complex numbers only for equality."""

    takes = "biufc"
    direction: str = "EQ"

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        if dtypes.kind(dtype) == "c" and self.direction not in ("EQ", "NE"):
            raise TypeError(f"{self.direction.lower()}: complex numbers have no order; got {dtypes.short_name(dtype)}.")
        return ArrayType(dims, dtypes.bool_)

    def lower(self, build: Any, *operands: Any) -> Any:
        out = self.result_type(*[x.type for x in operands])
        direction = f"#stablehlo<comparison_direction {self.direction}>"
        args = [build.spread(x, out.shape) for x in operands]
        return build.emit("stablehlo.compare", args, (out,), {"comparison_direction": direction})


class Bitwise(Flat):
    """A bitwise op of one or two operands, logical for bools."""

    takes = "biu"

    def wrong_kind(self, t: ArrayType) -> TypeError:
        way_out = "comparisons in parentheses, (x > 0) & (y > 0), because & and | come before them."
        return TypeError(f"{super().wrong_kind(t)}\n  try: {way_out}")


class And(Bitwise):
    """x & y."""

    hlo = "stablehlo.and"


class Or(Bitwise):
    """x | y."""

    hlo = "stablehlo.or"


class Xor(Bitwise):
    """x ^ y."""

    hlo = "stablehlo.xor"


class Not(Bitwise):
    """~x."""

    hlo = "stablehlo.not"


class PopulationCount(Bitwise):
    """How many bits of x are set."""

    hlo = "stablehlo.popcnt"
    takes = "iu"


class CountLeadingZeros(Bitwise):
    """How many leading bits of x are zero."""

    hlo = "stablehlo.count_leading_zeros"
    takes = "iu"


class ShiftLeft(Bitwise):
    """x << y."""

    hlo = "stablehlo.shift_left"
    takes = "iu"


class ShiftRightArithmetic(Bitwise):
    """x >> y, keeping the sign."""

    hlo = "stablehlo.shift_right_arithmetic"
    takes = "iu"


class ShiftRightLogical(Bitwise):
    """x >> y, filling with zeros."""

    hlo = "stablehlo.shift_right_logical"
    takes = "iu"


class Select(LinearElementwise):
    """x where the condition holds, else y."""

    takes = "biufck"
    linear_in = ((1, 2),)

    def result_type(self, condition: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
        if condition.dtype is not dtypes.bool_:
            raise TypeError(f"select: the condition must be bool; got {condition}.")
        out = super().result_type(x, y)
        if condition.shape not in ((), out.shape):
            if out.shape != ():
                raise self.mismatch("condition and operands must have the same shape, or be scalars", (condition, x, y))
            out = out.with_shape(condition.shape)
        return out

    def lower(self, build: Any, condition: Any, x: Any, y: Any) -> Any:
        out = self.result_type(condition.type, x.type, y.type)
        args = [condition, build.spread(x, out.shape), build.spread(y, out.shape)]
        return build.emit("stablehlo.select", args, (out,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        condition, x, y = primals
        out = bind(self, condition, x, y)
        s, t = [zero_like(out) if type(v) is Zero else v for v in tangents[1:]]
        if all(type(v) is Zero for v in tangents[1:]):
            return out, Zero(type_of(out).tangent())
        return out, spread_tangent(select(condition, s, t), out)

    def transpose(self, cotangent: Any, condition: Any, x: Any, y: Any) -> Any:
        zero = zero_like(cotangent)
        left = unspread(select(condition, cotangent, zero), x) if type(x) is Linear else None
        return None, left, unspread(select(condition, zero, cotangent), y) if type(y) is Linear else None


class StopGradient(Flat):
    """x, as a constant for derivatives."""

    takes = "biufck"

    def lower(self, build: Any, x: Any) -> Any:
        return x


neg, add, sub, mul, div = map(function, (Neg(), Add(), Sub(), Mul(), Div()))
maximum, minimum, clamp = map(function, (Max(), Min(), Clamp()))
eq, ne, lt, le, gt, ge = (function(Compare(d)) for d in ("EQ", "NE", "LT", "LE", "GT", "GE"))
logical_and, logical_or, logical_xor, logical_not = map(function, (And(), Or(), Xor(), Not()))
population_count, clz = map(function, (PopulationCount(), CountLeadingZeros()))
shift_left, shift_right_arithmetic, shift_right_logical = map(
    function, (ShiftLeft(), ShiftRightArithmetic(), ShiftRightLogical())
)


def select(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
    """x where the condition holds, else y."""
    return bind(Select(), condition, *match(x, y))


def integer_pow(x: ArrayLike, n: int) -> Any:
    """x ** n for a fixed integer n."""
    return bind(IntegerPow(n), x)


def square(x: ArrayLike) -> Any:
    """x * x."""
    return bind(IntegerPow(2), x)


def reciprocal(x: ArrayLike) -> Any:
    """1 / x."""
    return div(1, x)


arithmetic.add = add
