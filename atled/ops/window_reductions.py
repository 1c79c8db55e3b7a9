"""Reductions over sliding windows, and the selection of each window's extremum, which their derivatives need."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp, Op
from atled.core.tangent_mask import ALL, SLOPES, Mask, joint_reach
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import conversion, elementwise, mask_rules, reduction, shape
from atled.ops.convolution import dilated
from atled.ops.elementwise_family import check_order

HLO = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}


def identity(combine: str, dtype: Any) -> Any:
    """The identity element of a combining op for a dtype."""
    if combine in ("max", "min"):
        return reduction.lowest(dtype) if combine == "max" else reduction.highest(dtype)
    if combine == "and":
        return -1 if dtypes.kind(dtype) == "i" else reduction.highest(dtype)  # all bits
    return {"add": 0, "mul": 1, "or": 0}[combine]


def window_shape(name: str, x: ArrayType, op: Any) -> tuple[int, ...]:
    """The shape of the result of a window op on x."""
    n = len(op.window)
    if x.ndim != n or any(len(v) != n for v in (op.strides, op.padding)):
        raise TypeError(f"{name}: window, strides and padding need one entry for each axis of {x}.")
    dims = []
    for i in range(n):
        length = dilated(x.shape[i], op.base_dilation[i]) + sum(op.padding[i])
        reach = dilated(op.window[i], op.window_dilation[i])
        dims.append((length - reach) // op.strides[i] + 1 if length >= reach else 0)
    return tuple(dims)


def _attributes(op: Any) -> dict[str, Any]:
    return {
        "window_dimensions": op.window,
        "window_strides": op.strides,
        "base_dilations": op.base_dilation,
        "window_dilations": op.window_dilation,
        "padding": np.array(op.padding, np.int64).reshape(-1, 2),
    }


class ReduceWindow(Op):
    """The elements of each sliding window of x, without padding, combined by `combine`, such as "add" or "max"."""

    selects = True
    combine: str
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    @property
    def linear_in(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]
        return ((0,),) if self.combine == "add" else ()

    def result_type(self, x: ArrayType) -> ArrayType:
        check_order(f"reduce_window with {self.combine}", self.combine, x)
        if self.combine in ("and", "or") and x.kind not in "biu":
            raise TypeError(f"reduce_window: {self.combine!r} combines booleans and integers; got {x}.")
        return x.with_shape(window_shape("reduce_window", x, self))

    def lower(self, build: Any, x: Any) -> Any:
        out = self.result_type(x.type)
        start = build.constant(identity(self.combine, x.type.dtype), ArrayType((), x.type.dtype))
        if self.combine in ("max", "min"):  # XLA compiles a window over a whole axis to a kernel that drops NaN
            pick, scalar = getattr(elementwise, f"{self.combine}imum"), ArrayType((), x.type.dtype)
            region = build.region((scalar, scalar), lambda b, u, v: b.apply(pick, u, v))
        else:
            region = reduction.monoid(build, f"stablehlo.{HLO[self.combine]}", x.type.dtype)
        return build.emit("stablehlo.reduce_window", (x, start), (out,), _attributes(self), [region])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        if self.combine == "add":
            return out, bind(self, t)
        if self.combine in ("and", "or"):
            return out, Zero(type_of(out).tangent())
        is_plain = all(d == 1 for d in (*self.base_dilation, *self.window_dilation))
        if self.combine in ("max", "min") and is_plain:
            return out, bind(SelectAndGather(self.combine, self.window, self.strides, self.padding), t, x)
        # collect the elements of each window on a new last axis, and use the rule of the reduction over it
        rows = self._unfold(x, identity(self.combine, type_of(x).dtype))
        op = {"mul": reduction.ReduceProd, "max": reduction.ReduceMax, "min": reduction.ReduceMin}[self.combine]
        return out, op((len(self.window),)).jvp([rows], [self._unfold(t, 0)])[1]

    def _unfold(self, x: Any, fill: Any) -> Any:
        padding = [(lo, hi, d - 1) for (lo, hi), d in zip(self.padding, self.base_dilation, strict=True)]
        full = shape.pad(x, np.asarray(fill, type_of(x).dtype), padding)
        out = window_shape("reduce_window", type_of(x), self)
        columns = []
        for offset in itertools.product(*[range(n) for n in self.window]):
            start = [o * d for o, d in zip(offset, self.window_dilation, strict=True)]
            limit = [a + (n - 1) * s + 1 for a, n, s in zip(start, out, self.strides, strict=True)]
            columns.append(shape.reshape(shape.slice(full, start, limit, self.strides), (*out, 1)))
        return shape.concatenate(columns, len(out))

    def transpose(self, cotangent: Any, x: Any) -> Any:
        padding = []
        for i, (low, _) in enumerate(self.padding):
            reach = dilated(self.window[i], self.window_dilation[i])
            length = dilated(x.type.shape[i], self.base_dilation[i])
            seen = dilated(type_of(cotangent).shape[i], self.strides[i])
            start = reach - 1 - low
            padding.append((start, reach + length - 1 - start - seen))
        op = ReduceWindow("add", self.window, self.base_dilation, tuple(padding), self.strides, self.window_dilation)
        return (bind(op, cotangent),)

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(
            ReduceWindow(
                self.combine, (1, *self.window), (1, *self.strides), ((0, 0), *self.padding),
                (1, *self.base_dilation), (1, *self.window_dilation),
            ),
            x,
        )  # fmt: skip


class _Selection(LinearOp):
    """Base class of ops that select the extremum of each window of x; they are linear in the other operand t."""

    selects = True
    combine: str
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def base_dilation(self) -> tuple[int, ...]:
        return (1,) * len(self.window)

    window_dilation = base_dilation

    def batch(self, batched: tuple[bool, ...], t: Any, x: Any) -> Any:
        size = type_of(t if batched[0] else x).shape[0]
        t, x = (v if b else shape.add_axis(v, size) for v, b in zip((t, x), batched, strict=True))
        return bind(type(self)(self.combine, (1, *self.window), (1, *self.strides), ((0, 0), *self.padding)), t, x)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        out, (t, x) = bind(self, *values), values
        if masks[1] is not None or (masks[0] is ALL and type(self) is SelectAndGather):
            return out, ALL

        def make() -> Any:
            flags = conversion.convert(mask_rules.as_array(masks[0], t), type_of(t).dtype)
            selected = bind(self, flags, x)
            return elementwise.ne(selected, np.zeros((), type_of(selected).dtype))

        return out, Mask(make, joint_reach(masks, SLOPES))


class SelectAndGather(_Selection):
    """For each window, the element of t at the index of the extremum of x."""

    def result_type(self, t: ArrayType, x: ArrayType) -> ArrayType:
        if t.shape != x.shape:
            raise TypeError(f"select_and_gather: operands must have the same shape; got {t} and {x}.")
        check_order("select_and_gather", self.combine, x)
        return t.with_shape(window_shape("select_and_gather", x, self))

    def lower(self, build: Any, t: Any, x: Any) -> Any:
        wins = elementwise.ge if self.combine == "max" else elementwise.le

        def choose(a: Any, s: Any, b: Any, u: Any) -> Any:
            first = elementwise.logical_or(wins(a, b), elementwise.ne(a, a))  # NaN is the extremum
            return elementwise.select(first, a, b), elementwise.select(first, s, u)

        value, tangent = ArrayType((), x.type.dtype), ArrayType((), t.type.dtype)
        region = build.region((value, tangent, value, tangent), lambda b, *args: b.apply(choose, *args))
        starts = (build.constant(identity(self.combine, x.type.dtype), value), build.constant(0, tangent))
        dims = window_shape("select_and_gather", x.type, self)
        types = (x.type.with_shape(dims), t.type.with_shape(dims))
        attributes = {
            "window_dimensions": self.window,
            "window_strides": self.strides,
            "padding": np.array(self.padding, np.int64).reshape(-1, 2),
        }
        return build.emit("stablehlo.reduce_window", (x, t, *starts), types, attributes, [region])[1]

    def transpose(self, cotangent: Any, t: Any, x: Any) -> Any:
        return bind(SelectAndScatter(self.combine, self.window, self.strides, self.padding), cotangent, x), None


class SelectAndScatter(_Selection):
    """Zeros in the shape of x, with each element of t added at the index of the extremum of its window."""

    def result_type(self, t: ArrayType, x: ArrayType) -> ArrayType:
        if t.shape != window_shape("select_and_scatter", x, self):
            raise TypeError(f"select_and_scatter: {t} does not have one element for each window of {x}.")
        check_order("select_and_scatter", self.combine, x)
        return t.with_shape(x.shape)

    def lower(self, build: Any, t: Any, x: Any) -> Any:
        scalar, out = ArrayType((), x.type.dtype), ArrayType((), t.type.dtype)
        wins = elementwise.ge if self.combine == "max" else elementwise.le
        or_nan = lambda u, v: elementwise.logical_or(wins(u, v), elementwise.ne(u, u))  # noqa: E731
        select = build.region((scalar, scalar), lambda b, u, v: b.apply(or_nan if x.type.kind == "f" else wins, u, v))
        attributes = {
            "window_dimensions": self.window,
            "window_strides": self.strides,
            "padding": np.array(self.padding, np.int64).reshape(-1, 2),
        }
        regions = [select, reduction.monoid(build, "stablehlo.add", t.type.dtype)]
        start = build.constant(0, out)
        return build.emit(
            "stablehlo.select_and_scatter", (x, t, start), (t.type.with_shape(x.type.shape),), attributes, regions
        )

    def transpose(self, cotangent: Any, t: Any, x: Any) -> Any:
        assert type(t) is Linear
        return bind(SelectAndGather(self.combine, self.window, self.strides, self.padding), cotangent, x), None


def reduce_window(
    x: Any,
    combine: str,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements of each sliding window of x, combined by `combine`, such as "add" or "max"."""
    ones = (1,) * len(window)
    op = ReduceWindow(
        combine, tuple(window), tuple(strides), tuple([(int(a), int(b)) for a, b in padding]),
        tuple(base_dilation or ones), tuple(window_dilation or ones),
    )  # fmt: skip
    return bind(op, x)
