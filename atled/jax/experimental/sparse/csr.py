"""`CSR` and `CSC`: compressed-row and compressed-column matrices. `BCSR` supports more operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import errors
from atled.core.array import Array
from atled.jax.experimental.sparse.base import register
from atled.jax.experimental.sparse.bcoo import BCOO, positions_of_diagonal
from atled.jax.experimental.sparse.coo import Matrix, checked, checked_matrix, entries_of

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]


def beginnings(rows: Any, count: int, dtype: Any) -> Any:
    """The offset of each row among entries that are sorted by rows, and the end of the last row."""
    lengths = jnp.zeros(count, dtype).at[rows].add(jnp.ones(rows.shape, dtype), mode="drop")
    return jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(lengths, dtype=dtype)])


def rows_of(indptr: Any, nse: int) -> Any:
    """The row of each entry; entries after the last row get the number of rows."""
    numbers = jnp.arange(nse, dtype=indptr.dtype)
    return (jnp.searchsorted(indptr, numbers, side="right") - 1).astype(indptr.dtype)


class _Compressed(Matrix):
    """Base class of CSR (`by_rows`) and CSC."""

    indices: Any
    indptr: Any
    by_rows: bool

    def __init__(self, args: Any, *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = [jnp.asarray(x) for x in args]
        super().__init__(args, shape=shape)
        fits = len(self.shape) == 2 and self.indices.shape == self.data.shape
        if not fits or self.indptr.shape != (self.shape[0 if self.by_rows else 1] + 1,):
            says = f"{type(self).__name__}: data and indices must be vectors of equal length, and indptr must have "
            says += f"one element more than the matrix has {'rows' if self.by_rows else 'columns'}; got {shape}."
            raise ValueError(errors.explained(says))

    _bufs = property(lambda self: (self.data, self.indices, self.indptr))

    @classmethod
    def _empty(cls, shape: Any, *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(errors.explained(f"{cls.__name__}: a matrix has two axes; got the shape {shape}."))
        count = shape[0 if cls.by_rows else 1] + 1
        parts = jnp.zeros(0, dtype), jnp.zeros(0, index_dtype), jnp.zeros(count, index_dtype)
        return cls(parts, shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> Any:  # noqa: N803
        rows, cols = positions_of_diagonal(N, M, k)
        if not cls.by_rows:
            rows, cols = cols, rows
        first = beginnings(jnp.asarray(rows, jnp.int32), N if cls.by_rows else M, index_dtype)
        return cls((jnp.ones(len(rows), dtype), jnp.asarray(cols, index_dtype), first), shape=(N, M))

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO array."""
        rows = rows_of(self.indptr, self.nse)
        cols = jnp.where(rows < self.indptr.size - 1, self.indices, self.shape[1 if self.by_rows else 0])
        pair = [rows, cols.astype(rows.dtype)]
        return BCOO((self.data, jnp.stack(pair if self.by_rows else pair[::-1], -1)), shape=self.shape)

    def tree_flatten(self) -> tuple[Sequence[Any], dict[str, Any]]:
        """The leaves and the static data, for the pytree registry."""
        return (self.data, self.indices, self.indptr), {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Any:
        """The matrix from the results of `tree_flatten`."""
        mat = object.__new__(cls)
        mat.data, mat.indices, mat.indptr = children
        mat.shape = aux_data["shape"]
        return mat


def _none(axes: Any) -> None:
    if axes is not None:
        raise NotImplementedError(errors.explained(f"transpose: axes must be None; got {axes}."))


@register
class CSR(_Compressed):
    """A compressed-row matrix: row i has the values `data[indptr[i]:indptr[i + 1]]`, in the columns given by `indices`.

    >>> import atled.numpy as jnp
    >>> x = CSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> x.indices, x @ jnp.ones(2)
    (Array([1, 0], dtype=int32), Array([1., 2.], dtype=float32))
    """

    by_rows = True

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """Convert a dense matrix to a sparse one."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def transpose(self, axes: Any = None) -> CSC:
        """The transposed matrix, in the other compressed format."""
        _none(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register
class CSC(_Compressed):
    """A compressed-column matrix: `CSR` with rows and columns exchanged.

    >>> import atled.numpy as jnp
    >>> CSC.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]])).data
    Array([2., 1.], dtype=float32)
    """

    by_rows = False

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """Convert a dense matrix to a sparse one."""
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    def transpose(self, axes: Any = None) -> CSR:
        """The transposed matrix, in the other compressed format."""
        _none(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """Convert a dense matrix to a sparse one.

    >>> import atled.numpy as jnp
    >>> csr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    mat = checked_matrix("csr_fromdense", mat)
    data, row, col = entries_of(mat, nse, index_dtype, "csr_fromdense")
    count = jnp.minimum(jnp.sum(mat != 0), data.size)
    row = jnp.where(jnp.arange(data.size) < count, row, mat.shape[0])
    return CSR((data, col, beginnings(row, mat.shape[0], index_dtype)), shape=mat.shape)


def csr_todense(mat: CSR) -> Array:
    """The dense matrix.

    >>> from atled.jax.experimental import sparse
    >>> csr_todense(sparse.eye(2, sparse_format="csr"))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return checked("csr_todense", CSR, mat).todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a vector.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> csr_matvec(sparse.eye(2, sparse_format="csr"), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return checked("csr_matvec", CSR, mat)._matmul("csr_matvec", v, transpose, 1)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:  # noqa: N803
    """The product of a matrix, or its transpose, and a dense matrix.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> csr_matmat(sparse.eye(2, sparse_format="csr"), jnp.array([[1.0], [2.0]])).shape
    (2, 1)
    """
    return checked("csr_matmat", CSR, mat)._matmul("csr_matmat", B, transpose, 2)
