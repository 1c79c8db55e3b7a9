"""NumPy's functions that rearrange elements: reshape, transpose, broadcast, flip, roll."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, SupportsIndex, overload

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes, operand_type
from atled.numpy.promotion import broadcast_to as _broadcast_to
from atled.ops import conversion, indexing, shape
from atled.ops import elementwise as ew
from atled.ops.placement import placed
from atled.staging.jit import library_function


def _dividing(dims: Sequence[int], size: int) -> str:
    known = prod([n for n in dims if n != -1])
    return f"lengths whose product divides {size}; {known} does not."


def _resolved(dims: Sequence[Any], size: int) -> tuple[int, ...]:
    """The shape of `size` elements, with the length that is given as -1 computed from the others."""
    out = [d.__index__() for d in dims]
    if out.count(-1) > 1 or any(n < -1 for n in out):
        raise ValueError(
            f"reshape: a shape has at most one -1, and no other negative length; got {tuple(out)}."
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
def reshape(
    a: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex],
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
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
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """The array flattened to one axis.

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
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with permuted axes; reversed by default.

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
    """The array with its last two axes exchanged.

    >>> matrix_transpose(np.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    t = operand_type("matrix_transpose", x)
    if t.ndim < 2:
        raise ValueError(f"matrix_transpose: at least two axes are needed; got {t}.")
    return shape.transpose(x, (*range(t.ndim - 2), t.ndim - 1, t.ndim - 2))


@library_function(static=("axis1", "axis2"), is_thin=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    >>> swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    t = operand_type("swapaxes", a)
    i, j = (check_axis("swapaxes", v, t.ndim) for v in (axis1, axis2))
    order = list(range(t.ndim))
    order[i], order[j] = order[j], order[i]
    return shape.transpose(a, order)


@library_function(static=("source", "destination"), is_thin=True)
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with axes moved to other positions; the other axes keep their order.

    >>> moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    t = operand_type("moveaxis", a)
    sources, targets = (check_axes("moveaxis", v, t.ndim) for v in (source, destination))
    if len(sources) != len(targets):
        raise ValueError(f"moveaxis: source and destination must have the same length; got {source} and {destination}.")
    order = [i for i in range(t.ndim) if i not in sources]
    for target, s in sorted(zip(targets, sources, strict=True)):
        order.insert(target, s)
    return shape.transpose(a, order)


@library_function(static=("axis", "start"), is_thin=True)
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with an axis moved before the axis `start`.

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
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """The array with new axes of length one.

    >>> expand_dims(np.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    t = operand_type("expand_dims", a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = check_axes("expand_dims", axis, t.ndim + count)
    rest = iter(t.shape)
    return shape.reshape(a, [1 if i in axes else next(rest) for i in range(t.ndim + count)])


@library_function(static=("axis",), is_thin=True)
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Remove axes of length one.

    >>> squeeze(np.ones((1, 3, 1))).shape
    (3,)
    """
    t = operand_type("squeeze", a)
    axes = tuple(i for i, n in enumerate(t.shape) if n == 1) if axis is None else check_axes("squeeze", axis, t.ndim)
    if any(t.shape[i] != 1 for i in axes):
        raise ValueError(
            f"squeeze: only axes of length one can be removed; got {t} and axis {axis}.\n  try: {_singletons(t)}"
        )
    return shape.reshape(a, [n for i, n in enumerate(t.shape) if i not in axes])


def _singletons(t: ArrayType) -> str:
    axes = [str(i) for i, n in enumerate(t.shape) if n == 1]
    return (
        f"axis={' or '.join(axes)}, of length 1." if axes else "x[0] to take one element of the axis, or x.mean(axis)."
    )


@library_function(static=("shape", "out_sharding"), is_thin=True)
def broadcast_to(
    array: ArrayLike,
    shape: int | tuple[int, ...] | list[int],
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array broadcast to a shape.

    >>> broadcast_to(asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    operand_type("broadcast_to", array)
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return placed(_broadcast_to(array, dims), out_sharding, "broadcast_to")


@library_function
def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """Arrays broadcast to a common shape.

    >>> [x.shape for x in broadcast_arrays(np.ones((3, 1)), np.ones(2))]
    [(3, 2), (3, 2)]
    """
    dims = broadcast_shapes(*[operand_type("broadcast_arrays", x).shape for x in args])
    return tuple([_broadcast_to(x, dims) for x in args])


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


# -- turning, rolling -------------------------------------------------------------------------------------------------


@library_function(static=("axis",), is_thin=True)
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """The array with its elements in reverse order along axes.

    >>> flip(asarray([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    t = operand_type("flip", m)
    return shape.reverse(m, check_axes("flip", axis, t.ndim))


def fliplr(m: ArrayLike) -> Array:
    """The array with its columns (second axis) in reverse order.

    >>> fliplr(asarray([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """The array with its rows (first axis) in reverse order.

    >>> flipud(asarray([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


@library_function(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array rotated by 90 degrees, k times, in the plane of two axes.

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
    """Roll by amounts that may be traced: slice a window from the array concatenated with itself."""
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


def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | tuple[int, ...] | list[int] | None = None
) -> Array:
    """Roll elements along axes; those shifted off one end reappear at the other.

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


def flat_or_axis(name: str, arr: Any, axis: int | None) -> tuple[Any, int]:
    """An array and its checked, non-negative axis; without an axis, the flattened array and 0."""
    x = asarray(arr)
    return (ravel(x), 0) if axis is None else (x, check_axis(name, axis, x.ndim))
