"""Arrays with elements inserted, removed or overwritten: NumPy's `insert`, `delete`, `resize`, `put`, `place`.

Functions that change an array in place in NumPy (`put`, `place`, `fill_diagonal`, ...) return the changed array here,
and require `inplace=False` to make that explicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, SupportsIndex

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.errors import ConcretizationTypeError
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray, static_shape
from atled.numpy.elementwise_family import to_bool
from atled.numpy.index_parsing import index_dtype, known_index
from atled.numpy.promotion import broadcast_to, cast, operand_type
from atled.numpy.shapes import flat_or_axis
from atled.ops import conversion, cumulative, indexing, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["delete", "fill_diagonal", "insert", "place", "put", "put_along_axis", "resize"]


def _read(x: Any, positions: Any, axis: int) -> Any:
    """Rows of x along an axis, at indices known to be in bounds."""
    t = type_of(x)
    axes = indexing.GatherAxes(tuple([k for k in range(t.ndim) if k != axis]), (axis,), (axis,))
    sizes = tuple([1 if k == axis else n for k, n in enumerate(t.shape)])
    vectors = shape.reshape(positions, (*type_of(positions).shape, 1))
    return bind(indexing.Gather(axes, sizes, "clip"), x, vectors)


def _edit_positions(name: str, obj: Any, n: int, last: int) -> Any:
    """The indices at which to edit an axis of length n, as an integer array; known values must lie in -n ... last."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n), dtype=np.int32)
    if isinstance(obj, (list, tuple)) and not len(obj):
        return np.zeros(0, np.int32)
    index: Any = obj if isinstance(obj, Array) else np.asarray(obj)
    t = type_of(index)
    if t.ndim > 1:
        raise ValueError(f"{name}: positions are a scalar, a slice or a 1-d array; got {t}.")
    known = known_index(index)
    if t.kind == "b":
        if known is None:
            raise ConcretizationTypeError(
                index._explained(
                    f"{name}: a traced mask {t} selects an unknown number of positions.",
                    "an integer array of fixed length, such as numpy.nonzero(mask, size=n) returns.",
                )
            )
        if known.ndim and len(known) != n:
            raise ValueError(f"{name}: a mask must be as long as the axis; got {t} for length {n}.")
        return np.flatnonzero(known).astype(np.int32)
    if t.kind not in "iu":
        raise IndexError(f"{name}: positions must be integers, bools or a slice; got {t}.")
    if known is not None and known.size:
        worst = known.max() if known.max() > last else known.min()
        if known.max() > last or known.min() < -n:
            raise IndexError(f"{name}: position {worst} is out of bounds for an axis of length {n}.")
    return index


def _counted_from_front(positions: Any, n: int) -> Any:
    dtype = index_dtype(2 * n)
    i = conversion.convert(positions, dtype)
    return ew.select(ew.lt(i, 0), ew.add(i, np.asarray(n, dtype)), i) if type_of(positions).kind == "i" else i


@library_function(static=("axis",))
def _insert(x: Any, positions: Any, values: Any, axis: int) -> Any:
    """x with values inserted: elements are sorted by doubled position, which puts new ones just before old ones."""
    n = type_of(x).shape[axis]
    i = ew.clamp(0, _counted_from_front(positions, n), n)
    dtype = type_of(i).dtype
    old = ew.add(ew.mul(shape.iota(dtype, (n,), 0), 2), 1)
    keys = shape.concatenate([old, ew.mul(i, 2)], 0)
    order = sorting.sort((keys, shape.iota(dtype, type_of(keys).shape, 0)), 0)[1]
    return _read(shape.concatenate([x, values], axis), order, axis)


def insert(arr: ArrayLike, obj: ArrayLike | slice | Sequence[int], values: ArrayLike, axis: int | None = None) -> Array:
    """Insert values before indices: an integer, a slice, a mask, or an integer array, which may be traced.

    >>> import atled.numpy as jnp
    >>> jnp.insert(jnp.arange(4), jnp.array([1, 3]), jnp.array([10, 30]))
    Array([ 0, 10,  1,  2, 30,  3], dtype=int32)
    """
    x, at = flat_or_axis("insert", arr, axis)
    n = x.shape[at]
    positions = _edit_positions("insert", obj, n, n)
    count = type_of(positions).size
    new = asarray(values, x.dtype)
    new = shape.reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
    if type_of(positions).ndim == 0:
        # at a single index, the first axis of the values is the number of inserted rows
        new = shape.move_axis(new, 0, at)
    if count == 1:
        count = new.shape[at]
        positions = broadcast_to(shape.reshape(asarray(positions), (1,)), (count,))
    dims = (*x.shape[:at], count, *x.shape[at + 1 :])
    try:
        new = broadcast_to(new, dims)
    except ValueError:
        raise ValueError(
            f"insert: values of shape {new.shape} do not broadcast to the inserted shape {dims}."
        ) from None
    return _insert(x, positions, new, at)


@library_function(static=("axis", "count"))
def _delete(x: Any, positions: Any, axis: int, count: int) -> Any:
    """x without the elements at positions: a stable sort by a mark of deleted elements puts the others first."""
    n = type_of(x).shape[axis]
    i = _counted_from_front(positions, n)
    axes = indexing.ScatterAxes((), (0,), (0,))
    gone = shape.full(ArrayType((n,), dtypes.bool_), False)
    updates = shape.full(ArrayType(type_of(i).shape, dtypes.bool_), True)
    gone = bind(indexing.Scatter(axes, "set", "drop"), gone, shape.reshape(i, (*type_of(i).shape, 1)), updates)
    order = sorting.sort((gone, shape.iota(type_of(i).dtype, (n,), 0)), 0)[1]
    return _read(x, shape.slice_in_axis(order, 0, n - count, 0), axis)


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[int],
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Remove the rows at indices:

    an integer, a slice, a mask, or an integer array. A traced array of indices needs `assume_unique_indices=True`,
    because duplicates would change the shape.

    >>> import atled.numpy as jnp
    >>> jnp.delete(jnp.arange(5), jnp.array([0, 2]))
    Array([1, 3, 4], dtype=int32)
    """
    x, at = flat_or_axis("delete", arr, axis)
    n = x.shape[at]
    positions = _edit_positions("delete", obj, n, n - 1)
    count = type_of(positions).size
    if count == 0:
        return x
    if type_of(positions).ndim and not assume_unique_indices:
        known = known_index(positions)
        if known is None:
            raise ConcretizationTypeError(
                positions._explained(
                    f"delete: the shape of the result depends on the number of distinct positions in a traced "
                    f"{positions.type}.",
                    "assume_unique_indices=True if none is repeated.",
                )
            )
        positions = np.unique(np.where(known < 0, known + n, known)).astype(index_dtype(n))
        count = positions.size
    return _delete(x, positions, at, count)


@library_function(static=("dims",))
def _resize(x: Any, dims: tuple[int, ...]) -> Any:
    t = type_of(x)
    size = prod(dims)
    if t.size == 0:
        return shape.zeros(ArrayType(dims, t.dtype))
    copies = -(-size // t.size)
    tiled = shape.reshape(shape.add_axis(shape.reshape(x, (t.size,)), copies), (copies * t.size,))
    return shape.reshape(shape.slice_in_axis(tiled, 0, size, 0), dims)


def resize(a: ArrayLike, new_shape: SupportsIndex | Sequence[SupportsIndex]) -> Array:
    """An array of another shape, filled with the elements in order, repeated as needed; zeros if there are none.

    >>> import atled.numpy as jnp
    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    return _resize(asarray(a), static_shape("resize", new_shape))


def _refuse_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise NotImplementedError(
            f"{name}: arrays are immutable, and the changed one is returned.\n  try: x = {name}(x, ..., inplace=False)"
        )


@library_function(static=("wrap",))
def _fill_diagonal(a: Any, val: Any, wrap: bool) -> Any:
    t = operand_type("fill_diagonal", a)
    if t.ndim < 2 or (t.ndim > 2 and len(set(t.shape)) > 1):
        raise ValueError(f"fill_diagonal: a matrix is needed, or an array whose axes are equally long; got {t}.")
    if t.size == 0:
        return a
    if t.ndim == 2:
        step = t.shape[1] + 1
        end = t.size if wrap else min(t.shape[1] * t.shape[1], t.size)
    else:
        step, end = sum([t.shape[0] ** k for k in range(t.ndim)]), t.size
    count = -(-end // step)
    values = cast(val, t.dtype)
    v = type_of(values)
    if v.size == 0:
        raise ValueError(f"fill_diagonal: at least one value is needed; got {v}.")
    row = _resize(values, (count,)) if v.size != 1 else shape.broadcast(shape.reshape(values, ()), (count,), ())
    spread = [(0, t.size - (count - 1) * step - 1, step - 1)]
    mask = shape.pad(shape.full(ArrayType((count,), dtypes.bool_), True), np.False_, spread)
    new = shape.pad(row, np.zeros((), t.dtype), spread)
    return shape.reshape(ew.select(mask, new, shape.reshape(a, (t.size,))), t.shape)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """Replace the main diagonal by values, repeated as needed; with `wrap`, it continues in a tall matrix.

    >>> import atled.numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    _refuse_in_place("fill_diagonal", inplace)
    return _fill_diagonal(asarray(a), val if not isinstance(val, (list, tuple)) else asarray(val), bool(wrap))


@library_function(static=("mode",))
def _put(a: Any, ind: Any, v: Any, mode: str | None) -> Any:
    t, count = type_of(a), type_of(ind).size
    n = t.size
    if count == 0:
        return a
    if n == 0:
        raise ValueError(f"put: an empty array has no positions; got {t}.")
    i = shape.reshape(ind, (count,))
    if mode == "wrap":
        i = remainder(conversion.convert(i, index_dtype(n)), np.asarray(n, index_dtype(n)))
    elif mode is None:
        i = _counted_from_front(i, n)
    else:
        i = conversion.convert(i, index_dtype(n))
    values = _resize(cast(v, t.dtype), (count,))
    axes = indexing.ScatterAxes((), (0,), (0,))
    flat = bind(indexing.Scatter(axes, "set", "clip"), shape.reshape(a, (n,)), shape.reshape(i, (count, 1)), values)
    return shape.reshape(flat, t.shape)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """Write values at indices of the flattened array; too few values are repeated.

    Indices out of bounds are clipped, or wrapped around with mode "wrap". There is no mode "raise".

    >>> import atled.numpy as jnp
    >>> jnp.put(jnp.arange(4), jnp.array([0, -1]), 9, inplace=False)
    Array([9, 1, 2, 9], dtype=int32)
    """
    _refuse_in_place("put", inplace)
    if mode not in (None, "clip", "wrap"):
        raise NotImplementedError(f"put: the mode is 'clip' or 'wrap'; got {mode!r}.")
    positions = asarray(ind, np.int32) if isinstance(ind, (list, tuple)) and not len(ind) else asarray(ind)
    if positions.type.kind not in "iu":
        raise TypeError(f"put: positions must be integers; got {positions.type}.")
    x = asarray(a)
    values = asarray(v, x.dtype)
    if values.size == 0 and positions.size:
        raise ValueError(f"put: at least one value is needed; got {values.type}.")
    return _put(x, positions, values, mode)


@library_function(static=("axis", "mode"))
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int, mode: str) -> Any:
    t = type_of(arr)
    others = tuple([k for k in range(t.ndim) if k != axis])
    dims = tuple([type_of(indices).shape[axis] if k == axis else n for k, n in enumerate(t.shape)])
    i = broadcast_to(indices, dims)
    if mode != "clip":
        i = _counted_from_front(i, t.shape[axis])
    new = broadcast_to(cast(values, t.dtype), dims)
    axes = indexing.ScatterAxes((), (axis,), (axis,), others, others)
    return bind(indexing.Scatter(axes, "set", mode), arr, shape.reshape(i, (*dims, 1)), new)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Write values along an axis at per-element indices, such as those returned by `argsort`.

    Writes out of bounds are dropped, or clipped with mode "clip".

    >>> put_along_axis(np.zeros((2, 2), "int32"), asarray([[1], [0]]), 7, 1, inplace=False)
    Array([[0, 7],
           [7, 0]], dtype=int32)
    """
    _refuse_in_place("put_along_axis", inplace)
    kinds = {None: "drop", "drop": "drop", "fill": "drop", "clip": "clip", "promise_in_bounds": "promise"}
    if mode not in kinds:
        raise ValueError(f"put_along_axis: the mode is 'drop', 'clip' or 'promise_in_bounds'; got {mode!r}.")
    full = asarray(arr)
    x, at = flat_or_axis("put_along_axis", full, axis)
    i = asarray(indices)
    if i.type.kind not in "iu":
        raise TypeError(f"put_along_axis: indices must be integers; got {i.type}.")
    if i.ndim != x.ndim:
        raise ValueError(
            f"put_along_axis: array and indices must have the same number of axes; got {x.type} and {i.type}."
        )
    out = _put_along_axis(x, i, values if not isinstance(values, (list, tuple)) else asarray(values), at, kinds[mode])
    return shape.reshape(out, full.shape)


@library_function
def _place(arr: Any, mask: Any, vals: Any) -> Any:
    t = type_of(arr)
    chosen = shape.reshape(to_bool("place", mask), (t.size,))
    values = cast(vals, t.dtype)
    count = type_of(values).size
    if count == 1:
        new = shape.broadcast(shape.reshape(values, ()), (t.size,), ())
    else:
        turn = ew.sub(cumulative.cumsum(conversion.convert(chosen, dtypes.int32), 0), 1)
        new = _read(shape.reshape(values, (count,)), remainder(turn, np.asarray(count, dtypes.int32)), 0)
    return shape.reshape(ew.select(chosen, new, shape.reshape(arr, (t.size,))), t.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Replace the elements where a mask is true by values, in order, repeated as needed.

    >>> import atled.numpy as jnp
    >>> jnp.place(jnp.arange(5), jnp.array([True, False, True, True, False]), jnp.array([7, 8]), inplace=False)
    Array([7, 1, 8, 7, 4], dtype=int32)
    """
    _refuse_in_place("place", inplace)
    x, m = asarray(arr), asarray(mask)
    if m.size != x.size:
        raise ValueError(f"place: array and mask must have the same number of elements; got {x.type} and {m.type}.")
    values = asarray(vals, x.dtype)
    if values.size == 0:
        if m.size == 0:
            return x
        raise ValueError(f"place: at least one value is needed; got {values.type}.")
    return _place(x, m, values)
