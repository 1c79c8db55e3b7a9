"""Slices and gathers of sparse arrays, and sums along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import lax
from atled import numpy as jnp
from atled.core import errors
from atled.core.array import type_of
from atled.jax.experimental.sparse.bcoo import BCOO, inside, limits, sparse_shape, stored, validated
from atled.jax.experimental.sparse.layout import batch_to_sparse, sum_duplicates
from atled.jax.experimental.sparse.shaping import bcoo_squeeze, bcoo_transpose, checked_axes, placed
from atled.staging.jit import library_function
from atled.transforms.vmap import vmap

__all__ = ["bcoo_dynamic_slice", "bcoo_gather", "bcoo_reduce_sum", "bcoo_slice"]


# -- slices -----------------------------------------------------------------------------------------------------------


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """The slice from `start_indices` up to `limit_indices`, exclusive, in steps of `strides`.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_slice(sparse.eye(3), start_indices=(1, 0), limit_indices=(3, 2)).todense()
    Array([[0., 1.],
           [0., 0.]], dtype=float32)
    """
    validated("bcoo_slice", mat)
    starts, ends = tuple([int(i) for i in start_indices]), tuple([int(i) for i in limit_indices])
    steps = (1,) * mat.ndim if strides is None else tuple([int(i) for i in strides])
    fits = len(starts) == len(ends) == len(steps) == mat.ndim
    if not fits or any([not 0 <= a <= b <= n for a, b, n in zip(starts, ends, mat.shape, strict=False)]):
        says = f"bcoo_slice: the slice must lie within the shape {mat.shape}; got {starts} to {ends}."
        raise ValueError(errors.explained(says))
    if any([s < 1 for s in steps]):
        raise ValueError(errors.explained(f"bcoo_slice: strides must be positive; got {steps}."))
    sizes = tuple([-(-(b - a) // s) for a, b, s in zip(starts, ends, steps, strict=True)])
    return _sliced(mat, list(starts), sizes, steps)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A slice of the static size `slice_sizes` at indices that may be traced, clamped to stay in bounds.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_dynamic_slice(sparse.eye(3), (2, 1), (1, 2)).todense()
    Array([[0., 1.]], dtype=float32)
    """
    validated("bcoo_dynamic_slice", mat)
    sizes = tuple([int(n) for n in slice_sizes])
    starts = list(start_indices)
    if len(starts) != mat.ndim or len(sizes) != mat.ndim:
        says = f"bcoo_dynamic_slice: each of {mat.ndim} axes needs a start and a size; got {len(starts)} and {sizes}."
        raise ValueError(errors.explained(says))
    if any([not 0 <= s <= n for s, n in zip(sizes, mat.shape, strict=True)]):
        says = f"bcoo_dynamic_slice: the slice must fit into the shape {mat.shape}; got {sizes}."
        raise TypeError(errors.explained(says))
    if any([type_of(s).shape != () or type_of(s).kind not in "iu" for s in starts]):
        raise TypeError(errors.explained("bcoo_dynamic_slice: starts must be integers, one for each axis."))
    starts = [jnp.asarray(s) for s in starts]
    starts = [jnp.where(s < 0, s + n, s) for s, n in zip(starts, mat.shape, strict=True)]
    starts = [jnp.clip(s, 0, n - size) for s, n, size in zip(starts, mat.shape, sizes, strict=True)]
    return _sliced(mat, starts, sizes, (1,) * mat.ndim)


def _sliced(mat: BCOO, starts: list[Any], sizes: tuple[int, ...], steps: tuple[int, ...]) -> BCOO:
    cut = _cut(mat, starts, sizes, steps)
    most = math.prod(sparse_shape(cut))
    return sum_duplicates(cut, most, False) if cut.nse > most else cut


@library_function(static=("sizes", "steps"))
def _cut(mat: BCOO, starts: list[Any], sizes: tuple[int, ...], steps: tuple[int, ...]) -> BCOO:
    data, indices = stored(mat)
    n, k, zero = mat.n_batch, mat.n_sparse, jnp.int32(0)
    strides = [*steps[:n], 1, *steps[n + k :]]
    spans = [(m - 1) * s + 1 if m else 0 for m, s in zip(sizes, steps, strict=True)]
    starts = [jnp.asarray(s, jnp.int32) for s in starts]

    def window(x: Any, starts: Any, spans: Any, strides: Any) -> Any:
        if list(spans) != list(x.shape):
            x = lax.dynamic_slice(x, starts, spans)
        return x[tuple([slice(None, None, s) for s in strides])]

    data = window(data, [*starts[:n], zero, *starts[n + k :]], [*spans[:n], mat.nse, *spans[n + k :]], strides)
    indices = window(indices, [*starts[:n], zero, zero], [*spans[:n], mat.nse, k], [*steps[:n], 1, 1])
    first = jnp.stack(starts[n : n + k]).astype(indices.dtype) if k else jnp.zeros(0, indices.dtype)
    stride = jnp.asarray(np.array(steps[n : n + k], indices.dtype))
    away = indices - first
    is_kept = (away >= 0) & (away % stride == 0) & (away // stride < limits(sizes[n : n + k], indices))
    is_kept = jnp.all(is_kept, -1) & inside(indices, sparse_shape(mat))
    return placed(data, away // stride, is_kept, sizes, n, mat.n_dense)


def bcoo_gather(
    operand: BCOO, start_indices: Any, dimension_numbers: Any, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None,
) -> BCOO:  # fmt: skip
    """Slices of the array at `start_indices`, with the arguments of `lax.gather`; axes of indices become batch axes.

    >>> import atled.numpy as jnp
    >>> from atled import lax
    >>> from atled.jax.experimental import sparse
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> bcoo_gather(sparse.eye(3), jnp.array([[2], [0]]), numbers, (1, 3), mode="clip").todense()
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    validated("bcoo_gather", operand)
    given = lax.GatherScatterMode.from_any("clip" if mode is None else mode)
    if given not in (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.PROMISE_IN_BOUNDS):
        says = f"bcoo_gather: the mode must be 'clip' or 'promise_in_bounds'; got {mode!r}."
        raise NotImplementedError(errors.explained(says, "x[i] instead of numpy.take(x, i)."))
    offset, collapsed, start_map, *batching = [tuple(v) for v in dimension_numbers]
    positions, sizes = jnp.asarray(start_indices), tuple([int(n) for n in slice_sizes])
    lead = positions.ndim - 1
    window = operand.ndim - len(collapsed)
    if any(batching) or offset != tuple(range(lead, lead + window)):
        says = f"bcoo_gather: the axes of start_indices must come first in the result; got {dimension_numbers}."
        raise NotImplementedError(errors.explained(says))

    def part(position: Any) -> BCOO:
        starts = [position[start_map.index(a)] if a in start_map else 0 for a in range(operand.ndim)]
        starts = [jnp.maximum(s, 0) for s in starts]
        block = bcoo_dynamic_slice(operand, starts, sizes)
        return bcoo_squeeze(block, dimensions=collapsed)

    for _ in range(lead):
        part = vmap(part)
    return part(positions)


# -- sums -------------------------------------------------------------------------------------------------------------


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum along axes. The result has as many entries as `mat`, so several may have the same indices.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense()
    Array([1., 1., 1.], dtype=float32)
    """
    validated("bcoo_reduce_sum", mat)
    axes = checked_axes("bcoo_reduce_sum", axes, mat.ndim)
    return _reduced(mat, tuple(sorted(axes)))


@library_function(static=("axes",))
def _reduced(mat: BCOO, axes: tuple[int, ...]) -> BCOO:
    first = [a for a in axes if a < mat.n_batch]
    if first:  # make the summed batch axes sparse
        other_axes = [a for a in range(mat.n_batch) if a not in first]
        order = (*other_axes, *first, *range(mat.n_batch, mat.ndim))
        axes = tuple([order.index(a) for a in axes])
        mat = batch_to_sparse(bcoo_transpose(mat, permutation=order), len(first))
    data, indices = stored(mat)
    n, k = mat.n_batch, mat.n_sparse
    other_axes = [a - n for a in range(n, n + k) if a not in axes]
    data = jnp.sum(data, tuple([a - k + 1 for a in axes if a >= n + k]), dtype=data.dtype)
    shape = [d for a, d in enumerate(mat.shape) if a not in axes]
    new_indices = indices[..., np.array(other_axes, int)]
    return placed(data, new_indices, inside(indices, sparse_shape(mat)), shape, n, data.ndim - n - 1)
