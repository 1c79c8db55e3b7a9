"""NumPy's functions that move elements: reshape, transpose, join, split, repeat, roll, pad."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import Any, overload

import numpy as np

from atled.core import dtypes, errors, rewriting
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.errors import ConcretizationTypeError
from atled.core.trace import Tracer
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes, operand_type, promote_dtypes
from atled.numpy.promotion import broadcast_to as _broadcast_to
from atled.ops import conversion, cumulative, indexing, reduction, shape
from atled.ops import elementwise as ew
from atled.ops.placing import placed
from atled.staging.jit import library_function, refuse_out


def _dividing(dims: Sequence[int], size: int) -> str:
    known = prod([n for n in dims if n != -1])
    return f"lengths whose product divides {size}; {known} does not."


def _resolved(dims: Sequence[Any], size: int) -> tuple[int, ...]:
    """A shape with one length possibly given as -1."""
    out = [d.__index__() for d in dims]
    if out.count(-1) > 1 or any(n < -1 for n in out):
        raise ValueError(
            f"reshape: a shape holds one -1 at most, and no other negative length; got {tuple(out)}."
            "\n  try: -1 for one axis, and the lengths of the others."
        )
    if -1 in out:
        known = prod([n for n in out if n != -1])
        if known == 0 or size % known:
            raise TypeError(
                f"reshape: the number of elements must stay the same; got {size} elements for shape {tuple(out)}."
                f"\n  try: {_dividing(out, size)}"
            )
        out[out.index(-1)] = size // known
    return tuple(out)


@library_function(static=("shape", "order", "copy", "out_sharding"), is_thin=True)
def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Array:
    """The same elements in another shape; one length may be -1.

    >>> reshape(np.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int64)
    """
    t = operand_type("reshape", a)
    dims = _resolved(shape if isinstance(shape, (tuple, list)) else (shape,), t.size)
    if order == "C":
        return placed(_ops_reshape(a, dims), out_sharding, "reshape")
    if order != "F":
        raise ValueError(f"reshape: the order is 'C' or 'F'; got {order!r}.")
    turned = _ops_transpose(a, range(t.ndim)[::-1])
    out = _ops_transpose(_ops_reshape(turned, dims[::-1]), range(len(dims))[::-1])
    return placed(out, out_sharding, "reshape")


_ops_reshape, _ops_transpose = shape.reshape, shape.transpose


@library_function(static=("order", "out_sharding"), is_thin=True)
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one row.

    >>> ravel(asarray([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    t = operand_type("ravel", a)
    if order == "F":
        a = shape.transpose(a, range(t.ndim)[::-1])
    elif order not in ("C", "K", "A"):
        raise ValueError(f"ravel: the order is 'C' or 'F'; got {order!r}.")
    return placed(shape.reshape(a, (t.size,)), out_sharding, "ravel")


@library_function(static=("axes",), is_thin=True)
def transpose(a: ArrayLike, axes: Any = None) -> Array:
    """The axes in another order; reversed by default.

    >>> transpose(np.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    t = operand_type("transpose", a)
    order = tuple(range(t.ndim))[::-1] if axes is None else tuple([check_axis("transpose", i, t.ndim) for i in axes])
    if len(order) != t.ndim or len(set(order)) != t.ndim:
        raise ValueError(
            f"transpose: {axes} is not a permutation of the {t.ndim} axes of {t}."
            f"\n  try: each of {tuple(range(t.ndim))} once, or swapaxes to exchange two."
        )
    return shape.transpose(a, order)


permute_dims = transpose


@library_function(is_thin=True)
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes exchanged.

    >>> matrix_transpose(np.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    t = operand_type("matrix_transpose", x)
    if t.ndim < 2:
        raise ValueError(f"matrix_transpose: at least two axes are needed; got {t}.")
    return shape.transpose(x, (*range(t.ndim - 2), t.ndim - 1, t.ndim - 2))


@library_function(static=("axis1", "axis2"), is_thin=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two axes exchanged.

    >>> swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    t = operand_type("swapaxes", a)
    i, j = (check_axis("swapaxes", v, t.ndim) for v in (axis1, axis2))
    order = list(range(t.ndim))
    order[i], order[j] = order[j], order[i]
    return shape.transpose(a, order)


@library_function(static=("source", "destination"), is_thin=True)
def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """Axes moved to other positions; the rest keep their order.

    >>> moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    t = operand_type("moveaxis", a)
    sources, targets = (check_axes("moveaxis", v, t.ndim) for v in (source, destination))
    if len(sources) != len(targets):
        raise ValueError(f"moveaxis: as many sources as destinations are needed; got {source} and {destination}.")
    order = [i for i in range(t.ndim) if i not in sources]
    for target, s in sorted(zip(targets, sources, strict=True)):
        order.insert(target, s)
    return shape.transpose(a, order)


@library_function(static=("axis", "start"), is_thin=True)
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """An axis rolled back until it lies at a position.

    >>> rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    t = operand_type("rollaxis", a)
    i = check_axis("rollaxis", axis, t.ndim)
    start = start + t.ndim if start < 0 else start
    order = [k for k in range(t.ndim) if k != i]
    order.insert(start - (start > i), i)
    return shape.transpose(a, order)


@library_function(static=("axis",), is_thin=True)
def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """New axes of length one.

    >>> expand_dims(np.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    t = operand_type("expand_dims", a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = check_axes("expand_dims", axis, t.ndim + count)
    rest = iter(t.shape)
    return shape.reshape(a, [1 if i in axes else next(rest) for i in range(t.ndim + count)])


@library_function(static=("axis",), is_thin=True)
def squeeze(a: ArrayLike, axis: Any = None) -> Array:
    """Axes of length one taken away.

    >>> squeeze(np.ones((1, 3, 1))).shape
    (3,)
    """
    t = operand_type("squeeze", a)
    axes = tuple(i for i, n in enumerate(t.shape) if n == 1) if axis is None else check_axes("squeeze", axis, t.ndim)
    if any(t.shape[i] != 1 for i in axes):
        raise ValueError(
            f"squeeze: only axes of length one can be taken away; got {t} and axis {axis}.\n  try: {_singletons(t)}"
        )
    return shape.reshape(a, [n for i, n in enumerate(t.shape) if i not in axes])


def _singletons(t: ArrayType) -> str:
    found = [str(i) for i, n in enumerate(t.shape) if n == 1]
    return (
        f"axis={' or '.join(found)}, of length 1."
        if found
        else "x[0] to take one element of the axis, or x.mean(axis)."
    )


@library_function(static=("shape", "out_sharding"), is_thin=True)
def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: Any = None) -> Array:
    """An array repeated into a larger shape.

    >>> broadcast_to(asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    operand_type("broadcast_to", array)
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return placed(_broadcast_to(array, dims), out_sharding, "broadcast_to")


@library_function
def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """Arrays repeated into one common shape.

    >>> [x.shape for x in broadcast_arrays(np.ones((3, 1)), np.ones(2))]
    [(3, 2), (3, 2)]
    """
    dims = broadcast_shapes(*[operand_type("broadcast_arrays", x).shape for x in args])
    return tuple([_broadcast_to(x, dims) for x in args])


# -- joining ----------------------------------------------------------------------------------------------------------


def _sequence(name: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, Array):
        return [arrays[i] for i in range(len(arrays))]
    if isinstance(arrays, np.ndarray):
        return list(arrays)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            errors.explained(
                f"{name}: a list or tuple of arrays is needed; got {describe(arrays)}.", f"{name}([x, y])."
            )
        )
    if not arrays:
        raise ValueError(f"{name}: at least one array is needed.")
    return list(arrays)


@library_function(static=("axis", "dtype"))
def _concatenate(arrays: list[Any], axis: int | None, dtype: Any) -> Any:
    xs = _common("concatenate", arrays, dtype)
    if axis is None:
        return shape.concatenate([shape.reshape(x, (type_of(x).size,)) for x in xs], 0)
    first = type_of(xs[0])
    if first.ndim == 0:
        raise ValueError(
            f"concatenate: arrays must have an axis to be joined along; got {first}."
            "\n  try: stack, which makes a new axis."
        )
    return shape.concatenate(xs, check_axis("concatenate", axis, first.ndim))


def _common(name: str, arrays: Sequence[Any], dtype: Any = None) -> list[Any]:
    xs = promote_dtypes(name, *arrays)
    return [conversion.convert(x, dtypes.canonical(dtype)) for x in xs] if dtype is not None else xs


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Arrays one after another along an axis.

    >>> concatenate([np.zeros(2, "float32"), np.ones(1, "float32")])
    Array([0., 0., 1.], dtype=float32)
    """
    if isinstance(axis, (Array, np.ndarray)) and type_of(axis).ndim:
        raise TypeError(
            errors.explained(
                f"concatenate: the arrays come as one list, and then the axis; got {type_of(axis)} as the axis.",
                rewriting.called_with("[{0}, {1}]", function="concatenate") or "concatenate([x, y]).",
            )
        )
    return _concatenate(_sequence("concatenate", arrays), axis, dtype)


concat = concatenate


@library_function(static=("axis", "dtype"))
def _stack(arrays: list[Any], axis: int, dtype: Any) -> Any:
    xs = _common("stack", arrays, dtype)
    first = type_of(xs[0])
    if any(type_of(x).shape != first.shape for x in xs):
        raise ValueError(
            f"stack: arrays must have one shape; got {', '.join(str(type_of(x)) for x in xs)}."
            "\n  try: concatenate to join them along an axis they have, or pad the shorter ones."
        )
    at = check_axis("stack", axis, first.ndim + 1)
    dims = (*first.shape[:at], 1, *first.shape[at:])
    return shape.concatenate([shape.reshape(x, dims) for x in xs], at)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """Arrays of one shape side by side along a new axis.

    >>> stack([asarray([1, 2]), asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    return _stack(_sequence("stack", arrays), axis, dtype)


@library_function(static=("axis", "dtype"))
def _joined(arrays: Any, axis: int, dtype: Any = None) -> Any:
    """Arrays, with as many axes as it takes, joined along one of them; along the second, 1-d arrays as they are."""
    xs = [(atleast_2d, atleast_1d, atleast_3d)[axis](x) for x in arrays]
    return concatenate(xs, 0 if axis == 1 and xs[0].ndim == 1 else axis, dtype)


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays one below another.

    >>> vstack((asarray([1, 2]), asarray([3, 4])))
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return _joined(_sequence("vstack", tup), 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays side by side.

    >>> hstack((asarray([1, 2]), asarray([3])))
    Array([1, 2, 3], dtype=int32)
    """
    return _joined(_sequence("hstack", tup), 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays one behind another.

    >>> dstack((asarray([1, 2]), asarray([3, 4])))
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return _joined(_sequence("dstack", tup), 2, dtype)


@library_function
def _column_stack(arrays: Any) -> Any:
    return concatenate([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in map(asarray, arrays)], 1)


def column_stack(tup: Any) -> Array:
    """1-d arrays as columns of a matrix.

    >>> column_stack((asarray([1, 2]), asarray([3, 4])))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _column_stack(_sequence("column_stack", tup))


def block(arrays: Any) -> Array:
    """Arrays put together from nested lists of blocks.

    >>> block([[np.eye(2, dtype="int32"), np.zeros((2, 1), "int32")]])
    Array([[1, 0, 0],
           [0, 1, 0]], dtype=int32)
    """

    def depth(x: Any) -> int:
        return 1 + max(map(depth, x)) if isinstance(x, list) else 0

    levels = depth(arrays)

    def leaves(x: Any) -> list[Any]:
        return [v for item in x for v in leaves(item)] if isinstance(x, list) else [x]

    ndim = max(levels, *[asarray(x).ndim for x in leaves(arrays)])

    def build(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            found = asarray(x)
            return reshape(found, (1,) * (ndim - found.ndim) + found.shape)
        return concatenate([build(v, level - 1) for v in x], -level)

    return build(arrays, levels)


@library_function
def _atleast_1d(x: Any) -> Any:
    return shape.reshape(x, type_of(x).shape or (1,))


@library_function
def _atleast_2d(x: Any) -> Any:
    dims = type_of(x).shape
    return shape.reshape(x, (1,) * (2 - len(dims)) + dims)


@library_function
def _atleast_3d(x: Any) -> Any:
    dims = type_of(x).shape
    return shape.reshape(x, {0: (1, 1, 1), 1: (1, *dims, 1), 2: (*dims, 1)}[len(dims)])


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays with at least one axis.

    >>> atleast_1d(5)
    Array([5], dtype=int32, weak_type=True)
    """
    if len(arys) == 1:
        x = arys[0] if isinstance(arys[0], Array) else asarray(arys[0])
        return x if x.ndim >= 1 else _atleast_1d(x)
    return [atleast_1d(x) for x in arys]


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with at least two axes.

    >>> atleast_2d(asarray([1, 2]))
    Array([[1, 2]], dtype=int32)
    """
    if len(arys) == 1:
        x = arys[0] if isinstance(arys[0], Array) else asarray(arys[0])
        return x if x.ndim >= 2 else _atleast_2d(x)
    return [atleast_2d(x) for x in arys]


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with at least three axes.

    >>> atleast_3d(np.ones((2, 3))).shape
    (2, 3, 1)
    """
    if len(arys) == 1:
        x = arys[0] if isinstance(arys[0], Array) else asarray(arys[0])
        return x if x.ndim >= 3 else _atleast_3d(x)
    return [atleast_3d(x) for x in arys]


# -- splitting --------------------------------------------------------------------------------------------------------


@library_function(static=("bounds", "axis"))
def _split(ary: Any, bounds: tuple[int, ...], axis: int) -> list[Any]:
    edges = [0, *bounds, type_of(ary).shape[axis]]
    if edges == sorted(edges):
        return list(shape.split(ary, np.diff(edges).tolist(), axis))
    return [shape.slice_in_axis(ary, min(a, b), b, axis) for a, b in itertools.pairwise(edges)]


def _bounds(name: str, length: int, sections: Any, is_exact: bool) -> tuple[int, ...]:
    if isinstance(sections, (int, np.integer)):
        n = int(sections)
        if n <= 0 or (is_exact and length % n):
            raise ValueError(
                errors.explained(
                    f"{name}: {length} elements cannot be split into {n} equal parts.",
                    "array_split, whose parts may differ by one, or a list of the positions to split at.",
                )
            )
        sizes = [length // n + (i < length % n) for i in range(n)]
        return tuple(np.cumsum(sizes)[:-1].tolist())
    points = [int(i) for i in np.asarray(sections)]
    return tuple([min(max(p + length if p < 0 else p, 0), length) for p in points])


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """An array cut into equal parts, or at positions, along an axis.

    >>> split(asarray([1, 2, 3, 4]), 2)
    [Array([1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    x = asarray(ary)
    at = check_axis("split", axis, x.ndim)
    return _split(x, _bounds("split", x.shape[at], indices_or_sections, True), at)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """An array cut into nearly equal parts, or at positions, along an axis.

    >>> array_split(asarray([1, 2, 3]), 2)
    [Array([1, 2], dtype=int32), Array([3], dtype=int32)]
    """
    x = asarray(ary)
    at = check_axis("array_split", axis, x.ndim)
    return _split(x, _bounds("array_split", x.shape[at], indices_or_sections, False), at)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """An array cut along its first axis.

    >>> [x.shape for x in vsplit(np.ones((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """An array cut along its second axis, or its first if there is only one.

    >>> hsplit(asarray([1, 2, 3, 4]), [1])
    [Array([1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    return split(ary, indices_or_sections, 0 if asarray(ary).ndim == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """An array cut along its third axis.

    >>> [x.shape for x in dsplit(np.ones((2, 2, 6)), 3)]
    [(2, 2, 2), (2, 2, 2), (2, 2, 2)]
    """
    return split(ary, indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    >>> unstack(asarray([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    array = asarray(x)
    at = check_axis("unstack", axis, array.ndim)
    return tuple(_unstack(array, at))


@library_function(static=("axis",))
def _unstack(x: Any, axis: int) -> list[Any]:
    return [shape.index_in_axis(x, i, axis) for i in range(type_of(x).shape[axis])]


# -- repeating, turning, rolling --------------------------------------------------------------------------------------


@library_function(static=("reps",))
def _tile(a: Any, reps: tuple[int, ...]) -> Any:
    t = operand_type("tile", a)
    n = max(t.ndim, len(reps))
    dims = (1,) * (n - t.ndim) + t.shape
    counts = (1,) * (n - len(reps)) + reps
    split = [v for c, d in zip(counts, dims, strict=True) for v in (c, d)]
    spread = shape.broadcast(shape.reshape(a, dims), split, tuple(range(1, 2 * n, 2)))
    return shape.reshape(spread, [c * d for c, d in zip(counts, dims, strict=True)])


def tile(A: ArrayLike, reps: Any) -> Array:  # noqa: N803
    """An array repeated as a whole along each axis.

    >>> tile(asarray([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    return _tile(A, tuple(int(r) for r in reps) if np.ndim(reps) else (int(reps),))


@library_function(static=("count", "axis"))
def _repeat_each(a: Any, count: int, axis: int) -> Any:
    dims = type_of(a).shape
    wide = (*dims[: axis + 1], count, *dims[axis + 1 :])
    kept = [i for i in range(len(wide)) if i != axis + 1]
    return shape.reshape(shape.broadcast(a, wide, kept), (*dims[:axis], dims[axis] * count, *dims[axis + 1 :]))


@library_function(static=("total", "axis"))
def _repeat_counts(a: Any, counts: Any, total: int, axis: int) -> Any:
    """Element i comes counts[i] times: each output position finds its source by counting the ends before it."""
    dims = type_of(a).shape
    n = dims[axis]
    if 0 in dims:
        if n == 0 and total:
            raise ValueError(f"repeat: an axis of length 0 has nothing to repeat; got {type_of(a)} for length {total}.")
        return shape.reshape(a, (*dims[:axis], total, *dims[axis + 1 :]))
    counts = conversion.convert(counts, dtypes.int32)
    ends = cumulative.cumsum(_broadcast_to(counts, (n,)), 0)
    position = shape.iota(dtypes.int32, (total, n), 0)
    source = reduction.reduce_sum(
        conversion.convert(ew.ge(position, shape.broadcast(ends, (total, n), (1,))), dtypes.int32), (1,)
    )
    source = ew.minimum(source, n - 1)
    vectors = shape.reshape(source, (total, 1))
    axes = indexing.GatherAxes(tuple([i for i in range(len(dims)) if i != axis]), (axis,), (axis,))
    sizes = tuple([1 if i == axis else d for i, d in enumerate(dims)])
    return indexing.bind(indexing.Gather(axes, sizes, "clip"), a, vectors)


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Each element repeated; `total_repeat_length` fixes the length where the counts are traced.

    >>> repeat(asarray([1, 2]), asarray([2, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    return placed(_repeated(a, repeats, axis, total_repeat_length), out_sharding, "repeat")


def _repeated(a: Any, repeats: Any, axis: int | None, total_repeat_length: int | None) -> Any:
    x = asarray(a)
    if axis is None:
        x, axis = ravel(x), 0
    at = check_axis("repeat", axis, x.ndim)
    if isinstance(repeats, (int, np.integer)):
        out = _repeat_each(x, int(repeats), at)
        return out if total_repeat_length is None else shape.slice_in_axis(out, 0, total_repeat_length, at)
    counts = asarray(repeats)
    if counts.ndim == 0:
        counts = _broadcast_to(counts, (x.shape[at],))
    if total_repeat_length is None and isinstance(counts, Tracer) and counts.known() is None:
        raise ConcretizationTypeError(
            f"repeat: the length of the result depends on the counts, which are not known here; got {counts.type}."
            + counts._where()
            + "\n  try: total_repeat_length=n, which fixes the length."
        )
    if total_repeat_length is None:
        total_repeat_length = int(np.sum(np.asarray(counts)) * (x.shape[at] if counts.size == 1 else 1))
    return _repeat_counts(x, counts, total_repeat_length, at)


@library_function(static=("axis",), is_thin=True)
def flip(m: ArrayLike, axis: Any = None) -> Array:
    """The order along axes turned around.

    >>> flip(asarray([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    t = operand_type("flip", m)
    return shape.reverse(m, check_axes("flip", axis, t.ndim))


def fliplr(m: ArrayLike) -> Array:
    """Columns in reverse order.

    >>> fliplr(asarray([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Rows in reverse order.

    >>> flipud(asarray([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


@library_function(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """A quarter turn, k times, in the plane of two axes.

    >>> rot90(asarray([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    t = operand_type("rot90", m)
    i, j = check_axes("rot90", tuple(axes), t.ndim)
    k %= 4
    order = list(range(t.ndim))
    order[i], order[j] = order[j], order[i]
    if k == 0:
        return m  # pyright: ignore[reportReturnType]
    if k == 2:
        return shape.reverse(m, (i, j))
    return shape.transpose(shape.reverse(m, (j,)), order) if k == 1 else shape.reverse(shape.transpose(m, order), (j,))


@library_function(static=("axis",))
def _roll(a: Any, shift: Any, axis: tuple[int, ...]) -> Any:
    """Roll by amounts that may be data: a doubled axis, and a window into it."""
    out = a
    for n, at in enumerate(axis):
        length = type_of(out).shape[at]
        if length == 0:
            continue
        by = shift[n] if isinstance(shift, (tuple, list)) else shift
        if isinstance(by, (int, np.integer)):
            k = int(by) % length
            parts = [shape.slice_in_axis(out, length - k, length, at), shape.slice_in_axis(out, 0, length - k, at)]
            out = shape.concatenate(parts, at) if k else out
            continue
        start = conversion.convert(remainder(ew.neg(by), np.asarray(length, type_of(by).dtype)), dtypes.int32)
        doubled = shape.concatenate([out, out], at)
        zero = np.zeros((), dtypes.int32)
        starts = [start if i == at else zero for i in range(type_of(out).ndim)]
        out = indexing.dynamic_slice(doubled, starts, type_of(out).shape)
    return out


@library_function
def _roll_flat(a: Any, shifts: tuple[Any, ...]) -> Any:
    return reshape(_roll(ravel(a), shifts, (0,) * len(shifts)), type_of(a).shape)


def roll(a: ArrayLike, shift: Any, axis: Any = None) -> Array:
    """Elements moved along axes; what falls off comes back at the other end.

    >>> roll(asarray([1, 2, 3, 4]), 1)
    Array([4, 1, 2, 3], dtype=int32)
    """
    x = asarray(a)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    if axis is None:
        return _roll_flat(x, shifts)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if len(shifts) == 1 and len(axes) > 1:
        shifts = shifts * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    return _roll(x, shifts, tuple([check_axis("roll", i, x.ndim) for i in axes]))


@library_function(static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Values at the end of an array; flattened if no axis is given.

    >>> append(asarray([1, 2]), asarray([3]))
    Array([1, 2, 3], dtype=int32)
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


@library_function(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangle of the last two axes; zero above the k-th diagonal.

    >>> tril(asarray([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle(m, k, True)


@library_function(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangle of the last two axes; zero below the k-th diagonal.

    >>> triu(asarray([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle(m, k, False)


def _triangle(m: Any, k: int, lower: bool) -> Any:
    t = operand_type("tril" if lower else "triu", m)
    if t.ndim < 2:
        raise ValueError(f"{'tril' if lower else 'triu'}: at least two axes are needed; got {t}.")
    rows, columns = (shape.iota(dtypes.int32, t.shape[-2:], i) for i in (0, 1))
    edge = ew.add(rows, k)
    keep = ew.ge(edge, columns) if lower else ew.le(edge, columns)
    keep = shape.broadcast(keep, t.shape, (t.ndim - 2, t.ndim - 1))
    return ew.select(keep, m, np.zeros((), t.dtype))


def flat_or_axis(name: str, arr: Any, axis: int | None) -> tuple[Any, int]:
    """An array and a valid axis; the flat array if no axis is given."""
    x = asarray(arr)
    return (ravel(x), 0) if axis is None else (x, check_axis(name, axis, x.ndim))
