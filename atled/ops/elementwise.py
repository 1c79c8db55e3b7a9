"""Arithmetic, comparison, logic and selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.basic_ops import arithmetic
from atled.core.tangent_mask import ALL, SLOPES, SUMS, Mask, joint_reach
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import mask_rules
from atled.ops.elementwise_family import (
    ArrayLike,
    Elementwise,
    Flat,
    LinearElementwise,
    function,
    is_nan,
    match,
    one_like,
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

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return mask_rules.total(self, values, masks)


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

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return mask_rules.total(self, values, masks)


class Mul(LinearElementwise):
    """x * y."""

    hlo = "stablehlo.multiply"
    takes = "biufc"
    linear_in = ((0,), (1,))
    is_slope = False

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out, total = bind(self, x, y), None
        for tangent, factor in ((s, y), (t, x)):
            if type(tangent) is not Zero:
                term = bind(self, tangent, factor)
                total = term if total is None else add(total, term)
        return out, spread_tangent(total, out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        if type(x) is Linear:
            return unspread(bind(self, cotangent, y), x), None
        return None, unspread(bind(self, cotangent, x), y)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return mask_rules.product(self, values, masks)


class Slope(Mul):
    """`Mul` of a tangent and a derivative, which may be infinite where the operand is finite."""

    is_slope = True


Slope.name = Mul.name  # the same computation as `Mul`; only mask rules differ


class Div(LinearElementwise):
    """x / y; integers are rounded towards zero."""

    hlo = "stablehlo.divide"
    takes = "iufc"
    linear_in = ((0,),)
    is_slope = True  # because 1 / y is infinite at zero

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out = bind(self, x, y)
        if type(t) is Zero:
            return out, spread_tangent(bind(self, s, y), out)
        term = slope(t, out)
        return out, spread_tangent(bind(self, neg(term) if type(s) is Zero else sub(s, term), y), out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        return unspread(div(cotangent, y), x), None

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return mask_rules.product(self, values, masks)


class IntegerPow(Elementwise):
    """x ** n for a fixed integer n, by repeated multiplication."""

    takes = "iufc"
    n: int = 1

    def result_type(self, *types: ArrayType) -> ArrayType:
        if self.n < 0 and types[0].kind in "iu":
            raise TypeError(
                f"integer_pow: integers cannot be raised to negative powers; got {types[0]} and {self.n}."
                "\n  try: a floating base, x.astype('float32') ** n."
            )
        return super().result_type(*types)

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(self._multiply, x)

    def _multiply(self, x: Any) -> Any:
        n, out = abs(self.n), None
        while n:
            if n & 1:
                out = x if out is None else mul(out, x)
            n >>= 1
            x = self._squared(x) if n else x
        if out is None:
            return arithmetic.broadcast(one_like(x), type_of(x).shape, ())
        return div(one_like(out), out) if self.n < 0 else out

    def _squared(self, x: Any) -> Any:
        return self.computed["c"](x) if type_of(x).kind == "c" else mul(x, x)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        if self.n == 0:
            return None
        return mul(integer_pow(x, self.n - 1), self.n) if self.n != 1 else one_like(x)


class Pick(Elementwise):
    """Base class of `Max` and `Min`: one of two operands; NaN if either is NaN."""

    selects = True
    takes = "biuf"

    def loses(self, x: Any, y: Any) -> Any:
        """Whether y is selected rather than x, also for equal operands, as in NumPy."""
        raise NotImplementedError

    def lower(self, build: Any, x: Any, y: Any) -> Any:
        if build.platform != "cpu" or x.type.kind != "f":
            return super().lower(build, x, y)
        if x.literal is not None:
            x, y = y, x
        is_number = y.literal is not None and not np.isnan(np.asarray(y.literal, np.float64)).any()
        return build.apply(self._compare_to_number if is_number else self._compare, x, y)

    # With comparisons, because XLA's fast minimum and maximum on the CPU drop NaN.

    def _compare_to_number(self, x: Any, y: Any) -> Any:
        return select(self.loses(x, y), y, x)

    def _compare(self, x: Any, y: Any) -> Any:
        return select(logical_or(self.loses(x, y), ne(y, y)), y, x)


class Max(Pick):
    """The larger of x and y; NaN if either is NaN."""

    hlo = "stablehlo.maximum"

    def loses(self, x: Any, y: Any) -> Any:
        return le(x, y)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return _shared(self, primals, tangents, lt)


class Min(Pick):
    """The smaller of x and y; NaN if either is NaN."""

    hlo = "stablehlo.minimum"

    def loses(self, x: Any, y: Any) -> Any:
        return ge(x, y)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return _shared(self, primals, tangents, gt)


def _shared(
    op: Elementwise, primals: Sequence[Any], tangents: Sequence[Any], loses: Callable[[Any, Any], Any]
) -> tuple[Any, Any]:
    """The result and its tangent: that of the selected operand, the mean of both on a tie, NaN if either is NaN."""
    out, total = bind(op, *primals), None
    for t, (x, y) in zip(tangents, (primals, primals[::-1]), strict=True):
        if type(t) is not Zero:
            one, half, nan = (np.asarray(v, type_of(t).dtype) for v in (1, 0.5, np.nan))
            weight = select(eq(x, y), half, select(eq(out, out), one, nan))
            term = bind(GateTangent(), loses(x, y), zero_like(t), mul(t, weight))
            total = term if total is None else add(total, term)
    return out, spread_tangent(total, out)


class Relu(Elementwise):
    """max(x, 0), with derivative 0 at 0."""

    selects = True
    takes = "iuf"

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(lambda v: maximum(v, zero_like(v)), x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        zero = zero_like(x)
        return bind(self, x), bind(GateTangent(), le(x, zero), zero, t)


class Clamp(Elementwise):
    """x clamped to a lower and an upper bound."""

    hlo = "stablehlo.clamp"
    selects = True
    takes = "biuf"

    def lower(self, build: Any, low: Any, x: Any, high: Any) -> Any:
        if (
            build.platform == "cpu" and x.type.kind == "f" and dtypes.bits(x.type.dtype) < 32
        ) or x.type.kind == "b":  # XLA has no clamp for bools, and uses two ops for 16 bits
            return build.apply(lambda low, x, high: minimum(maximum(low, x), high), low, x, high)
        return super().lower(build, low, x, high)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (low, x, high), out, total = primals, bind(self, *primals), None
        discarded = [  # comparisons with NaN are false, so no operand is discarded, and the derivative is NaN
            lambda: logical_or(gt(x, low), ge(low, high)),
            lambda: logical_or(le(x, low), ge(x, high)),
            lambda: lt(x, high),
        ]
        for t, is_discarded in zip(tangents, discarded, strict=True):
            if type(t) is not Zero:
                one, nan = (np.asarray(v, type_of(t).dtype) for v in (1, np.nan))
                weight = select(eq(out, out), one, nan)
                term = bind(GateTangent(), is_discarded(), zero_like(t), mul(t, weight))
                total = term if total is None else add(total, term)
        return out, spread_tangent(total, out)


# -- comparison, logic, selection -------------------------------------------------------------------------------------


class Compare(Flat):
    """x compared with y: EQ, NE, LT, LE, GT or GE; complex numbers can only be compared with EQ and NE."""

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
    """The number of bits of x that are set."""

    hlo = "stablehlo.popcnt"
    takes = "iu"


class CountLeadingZeros(Bitwise):
    """The number of leading zero bits of x."""

    hlo = "stablehlo.count_leading_zeros"
    takes = "iu"


class ShiftLeft(Bitwise):
    """x << y."""

    hlo = "stablehlo.shift_left"
    takes = "iu"


class ShiftRightArithmetic(Bitwise):
    """x >> y, filling with the sign bit."""

    hlo = "stablehlo.shift_right_arithmetic"
    takes = "iu"


class ShiftRightLogical(Bitwise):
    """x >> y, filling with zeros."""

    hlo = "stablehlo.shift_right_logical"
    takes = "iu"


class Select(LinearElementwise):
    """x where the condition holds, else y."""

    takes = "biufck0"
    linear_in = ((1, 2),)
    selects = True
    reach: ClassVar[int] = SUMS  # the reach of masks that this op makes
    of_tangents: ClassVar[Select]
    of_cotangents: ClassVar[Select]

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
        out, (_, s, t) = bind(self, condition, x, y), tangents
        if type(s) is Zero and type(t) is Zero:
            return out, Zero(type_of(out).tangent())
        if type(t) is Zero and is_nan(y):
            t = slope(s, y)
        elif type(s) is Zero and is_nan(x):
            s = slope(t, x)
        s, t = [zero_like(out) if type(v) is Zero else v for v in (s, t)]
        return out, spread_tangent(bind(self.of_tangents, condition, s, t), out)

    def transpose(self, cotangent: Any, condition: Any, x: Any, y: Any) -> Any:
        op, zero = self.of_cotangents, zero_like(cotangent)
        left = unspread(bind(op, condition, cotangent, zero), x) if type(x) is Linear else None
        return None, left, unspread(bind(op, condition, zero, cotangent), y) if type(y) is Linear else None

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        out, (left, right) = bind(self, *values), mask_rules.only_zeros(values[1:], masks[1:])
        if masks[0] is not None or (left is ALL and right is ALL):
            return out, ALL
        condition, dims = values[0], type_of(out).shape

        def make() -> Any:
            if left is ALL and right is None:
                return mask_rules.filled(condition, dims)
            if left is None and right is ALL:
                return mask_rules.filled(logical_not(condition), dims)
            flags = [mask_rules.as_array(m, x) for m, x in zip((left, right), values[1:], strict=True)]
            return mask_rules.filled(select(condition, *flags), dims)

        return out, Mask(make, joint_reach((left, right), self.reach))


class Gate(Select):
    """A selection by a comparison of its own operands, as in `relu`, so a discarded operand is never NaN."""


class GateTangent(Select):
    """The selection of tangents in the derivative of a gate."""


class GateCotangent(Select):
    """The selection of cotangents in the derivative of a gate: its masks guard only slopes (`core/tangent_mask.py`)."""

    reach = SLOPES


GATES = (Gate, GateTangent, GateCotangent)
Select.of_tangents = Select.of_cotangents = Select()  # also used for second derivatives of gates
Gate.of_tangents, GateTangent.of_cotangents = GateTangent(), GateCotangent()
for _op in GATES:
    _op.name = Select.name  # the same computation as `Select`; only mask rules differ


class StopGradient(Flat):
    """x, with derivative zero."""

    takes = "biufck"

    def lower(self, build: Any, x: Any) -> Any:
        return x


neg, add, sub, mul, slope, div = map(function, (Neg(), Add(), Sub(), Mul(), Slope(), Div()))
maximum, minimum, clamp, relu = map(function, (Max(), Min(), Clamp(), Relu()))
eq, ne, lt, le, gt, ge = (function(Compare(d)) for d in ("EQ", "NE", "LT", "LE", "GT", "GE"))
logical_and, logical_or, logical_xor, logical_not = map(function, (And(), Or(), Xor(), Not()))
population_count, clz = map(function, (PopulationCount(), CountLeadingZeros()))
shift_left, shift_right_arithmetic, shift_right_logical = map(
    function, (ShiftLeft(), ShiftRightArithmetic(), ShiftRightLogical())
)


def select(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
    """x where the condition holds, else y."""
    return bind(Select(), condition, *match(x, y))


def gate(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
    """x where the condition holds, else y; the condition must compare x or y, so that it never discards a NaN."""
    return bind(Gate(), condition, *match(x, y))


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
arithmetic.mul = mul
arithmetic.slope = slope
arithmetic.select = select
arithmetic.logical_or = logical_or
