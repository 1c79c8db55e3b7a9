"""Differences of neighbours, and functions built on them: NumPy's `diff`, `gradient`, `trapezoid` and `unwrap`."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_to, cast, operand_type, promote_dtypes, promote_inexact
from atled.numpy.searching import fixed
from atled.numpy.special_values import isfinite
from atled.ops import cumulative, elementary, reduction, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["diff", "ediff1d", "gradient", "trapezoid", "unwrap"]


def difference(x: Any, axis: int) -> Any:
    """Each element minus the previous one; for bools, whether they differ."""
    n = type_of(x).shape[axis]
    late, early = shape.slice_in_axis(x, min(1, n), n, axis), shape.slice_in_axis(x, 0, max(n - 1, 0), axis)
    return ew.logical_xor(late, early) if type_of(x).kind == "b" else ew.sub(late, early)


@library_function(static=("n", "axis"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """The n-th differences of neighbours along an axis, of the array with `prepend` and `append` at its ends.

    >>> import atled.numpy as jnp
    >>> diff(jnp.array([1.0, 4.0, 9.0]))
    Array([3., 5.], dtype=float32)
    """
    t = operand_type("diff", a)
    if n < 0:
        raise ValueError(f"diff: n must not be negative; got n={n}.")
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
    for _ in range(n):
        out = difference(out, at)
    return out


@library_function
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Differences of neighbours in the flattened array, between the values `to_begin` and `to_end`.

    >>> import atled.numpy as jnp
    >>> ediff1d(jnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    t = operand_type("ediff1d", ary)
    if t.kind == "b":
        raise TypeError(f"ediff1d: bools cannot be subtracted; got {t}.\n  try: diff(x), True where they change.")
    parts = [difference(shape.reshape(ary, (t.size,)), 0)]
    for value, at in ((to_begin, 0), (to_end, 2)):
        if value is not None:
            size = (operand_type("ediff1d", value).size,)
            parts.insert(at, shape.reshape(cast(value, t.dtype), size))
    return shape.concatenate(parts, 0)


def _steps(spacing: Any, n: int) -> Any:
    """The n - 1 spacings between n samples, from one spacing or from n coordinates."""
    if type_of(spacing).ndim == 0:
        return shape.broadcast(spacing, (n - 1,), ())
    if type_of(spacing).shape == (n,):
        return difference(spacing, 0)
    raise ValueError(f"gradient: a spacing is a number or has {n} coordinates; got {type_of(spacing)}.")


def _slope_inside(p: Any, q: Any) -> list[Any]:
    """Finite-difference weights for the slope at the middle of three elements with spacings p and q."""
    both = ew.add(p, q)
    return [
        ew.neg(ew.div(q, ew.mul(p, both))),
        ew.div(ew.sub(q, p), ew.mul(p, q)),
        ew.div(p, ew.mul(q, both)),
    ]


def _slope_at_start(p: Any, q: Any) -> list[Any]:
    """Finite-difference weights for the slope at the first of three elements with spacings p and q."""
    both = ew.add(p, q)
    return [
        ew.neg(ew.div(ew.add(p, both), ew.mul(p, both))),
        ew.div(both, ew.mul(p, q)),
        ew.neg(ew.div(p, ew.mul(q, both))),
    ]


def _slope(f: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """The derivative along an axis: central differences inside, one-sided ones at the edges."""
    t = type_of(f)
    n = t.shape[axis]
    if n < edge_order + 1:
        raise ValueError(f"gradient: {edge_order + 1} elements are needed along axis {axis}; got {t}.")
    steps = _steps(spacing, n)

    def combined(weights: Sequence[Any], start: int, count: int) -> Any:
        """`count` weighted sums of neighbours; the first sum begins at element `start`."""
        dims = [count if i == axis else d for i, d in enumerate(t.shape)]
        terms = []
        for k, w in enumerate(weights):
            weight, x = shape.broadcast(w, dims, (axis,)), shape.slice_in_axis(f, start + k, start + k + count, axis)
            is_nothing = ew.logical_and(ew.eq(weight, 0), ew.logical_not(isfinite(x)))
            terms.append(ew.select(is_nothing, np.zeros((), t.dtype), ew.mul(weight, x)))
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
    inside = [combined(_slope_inside(*pair(0, n - 2)), 0, n - 2)] if n > 2 and type_of(spacing).ndim else []
    if n > 2 and not inside:  # equal spacings: the middle element, which may be NaN, has no weight
        ahead, behind = (shape.slice_in_axis(f, i, i + n - 2, axis) for i in (2, 0))
        inside = [ew.div(ew.sub(ahead, behind), ew.mul(spacing, 2))]
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


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None
) -> Any:
    """The derivative of samples along each axis by central differences; one array for one axis, else a list.

    Spacings are numbers or coordinates, one for all axes or one for each. At the edges, differences are one-sided.

    >>> import atled.numpy as jnp
    >>> gradient(jnp.array([1.0, 4.0, 9.0]))
    Array([3., 4., 5.], dtype=float32)
    """
    steps = tuple([v if isinstance(v, (int, float, complex)) else asarray(v) for v in varargs]) if varargs else ()
    return _gradient(f, steps, axis, edge_order)


@library_function(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of samples along an axis by the trapezoidal rule.

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
        step = difference(step, 0 if s.ndim == 1 else at - t.ndim + s.ndim)
        step = shape.broadcast(step, dims, (at,)) if s.ndim == 1 else broadcast_to(step, dims)
    elif type_of(step).ndim:
        step = broadcast_to(step, dims)
    return reduction.reduce_sum(ew.mul(ew.mul(pairs, np.asarray(0.5, t.dtype)), step), (at,))


@library_function(static=("axis",))
def _unwrap(p: Any, discont: Any, period: Any, axis: int) -> Any:
    x, whole = promote_dtypes("unwrap", p, period)
    t = type_of(x)
    at = check_axis("unwrap", axis, t.ndim)
    jumps = difference(fixed(x), at)
    half = ew.div(whole, np.asarray(2, t.dtype))
    low = ew.neg(half)
    bent = ew.add(remainder(ew.sub(jumps, low), whole), low)
    is_edge = ew.logical_and(ew.eq(bent, low), ew.gt(jumps, 0))
    if t.kind in "iu":  # with an odd integer period, a jump of exactly half of it cannot occur
        is_edge = ew.logical_and(is_edge, ew.eq(ew.mul(half, 2), whole))
    bent = ew.select(is_edge, half, bent)
    least = half if discont is None else cast(discont, t.dtype)
    small = ew.lt(elementary.absolute(jumps), least)
    fixes = ew.select(small, np.zeros((), t.dtype), ew.sub(bent, jumps))
    shifts = shape.pad(cumulative.cumsum(fixed(fixes), at), 0, [(int(i == at), 0, 0) for i in range(t.ndim)])
    return ew.add(x, shifts) if t.shape[at] else x


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi) -> Array:
    """Unwrap angles: remove jumps of more than half a period along an axis by adding multiples of the period.

    >>> import atled.numpy as jnp
    >>> unwrap(jnp.array([0.0, 3.0, 7.0]), period=4)
    Array([ 0., -1., -1.], dtype=float32)
    """
    return _unwrap(p, discont, period, axis)
