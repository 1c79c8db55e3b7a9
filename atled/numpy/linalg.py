"""NumPy's linear algebra, over the last two axes of arrays; leading axes are batches.

Solvers, determinants and products are here, other functions in `decompositions.py` and `norms.py`. Functions choose,
scale and combine the ops of `ops/linalg.py` and `ops/solvers.py`. 16-bit floats are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.errors import ConcretizationTypeError
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.numpy import contractions, shapes
from atled.numpy.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    hermitian_svd,
    qr,
    svd,
    svd_parts,
    svdvals,
)
from atled.numpy.matrix_checks import broadcast_leading, in_dtype, matrices
from atled.numpy.norms import cond, matrix_norm, matrix_rank, norm, squared_size, vector_norm
from atled.numpy.promotion import broadcast_to, cast, operand_type, promote_dtypes, promote_inexact
from atled.ops import conversion, reduction, shape
from atled.ops import elementwise as ew
from atled.ops import matrix_ops as matrices_ops
from atled.ops.matrix_ops import adjoint, scale_columns
from atled.ops.matrix_ops import matmul as _product
from atled.ops.solvers import Determinant, LogDeterminant, PseudoInverse, factored, fixed, inverse_of, solve_matrices
from atled.staging.jit import library_function

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = __all__.copy


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


# -- solving ----------------------------------------------------------------------------------------------------------


@library_function
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x such that a x = b, for square a; b holds columns, or is one vector if it has a single axis.

    >>> import atled.numpy as jnp
    >>> solve(2 * jnp.eye(2), jnp.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    (x, y), result_dtype = matrices("solve", a, b, square=True)
    is_vector = type_of(y).ndim == 1
    if type_of(y).ndim == 0 or type_of(y).shape[-1 if is_vector else -2] != type_of(x).shape[-1]:
        raise ValueError(
            f"solve: b must have as many rows as a; got {type_of(a)} and {type_of(b)}."
            "\n  try: b.T if its columns are on the other axis, or b[:, None] for one column."
        )
    if is_vector:
        y = shape.reshape(y, (*type_of(y).shape, 1))
    out = in_dtype(solve_matrices(*broadcast_leading("solve", x, y)), result_dtype)
    return shape.reshape(out, type_of(out).shape[:-1]) if is_vector else out


@library_function
def inv(a: ArrayLike) -> Array:
    """The inverse of a square matrix; infinities and NaN if there is none.

    >>> import atled.numpy as jnp
    >>> inv(2 * jnp.eye(2))
    Array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """
    (x,), result_dtype = matrices("inv", a, square=True)
    return in_dtype(inverse_of(x), result_dtype)


def _pseudoinverse(x: Any, rtol: Any, eps: float, hermitian: bool = False) -> tuple[Any, Any, Any]:
    """The pseudoinverse, the singular values, and which of them are not treated as zero."""
    t = type_of(x)
    parts = hermitian_svd(fixed(x)) if hermitian else svd_parts(x)
    u, s, vt = [fixed(v) for v in parts]
    last, real = t.ndim - 2, type_of(s).dtype
    if rtol is None:
        rtol = eps * max(t.shape[-2:])
    top = reduction.reduce_max(s, (last,)) if type_of(s).size else shape.zeros(ArrayType(t.shape[:-2], real))
    limit = ew.mul(top, broadcast_to(cast(rtol, real), t.shape[:-2]))
    is_large = ew.gt(s, shape.broadcast(limit, type_of(s).shape, tuple(range(last))))
    one, zero = np.ones((), real), np.zeros((), real)
    inverse = ew.select(is_large, ew.div(one, ew.select(is_large, s, one)), zero)
    product = _product(scale_columns(adjoint(vt), inverse), adjoint(u))
    return bind(PseudoInverse(), x, product), parts[1], is_large


@library_function(static=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    (x,), result_dtype = matrices("pinv", a, square=hermitian)
    return in_dtype(_pseudoinverse(x, rtol, float(dtypes.finfo(result_dtype).eps), hermitian)[0], result_dtype)


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore-Penrose pseudoinverse; singular values up to `rtol` times the largest count as zero.

    By default `rtol` is the machine epsilon of the dtype times the larger dimension. Derivatives assume a fixed rank.

    >>> pinv(np.asarray([[2.0], [0.0]], "float32")).round(1)
    Array([[0.5, 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: rtol and rcond are two names for the same parameter; give only one of them.")
    return _pinv(a, rcond if rtol is None else rtol, bool(hermitian))


@library_function(static=("rcond",))
def _lstsq(a: Any, b: Any, rcond: float | None) -> tuple[Any, Any, Any, Any]:
    (x, y), result_dtype = matrices("lstsq", a, b)
    is_vector = type_of(y).ndim == 1
    if is_vector:
        y = shape.reshape(y, (*type_of(y).shape, 1))
    m = type_of(x).shape[-2]
    if type_of(y).ndim < 2 or type_of(y).shape[-2] != m:
        raise ValueError(f"lstsq: {type_of(a)} and {type_of(b)} must have the same number of rows.")
    eps = float(dtypes.finfo(result_dtype).eps)
    inverse, s, is_large = _pseudoinverse(x, eps if rcond is not None and rcond < 0 else rcond, eps)
    p, y = broadcast_leading("lstsq", inverse, y)
    out = _product(p, y)
    rest = ew.sub(y, _product(broadcast_leading("lstsq", x, y)[0], out))
    squares = reduction.reduce_sum(squared_size(rest), (type_of(rest).ndim - 2,))
    rank = reduction.reduce_sum(conversion.convert(is_large, dtypes.default("i")), (type_of(s).ndim - 1,))
    if is_vector:
        out = shape.reshape(out, type_of(out).shape[:-1])
    return in_dtype(out, result_dtype), in_dtype(squares, result_dtype), rank, in_dtype(s, result_dtype)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Least squares:

    x that minimizes |a x - b|^2, the residual sums, the rank of a, and its singular values. If x is not unique, it is
    the solution with the smallest norm. Residual sums are always returned; with `numpy_resid` they are empty where
    NumPy's are.

    >>> lstsq(np.asarray([[1.0], [1.0]], "float32"), np.asarray([1.0, 3.0], "float32"))[0].round()
    Array([2.], dtype=float32)
    """
    x, squares, rank, s = _lstsq(a, b, None if rcond is None else float(rcond))
    if numpy_resid:
        m, n = type_of(a).shape[-2:]
        if isinstance(rank, Tracer) and m > n:
            raise ConcretizationTypeError(
                rank._explained(
                    f"lstsq: with numpy_resid the shape depends on the rank; got a traced {type_of(a)}.",
                    "numpy_resid=False.",
                )
            )
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
        raise ValueError(f"tensorsolve: {t} must be a square matrix from shape {dims} to the shape of {at}.")
    out = solve(shape.reshape(x, (at.size, at.size)), shape.reshape(y, (at.size,)))
    return shape.reshape(out, dims)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """x such that tensordot(a, x, x.ndim) is b; `axes` of a are moved to the end first.

    >>> tensorsolve(2 * np.eye(2, dtype="float32"), np.asarray([4.0, 6.0], "float32"))
    Array([2., 3.], dtype=float32)
    """
    return _tensorsolve(a, b, None if axes is None else tuple([int(i) for i in axes]))


@library_function(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a as a linear map from the axes `ind` and later to the axes before `ind`.

    >>> import atled.numpy as jnp
    >>> a = jnp.eye(6).reshape(6, 2, 3) * 2
    >>> tensorinv(a, ind=1).shape
    (2, 3, 6)
    >>> jnp.tensordot(tensorinv(a, ind=1), jnp.ones(6), 1)  # the x with jnp.tensordot(a, x, 2) == 1
    Array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]], dtype=float32)
    """
    t = operand_type("tensorinv", a)
    rows, columns = t.shape[:ind], t.shape[ind:]
    if ind <= 0 or prod(rows) != prod(columns):
        raise ValueError(f"tensorinv: the axes of {t} before and after {ind} must hold the same number of elements.")
    out = inv(shape.reshape(a, (prod(rows), prod(columns))))
    return shape.reshape(out, (*columns, *rows))


# -- determinants -----------------------------------------------------------------------------------------------------


def _small_determinant(a: Any, n: int) -> Any:
    """The determinant of matrices up to three by three, by the explicit formula."""
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
    """The determinant of a square matrix. Its first two derivatives are correct for singular matrices, too.

    >>> import atled.numpy as jnp
    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    (x,), result_dtype = matrices("det", a, square=True)
    t = type_of(x)
    n = t.shape[-1]
    if n == 0:
        return shape.full(ArrayType(t.shape[:-2], result_dtype), 1)
    return in_dtype(_small_determinant(x, n) if n <= 3 else bind(Determinant(), x, *factored(x)), result_dtype)


@library_function(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the log of the absolute value of a determinant, which itself may overflow or underflow.

    The determinant is computed by LU decomposition; `method` ("lu" or "qr") is accepted for compatibility, and has no
    effect.

    >>> slogdet(np.diag(np.asarray([-1e30, 1e30], "float32"))).sign
    Array(-1., dtype=float32)
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: the method is 'lu' or 'qr'; got {method!r}.")
    (x,), result_dtype = matrices("slogdet", a, square=True)
    sign, size = bind(LogDeterminant(), x, *factored(x))
    return SlogdetResult(in_dtype(sign, result_dtype), in_dtype(size, result_dtype))


# -- products ---------------------------------------------------------------------------------------------------------


matmul, vecdot = contractions.matmul, contractions.vecdot
matrix_transpose = shapes.matrix_transpose


def tensordot(
    x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, precision: Any = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None,
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


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
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
    """The n-th power of a square matrix; a negative n is a power of the inverse.

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
    """The position at which to split each product of matrices i to j, for the fewest multiplications."""
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


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    >>> multi_dot([np.ones((9, 2)), np.ones((2, 9)), np.ones((9, 1))]).shape
    (9, 1)
    """
    factors = list(arrays) if not isinstance(arrays, Array) else [arrays[i] for i in range(arrays.shape[0])]
    if len(factors) < 2:
        raise ValueError(f"multi_dot: at least two arrays are needed; got {len(factors)}.")
    return _multi_dot(factors, precision)
