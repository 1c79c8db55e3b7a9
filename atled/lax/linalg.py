"""Matrix decompositions and solvers with the API of `lax.linalg`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import atled.numpy as jnp
from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.higher_order.scan import scan
from atled.lax.polar_decomposition import qdwh
from atled.numpy.creation import asarray
from atled.numpy.linalg import inv
from atled.numpy.norms import norm
from atled.ops import conversion, elementwise, nonsymmetric_eigen
from atled.ops import linalg as _linalg
from atled.ops import matrix_ops as matrices_ops
from atled.staging.jit import library_function

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update", "eig", "eigh",
    "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qdwh", "qr", "schur",
    "svd", "symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip
__dir__ = __all__.copy


def _hermitian(x: Any) -> Any:
    return elementwise.mul(elementwise.add(x, matrices_ops.adjoint(x)), 0.5)


class EigImplementation(enum.Enum):
    """The implementation of nonsymmetric eigenvalues: always LAPACK here."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """The algorithm for Hermitian eigenvalues: always QR here."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """The algorithm for singular values: always divide and conquer here; QR is accepted as well."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _is_there(name: str, parameter: str, choice: Any, *known: Any) -> None:
    """Raise an error for an implementation that is not available."""
    if choice is not None and choice not in known:
        names = " or ".join([str(k) for k in known])
        raise NotImplementedError(errors.explained(f"{name}: {parameter} is None or {names}; got {choice!r}."))


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L L* = x; NaN if x is not positive definite."""
    return bind(_linalg.Cholesky(), _hermitian(x) if symmetrize_input else x)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """L and U in one matrix, the pivots (row exchanges) and the permutation."""
    return bind(_linalg.Lu(), x)


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array]:
    """Q and R with Q R = x. `use_magma` applies to GPUs only."""
    if pivoting:
        raise NotImplementedError("qr: pivoting is not supported; got pivoting=True.")
    return bind(_linalg.Qr(full_matrices), x)


def eigh(
    x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None, implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Eigenvectors and ascending eigenvalues of a Hermitian matrix: all, or those with indices in `subset_by_index`."""
    _is_there("eigh", "implementation", implementation, EighImplementation.QR)
    if symmetrize_input:
        x = _hermitian(x)
    elif not lower:
        x = matrices_ops.adjoint(x)
    values, vectors = bind(_linalg.Eigh(), x)
    if subset_by_index is not None:
        first, last = _checked_subset("eigh", subset_by_index, type_of(values).shape[-1])
        values, vectors = values[..., first:last], vectors[..., first:last]
    return vectors, values


def _checked_subset(name: str, subset: tuple[int, int], count: int) -> tuple[int, int]:
    first, last = subset
    if not 0 <= first < last <= count:
        raise ValueError(f"{name}: subset_by_index must satisfy 0 <= start < end <= {count}; got {subset}.")
    return first, last


def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None,
) -> Any:  # fmt: skip
    """U, s and V* of x = U diag(s) V*, or s alone: all, or those with indices in `subset_by_index`."""
    known = (SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER)
    _is_there("svd", "algorithm", algorithm, *known)
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("svd: subset_by_index needs full_matrices=False; got True.")
    s, *uv = bind(_linalg.Svd(full_matrices and compute_uv, compute_uv), x)
    if subset_by_index is not None:
        first, last = _checked_subset("svd", subset_by_index, type_of(s).shape[-1])
        s = s[..., first:last]
        uv = [v[..., first:last] if i == 0 else v[..., first:last, :] for i, v in enumerate(uv)]
    return (uv[0], s, uv[1]) if compute_uv else s


def eig(
    x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None, use_magma: bool | None = None,
) -> list[Array]:  # fmt: skip
    """Eigenvalues of any square matrix, left eigenvectors, right eigenvectors.

    The left eigenvectors come from the inverse of the matrix of right ones, which exists if those are independent.
    """
    _is_there("eig", "implementation", implementation, EigImplementation.LAPACK)
    _is_there("eig", "use_magma", use_magma, False)
    values, *right = bind(nonsymmetric_eigen.Eig(compute_left_eigenvectors or compute_right_eigenvectors), x)
    if not compute_left_eigenvectors:
        return [values, *right]
    left = matrices_ops.adjoint(inv(right[0]))
    left = left / norm(left, axis=-2, keepdims=True)
    return [values, left, *(right if compute_right_eigenvectors else [])]


def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> list[Array]:
    """The Schur form, and the unitary matrix that produces it."""
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("schur: sorting is not supported; got sort_eig_vals=True.")
    return list(bind(nonsymmetric_eigen.Schur(), x))[: 2 if compute_schur_vectors else 1]


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """The packed Hessenberg form and the scales of its reflectors."""
    return bind(nonsymmetric_eigen.Hessenberg(), a)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The orthogonal matrix that is the product of Householder reflectors."""
    return bind(_linalg.HouseholderProduct(), a, taus)


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """x such that A x = b for a tridiagonal A."""
    if perturb_singular:
        raise NotImplementedError("tridiagonal_solve: perturb_singular=True is not supported.")
    return bind(matrices_ops.TridiagonalSolve(), dl, d, du, b)


def triangular_solve(
    a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Array:  # fmt: skip
    """x such that a x = b (or x a = b) for triangular a."""
    a, b = asarray(a), asarray(b)
    is_vector = b.ndim == a.ndim - 1
    if is_vector:
        b = b[..., None] if left_side else b[..., None, :]
    if conjugate_a and not transpose_a:
        a = conversion.conj(a) if a.type.kind == "c" else a
    form = ("C" if conjugate_a else "T") if transpose_a else "N"
    out = matrices_ops.triangular_solve(a, b, left_side, lower, form, unit_diagonal)
    if is_vector:
        return out[..., 0] if left_side else out[..., 0, :]
    return out


# -- updates, products and reductions ---------------------------------------------------------------------------------


def _floats_of_one_dtype(name: str, xs: Sequence[Any], takes_complex: bool = False) -> None:
    types = [type_of(x) for x in xs]
    kinds = "fc" if takes_complex else "f"
    if any([t.kind not in kinds or t.dtype is not types[0].dtype for t in types]):
        kind_name = "floating or complex" if takes_complex else "floating"
        raise TypeError(errors.explained(f"{name}: {kind_name} numbers of the same dtype are needed; got {types}."))


@library_function
def _cholesky_update(r: Any, w: Any) -> Any:
    def step(w: Any, given: Any) -> tuple[Any, Any]:
        row, k = given
        a, b = row[k], w[k]
        size = jnp.hypot(a, b)
        is_zero = size == 0
        size = jnp.where(is_zero, 1, size)
        cosine, sine = jnp.where(is_zero, 1, a / size), jnp.where(is_zero, 0, b / size)
        return cosine * w - sine * row, cosine * row + sine * w

    rotated = scan(step, w, (r, jnp.arange(r.shape[0])))[1]
    return matrices_ops.triangle(rotated, False)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular R with R* R = r* r + w w*, by a Givens rotation of each row.

    >>> import atled.numpy as jnp
    >>> cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    r, w = type_of(r_matrix), type_of(w_vector)
    _floats_of_one_dtype("cholesky_update", (r_matrix, w_vector))
    if r.ndim != 2 or r.shape[0] != r.shape[1] or w.shape != r.shape[:1]:
        raise ValueError(
            errors.explained(f"cholesky_update: a square matrix and a vector of its size are needed; got {r} and {w}.")
        )
    return _cholesky_update(asarray(r_matrix), asarray(w_vector))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Row exchanges, as returned by `lu`, converted to a permutation.

    >>> import atled.numpy as jnp
    >>> lu_pivots_to_permutation(jnp.array([2, 2, 2]), 3)
    Array([2, 0, 1], dtype=int32)
    """
    t = type_of(asarray(pivots))
    if t.dtype is not dtypes.int32 or t.ndim == 0:
        raise TypeError(errors.explained(f"lu_pivots_to_permutation: pivots must be a vector of int32; got {t}."))
    if t.shape[-1] > permutation_size:
        raise ValueError(
            errors.explained(
                f"lu_pivots_to_permutation: there cannot be more pivots than rows; got {t.shape[-1]} for "
                f"{permutation_size}."
            )
        )
    return matrices_ops.permutation_of(asarray(pivots), permutation_size)


@library_function(static=("left", "transpose"))
def _ormqr(a: Any, taus: Any, c: Any, left: bool, transpose: bool) -> Any:
    # Reflectors v multiply to I - V T V*, with T = (I + D S)^-1 D: D has their scales, S is V* V above its diagonal.
    k = taus.shape[-1]
    v = matrices_ops.triangle(a[..., :k], True, -1) + jnp.eye(a.shape[-2], k, dtype=a.dtype)
    across = matrices_ops.adjoint(v)
    between = taus[..., None] * matrices_ops.triangle(across @ v, False, 1)  # solved with unit diagonal
    solve = lambda x: matrices_ops.triangular_solve(between, x, left, False, "C" if transpose else "N", True)  # noqa: E731
    scale = taus.conj() if transpose else taus
    scale = scale[..., None] if left else scale[..., None, :]
    seen = across @ c if left else c @ v
    seen = solve(scale * seen) if left != transpose else scale * solve(seen)
    return c - (v @ seen if left else seen @ across)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Q c, Q* c, c Q or c Q* for the Q of a QR decomposition that is given as reflectors and scales.

    >>> import atled.numpy as jnp
    >>> packed, taus = jnp.linalg.qr(jnp.array([[3.0], [4.0]]), mode="raw")
    >>> ormqr(packed.mT, taus, jnp.array([[1.0], [0.0]])).round(3)
    Array([[-0.6],
           [-0.8]], dtype=float32)
    """
    _floats_of_one_dtype("ormqr", (a, taus, c), takes_complex=True)
    x, t, y = type_of(a), type_of(taus), type_of(c)
    fits = x.ndim >= 2 and y.ndim == x.ndim and t.shape[:-1] == x.shape[:-2] == y.shape[:-2]
    if not fits or t.ndim != x.ndim - 1 or t.shape[-1] > min(x.shape[-2:]):
        raise TypeError(
            errors.explained(f"ormqr: reflectors {x}, scales {t} and the matrix {y} have incompatible shapes.")
        )
    if y.shape[-2 if left else -1] != x.shape[-2]:
        side = "rows" if left else "columns"
        raise ValueError(
            errors.explained(f"ormqr: c must have {x.shape[-2]} {side}, the number of rows of a; got {y}.")
        )
    return _ormqr(asarray(a), asarray(taus), asarray(c), left, transpose)


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """alpha a a* + beta c; with `symmetrize_output`, the upper triangle mirrors the lower one.

    >>> import atled.numpy as jnp
    >>> symmetric_product(jnp.array([[1.0], [2.0]]), jnp.eye(2), beta=3.0)
    Array([[4., 2.],
           [2., 7.]], dtype=float32)
    """
    _floats_of_one_dtype("symmetric_product", (a_matrix, c_matrix))
    a, c = type_of(a_matrix), type_of(c_matrix)
    if a.ndim < 2 or c.shape != (*a.shape[:-2], a.shape[-2], a.shape[-2]):
        raise ValueError(
            errors.explained(f"symmetric_product: matrices [..., m, n] and [..., m, m] are needed; got {a} and {c}.")
        )
    x, y = asarray(a_matrix), asarray(c_matrix)
    out = alpha * matrices_ops.matmul(x, matrices_ops.transposed(x)) + beta * y
    if symmetrize_output:
        strict = matrices_ops.triangle(out, True, -1)
        out = matrices_ops.triangle(out, True) + matrices_ops.transposed(strict)
    return out


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """The tridiagonal form of a Hermitian matrix, of which one triangle is read.

    Returns a matrix that holds the form and the Householder reflectors, the diagonal, the off-diagonal, and the scales
    of the reflectors.

    >>> import atled.numpy as jnp
    >>> _, d, e, _ = tridiagonal(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> d, e
    (Array([2., 3.], dtype=float32), Array([1.], dtype=float32))
    """
    return bind(nonsymmetric_eigen.Tridiagonal(lower), asarray(a))
