"""Iterative solvers of A x = b, where A is a matrix or a function, and x and b are pytrees of arrays.

Derivatives solve equations with A or its transpose instead of differentiating the iterations: they are as accurate as
the solutions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes, tree
from atled.core.array import Array, ArrayLike, type_of
from atled.higher_order.implicit_diff import custom_linear_solve
from atled.higher_order.while_loop import fori_loop, while_loop
from atled.numpy.promotion import cast, inexact_dtype
from atled.ops import conversion

__all__ = ["bicgstab", "cg", "gmres"]
__dir__ = __all__.copy

Operator = Callable[[Any], Any]

# -- trees as vectors -------------------------------------------------------------------------------------------------


def _dot(x: Any, y: Any) -> Any:
    """The inner product of two pytrees, of which the first is conjugated."""
    parts = [jnp.vdot(a, b, precision="highest") for a, b in zip(tree.leaves(x), tree.leaves(y), strict=True)]
    return sum(parts[1:], parts[0])


def _real_dot(x: Any, y: Any) -> Any:
    out = _dot(x, y)
    return conversion.real(out) if type_of(out).kind == "c" else out


def _moved(x: Any, factor: Any, y: Any) -> Any:
    """x + factor y; leaves keep their dtypes."""
    return tree.map(lambda a, b: a + cast(factor, type_of(a).dtype) * b, x, y)


def _less(x: Any, y: Any) -> Any:
    return tree.map(lambda a, b: a - b, x, y)


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return tree.map(lambda a, b: jnp.where(condition, a, b), x, y)


def _ratio(x: Any, y: Any) -> Any:
    """x / y, and zero where y is zero."""
    is_zero = y == 0
    return jnp.where(is_zero, jnp.zeros_like(x / 1), x / jnp.where(is_zero, jnp.ones_like(y), y))


# -- arguments --------------------------------------------------------------------------------------------------------


def _operator(name: str, what: str, f: Any) -> tuple[Operator, Operator]:
    """An argument as a linear function, and its transpose; raises unless it is a square matrix, a function or None."""
    if f is None:
        return (lambda x: x), (lambda x: x)
    if isinstance(f, (Array, np.ndarray)):
        t = type_of(f)
        if t.ndim != 2 or t.shape[0] != t.shape[1]:
            raise ValueError(f"{name}: {what} must be a square matrix, or a function; got {t}.")
        product = lambda x: jnp.matmul(f, x, precision="highest")  # noqa: E731
        return product, lambda x: jnp.matmul(jnp.swapaxes(f, 0, 1), x, precision="highest")
    if callable(f):
        return f, f
    if hasattr(f, "__matmul__"):
        return (lambda x: f @ x), (lambda x: f @ x)
    raise TypeError(f"{name}: {what} must be a square matrix, or a function; got {type(f).__name__}.")


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return cast(x, inexact_dtype(type_of(x).dtype))


def _solution(
    name: str, iterate: Callable[..., Any], a: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any, m: Any,
    is_symmetric: bool = False,
) -> Any:  # fmt: skip
    apply, _ = _operator(name, "A", a)
    improve, improve_transposed = _operator(name, "M", m)
    if not tree.leaves(b):
        return b
    b = tree.map(_inexact, b)
    x0 = tree.map(jnp.zeros_like, b) if x0 is None else x0
    if tree.structure(x0) != tree.structure(b):
        raise ValueError(f"{name}: x0 must have the structure of b, {tree.structure(b)}; got {tree.structure(x0)}.")
    shapes = [[np.shape(v) for v in tree.leaves(x)] for x in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}: x0 must have the shapes of b, {shapes[1]}; got {shapes[0]}.")
    start = tree.map(lambda x, y: cast(jnp.asarray(x), type_of(y).dtype), x0, b)
    size = sum(type_of(v).size for v in tree.leaves(b))
    steps = 10 * size if maxiter is None else maxiter

    def solve(matvec: Operator, right: Any, better: Operator) -> Any:
        real = dtypes.real_part(type_of(_dot(right, right)).dtype)
        least = jnp.maximum(cast(tol, real) * jnp.sqrt(_real_dot(right, right)), cast(atol, real))
        x, r = iterate(matvec, right, start, least, steps, better)
        is_nan = jnp.isnan(_real_dot(r, r))  # NaN compares false, which ended the iterations
        return tree.map(lambda v: jnp.where(is_nan, cast(np.nan, type_of(v).dtype), v), x)

    return custom_linear_solve(
        apply, b, lambda f, y: solve(f, y, improve), lambda f, y: solve(f, y, improve_transposed), is_symmetric
    )


# -- conjugate gradients ----------------------------------------------------------------------------------------------


def _iterate_cg(matvec: Operator, b: Any, x: Any, least: Any, steps: Any, improve: Operator) -> Any:
    residual = _less(b, matvec(x))
    better = improve(residual)

    def goes_on(state: Any) -> Any:
        _, r, gamma, _, k = state
        return (_real_dot(r, r) > least**2) & (k < steps) & (gamma != 0)

    def step(state: Any) -> Any:
        x, r, gamma, p, k = state
        image = matvec(p)
        alpha = _ratio(gamma, _real_dot(p, image))
        x, r = _moved(x, alpha, p), _moved(r, -alpha, image)
        z = improve(r)
        following = _real_dot(r, z)
        return x, r, following, _moved(z, _ratio(following, gamma), p), k + 1

    return while_loop(goes_on, step, (x, residual, _real_dot(residual, better), better, 0))[:2]


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0, maxiter: int | None = None,  # noqa: N803
    M: Any = None,  # noqa: N803
) -> tuple[Any, None]:  # fmt: skip
    """x with A x = b for Hermitian positive definite A, by conjugate gradients; the second result is None.

    Iterations end when the norm of the residual is at most `tol` times that of b, or at most `atol`, or after `maxiter`
    iterations. M is a preconditioner, an approximate inverse of A.

    >>> import atled.numpy as jnp
    >>> cg(lambda x: 2.0 * x, jnp.array([2.0, 4.0]))[0]
    Array([1., 2.], dtype=float32)
    """
    is_real = all([type_of(v).kind != "c" for v in tree.leaves(b)])
    return _solution("cg", _iterate_cg, A, b, x0, tol, atol, maxiter, M, is_real), None


def _iterate_bicgstab(matvec: Operator, b: Any, x: Any, least: Any, steps: Any, improve: Operator) -> Any:
    """The solution and its residual by H. A. van der Vorst, Bi-CGSTAB (1992)."""
    first = _less(b, matvec(x))
    one = jnp.ones_like(_dot(first, first))

    def goes_on(state: Any) -> Any:
        _, r, *_, k, is_stuck = state
        return (_real_dot(r, r) > least**2) & (k < steps) & ~is_stuck

    def step(state: Any) -> Any:
        x, r, alpha, omega, rho, p, q, k, _ = state
        following = _dot(first, r)
        beta = _ratio(following, rho) * _ratio(alpha, omega)
        p = _moved(r, beta, _moved(p, -omega, q))
        direction = improve(p)
        q = matvec(direction)
        alpha = _ratio(following, _dot(first, q))
        half = _moved(r, -alpha, q)
        x = _moved(x, alpha, direction)
        is_done = _real_dot(half, half) <= least**2
        other = improve(half)
        image = matvec(other)
        omega = _ratio(_dot(image, half), _dot(image, image))
        r = _chosen(is_done, half, _moved(half, -omega, image))
        x = _chosen(is_done, x, _moved(x, omega, other))
        return x, r, alpha, omega, following, p, q, k + 1, ~is_done & ((following == 0) | (alpha == 0) | (omega == 0))

    zero = tree.map(jnp.zeros_like, first)
    return while_loop(goes_on, step, (x, first, one, one, one, zero, zero, 0, jnp.asarray(False)))[:2]


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0, maxiter: int | None = None,  # noqa: N803
    M: Any = None,  # noqa: N803
) -> tuple[Any, None]:  # fmt: skip
    """x with A x = b for any invertible A, by stabilized biconjugate gradients; the second result is None.

    Arguments are those of `cg`.

    >>> bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))[0].round()
    Array([1., 2.], dtype=float32)
    """
    return _solution("bicgstab", _iterate_bicgstab, A, b, x0, tol, atol, maxiter, M), None


# -- generalized minimal residuals ------------------------------------------------------------------------------------


def _combined(weights: Any, basis: Any) -> Any:
    """The weighted sum of basis vectors, which are stacked on a leading axis."""
    return tree.map(lambda v: jnp.tensordot(cast(weights, type_of(v).dtype), v, 1, precision="highest"), basis)


def _products(basis: Any, x: Any) -> Any:
    """The inner products of the vectors of a basis with x."""
    parts = []
    for v, y in zip(tree.leaves(basis), tree.leaves(x), strict=True):
        rows = jnp.reshape(v, (type_of(v).shape[0], -1))
        parts.append(jnp.matmul(jnp.conj(rows), jnp.reshape(y, (-1,)), precision="highest"))
    return sum(parts[1:], parts[0])


def _put(x: Any, value: Any, at: Any) -> Any:
    return tree.map(lambda a, v: a.at[at].set(cast(v, type_of(a).dtype)), x, value)


def _rotated(column: Any, turns: Any, i: Any) -> Any:
    """A column with Givens rotation i applied to its elements i and i + 1."""
    c, s = turns[i, 0], turns[i, 1]
    high, low = column[i], column[i + 1]
    return column.at[i].set(jnp.conj(c) * high + jnp.conj(s) * low).at[i + 1].set(c * low - s * high)


def _cycle(matvec: Operator, improve: Operator, r: Any, size: Any, least: Any, count: int) -> Any:
    """The update of x after at most `count` steps from residual r: Y. Saad and M. H. Schultz, GMRES (1986)."""
    scalar = _dot(r, r)
    dtype, rounding = type_of(scalar).dtype, float(dtypes.finfo(dtypes.real_part(type_of(scalar).dtype)).eps)
    basis = tree.map(lambda v: jnp.zeros((count + 1, *type_of(v).shape), type_of(v).dtype), r)
    basis = _put(basis, tree.map(lambda v: v / cast(size, type_of(v).dtype), r), 0)
    right = jnp.zeros(count + 1, dtype).at[0].set(cast(size, dtype))

    def goes_on(state: Any) -> Any:
        k, error, *_ = state
        return (k < count) & (error > least)

    def step(state: Any) -> Any:
        k, _, basis, columns, turns, right = state
        image = matvec(improve(tree.map(lambda v: v[k], basis)))
        length = jnp.sqrt(_real_dot(image, image))
        column = jnp.zeros(count + 1, dtype)
        for _ in range(2):  # twice: once is inaccurate if A v is almost in the span of the basis
            shares = cast(_products(basis, image), dtype)
            image, column = _less(image, _combined(shares, basis)), column + shares
        rest = jnp.sqrt(_real_dot(image, image))
        rest = jnp.where(rest > rounding * length, rest, jnp.zeros_like(rest))
        inverse = _ratio(jnp.ones_like(rest), rest)
        basis = _put(basis, tree.map(lambda v: v * cast(inverse, type_of(v).dtype), image), k + 1)
        column = fori_loop(0, k, lambda i, c: _rotated(c, turns, i), column.at[k + 1].set(cast(rest, dtype)))
        high, low = column[k], column[k + 1]
        both = cast(jnp.sqrt(jnp.abs(high) ** 2 + jnp.abs(low) ** 2), dtype)
        is_zero = both == 0
        both = jnp.where(is_zero, jnp.ones_like(both), both)
        turn = jnp.stack([jnp.where(is_zero, jnp.ones_like(both), high / both), low / both])
        turns = turns.at[k].set(turn)
        column, right = _rotated(column, turns, k), _rotated(right, turns, k)
        error = jnp.where(rest == 0, jnp.zeros_like(rest), jnp.abs(right[k + 1]))
        return k + 1, error, basis, columns.at[:, k].set(column[:count]), turns, right

    state = (0, size, basis, jnp.eye(count, dtype=dtype), jnp.zeros((count, 2), dtype), right)
    k, _, basis, columns, _, right = while_loop(goes_on, step, state)
    rhs = jnp.where(np.arange(count) < k, right[:count], jnp.zeros((), dtype))
    diagonal = jnp.diagonal(columns)  # may be zero if A is singular
    columns = jnp.where(np.eye(count, dtype=bool) & (diagonal == 0), jnp.ones((), dtype), columns)
    rhs = jnp.where(diagonal == 0, jnp.zeros((), dtype), rhs)
    weights = fori_loop(0, count, lambda i, y: _substituted(columns, y, count - 1 - i), rhs)
    return improve(_combined(jnp.append(weights, jnp.zeros((), dtype)), basis))


def _substituted(upper: Any, y: Any, i: Any) -> Any:
    """y after step i of back substitution: element i is the solution, and its column is subtracted from those above."""
    value = y[i] / upper[i, i]
    places = np.arange(type_of(y).shape[0])
    return jnp.where(places < i, y - upper[:, i] * value, jnp.where(places == i, value, y))


def gmres(
    A: Any, b: Any, x0: Any = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0, restart: int = 20,  # noqa: N803
    maxiter: int | None = None, M: Any = None, solve_method: str = "batched",  # noqa: N803
) -> tuple[Any, Array]:  # fmt: skip
    """x with A x = b for any invertible A, by generalized minimal residuals, and a code: 0, or -1 if x is NaN.

    After `restart` steps, the method restarts from its current x, at most `maxiter` times. The method "incremental"
    checks the residual after each step, "batched" after each restart. The other arguments are those of `cg`.

    >>> gmres(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))[0].round()
    Array([1., 2.], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: the solve_method is 'batched' or 'incremental'; got {solve_method!r}.")

    def iterate(matvec: Operator, right: Any, x: Any, least: Any, steps: Any, improve: Operator) -> Any:
        count = min(int(restart), max(sum(type_of(v).size for v in tree.leaves(right)), 1))
        length = lambda r: jnp.sqrt(_real_dot(r, r))  # noqa: E731
        inner = least if solve_method == "incremental" else jnp.zeros_like(least)

        def step(state: Any) -> Any:
            x, r, size, k = state
            x = tree.map(lambda v, w: v + w, x, _cycle(matvec, improve, r, size, inner, count))
            r = _less(right, matvec(x))
            return x, r, length(r), k + 1

        first = _less(right, matvec(x))
        return while_loop(lambda s: (s[2] > least) & (s[3] < steps), step, (x, first, length(first), 0))[:2]

    x = _solution("gmres", iterate, A, b, x0, tol, atol, maxiter, M)
    is_nan = sum([jnp.any(jnp.isnan(v)) for v in tree.leaves(x)], jnp.asarray(False))
    return x, jnp.where(is_nan, -1, 0)
