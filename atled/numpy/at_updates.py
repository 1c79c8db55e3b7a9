"""`x.at[index]`: functional updates of arrays, and reads with a mode for indices out of bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, errors
from atled.core.array import Array, type_of
from atled.core.trace import Tracer, bind
from atled.numpy.creation import asarray, ones_like
from atled.numpy.elementwise import where_both
from atled.numpy.index_parsing import POINT, Entry, axes_used, index_dtype, is_mask, parse
from atled.numpy.index_reads import MODES, Plan, _is_eager, _vectors, plan, take_index
from atled.numpy.promotion import broadcast_shapes, broadcast_to, cast
from atled.ops import elementwise as ew
from atled.ops import indexing, shape
from atled.ops.placement import placed
from atled.staging.jit import library_function


@library_function(static=("spec", "combine", "mode", "is_unique", "is_sorted"))
def _update(
    x: Any, operands: list[Any], value: Any, spec: Any, combine: str, mode: str, is_unique: bool, is_sorted: bool
) -> Any:
    t = type_of(x)
    p = plan(t, spec, operands)
    value = cast(value, t.dtype) if t.kind != "k" else value
    got = type_of(value).shape
    try:
        fits = broadcast_shapes(got, p.shape) == p.shape
    except ValueError:
        fits = False
    if not fits and not (
        len(got) > len(p.shape)
        and broadcast_shapes(got[-len(p.shape) :] if p.shape else (), p.shape) == p.shape
        and set(got[: len(got) - len(p.shape)]) <= {1}
    ):
        raise ValueError(
            f"at: the value must broadcast to the shape {p.shape} that is written; got {type_of(value)}."
            f"\n  try: a value of shape {p.shape}, or a single number."
        )
    if len(got) > len(p.shape):
        value = shape.reshape(value, got[len(got) - len(p.shape) :])
    full = shape.reshape(broadcast_to(value, p.shape), p.inner)
    dtype = index_dtype(max(t.shape, default=0))
    if (not p.batch and mode in ("clip", "promise")) or (not p.batch and not _may_miss(p, spec)):
        starts = [p.points.get(a, p.starts.get(a, np.zeros((), dtype))) for a in range(t.ndim)]
        window = shape.reshape(full, p.sizes)
        if combine != "set":
            old = indexing.dynamic_slice(x, starts, p.sizes)
            window = _COMBINE[combine](old, window)
        return indexing.dynamic_update_slice(x, window, starts) if t.ndim else window
    vectors, axes = _vectors(p, dtype)
    numbers = indexing.ScatterAxes(p.window, tuple(sorted(p.points)), axes)
    return bind(indexing.Scatter(numbers, combine, mode, is_unique, is_sorted), x, vectors, full)


def _may_miss(p: Plan, spec: Sequence[Entry]) -> bool:
    """Whether an index entry is a run-time scalar that was not bounds-checked."""
    return any(e.kind == POINT and e.a != 1 for e in spec)


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": ew.add,
    "mul": ew.mul,
    "min": ew.minimum,
    "max": ew.maximum,
}


@library_function(static=("combine",))
def _update_mask(x: Any, mask: Any, value: Any, combine: str) -> Any:
    """x with a value written, or combined, wherever a mask over its leading axes is true."""
    t = type_of(x)
    value = broadcast_to(cast(value, t.dtype), t.shape)
    wide = shape.broadcast(mask, t.shape, tuple(range(type_of(mask).ndim)))
    return ew.select(wide, value if combine == "set" else _COMBINE[combine](x, value), x)


_WRITES = {None: "drop", "fill": "drop", "drop": "drop", "clip": "clip", "promise_in_bounds": "promise"}


class _At:
    """`x.at[index]`: functional updates of x. Writes out of bounds are dropped.

    >>> import atled.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getitem__(self, index: Any) -> _Place:
        return _Place(self.x, index)

    def __repr__(self) -> str:
        return f"{self.x.type}.at"


def _writer(name: str, combine: str, doc: str, after: Any = None, before: Any = None) -> Any:
    """A method that writes values; with `after`, it writes into an array of ones y instead, and returns after(x, y)."""

    def write(
        self: Any,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        place = self if after is None else _Place(ones_like(self.x), self.index)
        values = values if before is None else before(values)
        options = (mode, unique_indices, indices_are_sorted, None if after else out_sharding, wrap_negative_indices)
        written = place._write(combine, values, *options)
        return written if after is None else placed(after(self.x, written), out_sharding, "at")

    write.__name__, write.__qualname__, write.__doc__ = name, f"at.{name}", doc
    return write


class _Place:
    """An indexed part of an array, to be read or updated."""

    __slots__ = ("index", "x")

    def __init__(self, x: Any, index: Any) -> None:
        self.x = x
        self.index = index

    def _write(
        self,
        combine: str,
        value: Any,
        mode: str | None,
        is_unique: bool,
        is_sorted: bool,
        out_sharding: Any,
        wraps: bool,
    ) -> Any:
        x = self.x
        try:
            if mode not in MODES or mode == "wrap":
                raise ValueError(f"at: the mode is 'drop', 'clip' or 'promise_in_bounds'; got {mode!r}.")
            if not isinstance(value, Array):
                value = value if isinstance(value, (int, float, complex, bool)) else asarray(value)
            index = self.index if wraps else _counted_from_zero(self.index, x.shape, mode == "clip")
            if isinstance(index, tuple) and len(index) == 1:
                index = index[0]
            if is_mask(index) and type_of(value).ndim <= type_of(x).ndim - type_of(index).ndim:
                _check_mask(index, x)
                return placed(_update_mask(x, index, value, combine), out_sharding, "at")
            eager = _is_eager(x, value)
            checked = _checked(index, x.shape, mode)
            if checked is _OUTSIDE:
                return placed(x, out_sharding, "at")
            spec, operands = parse(checked, x.shape, eager)
            out = _update(x, operands, value, spec, combine, _WRITES[mode], is_unique, is_sorted)
            return placed(out, out_sharding, "at")
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    set = _writer("set", "set", "The array with x[index] replaced by the values.")
    add = _writer("add", "add", "The array with the values added at the index; repeated indices add up.")
    multiply = _writer("multiply", "mul", "The array with x[index] multiplied by the values.")
    mul = multiply
    min = _writer("min", "min", "The array with x[index] replaced by its minimum with the values.")
    max = _writer("max", "max", "The array with x[index] replaced by its maximum with the values.")
    subtract = _writer("subtract", "add", "The array with x[index] minus the values.", before=lambda v: -asarray(v))
    divide = _writer("divide", "mul", "The array with x[index] divided by the values.", lambda x, factors: x / factors)
    power = _writer("power", "mul", "The array with x[index] raised to the values.", lambda x, factors: x**factors)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with x[index] replaced by func(x[index])."""
        options = (mode, unique_indices, indices_are_sorted, None, wrap_negative_indices)
        if is_mask(self.index):
            new = func(self.x) if isinstance(self.index, Tracer) else func(self.x)[self.index]
            return self._write("set", new, *options)
        index = self.index if wrap_negative_indices else _counted_from_zero(self.index, self.x.shape, True)
        return self._write("set", func(take_index(self.x, index, "clip")), *options)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The values at the index, with a mode for out of bounds: 'clip', 'fill', 'wrap' or 'promise_in_bounds'."""
        if mode not in MODES:
            raise ValueError(f"at: the mode is one of {[m for m in MODES if m]}; got {mode!r}.")
        index = self.index
        if not wrap_negative_indices:
            index = _counted_from_zero(index, self.x.shape, MODES[mode] != "fill")
        if mode is not None:  # a static index would be bounds-checked, without the mode
            index = tuple([_as_data(e) for e in (index if isinstance(index, tuple) else (index,))])
        fill = fill_value.item() if isinstance(fill_value, (Array, np.ndarray, np.generic)) else fill_value
        values = take_index(self.x, index, MODES[mode], fill, unique_indices, indices_are_sorted)
        return placed(values, out_sharding, "at")


def _counted_from_zero(index: Any, dims: Sequence[int], is_clipped: bool) -> Any:
    """An index in which negative integers count as out of bounds: clipped to 0, or moved past the end."""
    entries = index if isinstance(index, tuple) else (index,)
    used = [type_of(e).ndim if is_mask(e) else axes_used(e) for e in entries]
    out, axis = [], 0
    for e, count in zip(entries, used, strict=True):
        if e is Ellipsis:
            count = len(dims) - sum(used)
        elif count == 1 and not isinstance(e, slice) and not is_mask(e):
            indices = asarray(e)
            if not dtypes.holds(indices.dtype, dims[axis]):
                indices = indices.astype(np.int32 if dims[axis] < 2**31 else np.int64)
            e = where_both(indices < 0, asarray(0 if is_clipped else dims[axis], indices.dtype), indices)
        out.append(e)
        axis += count
    return tuple(out) if isinstance(index, tuple) else out[0]


def _as_data(e: Any) -> Any:
    """A static integer index as an array: out of bounds, it is not an error but subject to the mode."""
    if isinstance(e, (int, np.integer)) and not isinstance(e, (bool, np.bool_)):
        return asarray(np.asarray(e, np.int64 if abs(int(e)) > 2**31 - 1 else np.int32))
    return asarray(e) if isinstance(e, (np.ndarray, list)) and np.asarray(e).dtype.kind in "iu" else e


def _check_mask(mask: Any, x: Any) -> None:
    m, t = type_of(mask), type_of(x)
    if m.shape != t.shape[: m.ndim]:
        raise IndexError(f"index: a mask {m} does not match the leading axes of {t}.")


_OUTSIDE = object()


def _checked(index: Any, dims: Sequence[int], mode: str | None) -> Any:
    """The index of a write; _OUTSIDE if a static integer is out of bounds and the write is dropped."""
    if index.__class__ is int and dims and -dims[0] <= index < dims[0]:
        return index
    entries = index if isinstance(index, tuple) else (index,)
    if not any(
        isinstance(e, (int, np.integer, np.ndarray, list)) and not isinstance(e, (bool, np.bool_)) for e in entries
    ):
        return index
    out, axis = [], 0
    dots = len(dims) - sum([axes_used(e) if not is_mask(e) else type_of(e).ndim for e in entries])
    for e in entries:
        if e is Ellipsis:
            axis += dots
        elif isinstance(e, (int, np.integer)) and not isinstance(e, (bool, np.bool_)) and axis < len(dims):
            n = dims[axis]
            if not -n <= e < n:
                if mode == "clip":
                    e = 0 if e < 0 else n - 1
                else:
                    return _OUTSIDE
            axis += 1
        elif isinstance(e, (np.ndarray, list)) and not is_mask(e):
            indices = np.asarray(e)
            e = _as_data(indices) if indices.dtype.kind in "iu" else e
            axis += 1
        elif e is not None:
            axis += type_of(e).ndim if is_mask(e) else 1
        out.append(e)
    return tuple(out) if isinstance(index, tuple) else out[0]


def at(x: Any) -> _At:
    """Functional updates: `x.at[i].set(v)` is x with x[i] replaced."""
    return _At(x)
