"""Eigenvalues and linear systems of sparse matrices."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes, errors
from atled.core.array import describe
from atled.core.types import ArrayType
from atled.higher_order.callbacks import pure_callback
from atled.higher_order.implicit_diff import custom_linear_solve
from atled.higher_order.while_loop import while_loop
from atled.jax.experimental.sparse.csr import CSR

__all__ = ["lobpcg_standard", "spsolve"]
__dir__ = __all__.copy


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, Any, Any]:  # noqa: N803
    """The k largest eigenvalues of a Hermitian matrix, their eigenvectors, and the number of iterations.

    `A` is an n x n matrix, or a function that returns `A @ v` for a matrix `v` of columns; the k columns of `X` are the
    initial guess, and 5 k must be less than n. An eigenvector v has converged when |A v - lambda v| is less than
    `tol * 10 * n * (lambda + |A v|)`. Each step solves the eigenvalue problem projected on the space spanned by the
    current vectors, their residuals and their last changes (LOBPCG; Knyazev, 2001), in an orthonormal basis.

    >>> import atled, atled.numpy as jnp
    >>> x = atled.random.normal(atled.random.key(0), (20, 1))
    >>> theta, _, _ = lobpcg_standard(jnp.diag(jnp.arange(1.0, 21.0)), x)
    >>> round(float(theta[0]), 3)
    20.0
    """
    x = jnp.asarray(X)
    if x.ndim != 2 or dtypes.kind(x.dtype) not in "fc":
        says = f"lobpcg_standard: X must be a floating matrix of search directions; got {describe(x)}."
        raise ValueError(errors.explained(says))
    n, k = x.shape
    if k == 0 or 5 * k >= n:
        says = f"lobpcg_standard: X must have k columns with 0 < 5 k < n; got k={k}, n={n}."
        raise ValueError(errors.explained(says))
    if callable(A):
        apply = A
    else:
        matrix = A if hasattr(A, "todense") else jnp.asarray(A)
        if tuple(matrix.shape) != (n, n):
            says = f"lobpcg_standard: A must have the shape {(n, n)} to match X; got {tuple(matrix.shape)}."
            raise ValueError(errors.explained(says))
        apply = lambda v: matrix @ v  # noqa: E731
    first: Any = apply(x)
    if getattr(first, "shape", None) != x.shape or first.dtype != x.dtype:
        says = "lobpcg_standard: A must return an array with the shape and dtype of its argument"
        raise ValueError(errors.explained(f"{says}; got {describe(first)} for {describe(x)}."))
    tol = float(dtypes.finfo(x.dtype).eps) if tol is None else tol

    def best(basis: Any, products: Any) -> tuple[Any, Any, Any]:
        """The k largest eigenvalues of A projected on an orthonormal basis; eigenvectors in that basis and in full."""
        small = basis.conj().T @ products
        values, vectors = jnp.linalg.eigh((small + small.conj().T) / 2)
        top = vectors[:, ::-1][:, :k]
        return values[::-1][:k], top, basis @ top

    def residuals(theta: Any, v: Any, av: Any) -> tuple[Any, Any]:
        left = av - v * theta
        size = jnp.linalg.norm(left, axis=0)
        return left, jnp.all(size < tol * 10 * n * (theta + jnp.linalg.norm(av, axis=0)))

    def goes_on(state: Any) -> Any:
        i, _, _, _, _, is_done = state
        return (i < m) & ~is_done

    def step(state: Any) -> Any:
        i, _, v, change, left, _ = state
        rest = jnp.concatenate([_scaled(change), _scaled(left)], 1)
        rest = rest - v @ (v.conj().T @ rest)
        basis, _ = jnp.linalg.qr(jnp.concatenate([v, rest - v @ (v.conj().T @ rest)], 1))
        products = apply(basis)
        theta, top, new = best(basis, products)
        moved = basis[:, k:] @ top[k:]
        left, is_done = residuals(theta, new, products @ top)
        return i + 1, theta, new, moved, left, is_done

    v, _ = jnp.linalg.qr(x)
    av = apply(v)
    theta, top, v = best(v, av)
    left, is_done = residuals(theta, v, av @ top)
    i, theta, v, _, _, _ = while_loop(goes_on, step, (jnp.int32(0), theta, v, jnp.zeros_like(v), left, is_done))
    v, _ = jnp.linalg.qr(v)  # once more, to remove accumulated rounding errors
    theta, _, v = best(v, apply(v))
    return theta, v, i


def _scaled(x: Any) -> Any:
    """A matrix with its columns normalized to length one; zero columns stay zero."""
    size = jnp.linalg.norm(x, axis=0)
    return x / jnp.where(size > 0, size, 1)


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Any:
    """Solve a linear system whose matrix has the `CSR` parts `data`, `indices` and `indptr`.

    SciPy solves it on the host. Differentiable with respect to `data` and `b`. `tol` and `reorder`, for JAX's GPU
    solvers, have no effect.

    >>> import atled.numpy as jnp
    >>> spsolve(jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones(2))
    Array([0.5 , 0.25], dtype=float32)
    """
    data, indices, indptr, b = [jnp.asarray(x) for x in (data, indices, indptr, b)]
    if any([x.ndim != 1 for x in (data, indices, indptr, b)]):
        says = (
            f"spsolve: arguments must be vectors; got {', '.join([describe(x) for x in (data, indices, indptr, b)])}."
        )
        raise ValueError(errors.explained(says, "vmap for several right-hand sides."))
    if data.dtype != b.dtype or dtypes.kind(b.dtype) not in "fc":
        says = f"spsolve: data and b must have the same floating dtype; got {describe(data)} and {describe(b)}."
        raise ValueError(errors.explained(says))
    n = b.size
    if indptr.size != n + 1 or indices.size != data.size:
        says = f"spsolve: the matrix must have {n} rows and columns; got indptr of length {indptr.size}."
        raise ValueError(errors.explained(says))
    mat = CSR((data, indices, indptr), shape=(n, n))

    def solved(is_transposed: bool) -> Any:
        def on_host(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
            solve = importlib.import_module("scipy.sparse.linalg").spsolve  # slow to import, and rarely needed
            matrix = importlib.import_module("scipy.sparse").csr_matrix(
                (np.asarray(data), np.asarray(indices), np.asarray(indptr)), shape=(n, n)
            )
            return np.asarray(solve(matrix.T.tocsr() if is_transposed else matrix, np.asarray(b)), b.dtype)

        def run(_: Any, b: Any) -> Any:
            return pure_callback(on_host, ArrayType((n,), b.dtype), data, indices, indptr, b, vmap_method="sequential")

        return run

    return custom_linear_solve(lambda v: mat @ v, b, solved(False), solved(True))
