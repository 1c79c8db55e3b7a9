"""NumPy's `tile`, which repeats whole arrays, and `repeat`, which repeats elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axis
from atled.core.errors import ConcretizationTypeError
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.trace import Tracer
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_to as _broadcast_to
from atled.numpy.promotion import operand_type
from atled.numpy.shapes import ravel
from atled.ops import conversion, cumulative, indexing, reduction, shape
from atled.ops import elementwise as ew
from atled.ops.placement import placed
from atled.staging.jit import library_function


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
    axes = [i for i in range(len(wide)) if i != axis + 1]
    return shape.reshape(shape.broadcast(a, wide, axes), (*dims[:axis], dims[axis] * count, *dims[axis + 1 :]))


@library_function(static=("total", "axis"))
def _repeat_counts(a: Any, counts: Any, total: int, axis: int) -> Any:
    """Repeat element i counts[i] times; the cumulative sum of the counts gives the source of each output position."""
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
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Each element repeated along an axis; traced counts need `total_repeat_length`, the length of the result.

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
            counts._explained(
                f"repeat: the length of the result depends on the counts, which are not known here; got {counts.type}.",
                "total_repeat_length=n, which fixes the length.",
            )
        )
    if total_repeat_length is None:
        total_repeat_length = int(np.sum(np.asarray(counts)) * (x.shape[at] if counts.size == 1 else 1))
    return _repeat_counts(x, counts, total_repeat_length, at)
