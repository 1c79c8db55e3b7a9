"""Segment reductions: combine the rows with the same segment id."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.ops import conversion, indexing, placement, reduction, shape
from atled.ops.elementwise_family import check_order


def _segments(
    combine: str, data: Any, ids: Any, count: int | None, is_sorted: bool, is_unique: bool, mode: str | None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    t, i = type_of(data), type_of(ids)
    if i.kind not in "iu" or i.shape != t.shape[: i.ndim]:
        raise TypeError(f"segments: segment_ids must be integers that match the leading axes of {t}; got {i}.")
    check_order("segments", combine, t)
    if count is None:
        count = int(np.max(np.asarray(ids), initial=-1)) + 1
    start = {
        "add": 0,
        "mul": 1,
        "min": reduction.highest(t.dtype) if combine == "min" else 0,
        "max": reduction.lowest(t.dtype) if combine == "max" else 0,
    }
    board = shape.full(ArrayType((count, *t.shape[i.ndim :]), t.dtype), start[combine])
    window = tuple(range(i.ndim, t.ndim))
    axes = indexing.ScatterAxes(window, (0,), (0,))
    wide = i.dtype if dtypes.bits(i.dtype) >= 32 else dtypes.int32
    vectors = shape.reshape(conversion.convert(ids, wide), (*i.shape, 1))
    kind = {None: "drop", "drop": "drop", "fill": "drop", "clip": "clip", "promise_in_bounds": "promise"}[mode]
    out = bind(indexing.Scatter(axes, combine, kind, is_unique, is_sorted), board, vectors, data)
    return out if out_sharding is None else placement.with_sharding_constraint(out, out_sharding)


def segment_sum(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: None = None, mode: str | None = None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The sum of the rows of each segment; by default, rows with an id out of range are ignored.

    >>> import atled.numpy as jnp
    >>> segment_sum(jnp.array([1.0, 2.0, 4.0]), jnp.array([0, 0, 1]), 2)
    Array([3., 4.], dtype=float32)
    """
    return _segments("add", data, segment_ids, num_segments, indices_are_sorted, unique_indices, mode, out_sharding)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
                 unique_indices: bool = False, bucket_size: None = None, mode: str | None = None,
                 out_sharding: Any = None) -> Any:  # fmt: skip
    """The product of the rows of each segment."""
    return _segments("mul", data, segment_ids, num_segments, indices_are_sorted, unique_indices, mode, out_sharding)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
                unique_indices: bool = False, bucket_size: None = None, mode: str | None = None,
                out_sharding: Any = None) -> Any:  # fmt: skip
    """The largest elements of each segment; the lowest value of the dtype for an empty segment."""
    return _segments("max", data, segment_ids, num_segments, indices_are_sorted, unique_indices, mode, out_sharding)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
                unique_indices: bool = False, bucket_size: None = None, mode: str | None = None,
                out_sharding: Any = None) -> Any:  # fmt: skip
    """The smallest elements of each segment; the highest value of the dtype for an empty segment."""
    return _segments("min", data, segment_ids, num_segments, indices_are_sorted, unique_indices, mode, out_sharding)
