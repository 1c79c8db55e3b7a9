"""Grids, index arrays and edits of arrays: insert and delete, meshgrid, triangles and diagonals, bits, spaced numbers.

Functions that change an array in place in NumPy (`put`, `place`, `fill_diagonal`, ...) return the changed array, and
want to be told so with `inplace=False`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.core.axes import check_axis
from atled.core.errors import ConcretizationTypeError
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import arange, asarray, linspace, ones, static_shape
from atled.numpy.elementwise import to_bool
from atled.numpy.indexing import _index_dtype
from atled.numpy.promotion import broadcast, broadcast_shapes, broadcast_to, cast, operand_type, promote_inexact
from atled.numpy.shapes import concatenate, ravel, stack
from atled.ops import conversion, cumulative, elementary, indexing, reduction, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = [
    "c_", "delete", "diag_indices", "diag_indices_from", "fill_diagonal", "geomspace", "index_exp", "insert", "ix_",
    "logspace", "mask_indices", "meshgrid", "mgrid", "ogrid", "packbits", "place", "put", "put_along_axis", "r_",
    "resize", "s_", "tri", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from", "unpackbits",
]  # fmt: skip


def _known(x: Any) -> Any:
    """The values of an index, or None if it is traced and they are not known."""
    value = x.known() if isinstance(x, Tracer) else x
    return None if value is None else np.asarray(value)


def _flat_or_axis(name: str, arr: Any, axis: int | None) -> tuple[Any, int]:
    """An array and a valid axis; the flat array if no axis is given."""
    x = asarray(arr)
    return (ravel(x), 0) if axis is None else (x, check_axis(name, axis, x.ndim))


def _read(x: Any, positions: Any, axis: int) -> Any:
    """Rows of x along an axis at positions that are inside."""
    t = type_of(x)
    axes = indexing.GatherAxes(tuple([k for k in range(t.ndim) if k != axis]), (axis,), (axis,))
    sizes = tuple([1 if k == axis else n for k, n in enumerate(t.shape)])
    vectors = shape.reshape(positions, (*type_of(positions).shape, 1))
    return bind(indexing.Gather(axes, sizes, "clip"), x, vectors)


# -- edits ------------------------------------------------------------------------------------------------------------


def _edit_positions(name: str, obj: Any, n: int, last: int) -> Any:
    """Where to edit an axis of length n: an integer array, its known values checked to lie in -n ... last."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n), dtype=np.int32)
    if isinstance(obj, (list, tuple)) and not len(obj):
        return np.zeros(0, np.int32)
    index: Any = obj if isinstance(obj, Array) else np.asarray(obj)
    t = type_of(index)
    if t.ndim > 1:
        raise ValueError(f"{name}: positions are a scalar, a slice or a 1-d array; got {t}.")
    known = _known(index)
    if t.kind == "b":
        if known is None:
            raise ConcretizationTypeError(
                f"{name}: a traced mask {t} selects an unknown number of positions." + index._where()
                + "\n  try: an integer array of fixed length, such as numpy.nonzero(mask, size=n) gives."
            )  # fmt: skip
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
    dtype = _index_dtype(2 * n)
    i = conversion.convert(positions, dtype)
    return ew.select(ew.lt(i, 0), ew.add(i, np.asarray(n, dtype)), i) if type_of(positions).kind == "i" else i


@library_function(static=("axis",))
def _insert(x: Any, positions: Any, values: Any, axis: int) -> Any:
    """Sort old and new elements by doubled position, with new elements just before old ones."""
    n = type_of(x).shape[axis]
    i = ew.clamp(0, _counted_from_front(positions, n), n)
    dtype = type_of(i).dtype
    old = ew.add(ew.mul(shape.iota(dtype, (n,), 0), 2), 1)
    keys = shape.concatenate([old, ew.mul(i, 2)], 0)
    order = sorting.sort((keys, shape.iota(dtype, type_of(keys).shape, 0)), 0)[1]
    return _read(shape.concatenate([x, values], axis), order, axis)


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with values put in before positions: an integer, a slice, a mask, or integers that may be traced.

    >>> import atled.numpy as jnp
    >>> jnp.insert(jnp.arange(4), jnp.array([1, 3]), jnp.array([10, 30]))
    Array([ 0, 10,  1,  2, 30,  3], dtype=int32)
    """
    x, at = _flat_or_axis("insert", arr, axis)
    n = x.shape[at]
    positions = _edit_positions("insert", obj, n, n)
    count = type_of(positions).size
    new = asarray(values, x.dtype)
    new = shape.reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
    if type_of(positions).ndim == 0:
        new = shape.move_axis(new, 0, at)  # at one position, the first axis of the values counts what is inserted
    if count == 1:
        count = new.shape[at]
        positions = broadcast_to(shape.reshape(asarray(positions), (1,)), (count,))
    dims = (*x.shape[:at], count, *x.shape[at + 1 :])
    try:
        new = broadcast_to(new, dims)
    except ValueError:
        raise ValueError(
            f"insert: values of shape {new.shape} do not broadcast to the {dims} that are inserted."
        ) from None
    return _insert(x, positions, new, at)


@library_function(static=("axis", "count"))
def _delete(x: Any, positions: Any, axis: int, count: int) -> Any:
    """Mark deleted elements and sort stably by the mark; the remaining elements come first, in order."""
    n = type_of(x).shape[axis]
    i = _counted_from_front(positions, n)
    axes = indexing.ScatterAxes((), (0,), (0,))
    gone = shape.full(ArrayType((n,), dtypes.bool_), False)
    updates = shape.full(ArrayType(type_of(i).shape, dtypes.bool_), True)
    gone = bind(indexing.Scatter(axes, "set", "drop"), gone, shape.reshape(i, (*type_of(i).shape, 1)), updates)
    order = sorting.sort((gone, shape.iota(type_of(i).dtype, (n,), 0)), 0)[1]
    return _read(x, shape.slice_in_axis(order, 0, n - count, 0), axis)


def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """An array without the rows at positions, which are an integer, a slice, a mask, or integers.

    A traced array of positions needs `assume_unique_indices=True`, because repeated ones would change the shape.

    >>> import atled.numpy as jnp
    >>> jnp.delete(jnp.arange(5), jnp.array([0, 2]))
    Array([1, 3, 4], dtype=int32)
    """
    x, at = _flat_or_axis("delete", arr, axis)
    n = x.shape[at]
    positions = _edit_positions("delete", obj, n, n - 1)
    count = type_of(positions).size
    if count == 0:
        return x
    if type_of(positions).ndim and not assume_unique_indices:
        known = _known(positions)
        if known is None:
            raise ConcretizationTypeError(
                f"delete: the shape depends on how many different positions there are in a traced {positions.type}."
                + positions._where() + "\n  try: assume_unique_indices=True if none is repeated."
            )  # fmt: skip
        positions = np.unique(np.where(known < 0, known + n, known)).astype(_index_dtype(n))
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


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """An array of another shape, filled with the elements in order, again and again; zeros if there are none.

    >>> import atled.numpy as jnp
    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    return _resize(asarray(a), static_shape("resize", new_shape))


# -- writes -----------------------------------------------------------------------------------------------------------


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
    """An array with its main diagonal replaced by values, again and again; with `wrap` a tall matrix has several.

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
        raise ValueError(f"put: an empty array has no places; got {t}.")
    i = shape.reshape(ind, (count,))
    if mode == "wrap":
        i = remainder(conversion.convert(i, _index_dtype(n)), np.asarray(n, _index_dtype(n)))
    elif mode is None:
        i = _counted_from_front(i, n)
    else:
        i = conversion.convert(i, _index_dtype(n))
    values = _resize(cast(v, t.dtype), (count,))
    axes = indexing.ScatterAxes((), (0,), (0,))
    flat = bind(indexing.Scatter(axes, "set", "clip"), shape.reshape(a, (n,)), shape.reshape(i, (count, 1)), values)
    return shape.reshape(flat, t.shape)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """An array with values written at positions of the flat array; fewer values are repeated.

    Positions out of bounds are moved inside, or with mode "wrap" counted round. There is no mode "raise".

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
    """An array with values written along an axis at per-element positions, such as those returned by `argsort`.

    Writes out of bounds are dropped, or with mode "clip" moved inside.

    >>> put_along_axis(np.zeros((2, 2), "int32"), asarray([[1], [0]]), 7, 1, inplace=False)
    Array([[0, 7],
           [7, 0]], dtype=int32)
    """
    _refuse_in_place("put_along_axis", inplace)
    kinds = {None: "drop", "drop": "drop", "fill": "drop", "clip": "clip", "promise_in_bounds": "promise"}
    if mode not in kinds:
        raise ValueError(f"put_along_axis: the mode is 'drop', 'clip' or 'promise_in_bounds'; got {mode!r}.")
    full = asarray(arr)
    x, at = _flat_or_axis("put_along_axis", full, axis)
    i = asarray(indices)
    if i.type.kind not in "iu":
        raise TypeError(f"put_along_axis: indices must be integers; got {i.type}.")
    if i.ndim != x.ndim:
        raise ValueError(f"put_along_axis: array and indices must have as many axes; got {x.type} and {i.type}.")
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
    """An array with the elements where a mask holds replaced by values, in order, again and again.

    >>> import atled.numpy as jnp
    >>> jnp.place(jnp.arange(5), jnp.array([True, False, True, True, False]), jnp.array([7, 8]), inplace=False)
    Array([7, 1, 8, 7, 4], dtype=int32)
    """
    _refuse_in_place("place", inplace)
    x, m = asarray(arr), asarray(mask)
    if m.size != x.size:
        raise ValueError(f"place: array and mask must have as many elements; got {x.type} and {m.type}.")
    values = asarray(vals, x.dtype)
    if values.size == 0:
        if m.size == 0:
            return x
        raise ValueError(f"place: at least one value is needed; got {values.type}.")
    return _place(x, m, values)


# -- grids and index arrays -------------------------------------------------------------------------------------------


@library_function(static=("copy", "sparse", "indexing"))
def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinates of a grid from vectors, one array for each; with indexing "xy" the first two axes are exchanged.

    >>> import atled.numpy as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ij")[1]
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij'; got {indexing!r}.")
    types = [operand_type("meshgrid", x) for x in xi]
    if any(t.ndim > 1 for t in types):
        raise ValueError(f"meshgrid: vectors are needed; got {', '.join(map(str, types))}.")
    places = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        places[:2] = [1, 0]
    dims = [0] * len(xi)
    for t, at in zip(types, places, strict=True):
        dims[at] = t.size
    out = []
    for x, t, at in zip(xi, types, places, strict=True):
        thin = [t.size if k == at else 1 for k in range(len(xi))]
        x = shape.reshape(cast(x, t.dtype, t.weak), thin)
        out.append(x if sparse else broadcast_to(x, tuple(dims)))
    return tuple(out)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Index arrays that pick the rows of one, the columns of the next, and so on; masks stand for where they hold.

    >>> import atled.numpy as jnp
    >>> jnp.arange(9).reshape(3, 3)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
    Array([[1, 2],
           [7, 8]], dtype=int32)
    """
    out = []
    for k, a in enumerate(args):
        x = asarray(a)
        if x.ndim != 1:
            raise ValueError(f"ix_: vectors are needed; got {x.type}.")
        if x.size == 0:
            x = asarray(np.zeros(0, dtypes.default("i")))
        elif x.type.kind == "b":
            known = _known(x)
            if known is None:
                raise ConcretizationTypeError(
                    f"ix_: a traced mask {x.type} selects an unknown number of rows." + x._where()
                    + "\n  try: numpy.nonzero(mask, size=n)[0] instead of the mask."
                )  # fmt: skip
            x = asarray(np.flatnonzero(known), dtypes.default("i"))
        out.append(shape.reshape(x, [x.size if j == k else 1 for j in range(len(args))]))
    return tuple(out)


@library_function(static=("n", "m", "k", "dtype"))
def _tri(n: int, m: int, k: int, dtype: Any) -> Any:
    rows, columns = (shape.iota(dtypes.int32, (n, m), i) for i in (0, 1))
    return conversion.convert(ew.ge(ew.add(rows, k), columns), dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:  # noqa: N803
    """Ones on and below a diagonal, zeros above.

    >>> tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    n, m = static_shape("tri", (N, N if M is None else M))
    return _tri(n, m, int(k), dtypes.canonical(float if dtype is None else dtype))


def _mask_positions(mask: np.ndarray) -> tuple[Any, Any]:
    rows, columns = np.nonzero(mask)
    dtype = dtypes.default("i")
    return asarray(rows.astype(dtype)), asarray(columns.astype(dtype))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the lower triangle of an (n, m) matrix.

    >>> tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = static_shape("tril_indices", (n, n if m is None else m))
    return _mask_positions(np.tri(rows, columns, int(k), bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle of an (n, m) matrix.

    >>> triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = static_shape("triu_indices", (n, n if m is None else m))
    return _mask_positions(~np.tri(rows, columns, int(k) - 1, bool))


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    dims = tuple(arr.shape) if hasattr(arr, "shape") else asarray(arr).shape
    if len(dims) != 2:
        raise ValueError(f"{name}: a matrix is needed; got shape {dims}.")
    return dims


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Rows and columns of the lower triangle of a matrix.

    >>> tril_indices_from(np.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle of a matrix.

    >>> triu_indices_from(np.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array with equally long axes.

    >>> diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    (length, count) = static_shape("diag_indices", (n, ndim))
    return (arange(length, dtype=int),) * count


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array.

    >>> diag_indices_from(np.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = asarray(arr)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ValueError(f"diag_indices_from: at least two axes, all equally long, are needed; got {x.type}.")
    return diag_indices(x.shape[0], x.ndim)


@library_function(static=("size",))
def _first_positions(mask: Any, size: int) -> tuple[Any, Any]:
    """Rows and columns of the first `size` true elements, in order; zeros if there are fewer."""
    t = type_of(mask)
    dtype = dtypes.default("i")
    flat = shape.reshape(to_bool("mask_indices", mask), (t.size,))
    order = sorting.sort((ew.logical_not(flat), shape.iota(dtype, (t.size,), 0)), 0)[1]
    order = shape.pad(order, np.zeros((), dtype), [(0, size - t.size, 0)])
    count = reduction.reduce_sum(conversion.convert(flat, dtype), (0,))
    order = ew.select(ew.lt(shape.iota(dtype, (size,), 0), count), order, np.zeros((), dtype))
    width = np.asarray(max(t.shape[1], 1), dtype)
    return ew.div(order, width), elementary.rem(order, width)


def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Rows and columns that a function such as `triu` leaves of an (n, n) matrix of ones.

    Under `jit` their number must be given as `size`; what is missing is filled with zeros.

    >>> mask_indices(2, np.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    mask = asarray(mask_func(ones((n, n)), k))
    if mask.ndim != 2:
        raise ValueError(f"mask_indices: the function must give a matrix; got {mask.type}.")
    if size is not None:
        return _first_positions(mask, size.__index__())
    known = _known(mask)
    if known is None:
        raise ConcretizationTypeError(
            f"mask_indices: how many elements of a traced {mask.type} are not zero is unknown."
            + mask._where()
            + "\n  try: size=n."
        )
    return _mask_positions(known != 0)


def _grid_vector(key: slice) -> Any:
    """What one slice of a grid stands for: numbers in steps, or with an imaginary step so many numbers."""
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if key.stop is None:
        raise ValueError("grid: a slice needs an end, such as 0:5 or 0:1:11j.")
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


class _Grid:
    """`mgrid[0:2, 0:3]`: the coordinates of a grid, all of them (`mgrid`) or one row for each axis (`ogrid`).

    >>> mgrid[0:2, 0:3].shape, [x.shape for x in ogrid[0:2, 0:3]]
    ((2, 2, 3), [(2, 1), (1, 3)])
    """

    def __init__(self, name: str, is_sparse: bool) -> None:
        self._name, self._is_sparse = name, is_sparse

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if any(not isinstance(k, slice) for k in keys):
            raise TypeError(f"{self._name}: slices are needed, such as {self._name}[0:2, 0:3]; got {describe(key)}.")
        vectors = [_grid_vector(k) for k in keys]
        if not isinstance(key, tuple):
            return vectors[0]
        if len({v.dtype for v in vectors}) > 1:
            vectors = [v.astype(dtypes.promote(*[(u.dtype, False) for u in vectors])[0]) for v in vectors]
        out = meshgrid(*vectors, sparse=self._is_sparse, indexing="ij")
        return out if self._is_sparse else stack(out) if out else asarray(np.zeros(0, dtypes.default("f")))

    def __repr__(self) -> str:
        return f"atled.numpy.{self._name}"


mgrid, ogrid = _Grid("mgrid", False), _Grid("ogrid", True)


class _Joined:
    """`r_[1:4, 0, x]`: slices, numbers and arrays joined along an axis; `c_` makes columns of vectors.

    A string first, "axis,ndim,place", says along which axis, with how many axes at least, and where the own axes of an
    array go among those. "r" and "c" give a row or a column.

    >>> r_[1:4, 0]
    Array([1, 2, 3, 0], dtype=int32)
    """

    def __init__(self, name: str, axis: int, ndim: int, place: int) -> None:
        self._name, self._settings = name, (axis, ndim, place)

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndim, place = self._settings
        form = ""
        if items and isinstance(items[0], str):
            text = items.pop(0)
            if text in ("r", "c"):
                form = text
            else:
                axis, ndim, place = self._parse(text)
        if any(isinstance(item, str) for item in items):
            raise ValueError(f"{self._name}: a string can only come first.")
        if not items:
            raise ValueError(f"{self._name}: at least one array, number or slice is needed.")
        out = concatenate([self._item(item, max(ndim, 1), place) for item in items], axis)
        if form and out.ndim == 1:
            return shape.reshape(out, (1, out.size) if form == "r" else (out.size, 1))
        return out

    def _parse(self, text: str) -> tuple[int, int, int]:
        try:
            given = [int(part) for part in text.split(",")]
        except ValueError:
            given = []
        if not 1 <= len(given) <= 3:
            raise ValueError(
                f"{self._name}: a string is 'r', 'c', or up to three integers, such as '0,2'; got {text!r}."
            )
        axis, ndim, place = (*given, *self._settings[len(given) :])
        return axis, ndim, place

    def _item(self, item: Any, ndim: int, place: int) -> Any:
        """An item with at least ndim axes; its own begin at `place` among them, counted from the end if negative."""
        x = _grid_vector(item) if isinstance(item, slice) else asarray(item)
        new = ndim - x.ndim
        if new <= 0:
            return x
        before = new if x.ndim == 0 else min(max(place if place >= 0 else new + 1 + place, 0), new)
        return shape.reshape(x, (*(1,) * before, *x.shape, *(1,) * (new - before)))

    def __repr__(self) -> str:
        return f"atled.numpy.{self._name}"


r_, c_ = _Joined("r_", 0, 1, -1), _Joined("c_", -1, 2, 0)
s_, index_exp = np.s_, np.index_exp


# -- bits -------------------------------------------------------------------------------------------------------------


def _bit_order(name: str, bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder is 'big' or 'little'; got {bitorder!r}.")


@library_function(static=("axis", "bitorder"))
def _packbits(x: Any, axis: int, bitorder: str) -> Any:
    t = type_of(x)
    count = -(-t.shape[axis] // 8)
    bits = conversion.convert(to_bool("packbits", x), dtypes.uint8)
    bits = shape.pad(bits, 0, [(0, count * 8 - n if k == axis else 0, 0) for k, n in enumerate(t.shape)])
    bits = shape.reshape(bits, (*t.shape[:axis], count, 8, *t.shape[axis + 1 :]))
    place = shape.iota(dtypes.uint8, type_of(bits).shape, axis + 1)
    place = ew.sub(7, place) if bitorder == "big" else place
    return reduction.reduce_sum(ew.shift_left(bits, place), (axis + 1,))


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight truth values along an axis in each byte; zeros fill the last one.

    >>> import atled.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    Array([131, 128], dtype=uint8)
    """
    _bit_order("packbits", bitorder)
    x, at = _flat_or_axis("packbits", a, axis)
    if x.type.kind not in "biu":
        raise TypeError(f"packbits: bools or integers are needed; got {x.type}.")
    return _packbits(x, at, bitorder)


@library_function(static=("axis", "count", "bitorder"))
def _unpackbits(x: Any, axis: int, count: int | None, bitorder: str) -> Any:
    t = type_of(x)
    dims = (*t.shape[: axis + 1], 8, *t.shape[axis + 1 :])
    place = shape.iota(dtypes.uint8, dims, axis + 1)
    place = ew.sub(7, place) if bitorder == "big" else place
    wide = shape.broadcast(x, dims, [k for k in range(len(dims)) if k != axis + 1])
    bits = ew.logical_and(ew.shift_right_logical(wide, place), 1)
    length = 8 * t.shape[axis]
    out = shape.reshape(bits, (*t.shape[:axis], length, *t.shape[axis + 1 :]))
    if count is None:
        return out
    wanted = count if count >= 0 else max(length + count, 0)
    return shape.pad(out, 0, [(0, wanted - length if k == axis else 0, 0) for k in range(t.ndim)])


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along an axis, as zeros and ones; `count` says how many, or if negative how many to leave off.

    >>> import atled.numpy as jnp
    >>> jnp.unpackbits(jnp.array([5], dtype="uint8"))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    _bit_order("unpackbits", bitorder)
    x, at = _flat_or_axis("unpackbits", a, axis)
    if x.dtype is not dtypes.uint8:
        raise TypeError(f"unpackbits: bytes (uint8) are needed; got {x.type}.")
    return _unpackbits(x, at, None if count is None else count.__index__(), bitorder)


# -- spaced numbers ---------------------------------------------------------------------------------------------------


@library_function(static=("num", "endpoint", "dtype", "axis"))
def _logspace(start: Any, stop: Any, base: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    exponents, base = promote_inexact("logspace", linspace(start, stop, num, endpoint, axis=axis), base)
    if type_of(base).ndim:  # a base for each sequence
        dims = (
            broadcast_shapes(type_of(shape.index_in_axis(exponents, 0, axis)).shape, type_of(base).shape)
            if num
            else None
        )
        if dims is None or len(dims) + 1 != type_of(exponents).ndim:
            raise ValueError(f"logspace: base {type_of(base)} does not broadcast with start and stop.")
        full = (*dims[:axis], num, *dims[axis:])
        grown = shape.reshape(broadcast_to(base, dims), (*dims[:axis], 1, *dims[axis:]))
        exponents, base = broadcast_to(exponents, full), broadcast_to(grown, full)
    out = elementary.pow(*broadcast("logspace", [base, exponents]))
    return conversion.convert(out, dtype or type_of(out).dtype)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Powers of a base, with evenly spaced exponents from start to stop.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    ndim = len(broadcast_shapes(operand_type("logspace", start).shape, operand_type("logspace", stop).shape))
    at = check_axis("logspace", axis, ndim + 1)
    return _logspace(
        start, stop, base, num.__index__(), bool(endpoint), None if dtype is None else dtypes.canonical(dtype), at
    )


@library_function(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    a, b = promote_inexact("geomspace", start, stop)
    dims = broadcast_shapes(type_of(a).shape, type_of(b).shape)
    a, b = broadcast_to(a, dims), broadcast_to(b, dims)
    t = type_of(a)
    full = (*dims[:axis], num, *dims[axis:])
    kept = tuple([k for k in range(len(full)) if k != axis])
    if num == 0:
        return shape.zeros(ArrayType(full, dtype or t.dtype))
    sign = elementary.sign(a)  # a phase, for complex numbers: the spiral starts on the positive real axis
    low, high = (elementary.log(ew.div(v, sign)) for v in (a, b))
    parts = num - 1 if endpoint else num
    count = shape.iota(t.dtype, full, axis)
    weight = ew.div(count, max(parts, 1))
    spread = lambda v: shape.broadcast(v, full, kept)  # noqa: E731
    exponent = ew.add(ew.mul(spread(low), ew.sub(1, weight)), ew.mul(spread(high), weight))
    out = ew.mul(elementary.exp(exponent), spread(sign))
    out = ew.select(ew.eq(count, 0), spread(a), out)
    if endpoint and num > 1:
        out = ew.select(ew.eq(count, parts), spread(b), out)
    return conversion.convert(out, dtype or t.dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers from start to stop that grow by the same factor; NaN where zero or a change of sign forbids it.

    >>> geomspace(1, 1000, 4).round()
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    ndim = len(broadcast_shapes(operand_type("geomspace", start).shape, operand_type("geomspace", stop).shape))
    at = check_axis("geomspace", axis, ndim + 1)
    return _geomspace(
        start, stop, num.__index__(), bool(endpoint), None if dtype is None else dtypes.canonical(dtype), at
    )
