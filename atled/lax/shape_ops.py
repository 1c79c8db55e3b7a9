"""Ops that create arrays or move their elements: `iota`, `full`, `broadcast_in_dim`, `reshape`, `pad`, `slice`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.numpy.creation import located
from atled.numpy.promotion import broadcast_shapes as _broadcast_shapes
from atled.ops import shape as _shape
from atled.ops.placement import placed


def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """An array broadcast along new leading axes.

    >>> broadcast(iota("int32", 3), (2,))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    t = type_of(operand)
    out = _shape.broadcast(operand, (*sizes, *t.shape), tuple(range(len(sizes), len(sizes) + t.ndim)))
    return placed(out, out_sharding, "broadcast")


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array broadcast to a shape, with its axes at the positions `broadcast_dimensions`.

    >>> broadcast_in_dim(iota("int32", 2), (2, 3), (0,))
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32)
    """
    return placed(_shape.broadcast(operand, shape, broadcast_dimensions), out_sharding, "broadcast_in_dim")


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape to which shapes broadcast.

    >>> broadcast_shapes((2, 1), (1, 3), (3,))
    (2, 3)
    """
    return _broadcast_shapes(*shapes)


def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """0, 1, 2, ... along one axis of a shape.

    >>> broadcasted_iota("int32", (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    return placed(_shape.iota(dtype, shape, dimension), out_sharding, "broadcasted_iota")


def iota(dtype: DTypeLike, size: int) -> Array:
    """The integers 0, 1, 2, ... up to size - 1, as an array of a dtype.

    >>> iota("float32", 4)
    Array([0., 1., 2., 3.], dtype=float32)
    """
    return _shape.iota(dtype, (size,), 0)


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The same elements in another shape; with `dimensions`, the axes are transposed first.

    >>> reshape(broadcasted_iota("int32", (2, 3), 1), (6,))
    Array([0, 1, 2, 0, 1, 2], dtype=int32)
    >>> reshape(broadcasted_iota("int32", (2, 3), 1), (6,), dimensions=(1, 0))  # columns first
    Array([0, 0, 1, 1, 2, 2], dtype=int32)
    """
    x = operand if dimensions is None else transpose(operand, dimensions)
    return placed(_shape.reshape(x, new_sizes), out_sharding, "reshape")


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """An array with its axes permuted.

    >>> transpose(full((2, 3, 5), 0), (2, 0, 1)).shape
    (5, 2, 3)
    """
    return _shape.transpose(operand, permutation)


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Concatenate arrays along an axis.

    >>> concatenate([iota("int32", 2), full((1,), 7)], 0)
    Array([0, 1, 7], dtype=int32)
    """
    return _shape.concatenate(operands, dimension)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split an array along an axis into parts of given lengths.

    >>> split(iota("int32", 3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    return list(_shape.split(operand, sizes, check_axis("split", axis, type_of(operand).ndim)))


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """An array with (low, high, interior) elements added on each axis.

    >>> pad(iota("int32", 3), 9, [(1, 0, 1)])
    Array([9, 0, 9, 1, 9, 2], dtype=int32)
    """
    return _shape.pad(operand, padding_value, padding_config)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order along axes.

    >>> rev(iota("int32", 3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    return _shape.reverse(operand, tuple(dimensions))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove axes of length one.

    >>> squeeze(full((1, 3, 1), 0), (0, 2)).shape
    (3,)
    """
    dims = type_of(array).shape
    gone = check_axes("squeeze", tuple(dimensions), len(dims))
    return _shape.reshape(array, [n for i, n in enumerate(dims) if i not in gone])


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """An array with new axes of length one.

    >>> expand_dims(iota("int32", 3), (0, 2)).shape
    (1, 3, 1)
    """
    dims = type_of(array).shape
    total = len(dims) + len(dimensions)
    new = check_axes("expand_dims", tuple(dimensions), total)
    rest = iter(dims)
    return _shape.reshape(array, [1 if i in new else next(rest) for i in range(total)])


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """An array with neighbouring axes merged into one.

    >>> collapse(full((2, 3, 4), 0), 1).shape
    (2, 12)
    """
    dims = type_of(operand).shape
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(dims))
    return _shape.reshape(operand, (*dims[:start], prod(dims[start:stop]), *dims[stop:]))


def full(
    shape: int | tuple[int, ...] | list[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: Any = None,
) -> Array:
    """An array filled with one value.

    >>> full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32)
    """
    value = (
        fill_value
        if dtype is None and hasattr(fill_value, "dtype")
        else np.asarray(fill_value, dtypes.canonical(dtype or type_of(fill_value).dtype))
    )
    out = _shape.broadcast(value, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), ())
    return located(out, sharding, name="full")


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | tuple[int, ...] | list[int] | None = None,
    sharding: Any = None,
) -> Array:
    """An array filled with one value, with the shape and dtype of another array.

    >>> full_like(iota("int32", 3), 7), full_like(iota("int32", 3), 7, "float32")
    (Array([7, 7, 7], dtype=int32), Array([7., 7., 7.], dtype=float32))
    """
    t = type_of(x)
    return full(t.shape if shape is None else shape, fill_value, dtype or t.dtype, sharding=sharding)


def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros with the shape and dtype of another array.

    >>> zeros_like_array(iota("int32", 3))
    Array([0, 0, 0], dtype=int32)
    """
    return full_like(x, 0)


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """The elements from start up to limit on each axis, at intervals of the stride.

    >>> slice(iota("int32", 6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    return _shape.slice(operand, start_indices, limit_indices, strides)
