"""`BCOO`, a batched coordinate format: entries and their indices, with leading batch axes and trailing dense axes.

The axes of an array are n_batch batch axes, then n_sparse sparse axes, then n_dense dense axes. `data` has the shape
[*batch, nse, *dense] and `indices` [*batch, nse, n_sparse]. Entries with indices out of bounds are padding and are
ignored. Entries with equal indices are summed. A batch axis of length one broadcasts. Functions of `BCOO` arrays are
in `layout.py`, `shaping.py`, `parts.py` and `products.py`, operators in `operators.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atled import lax
from atled import numpy as jnp
from atled.core import errors
from atled.core.array import Array, describe
from atled.core.errors import ConcretizationTypeError
from atled.core.trace import Tracer
from atled.jax.experimental.sparse.base import JAXSparse, SparseInfo, fitted, leading, over_batches, register
from atled.staging.jit import library_function

__all__ = ["BCOO", "bcoo_extract", "bcoo_fromdense", "bcoo_todense"]


METHODS: dict[str, Any] = {}  # functions that methods call; `operators.py` fills it, which imports this module


class Layout(NamedTuple):
    """The numbers of batch, sparse and dense axes of an array, and of its stored entries."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


@register
class BCOO(JAXSparse):
    """A sparse array: values `data` at positions `indices`. A `BCOO` is a pytree, so all transforms accept it.

    >>> import atled.numpy as jnp
    >>> x = BCOO((jnp.array([1.0, 3.0]), jnp.array([[0, 0], [1, 2]])), shape=(2, 3))
    >>> x
    BCOO(float32[2, 3], nse=2)
    >>> x.todense()
    Array([[1., 0., 0.],
           [0., 0., 3.]], dtype=float32)
    >>> x @ jnp.ones(3)
    Array([1., 3.], dtype=float32)
    """

    data: Any
    indices: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self, args: Any, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        self.data, self.indices = [jnp.asarray(x) for x in args]
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        super().__init__(args, shape=shape)
        validated("BCOO", self)

    nse = property(lambda self: self.indices.shape[-2], doc="The number of stored entries per batch element.")
    dtype = property(lambda self: self.data.dtype, doc="The dtype of the data.")
    n_batch = property(lambda self: self.indices.ndim - 2, doc="The number of batch axes.")
    n_sparse = property(lambda self: self.indices.shape[-1], doc="The number of sparse axes.")
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch, doc="The number of dense axes.")
    _bufs = property(lambda self: (self.data, self.indices))
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Convert a dense array to a sparse one."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """Convert a `scipy.sparse` matrix to `BCOO`."""
        if n_dense != 0 or n_batch != 0:
            says = f"BCOO.from_scipy_sparse: n_batch and n_dense must be 0; got {n_batch} and {n_dense}."
            raise NotImplementedError(errors.explained(says, "update_layout on the result."))
        mat = mat.tocoo()
        positions = np.column_stack(getattr(mat, "coords", (mat.row, mat.col)))
        indices = jnp.asarray(positions).astype(index_dtype or jnp.int32)
        return cls((jnp.asarray(mat.data), indices), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape: Any, *, dtype: Any = None, index_dtype: Any = "int32", n_dense: int = 0, n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:  # fmt: skip
        shape = tuple(shape)
        n_sparse = len(shape) - n_batch - n_dense
        if n_sparse < 0 or n_batch < 0 or n_dense < 0 or nse < 0:
            says = f"BCOO: n_batch + n_dense must be from 0 to {len(shape)}; got {n_batch} and {n_dense}."
            raise ValueError(errors.explained(says))
        batch, dense = shape[:n_batch], shape[len(shape) - n_dense :]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        positions = np.array(shape[n_batch : n_batch + n_sparse], index_dtype)
        indices = jnp.broadcast_to(jnp.asarray(positions), (*batch, nse, n_sparse))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32", n_batch: int = 0,  # noqa: N803
        n_dense: int = 0,
    ) -> BCOO:  # fmt: skip
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0:
            says = f"eye: n_batch + n_dense must be at most 2; got {n_batch} and {n_dense}."
            raise ValueError(errors.explained(says))
        rows, columns = positions_of_diagonal(N, M, k)
        if not len(rows):
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense)
        if n_sparse == 2:
            parts = jnp.ones(len(rows), dtype), np.stack([rows, columns], -1)
        elif n_dense == 1 and n_sparse == 1:
            parts = jnp.zeros((len(rows), M), dtype).at[np.arange(len(rows)), columns].set(1), rows[:, None]
        elif n_batch == 1 and n_sparse == 1:  # one entry per row, padding where the diagonal has none
            places = np.full((N, 1, 1), M)
            places[rows, 0, 0] = columns
            parts = jnp.asarray(places[..., 0] < M).astype(dtype or float), places
        else:
            dense = jnp.zeros((N, M), dtype).at[rows, columns].set(1)
            batch_dims = (N, M)[:n_batch]
            parts = dense.reshape((*batch_dims, 1, *(N, M)[n_batch:])), np.zeros((*batch_dims, 1, 0))
        indices = jnp.asarray(parts[1].astype(index_dtype))
        return cls((parts[0], indices), shape=(N, M), indices_sorted=True, unique_indices=True)

    def tree_flatten(self) -> tuple[Sequence[Any], dict[str, Any]]:
        """The leaves and the static data, for the pytree registry."""
        meta = {"shape": self.shape, "indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        return (self.data, self.indices), meta

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> BCOO:
        """The array from the results of `tree_flatten`."""
        mat = object.__new__(cls)
        mat.data, mat.indices = children
        mat.indices_sorted, mat.unique_indices = aux_data["indices_sorted"], aux_data["unique_indices"]
        mat.shape = aux_data["shape"]
        if all([hasattr(x, "shape") and hasattr(x, "ndim") for x in children]) and mat.indices.ndim > 1:
            batch = mat.n_batch
            ndim = batch + mat.n_sparse + mat.n_dense
            if mat.n_dense >= 0 and ndim != len(mat.shape):
                mat.shape = fitted(mat.shape, leading(batch, *children), ndim)
        return mat

    def todense(self) -> Array:
        """The same array in dense form."""
        return bcoo_todense(self)

    def with_data(self, data: Any) -> BCOO:
        """The same array with other data."""
        flags = {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        return BCOO((data, self.indices), shape=self.shape, **flags)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with duplicate entries summed and sorted; `nse` entries are stored, required under `jit`."""
        return METHODS["sum_duplicates"](self, nse, remove_zeros)

    def sort_indices(self) -> BCOO:
        """The array with its entries sorted by index."""
        return METHODS["sort_indices"](self)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The same array with other numbers of batch and dense axes."""
        return METHODS["update_layout"](self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def transpose(self, axes: Any = None) -> BCOO:
        """The transposed array; batch, sparse and dense axes can only be permuted among themselves."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple([a % max(self.ndim, 1) for a in axes])
        return METHODS["transpose"](self, permutation=order)


def validated(name: str, mat: Any) -> Layout:
    """The layout of an array; raises if the shapes of its parts do not match."""
    if not isinstance(mat, BCOO):
        says = f"{name}: the argument must be a BCOO array; got {describe(mat)}."
        raise TypeError(errors.explained(says, "sparse.BCOO.fromdense(x)."))
    data, indices, shape = mat.data, mat.indices, mat.shape
    if not np.issubdtype(np.dtype(indices.dtype), np.integer) or indices.ndim < 2:
        says = f"{name}: indices must be integers of the shape [*batch, nse, n_sparse]; got {describe(indices)}."
        raise ValueError(errors.explained(says))
    layout = Layout(mat.n_batch, mat.n_sparse, mat.n_dense, mat.nse)
    total = layout.n_batch + layout.n_sparse + layout.n_dense
    if layout.n_dense < 0 or total != len(shape):
        says = f"{name}: data {describe(data)} and indices {describe(indices)} must fit the shape {shape}."
        raise ValueError(errors.explained(says, "data [*batch, nse, *dense] and indices [*batch, nse, n_sparse]."))
    batch, dense = shape[: layout.n_batch], shape[len(shape) - layout.n_dense :]
    fits = data.shape[layout.n_batch] == layout.nse and data.shape[layout.n_batch + 1 :] == dense
    for x in (data, indices):
        fits = fits and all([a in (1, n) for a, n in zip(x.shape, batch, strict=False)])
    if not fits:
        says = f"{name}: data {describe(data)} and indices {describe(indices)} must fit the shape {shape}."
        raise ValueError(errors.explained(says, f"data of the shape {(*batch, layout.nse, *dense)}."))
    return layout


def sparse_shape(mat: BCOO) -> tuple[int, ...]:
    """The lengths of the sparse axes."""
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def dense_shape(mat: BCOO) -> tuple[int, ...]:
    """The lengths of the dense axes."""
    return mat.shape[mat.n_batch + mat.n_sparse :]


def stored(mat: BCOO) -> tuple[Any, Any]:
    """Data and indices, broadcast to the full lengths of the batch axes."""
    batch, data, indices = mat.shape[: mat.n_batch], mat.data, mat.indices
    if data.shape[: mat.n_batch] != batch:
        data = jnp.broadcast_to(data, (*batch, *data.shape[mat.n_batch :]))
    if indices.shape[: mat.n_batch] != batch:
        indices = jnp.broadcast_to(indices, (*batch, *indices.shape[mat.n_batch :]))
    return data, indices


def inside(indices: Any, dims: Sequence[int]) -> Any:
    """Which entries are in bounds; negative indices count from the end."""
    return jnp.all(indices < limits(dims, indices), -1)


def limits(dims: Sequence[int], indices: Any) -> Any:
    """The lengths of axes in the dtype of the indices; padding entries have these indices."""
    dtype = np.dtype(indices.dtype)
    if dims and max(dims) > np.iinfo(dtype).max:
        says = f"sparse: indices of {dtype} cannot count up to {max(dims)}."
        raise ValueError(errors.explained(says, "index_dtype='int64', with enable_x64."))
    return jnp.asarray(np.array(dims, dtype))


def masked(is_kept: Any, data: Any) -> Any:
    """The data with zeros for entries where `is_kept`, which has the leading axes of the data, is false."""
    wide = is_kept.reshape(is_kept.shape + (1,) * (data.ndim - is_kept.ndim))
    return jnp.where(wide, data, jnp.zeros((), data.dtype))


def columns(indices: Any) -> tuple[Any, ...]:
    """A tuple with the indices along each axis."""
    return tuple([indices[..., i] for i in range(indices.shape[-1])])


def positions_of_diagonal(n: int, m: int, k: int) -> tuple[Any, Any]:
    """Rows and columns of the k-th diagonal."""
    count = max(0, min(n, m - k) if k > 0 else min(n + k, m))
    steps = np.arange(count)
    return steps + max(0, -k), steps + max(0, k)


# -- the order of entries ---------------------------------------------------------------------------------------------


def order_of(indices: Any) -> Any:
    """The permutation that stably sorts the entries of one batch element by their indices."""
    count = indices.shape[0]
    numbers = jnp.arange(count)
    if not indices.shape[1]:
        return numbers
    return lax.sort((*columns(indices), numbers), 0, num_keys=indices.shape[1])[-1]


def starts(indices: Any) -> Any:
    """A mask of sorted entries that is true for the first entry with each index."""
    first = jnp.ones(min(1, indices.shape[0]), bool)
    return jnp.concatenate([first, jnp.any(indices[1:] != indices[:-1], -1)])


def is_first(indices: Any) -> Any:
    """A mask of the entries of one batch element, in any order: true for the first entry with each index."""
    order = order_of(indices)
    return jnp.zeros(indices.shape[0], bool).at[order].set(starts(indices[order]))


# -- dense arrays -----------------------------------------------------------------------------------------------------


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32
) -> BCOO:
    """Convert a dense array to `BCOO`. `nse` is the number of entries to store per batch element, required under `jit`.

    >>> import atled.numpy as jnp
    >>> bcoo_fromdense(jnp.array([[0, 2], [0, 0]])).indices
    Array([[0, 1]], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        says = f"bcoo_fromdense: n_batch + n_dense must be from 0 to {mat.ndim}; got {n_batch} and {n_dense}."
        raise ValueError(errors.explained(says))
    if nse is None:
        nse = counted("bcoo_fromdense", _most(mat, n_batch, n_dense))
    return _from_dense(mat, nse, n_batch, n_dense, np.dtype(index_dtype))


def counted(name: str, count: Any, kind: Any = ConcretizationTypeError) -> int:
    """A computed number of entries as a Python integer; raises if it is not known while tracing."""
    if isinstance(count, Tracer) and (count := count.known()) is None:
        says = f"{name}: nse, the number of entries to store, must be known while tracing; it depends on the values."
        raise kind(errors.explained(says, f"{name}(x, nse=n), where n is large enough."))
    return int(count)


@library_function(static=("n_batch", "n_dense"))
def _most(mat: Any, n_batch: int, n_dense: int) -> Any:
    is_there = _nonzero(mat, n_dense)
    return jnp.max(jnp.sum(is_there, tuple(range(n_batch, is_there.ndim))), initial=0)


def _nonzero(mat: Any, n_dense: int) -> Any:
    return jnp.any(mat != 0, tuple(range(mat.ndim - n_dense, mat.ndim)))


@library_function(static=("nse", "n_batch", "n_dense", "index_dtype"))
def _from_dense(mat: Any, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> BCOO:
    dims = mat.shape[n_batch : mat.ndim - n_dense]

    def find(is_there: Any) -> Any:
        if not dims:
            return jnp.zeros((nse, 0), index_dtype)
        coordinates = jnp.nonzero(is_there, size=nse, fill_value=dims)
        return jnp.stack([x.astype(index_dtype) for x in coordinates], -1)

    indices = over_batches(find, n_batch)(_nonzero(mat, n_dense))
    data = over_batches(_read, n_batch)(mat, indices)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _read(mat: Any, indices: Any) -> Any:
    """The values of a dense array at indices; zero out of bounds."""
    if not indices.shape[-1]:
        return jnp.broadcast_to(mat, (indices.shape[0], *mat.shape))
    return mat.at[columns(indices)].get(mode="fill", fill_value=0)


def bcoo_todense(mat: BCOO) -> Array:
    """The same array in dense form.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    validated("bcoo_todense", mat)
    return _to_dense(mat)


@library_function
def _to_dense(mat: BCOO) -> Any:
    dims, dense = sparse_shape(mat), dense_shape(mat)

    def write(data: Any, indices: Any) -> Any:
        if not dims:
            return jnp.sum(data, 0, dtype=data.dtype)
        zeros = jnp.zeros((*dims, *dense), data.dtype)
        flags = {"indices_are_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
        return zeros.at[columns(indices)].add(data, mode="drop", **flags)

    return over_batches(write, mat.n_batch)(*stored(mat))


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """A sparse array with the indices of `sparr` and the values of the dense array `arr` there.

    Of several entries with the same index, the first gets the value and the others get zero, unless `assume_unique`.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_extract(sparse.eye(2), [[1.0, 2.0], [3.0, 4.0]]).data
    Array([1., 4.], dtype=float32)
    """
    validated("bcoo_extract", sparr)
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        says = f"bcoo_extract: both arrays must have the same shape; got {sparr.shape} and {arr.shape}."
        raise ValueError(errors.explained(says))
    is_unique = sparr.unique_indices if assume_unique is None else assume_unique
    return sparr.with_data(_extracted(sparr.indices, arr, bool(is_unique)))


@library_function(static=("is_unique",))
def _extracted(indices: Any, mat: Any, is_unique: bool) -> Any:
    n_batch = indices.ndim - 2
    if indices.shape[:n_batch] != mat.shape[:n_batch]:
        indices = jnp.broadcast_to(indices, (*mat.shape[:n_batch], *indices.shape[n_batch:]))
    data = over_batches(_read, n_batch)(mat, indices)
    return data if is_unique else masked(over_batches(is_first, n_batch)(indices), data)
