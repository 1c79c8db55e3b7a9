"""NumPy's linear algebra, over the last two axes of arrays; leading axes are batches.

The functions choose, scale and combine the decompositions of `atled/ops/linalg.py`; solving, determinants and the
pseudoinverse are ops of their own, in `atled/numpy/matrices.py`. Half precision computes in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.errors import ConcretizationTypeError
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.numpy import contractions, shapes
from atled.numpy.matrices import broadcast_leading, hermitian_part, in_dtype, matrices, work_dtype  # fmt: skip
from atled.numpy.promotion import broadcast_to, cast, operand_type, promote_dtypes, promote_inexact
from atled.ops import conversion, elementary, indexing, reduction, shape, sorting, spectral
from atled.ops import elementwise as ew
from atled.ops import linalg as ops
from atled.ops import matrices as matrices_ops
from atled.ops.matrices import adjoint, scale_columns, transposed
from atled.ops.matrices import matmul as _product
from atled.ops.solvers import (
    Determinant,
    LogDeterminant,
    PseudoInverse,
    Reflectors,
    factored,
    fixed,
    inverse_of,
    solve_matrices,
)
from atled.staging.jit import library_function

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_INT = dtypes.int32


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


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """U, the singular values, and the adjoint of V."""

    U: Array
    S: Array
    Vh: Array


# -- solving ----------------------------------------------------------------------------------------------------------


@library_function
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x such that a x = b, for square a; b holds columns, or is one vector if it has a single axis.

    >>> import atled.numpy as jnp
    >>> solve(2 * jnp.eye(2), jnp.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    (x, y), wanted = matrices("solve", a, b, square=True)
    is_vector = type_of(y).ndim == 1
    if type_of(y).ndim == 0 or type_of(y).shape[-1 if is_vector else -2] != type_of(x).shape[-1]:
        raise ValueError(
            f"solve: b must have as many rows as a; got {type_of(a)} and {type_of(b)}."
            "\n  try: b.T if its columns are on the other axis, or b[:, None] for one column."
        )
    if is_vector:
        y = shape.reshape(y, (*type_of(y).shape, 1))
    out = in_dtype(solve_matrices(*broadcast_leading("solve", x, y)), wanted)
    return shape.reshape(out, type_of(out).shape[:-1]) if is_vector else out


@library_function
def inv(a: ArrayLike) -> Array:
    """The inverse of a square matrix; infinities and NaN if there is none.

    >>> import atled.numpy as jnp
    >>> inv(2 * jnp.eye(2))
    Array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """
    (x,), wanted = matrices("inv", a, square=True)
    return in_dtype(inverse_of(x), wanted)


def _pseudoinverse(x: Any, rtol: Any, eps: float, hermitian: bool = False) -> tuple[Any, Any, Any]:
    """The pseudoinverse, the singular values, and which of them count."""
    t = type_of(x)
    parts = _hermitian_svd(fixed(x)) if hermitian else _svd_parts(x)
    u, s, vt = [fixed(v) for v in parts]
    last, real = t.ndim - 2, type_of(s).dtype
    if rtol is None:
        rtol = eps * max(t.shape[-2:])
    top = reduction.reduce_max(s, (last,)) if type_of(s).size else shape.zeros(ArrayType(t.shape[:-2], real))
    limit = ew.mul(top, broadcast_to(cast(rtol, real), t.shape[:-2]))
    is_large = ew.gt(s, shape.broadcast(limit, type_of(s).shape, tuple(range(last))))
    one, zero = np.ones((), real), np.zeros((), real)
    inverse = ew.select(is_large, ew.div(one, ew.select(is_large, s, one)), zero)
    found = _product(scale_columns(adjoint(vt), inverse), adjoint(u))
    return bind(PseudoInverse(), x, found), parts[1], is_large


@library_function(static=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    (x,), wanted = matrices("pinv", a, square=hermitian)
    return in_dtype(_pseudoinverse(x, rtol, float(dtypes.finfo(wanted).eps), hermitian)[0], wanted)


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore-Penrose pseudoinverse; singular values up to `rtol` times the largest count as zero.

    By default `rtol` is the precision of the dtype times the larger side. Derivatives are those for fixed rank.

    >>> pinv(np.asarray([[2.0], [0.0]], "float32")).round(1)
    Array([[0.5, 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: rtol and rcond are two names for one thing; give one of them.")
    return _pinv(a, rcond if rtol is None else rtol, bool(hermitian))


@library_function(static=("rcond",))
def _lstsq(a: Any, b: Any, rcond: float | None) -> tuple[Any, Any, Any, Any]:
    (x, y), wanted = matrices("lstsq", a, b)
    is_vector = type_of(y).ndim == 1
    if is_vector:
        y = shape.reshape(y, (*type_of(y).shape, 1))
    m = type_of(x).shape[-2]
    if type_of(y).ndim < 2 or type_of(y).shape[-2] != m:
        raise ValueError(f"lstsq: {type_of(a)} and {type_of(b)} must have as many rows.")
    eps = float(dtypes.finfo(wanted).eps)
    inverse, s, is_large = _pseudoinverse(x, eps if rcond is not None and rcond < 0 else rcond, eps)
    p, y = broadcast_leading("lstsq", inverse, y)
    out = _product(p, y)
    rest = ew.sub(y, _product(broadcast_leading("lstsq", x, y)[0], out))
    squares = reduction.reduce_sum(_squares(rest), (type_of(rest).ndim - 2,))
    rank = reduction.reduce_sum(conversion.convert(is_large, dtypes.default("i")), (type_of(s).ndim - 1,))
    if is_vector:
        out = shape.reshape(out, type_of(out).shape[:-1])
    return in_dtype(out, wanted), in_dtype(squares, wanted), rank, in_dtype(s, wanted)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """x that makes the sum of squares of a x - b smallest; those sums, the rank of a, and its singular values.

    Of several x it is the shortest. Sums are always given; with `numpy_resid` they are empty where NumPy's are.

    >>> lstsq(np.asarray([[1.0], [1.0]], "float32"), np.asarray([1.0, 3.0], "float32"))[0].round()
    Array([2.], dtype=float32)
    """
    x, squares, rank, s = _lstsq(a, b, None if rcond is None else float(rcond))
    if numpy_resid:
        m, n = type_of(a).shape[-2:]
        if isinstance(rank, Tracer) and m > n:
            raise ConcretizationTypeError(
                f"lstsq: with numpy_resid the shape depends on the rank; got a traced {type_of(a)}." + rank._where()
                + "\n  try: numpy_resid=False."
            )  # fmt: skip
        if m <= n or int(rank) < n:
            squares = shape.zeros(ArrayType((0,), type_of(squares).dtype))
    return x, squares, rank, s


@library_function(static=("axes",))
def _tensorsolve(a: Any, b: Any, axes: tuple[int, ...] | None) -> Any:
    x, y = promote_inexact("tensorsolve", a, b)
    t, at = type_of(x), type_of(y)
    if axes is not None:
        moved = check_axes("tensorsolve", axes, t.ndim)
        x = shape.transpose(x, [i for i in range(t.ndim) if i not in moved] + list(moved))
    dims = type_of(x).shape[at.ndim :]
    if prod(dims) != at.size or type_of(x).size != at.size**2:
        raise ValueError(f"tensorsolve: {t} is not a square matrix between the shape of {at} and {dims}.")
    out = solve(shape.reshape(x, (at.size, at.size)), shape.reshape(y, (at.size,)))
    return shape.reshape(out, dims)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Array:
    """x such that tensordot(a, x, x.ndim) is b; `axes` of a are moved to the end first.

    >>> tensorsolve(2 * np.eye(2, dtype="float32"), np.asarray([4.0, 6.0], "float32"))
    Array([2., 3.], dtype=float32)
    """
    return _tensorsolve(a, b, None if axes is None else tuple([int(i) for i in axes]))


@library_function(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a as a map from its axes from `ind` on to those before."""
    t = operand_type("tensorinv", a)
    rows, columns = t.shape[:ind], t.shape[ind:]
    if ind <= 0 or prod(rows) != prod(columns):
        raise ValueError(f"tensorinv: the axes of {t} before and after {ind} must hold as many elements.")
    out = inv(shape.reshape(a, (prod(rows), prod(columns))))
    return shape.reshape(out, (*columns, *rows))


# -- determinants -----------------------------------------------------------------------------------------------------


def _small_determinant(a: Any, n: int) -> Any:
    """The determinant of matrices up to three by three, multiplied out."""
    d = type_of(a).ndim - 2
    at = lambda i, j: shape.index_in_axis(shape.index_in_axis(a, i, d), j, d)  # noqa: E731
    if n == 1:
        return at(0, 0)
    minor = lambda i, j, k, l: ew.sub(ew.mul(at(i, k), at(j, l)), ew.mul(at(i, l), at(j, k)))  # noqa: E731, E741
    if n == 2:
        return minor(0, 1, 0, 1)
    terms = [ew.mul(at(0, j), minor(1, 2, (j + 1) % 3, (j + 2) % 3)) for j in range(3)]
    return ew.add(ew.add(terms[0], terms[1]), terms[2])


@library_function
def det(a: ArrayLike) -> Array:
    """The determinant of a square matrix. Its first two derivatives are right for singular matrices too.

    >>> import atled.numpy as jnp
    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    (x,), wanted = matrices("det", a, square=True)
    t = type_of(x)
    n = t.shape[-1]
    if n == 0:
        return shape.full(ArrayType(t.shape[:-2], wanted), 1)
    return in_dtype(_small_determinant(x, n) if n <= 3 else bind(Determinant(), x, *factored(x)), wanted)


@library_function(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the size of a determinant, which itself may over- or underflow.

    The computation is by LU decomposition; `method` may be "lu" or "qr" for compatibility.

    >>> slogdet(np.diag(np.asarray([-1e30, 1e30], "float32"))).sign
    Array(-1., dtype=float32)
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: the method is 'lu' or 'qr'; got {method!r}.")
    (x,), wanted = matrices("slogdet", a, square=True)
    sign, size = bind(LogDeterminant(), x, *factored(x))
    return SlogdetResult(in_dtype(sign, wanted), in_dtype(size, wanted))


# -- decompositions ---------------------------------------------------------------------------------------------------


@library_function(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Lower triangular L with L L* = a, or upper triangular U with U* U = a; NaN if a is not positive definite.

    Unlike NumPy, a is replaced by the mean of itself and its adjoint first, unless `symmetrize_input` is off.

    >>> cholesky(np.asarray([[4.0, 2.0], [2.0, 5.0]], "float32"))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    (x,), wanted = matrices("cholesky", a, square=True)
    x = hermitian_part(x) if symmetrize_input else adjoint(x) if upper else x
    root = bind(ops.Cholesky(), x)
    return in_dtype(adjoint(root) if upper else root, wanted)


@library_function(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and upper triangular R with Q R = a.

    `mode` is "reduced", "complete" (square Q), "r" (R alone) or "raw" (reflectors and their scales, as in LAPACK).

    >>> qr(np.ones((3, 2), "float32")).R.shape
    (2, 2)
    """
    (x,), wanted = matrices("qr", a)
    if mode == "raw":
        packed, scales = bind(Reflectors(), x)
        return QRResult(in_dtype(transposed(packed), wanted), in_dtype(scales, wanted))
    if mode not in ("reduced", "complete", "full", "r"):
        raise ValueError(f"qr: the mode is 'reduced', 'complete', 'r' or 'raw'; got {mode!r}.")
    q, r = bind(ops.Qr(mode == "complete"), x)
    return in_dtype(r, wanted) if mode == "r" else QRResult(in_dtype(q, wanted), in_dtype(r, wanted))


def _svd_parts(x: Any) -> tuple[Any, Any, Any]:
    s, u, vt = bind(ops.Svd(False, True), x)
    return u, s, vt


def _hermitian_svd(x: Any) -> tuple[Any, Any, Any]:
    """The SVD of a Hermitian matrix by its eigenvalues, whose signs go to V."""
    w, v = bind(ops.Eigh(), x)
    last = type_of(w).ndim - 1
    _, order = sorting.sort((ew.neg(elementary.absolute(w)), shape.iota(_INT, type_of(w).shape, last)), last)
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
    (x,), wanted = matrices("svd", a, square=hermitian)
    k, last = min(type_of(x).shape[-2:]), type_of(x).ndim - 2
    low, high = (0, k) if subset_by_index is None else subset_by_index
    if not 0 <= low <= high <= k:
        raise ValueError(
            f"svd: subset_by_index must be two positions between 0 and {k}, in order; got {subset_by_index}."
        )
    cut = lambda y, axis: in_dtype(shape.slice_in_axis(y, low, high, axis), wanted)  # noqa: E731
    if not compute_uv:
        s = _hermitian_svd(x)[1] if hermitian else bind(ops.Svd(False, False), x)[0]
        return cut(s, last)
    if hermitian:
        u, s, vt = _hermitian_svd(x)
    else:
        s, u, vt = bind(ops.Svd(full_matrices, True), x)
    if subset_by_index is None:
        return SVDResult(in_dtype(u, wanted), in_dtype(s, wanted), in_dtype(vt, wanted))
    return SVDResult(cut(u, last + 1), cut(s, last), cut(vt, last))


def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:  # fmt: skip
    """U, s and V* with a = U diag(s) V* and s descending, or s alone.

    `subset_by_index` keeps the singular values from one position up to another, and needs `full_matrices=False`.

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
    """Whether the lower triangle is meant."""
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
    (x,), wanted = matrices("eigh", a, square=True)
    x = hermitian_part(x) if symmetrize_input else x if is_lower else adjoint(x)
    w, v = bind(ops.Eigh(), x)
    return EighResult(in_dtype(w, wanted), in_dtype(v, wanted))


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:  # noqa: N803
    """The eigenvalues of a Hermitian matrix, ascending.

    >>> eigvalsh(np.asarray([[2.0, 1.0], [1.0, 2.0]], "float32")).round()
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@library_function
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors of a square matrix. Unlike NumPy's they are always complex."""
    (x,), _ = matrices("eig", a, square=True)
    return EigResult(*bind(spectral.Eig(True), x))


@library_function
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of a square matrix. Unlike NumPy's they are always complex.

    >>> eigvals(np.asarray([[0.0, 1.0], [1.0, 0.0]], "float32")).real.sort().round()
    Array([-1.,  1.], dtype=float32)
    """
    (x,), _ = matrices("eigvals", a, square=True)
    return bind(spectral.Eig(False), x)[0]


# -- norms and what follows from them ---------------------------------------------------------------------------------


def _squares(x: Any) -> Any:
    return conversion.real(ew.mul(x, conversion.conj(x))) if type_of(x).kind == "c" else ew.mul(x, x)


def _zero_at_zero(value: Any, f: Any) -> Any:
    """f(value), and zero with derivatives zero where the value is zero."""
    dtype = type_of(value).dtype
    is_zero = ew.eq(value, 0)
    return ew.select(is_zero, np.zeros((), dtype), f(ew.select(is_zero, np.ones((), dtype), value)))


def _reduced_vector_norm(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    """The norm of vectors spread over axes."""
    t = type_of(x)
    if ord in (None, 2):
        return _zero_at_zero(reduction.reduce_sum(_squares(x), axes), elementary.sqrt)
    size = elementary.absolute(x)
    is_empty = 0 in [t.shape[i] for i in axes]
    if ord == inf:
        return shape.zeros(type_of(reduction.reduce_sum(size, axes))) if is_empty else reduction.reduce_max(size, axes)
    if ord == -inf:
        if is_empty:
            raise ValueError(f"norm: an empty vector has no smallest element; got {t}.")
        return reduction.reduce_min(size, axes)
    dtype = type_of(size).dtype
    if ord == 0:
        return reduction.reduce_sum(conversion.convert(ew.ne(x, 0), dtype), axes)
    if ord == 1:
        return reduction.reduce_sum(size, axes)
    if isinstance(ord, str):
        raise ValueError(f"norm: {ord!r} is a norm of matrices; got vectors. Orders of vectors are numbers.")
    power = np.asarray(ord, dtype)
    is_zero = ew.eq(size, 0)
    term = elementary.pow(ew.select(is_zero, np.ones((), dtype), size), power)
    term = ew.select(is_zero, np.asarray(0 if ord > 0 else inf, dtype), term)
    total = reduction.reduce_sum(term, axes)
    root = np.asarray(1 / ord, dtype)
    return _zero_at_zero(total, lambda v: elementary.pow(v, root)) if ord > 0 else elementary.pow(total, root)


def _reduced_matrix_norm(x: Any, ord: Any, row: int, column: int) -> Any:
    """The norm of matrices on two axes."""
    if ord in (None, "f", "fro"):
        return _reduced_vector_norm(x, 2, (row, column))
    t = type_of(x)
    if ord in (1, -1, inf, -inf):
        along, across = (row, column) if abs(ord) == 1 else (column, row)
        sums = reduction.reduce_sum(elementary.absolute(x), (along,))
        return _extreme(sums, across - (along < across), ord > 0, t)
    if ord not in (2, -2, "nuc"):
        raise ValueError(
            f"norm: the order of a matrix norm is 'fro', 'nuc', 1, 2, inf, or one of them negative; got {ord!r}."
        )
    others = [i for i in range(t.ndim) if i not in (row, column)]
    (s,) = bind(ops.Svd(False, False), shape.transpose(x, (*others, row, column)))
    last = t.ndim - 2
    if type_of(s).size:  # at zero, and what is zero but for rounding, the derivative is taken to be zero
        limit = float(dtypes.finfo(type_of(s).dtype).eps) * max(t.shape[row], t.shape[column])
        top = ew.mul(reduction.reduce_max(s, (last,)), limit)
        is_zero = ew.le(s, shape.broadcast(top, type_of(s).shape, tuple(range(last))))
        s = ew.select(is_zero, fixed(s), s)
    return reduction.reduce_sum(s, (last,)) if ord == "nuc" else _extreme(s, last, ord > 0, t)


def _extreme(x: Any, axis: int, largest: bool, t: ArrayType) -> Any:
    if type_of(x).shape[axis] == 0:
        if largest:
            return shape.zeros(type_of(reduction.reduce_sum(x, (axis,))))
        raise ValueError(f"norm: an empty matrix has no smallest sum; got {t}.")
    return (reduction.reduce_max if largest else reduction.reduce_min)(x, (axis,))


@library_function(static=("ord", "axis", "keepdims", "is_vector"))
def _norm(x: Any, ord: Any, axis: tuple[int, ...] | None, keepdims: bool, is_vector: bool = False) -> Any:
    t = operand_type("norm", x)
    axes = check_axes("norm", axis, t.ndim)
    if axis is None and ord is not None and not is_vector and t.ndim not in (1, 2):
        raise ValueError(
            f"norm: an axis is needed for {t} and order {ord!r}; without one, vectors and matrices are taken."
        )
    if len(axes) not in (1, 2) and not is_vector and axis is not None:
        raise ValueError(f"norm: one axis, or two for matrices, are needed; got {axis}.")
    (a,) = promote_inexact("norm", x)
    wanted = dtypes.real_part(type_of(a).dtype)
    a = cast(a, work_dtype(type_of(a).dtype))
    if is_vector or len(axes) == 1 or ord is None:
        out = _reduced_vector_norm(a, ord, axes)
    else:
        out = _reduced_matrix_norm(a, ord, *axes)
    out = in_dtype(out, wanted)
    return shape.reshape(out, [1 if i in axes else n for i, n in enumerate(t.shape)]) if keepdims else out


def _plain_order(ord: Any) -> Any:
    return ord if ord is None or isinstance(ord, str) else float(ord)


def _plain_axis(axis: Any) -> tuple[int, ...] | None:
    return None if axis is None else tuple([int(i) for i in axis]) if isinstance(axis, (tuple, list)) else (int(axis),)


def norm(x: ArrayLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of vectors or matrices; by default the root of the sum of squares of everything.

    `axis` is one axis for vectors, two for matrices. Orders of vectors: any number, inf, -inf; of matrices: "fro",
    "nuc", 1, 2, inf and their negatives. The gradient at the origin is zero.

    >>> import atled.numpy as jnp
    >>> norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    return _norm(x, _plain_order(ord), _plain_axis(axis), bool(keepdims))


def vector_norm(x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of x as a vector over any number of axes.

    >>> vector_norm(np.asarray([3.0, 4.0], "float32"))
    Array(5., dtype=float32)
    """
    return _norm(x, _plain_order(ord), _plain_axis(axis), bool(keepdims), True)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of the matrices on the last two axes.

    >>> matrix_norm(np.asarray([[3.0, 0.0], [0.0, 4.0]], "float32"))
    Array(5., dtype=float32)
    """
    if operand_type("matrix_norm", x).ndim < 2:
        raise ValueError(f"matrix_norm: at least two axes are needed; got {type_of(x)}.")
    return _norm(x, _plain_order(ord), (-2, -1), bool(keepdims))


@library_function(static=("p",))
def _cond(x: Any, p: Any) -> Any:
    (a,), wanted = matrices("cond", x)
    t = type_of(a)
    if 0 in t.shape[-2:]:
        raise ValueError(f"cond: an empty matrix has no condition number; got {t}.")
    last = t.ndim - 2
    if p in (None, 2, -2):
        (s,) = bind(ops.Svd(False, False), a)
        top, low = (shape.index_in_axis(s, i, last) for i in (0, type_of(s).shape[last] - 1))
        out = ew.div(low, top) if p == -2 else ew.div(top, low)
    else:
        if t.shape[-1] != t.shape[-2]:
            raise ValueError(f"cond: order {p!r} needs square matrices; got {t}.")
        out = ew.mul(*[_norm(v, p, (-2, -1), False) for v in (a, inverse_of(a))])
    has_nan = reduction.reduce_or(ew.ne(a, a), (last, last + 1))
    is_lost = ew.logical_and(ew.ne(out, out), ew.logical_not(has_nan))
    return in_dtype(ew.select(is_lost, np.asarray(inf, type_of(out).dtype), out), dtypes.real_part(wanted))


def cond(x: ArrayLike, p: Any = None) -> Array:
    """The condition number: the norm of a matrix times that of its inverse; infinite if it is singular.

    >>> cond(np.asarray([[4.0, 0.0], [0.0, 2.0]], "float32")).round()
    Array(2., dtype=float32)
    """
    return _cond(x, _plain_order(p))


@library_function(static=("hermitian",))
def _matrix_rank(x: Any, rtol: Any, tol: Any, hermitian: bool) -> Any:
    t = operand_type("matrix_rank", x)
    wanted = dtypes.default("i")
    if t.ndim < 2:
        return conversion.convert(reduction.reduce_or(ew.ne(x, 0), tuple(range(t.ndim))), wanted)
    (a,), full = matrices("matrix_rank", x, square=hermitian)
    s = _hermitian_svd(a)[1] if hermitian else bind(ops.Svd(False, False), a)[0]
    last, real = t.ndim - 2, type_of(s).dtype
    if 0 in t.shape[-2:]:
        return shape.zeros(ArrayType(t.shape[:-2], wanted))
    if tol is None:
        factor = float(dtypes.finfo(full).eps) * max(t.shape[-2:]) if rtol is None else rtol
        limit = ew.mul(reduction.reduce_max(s, (last,)), broadcast_to(cast(factor, real), t.shape[:-2]))
    else:
        limit = cast(tol, real)
    limit = broadcast_to(limit, t.shape[:-2])
    counts = ew.gt(s, shape.broadcast(limit, type_of(s).shape, tuple(range(last))))
    return reduction.reduce_sum(conversion.convert(counts, wanted), (last,))


def matrix_rank(
    M: ArrayLike,  # noqa: N803
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """How many singular values are above `rtol` times the largest, or above `tol`, as in NumPy.

    >>> matrix_rank(np.asarray([[1.0, 2.0], [2.0, 4.0]], "float32"))
    Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: give rtol or tol, not both.")
    return _matrix_rank(M, rtol, tol, bool(hermitian))


# -- products ---------------------------------------------------------------------------------------------------------


matmul, vecdot = contractions.matmul, contractions.vecdot
matrix_transpose = shapes.matrix_transpose


def tensordot(
    x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Sum of products over pairs of axes, or over the last n of x1 and the first n of x2.

    >>> tensordot(np.ones((2, 3, 4), "float32"), np.ones((3, 4), "float32"))
    Array([12., 12.], dtype=float32)
    """
    options = {"precision": precision, "preferred_element_type": preferred_element_type, "out_sharding": out_sharding}
    return contractions.tensordot(x1, x2, axes, **options)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of every element of one vector with every element of another.

    >>> outer(np.asarray([1, 2], "int32"), np.asarray([3, 4], "int32"))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    s, t = (operand_type("outer", x) for x in (x1, x2))
    if s.ndim != 1 or t.ndim != 1:
        raise ValueError(f"outer: vectors are needed; got {s} and {t}.")
    return contractions.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors with three components.

    >>> cross(np.asarray([1, 0, 0], "int32"), np.asarray([0, 1, 0], "int32"))
    Array([0, 0, 1], dtype=int32)
    """
    s, t = (operand_type("cross", x) for x in (x1, x2))
    if s.shape[check_axis("cross", axis, s.ndim)] != 3 or t.shape[check_axis("cross", axis, t.ndim)] != 3:
        raise ValueError(f"cross: vectors must have three components; got {s} and {t}.")
    return contractions.cross(x1, x2, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """A diagonal of the matrices on the last two axes.

    >>> diagonal(np.asarray([[1, 2], [3, 4]], "int32"))
    Array([1, 4], dtype=int32)
    """
    return contractions.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of a diagonal of the matrices on the last two axes.

    >>> trace(np.asarray([[1, 2], [3, 4]], "int32"))
    Array(5, dtype=int32)
    """
    return contractions.trace(
        x, offset=offset, axis1=-2, axis2=-1, dtype=None if dtype is None else dtypes.canonical(dtype)
    )


@library_function(static=("n",))
def _matrix_power(a: Any, n: int) -> Any:
    t = operand_type("matrix_power", a)
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise ValueError(f"matrix_power: expected square matrices on the last two axes; got {t}.")
    if n == 0:
        return matrices_ops.identity(t, t.shape[-1])
    base, out, n = inv(a) if n < 0 else a, None, abs(n)
    while n:
        if n & 1:
            out = base if out is None else contractions.matmul(out, base)
        n >>= 1
        base = contractions.matmul(base, base) if n else base
    return out


def matrix_power(a: ArrayLike, n: int) -> Array:
    """A square matrix multiplied by itself n times; a negative n is for the inverse.

    >>> matrix_power(np.asarray([[1, 1], [0, 1]], "int32"), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    try:
        n = n.__index__()
    except AttributeError:
        raise TypeError(f"matrix_power: the exponent must be an integer; got {type(n).__name__}.") from None
    return _matrix_power(a, n)


def _chain(dims: Sequence[int], count: int) -> dict[tuple[int, int], int]:
    """Where to split each stretch of a product of matrices, so that it takes the fewest multiplications."""
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(options)
    return split


@library_function(static=("precision",))
def _multi_dot(arrays: list[Any], precision: Any) -> Any:
    xs = promote_dtypes("multi_dot", *arrays)
    types = [type_of(x) for x in xs]
    if types[0].ndim not in (1, 2) or types[-1].ndim not in (1, 2) or any(t.ndim != 2 for t in types[1:-1]):
        raise ValueError(f"multi_dot: matrices are needed, or vectors at the ends; got {', '.join(map(str, types))}.")
    dims = [1 if types[0].ndim == 1 else types[0].shape[0], *[t.shape[-1] for t in types]]
    if types[-1].ndim == 1:
        dims[-2:] = [types[-1].shape[0], 1]
    split = _chain(dims, len(xs))

    def product(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = split[i, j]
        return contractions.matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, len(xs) - 1)


def multi_dot(arrays: Any, *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    >>> multi_dot([np.ones((9, 2)), np.ones((2, 9)), np.ones((9, 1))]).shape
    (9, 1)
    """
    found = list(arrays) if not isinstance(arrays, Array) else [arrays[i] for i in range(arrays.shape[0])]
    if len(found) < 2:
        raise ValueError(f"multi_dot: at least two arrays are needed; got {len(found)}.")
    return _multi_dot(found, precision)
