"""`BCSR`: a batched compressed-row format, with leading batch axes and trailing dense axes.

`data` has the shape [*batch, nse, *dense], `indices`, the columns of the entries, [*batch, nse], and `indptr`, the
offsets of the rows, [*batch, rows + 1]. Operations convert to `BCOO`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import errors
from atled.core.array import Array, describe
from atled.jax.experimental.sparse import products, shaping
from atled.jax.experimental.sparse.base import JAXSparse, SparseInfo, fitted, leading, over_batches, register
from atled.jax.experimental.sparse.bcoo import BCOO, bcoo_extract, bcoo_fromdense, sparse_shape, stored, validated
from atled.jax.experimental.sparse.csr import beginnings, rows_of
from atled.jax.experimental.sparse.layout import bcoo_sort_indices, sum_duplicates
from atled.jax.experimental.sparse.transform import sparsify
from atled.staging.jit import library_function

__all__ = [
    "BCSR", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense",
    "bcsr_sum_duplicates", "bcsr_todense",
]  # fmt: skip


@register
class BCSR(JAXSparse):
    """A sparse array whose two sparse axes are stored in compressed-row (CSR) form.

    >>> import atled.numpy as jnp
    >>> x = BCSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> x, x.indptr
    (BCSR(float32[2, 2], nse=3), Array([0, 1, 3], dtype=int32))
    >>> x @ jnp.ones(2)
    Array([1., 5.], dtype=float32)
    """

    data: Any
    indices: Any
    indptr: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self, args: Any, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        self.data, self.indices, self.indptr = [jnp.asarray(x) for x in args]
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        super().__init__(args, shape=shape)
        _validated("BCSR", self)

    nse = property(lambda self: self.indices.shape[-1], doc="The number of stored entries per batch element.")
    dtype = property(lambda self: self.data.dtype, doc="The dtype of the data.")
    n_batch = property(lambda self: self.indices.ndim - 1, doc="The number of batch axes.")
    n_sparse = property(lambda self: 2, doc="The number of sparse axes.")
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim, doc="The number of dense axes.")
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _sparse_shape = property(lambda self: self.shape[self.n_batch : self.n_batch + 2])

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Convert a dense array to a sparse one."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """Convert a `scipy.sparse` matrix to `BCSR`."""
        if n_dense != 0 or n_batch != 0:
            says = f"BCSR.from_scipy_sparse: n_batch and n_dense must be 0; got {n_batch} and {n_dense}."
            raise NotImplementedError(errors.explained(says))
        mat = mat.tocsr()
        places = [jnp.asarray(x).astype(index_dtype or jnp.int32) for x in (mat.indices, mat.indptr)]
        return cls((jnp.asarray(mat.data), *places), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape: Any, *, dtype: Any = None, index_dtype: Any = "int32", n_dense: int = 0, n_batch: int = 0,
        nse: int = 0,
    ) -> BCSR:  # fmt: skip
        shape = tuple(shape)
        if len(shape) - n_batch - n_dense != 2:
            says = f"BCSR: there must be two sparse axes; got the shape {shape}, n_batch={n_batch}, n_dense={n_dense}."
            raise ValueError(errors.explained(says))
        options = {"index_dtype": index_dtype, "n_dense": n_dense, "n_batch": n_batch, "nse": nse}
        return cls.from_bcoo(BCOO._empty(shape, dtype=dtype, **options))

    @classmethod
    def _eye(cls, N: int, M: int, k: int, **options: Any) -> BCSR:  # noqa: N803
        return cls.from_bcoo(BCOO._eye(N, M, k, **options))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Convert a BCOO array with two sparse axes to `BCSR`."""
        layout = validated("BCSR.from_bcoo", arr)
        if layout.n_sparse != 2:
            says = f"BCSR.from_bcoo: there must be two sparse axes; got {arr!r}."
            raise NotImplementedError(errors.explained(says))
        return _compressed(bcoo_sort_indices(arr))

    def to_bcoo(self) -> BCOO:
        """The same array as a BCOO array."""
        _validated("BCSR.to_bcoo", self)
        return _expanded(self)

    def tree_flatten(self) -> tuple[Sequence[Any], dict[str, Any]]:
        """The leaves and the static data, for the pytree registry."""
        meta = {"shape": self.shape, "indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        return (self.data, self.indices, self.indptr), meta

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> BCSR:
        """The array from the results of `tree_flatten`."""
        mat = object.__new__(cls)
        mat.data, mat.indices, mat.indptr = children
        mat.indices_sorted, mat.unique_indices = aux_data["indices_sorted"], aux_data["unique_indices"]
        mat.shape = aux_data["shape"]
        if all([hasattr(x, "shape") and hasattr(x, "ndim") for x in children]) and mat.indices.ndim:
            ndim = mat.n_batch + 2 + mat.n_dense
            if mat.n_dense >= 0 and ndim != len(mat.shape):
                mat.shape = fitted(mat.shape, leading(mat.n_batch, *children), ndim)
        return mat

    def todense(self) -> Array:
        """The same array in dense form."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with duplicate entries summed; `nse` is the number of entries to store, required under `jit`."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        """Always raises: the format compresses rows, so it cannot store the transposed array without conversion."""
        says = "BCSR.transpose: this format does not support the operation."
        raise NotImplementedError(errors.explained(says, "x.to_bcoo().T."))

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            return self._missing("__matmul__ with a sparse array")
        return sparsify(jnp.matmul)(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return sparsify(jnp.matmul)(other, self)

    def __getitem__(self, item: Any) -> Any:
        return sparsify(lambda x: x[item])(self)


def _validated(name: str, mat: Any) -> None:
    if not isinstance(mat, BCSR):
        says = f"{name}: the argument must be a BCSR array; got {describe(mat)}."
        raise TypeError(errors.explained(says, "sparse.BCSR.fromdense(x)."))
    n, shape = mat.n_batch, mat.shape
    fits = n >= 0 and mat.n_dense >= 0 and n + 2 + mat.n_dense == len(shape) and mat.indptr.ndim == n + 1
    fits = fits and mat.data.shape[n:] == (mat.nse, *shape[n + 2 :]) and mat.indptr.shape[-1] == shape[n] + 1
    for x in (mat.data, mat.indices, mat.indptr):
        fits = fits and all([a in (1, b) for a, b in zip(x.shape[:n], shape, strict=False)])
    if not fits:
        parts = ", ".join([describe(x) for x in (mat.data, mat.indices, mat.indptr)])
        says = f"{name}: data, indices and indptr must fit the shape {shape}; got {parts}."
        raise ValueError(errors.explained(says, "[*batch, nse, *dense], [*batch, nse] and [*batch, rows + 1]."))


@library_function
def _compressed(mat: BCOO) -> BCSR:
    data, indices = stored(mat)
    rows = sparse_shape(mat)[0]
    first = over_batches(lambda i: beginnings(i[:, 0], rows, i.dtype), mat.n_batch)(indices)
    flags = {"indices_sorted": True, "unique_indices": mat.unique_indices}
    return BCSR((data, indices[..., 1], first), shape=mat.shape, **flags)


@library_function
def _expanded(mat: BCSR) -> BCOO:
    batch, (rows, cols) = mat.shape[: mat.n_batch], mat._sparse_shape
    indices, indptr = [jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (mat.indices, mat.indptr)]

    def expand(indices: Any, indptr: Any) -> Any:
        row = rows_of(indptr, mat.nse)
        return jnp.stack([row, jnp.where(row < rows, indices, cols).astype(row.dtype)], -1)

    positions = over_batches(expand, mat.n_batch)(indices, indptr.astype(indices.dtype))
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    return BCOO((mat.data, positions), shape=mat.shape, **flags)


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32
) -> BCSR:
    """Convert a dense array to `BCSR`; two axes must remain for the sparse axes.

    >>> import atled.numpy as jnp
    >>> bcsr_fromdense(jnp.eye(3)).indices
    Array([0, 1, 2], dtype=int32)
    """
    if jnp.ndim(mat) - n_batch - n_dense != 2:
        says = f"bcsr_fromdense: there must be two sparse axes; got {describe(mat)}, n_batch={n_batch}, "
        raise ValueError(errors.explained(f"{says}n_dense={n_dense}."))
    options = {"nse": nse, "n_batch": n_batch, "n_dense": n_dense, "index_dtype": index_dtype}
    return BCSR.from_bcoo(bcoo_fromdense(mat, **options))


def bcsr_todense(mat: BCSR) -> Array:
    """The same array in dense form.

    >>> import atled.numpy as jnp
    >>> bcsr_todense(BCSR.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    _validated("bcsr_todense", mat)
    return mat.to_bcoo().todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with duplicate entries summed. `nse` is the number of entries to store, required under `jit`.

    >>> import atled.numpy as jnp
    >>> x = BCSR((jnp.ones(2), jnp.array([1, 1]), jnp.array([0, 2])), shape=(1, 3))
    >>> bcsr_sum_duplicates(x).data
    Array([2.], dtype=float32)
    """
    _validated("bcsr_sum_duplicates", mat)
    return BCSR.from_bcoo(sum_duplicates(mat.to_bcoo(), nse, False))


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """The values of a dense array at given positions: the `data` of a BCSR array with these `indices` and `indptr`.

    >>> import atled.numpy as jnp
    >>> bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([2., 3.], dtype=float32)
    """
    indices, indptr, mat = jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat)
    n = indices.ndim - 1
    zeros = jnp.zeros((*indices.shape, *mat.shape[n + 2 :]), mat.dtype)
    pattern = BCSR((zeros, indices, indptr), shape=mat.shape).to_bcoo()
    return bcoo_extract(pattern, mat, assume_unique=True).data


def bcsr_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """The product of a BCSR array and a dense array, with the dimension numbers of `lax.dot_general`.

    >>> import atled.numpy as jnp
    >>> x = BCSR.fromdense(jnp.eye(2))
    >>> bcsr_dot_general(x, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([1., 1.], dtype=float32)
    """
    sparse = [x for x in (lhs, rhs) if isinstance(x, JAXSparse)]
    if len(sparse) == 2 or any([not isinstance(x, BCSR) for x in sparse]):
        says = f"bcsr_dot_general: one operand must be a BCSR array, the other dense; got {lhs!r} and {rhs!r}."
        raise NotImplementedError(errors.explained(says, "x.to_bcoo() of both, and bcoo_dot_general."))
    for x in sparse:
        _validated("bcsr_dot_general", x)
    lhs, rhs = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    return products.bcoo_dot_general(lhs, rhs, dimension_numbers=dimension_numbers, **options)


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """The array with more batch or dense axes; see `bcoo_broadcast_in_dim`.

    >>> import atled.numpy as jnp
    >>> bcsr_broadcast_in_dim(BCSR.fromdense(jnp.eye(2)), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    _validated("bcsr_broadcast_in_dim", mat)
    broadcast = shaping.bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    return BCSR.from_bcoo(broadcast)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Concatenate arrays along a batch axis or a sparse axis.

    >>> import atled.numpy as jnp
    >>> x = BCSR.fromdense(jnp.eye(2))
    >>> bcsr_concatenate([x, x], dimension=0).indptr
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    for x in operands:
        _validated("bcsr_concatenate", x)
    return BCSR.from_bcoo(shaping.bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))
