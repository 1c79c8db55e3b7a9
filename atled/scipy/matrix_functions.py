"""Functions of square matrices: `expm` by Pade approximants, others by a Schur form; `solve_sylvester`.

The function of a triangular matrix is computed column by column: each column is the solution of a triangular system
that depends on the columns before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.higher_order.custom_derivatives import custom_jvp
from atled.higher_order.implicit_diff import custom_linear_solve
from atled.higher_order.while_loop import fori_loop
from atled.numpy.creation import asarray
from atled.numpy.matrix_checks import in_dtype, matrices
from atled.numpy.promotion import broadcast_shapes, broadcast_to, cast, promote_inexact
from atled.ops import conversion, elementary, nonsymmetric_eigen, reduction, shape
from atled.ops import elementwise as ew
from atled.ops import matrix_ops as matrices_ops
from atled.ops.matrix_ops import adjoint, diagonal, matmul, transposed, triangle, triangular_solve
from atled.ops.solvers import fixed, solve_matrices
from atled.staging.jit import library_function
from atled.transforms.grad import jvp

__all__ = ["funm", "rsf2csf", "solve_sylvester", "sqrtm"]


def _complex_schur(a: Any) -> tuple[Any, Any]:
    return bind(nonsymmetric_eigen.Schur(), cast(a, dtypes.complex_of(type_of(a).dtype)))


def _diagonal_matrix(v: Any) -> Any:
    """Diagonal matrices with v on their diagonals."""
    return jnp.where(jnp.eye(type_of(v).shape[-1], dtype=bool), v[..., None, :], np.zeros((), type_of(v).dtype))


def _solved(upper: Any, right: Any) -> Any:
    """The vector x that solves `upper @ x = right`."""
    return triangular_solve(upper, right[..., None], left=True, lower=False)[..., 0]


def _with_columns(out: Any, column: Callable[[Any, Any], Any]) -> Any:
    """`out` plus columns j = 0, 1, ..., which are `column(j, so_far)` in turn, where `so_far` has the earlier ones."""
    n = type_of(out).shape[-1]
    places = np.arange(n)

    def step(j: Any, so_far: Any) -> Any:
        here = jnp.where(places == j, column(j, so_far)[..., None], np.zeros((), type_of(so_far).dtype))
        return ew.add(so_far, here)

    return fori_loop(0, n, step, out) if n else out


# -- Sylvester's equation ---------------------------------------------------------------------------------------------


def _by_schur(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """X with A X + X B = C, and the eigenvalues of A and B."""
    r, u = _complex_schur(a)
    s, v = _complex_schur(b)
    right = matmul(matmul(adjoint(u), c), v)

    def column(j: Any, y: Any) -> Any:
        moved = _diagonal_matrix(jnp.broadcast_to(s[..., j, j][..., None], type_of(r).shape[:-1]))
        return _solved(ew.add(r, moved), ew.sub(right[..., j], matmul(y, s[..., j][..., None])[..., 0]))

    y = _with_columns(shape.zeros(type_of(right)), column)
    return matmul(matmul(u, y), adjoint(v)), diagonal(r), diagonal(s)


def _by_eigenvalues(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    r, u = bind(nonsymmetric_eigen.Eig(), a)
    s, v = bind(nonsymmetric_eigen.Eig(), b)
    y = ew.div(solve_matrices(u, matmul(c, v)), r[..., :, None] + s[..., None, :])
    return transposed(solve_matrices(transposed(v), transposed(matmul(u, y)))), r, s


def _sylvester(a: Any, b: Any, c: Any, method: str, tol: Any) -> Any:
    """X with A X + X B = C for matrices of the same dtype; derivatives use its linearity in C."""

    def solve(left: Any, right: Any, y: Any) -> Any:
        if type_of(y).size == 0:
            return y
        wide = cast(y, dtypes.complex_of(type_of(y).dtype))
        x, r, s = (_by_schur if method == "schur" else _by_eigenvalues)(left, right, wide)
        is_singular = jnp.any(
            elementary.absolute(r[..., :, None] + s[..., None, :]) < tol, axis=(-1, -2), keepdims=True
        )
        x = x if type_of(y).kind == "c" else conversion.real(x)
        return jnp.where(is_singular, np.asarray(np.nan, type_of(x).dtype), x)

    return custom_linear_solve(
        lambda x: ew.add(matmul(a, x), matmul(x, b)),
        c,
        lambda _, y: solve(a, b, y),
        lambda _, y: solve(transposed(a), transposed(b), y),
    )


@library_function(static=("method",))
def _solve_sylvester(a: Any, b: Any, c: Any, tol: Any, method: str) -> Any:
    (x, y, z), result_dtype = matrices("solve_sylvester", a, b, c, square=True)
    types = [type_of(v) for v in (x, y, z)]
    m, n = types[0].shape[-1], types[1].shape[-1] if types[1].ndim else -1
    if types[1].shape[-2:] != (n, n) or types[2].shape[-2:] != (m, n):
        got = ", ".join(str(type_of(v)) for v in (a, b, c))
        raise ValueError(
            f"solve_sylvester: A and B must be square, and C must have the rows of A and the columns of B; got {got}."
        )
    lead = broadcast_shapes(*[t.shape[:-2] for t in types])
    x, y, z = (broadcast_to(v, (*lead, *t.shape[-2:])) for v, t in zip((x, y, z), types, strict=True))
    return in_dtype(_sylvester(x, y, z, method, tol), result_dtype)


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:  # noqa: N803
    """X such that A X + X B = C; NaN if eigenvalues of A and -B are closer than `tol`: there may be no solution.

    The method is "schur", or "eigen", which is faster but needs diagonalizable matrices.

    >>> import atled.numpy as jnp
    >>> solve_sylvester(jnp.eye(2), jnp.eye(2), jnp.array([[2.0, 4.0], [6.0, 8.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: the method is 'schur' or 'eigen'; got {method!r}.")
    return _solve_sylvester(A, B, C, tol, method)


# -- functions --------------------------------------------------------------------------------------------------------


@custom_jvp
def _root(a: Any) -> Any:
    """The principal square root of complex matrices."""
    form, vectors = _complex_schur(a)
    roots = elementary.sqrt(diagonal(form))
    places = np.arange(type_of(form).shape[-1])
    zero = np.zeros((), type_of(form).dtype)
    least = np.asarray(dtypes.finfo(dtypes.real_part(type_of(form).dtype)).tiny, type_of(form).dtype)

    def column(j: Any, strict: Any) -> Any:
        # U U = T, above the diagonal of column j: (U + u_jj) u_j = t_j
        sums = roots + roots[..., j][..., None]
        sums = jnp.where(places < j, jnp.where(sums == 0, least, sums), np.ones((), type_of(form).dtype))
        return _solved(ew.add(strict, _diagonal_matrix(sums)), jnp.where(places < j, form[..., j], zero))

    upper = ew.add(_with_columns(shape.zeros(type_of(form)), column), _diagonal_matrix(roots))
    return matmul(matmul(vectors, upper), adjoint(vectors))


@_root.defjvp
def _root_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    root = _root(*primals)
    return root, _sylvester(root, root, tangents[0], "schur", 0.0)


@library_function
def _sqrtm(a: Any) -> Any:
    (x,), _ = matrices("sqrtm", a, square=True)
    return _root(cast(x, dtypes.complex_of(type_of(x).dtype)))


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:  # noqa: N803
    """X with X X = A, as a complex matrix; the eigenvalues of X have no negative real parts.

    X is differentiable where A has no zero eigenvalue.

    >>> import atled.numpy as jnp
    >>> sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize > 1:
        raise NotImplementedError(f"sqrtm: the blocked algorithm is not supported; got blocksize={blocksize}.")
    return _sqrtm(A)


@library_function
def _schur_of(a: Any) -> tuple[Any, Any, Any]:
    (x,), _ = matrices("funm", a, square=True)
    form, vectors = _complex_schur(x)
    return form, vectors, diagonal(form)


@library_function
def _parlett(form: Any, vectors: Any, values: Any) -> tuple[Any, Any]:
    """A matrix function from a Schur form and values at eigenvalues (B. N. Parlett, 1976), and an error estimate."""
    n, dtype = type_of(form).shape[-1], type_of(form).dtype
    places, zero = np.arange(n), np.zeros((), dtype)
    values = cast(values, dtype)
    points, above = diagonal(form), triangle(form, False, 1)

    def column(j: Any, so_far: Any) -> Any:
        # column j of F T = T F, solved for F
        gaps = points[..., j][..., None] - points
        gaps = jnp.where(places < j, jnp.where(gaps == 0, np.ones((), dtype), gaps), np.ones((), dtype))
        right = values[..., j][..., None] * form[..., j] - matmul(so_far, form[..., j][..., None])[..., 0]
        return _solved(ew.sub(_diagonal_matrix(gaps), above), jnp.where(places < j, right, zero))

    upper = _with_columns(_diagonal_matrix(values), column)
    out = matmul(matmul(vectors, upper), adjoint(vectors))
    rounding = float(dtypes.finfo(dtypes.real_part(dtype)).eps)
    apart = jnp.where(places[:, None] < places, jnp.abs(points[..., None, :] - points[..., :, None]), np.inf)
    least = jnp.minimum(jnp.min(apart, axis=(-1, -2)), jnp.abs(points[..., 0]))
    least = jnp.where(least == 0, rounding, least)
    error = jnp.clip(rounding / least * jnp.linalg.norm(above, 1, axis=(-2, -1)), rounding, 1)
    return out, jnp.where(jnp.any(jnp.isinf(out), axis=(-1, -2)), np.inf, error)


def funm(A: ArrayLike, func: Callable[[Array], ArrayLike], disp: bool = True) -> Any:  # noqa: N803
    """Apply a scalar function to a square matrix; `func` is called once, with all eigenvalues.

    The result is complex. Without `disp`, an estimate of its relative error is also returned, which is large if
    eigenvalues are close to each other.

    >>> import atled.numpy as jnp
    >>> funm(jnp.array([[1.0, 0.0], [0.0, 2.0]]), lambda x: x**3).real
    Array([[1., 0.],
           [0., 8.]], dtype=float32)
    """
    form, vectors, points = _schur_of(A)
    if type_of(points).size == 0:
        return form if disp else (form, jnp.zeros(type_of(points).shape[:-1], dtypes.real_part(type_of(form).dtype)))
    values = jnp.asarray(func(points))
    if type_of(values).shape != type_of(points).shape:
        raise ValueError(
            f"funm: the function must return one number for each of {type_of(points)}; got {type_of(values)}."
        )
    out, error = _parlett(form, vectors, values)
    return out if disp else (out, error)


@library_function
def _rsf2csf(form: Any, vectors: Any) -> tuple[Any, Any]:
    (t, z), _ = matrices("rsf2csf", form, vectors, square=True)
    if type_of(z).shape[-2:] != type_of(t).shape[-2:]:
        raise ValueError(
            f"rsf2csf: T and Z must be square matrices of the same size; got {type_of(form)} and {type_of(vectors)}."
        )
    lead, n = broadcast_shapes(type_of(t).shape[:-2], type_of(z).shape[:-2]), type_of(t).shape[-1]
    dtype = dtypes.complex_of(type_of(t).dtype)
    t, z = (cast(broadcast_to(v, (*lead, n, n)), dtype) for v in (t, z))
    if n < 2:
        return t, z
    low = jnp.diagonal(t, -1, axis1=-2, axis2=-1)
    first, last = diagonal(t)[..., :-1], diagonal(t)[..., 1:]
    rounding = float(dtypes.finfo(dtypes.real_part(dtype)).eps)
    is_block = jnp.abs(low) > rounding * (jnp.abs(first) + jnp.abs(last))
    # (w - d, c) is an eigenvector of a block [[a, b], [c, d]] with eigenvalue w; the rotation makes it the first axis
    half = (first - last) / 2
    beside = jnp.diagonal(t, 1, axis1=-2, axis2=-1)
    moved = half + jnp.sqrt(half * half + beside * low)
    one, zero = np.ones((), dtype), np.zeros((), dtype)
    size = jnp.where(is_block, jnp.sqrt(jnp.abs(moved) ** 2 + jnp.abs(low) ** 2).astype(dtype), one)
    cosine, sine = jnp.where(is_block, moved / size, one), jnp.where(is_block, low / size, zero)
    edge = [(0, 0)] * len(lead)
    before, after = (jnp.pad(v, [*edge, w], constant_values=1) for v, w in ((cosine, (1, 0)), (cosine.conj(), (0, 1))))
    above = jnp.pad(_diagonal_matrix(sine.conj()), [*edge, (0, 1), (1, 0)])
    below = jnp.pad(_diagonal_matrix(sine), [*edge, (1, 0), (0, 1)])
    turn = _diagonal_matrix(before * after) + above - below
    return triangle(matmul(matmul(turn, t), adjoint(turn)), False), matmul(z, adjoint(turn))


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:  # noqa: N803
    """The complex Schur form, which is triangular, from the real one with its 2 x 2 blocks.

    >>> t, _ = rsf2csf(jnp.array([[0.0, -1.0], [1.0, 0.0]]), jnp.eye(2))
    >>> sorted(jnp.diag(t).imag.round().tolist())
    [-1.0, 1.0]
    """
    return _rsf2csf(T, Z)


# -- the exponential ---------------------------------------------------------------------------------------------------

# Numerators of the diagonal Pade approximants of exp (denominators have alternating signs), and the norms up to which
# they are accurate to rounding: N. J. Higham, The scaling and squaring method for the matrix exponential revisited
# (2005)
_PADE_7 = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
_PADE_13 = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_LIMITS = {dtypes.float32: (_PADE_7, 3.925724783138660), dtypes.float64: (_PADE_13, 5.371920351148152)}


def _scaled(a: Any, factor: float) -> Any:
    return ew.mul(a, factor)


def _sum(terms: Sequence[Any]) -> Any:
    out = terms[0]
    for t in terms[1:]:
        out = ew.add(out, t)
    return out


def _pade(a: Any, c: Sequence[float]) -> tuple[Any, Any]:
    """The odd and the even part of the Pade numerator with coefficients c, at the matrix a."""
    unit = matrices_ops.identity(type_of(a), type_of(a).shape[-1])
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    if len(c) == 8:
        odd = _sum([_scaled(p, f) for p, f in ((a6, c[7]), (a4, c[5]), (a2, c[3]), (unit, c[1]))])
        return matmul(a, odd), _sum([_scaled(p, f) for p, f in ((a6, c[6]), (a4, c[4]), (a2, c[2]), (unit, c[0]))])
    high = lambda k: _sum([_scaled(p, c[i]) for p, i in ((a6, k), (a4, k - 2), (a2, k - 4))])  # noqa: E731
    low = lambda k: ew.add(high(k), _scaled(unit, c[k - 6]))  # noqa: E731
    odd = ew.add(matmul(a6, high(13)), low(7))
    return matmul(a, odd), ew.add(matmul(a6, high(12)), low(6))


@library_function(static=("upper_triangular", "max_squarings"))
def _expm(A: Any, upper_triangular: bool, max_squarings: int) -> Any:  # noqa: N803
    (x,), result_dtype = matrices("expm", A, square=True)
    t = type_of(x)
    if t.size == 0:
        return in_dtype(x, result_dtype)
    real = dtypes.real_part(t.dtype)
    coefficients, limit = _LIMITS[real]
    d = t.ndim - 2
    x = triangle(x, False) if upper_triangular else x
    norm = reduction.reduce_max(reduction.reduce_sum(elementary.absolute(fixed(x)), (d,)), (d,))
    is_finite = elementary.is_finite(norm)
    norm = ew.select(is_finite, norm, np.ones((), real))
    steps = elementary.ceil(ew.div(elementary.log(ew.maximum(ew.div(norm, limit), 1.0)), math.log(2)))
    spread = lambda v: shape.broadcast(v, t.shape, tuple(range(d)))  # noqa: E731
    shrunk = ew.mul(x, spread(conversion.convert(elementary.exp2(ew.neg(steps)), t.dtype)))
    odd, even = _pade(shrunk, coefficients)
    top, bottom = ew.add(even, odd), ew.sub(even, odd)
    out = triangular_solve(bottom, top, left=True, lower=False) if upper_triangular else solve_matrices(bottom, top)
    for i in range(max_squarings):
        out = ew.select(spread(ew.gt(steps, float(i))), matmul(out, out), out)
    is_fine = ew.logical_and(is_finite, ew.le(steps, float(max_squarings)))
    return in_dtype(ew.select(spread(is_fine), out, np.asarray(np.nan, t.dtype)), result_dtype)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:  # noqa: N803
    """The exponential of a matrix; NaN if the norm of A requires more than `max_squarings` squarings.

    >>> import atled.numpy as jnp
    >>> expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _expm(A, bool(upper_triangular), int(max_squarings))


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:  # noqa: N803
    """The exponential of A, and its derivative in direction E; or the derivative alone.

    >>> expm_frechet(np.zeros((2, 2), "float32"), asarray([[1.0, 2.0], [3.0, 4.0]]), compute_expm=False).round()
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    a, e = (asarray(x) for x in promote_inexact("expm_frechet", asarray(A), asarray(E)))
    out, tangent = jvp(expm, (a,), (e,))
    return (out, tangent) if compute_expm else tangent
