"""NumPy's histograms: counts of values between edges."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.types import ArrayType
from atled.numpy.creation import asarray
from atled.numpy.differences import difference
from atled.numpy.promotion import cast, inexact_dtype, operand_type, promote_dtypes, promote_inexact
from atled.numpy.searching import concrete, search
from atled.numpy.splitting import unstack
from atled.ops import conversion, reduction, segments, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


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
        low, high = (op(x, tuple(range(t.ndim))) for op in (reduction.reduce_min, reduction.reduce_max))
    is_point = ew.eq(low, high)
    low, high = ew.select(is_point, ew.sub(low, 0.5), low), ew.select(is_point, ew.add(high, 0.5), high)
    step = shape.iota(t.dtype, (bins + 1,), 0)
    edges = ew.add(low, ew.mul(step, ew.div(ew.sub(high, low), bins)))
    return ew.select(ew.eq(step, bins), high, edges)


_edges = library_function(_even_edges, static=("bins",))


def _bins(name: str, a: Any, bins: Any, limits: Any, weights: Any = None) -> tuple[int | None, Any]:
    """The number of equally wide bins, or the edges of the bins; the other one is None."""
    if isinstance(bins, str):
        way_out = "a number of bins instead of the name of a rule."
        known = None if limits is None else (float(limits[0]), float(limits[1]))
        grid = np.histogram_bin_edges(concrete(name, a, way_out), bins, known, weights)
        return None, asarray(grid.astype(inexact_dtype(operand_type(name, a).dtype)))
    edges = asarray(bins) if isinstance(bins, (list, tuple, np.ndarray)) else bins
    if operand_type(name, edges).ndim == 0:
        return edges.__index__(), None
    if edges.ndim != 1:
        raise ValueError(f"{name}: bins must be an integer or a one-dimensional array of edges; got {type_of(edges)}.")
    return None, asarray(edges)


def _limits(limits: Any) -> Any:
    return None if limits is None else tuple(limits)


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: ArrayLike | Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
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
    """The count or weight in each cell of a grid of bins; the last bin of an axis includes its right edge."""
    grids, cells, is_inside, dims = [], None, None, []
    for x, given, ends, count in zip(columns, edges, limits, counts, strict=True):
        grid = given if count is None else _even_edges(x, count, ends)
        if dtypes.bits(type_of(x).dtype) < 8:
            x = conversion.convert(x, dtypes.int32)
        grid, x = promote_dtypes("histogram", grid, x)
        n = type_of(grid).shape[0] - 1
        bin_indices = ew.sub(search(grid, x, "right"), 1)
        last = shape.index_in_axis(grid, n, 0)
        bin_indices = ew.select(ew.eq(x, last), np.asarray(n - 1, type_of(bin_indices).dtype), bin_indices)
        inside = ew.logical_and(ew.ge(bin_indices, 0), ew.lt(bin_indices, n))
        cells = bin_indices if cells is None else ew.add(ew.mul(cells, n), bin_indices)
        is_inside = inside if is_inside is None else ew.logical_and(is_inside, inside)
        dims.append(n)
        grids.append(grid)
    total = prod(dims)
    cells = ew.select(is_inside, cells, np.asarray(total, type_of(cells).dtype))  # segment_sum drops these
    size = (type_of(cells).size,)
    mass = shape.full(ArrayType(size, dtypes.default("i")), 1) if weights is None else shape.reshape(weights, size)
    heights = shape.reshape(segments.segment_sum(mass, shape.reshape(cells, size), total), dims)
    if density:
        (heights,) = promote_inexact("histogram", heights)
        dtype = type_of(heights).dtype
        heights = ew.div(heights, reduction.reduce_sum(heights, tuple(range(len(dims)))))
        for i, grid in enumerate(grids):
            heights = ew.div(heights, shape.broadcast(cast(difference(grid, 0), dtype), dims, (i,)))
    return heights, grids


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: ArrayLike | Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
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
) -> tuple[Array, Sequence[Array]]:
    """How many points fall into each cell of a grid of bins, and the edges along each axis.

    The sample has one row for each point, or is a list with the coordinates of all points for each axis.

    >>> import atled.numpy as jnp
    >>> points = jnp.array([[0.1, 0.1, 0.9], [0.2, 0.3, 0.8]])  # two points in three dimensions
    >>> counts, edges = histogramdd(points, bins=2, range=3 * ((0, 1),))
    >>> counts.shape, counts[0, 0, 1], edges[0]
    ((2, 2, 2), Array(2., dtype=float32), Array([0. , 0.5, 1. ], dtype=float32))
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
    specs = [_bins("histogramdd", x, b, e) for x, b, e in zip(columns, each, ends, strict=True)]
    counts = tuple([count for count, _ in specs])
    limits = [_limits(e) for e in ends]
    heights, grids = _histogram(columns, [edges for _, edges in specs], limits, weights, counts, bool(density))
    return (heights if weights is not None or density else asarray(heights, dtypes.default("f"))), grids


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points (x, y) fall into each cell of a grid of bins, and the edges along both axes.

    >>> import atled.numpy as jnp
    >>> x, y = jnp.array([0.1, 0.2, 0.9]), jnp.array([0.1, 0.8, 0.9])
    >>> counts, edges_of_x, edges_of_y = histogram2d(x, y, bins=2, range=((0, 1), (0, 1)))
    >>> counts
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    if isinstance(bins, (list, tuple)):
        bins = bins if len(bins) == 2 else [asarray(bins)] * 2
    elif operand_type("histogram2d", bins).size > 2:  # edges, which both axes share
        bins = [bins, bins]
    heights, (first, second) = histogramdd([x, y], bins, range, weights, density)
    return heights, first, second
