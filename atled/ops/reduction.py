"""Reductions: sums, products, minima and maxima, logic, argmin and argmax."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.basic_ops import arithmetic
from atled.core.op import LinearOp, Op
from atled.core.tangent_mask import ALL, SUMS, Mask
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import conversion, cumulative, elementwise, shape


class Reduction(Op):
    """Base class of reductions by a commutative and associative op over `axes`, which are removed."""

    hlo: ClassVar[str]
    takes: ClassVar[str] = "iufc"
    axes: tuple[int, ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        if x.kind not in self.takes:
            raise TypeError(f"{self.name}: reductions of {x} are not defined.")
        if any(not 0 <= a < x.ndim for a in self.axes) or len(set(self.axes)) != len(self.axes):
            raise TypeError(f"{self.name}: axes must be different axes of {x}; got {self.axes}.")
        return x.with_shape(tuple([n for a, n in enumerate(x.shape) if a not in self.axes]))

    def identity(self, dtype: Any) -> Any:
        """The identity element of the reduction for a dtype."""
        raise NotImplementedError

    def lower(self, build: Any, x: Any) -> Any:
        start = build.constant(self.identity(x.type.dtype), ArrayType((), x.type.dtype))
        return build.emit(
            "stablehlo.reduce",
            (x, start),
            (self.result_type(x.type),),
            {"dimensions": self.axes},
            [monoid(build, self.hlo, x.type.dtype)],
        )

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(type(self)(tuple([a + 1 for a in self.axes])), x)


def monoid(build: Any, hlo: str, dtype: Any) -> Any:
    """The region of a reduction that combines two elements with one op."""
    scalar = ArrayType((), dtype)
    return build.region((scalar, scalar), lambda b, u, v: b.emit(hlo, (u, v), (scalar,)))


class ReduceSum(Reduction, LinearOp):
    """The sum over `axes`."""

    hlo = "stablehlo.add"

    def identity(self, dtype: Any) -> Any:
        return 0

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.kind != "f" or dtypes.bits(x.type.dtype) >= 32:
            return super().lower(build, x)
        wide = conversion.convert  # the compiler would accumulate in bfloat16, where 256 + 1 is 256
        return build.apply(lambda v: wide(reduce_sum(wide(v, dtypes.float32), self.axes), x.type.dtype), x)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        axes = tuple([a for a in range(x.type.ndim) if a not in self.axes])
        return (shape.broadcast(cotangent, x.type.shape, axes),)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        out, (mask,) = bind(self, *values), masks
        return out, ALL if mask is ALL or mask.reach < SUMS else Mask(lambda: reduce_or(mask.get(), self.axes))

    jvp = LinearOp.jvp


class ReduceProd(Reduction):
    """The product over `axes`."""

    hlo = "stablehlo.multiply"

    def identity(self, dtype: Any) -> Any:
        return 1

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        # the product of the other elements is the product before times the product after, also if some are zero
        rows, tangent = (merge_axes(v, self.axes) for v in (x, t))
        others = elementwise.mul(_exclusive_product(rows, False), _exclusive_product(rows, True))
        return bind(self, x), reduce_sum(elementwise.mul(tangent, others), (type_of(rows).ndim - 1,))


def merge_axes(x: Any, axes: Sequence[int]) -> Any:
    """x with `axes` moved to the end and merged into one."""
    dims = type_of(x).shape
    remaining = [a for a in range(len(dims)) if a not in axes]
    moved = shape.transpose(x, (*remaining, *axes))
    return shape.reshape(moved, (*[dims[a] for a in remaining], prod([dims[a] for a in axes])))


def _exclusive_product(x: Any, is_reversed: bool) -> Any:
    last = type_of(x).ndim - 1
    n = type_of(x).shape[last]
    if n == 0:
        return x
    padding = [(0, 0, 0)] * last + [(0, 1, 0) if is_reversed else (1, 0, 0)]
    shifted = shape.pad(
        shape.slice_in_axis(x, 1, n, last) if is_reversed else shape.slice_in_axis(x, 0, n - 1, last), 1, padding
    )
    return cumulative.cumprod(shifted, last, is_reversed)


def _folded(x: Any, axis: int, parts: int, combine: Any) -> Any:
    """x with a long axis cut into parts that are combined elementwise, which makes the following reduction shorter.

    The last part may overlap the one before, so `combine` must be idempotent, such as `minimum`.
    """
    length = type_of(x).shape[axis]
    if length < 64:
        return x
    part = -(-length // parts)
    starts = [min(i * part, length - part) for i in range(parts)]
    return functools.reduce(combine, [shape.slice_in_axis(x, i, i + part, axis) for i in starts])


class Extremum(Reduction):
    """Base class of `ReduceMax` and `ReduceMin`: NaN if any element is NaN; equal extrema share the derivative.

    If `is_loose`, a NaN may be dropped, which saves a pass over the elements.
    """

    takes = "biuf"
    selects = True
    loses: ClassVar[Callable[[Any, Any], Any]]  # whether an element is not the extremum, given both
    is_loose: bool = False

    def lower(self, build: Any, x: Any) -> Any:
        out = super().lower(build, x)
        if self.is_loose or build.platform != "cpu" or x.type.kind != "f":
            return out
        # over several devices the axes may be split, so none is cut into parts
        longest = max(self.axes, key=lambda a: x.type.shape[a], default=None) if build.on_one_cpu else None
        return build.apply(lambda v, extremum: self._or_nan(v, extremum, longest), x, out)

    def _or_nan(self, x: Any, extremum: Any, longest: int | None) -> Any:
        """The extremum, or NaN if an element is NaN, which XLA's CPU kernels drop."""
        is_nan = elementwise.ne(x, x)
        if longest is not None:
            is_nan = _folded(is_nan, longest, 8, elementwise.logical_or)
        return elementwise.select(reduce_or(is_nan, self.axes), np.asarray(np.nan, type_of(x).dtype), extremum)

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(type(self)(tuple([a + 1 for a in self.axes]), self.is_loose), x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (t,) = tangents
        # a barrier, because recomputed values of x may round differently and then differ from the extremum
        (x,) = shape.optimization_barrier(*primals)
        out = bind(self, x)
        dims = type_of(x).shape
        axes = tuple([a for a in range(len(dims)) if a not in self.axes])
        is_discarded = self.loses(x, shape.broadcast(out, dims, axes))  # all False if `out` is NaN
        one, zero = (np.asarray(v, type_of(x).dtype) for v in (1, 0))
        count = reduce_sum(elementwise.select(is_discarded, zero, one), self.axes)
        total = reduce_sum(bind(elementwise.GateTangent(), is_discarded, zero, t), self.axes)
        return out, elementwise.div(total, elementwise.select(elementwise.eq(out, out), count, out))


class ReduceMax(Extremum):
    """The largest element over `axes`."""

    hlo = "stablehlo.maximum"
    loses = staticmethod(elementwise.lt)

    def identity(self, dtype: Any) -> Any:
        return lowest(dtype)


class ReduceMin(Extremum):
    """The smallest element over `axes`."""

    hlo = "stablehlo.minimum"
    loses = staticmethod(elementwise.gt)

    def identity(self, dtype: Any) -> Any:
        return highest(dtype)


def lowest(dtype: Any) -> Any:
    """The lowest value of a dtype: -inf if it has one, False for booleans."""
    kind = dtypes.kind(dtype)
    return False if kind == "b" else -np.inf if kind == "f" and _has_inf(dtype) else dtypes_limit(dtype, "min")


def highest(dtype: Any) -> Any:
    """The highest value of a dtype: inf if it has one, True for booleans."""
    kind = dtypes.kind(dtype)
    return True if kind == "b" else np.inf if kind == "f" and _has_inf(dtype) else dtypes_limit(dtype, "max")


def _has_inf(dtype: Any) -> bool:
    return bool(np.isinf(np.asarray(np.inf, dtype).astype(np.float64)))


def dtypes_limit(dtype: Any, which: str) -> Any:
    """The smallest or largest finite value of a dtype."""
    info = dtypes.finfo(dtype) if dtypes.kind(dtype) == "f" else dtypes.iinfo(dtype)
    return getattr(info, which)


class Logical(Reduction):
    """Base class of bitwise reductions, which have no derivative."""

    takes = "biu"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        return out, Zero(type_of(out).tangent())


class ReduceAnd(Logical):
    """Whether all elements are True; for integers, their bitwise and."""

    hlo = "stablehlo.and"

    def identity(self, dtype: Any) -> Any:
        return True if dtypes.kind(dtype) == "b" else np.asarray(-1).astype(dtype)


class ReduceOr(Logical):
    """Whether any element is True; for integers, their bitwise or."""

    hlo = "stablehlo.or"

    def identity(self, dtype: Any) -> Any:
        return False if dtypes.kind(dtype) == "b" else 0


class ReduceXor(Logical):
    """The exclusive or of all elements."""

    hlo = "stablehlo.xor"

    def identity(self, dtype: Any) -> Any:
        return False if dtypes.kind(dtype) == "b" else 0


class ArgExtremum(Op):
    """Base class of `Argmax` and `Argmin`: the index along an axis of the first NaN, or else of the first extremum."""

    hlo: ClassVar[str]
    axis: int
    dtype: Any

    def result_type(self, x: ArrayType) -> ArrayType:
        if x.kind not in "biuf":
            raise TypeError(f"{self.name}: the elements of {x} have no order.")
        if not 0 <= self.axis < x.ndim or x.shape[self.axis] == 0:
            raise TypeError(f"{self.name}: {x} has no elements along axis {self.axis}.")
        return ArrayType((*x.shape[: self.axis], *x.shape[self.axis + 1 :]), self.dtype)

    def start(self, dtype: Any) -> Any:
        raise NotImplementedError

    def lower(self, build: Any, x: Any) -> Any:
        if build.on_one_cpu:
            return build.apply(self._in_two_passes, x)
        out = self.result_type(x.type)
        value, index = ArrayType((), x.type.dtype), ArrayType((), self.dtype)
        positions = build.emit(
            "stablehlo.iota", (), (ArrayType(x.type.shape, self.dtype),), {"iota_dimension": self.axis}
        )
        starts = (build.constant(self.start(x.type.dtype), value), build.constant(0, index))
        wins = elementwise.gt if self.hlo == "GT" else elementwise.lt

        def better(u: Any, i: Any, v: Any, j: Any) -> Any:
            first = elementwise.logical_or(wins(u, v), elementwise.ne(u, u))
            tie = elementwise.logical_and(elementwise.eq(u, v), elementwise.lt(i, j))
            chosen = elementwise.logical_or(first, tie)
            # of two NaNs, the earlier is chosen
            both = elementwise.logical_and(elementwise.ne(u, u), elementwise.ne(v, v))
            chosen = elementwise.select(both, elementwise.lt(i, j), chosen)
            return elementwise.select(chosen, u, v), elementwise.select(chosen, i, j)

        region = build.region((value, index, value, index), lambda b, *args: b.apply(better, *args))
        types = (x.type.with_shape(out.shape), out)
        results = build.emit("stablehlo.reduce", (x, positions, *starts), types, {"dimensions": (self.axis,)}, [region])
        return results[1]

    def _in_two_passes(self, x: Any) -> Any:
        """Two reductions, to the extremum and to its first index: with one value each, they compile to vector code."""
        t = type_of(x)
        length = t.shape[self.axis]
        others = [a for a in range(t.ndim) if a != self.axis]
        extremum = bind((ReduceMax if self.hlo == "GT" else ReduceMin)((self.axis,), True), x)
        has = elementwise.eq(x, shape.broadcast(extremum, t.shape, others))
        dtype = np.dtype(np.int32 if length < 2**30 else np.int64)
        at, last = shape.iota(dtype, t.shape, self.axis), np.asarray(length - 1, dtype)
        if t.kind != "f":
            at = elementwise.select(has, at, last)
        else:  # a NaN's index is negative, so it is the smallest
            behind = elementwise.sub(at, np.asarray(length, dtype))
            at = elementwise.select(elementwise.ne(x, x), behind, elementwise.select(has, at, last))
        if self.axis == t.ndim - 1:
            at = _folded(at, self.axis, 4, elementwise.minimum)
        first = reduce_min(at, (self.axis,))
        if t.kind == "f":
            first = elementwise.select(
                elementwise.lt(first, np.asarray(0, dtype)), elementwise.add(first, np.asarray(length, dtype)), first
            )
        return conversion.convert(first, self.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        return out, Zero(type_of(out).tangent())

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(type(self)(self.axis + 1, self.dtype), x)


class Argmax(ArgExtremum):
    """The index of the largest element."""

    hlo = "GT"

    def start(self, dtype: Any) -> Any:
        return lowest(dtype)


class Argmin(ArgExtremum):
    """The index of the smallest element."""

    hlo = "LT"

    def start(self, dtype: Any) -> Any:
        return highest(dtype)


def _reduce(op: type[Reduction], x: Any, axes: Sequence[int]) -> Any:
    return bind(op(tuple(axes)), x) if axes else x


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """The sum over axes."""
    return _reduce(ReduceSum, x, axes)


def reduce_prod(x: Any, axes: Sequence[int]) -> Any:
    """The product over axes."""
    return _reduce(ReduceProd, x, axes)


def reduce_max(x: Any, axes: Sequence[int]) -> Any:
    """The largest element over axes."""
    return _reduce(ReduceMax, x, axes)


def reduce_min(x: Any, axes: Sequence[int]) -> Any:
    """The smallest element over axes."""
    return _reduce(ReduceMin, x, axes)


def reduce_and(x: Any, axes: Sequence[int]) -> Any:
    """Whether all elements over axes are true."""
    return _reduce(ReduceAnd, x, axes)


def reduce_or(x: Any, axes: Sequence[int]) -> Any:
    """Whether any element over axes is true."""
    return _reduce(ReduceOr, x, axes)


def reduce_xor(x: Any, axes: Sequence[int]) -> Any:
    """The exclusive or of the elements over axes."""
    return _reduce(ReduceXor, x, axes)


def argmax(x: Any, axis: int, dtype: Any) -> Any:
    """The index of the first largest element along an axis."""
    return bind(Argmax(axis, dtypes.canonical(dtype)), x)


def argmin(x: Any, axis: int, dtype: Any) -> Any:
    """The index of the first smallest element along an axis."""
    return bind(Argmin(axis, dtypes.canonical(dtype)), x)


arithmetic.sum = reduce_sum
