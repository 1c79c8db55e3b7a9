"""Stacking, tiling and broadcasting; approximate top-k, grouped matrix products, the upper half of integer products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axis
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.higher_order.scan import scan
from atled.lax.precision import PrecisionLike
from atled.ops import contraction, conversion, shape, sorting
from atled.ops import elementwise as ew
from atled.ops.placement import placed
from atled.staging.jit import library_function


def dtype(x: Any) -> Any:
    """The dtype of an array or number; a dtype is returned unchanged.

    >>> dtype(jnp.array([1, 2])), dtype(1.0)
    (dtype('int32'), dtype('float32'))
    """
    return dtypes.canonical(x) if isinstance(x, (np.dtype, type)) else type_of(x).dtype


def empty(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array whose values are unspecified; here they are zeros.

    >>> empty((2, 3), "int8").shape
    (2, 3)
    """
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Stack arrays of the same type along a new axis.

    >>> stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    types = {type_of(x) for x in operands}
    if len({(t.shape, t.dtype) for t in types}) != 1:
        raise TypeError(f"stack: operands must have the same shape and dtype; got {sorted(map(repr, types))}.")
    return jnp.stack(operands, axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, each without that axis.

    >>> unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    return tuple(jnp.unstack(x, axis=axis))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """An array repeated along each of its axes.

    >>> tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    t = type_of(operand)
    if len(reps) != t.ndim:
        raise ValueError(f"tile: one number for each axis of {t} is needed; got {tuple(reps)}.")
    return jnp.tile(operand, tuple(reps))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """An array with leading axes of length 1, so that it has `rank` axes.

    >>> broadcast_to_rank(jnp.ones((2, 3)), 4).shape
    (1, 1, 2, 3)
    """
    t = type_of(x)
    if rank < t.ndim:
        raise ValueError(f"broadcast_to_rank: the rank must be at least that of {t}; got {rank}.")
    return shape.reshape(x, (1,) * (rank - t.ndim) + t.shape)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """An array broadcast to the shape of another one.

    >>> broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    return jnp.broadcast_to(arr, type_of(like_arr).shape)


def _approximate(name: str, operand: Any, k: int, axis: int, aggregates: bool, sign: int) -> tuple[Any, Any]:
    t = type_of(operand)
    if t.kind != "f":
        raise TypeError(f"{name}: floating-point numbers are needed; got {t}.")
    if not aggregates:
        raise NotImplementedError(f"{name}: the result is exact, so aggregate_to_topk must be True.")
    axis = check_axis(name, axis, t.ndim)
    moved = shape.move_axis(operand if sign > 0 else ew.neg(operand), axis, t.ndim - 1)
    values, places = sorting.top_k(moved, k)
    values = values if sign > 0 else ew.neg(values)
    return shape.move_axis(values, t.ndim - 1, axis), shape.move_axis(places, t.ndim - 1, axis)


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The k largest elements along an axis and their positions; exact, regardless of `recall_target`.

    >>> approx_max_k(jnp.array([3.0, 1.0, 2.0]), 2)
    (Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    return _approximate("approx_max_k", operand, k, reduction_dimension, aggregate_to_topk, 1)


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The k smallest elements along an axis and their positions; exact, regardless of `recall_target`.

    >>> approx_min_k(jnp.array([3.0, 1.0, 2.0]), 2)
    (Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32))
    """
    return _approximate("approx_min_k", operand, k, reduction_dimension, aggregate_to_topk, -1)


@library_function
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the double-width product of two integers.

    >>> mulhi(jnp.array([2**31], "uint32"), jnp.array([6], "uint32"))
    Array([3], dtype=uint32)
    """
    s, t = type_of(x), type_of(y)
    if s.kind not in "iu" or s.dtype is not t.dtype or (s.shape != t.shape and () not in (s.shape, t.shape)):
        raise TypeError(f"mulhi: integers of the same dtype and shape are needed; got {s} and {t}.")
    width = dtypes.bits(s.dtype)
    if width < 64:
        wide = np.dtype(f"{'u' * (s.kind == 'u')}int{2 * width}")
        product = ew.mul(conversion.convert(x, wide), conversion.convert(y, wide))
        right = ew.shift_right_logical if s.kind == "u" else ew.shift_right_arithmetic
        return conversion.convert(right(product, width), s.dtype)
    # long multiplication in halves; the upper half is signed, the lower one is not
    right = ew.shift_right_logical if s.kind == "u" else ew.shift_right_arithmetic
    low = lambda v: ew.logical_and(v, 0xFFFFFFFF)  # noqa: E731
    (a, b), (c, d) = ((right(v, 32), low(v)) for v in (x, y))
    middle = ew.add(ew.mul(a, d), ew.shift_right_logical(ew.mul(b, d), 32))
    other = ew.add(ew.mul(b, c), low(middle))
    return ew.add(ew.add(ew.mul(a, c), right(middle, 32)), right(other, 32))


@library_function(static=("precision", "preferred"))
def _ragged_dot(lhs: Any, rhs: Any, group_sizes: Any, precision: Any, preferred: Any) -> Any:
    rows = jnp.arange(type_of(lhs).shape[0])
    ends = jnp.cumsum(group_sizes)
    numbers = (((1,), (0,)), ((), ()))
    one = lambda r: contraction.dot_general(lhs, r, *numbers, precision, preferred)  # noqa: E731

    def step(total: Any, given: Any) -> tuple[Any, None]:
        matrix, end, size = given
        is_mine = (rows >= end - size) & (rows < end)
        return jnp.where(is_mine[:, None], one(matrix), total), None

    start = jnp.zeros_like(one(rhs[0]))
    return scan(step, start, (rhs, ends, group_sizes))[0]


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Multiply each group of rows of a matrix by its own matrix; rows beyond the last group give zeros.

    Every matrix is multiplied by all rows, so the cost is proportional to the number of groups.

    >>> import atled.numpy as jnp
    >>> ragged_dot(jnp.ones((3, 1)), jnp.array([[[1.0]], [[2.0]]]), jnp.array([1, 2])).ravel()
    Array([1., 2., 2.], dtype=float32)
    """
    a, b, g = type_of(lhs), type_of(rhs), type_of(group_sizes)
    if a.ndim != 2 or b.ndim != 3 or g.shape != b.shape[:1] or a.shape[1] != b.shape[1] or g.kind not in "iu":
        raise TypeError(
            f"ragged_dot: rows (m, k), matrices (g, k, n) and g group sizes are needed; got {a}, {b} and {g}."
        )
    if group_offset is not None:
        raise NotImplementedError("ragged_dot: group_offset is not supported; slice rhs and group_sizes.")
    result_dtype = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    product = _ragged_dot(lhs, rhs, group_sizes, contraction.precision_name(precision), result_dtype)
    return placed(product, out_sharding, "ragged_dot")
