"""Collectives over named axes: of `vmap(axis_name=...)`, and of device meshes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.axes import check_axis
from atled.core.op import Op
from atled.core.trace import bind, named_axis
from atled.core.types import ArrayType
from atled.ops import conversion, elementwise, reduction, shape, sorting

_UNIT = "#unit"


class Collective(Op):
    """Base class of ops that combine the values of an array along named axes."""

    is_collective = True
    axes: tuple[Any, ...]

    def varies(self, of: Any, given: list[Any]) -> list[Any]:
        union, axes = frozenset().union(*given), frozenset(self.axes)
        return [union - axes if self.is_same_for_all else union | axes]

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        return bind(self, *operands)

    def communicate(self, build: Any, op: str, x: Any, out: ArrayType, more: dict[str, Any], regions: Any = ()) -> Any:
        """Emit a collective operation between the devices of a mesh."""
        attributes = {"replica_groups": build.groups(self.axes), "channel_handle": build.channel(), **more}
        return build.emit(op, (x,), (out,), attributes, regions)

    def _without(self, name: Any) -> tuple[Any, ...]:
        return tuple([a for a in self.axes if a != name])


class AllReduce(Collective):
    """Base class of reductions over named axes: the result is the same at every index."""

    is_same_for_all = True

    reduce: ClassVar[Any]
    hlo: ClassVar[str]
    takes: ClassVar[str]

    def result_type(self, x: ArrayType) -> ArrayType:
        if x.kind not in self.takes:
            raise TypeError(f"{self.name}: {x} cannot be reduced.")
        return x

    def lower(self, build: Any, x: Any) -> Any:
        if build.groups(self.axes).shape[1] == 1:
            return x
        region = reduction.monoid(build, type(self).hlo, x.type.dtype)
        return self.communicate(build, "stablehlo.all_reduce", x, x.type, {"use_global_device_ids": _UNIT}, [region])

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], x: Any) -> Any:
        x = x if batched[0] else shape.add_axis(x, size)
        out = type(self).reduce(x, (0,))
        rest = self._without(name)
        return bind(type(self)(rest), out) if rest else out


class Psum(AllReduce):
    """The sum over named axes."""

    linear_in = ((0,),)
    hlo = "stablehlo.add"
    takes = "iufc"
    reduce = staticmethod(reduction.reduce_sum)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(self, cotangent),)


class PsumInvariant(Psum):
    """The sum over mesh axes as a replicated value, whose cotangent is replicated, too."""

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(Pvary(self.axes), cotangent),)


class Pvary(Collective):
    """A replicated value as a device-varying one. No communication; the transpose sums cotangents over devices."""

    linear_in = ((0,),)

    def result_type(self, x: ArrayType) -> ArrayType:
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return x

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], x: Any) -> Any:
        x = x if batched[0] else shape.add_axis(x, size)
        rest = self._without(name)
        return bind(type(self)(rest), x) if rest else x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(PsumInvariant(self.axes), cotangent),)


class AssumeReplicated(Pvary):
    """Equal device-varying values as one replicated value: each device gets an equal share of the cotangent."""

    is_same_for_all = True
    size: int

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], x: Any) -> Any:
        raise NotImplementedError("AssumeReplicated is for mesh axes, not for vmap.")

    def transpose(self, cotangent: Any, x: Any) -> Any:
        part = elementwise.div(cotangent, np.asarray(self.size, type_of(cotangent).dtype))
        return (bind(Pvary(self.axes), part),)


class Pextremum(AllReduce):
    """The largest or smallest value over named axes; equal extrema share the derivative."""

    takes = "biuf"
    loses: ClassVar[Callable[[Any, Any], Any]]  # whether a value is not the extremum, given both
    nan_rank: ClassVar[str]  # the integer limit that stands for NaN

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.kind != "f" or build.platform == "tpu":
            return super().lower(build, x)
        found = super().lower(build, build.apply(self._ranked, x))  # the engine's all-reduce may drop NaN
        return build.apply(lambda v: self._unranked(v, x.type.dtype), found)

    def _ranked(self, x: Any) -> Any:
        """Integers that are ordered like x, with NaN as the extremum."""
        x = x if dtypes.bits(type_of(x).dtype) >= 16 else conversion.convert(x, np.float32)
        bits = conversion.bitcast_convert(x, f"int{dtypes.bits(type_of(x).dtype)}")
        nan = np.asarray(getattr(np.iinfo(type_of(bits).dtype), self.nan_rank), type_of(bits).dtype)
        return elementwise.select(elementwise.ne(x, x), nan, sorting.in_order(bits))

    def _unranked(self, ranks: Any, dtype: Any) -> Any:
        wide = dtype if dtypes.bits(dtype) >= 16 else np.float32
        return conversion.convert(conversion.bitcast_convert(sorting.in_order(ranks), wide), dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        one, zero = (np.asarray(v, type_of(x).dtype) for v in (1, 0))
        is_discarded = type(self).loses(x, out)  # all False if the extremum is NaN
        total = bind(Psum(self.axes), bind(elementwise.GateTangent(), is_discarded, zero, t))
        count = bind(Psum(self.axes), elementwise.select(is_discarded, zero, one))
        return out, elementwise.div(total, elementwise.select(elementwise.eq(out, out), count, out))


class Pmax(Pextremum):
    """The largest value over named axes."""

    hlo = "stablehlo.maximum"
    reduce = staticmethod(reduction.reduce_max)
    loses = staticmethod(elementwise.lt)
    nan_rank = "max"


class Pmin(Pextremum):
    """The smallest value over named axes."""

    hlo = "stablehlo.minimum"
    reduce = staticmethod(reduction.reduce_min)
    loses = staticmethod(elementwise.gt)
    nan_rank = "min"


class AxisIndex(Collective):
    """The index along a named axis."""

    def result_type(self) -> ArrayType:
        return ArrayType((), np.int32)

    def lower(self, build: Any) -> Any:
        (axis,) = self.axes
        if build.groups(self.axes).shape[1] == 1:
            return build.constant(0, ArrayType((), np.int32))
        return build.place(axis)

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...]) -> Any:
        return shape.iota(np.int32, (size,), 0)


class AllGather(Collective):
    """The values along a named axis, stacked on a new axis or, if `is_tiled`, concatenated along an existing one."""

    is_same_for_all = True
    linear_in = ((0,),)
    axis: int
    size: int
    is_tiled: bool

    def result_type(self, x: ArrayType) -> ArrayType:
        dims = list(x.shape)
        if self.is_tiled:
            dims[self.axis] *= self.size
        else:
            dims.insert(self.axis, self.size)
        return x.with_shape(tuple(dims))

    def lower(self, build: Any, x: Any) -> Any:
        dims = list(x.type.shape)
        if not self.is_tiled:
            dims.insert(self.axis, 1)
            x = build.apply(lambda v: shape.reshape(v, dims), x)
        if self.size == 1:
            return x
        dims[self.axis] *= self.size
        more = {"all_gather_dim": self.axis, "use_global_device_ids": _UNIT}
        return self.communicate(build, "stablehlo.all_gather", x, x.type.with_shape(tuple(dims)), more)

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(AllGather(self.axes, self.axis + 1, self.size, self.is_tiled), x)

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], x: Any) -> Any:
        x = x if batched[0] else shape.add_axis(x, size)
        out = shape.move_axis(x, 0, self.axis)
        if self.is_tiled:
            dims = list(type_of(x).shape[1:])
            dims[self.axis] *= size
            out = shape.reshape(out, dims)
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(PsumScatter(self.axes, self.axis, self.size, self.is_tiled), cotangent),)


class PsumScatter(Collective):
    """The sum over a named axis, scattered: each index of the named axis keeps one slice of the sum along `axis`."""

    linear_in = ((0,),)
    axis: int
    size: int
    is_tiled: bool

    def result_type(self, x: ArrayType) -> ArrayType:
        if x.kind not in Psum.takes:
            raise TypeError(f"psum_scatter: {x} cannot be reduced.")
        dims = list(x.shape)
        if dims[self.axis] % self.size or (not self.is_tiled and dims[self.axis] != self.size):
            raise TypeError(f"psum_scatter: axis {self.axis} of {x} cannot be split into {self.size} equal parts.")
        if self.is_tiled:
            dims[self.axis] //= self.size
        else:
            del dims[self.axis]
        return x.with_shape(tuple(dims))

    def lower(self, build: Any, x: Any) -> Any:
        dims = list(x.type.shape)
        dims[self.axis] //= self.size
        if self.size > 1:
            more = {"scatter_dimension": self.axis, "use_global_device_ids": _UNIT}
            region = reduction.monoid(build, "stablehlo.add", x.type.dtype)
            out = x.type.with_shape(tuple(dims))
            x = self.communicate(build, "stablehlo.reduce_scatter", x, out, more, [region])
        if self.is_tiled:
            return x
        del dims[self.axis]
        return build.apply(lambda v: shape.reshape(v, dims), x)

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(PsumScatter(self.axes, self.axis + 1, self.size, self.is_tiled), x)

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], x: Any) -> Any:
        x = x if batched[0] else shape.add_axis(x, size)
        total = reduction.reduce_sum(x, (0,))
        if self.is_tiled:
            dims = list(type_of(total).shape)
            total = shape.reshape(total, [*dims[: self.axis], size, dims[self.axis] // size, *dims[self.axis + 1 :]])
        return shape.move_axis(total, self.axis, 0)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(AllGather(self.axes, self.axis, self.size, self.is_tiled), cotangent),)


class Ppermute(Collective):
    """Values sent along a named axis, by (source, target) `pairs` of indices; an index that is no target gets zeros."""

    linear_in = ((0,),)
    pairs: tuple[tuple[int, int], ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        return x

    def lower(self, build: Any, x: Any) -> Any:
        if build.groups(self.axes).shape[1] == 1:
            return x if self.pairs else build.apply(lambda v: shape.zeros(type_of(v)), x)
        pairs = [(group[s], group[t]) for group in build.groups(self.axes) for s, t in self.pairs]
        attributes = {
            "source_target_pairs": np.array(pairs, np.int64).reshape(-1, 2), "channel_handle": build.channel(),
        }  # fmt: skip
        return build.emit("stablehlo.collective_permute", (x,), (x.type,), attributes)

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], x: Any) -> Any:
        x = x if batched[0] else shape.add_axis(x, size)
        source = {target: s for s, target in self.pairs}
        rows = [shape.slice_in_axis(x, source.get(i, 0), source.get(i, 0) + 1, 0) for i in range(size)]
        if len(source) < size:
            zero = shape.zeros(ArrayType((1, *type_of(x).shape[1:]), type_of(x).dtype))
            rows = [row if i in source else zero for i, row in enumerate(rows)]
        return shape.concatenate(rows, 0)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(Ppermute(self.axes, tuple([(t, s) for s, t in self.pairs])), cotangent),)


class AllToAll(Collective):
    """Slices along `split_axis`, one sent to each index of a named axis, and concatenated along axis `join`."""

    linear_in = ((0,),)
    split_axis: int
    join: int
    size: int

    def result_type(self, x: ArrayType) -> ArrayType:
        dims = list(x.shape)
        if dims[self.split_axis] % self.size:
            raise TypeError(f"all_to_all: axis {self.split_axis} of {x} cannot be split into {self.size} equal parts.")
        dims[self.split_axis] //= self.size
        dims[self.join] *= self.size
        return x.with_shape(tuple(dims))

    def lower(self, build: Any, x: Any) -> Any:
        if self.size == 1:
            return x
        more = {"split_dimension": self.split_axis, "concat_dimension": self.join, "split_count": self.size}
        return self.communicate(build, "stablehlo.all_to_all", x, self.result_type(x.type), more)

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(AllToAll(self.axes, self.split_axis + 1, self.join + 1, self.size), x)

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], x: Any) -> Any:
        x = x if batched[0] else shape.add_axis(x, size)
        dims = list(type_of(x).shape[1:])
        s, j = self.split_axis, self.join
        parts = shape.reshape(x, [size, *dims[:s], size, dims[s] // size, *dims[s + 1 :]])  # source, ..., target, ...
        parts = shape.move_axis(parts, s + 1, 0)  # target, source, ...
        dims[s] //= size
        parts = shape.move_axis(parts, 1, 1 + j)  # the source index is the leading part of axis `join`
        dims[j] *= size
        return shape.reshape(parts, (size, *dims))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(AllToAll(self.axes, self.join, self.split_axis, self.size), cotangent),)


# -- functions --------------------------------------------------------------------------------------------------------


def names(axes: Any) -> tuple[Any, ...]:
    """One or several axis names as a tuple; raises if a name is not in scope."""
    axis_names = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    for name in axis_names:
        named_axis(name)
    return axis_names


def axis_size(axes: Any) -> int:
    """The size of a named axis, or the product of the sizes of several."""
    return prod([named_axis(n).size for n in names(axes)])


def psum(x: Any, axes: Any) -> Any:
    """The sum of an array over named axes; booleans are counted, a Python number is multiplied by the axes' size."""
    axis_names = names(axes)
    if isinstance(x, (int, float, complex)):
        return x * axis_size(axis_names)
    return bind(Psum(axis_names), _counted(x))


def _counted(x: Any) -> Any:
    return conversion.convert(x, np.int32) if type_of(x).kind == "b" else x


def pvary(x: Any, axes: Any) -> Any:
    """x itself, after checking the axis names: types do not distinguish replicated from varying values."""
    names(axes)
    return x


def pbroadcast(x: Any, axes: Any, source: int) -> Any:
    """Broadcast the value at index `source` of a named axis to all indices."""
    axis_names, t = names(axes), type_of(x)
    if any([named_axis(n).interpreter is not None for n in axis_names]):
        return shape.reshape(shape.slice_in_axis(all_gather(x, axes), source, source + 1, 0), t.shape)
    if t.kind == "b":
        return elementwise.ne(pbroadcast(conversion.convert(x, np.int8), axes, source), 0)
    is_source = elementwise.eq(axis_index(axes), np.int32(source))
    return psum(elementwise.select(is_source, x, np.zeros((), t.dtype)), axes)


def pmax(x: Any, axes: Any) -> Any:
    """The largest value over named axes."""
    return bind(Pmax(names(axes)), x)


def pmin(x: Any, axes: Any) -> Any:
    """The smallest value over named axes."""
    return bind(Pmin(names(axes)), x)


def axis_index(axes: Any) -> Any:
    """The index along a named axis, or along several together in row-major order."""
    out = None
    for name in names(axes):
        index = bind(AxisIndex((name,)))
        out = index if out is None else elementwise.add(elementwise.mul(out, named_axis(name).size), index)
    return out


def _single(axes: Any) -> Any:
    axis_names = names(axes)
    if len(axis_names) != 1 and any([named_axis(n).interpreter is not None for n in axis_names]):
        raise NotImplementedError(f"collective: this op runs over a single axis of a vmap; got {axis_names}.")
    return axis_names


def all_gather(x: Any, axes: Any, axis: int = 0, is_tiled: bool = False) -> Any:
    """The values along a named axis, stacked on a new axis or, if `is_tiled`, concatenated."""
    axis = check_axis("all_gather", axis, type_of(x).ndim + (not is_tiled))
    return bind(AllGather(_single(axes), axis, axis_size(axes), is_tiled), x)


def psum_scatter(x: Any, axes: Any, axis: int = 0, is_tiled: bool = False) -> Any:
    """The sum over a named axis, scattered: each index of the named axis keeps one slice along `axis`."""
    axis = check_axis("psum_scatter", axis, type_of(x).ndim)
    return bind(PsumScatter(_single(axes), axis, axis_size(axes), is_tiled), _counted(x))


def ppermute(x: Any, axes: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    """Values sent along a named axis, by (source, target) pairs of indices."""
    permutation = tuple([(operator.index(s), operator.index(t)) for s, t in pairs])
    size = axis_size(axes)
    for place in [p for pair in permutation for p in pair]:
        if not 0 <= place < size:
            raise ValueError(
                f"ppermute: index {place} is out of bounds for the axis {axes!r} of size {size}; got {list(pairs)}."
                f"\n  try: indices from 0 to {size - 1}, such as (i + 1) % {size}."
            )
    if len({s for s, _ in permutation}) != len(permutation) or len({t for _, t in permutation}) != len(permutation):
        raise ValueError(f"ppermute: each index may send and receive at most once; got {list(pairs)}.")
    return bind(Ppermute(_single(axes), permutation), x)


def all_to_all(x: Any, axes: Any, split_axis: int, join: int) -> Any:
    """Slices along `split_axis`, one sent to each index of a named axis, and concatenated along `join`."""
    split_axis, join = [check_axis("all_to_all", a, type_of(x).ndim) for a in (split_axis, join)]
    return bind(AllToAll(_single(axes), split_axis, join, axis_size(axes)), x)
