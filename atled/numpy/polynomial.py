"""Polynomials as vectors of coefficients, the highest power first.

The lengths of the operands determine the length of the result: leading zeros are kept, unless an option strips them,
which needs concrete values. Integers stay integers where NumPy keeps them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.errors import ConcretizationTypeError
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.numpy.creation import asarray
from atled.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    cast,
    common_dtype,
    inexact_dtype,
    operand_type,
    promote_dtypes,
    promote_inexact,
)  # fmt: skip
from atled.ops import (
    conversion,
    cumulative,
    elementary,
    indexing,
    linalg,
    nonsymmetric_eigen,
    reduction,
    shape,
    sorting,
)
from atled.ops import elementwise as ew
from atled.ops import matrix_ops as matrices_ops
from atled.staging.jit import library_function

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots", "vander",
]  # fmt: skip


def _coefficients(name: str, p: Any) -> Any:
    """Operands as vectors: a scalar is a polynomial of degree zero, and bools count as integers."""
    t = operand_type(name, p)
    if t.ndim > 1:
        raise ValueError(f"{name}: coefficients are a 1-d array, the highest power first; got {t}.")
    p = cast(p, dtypes.default("i") if t.kind == "b" else t.dtype, t.weak)
    return shape.reshape(p, (t.size,))


def _solver_dtype(dtype: Any) -> Any:
    """The dtype in which linear systems and eigenvalues are computed: at least 32 bits wide."""
    return dtypes.float32 if dtypes.bits(dtype) < 32 else dtype


def _size(name: str, value: Any) -> int:
    """A count (an order or a number of columns) as a Python integer; raises if it is negative."""
    n = value.__index__()
    if n < 0:
        raise ValueError(f"{name} must not be negative; got {n}.")
    return n


def _without_leading_zeros(name: str, p: Any, way_out: str) -> Any:
    """The coefficients without leading zeros; a single zero if all are zero."""
    zeros = _host_values(name, p, way_out) == 0
    first = int(np.argmin(zeros)) if not zeros.all() else max(len(zeros) - 1, 0)
    return shape.slice_in_axis(p, first, p.shape[0], 0)


def _host_values(name: str, p: Any, way_out: str) -> Any:
    value = p.known() if isinstance(p, Tracer) else p
    if value is None:
        raise ConcretizationTypeError(
            p._explained(
                f"{name}: the length of the result depends on which coefficients of a traced {p.type} are zero.",
                way_out,
            )
        )
    return np.asarray(value)


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _aligned(name: str, a1: Any, a2: Any) -> list[Any]:
    """Two polynomials padded to the same number of coefficients."""
    xs = promote_dtypes(name, _coefficients(name, a1), _coefficients(name, a2))
    n = max([type_of(x).shape[0] for x in xs])
    return [shape.pad(x, np.zeros((), type_of(x).dtype), [(n - type_of(x).shape[0], 0, 0)]) for x in xs]


@library_function
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    >>> import atled.numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10, 20]))
    Array([ 1, 12, 23], dtype=int32)
    """
    return ew.add(*_aligned("polyadd", a1, a2))


@library_function
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    >>> polysub(asarray([1, 2, 3]), asarray([1, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    return ew.sub(*_aligned("polysub", a1, a2))


def _product(x: Any, y: Any) -> Any:
    """Products of polynomials on the last axis: row i of each outer product is shifted by i, and columns are summed."""
    s, t = type_of(x), type_of(y)
    lead, n, m = s.shape[:-1], s.shape[-1], t.shape[-1]
    axes = tuple(range(len(lead)))
    dims = (*lead, n, m)
    outer = ew.mul(shape.broadcast(x, dims, (*axes, len(lead))), shape.broadcast(y, dims, (*axes, len(lead) + 1)))
    wide = shape.pad(outer, np.zeros((), s.dtype), [(0, 0, 0)] * (len(lead) + 1) + [(0, n, 0)])
    flat = shape.slice_in_axis(shape.reshape(wide, (*lead, n * (n + m))), 0, n * (n + m - 1), len(lead))
    return reduction.reduce_sum(shape.reshape(flat, (*lead, n, n + m - 1)), (len(lead),))


@library_function
def _polymul(a1: Any, a2: Any) -> Any:
    x, y = promote_dtypes("polymul", _coefficients("polymul", a1), _coefficients("polymul", a2))
    if 0 in (type_of(x).size, type_of(y).size):
        raise ValueError(f"polymul: polynomials must have at least one coefficient; got {type_of(x)} and {type_of(y)}.")
    return _product(x, y)


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials. Unlike NumPy, leading zeros are kept unless `trim_leading_zeros` is set.

    >>> import atled.numpy as jnp
    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1,  0, -4], dtype=int32)
    """
    out = _polymul(a1, a2)
    return _without_leading_zeros("polymul", out, "trim_leading_zeros=False.") if trim_leading_zeros else out


@library_function
def _polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    x, y = promote_inexact("polydiv", _coefficients("polydiv", u), _coefficients("polydiv", v))
    t = type_of(x)
    n, m = t.size, type_of(y).size
    if 0 in (n, m):
        raise ValueError(f"polydiv: polynomials must have at least one coefficient; got {t} and {type_of(y)}.")
    if n < m:
        return shape.zeros(ArrayType((1,), t.dtype)), x
    count = n - m + 1
    work = _solver_dtype(t.dtype)
    left, right = conversion.convert(x, work), conversion.convert(y, work)
    # long division is forward substitution: left[i] is the sum over j of right[i - j] * quotient[j]
    column = shape.pad(right, 0, [(0, max(count - m, 0), 0)])
    column = shape.slice_in_axis(column, 0, count, 0)
    skewed = shape.broadcast(shape.pad(column, 0, [(0, count, 0)]), (count, 2 * count), (1,))
    flat = shape.slice_in_axis(shape.reshape(skewed, (2 * count * count,)), 0, count * (2 * count - 1), 0)
    rows = shape.slice_in_axis(
        shape.reshape(flat, (count, 2 * count - 1)), 0, count, 1
    )  # row j is the column, shifted by j
    head = shape.reshape(shape.slice_in_axis(left, 0, count, 0), (count, 1))
    quotient = shape.reshape(matrices_ops.triangular_solve(matrices_ops.transposed(rows), head, lower=True), (count,))
    rest = ew.sub(left, _product(quotient, right))
    rest = shape.pad(shape.slice_in_axis(rest, count, n, 0), 0, [(count, 0, 0)])  # the first count are zero
    return conversion.convert(quotient, t.dtype), conversion.convert(rest, t.dtype)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder. The remainder has the length of u, unless `trim_leading_zeros` is set.

    >>> import atled.numpy as jnp
    >>> jnp.polydiv(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    (Array([1., 1.], dtype=float32), Array([0., 0., 2.], dtype=float32))
    """
    quotient, rest = _polydiv(u, v)
    return quotient, _without_leading_zeros(
        "polydiv", rest, "trim_leading_zeros=False."
    ) if trim_leading_zeros else rest


# -- calculus ---------------------------------------------------------------------------------------------------------


def _falling(n: int, m: int, dtype: Any) -> Any:
    """p (p - 1) ... (p - m + 1), the factor of the m-th derivative, for p = n - 1, ..., 0; factors below 1 are 1."""
    power = ew.sub(np.asarray(n - 1, dtype), shape.iota(dtype, (n,), 0))
    out = shape.full(ArrayType((n,), dtype), 1)
    for j in range(m):
        out = ew.mul(out, ew.maximum(ew.sub(power, np.asarray(j, dtype)), np.asarray(1, dtype)))
    return out


def _real_factor(n: int, m: int, dtype: Any) -> Any:
    return conversion.convert(_falling(n, m, dtypes.real_part(dtype)), dtype)


@library_function(static=("m",))
def _polyder(p: Any, m: int) -> Any:
    x = _coefficients("polyder", p)
    t = type_of(x)
    n = t.size
    out = ew.mul(x, _real_factor(n, m, t.dtype)) if m else x
    return shape.slice_in_axis(out, 0, max(n - m, 0), 0)


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    >>> import atled.numpy as jnp
    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2, 2], dtype=int32)
    """
    return _polyder(p, _size("polyder: the order of a derivative", m))


@library_function(static=("m",))
def _polyint(p: Any, k: Any, m: int) -> Any:
    x = _coefficients("polyint", p)
    if k is None:
        (x,) = promote_inexact("polyint", x)
        k = np.zeros((), type_of(x).dtype)
    else:
        x, k = promote_inexact("polyint", x, k)
    t = type_of(k)
    if t.ndim > 1 or (t.ndim == 1 and t.size not in (1, m)):
        raise ValueError(f"polyint: k is a scalar or {m} constants, one for each integration; got {t}.")
    joined = shape.concatenate([x, broadcast_to(k, (m,))], 0) if m else x
    return ew.div(joined, _real_factor(type_of(joined).size, m, type_of(x).dtype))


def polyint(p: ArrayLike, m: int = 1, k: Any = None) -> Array:
    """The m-th antiderivative of a polynomial; `k` holds the constants of integration.

    >>> import atled.numpy as jnp
    >>> jnp.polyint(jnp.array([6.0, 2.0]), k=5.0)
    Array([3., 2., 5.], dtype=float32)
    """
    order = _size("polyint: the order of an integral", m)
    if isinstance(k, (list, tuple)):  # Python numbers in a list are weakly typed, too
        dtype, _ = common_dtype([operand_type("polyint", v) for v in (p, *k)])
        k = asarray(k, inexact_dtype(dtype))
    return _polyint(p, k, order)


# -- values -----------------------------------------------------------------------------------------------------------

_HORNER_LIMIT = 32  # for more coefficients, pairs are combined, in log2(n) steps


@library_function(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial at x; coefficients are on the first axis of p, its other axes broadcast with x.

    `unroll` is accepted for compatibility and has no effect.

    >>> import atled.numpy as jnp
    >>> jnp.polyval(jnp.array([1, 0, 2]), 3)
    Array(11, dtype=int32)
    """
    c, x = promote_dtypes("polyval", p, x)
    s, t = type_of(c), type_of(x)
    if s.kind == "b":
        c, x = (conversion.convert(v, dtypes.default("i")) for v in (c, x))
        s, t = type_of(c), type_of(x)
    if s.ndim == 0:
        raise ValueError(f"polyval: coefficients are an array, the highest power first; got {s}.")
    dims = broadcast_shapes(s.shape[1:], t.shape)
    n = s.shape[0]
    if n == 0:
        return shape.zeros(ArrayType(dims, s.dtype))
    x = broadcast_to(x, dims)
    if n <= _HORNER_LIMIT:
        out = shape.index_in_axis(c, 0, 0)
        out = broadcast_to(out, dims)
        for i in range(1, n):
            out = ew.add(ew.mul(out, x), broadcast_to(shape.index_in_axis(c, i, 0), dims))
        return out
    own = shape.reshape(c, (n, *(1,) * (len(dims) - s.ndim + 1), *s.shape[1:]))
    table = broadcast_to(own, (n, *dims))
    while n > 1:  # a pair becomes a coefficient of a polynomial in x * x
        table = shape.pad(table, np.zeros((), s.dtype), [(n % 2, 0, 0)] + [(0, 0, 0)] * len(dims))
        n = (n + 1) // 2
        high, low = (shape.slice_in_axis(table, i, 2 * n, 0, 2) for i in (0, 1))
        table = ew.add(ew.mul(high, broadcast_to(x, (n, *dims))), low)
        x = ew.mul(x, x)
    return shape.reshape(table, dims)


@library_function(static=("n", "increasing"))
def _vander(x: Any, n: int | None, increasing: bool) -> Any:
    t = operand_type("vander", x)
    if t.ndim != 1:
        raise ValueError(f"vander: points are a 1-d array; got {t}.")
    points = cast(x, dtypes.default("i") if t.kind == "b" else t.dtype)
    return _powers(points, t.shape[0] if n is None else n, increasing)


def _powers(x: Any, n: int, increasing: bool) -> Any:
    """Powers 0 to n - 1 along a new last axis, computed as products, whose derivatives are correct at zero."""
    t = type_of(x)
    dims = (t.shape[0], n)
    if 0 in dims:
        return shape.zeros(ArrayType(dims, t.dtype))
    ones = shape.full(ArrayType((t.shape[0], 1), t.dtype), 1)
    factors = shape.concatenate([ones, shape.broadcast(x, (t.shape[0], n - 1), (0,))], 1)
    out = cumulative.cumprod(factors, 1) if n > 2 else factors
    return out if increasing else shape.reverse(out, (1,))


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803
    """Powers of points as the columns of a matrix, the highest power first.

    >>> import atled.numpy as jnp
    >>> jnp.vander(jnp.array([1, 2, 3]), 2)
    Array([[1, 1],
           [2, 1],
           [3, 1]], dtype=int32)
    """
    return _vander(x, None if N is None else _size("vander: the number of columns", N), bool(increasing))


# -- fitting ----------------------------------------------------------------------------------------------------------


def _check_points(x: Any, y: Any, w: Any, least: int) -> None:
    """Raise an error for points that no polynomial can be fitted to."""
    s, t = operand_type("polyfit", x), operand_type("polyfit", y)
    if s.ndim != 1 or s.size == 0:
        raise TypeError(f"polyfit: x must be a 1-d array with at least one point; got {s}.")
    if t.ndim not in (1, 2) or t.shape[0] != s.shape[0]:
        raise TypeError(f"polyfit: y must have a value, or a row of values, for each point of x; got {t} for {s}.")
    if w is not None and operand_type("polyfit", w).shape != s.shape:
        raise TypeError(f"polyfit: w must have a weight for each point of x; got {operand_type('polyfit', w)} for {s}.")
    if s.size < least:
        raise ValueError(f"polyfit: at least {least} points are needed to scale the covariance; got {s.size}.")


@library_function(static=("deg", "full", "cov"))
def _polyfit(x: Any, y: Any, w: Any, rcond: Any, deg: int, full: bool, cov: Any) -> Any:
    _check_points(x, y, w, deg + 2 if cov is True else 1)
    given = [x, y] if w is None else [x, y, w]
    dtype = type_of(promote_inexact("polyfit", *given)[0]).dtype
    work = _solver_dtype(dtype)
    x, y, *weights = [cast(v, work) for v in given]
    count, order = type_of(x).size, deg + 1
    matrix, right = _powers(x, order, False), shape.reshape(y, (count, type_of(y).size // count))
    for v in weights:
        matrix, right = matrices_ops.scale_rows(matrix, v), matrices_ops.scale_rows(right, v)
    squares = ew.mul(matrix, conversion.conj(matrix)) if type_of(matrix).kind == "c" else ew.mul(matrix, matrix)
    norm = reduction.reduce_sum(conversion.real(squares) if type_of(squares).kind == "c" else squares, (0,))
    one, zero = (np.asarray(v, type_of(norm).dtype) for v in (1, 0))
    scale = elementary.sqrt(ew.select(ew.eq(norm, 0), one, norm))  # columns of norm one improve the condition number
    upscale = ew.div(one, scale)
    matrix = matrices_ops.scale_columns(matrix, upscale)
    limit = (
        np.asarray(count * float(dtypes.finfo(work).eps), type_of(norm).dtype)
        if rcond is None
        else cast(rcond, type_of(norm).dtype)
    )
    s, u, vt = bind(linalg.Svd(), matrix)
    top = shape.broadcast(ew.mul(shape.index_in_axis(s, 0, 0), limit), type_of(s).shape, ())
    is_kept = ew.gt(s, top)
    inverse = ew.select(is_kept, ew.div(one, ew.select(is_kept, s, one)), zero)
    v = matrices_ops.adjoint(vt)
    solution = matrices_ops.matmul(
        matrices_ops.scale_columns(v, inverse), matrices_ops.matmul(matrices_ops.adjoint(u), right)
    )
    coefficients = matrices_ops.scale_rows(solution, upscale)
    coefficients = shape.reshape(conversion.convert(coefficients, dtype), (order, *type_of(y).shape[1:]))
    if not full and not cov:
        return coefficients
    off = ew.sub(right, matrices_ops.matmul(matrix, solution))
    size = elementary.absolute(off)
    residuals = conversion.convert(reduction.reduce_sum(ew.mul(size, size), (0,)), dtypes.real_part(dtype))
    if full:
        rank = reduction.reduce_sum(conversion.convert(is_kept, dtypes.int32), (0,))
        sums = residuals if count > order else shape.zeros(ArrayType((0,), type_of(residuals).dtype))
        s, limit = (conversion.convert(z, dtypes.real_part(dtype)) for z in (s, limit))
        return coefficients, sums, rank, s, limit
    half = matrices_ops.scale_rows(matrices_ops.scale_columns(v, inverse), upscale)
    base = conversion.convert(matrices_ops.matmul(half, matrices_ops.adjoint(half)), dtype)
    if cov == "unscaled":
        return coefficients, base if type_of(y).ndim == 1 else shape.reshape(base, (order, order, 1))
    factor = conversion.convert(ew.div(residuals, count - order), dtype)
    if type_of(y).ndim == 1:
        return coefficients, ew.mul(base, shape.reshape(factor, ()))
    dims = (order, order, type_of(factor).size)
    return coefficients, ew.mul(shape.broadcast(base, dims, (0, 1)), shape.broadcast(factor, dims, (2,)))


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The least-squares fit of a polynomial of degree `deg` to points; `w` weighs the residuals.

    `full` also returns the sums of squared residuals, the rank, the singular values and `rcond`; `cov` also returns the
    covariance of the coefficients, `cov="unscaled"` the covariance for residuals of variance one. There is no warning
    if the rank is deficient.

    >>> import atled.numpy as jnp
    >>> jnp.round(jnp.polyfit(jnp.arange(4.0), 2 * jnp.arange(4.0) + 1, 1), 4)
    Array([2., 1.], dtype=float32)
    """
    how = False if full or not cov else "unscaled" if cov == "unscaled" else True
    return _polyfit(x, y, w, rcond, _size("polyfit: the degree", deg), bool(full), how)


# -- roots ------------------------------------------------------------------------------------------------------------


def _poly_of_zeros(z: Any) -> Any:
    """The polynomial with roots z: factors are multiplied in pairs; ones pad their number to a power of two."""
    t = type_of(z)
    n = t.size
    full = 1 << max(n - 1, 0).bit_length()
    one, zero = (np.asarray(v, t.dtype) for v in (1, 0))
    lead = shape.pad(shape.full(ArrayType((n, 1), t.dtype), 1), zero, [(0, full - n, 0), (0, 0, 0)])
    last = shape.pad(shape.reshape(ew.neg(z), (n, 1)), one, [(0, full - n, 0), (0, 0, 0)])
    table = shape.concatenate([lead, last], 1)
    while type_of(table).shape[0] > 1:
        count = type_of(table).shape[0]
        table = _product(*[shape.slice_in_axis(table, i, count, 0, 2) for i in (0, 1)])
    return shape.slice_in_axis(shape.reshape(table, (full + 1,)), full - n, full + 1, 0)


@library_function
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with these roots and leading coefficient one; for a square matrix, its characteristic polynomial.

    For complex roots or a matrix the result is complex, also where NumPy's would be real.

    >>> import atled.numpy as jnp
    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    (z,) = promote_inexact("poly", seq_of_zeros)
    t = type_of(z)
    if t.ndim == 2 and t.shape[0] == t.shape[1] and t.size:
        (z,) = bind(nonsymmetric_eigen.Eig(False), conversion.convert(z, _solver_dtype(t.dtype)))
    elif t.ndim > 1:
        raise ValueError(f"poly: a 1-d array of roots or a square matrix is needed; got {t}.")
    elif t.size == 0:
        return shape.full(ArrayType((), t.dtype), 1)
    return _poly_of_zeros(shape.reshape(z, (type_of(z).size,)))


def _companion_eigenvalues(p: Any) -> Any:
    """The roots of a polynomial whose first coefficient is not zero."""
    t = type_of(p)
    n = t.size - 1
    first = shape.broadcast(shape.index_in_axis(p, 0, 0), (n,), ())
    top = ew.neg(ew.div(shape.slice_in_axis(p, 1, n + 1, 0), first))
    below = shape.pad(matrices_ops.identity(ArrayType((n - 1, n - 1), t.dtype), n - 1), 0, [(0, 0, 0), (0, 1, 0)])
    (values,) = bind(nonsymmetric_eigen.Eig(False), shape.concatenate([shape.reshape(top, (1, n)), below], 0))
    return values


@library_function(static=("start", "stop"))
def _roots_between(p: Any, start: int, stop: int) -> Any:
    """The roots of a polynomial in which all coefficients before `start` and from `stop` on are zero."""
    (x,) = promote_inexact("roots", p)
    n = type_of(x).size
    x = conversion.convert(x, _solver_dtype(type_of(x).dtype))
    complex_dtype = dtypes.complex_of(type_of(x).dtype)
    at_zero = shape.zeros(ArrayType((n - stop,), complex_dtype))
    if stop - start < 2:
        return at_zero
    return shape.concatenate([_companion_eigenvalues(shape.slice_in_axis(x, start, stop, 0)), at_zero], 0)


@library_function
def _roots_of_any(p: Any) -> Any:
    """The roots of a polynomial, with a NaN at the end for each leading zero."""
    (x,) = promote_inexact("roots", p)
    x = conversion.convert(x, _solver_dtype(type_of(x).dtype))
    t = type_of(x)
    complex_dtype = dtypes.complex_of(t.dtype)
    n = t.size - 1
    if n < 1:
        return shape.zeros(ArrayType((0,), complex_dtype))
    seen = cumulative.cumsum(conversion.convert(ew.ne(x, np.zeros((), t.dtype)), dtypes.int32), 0)
    missing = reduction.reduce_sum(conversion.convert(ew.eq(seen, 0), dtypes.int32), (0,))
    # shifted so that the first coefficient is not zero; each shift adds a root at zero
    shifted = indexing.dynamic_slice(shape.pad(x, 0, [(0, n + 1, 0)]), [missing], (n + 1,))
    first = shape.index_in_axis(shifted, 0, 0, keep=True)
    first = ew.select(ew.eq(first, 0), np.ones((), t.dtype), first)
    values = _companion_eigenvalues(shape.concatenate([first, shape.slice_in_axis(shifted, 1, n + 1, 0)], 0))
    place = shape.iota(dtypes.int32, (n,), 0)
    by_size = sorting.sort((ew.neg(elementary.absolute(values)), place), 0)[1]
    rank = sorting.sort((by_size, place), 0)[1]
    left = ew.sub(np.asarray(n, dtypes.int32), missing)
    order = sorting.sort((ew.ge(rank, left), place), 0)[1]
    moved = indexing.take_along(values, order, 0)
    return ew.select(ew.lt(place, left), moved, np.asarray(complex(np.nan, np.nan), complex_dtype))


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, always complex, as eigenvalues of its companion matrix.

    Leading zeros shorten the result, so p must be concrete. With `strip_zeros=False` the length is static: the result
    ends with a NaN for each leading zero.

    >>> import atled.numpy as jnp
    >>> jnp.roots(jnp.array([0.0, 1.0, 2.0]))
    Array([-2.+0.j], dtype=complex64)
    """
    t = operand_type("roots", p)
    if t.ndim != 1:
        raise ValueError(f"roots: coefficients are a 1-d array, the highest power first; got {t}.")
    x = asarray(p)
    if not strip_zeros:
        return _roots_of_any(x)
    nonzero = np.flatnonzero(_host_values("roots", x, "roots(p, strip_zeros=False)."))
    if not nonzero.size:
        return _roots_between(x, t.size, t.size)
    return _roots_between(x, int(nonzero[0]), int(nonzero[-1]) + 1)
