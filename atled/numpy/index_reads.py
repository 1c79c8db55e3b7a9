"""Reads by NumPy's indexing, `x[...]`; `index_parsing.py` parses indices, `at_updates.py` contains `.at[...]`.

Reads and writes follow the same plan: each axis of the array is read as a window, or at points given by index arrays.
Each access is one launch: positions are operands, so a new position does not recompile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes, error_hints, errors
from atled.core.array import Array, type_of
from atled.core.program import Recorder
from atled.core.settings import scope
from atled.core.trace import Tracer, bind, state
from atled.core.types import ArrayType
from atled.engine.array import DeviceArray
from atled.numpy.arithmetic import remainder
from atled.numpy.index_parsing import (
    ARRAY,
    FIXED,
    NEW,
    POINT,
    SLICE,
    WINDOW,
    Entry,
    has_masks,
    index_dtype,
    parse,
    without_flags,
)
from atled.numpy.promotion import broadcast_shapes, broadcast_to
from atled.ops import conversion, indexing, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function


class Plan(NamedTuple):
    """An access to an array, axis by axis. All positions are arrays or literals of one integer dtype."""

    shape: tuple[int, ...]  # shape of the result, with new axes
    inner: tuple[int, ...]  # shape of the result, without new axes
    points: dict[int, Any]  # axis -> index array, broadcast over the batch axes
    starts: dict[int, Any]  # axis -> start of the window
    sizes: tuple[int, ...]  # lengths of the window, over all axes of the array
    window: tuple[int, ...]  # which axes of `inner` run inside a window
    batch: tuple[int, ...]  # lengths of the other axes of `inner`, the batch axes


def plan(x: ArrayType, spec: Sequence[Entry], operands: Sequence[Any]) -> Plan:
    """Plan an access. Slices that are not a plain window become index arrays."""
    dtype = index_dtype(max(x.shape, default=0))
    given = iter(operands)
    values = [
        _normalized(next(given), n, dtype, e) if e.kind.endswith("*") else None for e, n in _with_axes(spec, x.shape)
    ]
    has_arrays = any([e.kind == ARRAY for e in spec])
    advanced = [i for i, e in enumerate(spec) if e.kind == ARRAY or (has_arrays and e.kind in (FIXED, POINT))]
    lead = (
        broadcast_shapes(*[type_of(values[i]).shape if values[i] is not None else () for i in advanced])
        if advanced
        else ()
    )
    result_layout = _laid_out(x, spec, values, advanced, len(lead), dtype)
    inner = [entry for entry in result_layout.axes if entry[0] != "new"]
    length_of = {("lead", k): n for k, n in enumerate(lead)}
    length_of |= {("window", a): result_layout.sizes[a] for a in range(x.ndim) if a not in result_layout.points}
    length_of |= {("points", a): p[2] for a, p in result_layout.points.items() if p[0] == "own"}
    dims = tuple([1 if entry[0] == "new" else length_of[entry] for entry in result_layout.axes])
    inner_dims = tuple([length_of[entry] for entry in inner])
    window = tuple([i for i, entry in enumerate(inner) if entry[0] == "window"])
    batch_axes = [entry for entry in inner if entry[0] != "window"]
    batch = tuple([length_of[entry] for entry in batch_axes])
    spread = {a: _spread_point(a, p, batch_axes, batch, lead, dtype) for a, p in result_layout.points.items()}
    return Plan(dims, inner_dims, spread, result_layout.starts, tuple(result_layout.sizes), window, batch)


class _Layout(NamedTuple):
    """The axes of a result, in their order, and how each axis of the array is accessed."""

    axes: list[tuple[Any, ...]]  # ("new",), ("lead", k), ("window", axis) or ("points", axis)
    points: dict[int, tuple[Any, ...]]  # axis -> ("lead", positions), ("scalar", position) or ("own", entry, length)
    starts: dict[int, Any]  # axis -> start of the window
    sizes: list[int]  # lengths of the window, over all axes of the array


def _laid_out(
    x: ArrayType, spec: Sequence[Entry], values: Sequence[Any], advanced: Sequence[int], lead: int, dtype: Any
) -> _Layout:
    """Lay out the axes of the result. The `lead` axes of index arrays come first unless the arrays are adjacent."""
    is_apart = bool(advanced) and advanced != list(range(advanced[0], advanced[-1] + 1))
    shared: list[tuple[Any, ...]] = [("lead", k) for k in range(lead)]
    layout = _Layout(shared if is_apart else [], {}, {}, list(x.shape))
    axis = 0
    for i, e in enumerate(spec):
        if e.kind == NEW:
            layout.axes.append(("new",))
            continue
        if i in advanced:
            layout.points[axis] = ("lead", values[i] if values[i] is not None else np.asarray(e.a, dtype))
            if not is_apart and i == advanced[0]:
                layout.axes.extend(shared)
        elif e.kind in (FIXED, POINT):
            layout.points[axis] = ("scalar", values[i] if values[i] is not None else np.asarray(e.a, dtype))
        elif e.kind == WINDOW:
            layout.starts[axis], layout.sizes[axis] = values[i], e.a
            layout.axes.append(("window", axis))
        else:
            length = len(range(e.a, e.b, e.c))
            if e.c == 1:
                if e.a != 0 and length:
                    layout.starts[axis] = np.asarray(e.a, dtype)
                layout.sizes[axis] = length
                layout.axes.append(("window", axis))
            else:
                layout.points[axis] = ("own", e, length)
                layout.axes.append(("points", axis))
        axis += 1
    for a in layout.points:
        layout.sizes[a] = 1
    return layout


def _spread_point(
    axis: int, point: tuple[Any, ...], batch_axes: list[Any], batch: tuple[int, ...], lead: tuple[int, ...], dtype: Any
) -> Any:
    """The positions along an axis, broadcast over the batch axes; a scalar stays one."""
    if point[0] == "scalar":
        return point[1]
    if point[0] == "lead":
        where = [i for i, entry in enumerate(batch_axes) if entry[0] == "lead"]
        full = broadcast_to(point[1], lead) if type_of(point[1]).shape != () else point[1]
        return shape.broadcast(full, batch, where if type_of(full).shape else ())
    _, e, length = point
    steps = ew.add(ew.mul(shape.iota(dtype, (length,), 0), e.c), e.a)
    return shape.broadcast(steps, batch, (batch_axes.index(("points", axis)),))


def _with_axes(spec: Sequence[Entry], dims: Sequence[int]) -> Any:
    axis = 0
    for e in spec:
        yield e, dims[axis] if e.kind != NEW else 0
        axis += e.kind != NEW


def _normalized(value: Any, n: int, dtype: Any, entry: Entry) -> Any:
    """A position as an integer of a given dtype, with negative ones counted from the end."""
    if not isinstance(value, Array):
        return np.asarray(value, dtype)
    value = conversion.convert(value, dtype)
    if type_of(value).kind == "u" or entry.kind == WINDOW or entry.a == 1:  # unsigned, or wrapped when parsed
        return value
    return ew.select(ew.lt(value, 0), ew.add(value, np.asarray(n, dtype)), value)


def _vectors(p: Plan, dtype: Any) -> tuple[Any, tuple[int, ...]]:
    """An array of index vectors over the batch axes, and the array axis that each component indexes."""
    axes = tuple(sorted([*p.points, *p.starts]))
    columns = []
    for a in axes:
        value = p.points[a] if a in p.points else p.starts[a]
        full = (
            value
            if type_of(value).shape == p.batch and isinstance(value, Array)
            else shape.broadcast(value, p.batch, ())
        )
        columns.append(shape.reshape(full, (*p.batch, 1)))
    if not columns:
        return shape.zeros(ArrayType((*p.batch, 0), dtype)), ()
    return shape.concatenate(columns, len(p.batch)), axes


def _read(x: Any, p: Plan, mode: str, fill: Any, is_unique: bool, is_sorted: bool) -> Any:
    t = type_of(x)
    if 0 in t.shape:
        return read_nothing(x, p.shape, mode, fill)
    dtype = index_dtype(max(t.shape, default=0))
    if not p.batch and mode == "clip":  # a single window
        starts = [p.points.get(a, p.starts.get(a, np.zeros((), dtype))) for a in range(t.ndim)]
        if all([not isinstance(s, Array) for s in starts]):
            begin = [int(s) for s in starts]
            out = shape.slice(x, begin, [b + n for b, n in zip(begin, p.sizes, strict=True)])
        else:
            out = indexing.dynamic_slice(x, starts, p.sizes)
        return shape.reshape(out, p.shape)
    vectors, axes = _vectors(p, dtype)
    numbers = indexing.GatherAxes(p.window, tuple(sorted(p.points)), axes)
    if mode == "fill" and fill is None:
        fill = default_fill(t.dtype)
    op = indexing.Gather(numbers, p.sizes, mode, 0 if fill is None else fill, is_unique, is_sorted)
    return shape.reshape(bind(op, x, vectors), p.shape)


def read_nothing(x: Any, dims: tuple[int, ...], mode: str, fill: Any) -> Any:
    """The result of indexing an empty array: empty, or out-of-bounds fill values."""
    t = type_of(x)
    if 0 in dims:
        return shape.reshape(x, dims)
    if mode == "fill":
        return shape.full(ArrayType(dims, t.dtype), default_fill(t.dtype) if fill is None else fill)
    raise IndexError(f"index: an axis of length 0 has no elements to read; got {t}.")


def default_fill(dtype: Any) -> Any:
    """The result of reads out of bounds in mode 'fill': NaN, or the smallest or largest integer."""
    kind = dtypes.kind(dtype)
    if kind in "fc":
        return np.nan
    return True if kind == "b" else int(dtypes.iinfo(dtype).min) if kind == "i" else int(dtypes.iinfo(dtype).max)


MODES = {None: None, "clip": "clip", "fill": "fill", "drop": "fill", "promise_in_bounds": "promise", "wrap": "wrap"}


@library_function(static=("spec", "mode", "fill_value", "is_unique", "is_sorted"))
def _get(
    x: Any,
    operands: list[Any],
    spec: Any,
    mode: str,
    fill_value: Any = None,
    is_unique: bool = False,
    is_sorted: bool = False,
) -> Any:
    t = type_of(x)
    if any(e.kind == SLICE and e.c != 1 for e in spec):  # static slices with steps first: they need no gather
        x, spec = _apply_slices(x, spec)
        t = type_of(x)
    return _read(x, plan(t, spec, operands), mode, fill_value, is_unique, is_sorted)


def _apply_slices(x: Any, spec: Sequence[Entry]) -> tuple[Any, tuple[Entry, ...]]:
    dims = type_of(x).shape
    start, limit, stride, turned = [0] * len(dims), list(dims), [1] * len(dims), []
    out, axis = [], 0
    for e in spec:
        if e.kind == SLICE:
            length = len(range(e.a, e.b, e.c))
            if length == 0:
                start[axis] = limit[axis] = 0
            elif e.c > 0:
                start[axis], limit[axis], stride[axis] = e.a, e.a + (length - 1) * e.c + 1, e.c
            else:
                start[axis], limit[axis], stride[axis] = e.a + (length - 1) * e.c, e.a + 1, -e.c
                turned.append(axis)
            out.append(Entry(SLICE, 0, length, 1))
        else:
            out.append(e)
        axis += e.kind != NEW
    return shape.reverse(shape.slice(x, start, limit, stride), tuple(turned)), tuple(out)


@library_function
def _get_row(x: Any, i: Any) -> Any:
    """x[i] for an integer i that is in bounds."""
    t = type_of(x)
    if isinstance(i, int):
        return shape.index_in_axis(x, i, 0)
    dtype = index_dtype(t.shape[0])
    zero = np.zeros((), dtype)
    out = indexing.dynamic_slice(x, [conversion.convert(i, dtype), *[zero] * (t.ndim - 1)], (1, *t.shape[1:]))
    return shape.reshape(out, t.shape[1:])


def _is_eager(*values: Any) -> bool:
    return type(state.base) is not Recorder and not any([isinstance(v, Tracer) for v in values])


def getitem(x: Any, index: Any) -> Any:
    """x[index]; a traced index that is out of bounds is clamped."""
    if type(index) is int and not scope().off and type(x) is DeviceArray:
        dims = x._placed.type.shape
        if dims and -dims[0] <= index < dims[0]:
            return _get_row(x, index if index >= 0 else index + dims[0])
    try:
        return take_index(x, index, "clip")
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def take_index(
    x: Any, index: Any, mode: str | None, fill_value: Any = None, is_unique: bool = False, is_sorted: bool = False
) -> Any:
    """x[index] with a mode for indices out of bounds."""
    if has_masks(index if isinstance(index, tuple) else (index,)):
        x, index = without_flags(x, index)
    spec, operands = parse(index, type_of(x).shape, _is_eager(x))
    if mode == "wrap":
        operands, mode = _wrapped(operands, spec, type_of(x).shape), "clip"
    return _get(x, operands, spec, mode or "clip", fill_value, is_unique, is_sorted)


def _wrapped(operands: list[Any], spec: Sequence[Entry], dims: Sequence[int]) -> list[Any]:
    sizes = [n for e, n in _with_axes(spec, dims) if e.kind.endswith("*")]
    return [remainder(v, n) if isinstance(v, Array) else v for v, n in zip(operands, sizes, strict=True)]


def setitem(x: Any, index: Any, value: Any) -> None:
    """Raises, because arrays are immutable; the message shows the line rewritten with `.at`."""
    raise TypeError(
        errors.explained(
            f"item assignment: arrays are immutable; got {type_of(x)}.",
            error_hints.update() or "x = x.at[i].set(v) instead of x[i] = v.",
        )
    )


def delitem(x: Any, index: Any) -> None:
    """Raises, because arrays are immutable; the message shows the line rewritten with `.at`."""
    raise TypeError(
        errors.explained(
            f"item deletion: arrays are immutable; got {type_of(x)}.",
            error_hints.update() or "x = numpy.delete(x, i), or x = x[i:] to keep a part.",
        )
    )
