"""Reads and writes at indices that are run-time values: dynamic slices, gather and scatter.

`mode` selects what happens to windows out of bounds: "clip" moves them inside, "fill" reads a fill value, "drop" skips
    the write, and "promise" assumes that no window is out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import Op
from atled.core.tangent_mask import ALL, PRODUCTS, SUMS, Mask
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import conversion, elementwise, mask_rules, reduction, shape
from atled.ops.elementwise_family import check_order


class GatherAxes(NamedTuple):
    """Dimension numbers of a gather: how the axes of operand, indices and result correspond."""

    offset: tuple[int, ...]  # axes of the result that are axes of a window
    collapsed: tuple[int, ...]  # window axes of length one that the result does not have
    start_map: tuple[int, ...]  # for each component of an index vector, the operand axis that it indexes
    operand_batch: tuple[int, ...] = ()
    indices_batch: tuple[int, ...] = ()


class ScatterAxes(NamedTuple):
    """Dimension numbers of a scatter: how the axes of operand, indices and updates correspond."""

    window: tuple[int, ...]  # axes of the updates that are axes of a window
    inserted: tuple[int, ...]  # window axes of length one that the updates do not have
    start_map: tuple[int, ...]
    operand_batch: tuple[int, ...] = ()
    indices_batch: tuple[int, ...] = ()


def _up(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple([a + 1 for a in axes])


class Gather(mask_rules.Moving):
    """Windows of x at `indices`, whose last axis holds index vectors."""

    selects = True
    axes: GatherAxes
    sizes: tuple[int, ...]
    mode: str = "clip"
    fill: Any = 0
    is_unique: bool = False
    is_sorted: bool = False

    @property
    def linear_in(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]
        return ((0,),) if self.mode != "fill" or self.fill == 0 else ()

    def result_type(self, x: ArrayType, indices: ArrayType) -> ArrayType:
        a = self.axes
        if indices.kind not in "iu" or indices.ndim == 0 or indices.shape[-1] != len(a.start_map):
            raise TypeError(
                f"gather: indices must be integers with vectors of {len(a.start_map)} on the last axis; got {indices}."
            )
        is_read = 0 not in indices.shape[:-1]  # an empty window fits into an empty array
        if len(self.sizes) != x.ndim or (is_read and any(s > n for s, n in zip(self.sizes, x.shape, strict=True))):
            raise TypeError(f"gather: windows of {self.sizes} do not fit into {x}.")
        window = [s for i, s in enumerate(self.sizes) if i not in a.collapsed and i not in a.operand_batch]
        rest, inner = iter(indices.shape[:-1]), iter(window)
        ndim = len(window) + indices.ndim - 1
        return x.with_shape(tuple([next(inner) if i in a.offset else next(rest) for i in range(ndim)]))

    def lower(self, build: Any, x: Any, indices: Any) -> Any:
        if 0 in x.type.shape and 0 in indices.type.shape[:-1]:
            out = self.result_type(x.type, indices.type)
            return build.apply(lambda *_: shape.zeros(out), x, indices)
        if self.mode == "fill":
            return build.apply(self._filled, x, indices)
        a = self.axes
        numbers = (
            f"#stablehlo.gather<offset_dims = {list(a.offset)}, collapsed_slice_dims = {list(a.collapsed)}, "
            f"operand_batching_dims = {list(a.operand_batch)}, start_indices_batching_dims = {list(a.indices_batch)}, "
            f"start_index_map = {list(a.start_map)}, index_vector_dim = {indices.type.ndim - 1}>"
        )
        attributes = {"dimension_numbers": numbers, "slice_sizes": self.sizes, "indices_are_sorted": self.is_sorted}
        return build.emit("stablehlo.gather", (x, indices), (self.result_type(x.type, indices.type),), attributes)

    def _filled(self, x: Any, indices: Any) -> Any:
        gathered = bind(Gather(self.axes, self.sizes, "clip", 0, self.is_unique, self.is_sorted), x, indices)
        is_inside = in_bounds(indices, x.type.shape, self.axes.start_map, self.sizes)
        out = gathered.type.shape
        batch_axes = [i for i in range(len(out)) if i not in self.axes.offset]
        mask = shape.broadcast(is_inside, out, batch_axes)
        return elementwise.select(mask, gathered, np.asarray(self.fill, x.type.dtype))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, indices), (t, _) = primals, tangents
        out = bind(self, x, indices)
        if type(t) is Zero:
            return out, Zero(type_of(out).tangent())
        linear = Gather(self.axes, self.sizes, self.mode, 0, self.is_unique, self.is_sorted)
        return out, bind(linear, t, indices)

    def transpose(self, cotangent: Any, x: Any, indices: Any) -> Any:
        a = self.axes
        axes = ScatterAxes(a.offset, a.collapsed, a.start_map, a.operand_batch, a.indices_batch)
        mode = {"fill": "drop"}.get(self.mode, self.mode)
        zeros = shape.zeros(ArrayType(x.type.shape, type_of(cotangent).dtype))
        if 0 in x.type.shape:
            return zeros, None
        return bind(Scatter(axes, "add", mode, self.is_unique, self.is_sorted), zeros, indices, cotangent), None

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        if masks[0] is not ALL or self.mode != "fill":
            return mask_rules.moved(self, values, masks)
        # fill values count as discarded
        return bind(self, *values), Mask(lambda: bind(self, mask_rules.as_array(ALL, values[0]), values[1]), PRODUCTS)

    def batch(self, batched: tuple[bool, ...], x: Any, indices: Any) -> Any:
        a = self.axes
        offset, collapsed, start_map = _up(a.offset), _up(a.collapsed), _up(a.start_map)
        if not batched[1]:
            axes = GatherAxes((0, *offset), collapsed, start_map, _up(a.operand_batch), a.indices_batch)
            sizes = (type_of(x).shape[0], *self.sizes)
        elif not batched[0]:
            axes = GatherAxes(offset, a.collapsed, a.start_map, a.operand_batch, _up(a.indices_batch))
            sizes = self.sizes
        else:
            axes = GatherAxes(offset, collapsed, start_map, (0, *_up(a.operand_batch)), (0, *_up(a.indices_batch)))
            sizes = (min(1, type_of(x).shape[0]), *self.sizes)
        is_sorted = self.is_sorted and not batched[1]
        return bind(Gather(axes, sizes, self.mode, self.fill, self.is_unique and not batched[1], is_sorted), x, indices)


def in_bounds(indices: Any, dims: Sequence[int], start_map: Sequence[int], sizes: Sequence[int]) -> Any:
    """Whether a window at each index vector lies inside the operand."""
    t = type_of(indices)
    last = t.ndim - 1
    limits = np.array([dims[a] - sizes[a] for a in start_map], np.int64)
    highest = dtypes.iinfo(t.dtype).max
    limit = shape.broadcast(shape.constant(np.minimum(limits, highest).astype(t.dtype)), t.shape, (last,))
    is_inside = elementwise.le(indices, limit)
    if t.kind == "i":
        is_inside = elementwise.logical_and(is_inside, elementwise.ge(indices, 0))
    return reduction.reduce_and(is_inside, (last,))


def clip_indices(indices: Any, dims: Sequence[int], start_map: Sequence[int], sizes: Sequence[int]) -> Any:
    """Index vectors clamped so that each window lies inside the operand."""
    t = type_of(indices)
    limits = np.array([max(dims[a] - sizes[a], 0) for a in start_map], np.int64)
    limit = np.minimum(limits, dtypes.iinfo(t.dtype).max).astype(t.dtype)
    low = np.zeros((), t.dtype)
    return elementwise.clamp(low, indices, shape.broadcast(shape.constant(limit), t.shape, (t.ndim - 1,)))


class Scatter(Op):
    """x with `updates` combined into it at `indices`, by `combine`: "set", "add", "mul", "min" or "max"."""

    selects = True
    emitted_from = 1
    axes: ScatterAxes
    combine: str
    mode: str = "drop"
    is_unique: bool = False
    is_sorted: bool = False

    @property
    def linear_in(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]
        return {"set": ((0, 2),), "add": ((0, 2),), "mul": ((0,),)}.get(self.combine, ())

    def result_type(self, x: ArrayType, indices: ArrayType, updates: ArrayType) -> ArrayType:
        if indices.kind not in "iu" or indices.ndim == 0 or indices.shape[-1] != len(self.axes.start_map):
            count = len(self.axes.start_map)
            raise TypeError(
                f"scatter: indices must be integers with vectors of {count} on the last axis; got {indices}."
            )
        if updates.dtype is not x.dtype:
            raise TypeError(f"scatter: operand and updates must have the same dtype; got {x} and {updates}.")
        check_order(f"scatter with {self.combine}", self.combine, x)
        if updates.ndim != len(self.axes.window) + indices.ndim - 1:
            raise TypeError(
                f"scatter: updates {updates} do not match indices {indices} and windows {self.axes.window}."
            )
        return x

    def sizes(self, x: ArrayType, updates: ArrayType) -> tuple[int, ...]:
        """The lengths of a window, one for each axis of the operand."""
        window = iter([updates.shape[i] for i in self.axes.window])
        missing = (*self.axes.inserted, *self.axes.operand_batch)
        return tuple([1 if i in missing else next(window) for i in range(x.ndim)])

    def lower(self, build: Any, x: Any, indices: Any, updates: Any) -> Any:
        if self.mode == "clip":
            sizes = self.sizes(x.type, updates.type)
            indices = build.apply(lambda i: clip_indices(i, x.type.shape, self.axes.start_map, sizes), indices)
        if x.type.size == 0 or updates.type.size == 0:
            return x
        a = self.axes
        numbers = (
            f"#stablehlo.scatter<update_window_dims = {list(a.window)}, inserted_window_dims = {list(a.inserted)}, "
            f"input_batching_dims = {list(a.operand_batch)}, scatter_indices_batching_dims = {list(a.indices_batch)}, "
            f"scatter_dims_to_operand_dims = {list(a.start_map)}, index_vector_dim = {indices.type.ndim - 1}>"
        )
        attributes = {
            "scatter_dimension_numbers": numbers,
            "indices_are_sorted": self.is_sorted,
            "unique_indices": self.is_unique,
        }
        scalar = ArrayType((), x.type.dtype)
        hlo = {"add": "add", "mul": "multiply", "min": "minimum", "max": "maximum"}.get(self.combine)

        def body(b: Any, old: Any, new: Any) -> Any:
            return new if hlo is None else b.emit(f"stablehlo.{hlo}", (old, new), (scalar,))

        if x.type.kind == "b" and self.combine == "add":
            hlo = "or"
        region = build.region((scalar, scalar), body)
        return build.emit("stablehlo.scatter", (x, indices, updates), (x.type,), attributes, [region])

    def _as(self, combine: str, is_unique: bool | None = None) -> Scatter:
        unique = self.is_unique if is_unique is None else is_unique
        return Scatter(self.axes, combine, self.mode, unique, self.is_sorted)

    def _gather(self, x: ArrayType, updates: ArrayType, fill: Any = 0) -> Gather:
        """The gather that reads the windows that this scatter writes."""
        a = self.axes
        axes = GatherAxes(a.window, a.inserted, a.start_map, a.operand_batch, a.indices_batch)
        mode = {"drop": "fill"}.get(self.mode, self.mode)
        return Gather(axes, self.sizes(x, updates), mode, fill, self.is_unique, self.is_sorted)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        x, indices, updates = primals
        out = bind(self, x, indices, updates)
        zero = lambda t: shape.zeros(t.type) if type(t) is Zero else t  # noqa: E731
        s, t = tangents[0], tangents[2]
        if type(s) is Zero and type(t) is Zero:
            return out, Zero(type_of(out).tangent())
        if self.combine in ("set", "add"):
            return out, bind(self, zero(s), indices, zero(t))
        read = self._gather(type_of(x), type_of(updates))
        if self.combine == "mul":
            total = None if type(s) is Zero else bind(self, s, indices, updates)
            if type(t) is not Zero:
                spread = bind(
                    self._as("add"),
                    shape.zeros(type_of(out).tangent()),
                    indices,
                    elementwise.mul(t, self._others(*primals)),
                )
                total = spread if total is None else elementwise.add(total, spread)
            return out, total
        # min and max: all values equal to the result share the tangent
        one, nought = (np.asarray(v, type_of(x).dtype) for v in (1, 0))
        loses, add = (elementwise.lt if self.combine == "max" else elementwise.gt), self._as("add")
        old_lost, new_lost = loses(x, out), loses(updates, bind(read, out, indices))  # all False if the result is NaN
        keep = lambda lost, v: bind(elementwise.GateTangent(), lost, nought, v)  # noqa: E731
        count = bind(add, keep(old_lost, one), indices, keep(new_lost, one))
        total = bind(add, keep(old_lost, zero(s)), indices, keep(new_lost, zero(t)))
        return out, elementwise.div(total, elementwise.select(elementwise.eq(out, out), count, out))

    def _others(self, x: Any, indices: Any, updates: Any) -> Any:
        """For each update of a product, the product of all other factors at its index, also if some are zero."""
        read = self._gather(type_of(x), type_of(updates))
        one, nought = (np.asarray(v, type_of(x).dtype) for v in (1, 0))
        is_zero = elementwise.eq(updates, nought)
        nonzero = elementwise.select(is_zero, one, updates)
        product = bind(read, bind(self, x, indices, nonzero), indices)
        flags = elementwise.select(is_zero, one, nought)
        zeros = bind(read, bind(self._as("add"), shape.zeros(type_of(x)), indices, flags), indices)
        alone = elementwise.eq(zeros, flags)  # no other factor is zero
        return elementwise.select(alone, elementwise.div(product, nonzero), nought)

    def transpose(self, cotangent: Any, x: Any, indices: Any, updates: Any) -> Any:
        if self.combine == "mul":
            return bind(self, cotangent, indices, updates), None, None
        to_updates = None
        types = (
            x.type if type(x) is Linear else type_of(x),
            updates.type if type(updates) is Linear else type_of(updates),
        )
        if type(updates) is Linear:
            to_updates = bind(self._gather(*types), cotangent, indices)
        if self.combine == "add":
            return (cotangent if type(x) is Linear else None), None, to_updates
        if to_updates is not None and not self.is_unique:
            won = self._winners(types[0], indices, types[1])
            to_updates = elementwise.select(won, to_updates, np.zeros((), types[1].dtype))
        to_x = None
        if type(x) is Linear:
            to_x = bind(self, cotangent, indices, shape.zeros(ArrayType(types[1].shape, type_of(cotangent).dtype)))
        return to_x, None, to_updates

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        if self.combine == "set" or (self.combine == "add" and masks[0] is not ALL):
            return mask_rules.moved(self, values, masks, PRODUCTS if masks[2] is ALL else SUMS)
        return bind(self, *values), ALL

    def _winners(self, x: ArrayType, indices: Any, updates: ArrayType) -> Any:
        """A mask of the updates that are not overwritten by later updates."""
        numbers = shape.reshape(shape.iota(np.int32, (updates.size,), 0), updates.shape)
        board = shape.full(ArrayType(x.shape, np.int32), -1)
        written = bind(self, board, indices, numbers)
        return elementwise.eq(bind(self._gather(x, updates, -1), written, indices), numbers)

    def batch(self, batched: tuple[bool, ...], x: Any, indices: Any, updates: Any) -> Any:
        size = next(type_of(v).shape[0] for v, b in zip((x, indices, updates), batched, strict=True) if b)
        a = self.axes
        x = x if batched[0] else shape.add_axis(x, size)
        updates = updates if batched[2] else shape.add_axis(updates, size)
        window, inserted, start_map = _up(a.window), _up(a.inserted), _up(a.start_map)
        if not batched[1]:
            axes = ScatterAxes((0, *window), inserted, start_map, _up(a.operand_batch), a.indices_batch)
            return bind(Scatter(axes, self.combine, self.mode, self.is_unique, self.is_sorted), x, indices, updates)
        axes = ScatterAxes(window, inserted, start_map, (0, *_up(a.operand_batch)), (0, *_up(a.indices_batch)))
        return bind(Scatter(axes, self.combine, self.mode, self.is_unique, False), x, indices, updates)


class DynamicSlice(mask_rules.Moving):
    """A window of x with lengths `sizes`; its start indices are scalar operands, clamped to keep it in bounds."""

    selects = True
    sizes: tuple[int, ...]

    def result_type(self, x: ArrayType, *starts: ArrayType) -> ArrayType:
        check_window("dynamic_slice", x, self.sizes, starts)
        return x.with_shape(self.sizes)

    def lower(self, build: Any, x: Any, *starts: Any) -> Any:
        out = self.result_type(x.type, *[s.type for s in starts])
        return build.emit("stablehlo.dynamic_slice", (x, *starts), (out,), {"slice_sizes": self.sizes})

    def transpose(self, cotangent: Any, x: Any, *starts: Any) -> Any:
        zeros = shape.zeros(ArrayType(x.type.shape, type_of(cotangent).dtype))
        return (bind(DynamicUpdateSlice(), zeros, cotangent, *starts), *[None] * len(starts))

    def batch(self, batched: tuple[bool, ...], x: Any, *starts: Any) -> Any:
        if not any(batched[1:]):
            zero = np.zeros((), type_of(starts[0]).dtype) if starts else np.int32(0)
            return bind(DynamicSlice((type_of(x).shape[0], *self.sizes)), x, zero, *starts)
        indices = _stack_starts(batched[1:], starts)
        axes = GatherAxes(tuple(range(len(self.sizes))), (), tuple(range(len(self.sizes))))
        return Gather(axes, self.sizes, "clip").batch((batched[0], True), x, indices)


class DynamicUpdateSlice(mask_rules.Moving):
    """x with a window overwritten; its start indices are scalar operands, clamped to keep it in bounds."""

    selects = True
    linear_in = ((0, 1),)

    def result_type(self, x: ArrayType, update: ArrayType, *starts: ArrayType) -> ArrayType:
        if update.dtype is not x.dtype:
            raise TypeError(f"dynamic_update_slice: operand and update must have the same dtype; got {x} and {update}.")
        check_window("dynamic_update_slice", x, update.shape, starts)
        return x

    def lower(self, build: Any, x: Any, update: Any, *starts: Any) -> Any:
        return build.emit("stablehlo.dynamic_update_slice", (x, update, *starts), (x.type,))

    def transpose(self, cotangent: Any, x: Any, update: Any, *starts: Any) -> Any:
        dims = update.type.shape if type(update) is Linear else type_of(update).shape
        to_x = to_update = None
        if type(x) is Linear:
            zeros = shape.zeros(ArrayType(dims, type_of(cotangent).dtype))
            to_x = bind(self, cotangent, zeros, *starts)
        if type(update) is Linear:
            to_update = bind(DynamicSlice(tuple(dims)), cotangent, *starts)
        return (to_x, to_update, *[None] * len(starts))

    def batch(self, batched: tuple[bool, ...], x: Any, update: Any, *starts: Any) -> Any:
        size = next(type_of(v).shape[0] for v, b in zip((x, update, *starts), batched, strict=True) if b)
        if not any(batched[2:]):
            x = x if batched[0] else shape.add_axis(x, size)
            update = update if batched[1] else shape.add_axis(update, size)
            zero = np.zeros((), type_of(starts[0]).dtype) if starts else np.int32(0)
            return bind(self, x, update, zero, *starts)
        indices = _stack_starts(batched[2:], starts)
        ndim = len(starts)
        axes = ScatterAxes(tuple(range(ndim)), (), tuple(range(ndim)))
        return Scatter(axes, "set", "clip", True, True).batch((batched[0], True, batched[1]), x, indices, update)


def check_window(name: str, x: ArrayType, sizes: Sequence[int], starts: Sequence[ArrayType]) -> None:
    """Raise TypeError if a window does not fit into the array, or its start is not one integer scalar per axis."""
    if len(sizes) != x.ndim or any(not 0 <= s <= n for s, n in zip(sizes, x.shape, strict=False)):
        raise TypeError(
            f"{name}: the window must fit into the array; got a window of {tuple(sizes)} for {x}."
            f"\n  try: {x.ndim} lengths, up to {x.shape}."
        )
    if len(starts) != x.ndim or any(s.shape != () or s.kind not in "iu" for s in starts):
        raise TypeError(f"{name}: one integer scalar is needed for each axis of {x}; got {list(starts)}.")


def _stack_starts(batched: Sequence[bool], starts: Sequence[Any]) -> Any:
    """Start indices, some with a batch axis, as a batch of index vectors."""
    size = next(type_of(s).shape[0] for s, b in zip(starts, batched, strict=True) if b)
    dtype = max((type_of(s).dtype for s in starts), key=dtypes.bits)
    columns = []
    for s, b in zip(starts, batched, strict=True):
        s = conversion.convert(s, dtype)
        columns.append(shape.reshape(s if b else shape.add_axis(s, size), (size, 1)))
    return shape.concatenate(columns, 1)


# -- functions --------------------------------------------------------------------------------------------------------


def _starts(starts: Sequence[Any]) -> list[Any]:
    """Start indices as integer arrays of the same dtype."""
    indices = [s if hasattr(s, "dtype") else np.asarray(s, np.int32) for s in starts]
    if not indices:
        return indices
    dtype = max((type_of(s).dtype for s in indices), key=dtypes.bits)
    return [conversion.convert(s, dtype) if type_of(s).dtype is not dtype else s for s in indices]


def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """A window of x with static lengths; its start may be traced, and is clamped to keep the window in bounds."""
    return bind(DynamicSlice(tuple(sizes)), x, *_starts(starts))


def dynamic_update_slice(x: Any, update: Any, starts: Sequence[Any]) -> Any:
    """x with a window overwritten; its start may be traced, and is clamped to keep the window in bounds."""
    return bind(DynamicUpdateSlice(), x, update, *_starts(starts))


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """x read along one axis at an index per element (take_along_axis); x and indices agree on the other axes."""
    t, at = type_of(x), type_of(indices)
    others = [a for a in range(t.ndim) if a != axis]
    axes = GatherAxes((), (axis,), (axis,), tuple(others), tuple(others))
    vectors = shape.reshape(indices, (*at.shape, 1))
    return bind(Gather(axes, (1,) * t.ndim, "clip"), x, vectors)
