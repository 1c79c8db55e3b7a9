"""Ways to store the same array: the order of its entries, and which axes are batch, sparse and dense."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from atled import numpy as jnp
from atled.core import errors
from atled.jax.experimental.sparse.base import SparseEfficiencyError, SparseEfficiencyWarning, over_batches
from atled.jax.experimental.sparse.bcoo import (
    BCOO,
    counted,
    inside,
    limits,
    masked,
    order_of,
    sparse_shape,
    starts,
    stored,
    validated,
)
from atled.staging.jit import library_function

__all__ = ["bcoo_sort_indices", "bcoo_sum_duplicates", "bcoo_update_layout"]


# -- the order of entries ---------------------------------------------------------------------------------------------


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its entries sorted by index.

    >>> import atled.numpy as jnp
    >>> x = BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [0]])), shape=(2,))
    >>> bcoo_sort_indices(x).data
    Array([2., 1.], dtype=float32)
    """
    validated("bcoo_sort_indices", mat)
    return mat if mat.indices_sorted else _sorted(mat)


@library_function
def _sorted(mat: BCOO) -> BCOO:
    def sort(data: Any, indices: Any) -> Any:
        order = order_of(indices)
        return data[order], indices[order]

    parts = over_batches(sort, mat.n_batch)(*stored(mat))
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with duplicate entries summed and sorted by index; `nse` entries are stored, required under `jit`.

    >>> import atled.numpy as jnp
    >>> x = BCOO((jnp.array([1.0, 2.0, 5.0]), jnp.array([[1], [0], [1]])), shape=(2,))
    >>> bcoo_sum_duplicates(x).data
    Array([2., 6.], dtype=float32)
    """
    return sum_duplicates(mat, nse, False)


def sum_duplicates(mat: BCOO, nse: int | None, remove_zeros: bool) -> BCOO:
    """The array with duplicate entries summed and sorted; with `remove_zeros`, zero entries become padding."""
    validated("bcoo_sum_duplicates", mat)
    if nse is None:
        nse = counted("bcoo_sum_duplicates", _distinct(mat, bool(remove_zeros)), ValueError)
    return _summed(mat, int(nse), bool(remove_zeros))


def _cleaned(mat: BCOO, remove_zeros: bool) -> tuple[Any, Any]:
    """Data and indices, where padding has zero data and the out-of-bounds index `limits`."""
    data, indices = stored(mat)
    dims = sparse_shape(mat)
    limit = limits(dims, indices)
    is_kept = inside(indices, dims)
    if remove_zeros:
        is_kept = is_kept & jnp.any(data != 0, tuple(range(mat.n_batch + 1, data.ndim)))
    indices = jnp.where(indices < 0, indices + limit, indices)
    return masked(is_kept, data), jnp.where(is_kept[..., None], indices, limit)


@library_function(static=("remove_zeros",))
def _distinct(mat: BCOO, remove_zeros: bool) -> Any:
    """The largest number of distinct indices in any batch element."""
    _, indices = _cleaned(mat, remove_zeros)
    if not mat.n_sparse:
        return jnp.asarray(1)

    def count(indices: Any) -> Any:
        indices = indices[order_of(indices)]
        return jnp.sum(starts(indices) & inside(indices, sparse_shape(mat)))

    return jnp.max(over_batches(count, mat.n_batch)(indices), initial=0)


@library_function(static=("nse", "remove_zeros"))
def _summed(mat: BCOO, nse: int, remove_zeros: bool) -> BCOO:
    limit = limits(sparse_shape(mat), mat.indices)

    def add(data: Any, indices: Any) -> Any:
        order = order_of(indices)
        indices = indices[order]
        place = jnp.cumsum(starts(indices)) - 1
        zeros = jnp.zeros((nse, *data.shape[1:]), data.dtype)
        positions = jnp.broadcast_to(limit, (nse, limit.size))
        return (
            zeros.at[place].add(data[order], mode="drop", indices_are_sorted=True),
            positions.at[place].set(indices, mode="drop", indices_are_sorted=True),
        )

    parts = over_batches(add, mat.n_batch)(*_cleaned(mat, remove_zeros))
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


# -- the kinds of axes ------------------------------------------------------------------------------------------------


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense axes.

    Converting a sparse axis to a batch or dense axis stores many zeros, unless its length is one. `on_inefficient` is
    the reaction to that: "error" raises, "warn" warns, None accepts it.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_update_layout(sparse.eye(3, n_batch=1), n_batch=0)
    BCOO(float32[3, 3], nse=3)
    """
    old = validated("bcoo_update_layout", mat)
    n_batch = old.n_batch if n_batch is None else int(n_batch)
    n_dense = old.n_dense if n_dense is None else int(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        says = f"bcoo_update_layout: n_batch + n_dense must be from 0 to {mat.ndim}; got {n_batch} and {n_dense}."
        raise ValueError(errors.explained(says))
    if on_inefficient not in ("error", "warn", None):
        says = f"bcoo_update_layout: on_inefficient is 'error', 'warn' or None; got {on_inefficient!r}."
        raise ValueError(errors.explained(says))
    wasted = {
        f"n_batch from {old.n_batch} to {n_batch}": mat.shape[old.n_batch : n_batch],
        f"n_dense from {old.n_dense} to {n_dense}": mat.shape[mat.ndim - n_dense : mat.ndim - old.n_dense],
    }
    for change, axes in wasted.items():
        if max(axes, default=0) > 1 and on_inefficient is not None:
            says = f"bcoo_update_layout: {change} stores many zeros for an array of the shape {mat.shape}."
            if on_inefficient == "error":
                raise SparseEfficiencyError(errors.explained(says, "on_inefficient=None, if that is intended."))
            warnings.warn(says, SparseEfficiencyWarning, stacklevel=2)
    return mat if (n_batch, n_dense) == (old.n_batch, old.n_dense) else _stored_as(mat, n_batch, n_dense)


@library_function(static=("n_batch", "n_dense"))
def _stored_as(mat: BCOO, n_batch: int, n_dense: int) -> BCOO:
    if n_dense < mat.n_dense:
        mat = dense_to_sparse(mat, mat.n_dense - n_dense)
    if n_batch < mat.n_batch:
        mat = batch_to_sparse(mat, mat.n_batch - n_batch)
    if n_batch > mat.n_batch:
        mat = _sparse_to_batch(mat, n_batch - mat.n_batch)
    if n_dense > mat.n_dense:
        mat = _sparse_to_dense(mat, n_dense - mat.n_dense)
    return mat


def _grid(dims: Sequence[int], dtype: Any) -> Any:
    """The indices of all elements of an array with the shape `dims`, stacked along a new last axis."""
    if not dims:
        return jnp.zeros((0,), dtype)
    return jnp.stack(jnp.meshgrid(*[jnp.arange(n, dtype=dtype) for n in dims], indexing="ij"), -1)


def dense_to_sparse(mat: BCOO, count: int) -> BCOO:
    """Convert the first `count` dense axes to sparse axes, which come last among the sparse axes."""
    data, indices = stored(mat)
    n, axis = mat.n_batch, mat.n_batch + 1
    dims = data.shape[axis : axis + count]
    grid = _grid(dims, indices.dtype)
    wide = indices.reshape(*indices.shape[:axis], *[1] * count, indices.shape[-1])
    whole = (*indices.shape[:axis], *dims)
    parts = [jnp.broadcast_to(wide, (*whole, indices.shape[-1])), jnp.broadcast_to(grid, (*whole, count))]
    nse = mat.nse * math.prod(dims)
    new_indices = jnp.concatenate(parts, -1).reshape(*whole[:n], nse, indices.shape[-1] + count)
    return BCOO((data.reshape(*whole[:n], nse, *data.shape[axis + count :]), new_indices), shape=mat.shape)


def batch_to_sparse(mat: BCOO, count: int) -> BCOO:
    """Convert the last `count` batch axes to sparse axes, which come first among the sparse axes."""
    data, indices = stored(mat)
    n_left = mat.n_batch - count
    dims = data.shape[n_left : mat.n_batch]
    grid = _grid(dims, indices.dtype).reshape(*dims, 1, count)
    parts = [jnp.broadcast_to(grid, (*indices.shape[:-1], count)), indices]
    nse = mat.nse * math.prod(dims)
    new_indices = jnp.concatenate(parts, -1).reshape(*data.shape[:n_left], nse, indices.shape[-1] + count)
    return BCOO((data.reshape(*data.shape[:n_left], nse, *data.shape[mat.n_batch + 1 :]), new_indices), shape=mat.shape)


def _sparse_to_batch(mat: BCOO, count: int) -> BCOO:
    """Convert the first `count` sparse axes to batch axes; each batch element stores all entries, most as padding."""
    data, indices = stored(mat)
    n, dims, rest = mat.n_batch, sparse_shape(mat)[:count], sparse_shape(mat)[count:]
    grid = _grid(dims, indices.dtype).reshape(*dims, 1, count)
    ahead = [jnp.expand_dims(x, tuple(range(n, n + count))) for x in (data, indices)]
    is_here = jnp.all(ahead[1][..., :count] == grid, -1) & inside(ahead[1], sparse_shape(mat))
    new_indices = jnp.where(is_here[..., None], ahead[1][..., count:], limits(rest, indices))
    return BCOO(
        (masked(is_here, jnp.broadcast_to(ahead[0], (*is_here.shape, *data.shape[n + 1 :]))), new_indices),
        shape=mat.shape,
    )


def _sparse_to_dense(mat: BCOO, count: int) -> BCOO:
    """Convert the last `count` sparse axes to dense axes; each entry becomes a block with one nonzero element."""
    data, indices = stored(mat)
    n_left = mat.n_sparse - count
    dims = sparse_shape(mat)[n_left:]
    is_kept = inside(indices, sparse_shape(mat))
    grid = _grid(dims, indices.dtype)
    at = indices[..., n_left:].reshape(*is_kept.shape, *[1] * count, count)
    is_here = jnp.all(at == grid, -1) & is_kept.reshape(*is_kept.shape, *[1] * count)
    blocks = data.reshape(*is_kept.shape, *[1] * count, *data.shape[is_kept.ndim :])
    whole = (*is_here.shape, *data.shape[is_kept.ndim :])
    new_indices = jnp.where(is_kept[..., None], indices[..., :n_left], limits(sparse_shape(mat)[:n_left], indices))
    return BCOO((masked(is_here, jnp.broadcast_to(blocks, whole)), new_indices), shape=mat.shape)
