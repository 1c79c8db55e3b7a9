"""Sorting along an axis, and the largest elements."""

from __future__ import annotations

from typing import Any

from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axis
from atled.ops import shape, sorting


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """An array sorted along an axis, or several arrays sorted together by the first `num_keys` of them.

    >>> from atled import lax
    >>> sort(lax.rev(lax.iota("int32", 3), (0,)))
    Array([0, 1, 2], dtype=int32)
    """
    several = isinstance(operand, (tuple, list))
    xs = tuple(operand) if several else (operand,)
    out = sorting.sort(xs, check_axis("sort", dimension, type_of(xs[0]).ndim), num_keys, is_stable)
    return out if several else out[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """The keys sorted along an axis, and the values permuted like them.

    >>> from atled import lax
    >>> sort_key_val(lax.rev(lax.iota("int32", 3), (0,)), lax.iota("int32", 3))
    (Array([0, 1, 2], dtype=int32), Array([2, 1, 0], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The k largest elements along an axis, largest first, and their positions.

    >>> from atled import lax
    >>> top_k(lax.rev(lax.iota("int32", 5), (0,)), 2)
    (Array([4, 3], dtype=int32), Array([0, 1], dtype=int32))
    """
    n = type_of(operand).ndim
    axis = check_axis("top_k", axis, n)
    if axis == n - 1:
        return sorting.top_k(operand, k)
    values, positions = sorting.top_k(shape.move_axis(operand, axis, n - 1), k)
    return shape.move_axis(values, n - 1, axis), shape.move_axis(positions, n - 1, axis)
