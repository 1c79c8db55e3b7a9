"""NumPy's indexing in full: reading. `updates.py` has `.at[...]`.

An index is parsed into a hashable `spec` (what each entry is) and operands (the values that may be data). Reads and
writes then work from the same plan: each axis of the array is read as a window, or at points given by index arrays.
Everything is one launch: positions are operands, so a new position compiles nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes, errors, rewriting, source
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.core.config import scope
from atled.core.program import Recorder
from atled.core.trace import Tracer, bind, state
from atled.core.types import ArrayType
from atled.engine.array import DeviceArray
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes, broadcast_to
from atled.ops import conversion, indexing, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function, refuse_out

# Kinds of index entries. Those marked * take the next operand.
NEW, FIXED, POINT, WINDOW, SLICE, ARRAY = "new", "fixed", "point*", "window*", "slice", "array*"
#   new axis; a known integer; an integer that is data; a slice of known length whose start is data; a known slice;
#   an array


class Entry(NamedTuple):
    """One entry of a parsed index."""

    kind: str
    a: int = 0  # FIXED: the integer; WINDOW: the length; SLICE: start
    b: int = 0  # SLICE: stop
    c: int = 1  # SLICE: step


class Slice:
    """A part of an axis of known length whose start may be data: see `ds`."""

    def __init__(self, start: Any, size: int, stride: int = 1) -> None:
        self.start, self.size, self.stride = start, size, stride

    def __repr__(self) -> str:
        return f"Slice(start={self.start}, size={self.size}, stride={self.stride})"


def ds(start: Any, size: int | None = None, stride: int | None = None) -> Any:
    """An index: `size` elements from `start` on, which may be traced; `ds(n)` is the first n, `ds(None)` all.

    A start that is too large is as large as it can be, and a negative one counts from the end. With a stride, the start
    must be known.

    >>> import atled, atled.numpy as jnp
    >>> atled.jit(lambda x, i: x[ds(i, 2)])(jnp.arange(10), 4)
    Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    return Slice(0, start, stride or 1) if size is None else Slice(start, size, stride or 1)


def _window_entry(e: Slice, n: int, is_eager: bool, operands: list[Any]) -> Entry:
    is_known = isinstance(e.start, (int, np.integer))
    if not 0 <= (e.size - 1) * e.stride < max(n, 1) or e.size > n:
        raise IndexError(f"ds: an axis of length {n} has no {e.size} elements at steps of {e.stride}.")
    if is_known:
        first = min(max(int(e.start) + (n if e.start < 0 else 0), 0), n - (e.size - 1) * e.stride - 1)
        if e.start == first or e.start == first - n:  # not moved
            return _slice_entry(slice(first, first + (e.size - 1) * e.stride + 1, e.stride), n, is_eager, operands)
    if e.stride != 1:
        raise NotImplementedError("ds: with a stride, the start must be known and within the array.")
    dtype = _index_dtype(n)
    start = (
        conversion.convert(e.start, dtype) if isinstance(e.start, Array) else shape.full(ArrayType((), dtype), e.start)
    )
    operands.append(ew.select(ew.lt(start, 0), ew.add(start, np.asarray(n, dtype)), start))
    return Entry(WINDOW, e.size)


def parse(index: Any, dims: Sequence[int], is_eager: bool) -> tuple[tuple[Entry, ...], list[Any]]:
    """An index as entries and operands. Eagerly, integers and starts of slices are operands too."""
    entries = list(index) if isinstance(index, tuple) else [index]
    entries = _expand_masks(entries, dims)
    used = sum([_axes_used(e) for e in entries])
    if used > len(dims):
        raise IndexError(
            f"index: an array of shape {tuple(dims)} takes {_count(len(dims), 'index', 'indices')} at most; got {used}."
            f"\n  try: {'one index for each axis' if dims else 'x itself, a single element'}, or None for a new axis."
        )
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("index: an index can have one ellipsis ('...') at most.")
    fill = [slice(None)] * (len(dims) - used)
    at = dots[0] if dots else len(entries)
    entries = entries[:at] + fill + entries[at + len(dots) :]
    spec, operands, axis = [], [], 0
    for e in entries:
        if e is None:
            spec.append(Entry(NEW))
            continue
        n = dims[axis]
        if isinstance(e, Slice):
            spec.append(_window_entry(e, n, is_eager, operands))
        elif isinstance(e, slice):
            spec.append(_slice_entry(e, n, is_eager, operands))
        else:
            spec.append(_position_entry(e, n, axis, is_eager, operands))
        axis += 1
    return tuple(spec), operands


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _axes_used(e: Any) -> int:
    if e is None or e is Ellipsis:
        return 0
    return type_of(e).ndim if _is_mask(e) else 1


def _first_axis(entries: Sequence[Any], i: int, ndim: int) -> int:
    """The axis at which an entry of an index begins."""
    if any([e is Ellipsis for e in entries[:i]]):
        return ndim - sum([_axes_used(e) for e in entries[i:]])
    return sum([_axes_used(e) for e in entries[:i]])


def _expand_masks(entries: list[Any], dims: Sequence[int]) -> list[Any]:
    """Boolean arrays as the integer arrays of their true positions."""
    out: list[Any] = []
    for at, e in enumerate(entries):
        if isinstance(e, list):
            e = np.asarray(e) if e else np.zeros(0, np.int32)
        if isinstance(e, (bool, np.bool_)):
            raise IndexError("index: a plain bool as index is not supported; use None, or an array of bools.")
        if _is_mask(e):
            axis, mask = _first_axis(entries, at, len(dims)), type_of(e)
            lengths = tuple(dims[axis : axis + mask.ndim])
            if len(lengths) != mask.ndim or any([m not in (n, 0) for m, n in zip(mask.shape, lengths, strict=True)]):
                raise IndexError(
                    f"index: a mask has the lengths of the axes that it stands for; got {mask} at axis {axis} of an "
                    f"array of shape {tuple(dims)}."
                )
            out.extend([np.asarray(i, np.int32) for i in np.nonzero(_known_mask(e))])
        else:
            out.append(e)
    return out


def _known_mask(mask: Any) -> np.ndarray:
    """The values of a mask; raises if there are none yet."""
    host = mask.known() if isinstance(mask, Tracer) else mask
    if host is None:
        raise errors.NonConcreteBooleanIndexError(
            f"index: a traced mask {type_of(mask)} selects an unknown number of elements." + mask._where()
            + f"\n  try: {rewriting.masked() or 'numpy.where(mask, x, fill)'}, "
            "or numpy.nonzero(mask, size=n) for the positions."
        )  # fmt: skip
    return np.asarray(host)


def _without_flags(x: Any, index: Any) -> tuple[Any, Any]:
    """Convert 0-d masks to index arrays of length one or zero on a new axis: x[mask] has one row or none."""
    entries = list(index) if isinstance(index, tuple) else [index]
    for at, e in enumerate(entries):
        if _is_mask(e) and type_of(e).ndim == 0:
            dims = type_of(x).shape
            axis = _first_axis(entries, at, len(dims))
            x = shape.reshape(x, (*dims[:axis], 1, *dims[axis:]))
            entries[at] = np.zeros(int(_known_mask(e)), np.int32)
    return x, tuple(entries)


def _index_dtype(n: int) -> Any:
    return dtypes.int32 if n <= 2**31 - 1 else dtypes.int64


def _slice_entry(e: slice, n: int, is_eager: bool, operands: list[Any]) -> Entry:
    try:
        start, stop, step = e.indices(n)
    except TypeError:
        given = [v for v in (e.start, e.stop, e.step) if v is not None and not isinstance(v, (int, np.integer))]
        bad = next((v for v in given if isinstance(v, Tracer)), given[0])
        if isinstance(bad, Tracer):
            raise errors.TracerIntegerConversionError(
                "index: the bounds of a slice must be known, because its length depends on them; got a traced "
                f"{bad.type}.{bad._where()}"
                "\n  try: numpy.where(numpy.arange(len(x)) < n, x, 0), lax.dynamic_slice for a known length, or a "
                "static argument."
            ) from None
        raise TypeError(
            f"index: slices are made of integers; got {describe(bad)}.\n  try: n // 2 instead of n / 2, or int(n)."
        ) from None
    length = len(range(start, stop, step))
    if length == n and step == 1:
        return Entry(SLICE, 0, n, 1)
    if is_eager and step == 1 and length > 0:
        operands.append(start)
        return Entry(WINDOW, length)
    return Entry(SLICE, start, start + length * step, step)


def _position_entry(e: Any, n: int, axis: int, is_eager: bool, operands: list[Any]) -> Entry:
    if isinstance(e, (int, np.integer)):
        i = int(e)
        if not -n <= i < n:
            raise IndexError(
                f"index: {i} is out of bounds for axis {axis} with length {n}." + source.describe(source.here())
                + (f"\n  try: an index from {-n} to {n - 1}, or" if n else "\n  try:")
                + " x.at[i].get(mode='clip') or (mode='fill') if that is meant."
            )  # fmt: skip
        i = i + n if i < 0 else i
        if is_eager:
            operands.append(i)
            return Entry(POINT, 1)
        return Entry(FIXED, i)
    if not isinstance(e, (Array, np.ndarray)):
        if hasattr(e, "__index__"):
            return _position_entry(e.__index__(), n, axis, is_eager, operands)
        way_out = {
            float: "n // 2 instead of n / 2, or int(i).",
            str: "a dict of arrays, {'name': x}, to look up by name.",
        }
        raise TypeError(
            f"index: indices are integers, slices, None, '...' and integer or bool arrays; got {describe(e)}."
            + (f"\n  try: {way_out[type(e)]}" if type(e) in way_out else "")
        )
    t = type_of(e)
    if t.kind not in "iu":
        raise TypeError(
            f"index: index arrays must be of integers or bools; got {t}."
            "\n  try: i // 2 instead of i / 2, or i.astype(int)."
        )
    if isinstance(e, np.ndarray):
        if e.size and not (e.min() >= -n and e.max() < n):
            worst = e.max() if e.max() >= n else e.min()
            raise IndexError(
                f"index: {worst} is out of bounds for axis {axis} with length {n}." + source.describe(source.here())
            )
        e = np.where(e < 0, e.astype(np.int64) + n, e).astype(_index_dtype(n))  # n may be too large for its dtype
    operands.append(e)
    return Entry(POINT if t.ndim == 0 else ARRAY)


# -- the plan of an access --------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """An access to an array, axis by axis. All positions are arrays or literals of one integer dtype."""

    shape: tuple[int, ...]  # shape of the result, with new axes
    inner: tuple[int, ...]  # shape of the result, without new axes
    points: dict[int, Any]  # axis -> index array, broadcast over the batch axes
    starts: dict[int, Any]  # axis -> start of the window
    sizes: tuple[int, ...]  # of the window, over all axes of the array
    window: tuple[int, ...]  # which axes of `inner` run inside a window
    batch: tuple[int, ...]  # the shape of the batch axes: those of `inner` that do not


def plan(x: ArrayType, spec: Sequence[Entry], operands: Sequence[Any]) -> Plan:
    """Work out an access. Slices that are not a plain window become points of their own."""
    dtype = _index_dtype(max(x.shape, default=0))
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
    is_apart = bool(advanced) and advanced != list(range(advanced[0], advanced[-1] + 1))

    # lay out the axes of the result: ("new",), ("lead", k), ("window", axis) or ("points", axis)
    layout: list[tuple[Any, ...]] = [("lead", k) for k in range(len(lead))] if is_apart else []
    axis = 0
    sizes, starts, points = list(x.shape), {}, {}
    for i, e in enumerate(spec):
        if e.kind == NEW:
            layout.append(("new",))
            continue
        if i in advanced:
            points[axis] = ("lead", values[i] if values[i] is not None else np.asarray(e.a, dtype))
            if not is_apart and i == advanced[0]:
                layout.extend([("lead", k) for k in range(len(lead))])
        elif e.kind in (FIXED, POINT):
            points[axis] = ("scalar", values[i] if values[i] is not None else np.asarray(e.a, dtype))
        elif e.kind == WINDOW:
            starts[axis], sizes[axis] = values[i], e.a
            layout.append(("window", axis))
        else:
            length = len(range(e.a, e.b, e.c))
            if e.c == 1:
                if e.a != 0 and length:
                    starts[axis] = np.asarray(e.a, dtype)
                sizes[axis] = length
                layout.append(("window", axis))
            else:
                points[axis] = ("own", e, length)
                layout.append(("points", axis))
        axis += 1
    for a in points:
        sizes[a] = 1

    inner = [entry for entry in layout if entry[0] != "new"]
    length_of = {("lead", k): n for k, n in enumerate(lead)}
    length_of |= {("window", a): sizes[a] for a in range(x.ndim) if a not in points}
    length_of |= {("points", a): p[2] for a, p in points.items() if p[0] == "own"}
    dims = tuple([1 if entry[0] == "new" else length_of[entry] for entry in layout])
    inner_dims = tuple([length_of[entry] for entry in inner])
    window = tuple([i for i, entry in enumerate(inner) if entry[0] == "window"])
    batch_axes = [entry for entry in inner if entry[0] != "window"]
    batch = tuple([length_of[entry] for entry in batch_axes])
    spread: dict[int, Any] = {}
    for a, p in points.items():
        if p[0] == "scalar":
            spread[a] = p[1]
        elif p[0] == "lead":
            where = [i for i, entry in enumerate(batch_axes) if entry[0] == "lead"]
            full = broadcast_to(p[1], lead) if type_of(p[1]).shape != () else p[1]
            spread[a] = shape.broadcast(full, batch, where if type_of(full).shape else ())
        else:
            _, e, length = p
            steps = ew.add(ew.mul(shape.iota(dtype, (length,), 0), e.c), e.a)
            spread[a] = shape.broadcast(steps, batch, (batch_axes.index(("points", a)),))
    return Plan(dims, inner_dims, spread, starts, tuple(sizes), window, batch)


def _with_axes(spec: Sequence[Entry], dims: Sequence[int]) -> Any:
    axis = 0
    for e in spec:
        yield e, dims[axis] if e.kind != NEW else 0
        axis += e.kind != NEW


def _normalized(value: Any, n: int, dtype: Any, entry: Entry) -> Any:
    """A position as an integer of one dtype, with negative ones counted from the end."""
    if not isinstance(value, Array):
        return np.asarray(value, dtype)
    value = conversion.convert(value, dtype)
    if type_of(value).kind == "u" or entry.kind == WINDOW or entry.a == 1:  # checked on the way in
        return value
    return ew.select(ew.lt(value, 0), ew.add(value, np.asarray(n, dtype)), value)


def _vectors(p: Plan, dtype: Any) -> tuple[Any, tuple[int, ...]]:
    """Index vectors over the batch axes, and the axes that their components are for."""
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
        return _read_nothing(x, p.shape, mode, fill)
    dtype = _index_dtype(max(t.shape, default=0))
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


def _read_nothing(x: Any, dims: tuple[int, ...], mode: str, fill: Any) -> Any:
    """The result of indexing an empty array: empty, or out-of-bounds fill values."""
    t = type_of(x)
    if 0 in dims:
        return shape.reshape(x, dims)
    if mode == "fill":
        return shape.full(ArrayType(dims, t.dtype), default_fill(t.dtype) if fill is None else fill)
    raise IndexError(f"index: an axis of length 0 has no elements to read; got {t}.")


def default_fill(dtype: Any) -> Any:
    """What reads out of bounds give in mode 'fill': NaN, or the smallest or largest integer."""
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
    if any(e.kind == SLICE and e.c != 1 for e in spec):  # known slices with steps first: they are cheap by themselves
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
    dtype = _index_dtype(t.shape[0])
    zero = np.zeros((), dtype)
    out = indexing.dynamic_slice(x, [conversion.convert(i, dtype), *[zero] * (t.ndim - 1)], (1, *t.shape[1:]))
    return shape.reshape(out, t.shape[1:])


def _is_eager(*values: Any) -> bool:
    return type(state.base) is not Recorder and not any([isinstance(v, Tracer) for v in values])


def getitem(x: Any, index: Any) -> Any:
    """x[index]: reads out of bounds by a traced index are moved inside."""
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
    """x[index] with a mode for what is out of bounds."""
    if any([_is_mask(e) and type_of(e).ndim == 0 for e in (index if isinstance(index, tuple) else (index,))]):
        x, index = _without_flags(x, index)
    spec, operands = parse(index, type_of(x).shape, _is_eager(x))
    if mode == "wrap":
        operands, mode = _wrapped(operands, spec, type_of(x).shape), "clip"
    return _get(x, operands, spec, mode or "clip", fill_value, is_unique, is_sorted)


def _wrapped(operands: list[Any], spec: Sequence[Entry], dims: Sequence[int]) -> list[Any]:
    sizes = [n for e, n in _with_axes(spec, dims) if e.kind.endswith("*")]
    return [remainder(v, n) if isinstance(v, Array) else v for v, n in zip(operands, sizes, strict=True)]


def setitem(x: Any, index: Any, value: Any) -> None:
    """Arrays are immutable: raises, with the rewritten line."""
    raise TypeError(
        errors.explained(
            f"item assignment: arrays are immutable; got {type_of(x)}.",
            rewriting.update() or "x = x.at[i].set(v) instead of x[i] = v.",
        )
    )


def delitem(x: Any, index: Any) -> None:
    """Arrays are immutable: raises, with the rewritten line."""
    raise TypeError(
        errors.explained(
            f"item deletion: arrays are immutable; got {type_of(x)}.",
            rewriting.update() or "x = numpy.delete(x, i), or x = x[i:] to keep a part.",
        )
    )


def _is_mask(index: Any) -> bool:
    return isinstance(index, (Array, np.ndarray)) and type_of(index).kind == "b"


# -- functions --------------------------------------------------------------------------------------------------------


@library_function(static=("axis", "mode", "fill_value"))
def _take(a: Any, indices: Any, axis: int | None, mode: str, fill_value: Any) -> Any:
    x = a
    if axis is None:
        x, axis = shape.reshape(a, (type_of(a).size,)), 0
    t = type_of(x)
    axis %= t.ndim
    dtype = _index_dtype(t.shape[axis])
    i = conversion.convert(indices, dtype)
    n = t.shape[axis]
    if 0 in t.shape:
        return _read_nothing(x, (*t.shape[:axis], *type_of(i).shape, *t.shape[axis + 1 :]), mode, fill_value)
    if mode == "wrap":
        i, mode = remainder(i, np.asarray(n, dtype)), "clip"
    elif mode != "clip" and type_of(indices).kind == "i":  # in mode clip, negative positions are below the first
        i = ew.select(ew.lt(i, 0), ew.add(i, np.asarray(n, dtype)), i)
    at = type_of(i)
    vectors = shape.reshape(i, (*at.shape, 1))
    offset = tuple([k for k in range(t.ndim - 1 + at.ndim) if not axis <= k < axis + at.ndim])
    sizes = tuple([1 if k == axis else d for k, d in enumerate(t.shape)])
    fill = default_fill(t.dtype) if fill_value is None else fill_value
    op = indexing.Gather(indexing.GatherAxes(offset, (axis,), (axis,)), sizes, mode, fill if mode == "fill" else 0)
    return bind(op, x, vectors)


def take(
    a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None,
) -> Array:  # fmt: skip
    """Elements along an axis at positions. Out of bounds: NaN or the extreme integer, or by `mode` 'clip' or 'wrap'.

    >>> import atled.numpy as jnp
    >>> jnp.take(jnp.arange(4.0), jnp.array([0, 3]))
    Array([0., 3.], dtype=float32)
    """
    refuse_out("take", out)
    x, i = asarray(a), asarray(indices)
    if i.type.kind not in "iu":
        raise TypeError(f"take: indices must be integers; got {i.type}.")
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"take: axis {axis} is out of bounds for {x.type}.")
    chosen = "fill" if mode in (None, "raise") else "promise" if mode == "promise_in_bounds" else mode
    return _take(x, i, axis, chosen, fill_value)


@library_function(static=("axis", "mode", "fill_value", "is_wrapped"))
def _take_along_axis(
    arr: Any, indices: Any, axis: int, mode: str, fill_value: Any = None, is_wrapped: bool = True
) -> Any:
    t, i = type_of(arr), type_of(indices)
    axis %= t.ndim
    others = [k for k in range(t.ndim) if k != axis]
    dims = broadcast_shapes(*[tuple([s[k] for k in others]) for s in (t.shape, i.shape)])
    grow = lambda x, s: broadcast_to(x, tuple(s))  # noqa: E731
    full = list(dims)
    x = grow(arr, [*full[:axis], t.shape[axis], *full[axis:]])
    index = grow(indices, [*full[:axis], i.shape[axis], *full[axis:]])
    if 0 in type_of(x).shape:
        return _read_nothing(x, type_of(index).shape, mode, fill_value)
    dtype = _index_dtype(t.shape[axis])
    index = conversion.convert(index, dtype)
    if i.kind == "i" and is_wrapped:
        index = ew.select(ew.lt(index, 0), ew.add(index, np.asarray(t.shape[axis], dtype)), index)
    axes = indexing.GatherAxes((), (axis,), (axis,), tuple(others), tuple(others))
    vectors = shape.reshape(index, (*type_of(index).shape, 1))
    fill = (default_fill(t.dtype) if fill_value is None else fill_value) if mode == "fill" else 0
    return bind(indexing.Gather(axes, (1,) * t.ndim, mode, fill), x, vectors)


def take_along_axis(
    arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: str | None = None, fill_value: Any = None, *,
    wrap_negative_indices: bool | None = None,
) -> Array:  # fmt: skip
    """Elements along an axis at per-element positions, such as those returned by `argsort`.

    Out of bounds, there is `fill_value`, or NaN or the extreme integer. Negative positions count from the end, unless
    `wrap_negative_indices` is False.

    >>> x = asarray([[3, 1], [2, 4]])
    >>> take_along_axis(x, x.argsort(axis=1), axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x, i = asarray(arr), asarray(indices)
    if axis is None:
        x, axis = shape.reshape(x, (x.size,)), 0
    if x.ndim != i.ndim:
        raise ValueError(
            errors.explained(
                f"take_along_axis: array and indices must have as many axes; got {x.type} and {i.type}.",
                _with_axis(x.type, i.type, axis)
                or "numpy.expand_dims(indices, axis) for the missing axis, or numpy.take.",
            )
        )
    chosen = "fill" if mode is None else "promise" if mode == "promise_in_bounds" else mode
    return _take_along_axis(x, i, axis, chosen, fill_value, wrap_negative_indices is not False)


def _with_axis(x: ArrayType, i: ArrayType, axis: int) -> str:
    """The line with an axis added to the indices, where they lack the one that is taken along."""
    at = axis % x.ndim
    if i.shape != (*x.shape[:at], *x.shape[at + 1 :]):
        return ""
    index = ", ".join([":"] * at + ["None"] + [":"] * (x.ndim - 1 - at))
    return rewriting.with_operand(1, f"{{}}[{index}]", "take_along_axis")
