"""NumPy's decompositions of matrices: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.numpy.matrix_checks import hermitian_part, in_dtype, matrices
from atled.ops import elementary, indexing, nonsymmetric_eigen, shape, sorting
from atled.ops import elementwise as ew
from atled.ops import linalg as ops
from atled.ops.matrix_ops import adjoint, scale_columns, transposed
from atled.ops.solvers import Reflectors
from atled.staging.jit import library_function


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues of a Hermitian matrix, ascending, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Q with orthonormal columns and upper triangular R."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """U, the singular values, and the adjoint of V."""

    U: Array
    S: Array
    Vh: Array


@library_function(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Lower triangular L with L L* = a, or upper triangular U with U* U = a; NaN if a is not positive definite.

    Unlike NumPy, a is replaced by the mean of itself and its adjoint first, unless `symmetrize_input` is off.

    >>> cholesky(np.asarray([[4.0, 2.0], [2.0, 5.0]], "float32"))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    (x,), result_dtype = matrices("cholesky", a, square=True)
    x = hermitian_part(x) if symmetrize_input else adjoint(x) if upper else x
    root = bind(ops.Cholesky(), x)
    return in_dtype(adjoint(root) if upper else root, result_dtype)


@library_function(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and upper triangular R with Q R = a.

    `mode` is "reduced", "complete" (square Q), "r" (R alone) or "raw" (reflectors and their scales, as in LAPACK).

    >>> qr(np.ones((3, 2), "float32")).R.shape
    (2, 2)
    """
    (x,), result_dtype = matrices("qr", a)
    if mode == "raw":
        packed, scales = bind(Reflectors(), x)
        return QRResult(in_dtype(transposed(packed), result_dtype), in_dtype(scales, result_dtype))
    if mode not in ("reduced", "complete", "full", "r"):
        raise ValueError(f"qr: the mode is 'reduced', 'complete', 'r' or 'raw'; got {mode!r}.")
    q, r = bind(ops.Qr(mode == "complete"), x)
    return in_dtype(r, result_dtype) if mode == "r" else QRResult(in_dtype(q, result_dtype), in_dtype(r, result_dtype))


def svd_parts(x: Any) -> tuple[Any, Any, Any]:
    """The reduced SVD: U, the singular values and the adjoint of V."""
    s, u, vt = bind(ops.Svd(False, True), x)
    return u, s, vt


def hermitian_svd(x: Any) -> tuple[Any, Any, Any]:
    """The SVD of a Hermitian matrix from its eigenvalues; their signs are moved to V."""
    w, v = bind(ops.Eigh(), x)
    last = type_of(w).ndim - 1
    _, order = sorting.sort((ew.neg(elementary.absolute(w)), shape.iota(dtypes.int32, type_of(w).shape, last)), last)
    w = indexing.take_along(w, order, last)
    columns = shape.broadcast(order, type_of(v).shape, (*range(last), last + 1))
    v = indexing.take_along(v, columns, last + 1)
    minus, one = (np.asarray(v, type_of(w).dtype) for v in (-1, 1))
    sign = ew.select(ew.lt(w, 0), minus, one)
    return v, elementary.absolute(w), adjoint(scale_columns(v, sign))


@library_function(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def _svd(
    a: Any, full_matrices: bool, compute_uv: bool, hermitian: bool, subset_by_index: tuple[int, int] | None
) -> Any:
    (x,), result_dtype = matrices("svd", a, square=hermitian)
    k, last = min(type_of(x).shape[-2:]), type_of(x).ndim - 2
    low, high = (0, k) if subset_by_index is None else subset_by_index
    if not 0 <= low <= high <= k:
        raise ValueError(
            f"svd: subset_by_index must be two positions between 0 and {k}, in order; got {subset_by_index}."
        )
    cut = lambda y, axis: in_dtype(shape.slice_in_axis(y, low, high, axis), result_dtype)  # noqa: E731
    if not compute_uv:
        s = hermitian_svd(x)[1] if hermitian else bind(ops.Svd(False, False), x)[0]
        return cut(s, last)
    if hermitian:
        u, s, vt = hermitian_svd(x)
    else:
        s, u, vt = bind(ops.Svd(full_matrices, True), x)
    if subset_by_index is None:
        return SVDResult(in_dtype(u, result_dtype), in_dtype(s, result_dtype), in_dtype(vt, result_dtype))
    return SVDResult(cut(u, last + 1), cut(s, last), cut(vt, last))


def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:  # fmt: skip
    """U, s and V* with a = U diag(s) V* and s descending, or s alone.

    `subset_by_index=(start, stop)` keeps only these singular values, and needs `full_matrices=False`.

    >>> import atled.numpy as jnp
    >>> svd(jnp.diag(jnp.array([3.0, 5.0])), compute_uv=False)
    Array([5., 3.], dtype=float32)
    """
    if subset_by_index is not None:
        if full_matrices and compute_uv:
            raise ValueError("svd: subset_by_index needs full_matrices=False.")
        subset_by_index = (int(subset_by_index[0]), int(subset_by_index[1]))
    return _svd(a, bool(full_matrices), bool(compute_uv), bool(hermitian), subset_by_index)


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of a matrix, descending.

    >>> svdvals(np.asarray([[0.0, 2.0], [3.0, 0.0]], "float32")).round()
    Array([3., 2.], dtype=float32)
    """
    return svd(x, compute_uv=False)


def _triangle_name(name: str, uplo: str | None) -> bool:
    """Whether `UPLO` selects the lower triangle."""
    if uplo not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO is 'L' or 'U'; got {uplo!r}.")
    return uplo != "U"


@library_function(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:  # noqa: N803
    """Eigenvalues, ascending, and eigenvectors of a Hermitian matrix.

    Unlike NumPy, a is replaced by the mean of itself and its adjoint first, unless `symmetrize_input` is off.
    Derivatives are finite also where eigenvalues are equal.

    >>> eigh(np.asarray([[2.0, 1.0], [1.0, 2.0]], "float32")).eigenvalues.round()
    Array([1., 3.], dtype=float32)
    """
    is_lower = _triangle_name("eigh", UPLO)
    (x,), result_dtype = matrices("eigh", a, square=True)
    x = hermitian_part(x) if symmetrize_input else x if is_lower else adjoint(x)
    w, v = bind(ops.Eigh(), x)
    return EighResult(in_dtype(w, result_dtype), in_dtype(v, result_dtype))


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:  # noqa: N803
    """The eigenvalues of a Hermitian matrix, ascending.

    >>> eigvalsh(np.asarray([[2.0, 1.0], [1.0, 2.0]], "float32")).round()
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@library_function
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors of a square matrix. Unlike in NumPy, they are always complex.

    >>> import atled.numpy as jnp
    >>> values, vectors = eig(jnp.array([[0.0, -1.0], [1.0, 0.0]]))  # a quarter turn
    >>> values
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (x,), _ = matrices("eig", a, square=True)
    return EigResult(*bind(nonsymmetric_eigen.Eig(True), x))


@library_function
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of a square matrix. Unlike in NumPy, they are always complex.

    >>> eigvals(np.asarray([[0.0, 1.0], [1.0, 0.0]], "float32")).real.sort().round()
    Array([-1.,  1.], dtype=float32)
    """
    (x,), _ = matrices("eigvals", a, square=True)
    return bind(nonsymmetric_eigen.Eig(False), x)[0]
