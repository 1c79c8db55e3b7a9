"""NumPy's norms of vectors and matrices, and quantities derived from them: condition number and rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.numpy.decompositions import hermitian_svd
from atled.numpy.matrix_checks import in_dtype, matrices, work_dtype
from atled.numpy.promotion import broadcast_to, cast, operand_type, promote_inexact
from atled.ops import conversion, elementary, reduction, shape
from atled.ops import elementwise as ew
from atled.ops import linalg as ops
from atled.ops.solvers import fixed, inverse_of
from atled.staging.jit import library_function


def squared_size(x: Any) -> Any:
    """abs(x)**2, elementwise."""
    return conversion.real(ew.mul(x, conversion.conj(x))) if type_of(x).kind == "c" else ew.mul(x, x)


def _zero_at_zero(value: Any, f: Any) -> Any:
    """f(value); where the value is zero, the result and its derivatives are zero."""
    dtype = type_of(value).dtype
    is_zero = ew.eq(value, 0)
    return ew.select(is_zero, np.zeros((), dtype), f(ew.select(is_zero, np.ones((), dtype), value)))


def _reduced_vector_norm(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    """The norm of vectors over several axes."""
    t = type_of(x)
    if ord in (None, 2):
        return _zero_at_zero(reduction.reduce_sum(squared_size(x), axes), elementary.sqrt)
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
        raise ValueError(f"norm: {ord!r} is a matrix norm; got vectors. The order of a vector norm is a number.")
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
    if type_of(s).size:  # singular values that are zero up to rounding get derivative zero
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
            f"norm: an axis is needed for {t} and order {ord!r}; without one, x must be a vector or a matrix."
        )
    if len(axes) not in (1, 2) and not is_vector and axis is not None:
        raise ValueError(f"norm: one axis, or two for matrices, are needed; got {axis}.")
    (a,) = promote_inexact("norm", x)
    result_dtype = dtypes.real_part(type_of(a).dtype)
    a = cast(a, work_dtype(type_of(a).dtype))
    if is_vector or len(axes) == 1 or ord is None:
        out = _reduced_vector_norm(a, ord, axes)
    else:
        out = _reduced_matrix_norm(a, ord, *axes)
    out = in_dtype(out, result_dtype)
    return shape.reshape(out, [1 if i in axes else n for i, n in enumerate(t.shape)]) if keepdims else out


def _plain_order(ord: Any) -> Any:
    return ord if ord is None or isinstance(ord, str) else float(ord)


def _plain_axis(axis: Any) -> tuple[int, ...] | None:
    return None if axis is None else tuple([int(i) for i in axis]) if isinstance(axis, (tuple, list)) else (int(axis),)


def norm(
    x: ArrayLike, ord: int | float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Array:
    """The norm of vectors or matrices; by default the square root of the sum of all squares.

    `axis` is one axis for vectors, two for matrices. Orders of vectors: any number, inf, -inf; of matrices: "fro",
    "nuc", 1, 2, inf and their negatives. The gradient at the origin is zero.

    >>> import atled.numpy as jnp
    >>> norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    return _norm(x, _plain_order(ord), _plain_axis(axis), bool(keepdims))


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: int | float | str | None = 2,
) -> Array:
    """The norm of x as a vector over any number of axes.

    >>> vector_norm(np.asarray([3.0, 4.0], "float32"))
    Array(5., dtype=float32)
    """
    return _norm(x, _plain_order(ord), _plain_axis(axis), bool(keepdims), True)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str | None = "fro") -> Array:
    """The norm of the matrices on the last two axes.

    >>> matrix_norm(np.asarray([[3.0, 0.0], [0.0, 4.0]], "float32"))
    Array(5., dtype=float32)
    """
    if operand_type("matrix_norm", x).ndim < 2:
        raise ValueError(f"matrix_norm: at least two axes are needed; got {type_of(x)}.")
    return _norm(x, _plain_order(ord), (-2, -1), bool(keepdims))


@library_function(static=("p",))
def _cond(x: Any, p: Any) -> Any:
    (a,), result_dtype = matrices("cond", x)
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
    return in_dtype(ew.select(is_lost, np.asarray(inf, type_of(out).dtype), out), dtypes.real_part(result_dtype))


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition number: the norm of a matrix times that of its inverse; infinite if it is singular.

    >>> cond(np.asarray([[4.0, 0.0], [0.0, 2.0]], "float32")).round()
    Array(2., dtype=float32)
    """
    return _cond(x, _plain_order(p))


@library_function(static=("hermitian",))
def _matrix_rank(x: Any, rtol: Any, tol: Any, hermitian: bool) -> Any:
    t = operand_type("matrix_rank", x)
    rank_dtype = dtypes.default("i")
    if t.ndim < 2:
        return conversion.convert(reduction.reduce_or(ew.ne(x, 0), tuple(range(t.ndim))), rank_dtype)
    (a,), full = matrices("matrix_rank", x, square=hermitian)
    s = hermitian_svd(a)[1] if hermitian else bind(ops.Svd(False, False), a)[0]
    last, real = t.ndim - 2, type_of(s).dtype
    if 0 in t.shape[-2:]:
        return shape.zeros(ArrayType(t.shape[:-2], rank_dtype))
    if tol is None:
        factor = float(dtypes.finfo(full).eps) * max(t.shape[-2:]) if rtol is None else rtol
        limit = ew.mul(reduction.reduce_max(s, (last,)), broadcast_to(cast(factor, real), t.shape[:-2]))
    else:
        limit = cast(tol, real)
    limit = broadcast_to(limit, t.shape[:-2])
    counts = ew.gt(s, shape.broadcast(limit, type_of(s).shape, tuple(range(last))))
    return reduction.reduce_sum(conversion.convert(counts, rank_dtype), (last,))


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
