"""Matrix decompositions and solvers as `lax.linalg` has them."""

from __future__ import annotations

from typing import Any

from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.numpy.creation import asarray
from atled.numpy.linalg import inv, norm
from atled.ops import conversion, elementwise
from atled.ops import linalg as _linalg
from atled.ops import matrices as matrices_ops


def _hermitian(x: Any) -> Any:
    return elementwise.mul(elementwise.add(x, matrices_ops.adjoint(x)), 0.5)


def _one_way(name: str, **choices: Any) -> None:
    """Complain about a choice between implementations: there is one."""
    for parameter, choice in choices.items():
        if choice:
            raise NotImplementedError(f"{name}: there is one implementation, so {parameter} is None; got {choice!r}.")


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L L* = x; NaN if x is not positive definite."""
    return bind(_linalg.Cholesky(), _hermitian(x) if symmetrize_input else x)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """L and U packed, row exchanges and the permutation."""
    return bind(_linalg.Lu(), x)


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array]:
    """Q and R with Q R = x."""
    _one_way("qr", use_magma=use_magma)
    if pivoting:
        raise NotImplementedError("qr: columns are not exchanged here, so pivoting must be False; got True.")
    return bind(_linalg.Qr(full_matrices), x)


def eigh(
    x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None, implementation: None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Eigenvectors and ascending eigenvalues of a Hermitian matrix: all, or those from one number up to another."""
    _one_way("eigh", implementation=implementation)
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
        raise ValueError(f"{name}: subset_by_index is a start and an end within {count} values; got {subset}.")
    return first, last


def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None, algorithm: None = None,
) -> Any:  # fmt: skip
    """U, s and V* of x = U diag(s) V*, or s alone: all, or the parts from one number up to another."""
    _one_way("svd", algorithm=algorithm)
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
    enable_eigvec_derivs: bool = False, implementation: None = None, use_magma: bool | None = None,
) -> list[Array]:  # fmt: skip
    """Eigenvalues of any square matrix, left eigenvectors, right eigenvectors.

    The left ones are the rows of the inverse of the right ones, which there is unless eigenvectors coincide.
    """
    _one_way("eig", implementation=implementation, use_magma=use_magma)
    values, *right = bind(_linalg.Eig(compute_left_eigenvectors or compute_right_eigenvectors), x)
    if not compute_left_eigenvectors:
        return [values, *right]
    left = matrices_ops.adjoint(inv(right[0]))
    left = left / norm(left, axis=-2, keepdims=True)
    return [values, left, *(right if compute_right_eigenvectors else [])]


def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> list[Array]:
    """The Schur form, and the unitary matrix that makes it."""
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("schur: eigenvalues are not sorted here, so sort_eig_vals must be False; got True.")
    return list(bind(_linalg.Schur(), x))[: 2 if compute_schur_vectors else 1]


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """The packed Hessenberg form and the scales of its reflectors."""
    return bind(_linalg.Hessenberg(), a)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The orthogonal matrix that reflectors multiply to."""
    return bind(_linalg.HouseholderProduct(), a, taus)


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """x such that A x = b for a tridiagonal A."""
    if perturb_singular:
        raise NotImplementedError(
            "tridiagonal_solve: a singular matrix is not changed here; got perturb_singular=True."
        )
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
