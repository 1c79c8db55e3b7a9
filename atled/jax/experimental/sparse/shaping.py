"""Functions that change the shape of sparse arrays: transpose, reshape, concatenate; `parts.py` has slices and sums.

Along batch and dense axes, the functions change the stored arrays; along sparse axes, they compute new indices. Entries
that fall out of bounds become padding with zero data: padding is out of bounds along every sparse axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import errors
from atled.jax.experimental.sparse.bcoo import (
    BCOO,
    dense_shape,
    inside,
    limits,
    masked,
    sparse_shape,
    stored,
    validated,
)
from atled.jax.experimental.sparse.layout import bcoo_update_layout
from atled.staging.jit import library_function

__all__ = [
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_reshape", "bcoo_rev", "bcoo_squeeze", "bcoo_transpose",
]  # fmt: skip


def placed(data: Any, indices: Any, is_kept: Any, shape: Any, n_batch: int, n_dense: int) -> BCOO:
    """A BCOO array with these entries; those where `is_kept` is false become padding."""
    shape = tuple(shape)
    dims = shape[n_batch : len(shape) - n_dense]
    indices = jnp.where(is_kept[..., None], indices, limits(dims, indices))
    return BCOO((masked(is_kept, data), indices), shape=shape)


def checked_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes as non-negative integers; raises if one is out of range or repeated."""
    axes = tuple([int(a) for a in axes])
    normalized = tuple([a + ndim if a < 0 else a for a in axes])
    if any([not 0 <= a < ndim for a in normalized]) or len({*normalized}) != len(normalized):
        says = f"{name}: axes must be distinct numbers from 0 to {ndim - 1}; got {axes}."
        raise ValueError(errors.explained(says))
    return normalized


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The transposed array; batch, sparse and dense axes can only be permuted among themselves.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_transpose(sparse.eye(2, 3), permutation=(1, 0)).shape
    (3, 2)
    """
    old = validated("bcoo_transpose", mat)
    order = tuple([int(a) for a in permutation])
    if sorted(order) != list(range(mat.ndim)):
        says = f"bcoo_transpose: the permutation must name each of {mat.ndim} axes once; got {order}."
        raise TypeError(errors.explained(says))
    if order == tuple(range(mat.ndim)):
        return mat
    ends = (0, old.n_batch, old.n_batch + old.n_sparse, mat.ndim)
    for kind, (a, b) in zip(("batch", "sparse", "dense"), itertools.pairwise(ends), strict=True):
        if sorted(order[a:b]) != list(range(a, b)):
            says = f"bcoo_transpose: {kind} axes must stay {kind} axes; got {order} for n_batch={old.n_batch}, "
            says += f"n_dense={old.n_dense}."
            raise NotImplementedError(errors.explained(says, "update_layout before."))
    return _transposed(mat, order)


@library_function(static=("order",))
def _transposed(mat: BCOO, order: tuple[int, ...]) -> BCOO:
    n, k = mat.n_batch, mat.n_sparse
    first, moved, last = order[:n], [a - n for a in order[n : n + k]], [a - k + 1 for a in order[n + k :]]
    data = jnp.transpose(mat.data, (*first, n, *last))
    indices = jnp.transpose(mat.indices, (*first, n, n + 1))
    if moved != sorted(moved):
        indices = indices[..., np.array(moved)]
    is_sorted = mat.indices_sorted and moved == sorted(moved)
    shape = [mat.shape[a] for a in order]
    return BCOO((data, indices), shape=shape, indices_sorted=is_sorted, unique_indices=mat.unique_indices)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """The array with more axes: axis i becomes axis `broadcast_dimensions[i]` of the new shape.

    New axes before the first sparse axis are batch axes, and new axes after the first dense axis are dense. All others
    are sparse and must have length one.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_broadcast_in_dim(sparse.eye(2), shape=(5, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[5, 2, 2], nse=2, n_batch=1)
    """
    old = validated("bcoo_broadcast_in_dim", mat)
    shape, axes = tuple(shape), checked_axes("bcoo_broadcast_in_dim", broadcast_dimensions, len(tuple(shape)))
    fits = len(axes) == mat.ndim and list(axes) == sorted(axes)
    if not fits or any([n not in (1, shape[a]) for n, a in zip(mat.shape, axes, strict=False)]):
        says = f"bcoo_broadcast_in_dim: an array of the shape {mat.shape} cannot become {shape} with axes {axes}."
        raise ValueError(errors.explained(says))
    n, k = old.n_batch, old.n_sparse
    after = len(shape) if not old.n_dense else axes[n + k]
    before = axes[n] if k else after
    index_of = {a - before: i for i, a in enumerate(axes[n : n + k])}
    for i, length in enumerate(shape[before:after]):
        if length != (mat.shape[n + index_of[i]] if i in index_of else 1):
            says = f"bcoo_broadcast_in_dim: new sparse axes must have length one; got {mat.shape} to {shape}."
            raise NotImplementedError(errors.explained(says, "batch axes instead, or .todense()."))
    return _broadcast(mat, shape, axes, before, after)


@library_function(static=("shape", "axes", "before", "after"))
def _broadcast(mat: BCOO, shape: Any, axes: Any, before: int, after: int) -> BCOO:
    n, k = mat.n_batch, mat.n_sparse
    dims = [1 if a not in axes[:n] else mat.data.shape[axes.index(a)] for a in range(before)]
    batch = [d if a in axes[:n] else shape[a] for a, d in enumerate(dims)]
    places = [1 if a not in axes[:n] else mat.indices.shape[axes.index(a)] for a in range(before)]
    batch_places = [d if a in axes[:n] else shape[a] for a, d in enumerate(places)]
    dense = [1 if a not in axes else mat.shape[axes.index(a)] for a in range(after, len(shape))]
    data = mat.data.reshape(*dims, mat.nse, *dense)
    data = jnp.broadcast_to(data, (*batch, mat.nse, *shape[after:]))
    index_of = {a - before: i for i, a in enumerate(axes[n : n + k])}
    if list(index_of) != list(range(after - before)):
        is_kept = inside(mat.indices, sparse_shape(mat))
        new = jnp.where(is_kept, 0, 1).astype(mat.indices.dtype)  # indices along new axes of length one
        columns = [mat.indices[..., index_of[i]] if i in index_of else new for i in range(after - before)]
        indices = jnp.stack(columns, -1)
    else:
        indices = mat.indices
    indices = indices.reshape(*places, mat.nse, after - before)
    return BCOO((data, jnp.broadcast_to(indices, (*batch_places, mat.nse, after - before))), shape=shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Concatenate arrays along a batch axis or a sparse axis.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=1)
    BCOO(float32[2, 4], nse=4)
    """
    mats = list(operands)
    if not mats:
        raise ValueError(errors.explained("bcoo_concatenate: at least one array is needed."))
    if not all([isinstance(x, BCOO) for x in mats]):
        says = "bcoo_concatenate: all operands must be BCOO arrays."
        raise ValueError(errors.explained(says, "sparse.BCOO.fromdense(x) for dense operands."))
    first = validated("bcoo_concatenate", mats[0])
    (axis,) = checked_axes("bcoo_concatenate", [dimension], mats[0].ndim)
    for x in mats[1:]:
        layout = validated("bcoo_concatenate", x)
        if layout[:3] != first[:3]:
            raise ValueError(errors.explained(f"bcoo_concatenate: arrays must have the same layout; got {mats}."))
        if [a for i, a in enumerate(x.shape) if i != axis] != [a for i, a in enumerate(mats[0].shape) if i != axis]:
            says = f"bcoo_concatenate: shapes must be equal except for axis {axis}; got {[m.shape for m in mats]}."
            raise ValueError(errors.explained(says))
        if x.dtype != mats[0].dtype:
            raise TypeError(errors.explained(f"bcoo_concatenate: dtypes must be equal; got {[m.dtype for m in mats]}."))
    if axis >= first.n_batch + first.n_sparse:
        says = "bcoo_concatenate: arrays cannot be concatenated along dense axes."
        raise NotImplementedError(errors.explained(says, "update_layout(n_dense=...) first."))
    return _concatenated(mats, axis)


@library_function(static=("axis",))
def _concatenated(mats: list[BCOO], axis: int) -> BCOO:
    n = mats[0].n_batch
    length = sum([x.shape[axis] for x in mats])
    shape = tuple([length if i == axis else a for i, a in enumerate(mats[0].shape)])
    if axis < n:
        most = max([x.nse for x in mats])
        parts = [stored(_padded(x, most)) for x in mats]
        return BCOO([jnp.concatenate(xs, axis) for xs in zip(*parts, strict=True)], shape=shape)
    parts, offset = [], 0
    for x in mats:
        data, indices = stored(x)
        shift = jnp.asarray(np.array([offset if i == axis - n else 0 for i in range(x.n_sparse)], indices.dtype))
        moved = placed(data, indices + shift, inside(indices, sparse_shape(x)), shape, n, x.n_dense)
        parts.append((moved.data, moved.indices))
        offset += x.shape[axis]
    return BCOO([jnp.concatenate(xs, n) for xs in zip(*parts, strict=True)], shape=shape)


def _padded(mat: BCOO, nse: int) -> BCOO:
    """The array with `nse` entries: padding is appended."""
    if nse == mat.nse:
        return mat
    data, indices = stored(mat)
    more = nse - mat.nse
    zeros = jnp.zeros((*data.shape[: mat.n_batch], more, *data.shape[mat.n_batch + 1 :]), data.dtype)
    away = jnp.broadcast_to(limits(sparse_shape(mat), indices), (*indices.shape[:-2], more, mat.n_sparse))
    padded = (jnp.concatenate([data, zeros], mat.n_batch), jnp.concatenate([indices, away], mat.n_batch))
    return BCOO(padded, shape=mat.shape)


# -- reshape ----------------------------------------------------------------------------------------------------------


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """The array in another shape; batch axes, sparse axes and dense axes are reshaped separately.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_reshape(sparse.eye(4), new_sizes=(2, 8)).todense()[0]
    Array([1., 0., 0., 0., 0., 1., 0., 0.], dtype=float32)
    """
    validated("bcoo_reshape", mat)
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    old, shape = validated("bcoo_reshape", mat), tuple([int(n) for n in new_sizes])
    dense = dense_shape(mat)
    n_batch = _most_axes(shape, math.prod(mat.shape[: old.n_batch]))
    rest = shape[n_batch or 0 :]
    n_dense = _most_axes(rest[::-1], math.prod(dense)) if old.n_dense else 0
    sizes = [math.prod(x) for x in (sparse_shape(mat), rest[: len(rest) - (n_dense or 0)])]
    if n_batch is None or n_dense is None or sizes[0] != sizes[1]:
        says = f"bcoo_reshape: batch, sparse and dense axes must not be mixed; got {mat!r} and the shape {shape}."
        raise ValueError(errors.explained(says, "update_layout before."))
    return _reshaped(mat, shape, n_batch, n_dense)


def _most_axes(shape: Sequence[int], size: int) -> int | None:
    """The largest number of leading axes that have `size` elements in total, or None."""
    counts = [k for k in range(len(shape) + 1) if math.prod(shape[:k]) == size]
    return counts[-1] if counts else None


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Pairs of old and new axes with equal sizes; as small as possible, since flat indices of a group may overflow."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b = i, j
        while True:
            if a < len(old) and (math.prod(old[i:a]) < math.prod(new[j:b]) or b == len(new)):
                a += 1
            elif b < len(new):
                b += 1
            if a > i and b > j and math.prod(old[i:a]) == math.prod(new[j:b]):
                break
            if a == len(old) and b == len(new):
                break
        groups.append((range(i, a), range(j, b)))
        i, j = a, b
    return groups


@library_function(static=("shape", "n_batch", "n_dense"))
def _reshaped(mat: BCOO, shape: tuple[int, ...], n_batch: int, n_dense: int) -> BCOO:
    data, indices = stored(mat)
    old, new = sparse_shape(mat), shape[n_batch : len(shape) - n_dense]
    is_kept = inside(indices, old)
    columns: list[Any] = [None] * len(new)
    groups = [(range(len(old)), range(len(new)))] if 0 in old else _groups(old, new)
    for axes, others in groups:
        sizes = [old[a] for a in axes]
        if len([n for n in sizes if n != 1]) > 1 or len([others for b in others if new[b] != 1]) > 1:
            limits([math.prod(sizes)], indices)  # raises if flat indices would overflow
        number = jnp.zeros(is_kept.shape, indices.dtype)
        for a in axes:
            number = number * old[a] + indices[..., a]
        for b in reversed(others):
            columns[b] = number % max(new[b], 1)
            number = number // max(new[b], 1)
    batch = shape[:n_batch]
    moved = jnp.stack(columns, -1) if new else jnp.zeros((*is_kept.shape, 0), indices.dtype)
    return placed(
        data.reshape(*batch, mat.nse, *shape[len(shape) - n_dense :]),
        moved.reshape(*batch, mat.nse, len(new)),
        is_kept.reshape(*batch, mat.nse),
        shape, n_batch, n_dense,
    )  # fmt: skip


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without the axes `dimensions`, which must have length one.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,)).shape
    (3,)
    """
    validated("bcoo_squeeze", arr)
    axes = checked_axes("bcoo_squeeze", dimensions, arr.ndim)
    if any([arr.shape[a] != 1 for a in axes]):
        says = f"bcoo_squeeze: axes must have length one; got {axes} of the shape {arr.shape}."
        raise ValueError(errors.explained(says))
    return _squeezed(arr, axes) if axes else arr


@library_function(static=("axes",))
def _squeezed(mat: BCOO, axes: tuple[int, ...]) -> BCOO:
    n, k = mat.n_batch, mat.n_sparse
    first = tuple([a for a in axes if a < n])
    other_axes = [a - n for a in range(n, n + k) if a not in axes]
    is_kept = jnp.squeeze(inside(mat.indices, sparse_shape(mat)), first)
    data = jnp.squeeze(mat.data, (*first, *[a - k + 1 for a in axes if a >= n + k]))
    indices = jnp.squeeze(mat.indices, first)
    shape = [d for a, d in enumerate(mat.shape) if a not in axes]
    if len(other_axes) == k:
        return BCOO((data, indices), shape=shape, **_flags(mat))
    n_batch = n - len(first)
    n_dense = len(shape) - n_batch - len(other_axes)
    squeezed = placed(data, indices[..., np.array(other_axes, int)], is_kept, shape, n_batch, n_dense)
    return BCOO((squeezed.data, squeezed.indices), shape=shape, **_flags(mat))


def _flags(mat: BCOO) -> dict[str, bool]:
    return {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array reversed along axes.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_rev(sparse.eye(2), (0,)).todense()
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    validated("bcoo_rev", operand)
    axes = checked_axes("bcoo_rev", dimensions, operand.ndim)
    return _reversed(operand, axes) if axes else operand


@library_function(static=("axes",))
def _reversed(mat: BCOO, axes: tuple[int, ...]) -> BCOO:
    data, indices = stored(mat)
    n, k = mat.n_batch, mat.n_sparse
    first = tuple([a for a in axes if a < n])
    data = jnp.flip(data, (*first, *[a - k + 1 for a in axes if a >= n + k]))
    indices = jnp.flip(indices, first)
    is_kept = inside(indices, sparse_shape(mat))
    turned = jnp.asarray([a in axes for a in range(n, n + k)], bool)
    moved = jnp.where(turned, limits(sparse_shape(mat), indices) - 1 - indices, indices)
    return placed(data, moved, is_kept, mat.shape, n, mat.n_dense)


def with_batches(mat: BCOO, n_batch: int) -> BCOO:
    """The array with at most `n_batch` batch axes; further batch axes become sparse."""
    return mat if mat.n_batch <= n_batch else bcoo_update_layout(mat, n_batch=n_batch)
