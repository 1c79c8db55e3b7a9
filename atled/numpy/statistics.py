"""NumPy's statistics: quantiles, covariance and correlation.

Quantiles are computed from a sorted array, so they have derivatives with respect to the selected elements. Means and
spreads are in `reductions.py`, counts of values in `histograms.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axes
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.numpy.contractions import matmul
from atled.numpy.promotion import broadcast_to, cast, common_inexact, operand_type, promote_inexact
from atled.numpy.searching import count_before, fixed
from atled.numpy.special_values import isfinite, isnan
from atled.ops import conversion, cumulative, elementary, indexing, reduction, shape, sorting
from atled.ops import elementwise as ew
from atled.ops.placement import placed
from atled.staging.jit import library_function
from atled.staging.jit_signature import refuse_out

__all__ = ["corrcoef", "cov", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]


def elements_at(x: Any, positions: Any) -> Any:
    """Elements of a 1-d array at positions of any shape."""
    dims = type_of(positions).shape
    flat = indexing.take_along(x, shape.reshape(positions, (prod(dims),)), 0)
    return shape.reshape(flat, dims)


# -- quantiles --------------------------------------------------------------------------------------------------------

# Hyndman and Fan's continuous methods: the quantile q of n elements lies at position n q + a + q (1 - a - b) - 1
_CONTINUOUS = {
    "linear": (1.0, 1.0), "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
_DISCRETE = ("lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation")


def _place(method: str, q: Any, n: Any) -> tuple[Any, Any]:
    """The position of a quantile among n sorted elements, and the weight of the element after it (None: zero)."""
    if method in _CONTINUOUS:
        a, b = _CONTINUOUS[method]
        at = ew.mul(ew.add(n, 1 - a - b), q)
        at = at if a == 1 else ew.add(at, a - 1)
        low = elementary.floor(at)
        return low, ew.sub(at, low)
    one, half = np.asarray(1, type_of(q).dtype), np.asarray(0.5, type_of(q).dtype)
    if method == "inverted_cdf":
        return ew.sub(elementary.ceil(ew.mul(n, q)), 1), None
    if method == "averaged_inverted_cdf":
        at = ew.sub(ew.mul(n, q), 1)
        low = elementary.floor(at)
        return low, ew.select(ew.eq(at, low), half, one)
    if method == "closest_observation":
        at = ew.sub(ew.mul(n, q), 1.5)
        low = elementary.floor(at)
        is_odd = ew.ne(ew.mul(elementary.floor(ew.mul(low, 0.5)), 2), low)
        return ew.select(ew.logical_and(ew.eq(at, low), is_odd), low, ew.add(low, 1)), None
    at = ew.mul(ew.sub(n, 1), q)
    low = elementary.floor(at)
    if method == "midpoint":
        return low, ew.select(ew.eq(at, low), np.zeros((), type_of(q).dtype), half)
    return {"lower": low, "higher": elementary.ceil(at), "nearest": elementary.round_even(at)}[method], None


def _weighted_place(weights: Any, q: Any) -> Any:
    """The first position at which the cumulative share of the weights reaches each quantile."""
    last = type_of(weights).ndim - 1
    total = cumulative.cumsum(weights, last)
    whole = shape.index_in_axis(total, type_of(total).shape[last] - 1, last, keep=True)
    share = ew.div(total, broadcast_to(whole, type_of(total).shape))
    # leading elements with zero weight are never chosen
    return count_before(share, q, lambda s, v: ew.logical_or(ew.lt(s, v), ew.le(s, 0)))


@library_function(static=("name", "axis", "method", "keepdims", "skips_nan", "is_percent"))
def _quantile(
    a: Any, q: Any, weights: Any, name: str, axis: Any, method: str, keepdims: bool, skips_nan: bool, is_percent: bool
) -> Any:
    t, given = operand_type(name, a), operand_type(name, q)
    if t.kind == "c" or given.kind == "c":
        raise TypeError(f"{name}: complex numbers have no quantiles; got {t} and {given}.")
    dtype, _ = common_inexact([t, given])
    work = dtypes.float32 if dtypes.bits(dtype) < 32 else dtype
    axes = check_axes(name, axis, t.ndim)
    rows = reduction.merge_axes(cast(a, dtype), axes)
    *lead, n = type_of(rows).shape
    dims, last = (*lead, given.size), len(lead)
    share = shape.reshape(cast(q, work), (given.size,))
    share = shape.broadcast(ew.div(share, 100) if is_percent else share, dims, (last,))
    if n == 0:
        out = broadcast_to(np.asarray(np.nan, dtype), dims)
    else:
        weights = None if weights is None else _quantile_weights(name, weights, rows, t.shape, axes, work, skips_nan)
        ordered, *carried = sorting.sort((rows,) if weights is None else (rows, weights), last)
        out = conversion.convert(_read_quantiles(ordered, carried, share, method, skips_nan), dtype)
    result_dims = [1 if i in axes else d for i, d in enumerate(t.shape)] if keepdims else lead
    return shape.reshape(shape.move_axis(out, last, 0), (*given.shape, *result_dims))


def weighted(weight: Any, x: Any) -> Any:
    """weight * x, where zero times a non-finite number is zero."""
    is_lost = [ew.logical_and(ew.eq(a, 0), ew.logical_not(isfinite(b))) for a, b in ((weight, x), (x, weight))]
    is_kept, zero = ew.logical_not(ew.logical_or(*is_lost)), np.zeros((), type_of(x).dtype)
    return ew.mul(*[ew.select(is_kept, v, zero) for v in (weight, x)])


def _read_quantiles(ordered: Any, weights: Sequence[Any], q: Any, method: str, skips_nan: bool) -> Any:
    """Quantiles [*lead, m] of sorted rows [*lead, n], with NaN last."""
    last = type_of(ordered).ndim - 1
    n, dims, work = type_of(ordered).shape[last], type_of(q).shape, type_of(q).dtype
    is_nan = isnan(ordered)
    count: Any = np.asarray(n, work)
    if skips_nan:
        count = reduction.reduce_sum(conversion.convert(ew.logical_not(is_nan), work), (last,))
        count = shape.broadcast(count, dims, tuple(range(last)))
    low, weight = (_weighted_place(weights[0], q), None) if weights else _place(method, q, count)
    top = conversion.convert(ew.sub(count, 1), dtypes.int32) if skips_nan else np.asarray(n - 1, np.int32)
    spot = conversion.convert(low, dtypes.int32)
    inside = lambda i: ew.maximum(ew.minimum(i, top), 0)  # noqa: E731
    out = below = conversion.convert(indexing.take_along(ordered, inside(spot), last), work)
    if weight is not None:
        above = conversion.convert(indexing.take_along(ordered, inside(ew.add(spot, 1)), last), work)
        mixed = ew.add(weighted(ew.sub(1, weight), below), weighted(weight, above))
        is_same = ew.logical_and(ew.eq(below, above), elementary.is_finite(below))
        error = ew.select(is_same, ew.sub(below, mixed), np.zeros((), work))
        out = ew.add(mixed, fixed(error))  # exact value, with the derivative of the interpolation
    if skips_nan:
        return out
    worst = shape.broadcast(shape.index_in_axis(is_nan, n - 1, last), dims, tuple(range(last)))
    return ew.select(worst, np.asarray(np.nan, work), out)


def _quantile_weights(
    name: str, weights: Any, rows: Any, dims: tuple[int, ...], axes: tuple[int, ...], dtype: Any, skips_nan: bool
) -> Any:
    """Weights broadcast to the shape of the rows; if `skips_nan`, the weights of NaN are zero."""
    w = operand_type(name, weights)
    if w.shape != dims:
        if len(axes) != 1 or w.shape != (dims[axes[0]],):
            raise ValueError(f"{name}: weights {w} match neither shape {dims} nor its axis {axes}.")
        weights = shape.broadcast(weights, dims, axes)
    weights = reduction.merge_axes(cast(weights, dtype), axes)
    return ew.select(isnan(rows), np.zeros((), dtype), weights) if skips_nan else weights


def _quantile_function(name: str, skips_nan: bool, is_percent: bool, doc: str):
    def f(
        a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None,
        overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
        weights: ArrayLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> Array:  # fmt: skip
        refuse_out(name, out)
        if method not in _CONTINUOUS and method not in _DISCRETE:
            raise ValueError(f"{name}: the method is one of {(*_CONTINUOUS, *_DISCRETE)}; got {method!r}.")
        if weights is not None and method != "inverted_cdf":
            raise NotImplementedError(f"{name}: weights need the method 'inverted_cdf'; got {method!r}.")
        top = 100 if is_percent else 1
        is_number = isinstance(q, (int, float))
        if not (0 <= q <= top if is_number else not isinstance(q, np.ndarray) or bool(np.all((q >= 0) & (q <= top)))):
            raise ValueError(f"{name}: q must be between 0 and {top}.")
        axis = tuple(axis) if isinstance(axis, list) else axis
        quantiles = _quantile(a, q, weights, name, axis, method, bool(keepdims), skips_nan, is_percent)
        return placed(quantiles, out_sharding, name)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return f


quantile = _quantile_function(
    "quantile",
    False,
    False,
    """The values below which shares q of the elements over axes lie; NaN if any element is NaN.

    The axes of q come first in the result. Methods are those of NumPy; weights need 'inverted_cdf'.

    >>> import atled.numpy as jnp
    >>> quantile(jnp.arange(5.0), 0.3)
    Array(1.2, dtype=float32)
    """,
)
percentile = _quantile_function(
    "percentile",
    False,
    True,
    """Like `quantile`, with q in percent.

    >>> import atled.numpy as jnp
    >>> percentile(jnp.arange(5.0), jnp.array([25, 50]))
    Array([1., 2.], dtype=float32)
    """,
)
nanquantile = _quantile_function(
    "nanquantile",
    True,
    False,
    """Like `quantile`, ignoring NaN; NaN if all elements are NaN.

    >>> import atled.numpy as jnp
    >>> nanquantile(jnp.array([0.0, jnp.nan, 1.0, 2.0]), 0.25)
    Array(0.5, dtype=float32)
    """,
)
nanpercentile = _quantile_function(
    "nanpercentile",
    True,
    True,
    """Like `nanquantile`, with q in percent.

    >>> import atled.numpy as jnp
    >>> nanpercentile(jnp.array([0.0, jnp.nan, 1.0, 2.0]), 25)
    Array(0.5, dtype=float32)
    """,
)


def median(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median over axes: the middle element, or the mean of the two middle ones; NaN if any element is NaN.

    >>> import atled.numpy as jnp
    >>> median(jnp.array([3.0, 1.0, 2.0, 4.0]))
    Array(2.5, dtype=float32)
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    refuse_out("median", out)
    return _quantile(a, 0.5, None, "median", axis, "midpoint", bool(keepdims), False, False)


def nanmedian(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Like `median`, ignoring NaN; NaN if all elements are NaN.

    >>> import atled.numpy as jnp
    >>> nanmedian(jnp.array([3.0, jnp.nan, 1.0, 2.0]))
    Array(2., dtype=float32)
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    refuse_out("nanmedian", out)
    return _quantile(a, 0.5, None, "nanmedian", axis, "midpoint", bool(keepdims), True, False)


# -- covariance -------------------------------------------------------------------------------------------------------


def _variables(name: str, m: Any, rowvar: bool) -> Any:
    """Observations of variables as a matrix with one row for each variable."""
    t = operand_type(name, m)
    if t.ndim > 2:
        raise ValueError(f"{name}: at most two axes are allowed; got {t}.")
    if t.ndim < 2:
        return shape.reshape(m, (1, t.size))
    return m if rowvar else shape.transpose(m, (1, 0))


@library_function(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """The covariance matrix of variables, one for each row; observations can have frequencies and weights.

    >>> import atled.numpy as jnp
    >>> cov(jnp.array([1.0, 2.0, 4.0]))
    Array(2.3333333, dtype=float32)
    """
    parts = promote_inexact("cov", m) if y is None else promote_inexact("cov", m, y)
    x = shape.concatenate([_variables("cov", v, rowvar) for v in parts], 0)
    x = x if dtype is None else conversion.convert(x, dtypes.canonical(dtype))
    rows, n = type_of(x).shape
    real = dtypes.real_part(type_of(x).dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    total: Any = np.asarray(n, real)
    w = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            if operand_type("cov", given).shape != (n,):
                raise ValueError(
                    f"cov: {name} must have one element for each of {n} observations; got {type_of(given)}."
                )
            w = cast(given, real) if w is None else ew.mul(w, cast(given, real))
    if w is None:
        factor, scale = ew.sub(total, ddof), 1
        heavy = x
    else:
        total = reduction.reduce_sum(w, (0,))
        lost: Any = ddof
        if aweights is not None:
            lost = ew.mul(ew.div(reduction.reduce_sum(ew.mul(w, cast(aweights, real)), (0,)), total), ddof)
        factor, scale = ew.sub(total, lost), shape.broadcast(cast(w, type_of(x).dtype), (rows, n), (1,))
        heavy = ew.mul(x, scale)
    mean = ew.div(reduction.reduce_sum(heavy, (1,)), cast(total, type_of(x).dtype))
    off = ew.sub(x, shape.broadcast(mean, (rows, n), (0,)))
    other = conversion.conj(off) if type_of(x).kind == "c" else off
    out = matmul(off, shape.transpose(other if w is None else ew.mul(other, scale), (1, 0)))
    out = ew.div(out, cast(ew.maximum(factor, 0), type_of(x).dtype))
    return shape.reshape(out, ()) if rows == 1 else out


@library_function(static=("rowvar", "dtype"))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The correlation matrix of variables, one for each row: covariances divided by both standard deviations.

    >>> import atled.numpy as jnp
    >>> corrcoef(jnp.array([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar=rowvar, dtype=dtype)
    t = type_of(c)
    if t.ndim == 0:
        return ew.div(c, c)
    n = t.shape[0]
    flat = shape.slice_in_axis(shape.reshape(c, (n * n,)), 0, n * n, 0, n + 1)
    spread = elementary.sqrt(conversion.real(flat) if t.kind == "c" else flat)
    spread = cast(spread, t.dtype)
    out = ew.div(ew.div(c, shape.broadcast(spread, (n, n), (0,))), shape.broadcast(spread, (n, n), (1,)))
    clip = lambda v: ew.clamp(np.asarray(-1, type_of(v).dtype), v, np.asarray(1, type_of(v).dtype))  # noqa: E731
    return conversion.complex(clip(conversion.real(out)), clip(conversion.imag(out))) if t.kind == "c" else clip(out)
