"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Sequence

from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axis
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.ops import reduction
from atled.ops.placement import placed


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """The sum over axes.

    >>> from atled import lax
    >>> reduce_sum(lax.full((2, 3), 1), (1,))
    Array([3, 3], dtype=int32)
    """
    return placed(reduction.reduce_sum(operand, tuple(axes)), out_sharding, "reduce_sum")


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over axes.

    >>> import atled.numpy as jnp
    >>> reduce_prod(jnp.array([[1, 5], [4, 2]]), (1,))
    Array([5, 8], dtype=int32)
    """
    return reduction.reduce_prod(operand, tuple(axes))


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The largest element over axes.

    >>> import atled.numpy as jnp
    >>> reduce_max(jnp.array([[1, 5], [4, 2]]), (1,))
    Array([5, 4], dtype=int32)
    """
    return reduction.reduce_max(operand, tuple(axes))


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The smallest element over axes.

    >>> import atled.numpy as jnp
    >>> reduce_min(jnp.array([[1, 5], [4, 2]]), (0,))
    Array([1, 2], dtype=int32)
    """
    return reduction.reduce_min(operand, tuple(axes))


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise and over axes: for bools, whether all hold.

    >>> import atled.numpy as jnp
    >>> reduce_and(jnp.array([[True, True], [True, False]]), (1,))
    Array([ True, False], dtype=bool)
    """
    return reduction.reduce_and(operand, tuple(axes))


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise or over axes: for bools, whether any holds.

    >>> import atled.numpy as jnp
    >>> reduce_or(jnp.array([[0b01, 0b10], [0b00, 0b10]]), (1,))
    Array([3, 2], dtype=int32)
    """
    return reduction.reduce_or(operand, tuple(axes))


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise exclusive or over axes.

    >>> import atled.numpy as jnp
    >>> reduce_xor(jnp.array([True, True, True]), (0,))  # whether an odd number holds
    Array(True, dtype=bool)
    """
    return reduction.reduce_xor(operand, tuple(axes))


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the first largest element along an axis.

    >>> import atled.numpy as jnp
    >>> argmax(jnp.array([[1, 5, 5], [7, 2, 3]]), 1, "int32")
    Array([1, 0], dtype=int32)
    """
    return reduction.argmax(operand, check_axis("argmax", axis, type_of(operand).ndim), index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the first smallest element along an axis.

    >>> import atled.numpy as jnp
    >>> argmin(jnp.array([[4, 1, 1], [7, 2, 0]]), 1, "int32")
    Array([1, 2], dtype=int32)
    """
    return reduction.argmin(operand, check_axis("argmin", axis, type_of(operand).ndim), index_dtype)
