"""NumPy's `interp`: values between the points of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.arithmetic import remainder
from atled.numpy.promotion import broadcast_to, cast, common_dtype, inexact_dtype, operand_type, promote_inexact
from atled.numpy.searching import search
from atled.numpy.statistics import elements_at, weighted
from atled.ops import elementary, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["interp"]


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
        a, b, f, g = (
            elements_at(grid, low),
            elements_at(grid, high),
            elements_at(values, low),
            elements_at(values, high),
        )
        is_step = ew.eq(a, b)
        gap = ew.select(is_step, np.ones((), type_of(a).dtype), ew.sub(b, a))
        share = cast(ew.div(ew.sub(points, a), gap), out)
        inner = ew.select(is_step, g, ew.add(f, weighted(share, ew.sub(g, f))))
    if period is not None:
        return inner
    for i, end, is_out, given in ((0, 0, ew.lt, left), (1, n - 1, ew.gt, right)):
        if not extrapolates[i]:
            value = shape.index_in_axis(values, end, 0) if given is None else cast(given, out)
            inner = ew.select(is_out(points, shape.index_in_axis(grid, end, 0)), value, inner)
    return inner


def _wrapped(points: Any, grid: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    """One period of samples, sorted by position, with one sample of the period before and one of the period after."""
    size = elementary.absolute(period)
    points, grid = remainder(points, size), remainder(grid, size)
    order = shape.iota(np.int32, type_of(grid).shape, 0)
    grid, order = sorting.sort((grid, order), 0)
    values = elements_at(values, order)
    n = type_of(grid).shape[0]
    first, last = (lambda v: shape.slice_in_axis(v, 0, 1, 0)), (lambda v: shape.slice_in_axis(v, n - 1, n, 0))
    grid = shape.concatenate([ew.sub(last(grid), size), grid, ew.add(first(grid), size)], 0)
    return points, grid, shape.concatenate([last(values), values, first(values)], 0)


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Piecewise linear interpolation at x through points (xp, fp), where xp is increasing.

    Outside of the range of xp, the values are `left` and `right`: by default the outermost values of fp; 'extrapolate'
    continues the line. With a period, `left` and `right` are ignored, and xp need not be sorted.

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
