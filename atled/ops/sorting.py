"""Ops for sorting: `Sort` and `TopK`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import Op
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import conversion, elementwise, indexing, shape

_MANY = 64  # minimum length of an axis for which packing is faster
_BYTE = {"i": dtypes.int8, "u": dtypes.uint8, "f": dtypes.float32}


class Sort(Op):
    """Several arrays in the order that sorts the first `keys` arrays along an axis. NaN comes last."""

    gives_tuple = True
    axis: int
    keys: int = 1
    is_stable: bool = True

    def result_type(self, *xs: ArrayType) -> tuple[ArrayType, ...]:
        if any(x.shape != xs[0].shape for x in xs):
            raise TypeError(f"sort: operands must have the same shape; got {', '.join(map(repr, xs))}.")
        if not 0 <= self.axis < xs[0].ndim:
            raise TypeError(f"sort: {xs[0]} has no axis {self.axis}.")
        if any([x.kind == "k" for x in xs[: self.keys]]):
            raise TypeError(f"sort: random keys have no order; got {', '.join(map(repr, xs))}.")
        if not 1 <= self.keys <= len(xs):
            raise TypeError(f"sort: {self.keys} keys for {len(xs)} operands.")
        return xs

    def lower(self, build: Any, *xs: Any) -> Any:
        if any([dtypes.bits(x.type.dtype) < 8 for x in xs]):  # the compiler's sort is wrong for these
            return build.apply(self._as_bytes, *xs)
        if build.on_one_cpu and self._packs([x.type for x in xs]):
            return build.apply(self._packed, *xs)
        types = [x.type for x in xs]
        pairs = [ArrayType((), t.dtype) for t in types for _ in range(2)]
        region = build.region(pairs, lambda b, *args: b.apply(self._before, *args))
        attributes = {"dimension": self.axis, "is_stable": self.is_stable}
        out = build.emit("stablehlo.sort", xs, types, attributes, [region])
        return out if type(out) is tuple else (out,)

    def _as_bytes(self, *xs: Any) -> tuple[Any, ...]:
        """Sort, with operands narrower than a byte converted to wider dtypes."""
        kinds = [type_of(x) for x in xs]
        wide = [
            conversion.convert(x, _BYTE[t.kind] if dtypes.bits(t.dtype) < 8 else t.dtype) for x, t in zip(xs, kinds)
        ]
        return tuple([conversion.convert(y, t.dtype) for y, t in zip(bind(self, *wide), kinds)])

    def _packs(self, types: Sequence[ArrayType]) -> bool:
        """Whether sorting packed keys and indices is faster: not for few elements or a single integer operand."""
        x = types[0]
        fits = self.keys == 1 and x.kind in "biuf" and dtypes.bits(x.dtype) <= 32 and x.shape[self.axis] < 2**31
        return fits and x.shape[self.axis] >= _MANY and (len(types) > 1 or x.kind == "f")

    def _packed(self, *xs: Any) -> tuple[Any, ...]:
        """Sort 64-bit integers that pack a key and its index, which is several times as fast as a custom comparator.

        The key is in the upper 32 bits and the index in the lower ones, so the sort is stable.
        """
        low = np.int64(2**32 - 1)
        place = shape.iota(np.int64, type_of(xs[0]).shape, self.axis)
        packed = elementwise.logical_or(elementwise.shift_left(_rank(xs[0]), np.int64(32)), place)
        (ordered,) = bind(Sort(self.axis, 1, False), packed)
        order = conversion.convert(elementwise.logical_and(ordered, low), np.int32)
        return tuple([indexing.take_along(x, order, self.axis) for x in xs])

    def _before(self, *pairs: Any) -> Any:
        """Whether the first of two rows comes before the second."""
        keys = []
        for a, b in zip(pairs[: 2 * self.keys : 2], pairs[1 : 2 * self.keys : 2], strict=True):
            if type_of(a).kind == "c":
                keys += [(conversion.real(a), conversion.real(b)), (conversion.imag(a), conversion.imag(b))]
            else:
                keys.append((a, b))
        out = None
        for a, b in reversed(keys):
            less = elementwise.lt(a, b)
            same = elementwise.eq(a, b)
            if type_of(a).kind == "f":
                a_nan, b_nan = elementwise.ne(a, a), elementwise.ne(b, b)
                less = elementwise.logical_or(less, elementwise.logical_and(b_nan, elementwise.logical_not(a_nan)))
                same = elementwise.logical_or(same, elementwise.logical_and(a_nan, b_nan))
            out = less if out is None else elementwise.logical_or(less, elementwise.logical_and(same, out))
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        dims = type_of(primals[0]).shape
        positions = shape.iota(np.int32, dims, self.axis)
        *out, order = bind(self, *primals, positions)
        moved = [
            Zero(type_of(x).tangent()) if type(t) is Zero else indexing.take_along(t, order, self.axis)
            for x, t in zip(primals, tangents, strict=True)
        ]
        return tuple(out), tuple(moved)

    def batch(self, batched: tuple[bool, ...], *xs: Any) -> Any:
        size = next(type_of(x).shape[0] for x, b in zip(xs, batched, strict=True) if b)
        full = [x if b else shape.add_axis(x, size) for x, b in zip(xs, batched, strict=True)]
        return bind(Sort(self.axis + 1, self.keys, self.is_stable), *full)


def _rank(x: Any) -> Any:
    """int64 numbers in the range of int32, ordered like x; zeros of both signs are equal, and NaNs come last."""
    t = type_of(x)
    if t.kind != "f":
        wide = conversion.convert(x, np.int64)
        return elementwise.sub(wide, np.int64(2**31)) if t.kind == "u" else wide
    x = conversion.convert(x, np.float32)
    zero, most = np.float32(0), np.int32(2**31 - 1)
    bits = conversion.bitcast_convert(elementwise.select(elementwise.eq(x, zero), zero, x), np.int32)
    bits = elementwise.select(elementwise.ne(x, x), most, bits)
    return conversion.convert(in_order(bits), np.int64)


def in_order(bits: Any) -> Any:
    """Map the bits of floats to signed integers in the same order, or back; NaNs come first or last, by their sign."""
    width, most = np.iinfo(type_of(bits).dtype).bits, np.iinfo(type_of(bits).dtype).max
    sign = elementwise.shift_right_arithmetic(bits, np.asarray(width - 1, type_of(bits).dtype))
    return elementwise.logical_xor(bits, elementwise.logical_and(sign, np.asarray(most, type_of(bits).dtype)))


class TopK(Op):
    """The k largest elements along the last axis in descending order, and their indices."""

    gives_tuple = True
    k: int

    def result_type(self, x: ArrayType) -> tuple[ArrayType, ArrayType]:
        if x.kind not in "biuf":
            raise TypeError(f"top_k: the elements of {x} have no order.")
        if x.ndim == 0 or not 0 <= self.k <= x.shape[-1]:
            raise TypeError(f"top_k: k must be from 0 to the length of the last axis of {x}; got {self.k}.")
        dims = (*x.shape[:-1], self.k)
        return x.with_shape(dims), ArrayType(dims, np.int32)

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.kind == "f":  # a NaN with its sign bit set would be the smallest
            nan = np.asarray(np.nan, x.type.dtype)
            x = build.apply(lambda v: elementwise.select(elementwise.ne(v, v), nan, v), x)
        if x.type.kind != "b" and dtypes.bits(x.type.dtype) >= 8:
            return build.emit("chlo.top_k", (x,), self.result_type(x.type), {"k": self.k})
        byte = np.dtype("int8" if x.type.kind == "i" else "uint8")
        broad = build.apply(lambda v: conversion.convert(v, byte), x)
        values, positions = self.lower(build, broad)
        return build.apply(lambda v: conversion.convert(v, x.type.dtype), values), positions

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        values, positions = bind(self, x)
        moved = indexing.take_along(t, positions, type_of(x).ndim - 1)
        return (values, positions), (moved, Zero(type_of(positions).tangent()))

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(self, x)


def sort(xs: Sequence[Any], axis: int, keys: int = 1, is_stable: bool = True) -> tuple[Any, ...]:
    """Arrays in the order that sorts the first `keys` arrays along an axis."""
    op, types = Sort(axis, keys, is_stable), [type_of(x) for x in xs]
    if not any([t.kind == "k" for t in types[keys:]]):
        return bind(op, *xs)
    op.result_type(*types)  # checks the operands
    # random keys, which the compiler sees as pairs of words, are gathered by the sorted indices
    others = [x for x, t in zip(xs, types, strict=True) if t.kind != "k"]
    *rest, order = bind(op, *others, shape.iota(np.int32, types[0].shape, axis))
    ordered = iter(rest)
    return tuple(
        [
            indexing.take_along(x, order, axis) if t.kind == "k" else next(ordered)
            for x, t in zip(xs, types, strict=True)
        ]
    )


def top_k(x: Any, k: int) -> tuple[Any, Any]:
    """The k largest elements along the last axis, and their indices."""
    return bind(TopK(k), x)
