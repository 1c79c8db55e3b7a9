"""`COO`: matrices in coordinate format. `BCOO` supports more operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atled import lax
from atled import numpy as jnp
from atled.core import errors
from atled.core.array import Array, describe
from atled.jax.experimental.sparse.base import JAXSparse, register
from atled.jax.experimental.sparse.bcoo import BCOO, counted, positions_of_diagonal
from atled.jax.experimental.sparse.products import bcoo_dot_general
from atled.staging.jit import library_function

__all__ = ["COO", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]


class COOInfo(NamedTuple):
    """The shape of a matrix, and whether its entries are sorted by rows or columns."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


class Matrix(JAXSparse):
    """Base class of COO, CSR and CSC, whose operations convert to BCOO."""

    nse = property(lambda self: self.data.size, doc="The number of stored entries.")
    dtype = property(lambda self: self.data.dtype, doc="The dtype of the data.")

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO array."""
        raise NotImplementedError

    def todense(self) -> Array:
        """The same matrix in dense form."""
        return self.to_bcoo().todense()

    def _matmul(self, name: str, other: Any, is_transposed: bool = False, ndim: int | None = None) -> Array:
        if isinstance(other, JAXSparse):
            says = f"{name}: one of the operands must be dense; got {self!r} and {other!r}."
            raise NotImplementedError(errors.explained(says, "BCOO arrays, which can be multiplied by sparse arrays."))
        other = jnp.asarray(other)
        if other.ndim not in ((1, 2) if ndim is None else (ndim,)):
            expected = {None: "vector or matrix", 1: "vector", 2: "matrix"}[ndim]
            says = f"{name}: the other operand must be a {expected}; got {describe(other)}."
            raise NotImplementedError(errors.explained(says))
        axis = 0 if is_transposed else 1
        return bcoo_dot_general(self.to_bcoo(), other, dimension_numbers=(((axis,), (0,)), ((), ())))

    def __matmul__(self, other: Any) -> Any:
        return self._matmul(f"{type(self).__name__}.__matmul__", other)


def checked_matrix(name: str, x: Any) -> Any:
    """The argument as an array; raises if it is not a matrix."""
    x = jnp.asarray(x)
    if x.ndim != 2:
        raise ValueError(errors.explained(f"{name}: the array must be a matrix; got {describe(x)}."))
    return x


def checked(name: str, cls: Any, x: Any) -> Any:
    """The argument; raises if it is not a sparse matrix of the format `cls`."""
    if not isinstance(x, cls):
        raise TypeError(errors.explained(f"{name}: the argument must be a {cls.__name__} matrix; got {describe(x)}."))
    return x


@register
class COO(Matrix):
    """A sparse matrix: values `data` in rows `row` and columns `col`.

    >>> import atled.numpy as jnp
    >>> x = COO((jnp.array([1.0, 2.0]), jnp.array([0, 1]), jnp.array([2, 0])), shape=(2, 3))
    >>> x @ jnp.array([1.0, 0.0, 5.0])
    Array([5., 2.], dtype=float32)
    """

    row: Any
    col: Any

    def __init__(
        self, args: Any, *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        self.data, self.row, self.col = [jnp.asarray(x) for x in args]
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted
        super().__init__(args, shape=shape)
        if len(self.shape) != 2 or self.row.shape != self.data.shape or self.col.shape != self.data.shape:
            says = f"COO: data, row and col must be vectors of equal length, and the shape a pair; got {shape}."
            raise ValueError(errors.explained(says))

    _info = property(lambda self: COOInfo(self.shape, self._rows_sorted, self._cols_sorted))
    _bufs = property(lambda self: (self.data, self.row, self.col))

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """Convert a dense matrix to a sparse one."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape: Any, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(errors.explained(f"COO: a matrix has two axes; got the shape {shape}."))
        none = jnp.zeros(0, index_dtype)
        return cls((jnp.zeros(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:  # noqa: N803
        rows, cols = positions_of_diagonal(N, M, k)
        parts = (jnp.ones(len(rows), dtype), jnp.asarray(rows, index_dtype), jnp.asarray(cols, index_dtype))
        return cls(parts, shape=(N, M), rows_sorted=True, cols_sorted=True)

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO array."""
        return BCOO((self.data, jnp.stack([self.row, self.col], -1)), shape=self.shape)

    def transpose(self, axes: Any = None) -> COO:
        """The transposed matrix."""
        if axes is not None:
            raise NotImplementedError(errors.explained(f"COO.transpose: axes must be None; got {axes}."))
        flags = {"rows_sorted": self._cols_sorted, "cols_sorted": self._rows_sorted}
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], **flags)

    def _sort_indices(self) -> COO:
        row, col, order = lax.sort((self.row, self.col, jnp.arange(self.nse)), 0, num_keys=2)
        return COO((self.data[order], row, col), shape=self.shape, rows_sorted=True)

    def tree_flatten(self) -> tuple[Sequence[Any], dict[str, Any]]:
        """The leaves and the static data, for the pytree registry."""
        flags = {"rows_sorted": self._rows_sorted, "cols_sorted": self._cols_sorted}
        return (self.data, self.row, self.col), {"shape": self.shape, **flags}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> COO:
        """The matrix from the results of `tree_flatten`."""
        mat = object.__new__(cls)
        mat.data, mat.row, mat.col = children
        mat.shape, mat._rows_sorted, mat._cols_sorted = [aux_data[k] for k in ("shape", "rows_sorted", "cols_sorted")]
        return mat


def entries_of(mat: Any, nse: int | None, index_dtype: Any, name: str) -> tuple[Any, Any, Any]:
    """Values, rows and columns of a dense matrix, sorted by rows. Extra entries are zeros in row and column 0."""
    if nse is None:
        nse = counted(name, jnp.sum(mat != 0))
    return _entries(mat, int(nse), np.dtype(index_dtype))


@library_function(static=("nse", "index_dtype"))
def _entries(mat: Any, nse: int, index_dtype: Any) -> Any:
    row, col = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
    is_there = row < mat.shape[0]
    data = mat.at[row, col].get(mode="fill", fill_value=0)
    return data, *[jnp.where(is_there, x, 0).astype(index_dtype) for x in (row, col)]


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = jnp.int32) -> COO:
    """Convert a dense matrix to a sparse one.

    >>> import atled.numpy as jnp
    >>> coo_fromdense(jnp.eye(2)).col
    Array([0, 1], dtype=int32)
    """
    parts = entries_of(checked_matrix("coo_fromdense", mat), nse, index_dtype, "coo_fromdense")
    return COO(parts, shape=jnp.shape(mat), rows_sorted=True)


def coo_todense(mat: COO) -> Array:
    """The same matrix in dense form.

    >>> from atled.jax.experimental import sparse
    >>> coo_todense(sparse.eye(2, sparse_format="coo"))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return checked("coo_todense", COO, mat).todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a vector.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> coo_matvec(sparse.eye(2, sparse_format="coo"), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return checked("coo_matvec", COO, mat)._matmul("coo_matvec", v, transpose, 1)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:  # noqa: N803
    """The product of a matrix, or its transpose, and a dense matrix.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> coo_matmat(sparse.eye(2, sparse_format="coo"), jnp.array([[1.0], [2.0]])).shape
    (2, 1)
    """
    return checked("coo_matmat", COO, mat)._matmul("coo_matmat", B, transpose, 2)
