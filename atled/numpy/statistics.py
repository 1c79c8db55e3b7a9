"""NumPy's statistics and its functions of sampled signals.

Quantiles, covariance and histograms; differences, interpolation and convolution; comparisons of whole arrays. Quantiles
are read off a sorted array, so they have derivatives by the elements that they are made of.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.contractions import matmul
from atled.numpy.creation import asarray
from atled.numpy.elementwise import isfinite, isnan
from atled.numpy.promotion import (
    broadcast_to,
    cast,
    common_dtype,
    common_inexact,
    inexact_dtype,
    operand_type,
    promote_dtypes,
    promote_inexact,
)
from atled.numpy.shapes import unstack
from atled.numpy.sorting import concrete, count_before, fixed, search
from atled.ops import (
    contraction,
    conversion,
    convolution,
    cumulative,
    elementary,
    indexing,
    reduction,
    segments,
    shape,
    sorting,
)  # fmt: skip
from atled.ops import elementwise as ew
from atled.ops.placing import placed
from atled.staging.jit import library_function, refuse_out

__all__ = [
    "convolve", "corrcoef", "correlate", "cov", "diff", "ediff1d", "gradient",
    "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "interp", "median", "nanmedian", "nanpercentile",
    "nanquantile", "percentile", "quantile", "trapezoid", "unwrap",
]  # fmt: skip

_range = range  # a parameter of the histograms has this name


def _at(x: Any, positions: Any) -> Any:
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
    """Where quantiles lie among n sorted elements: a whole position, and the weight of the next one (None: zero)."""
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
    # elements without weight in front are never chosen
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
    kept = [1 if i in axes else d for i, d in enumerate(t.shape)] if keepdims else lead
    return shape.reshape(shape.move_axis(out, last, 0), (*given.shape, *kept))


def _weighted(weight: Any, x: Any) -> Any:
    """weight * x, where zero times what is not finite is zero."""
    is_lost = [ew.logical_and(ew.eq(a, 0), ew.logical_not(isfinite(b))) for a, b in ((weight, x), (x, weight))]
    is_kept, zero = ew.logical_not(ew.logical_or(*is_lost)), np.zeros((), type_of(x).dtype)
    return ew.mul(*[ew.select(is_kept, v, zero) for v in (weight, x)])


def _read_quantiles(ordered: Any, weights: Sequence[Any], q: Any, method: str, skips_nan: bool) -> Any:
    """Quantiles [*lead, m] of rows [*lead, n] that are sorted, which puts NaN last."""
    last = type_of(ordered).ndim - 1
    n, dims, work = type_of(ordered).shape[last], type_of(q).shape, type_of(q).dtype
    is_nan = isnan(ordered)
    count: Any = np.asarray(n, work)
    if skips_nan:
        count = reduction.reduce_sum(conversion.convert(ew.logical_not(is_nan), work), (last,))
        count = shape.broadcast(count, dims, tuple(_range(last)))
    low, weight = (_weighted_place(weights[0], q), None) if weights else _place(method, q, count)
    top = conversion.convert(ew.sub(count, 1), dtypes.int32) if skips_nan else np.asarray(n - 1, np.int32)
    spot = conversion.convert(low, dtypes.int32)
    inside = lambda i: ew.maximum(ew.minimum(i, top), 0)  # noqa: E731
    out = below = conversion.convert(indexing.take_along(ordered, inside(spot), last), work)
    if weight is not None:
        above = conversion.convert(indexing.take_along(ordered, inside(ew.add(spot, 1)), last), work)
        mixed = ew.add(_weighted(ew.sub(1, weight), below), _weighted(weight, above))
        is_same = ew.logical_and(ew.eq(below, above), elementary.is_finite(below))
        error = ew.select(is_same, ew.sub(below, mixed), np.zeros((), work))
        out = ew.add(mixed, fixed(error))  # exact, with the derivative of the mixture
    if skips_nan:
        return out
    worst = shape.broadcast(shape.index_in_axis(is_nan, n - 1, last), dims, tuple(_range(last)))
    return ew.select(worst, np.asarray(np.nan, work), out)


def _quantile_weights(
    name: str, weights: Any, rows: Any, dims: tuple[int, ...], axes: tuple[int, ...], dtype: Any, skips_nan: bool
) -> Any:
    """Weights in the shape of the rows; those of NaN are zero if they are to be skipped."""
    w = operand_type(name, weights)
    if w.shape != dims:
        if len(axes) != 1 or w.shape != (dims[axes[0]],):
            raise ValueError(f"{name}: weights {w} fit neither shape {dims} nor its axis {axes}.")
        weights = shape.broadcast(weights, dims, axes)
    weights = reduction.merge_axes(cast(weights, dtype), axes)
    return ew.select(isnan(rows), np.zeros((), dtype), weights) if skips_nan else weights


def _quantile_function(name: str, skips_nan: bool, is_percent: bool, doc: str):
    def f(
        a: ArrayLike, q: ArrayLike, axis: Any = None, out: None = None, overwrite_input: bool = False,
        method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None, out_sharding: Any = None,
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
        found = _quantile(a, q, weights, name, axis, method, bool(keepdims), skips_nan, is_percent)
        return placed(found, out_sharding, name)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return f


quantile = _quantile_function(
    "quantile",
    False,
    False,
    """The values below which given shares of the elements over axes lie; NaN if there is one.

    The axes of q come first in the result. Methods are those of NumPy; weights go with 'inverted_cdf'.

    >>> import atled.numpy as jnp
    >>> quantile(jnp.arange(5.0), 0.3)
    Array(1.2, dtype=float32)
    """,
)
percentile = _quantile_function("percentile", False, True, "As `quantile`, with shares in percent.")
nanquantile = _quantile_function("nanquantile", True, False, "As `quantile`, leaving NaN out; NaN if nothing is left.")
nanpercentile = _quantile_function("nanpercentile", True, True, "As `nanquantile`, with shares in percent.")


def median(
    a: ArrayLike, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The middle element over axes, or the mean of the two middle ones; NaN if there is one.

    >>> import atled.numpy as jnp
    >>> median(jnp.array([3.0, 1.0, 2.0, 4.0]))
    Array(2.5, dtype=float32)
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    refuse_out("median", out)
    return _quantile(a, 0.5, None, "median", axis, "midpoint", bool(keepdims), False, False)


def nanmedian(
    a: ArrayLike, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """As `median`, leaving NaN out; NaN if nothing is left."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    refuse_out("nanmedian", out)
    return _quantile(a, 0.5, None, "nanmedian", axis, "midpoint", bool(keepdims), True, False)


# -- covariance -------------------------------------------------------------------------------------------------------


def _variables(name: str, m: Any, rowvar: bool) -> Any:
    """Observations of variables as a matrix with one row for each variable."""
    t = operand_type(name, m)
    if t.ndim > 2:
        raise ValueError(f"{name}: at most two axes are possible; got {t}.")
    if t.ndim < 2:
        return shape.reshape(m, (1, t.size))
    return m if rowvar else shape.transpose(m, (1, 0))


@library_function(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
    ddof: int | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, dtype: Any = None,
) -> Array:  # fmt: skip
    """The covariance of variables, one for each row; observations can have frequencies and weights.

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
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: Any = None) -> Array:
    """The correlation of variables, one for each row: covariances over the standard deviations."""
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


# -- histograms -------------------------------------------------------------------------------------------------------


def _even_edges(a: Any, bins: int, limits: Any) -> Any:
    """Edges of equally wide bins between limits, or from the smallest to the largest element."""
    (x,) = promote_inexact("histogram", a)
    t = type_of(x)
    if bins < 1:
        raise ValueError(f"histogram: at least one bin is needed; got {bins}.")
    if limits is not None:
        low, high = (cast(v, t.dtype) for v in limits)
    elif t.size == 0:
        low, high = np.asarray(0, t.dtype), np.asarray(1, t.dtype)
    else:
        low, high = (op(x, tuple(_range(t.ndim))) for op in (reduction.reduce_min, reduction.reduce_max))
    is_point = ew.eq(low, high)
    low, high = ew.select(is_point, ew.sub(low, 0.5), low), ew.select(is_point, ew.add(high, 0.5), high)
    step = shape.iota(t.dtype, (bins + 1,), 0)
    edges = ew.add(low, ew.mul(step, ew.div(ew.sub(high, low), bins)))
    return ew.select(ew.eq(step, bins), high, edges)


_edges = library_function(_even_edges, static=("bins",))


def _bins(name: str, a: Any, bins: Any, limits: Any, weights: Any = None) -> tuple[int | None, Any]:
    """What bins were asked for: a number of them, or their edges."""
    if isinstance(bins, str):
        way_out = "a number of bins instead of the name of a rule."
        known = None if limits is None else (float(limits[0]), float(limits[1]))
        found = np.histogram_bin_edges(concrete(name, a, way_out), bins, known, weights)
        return None, asarray(found.astype(inexact_dtype(operand_type(name, a).dtype)))
    edges = asarray(bins) if isinstance(bins, (list, tuple, np.ndarray)) else bins
    if operand_type(name, edges).ndim == 0:
        return edges.__index__(), None
    if edges.ndim != 1:
        raise ValueError(f"{name}: bins are a number, or edges on one axis; got {type_of(edges)}.")
    return None, asarray(edges)


def _limits(limits: Any) -> Any:
    return None if limits is None else tuple(limits)


def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Any = None, weights: ArrayLike | None = None
) -> Array:
    """The edges of the bins of a histogram: equally wide ones, or those given.

    >>> import atled.numpy as jnp
    >>> histogram_bin_edges(jnp.array([0.0, 4.0]), bins=4)
    Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    operand_type("histogram_bin_edges", a)
    count, edges = _bins("histogram_bin_edges", a, bins, range, weights)
    return edges if count is None else _edges(a, count, _limits(range))


@library_function(static=("counts", "density"))
def _histogram(
    columns: list[Any], edges: list[Any], limits: list[Any], weights: Any, counts: tuple[Any, ...], density: bool
) -> Any:
    """Elements in each cell of a grid of bins; the last bin of an axis owns its right edge."""
    grids, cells, is_inside, dims = [], None, None, []
    for x, given, ends, count in zip(columns, edges, limits, counts, strict=True):
        grid = given if count is None else _even_edges(x, count, ends)
        grid, x = promote_dtypes("histogram", grid, x)
        n = type_of(grid).shape[0] - 1
        found = ew.sub(search(grid, x, "right"), 1)
        last = shape.index_in_axis(grid, n, 0)
        found = ew.select(ew.eq(x, last), np.asarray(n - 1, type_of(found).dtype), found)
        inside = ew.logical_and(ew.ge(found, 0), ew.lt(found, n))
        cells = found if cells is None else ew.add(ew.mul(cells, n), found)
        is_inside = inside if is_inside is None else ew.logical_and(is_inside, inside)
        dims.append(n)
        grids.append(grid)
    total = prod(dims)
    cells = ew.select(is_inside, cells, np.asarray(total, type_of(cells).dtype))  # out of range, so left out
    size = (type_of(cells).size,)
    mass = shape.full(ArrayType(size, dtypes.default("i")), 1) if weights is None else shape.reshape(weights, size)
    heights = shape.reshape(segments.segment_sum(mass, shape.reshape(cells, size), total), dims)
    if density:
        (heights,) = promote_inexact("histogram", heights)
        dtype = type_of(heights).dtype
        heights = ew.div(heights, reduction.reduce_sum(heights, tuple(_range(len(dims)))))
        for i, grid in enumerate(grids):
            heights = ew.div(heights, shape.broadcast(cast(_difference(grid, 0), dtype), dims, (i,)))
    return heights, grids


def histogram(
    a: ArrayLike, bins: ArrayLike = 10, range: Any = None, weights: ArrayLike | None = None, density: bool | None = None
) -> tuple[Array, Array]:
    """How many elements, or how much weight, fall into each bin, and the edges of the bins.

    With `density` the sum of heights times widths is one.

    >>> import atled.numpy as jnp
    >>> histogram(jnp.array([0.0, 1.0, 2.0]), bins=2)
    (Array([1, 2], dtype=int32), Array([0., 1., 2.], dtype=float32))
    """
    t = operand_type("histogram", a)
    if weights is not None and operand_type("histogram", weights).shape != t.shape:
        raise ValueError(f"histogram: one weight is needed for each element of {t}; got {type_of(weights)}.")
    count, edges = _bins("histogram", a, bins, range, weights)
    heights, (grid,) = _histogram([a], [edges], [_limits(range)], weights, (count,), bool(density))
    return heights, grid


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None, density: bool | None = None
) -> tuple[Any, Any]:
    """How many points fall into each cell of a grid of bins, and the edges along each axis.

    The sample has one row for each point, or is a list with the coordinates of all points for each axis.
    """
    if isinstance(sample, (list, tuple)):
        columns = [asarray(x) for x in sample]
    else:
        t = operand_type("histogramdd", sample)
        if t.ndim != 2:
            raise ValueError(f"histogramdd: the sample must have one row for each point; got {t}.")
        columns = list(unstack(sample, axis=1))
    is_listed = isinstance(bins, (list, tuple)) or operand_type("histogramdd", bins).ndim > 0
    each = list(bins) if is_listed else [bins] * len(columns)
    ends = [None] * len(columns) if range is None else list(range)
    if len(each) != len(columns) or len(ends) != len(columns):
        got = f"{len(each)} and {len(ends)}"
        raise ValueError(f"histogramdd: bins and ranges are needed for {len(columns)} axes; got {got}.")
    found = [_bins("histogramdd", x, b, e) for x, b, e in zip(columns, each, ends, strict=True)]
    counts = tuple([count for count, _ in found])
    limits = [_limits(e) for e in ends]
    heights, grids = _histogram(columns, [edges for _, edges in found], limits, weights, counts, bool(density))
    return (heights if weights is not None or density else asarray(heights, dtypes.default("f"))), grids


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points (x, y) fall into each cell of a grid of bins, and the edges along both axes."""
    if isinstance(bins, (list, tuple)):
        bins = bins if len(bins) == 2 else [asarray(bins)] * 2
    elif operand_type("histogram2d", bins).size > 2:  # the edges of both axes
        bins = [bins, bins]
    heights, (first, second) = histogramdd([x, y], bins, range, weights, density)
    return heights, first, second


# -- differences ------------------------------------------------------------------------------------------------------


def _difference(x: Any, axis: int) -> Any:
    """Each element minus the one before; for bools, whether they differ."""
    n = type_of(x).shape[axis]
    late, early = shape.slice_in_axis(x, min(1, n), n, axis), shape.slice_in_axis(x, 0, max(n - 1, 0), axis)
    return ew.logical_xor(late, early) if type_of(x).kind == "b" else ew.sub(late, early)


@library_function(static=("n", "axis"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """Differences of neighbours along an axis, taken n times; values can be put before and after first.

    >>> import atled.numpy as jnp
    >>> diff(jnp.array([1.0, 4.0, 9.0]))
    Array([3., 5.], dtype=float32)
    """
    t = operand_type("diff", a)
    if n < 0:
        raise ValueError(f"diff: differences are taken 0 times or more; got n={n}.")
    if t.ndim == 0:
        raise ValueError("diff: a 0-d array has no neighbours.")
    at = check_axis("diff", axis, t.ndim)
    if n == 0:
        return a  # pyright: ignore[reportReturnType]
    given = [v for v in (prepend, a, append) if v is not None]
    middle = 0 if prepend is None else 1
    parts = promote_dtypes("diff", *given)
    edge = tuple([1 if i == at else d for i, d in enumerate(t.shape)])
    parts = [broadcast_to(p, edge) if i != middle and type_of(p).ndim == 0 else p for i, p in enumerate(parts)]
    out = shape.concatenate(parts, at)
    for _ in _range(n):
        out = _difference(out, at)
    return out


@library_function
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Differences of neighbours in the flat array, with values put before and after them."""
    t = operand_type("ediff1d", ary)
    if t.kind == "b":
        raise TypeError(f"ediff1d: bools have no difference; got {t}.\n  try: diff(x), which says where they change.")
    parts = [_difference(shape.reshape(ary, (t.size,)), 0)]
    for value, at in ((to_begin, 0), (to_end, 2)):
        if value is not None:
            size = (operand_type("ediff1d", value).size,)
            parts.insert(at, shape.reshape(cast(value, t.dtype), size))
    return shape.concatenate(parts, 0)


def _steps(spacing: Any, n: int) -> Any:
    """The distances of n neighbours, from one distance or from coordinates."""
    if type_of(spacing).ndim == 0:
        return shape.broadcast(spacing, (n - 1,), ())
    if type_of(spacing).shape == (n,):
        return _difference(spacing, 0)
    raise ValueError(f"gradient: a spacing is a number or has {n} coordinates; got {type_of(spacing)}.")


def _slope_inside(p: Any, q: Any) -> list[Any]:
    """Weights of three elements for the slope at the middle one, at distances p before and q after it."""
    both = ew.add(p, q)
    return [
        ew.neg(ew.div(q, ew.mul(p, both))),
        ew.div(ew.sub(q, p), ew.mul(p, q)),
        ew.div(p, ew.mul(q, both)),
    ]


def _slope_at_start(p: Any, q: Any) -> list[Any]:
    """Weights of three elements for the slope at the first one, at distances p and q: that of a parabola."""
    both = ew.add(p, q)
    return [
        ew.neg(ew.div(ew.add(p, both), ew.mul(p, both))),
        ew.div(both, ew.mul(p, q)),
        ew.neg(ew.div(p, ew.mul(q, both))),
    ]


def _slope(f: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """The derivative along an axis: inside from both neighbours, at the edges from two or three elements."""
    t = type_of(f)
    n = t.shape[axis]
    if n < edge_order + 1:
        raise ValueError(f"gradient: {edge_order + 1} elements are needed along axis {axis}; got {t}.")
    steps = _steps(spacing, n)

    def combined(weights: Sequence[Any], start: int, count: int) -> Any:
        """`count` weighted sums of neighbours, the first of which begins at `start`."""
        dims = [count if i == axis else d for i, d in enumerate(t.shape)]
        terms = [
            ew.mul(shape.broadcast(w, dims, (axis,)), shape.slice_in_axis(f, start + k, start + k + count, axis))
            for k, w in enumerate(weights)
        ]
        return functools.reduce(ew.add, terms)

    def pair(start: int, stop: int) -> tuple[Any, Any]:
        return shape.slice_in_axis(steps, start, stop, 0), shape.slice_in_axis(steps, start + 1, stop + 1, 0)

    if edge_order == 1:
        one = np.ones((), t.dtype)
        first, last = (ew.div(one, shape.slice_in_axis(steps, i, i + 1, 0)) for i in (0, n - 2))
        edges = [combined([ew.neg(first), first], 0, 1), combined([ew.neg(last), last], n - 2, 1)]
    else:
        back = [ew.neg(w) for w in reversed(_slope_at_start(*reversed(pair(n - 3, n - 2))))]
        edges = [combined(_slope_at_start(*pair(0, 1)), 0, 1), combined(back, n - 3, 1)]
    inside = [combined(_slope_inside(*pair(0, n - 2)), 0, n - 2)] if n > 2 else []
    return shape.concatenate([edges[0], *inside, edges[1]], axis)


@library_function(static=("axis", "edge_order"))
def _gradient(f: Any, spacings: tuple[Any, ...], axis: Any, edge_order: int | None) -> Any:
    axes = check_axes("gradient", axis, operand_type("gradient", f).ndim)
    if edge_order not in (None, 1, 2):
        raise ValueError(f"gradient: the edge order is 1 or 2; got {edge_order!r}.")
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings or (1.0,) * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: one spacing, or one for each of {len(axes)} axes, is needed; got {len(spacings)}.")
    x, *steps = promote_inexact("gradient", f, *spacings)
    out = [_slope(x, h, a, edge_order or 1) for h, a in zip(steps, axes, strict=True)]
    return out[0] if len(axes) == 1 else out


def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Any = None, edge_order: int | None = None) -> Any:
    """The derivative of samples along each axis by central differences; one array for one axis, else a list.

    Spacings are numbers, or coordinates, for all axes or for each. At the edges, differences are one-sided.

    >>> import atled.numpy as jnp
    >>> gradient(jnp.array([1.0, 4.0, 9.0]))
    Array([3., 4., 5.], dtype=float32)
    """
    steps = tuple([v if isinstance(v, (int, float, complex)) else asarray(v) for v in varargs]) if varargs else ()
    return _gradient(f, steps, axis, edge_order)


@library_function(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of samples along an axis, taking them to be joined by straight lines.

    >>> import atled.numpy as jnp
    >>> trapezoid(jnp.array([0.0, 1.0, 4.0]))
    Array(3., dtype=float32)
    """
    y, step = promote_inexact("trapezoid", y, dx if x is None else x)
    t = type_of(y)
    at = check_axis("trapezoid", axis, t.ndim)
    n = t.shape[at]
    pairs = ew.add(*[shape.slice_in_axis(y, i, max(n - 1 + i, i), at) for i in (0, min(1, n))]) if n else y
    dims = type_of(pairs).shape
    if x is not None:
        s = type_of(step)
        step = _difference(step, 0 if s.ndim == 1 else at - t.ndim + s.ndim)
        step = shape.broadcast(step, dims, (at,)) if s.ndim == 1 else broadcast_to(step, dims)
    elif type_of(step).ndim:
        step = broadcast_to(step, dims)
    return reduction.reduce_sum(ew.mul(ew.mul(pairs, np.asarray(0.5, t.dtype)), step), (at,))


@library_function(static=("axis",))
def _unwrap(p: Any, discont: Any, period: Any, axis: int) -> Any:
    x, whole = promote_dtypes("unwrap", p, period)
    t = type_of(x)
    at = check_axis("unwrap", axis, t.ndim)
    jumps = _difference(fixed(x), at)
    half = ew.div(whole, np.asarray(2, t.dtype))
    low = ew.neg(half)
    bent = ew.add(remainder(ew.sub(jumps, low), whole), low)
    is_edge = ew.logical_and(ew.eq(bent, low), ew.gt(jumps, 0))
    if t.kind in "iu":  # with an odd period, half of it is never met
        is_edge = ew.logical_and(is_edge, ew.eq(ew.mul(half, 2), whole))
    bent = ew.select(is_edge, half, bent)
    least = half if discont is None else cast(discont, t.dtype)
    small = ew.lt(elementary.absolute(jumps), least)
    fixes = ew.select(small, np.zeros((), t.dtype), ew.sub(bent, jumps))
    shifts = shape.pad(cumulative.cumsum(fixed(fixes), at), 0, [(int(i == at), 0, 0) for i in _range(t.ndim)])
    return ew.add(x, shifts) if t.shape[at] else x


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi) -> Array:
    """Angles with jumps of more than half a period along an axis taken out by adding whole periods.

    >>> import atled.numpy as jnp
    >>> unwrap(jnp.array([0.0, 3.0, 7.0]), period=4)
    Array([ 0., -1., -1.], dtype=float32)
    """
    return _unwrap(p, discont, period, axis)


# -- interpolation and convolution ------------------------------------------------------------------------------------


@library_function(static=("extrapolates",))
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, extrapolates: tuple[bool, bool]) -> Any:
    types = [operand_type("interp", v) for v in (x, xp, fp)]
    if types[1].ndim != 1 or types[1].shape != types[2].shape or not types[1].size:
        raise ValueError(f"interp: xp and fp must have one axis of the same length; got {types[1]} and {types[2]}.")
    points, grid = promote_inexact("interp", x, xp)
    (values,) = promote_inexact("interp", fp)
    out = inexact_dtype(common_dtype([type_of(grid), type_of(values)])[0])
    values = cast(values, out)
    if period is not None:
        points, grid, values = _wrapped(points, grid, values, cast(period, type_of(grid).dtype))
    n = type_of(grid).shape[0]
    if n == 1:
        inner = broadcast_to(values, type_of(points).shape) if type_of(points).ndim else shape.reshape(values, ())
    else:
        high = ew.maximum(ew.minimum(search(grid, points, "right"), n - 1), 1)
        low = ew.sub(high, 1)
        a, b, f, g = _at(grid, low), _at(grid, high), _at(values, low), _at(values, high)
        is_step = ew.eq(a, b)
        gap = ew.select(is_step, np.ones((), type_of(a).dtype), ew.sub(b, a))
        share = cast(ew.div(ew.sub(points, a), gap), out)
        inner = ew.select(is_step, g, ew.add(f, _weighted(share, ew.sub(g, f))))
    if period is not None:
        return inner
    for i, end, is_out, given in ((0, 0, ew.lt, left), (1, n - 1, ew.gt, right)):
        if not extrapolates[i]:
            value = shape.index_in_axis(values, end, 0) if given is None else cast(given, out)
            inner = ew.select(is_out(points, shape.index_in_axis(grid, end, 0)), value, inner)
    return inner


def _wrapped(points: Any, grid: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    """One period of a periodic function in order, with a neighbour from the periods before and after."""
    size = elementary.absolute(period)
    points, grid = remainder(points, size), remainder(grid, size)
    order = shape.iota(np.int32, type_of(grid).shape, 0)
    grid, order = sorting.sort((grid, order), 0)
    values = _at(values, order)
    n = type_of(grid).shape[0]
    first, last = (lambda v: shape.slice_in_axis(v, 0, 1, 0)), (lambda v: shape.slice_in_axis(v, n - 1, n, 0))
    grid = shape.concatenate([ew.sub(last(grid), size), grid, ew.add(first(grid), size)], 0)
    return points, grid, shape.concatenate([last(values), values, first(values)], 0)


def interp(
    x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: Any = None, right: Any = None, period: ArrayLike | None = None
) -> Array:
    """The values at x of the straight lines through points (xp, fp), where xp goes up.

    Outside they are `left` and `right`: by default the outermost values, and 'extrapolate' goes straight on. With a
    period neither matters, and xp needs no order.

    >>> import atled.numpy as jnp
    >>> interp(1.5, jnp.arange(3.0), jnp.array([0.0, 10.0, 40.0]))
    Array(25., dtype=float32)
    """
    for value in (left, right):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"interp: left and right are numbers or 'extrapolate'; got {value!r}.")
    ends = (isinstance(left, str), isinstance(right, str))
    left, right = (None if isinstance(v, str) else v for v in (left, right))
    return _interp(x, xp, fp, left, right, period, ends)


def _slide(x: Any, kernel: Any, mode: str, precision: Any) -> Any:
    """Sums of x times a kernel, which is not longer, at every place that a mode asks for."""
    n, m = (type_of(v).shape[0] for v in (x, kernel))
    padding = {"full": (m - 1, m - 1), "same": (m // 2, m - 1 - m // 2), "valid": (0, 0)}[mode]
    axes = convolution.ConvAxes((0, 1, 2), (0, 1, 2), (0, 1, 2))
    op = convolution.Convolution(axes, (1,), (padding,), (1,), (1,), precision=contraction.precision_name(precision))
    out = bind(op, shape.reshape(x, (1, 1, n)), shape.reshape(kernel, (1, 1, m)))
    return shape.reshape(out, (type_of(out).shape[2],))


def _sliding_operands(name: str, a: Any, v: Any, mode: str) -> list[Any]:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: the mode is 'full', 'same' or 'valid'; got {mode!r}.")
    types = [operand_type(name, x) for x in (a, v)]
    if any(t.ndim != 1 or not t.size for t in types):
        raise ValueError(f"{name}: operands must have one axis that is not empty; got {types[0]} and {types[1]}.")
    x, y = promote_dtypes(name, a, v)
    if type_of(x).kind == "b":
        x, y = (conversion.convert(w, dtypes.default("i")) for w in (x, y))
    return [x, y]


_STATIC = ("mode", "precision", "preferred_element_type")


@library_function(static=_STATIC)
def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """The convolution of two 1-d arrays: all of it, or as much as the longer one is long, or where they overlap fully.

    >>> import atled.numpy as jnp
    >>> convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    x, y = _sliding_operands("convolve", a, v, mode)
    if type_of(x).size < type_of(y).size:
        x, y = y, x
    out = _slide(x, shape.reverse(y, (0,)), mode, precision)
    return out if preferred_element_type is None else conversion.convert(out, preferred_element_type)


@library_function(static=_STATIC)
def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """The cross-correlation of two 1-d arrays, of which the second is conjugated; modes as in `convolve`."""
    x, y = _sliding_operands("correlate", a, v, mode)
    y = conversion.conj(y) if type_of(y).kind == "c" else y
    if type_of(x).size < type_of(y).size:
        out = shape.reverse(_slide(y, x, mode, precision), (0,))
    else:
        out = _slide(x, y, mode, precision)
    return out if preferred_element_type is None else conversion.convert(out, preferred_element_type)
