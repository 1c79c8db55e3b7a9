"""Matrix decompositions and solvers as `lax.linalg` has them."""

from __future__ import annotations

from typing import Any

from atled.core.trace import bind
from atled.ops import conversion, elementwise
from atled.ops import linalg as _linalg
from atled.ops import matrices as matrices_ops


def _hermitian(x: Any) -> Any:
    return elementwise.mul(elementwise.add(x, matrices_ops.adjoint(x)), 0.5)


def cholesky(a: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with L L* = a; NaN if a is not positive definite."""
    return bind(_linalg.Cholesky(), _hermitian(a) if symmetrize_input else a)


def lu(x: Any) -> tuple[Any, Any, Any]:
    """L and U packed, row exchanges and the permutation."""
    return bind(_linalg.Lu(), x)


def qr(x: Any, *, full_matrices: bool = True) -> tuple[Any, Any]:
    """Q and R with Q R = x."""
    return bind(_linalg.Qr(full_matrices), x)


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True) -> tuple[Any, Any]:
    """Eigenvectors and ascending eigenvalues of a Hermitian matrix."""
    if symmetrize_input:
        x = _hermitian(x)
    elif not lower:
        x = matrices_ops.adjoint(x)
    values, vectors = bind(_linalg.Eigh(), x)
    return vectors, values


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, s and V* of x = U diag(s) V*, or s alone."""
    if not compute_uv:
        return bind(_linalg.Svd(False, False), x)[0]
    s, u, vt = bind(_linalg.Svd(full_matrices, True), x)
    return u, s, vt


def eig(x: Any, *, compute_left_eigenvectors: bool = False, compute_right_eigenvectors: bool = True) -> Any:
    """Eigenvalues and right eigenvectors of any square matrix."""
    if compute_left_eigenvectors:
        raise NotImplementedError("eig: left eigenvectors are those of the adjoint; call eig on it.")
    return list(bind(_linalg.Eig(compute_right_eigenvectors), x))


def schur(x: Any) -> tuple[Any, Any]:
    """The Schur form and the unitary matrix that makes it."""
    return bind(_linalg.Schur(), x)


def hessenberg(a: Any) -> tuple[Any, Any]:
    """The packed Hessenberg form and the scales of its reflectors."""
    return bind(_linalg.Hessenberg(), a)


def householder_product(a: Any, taus: Any) -> Any:
    """The orthogonal matrix that reflectors multiply to."""
    return bind(_linalg.HouseholderProduct(), a, taus)


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """x such that A x = b for a tridiagonal A."""
    return bind(matrices_ops.TridiagonalSolve(), dl, d, du, b)


def triangular_solve(
    a: Any, b: Any, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """x such that a x = b (or x a = b) for triangular a."""
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
