"""SciPy's linear algebra, over the last two axes of arrays; leading axes are batches.

Arguments that only control SciPy's memory use or checks (`overwrite_a`, `check_finite`, `lapack_driver`) are accepted
and have no effect: a computation that fails gives NaN. 16-bit floats are computed in float32.
"""

from __future__ import annotations

from typing import Any

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.numpy import linalg as _numpy
from atled.numpy.creation import asarray  # noqa: F401, for the examples
from atled.numpy.matrix_checks import broadcast_leading, hermitian_part, in_dtype, matrices, work_dtype
from atled.numpy.promotion import cast, operand_type, promote_inexact
from atled.ops import conversion, indexing, nonsymmetric_eigen, shape
from atled.ops import elementwise as ew
from atled.ops import linalg as ops
from atled.ops import matrix_ops as matrices_ops
from atled.ops.matrix_ops import (
    adjoint,
    matmul,
    permutation_of,
    scale_columns,
    take_rows,
    transposed,
    triangle,
    triangular_solve,
)
from atled.ops.solvers import fixed, solve_factored, solve_matrices
from atled.scipy.matrix_functions import expm, expm_frechet, funm, rsf2csf, solve_sylvester, sqrtm
from atled.scipy.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from atled.staging.jit import library_function

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det", "dft",
    "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard", "hankel",
    "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor", "lu_solve",
    "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester", "solve_triangular", "sqrtm",
    "svd", "toeplitz",
]  # fmt: skip
__dir__ = __all__.copy

_INT = dtypes.int32


def _columns(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrices and right-hand sides with broadcast leading axes, and whether b was a vector, which becomes a column."""
    t = type_of(b)
    is_vector = t.ndim == 1
    if t.ndim == 0 or t.shape[-1 if is_vector else -2] != type_of(a).shape[-2]:
        raise ValueError(f"{name}: {type_of(a)} and {t} have incompatible shapes.")
    b = shape.reshape(b, (*t.shape, 1)) if is_vector else b
    return (*broadcast_leading(name, a, b), is_vector)


def _without_column(x: Any, is_vector: bool) -> Any:
    return shape.reshape(x, type_of(x).shape[:-1]) if is_vector else x


# -- solving ----------------------------------------------------------------------------------------------------------


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of a square matrix.

    >>> det(asarray([[2.0, 1.0], [1.0, 3.0]])).round()
    Array(5., dtype=float32)
    """
    return _numpy.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of a square matrix.

    >>> inv(asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return _numpy.inv(a)


_FORMS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def _form(name: str, trans: Any) -> str:
    if trans not in _FORMS:
        raise ValueError(f"{name}: trans is 0 (or 'N'), 1 ('T') or 2 ('C'); got {trans!r}.")
    return _FORMS[trans]


@library_function(static=("form", "lower", "unit"))
def _solve_triangular(a: Any, b: Any, form: str, lower: bool, unit: bool) -> Any:
    (x, y), result_dtype = matrices("solve_triangular", a, b, square=True)
    x, y, is_vector = _columns("solve_triangular", x, y)
    out = triangular_solve(x, y, left=True, lower=lower, form=form, unit=unit)
    return _without_column(in_dtype(out, result_dtype), is_vector)


def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, debug: Any = None, check_finite: bool = True,
) -> Array:  # fmt: skip
    """x such that a x = b for triangular a, or its transpose (`trans` 1) or adjoint (2). b with one axis is a vector.

    >>> import atled.numpy as jnp
    >>> solve_triangular(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([2.0, 3.0]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    return _solve_triangular(a, b, _form("solve_triangular", trans), bool(lower), bool(unit_diagonal))


def _solve_by_root(root: Any, b: Any, lower: bool) -> Any:
    """x such that L L* x = b if `lower`, else U* U x = b, for a Cholesky factor `root`."""
    y = triangular_solve(root, b, left=True, lower=lower, form="N" if lower else "C")
    return triangular_solve(root, y, left=True, lower=lower, form="C" if lower else "N")


@library_function(static=("is_positive", "lower"))
def _solve(a: Any, b: Any, is_positive: bool, lower: bool) -> Any:
    (x, y), result_dtype = matrices("solve", a, b, square=True)
    x, y, is_vector = _columns("solve", x, y)
    if is_positive:
        root = bind(ops.Cholesky(), x if lower else adjoint(x))
        out = _solve_by_root(root, y, True)
    else:
        out = solve_matrices(x, y)
    return _without_column(in_dtype(out, result_dtype), is_vector)


def solve(
    a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    debug: bool = False, check_finite: bool = True, assume_a: str = "gen",
) -> Array:  # fmt: skip
    """x such that a x = b; with `assume_a="pos"` by Cholesky decomposition of the triangle that `lower` selects.

    SciPy's other values of `assume_a` ("sym", "her") are accepted and have no effect.

    >>> solve(asarray([[2.0, 0.0], [1.0, 1.0]]), asarray([2.0, 3.0])).round()
    Array([1., 2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a is 'gen', 'sym', 'her' or 'pos'; got {assume_a!r}.")
    return _solve(a, b, assume_a == "pos", bool(lower))


@library_function(static=("lower",))
def _cholesky(a: Any, lower: bool) -> Any:
    return _numpy.cholesky(a, upper=not lower)


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Upper triangular U with U* U = a, or lower triangular L with L L* = a.

    >>> cholesky(asarray([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return _cholesky(a, bool(lower))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """A Cholesky factor for `cho_solve`; its other triangle is zero.

    >>> cho_factor(asarray([[4.0, 2.0], [2.0, 5.0]]))
    (Array([[2., 1.],
           [0., 2.]], dtype=float32), False)
    """
    return _cholesky(a, bool(lower)), lower


@library_function(static=("lower",))
def _cho_solve(c: Any, b: Any, lower: bool) -> Any:
    (x, y), result_dtype = matrices("cho_solve", c, b, square=True)
    x, y, is_vector = _columns("cho_solve", x, y)
    return _without_column(in_dtype(_solve_by_root(x, y, lower), result_dtype), is_vector)


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """x such that a x = b, from the Cholesky factor of a that `cho_factor` returns.

    >>> cho_solve(cho_factor(asarray([[4.0, 2.0], [2.0, 5.0]])), asarray([8.0, 12.0]))
    Array([1., 2.], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(c, b, bool(lower))


# -- LU ---------------------------------------------------------------------------------------------------------------


@library_function(static=("permute_l",))
def _lu(a: Any, permute_l: bool) -> Any:
    (x,), result_dtype = matrices("lu", a)
    t = type_of(x)
    packed, pivots, _ = bind(ops.Lu(), x)
    *lead, m, n = t.shape
    k, d = min(m, n), len(lead)
    tall = ArrayType((*lead, m, m), t.dtype)
    unit = shape.slice_in_axis(matrices_ops.identity(tall, m), 0, k, d + 1)
    low = ew.add(shape.slice_in_axis(triangle(packed, True, -1), 0, k, d + 1), unit)
    up = shape.slice_in_axis(triangle(packed, False), 0, k, d)
    back = transposed(take_rows(matrices_ops.identity(tall, m), permutation_of(pivots, m)))
    if permute_l:
        return in_dtype(matmul(back, low), result_dtype), in_dtype(up, result_dtype)
    back = conversion.real(back) if t.kind == "c" else back
    return in_dtype(back, result_dtype), in_dtype(low, result_dtype), in_dtype(up, result_dtype)


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """P, L and U with P L U = a, or with `permute_l` the product P L and U; L has a unit diagonal.

    >>> p, l, u = lu(asarray([[1.0, 3.0], [2.0, 4.0]]))
    >>> l, u
    (Array([[1. , 0. ],
           [0.5, 1. ]], dtype=float32), Array([[2., 4.],
           [0., 1.]], dtype=float32))
    """
    return _lu(a, bool(permute_l))


@library_function
def _lu_factor(a: Any) -> tuple[Any, Any]:
    (x,), result_dtype = matrices("lu_factor", a)
    packed, pivots, _ = bind(ops.Lu(), x)
    return in_dtype(packed, result_dtype), pivots


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """L and U in one matrix, and the pivot rows, for `lu_solve`.

    >>> lu_factor(asarray([[1.0, 3.0], [2.0, 4.0]]))
    (Array([[2. , 4. ],
           [0.5, 1. ]], dtype=float32), Array([1, 1], dtype=int32))
    """
    return _lu_factor(a)


@library_function(static=("form",))
def _lu_solve(lu: Any, pivots: Any, b: Any, form: str) -> Any:
    (x, y), result_dtype = matrices("lu_solve", lu, b, square=True)
    x, y, is_vector = _columns("lu_solve", x, y)
    n = type_of(x).shape[-1]
    permutation = permutation_of(conversion.convert(pivots, _INT), n)
    lead = type_of(x).shape[:-2]
    axes = tuple(range(len(lead) + 1 - type_of(permutation).ndim, len(lead) + 1))
    out = solve_factored(x, shape.broadcast(permutation, (*lead, n), axes), y, form)
    return _without_column(in_dtype(out, result_dtype), is_vector)


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """x such that a x = b, from the result of `lu_factor`; a^T x = b for `trans` 1, a* x = b for 2.

    >>> lu_solve(lu_factor(asarray([[1.0, 3.0], [2.0, 4.0]])), asarray([4.0, 6.0])).round()
    Array([1., 1.], dtype=float32)
    """
    packed, pivots = lu_and_piv
    return _lu_solve(packed, pivots, b, _form("lu_solve", trans))


# -- decompositions ---------------------------------------------------------------------------------------------------


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Q and R with Q R = a: square Q ("full"), Q with min(m, n) columns ("economic"), or the tuple `(R,)` ("r").

    With `pivoting`, also the permutation p with Q R = a[:, p], which makes the diagonal of R decrease in magnitude.

    >>> q, r = qr(asarray([[3.0], [4.0]]), mode="economic")
    >>> (q * r).round()
    Array([[3.],
           [4.]], dtype=float32)
    """
    order = ()
    if pivoting:
        a, order = _ordered_columns(a)
        order = (order,)
    if mode == "r":
        return (_full_r(a), *order)
    if mode not in ("full", "economic"):
        raise ValueError(f"qr: the mode is 'full', 'economic' or 'r'; got {mode!r}.")
    return (*_numpy.qr(a, "complete" if mode == "full" else "reduced"), *order)


@library_function
def _ordered_columns(a: Any) -> tuple[Any, Any]:
    (x,), result_dtype = matrices("qr", a)
    order = bind(ops.ColumnOrder(), fixed(x))
    spread = shape.broadcast(order, type_of(x).shape, (*range(type_of(x).ndim - 2), type_of(x).ndim - 1))
    return in_dtype(indexing.take_along(x, spread, type_of(x).ndim - 1), result_dtype), order


@library_function(static=("mode", "conjugate"))
def _multiply(q: Any, c: Any, mode: str, conjugate: bool) -> Any:
    t = operand_type("qr_multiply", c)
    is_left, is_vector = mode == "left", t.ndim == 1
    (x, y), result_dtype = matrices(
        "qr_multiply", q, shape.reshape(c, (t.size, 1) if is_left else (1, t.size)) if is_vector else c
    )
    x = conversion.conj(x) if conjugate and type_of(x).kind == "c" else x
    m, k = type_of(x).shape[-2:]
    if t.ndim == 0 or type_of(y).shape[-2 if is_left else -1] != (k if is_left else m):
        raise ValueError(f"qr_multiply: Q is {m} by {k}, which cannot be multiplied on the {mode} of {t}.")
    x, y = broadcast_leading("qr_multiply", x, y)
    out = in_dtype(matmul(x, y) if is_left else matmul(y, x), result_dtype)
    return (
        shape.reshape(out, (*type_of(out).shape[:-2], type_of(out).shape[-2 if is_left else -1])) if is_vector else out
    )


def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False, conjugate: bool = False,
    overwrite_a: bool = False, overwrite_c: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    """c Q (mode "right") or Q c ("left"), and R, for the economic QR of a; with `pivoting`, also the permutation.

    With `conjugate`, Q is conjugated. If c is a vector, so is its product with Q.

    >>> cq, r = qr_multiply(asarray([[3.0], [4.0]]), asarray([[3.0, 4.0]]))
    >>> (cq * r).round()
    Array([[25.]], dtype=float32)
    """
    if mode not in ("right", "left"):
        raise ValueError(f"qr_multiply: the mode is 'right' or 'left'; got {mode!r}.")
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    return (_multiply(q, c, mode, bool(conjugate)), *rest)


@library_function
def _full_r(a: Any) -> Any:
    r = _numpy.qr(a, mode="r")
    t = type_of(r)
    missing = type_of(a).shape[-2] - t.shape[-2]
    return shape.pad(r, 0, [(0, 0, 0)] * (t.ndim - 2) + [(0, missing, 0), (0, 0, 0)])


def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Any:  # fmt: skip
    """U, s and V* with a = U diag(s) V* and s descending, or s alone.

    >>> svd(asarray([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False).round()
    Array([3., 2.], dtype=float32)
    """
    out = _numpy.svd(a, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


@library_function(static=("lower", "eigvals_only"))
def _eigh(a: Any, b: Any, lower: bool, eigvals_only: bool) -> Any:
    if b is None:
        (x,), result_dtype = matrices("eigh", a, square=True)
        x = x if lower else adjoint(x)
        w, v = bind(ops.Eigh(), x)
    else:
        (x, y), result_dtype = matrices("eigh", a, b, square=True)
        x, y = (v if lower else adjoint(v) for v in broadcast_leading("eigh", x, y))
        # with b = L L*, a v = w b v is (L^-1 a L^-*) u = w u for u = L* v
        root = bind(ops.Cholesky(), y)
        low = triangle(x, True, -1)
        x = ew.add(ew.add(low, adjoint(low)), ew.sub(triangle(x, True), low))
        inner = triangular_solve(
            root, triangular_solve(root, x, left=True, lower=True), left=False, lower=True, form="C"
        )
        w, v = bind(ops.Eigh(), hermitian_part(inner))
        v = triangular_solve(root, v, left=True, lower=True, form="C")
    return in_dtype(w, result_dtype) if eigvals_only else (in_dtype(w, result_dtype), in_dtype(v, result_dtype))


def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Any:  # fmt: skip
    """Eigenvalues, ascending, and eigenvectors of a v = w v, or of a v = w b v with positive definite b.

    Only the triangles of a and b that `lower` selects are read.

    >>> eigh(asarray([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True).round()
    Array([1., 3.], dtype=float32)
    """
    if type != 1 or eigvals is not None:
        raise NotImplementedError("eigh: only problems of type 1 are supported, and no eigvals: all are computed.")
    return _eigh(a, b, bool(lower), bool(eigvals_only))


@library_function(static=("first", "last", "eigvals_only"))
def _eigh_tridiagonal(d: Any, e: Any, first: int, last: int | None, eigvals_only: bool) -> Any:
    x, y = promote_inexact("eigh_tridiagonal", d, e)
    s, t = type_of(x), type_of(y)
    result_dtype, n = s.dtype, s.shape[-1] if s.ndim else 0
    if s.ndim == 0 or t.shape != (*s.shape[:-1], max(n - 1, 0)):
        raise ValueError(f"eigh_tridiagonal: e must have one element fewer than d; got {type_of(d)} and {type_of(e)}.")
    x, y = (cast(v, work_dtype(result_dtype)) for v in (x, y))
    x = conversion.complex(conversion.real(x), shape.zeros(type_of(conversion.real(x)))) if s.kind == "c" else x
    like = ArrayType((*s.shape, n), type_of(x).dtype)
    main = scale_columns(matrices_ops.identity(like, n), x)
    edge = [(0, 0, 0)] * (s.ndim - 1)
    low = conversion.conj(y) if s.kind == "c" else y
    below = scale_columns(matrices_ops.identity(ArrayType((*t.shape, max(n - 1, 0)), like.dtype), max(n - 1, 0)), low)
    below = shape.pad(below, 0, [*edge, (min(n, 1), 0, 0), (0, min(n, 1), 0)])
    w, v = bind(ops.Eigh(), ew.add(main, below))  # `eigh` reads the lower triangle
    stop = n if last is None else min(last + 1, n)
    w = in_dtype(shape.slice_in_axis(w, first, stop, s.ndim - 1), result_dtype)
    return w if eigvals_only else (w, in_dtype(shape.slice_in_axis(v, first, stop, s.ndim), result_dtype))


def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
    select_range: tuple[int, int] | None = None, tol: float | None = None, key: Any = None,
) -> Any:  # fmt: skip
    """Eigenvalues, ascending, and eigenvectors of the Hermitian tridiagonal matrix with diagonal d and superdiagonal e.

    With `select="i"`, only those with indices in `select_range`, both ends included. `tol` and `key` have no effect:
    LAPACK computes all digits, and derivatives are defined.

    >>> import atled.numpy as jnp
    >>> eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    if select not in ("a", "i", "v"):
        raise ValueError(f"eigh_tridiagonal: select is 'a' or 'i'; got {select!r}.")
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal: select='v' is not supported, because the number of results depends on values."
            "\n  try: select='i', or all eigenvalues and a mask."
        )
    first, last = 0, None
    if select == "i":
        if select_range is None or not 0 <= select_range[0] <= select_range[1]:
            raise ValueError(f"eigh_tridiagonal: select='i' needs a select_range (first, last); got {select_range}.")
        first, last = int(select_range[0]), int(select_range[1])
    return _eigh_tridiagonal(d, e, first, last, bool(eigvals_only))


@library_function(static=("output",))
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """The Schur form T and unitary Z with Z T Z* = a; T is triangular, or if real, may have 2 x 2 diagonal blocks.

    >>> t, z = schur(asarray([[2.0, 1.0], [1.0, 2.0]]))
    >>> (z @ t @ z.T).round()
    Array([[2., 1.],
           [1., 2.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: the output is 'real' or 'complex'; got {output!r}.")
    (x,), result_dtype = matrices("schur", a, square=True)
    if output == "complex":
        x = cast(x, dtypes.complex_of(type_of(x).dtype))
    form, vectors = bind(nonsymmetric_eigen.Schur(), x)
    return in_dtype(form, result_dtype), in_dtype(vectors, result_dtype)


@library_function(static=("calc_q",))
def _hessenberg(a: Any, calc_q: bool) -> Any:
    (x,), result_dtype = matrices("hessenberg", a, square=True)
    t = type_of(x)
    n, d = t.shape[-1], t.ndim - 2
    packed, scales = bind(nonsymmetric_eigen.Hessenberg(), x)
    form = in_dtype(triangle(packed, False, -1), result_dtype)
    if not calc_q:
        return form
    if n < 2:
        return form, in_dtype(matrices_ops.identity(t, n), result_dtype)
    reflectors = shape.slice_in_axis(shape.slice_in_axis(packed, 1, n, d), 0, n - 1, d + 1)
    inner = bind(ops.HouseholderProduct(), reflectors, scales)
    edge = [(0, 0, 0)] * d + [(1, 0, 0), (1, 0, 0)]
    corner = shape.pad(shape.zeros(type_of(inner)), 0, edge)
    first = ew.sub(matrices_ops.identity(t, n), shape.pad(matrices_ops.identity(type_of(inner), n - 1), 0, edge))
    return form, in_dtype(ew.add(ew.add(corner, first), shape.pad(inner, 0, edge)), result_dtype)


def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Hessenberg form H of a, zero below the first subdiagonal; with `calc_q`, also a unitary Q with Q H Q* = a.

    >>> a = asarray([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [4.0, 6.0, 7.0]])
    >>> abs(float(hessenberg(a)[2, 0])) < 1e-6
    True
    """
    return _hessenberg(a, bool(calc_q))


@library_function(static=("side",))
def _polar(a: Any, side: str) -> tuple[Any, Any]:
    (x,), result_dtype = matrices("polar", a)
    s, u, vt = bind(ops.Svd(False, True), x)
    unitary = matmul(u, vt)
    positive = matmul(scale_columns(adjoint(vt), s), vt) if side == "right" else matmul(scale_columns(u, s), adjoint(u))
    return in_dtype(unitary, result_dtype), in_dtype(positive, result_dtype)


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "svd",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """U with orthonormal columns (or rows) and positive semidefinite P with U P = a, or P U = a for side "left".

    U and P are computed from a singular value decomposition, regardless of `method`.

    >>> u, p = polar(asarray([[0.0, -2.0], [3.0, 0.0]]))
    >>> p.round() + 0.0
    Array([[3., 0.],
           [0., 2.]], dtype=float32)
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: the side is 'right' or 'left'; got {side!r}.")
    return _polar(a, side)
