"""SciPy's `RegularGridInterpolator`, for values on a grid whose axes are vectors of coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes, errors, tree_registry
from atled.core.array import type_of
from atled.core.trace import Tracer
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes, cast, operand_type, promote_inexact
from atled.staging.jit import library_function

__all__ = ["RegularGridInterpolator"]
__dir__ = __all__.copy


def _points(xi: Any, count: int) -> Any:
    """Points with their `count` coordinates on the last axis; a tuple xi holds one array for each coordinate."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        parts = [asarray(x) for x in xi]
        dims = broadcast_shapes(*[type_of(p).shape for p in parts])
        return jnp.stack([jnp.broadcast_to(p, dims) for p in parts], axis=-1)
    x = asarray(xi)
    return jnp.reshape(x, (-1, count)) if type_of(x).ndim == 1 else x


@library_function(static=("method",))
def _interpolated(grid: list[Any], values: Any, fill: Any, x: Any, method: str) -> Any:
    """Values at points [..., axis]: the weighted mean over the corners of the cell around each point."""
    n = len(grid)
    v = type_of(values)
    x, *axes = promote_inexact("RegularGridInterpolator", x, *grid)
    lead, extra = type_of(x).shape[:-1], v.ndim - n
    spread = lambda w: jnp.reshape(w, (*lead, *[1] * extra))  # noqa: E731
    sides, is_outside = [], jnp.zeros(lead, bool)
    for i, axis in enumerate(axes):
        at, size = x[..., i], type_of(axis).shape[0]
        low = jnp.clip(jnp.searchsorted(axis, at) - 1, 0, max(size - 2, 0))
        high = jnp.minimum(low + 1, size - 1)
        width = axis[high] - axis[low]
        share = (at - axis[low]) / jnp.where(width == 0, 1, width)
        is_outside = is_outside | (at < axis[0]) | (at > axis[-1])
        if method == "nearest":
            sides.append([(jnp.where(share <= 0.5, low, high), None)])
        else:
            sides.append([(low, 1 - share), (high, share)])
    out: Any = 0
    for corner in itertools.product(*sides):
        term = values[tuple([index for index, _ in corner])]
        for _, weight in corner:
            term = term if weight is None else term * cast(spread(weight), dtypes.real_part(v.dtype))
        out = out + term
    if method == "nearest":  # points with a NaN coordinate get the value NaN
        out = jnp.where(spread(jnp.any(jnp.isnan(x), axis=-1)), cast(np.nan, v.dtype), out)
    return out if fill is None else jnp.where(spread(is_outside), cast(fill, v.dtype), out)


class RegularGridInterpolator:
    """Interpolates values on a grid: linearly in each coordinate ("linear"), or by the nearest value ("nearest").

    `points` holds the ascending coordinates along each axis; results have the extra trailing axes of `values`.
    Outside of the grid the result is `fill_value`; if that is None, it is extrapolated. With `bounds_error`, points
    outside raise an error, which needs concrete points.

    >>> import atled.numpy as jnp
    >>> f = RegularGridInterpolator((jnp.array([0.0, 1.0]), jnp.array([0.0, 2.0])), jnp.array([[0.0, 2.0], [1.0, 3.0]]))
    >>> f(jnp.array([[0.5, 1.0], [1.0, 0.0], [2.0, 2.0]]))
    Array([1.5, 1. , nan], dtype=float32)
    """

    def __init__(
        self, points: Sequence[Any], values: Any, method: str = "linear", bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:  # fmt: skip
        self.method, self.bounds_error = _checked(method), bounds_error
        (values,) = promote_inexact("RegularGridInterpolator", asarray(values))
        v = type_of(values)
        self.grid = tuple([asarray(p) for p in points])
        self.values, self.fill_value = values, fill_value
        if len(self.grid) > v.ndim:
            raise ValueError(f"RegularGridInterpolator: values must have at least {len(self.grid)} axes; got {v}.")
        for i, p in enumerate(self.grid):
            if type_of(p).ndim != 1 or type_of(p).size != v.shape[i] or not v.shape[i]:
                raise ValueError(
                    f"RegularGridInterpolator: axis {i} needs one coordinate for each of {v.shape[i]} values; "
                    f"got {type_of(p)}."
                )
        if fill_value is not None and operand_type("RegularGridInterpolator", fill_value).kind == "c" != v.kind:
            raise ValueError(
                f"RegularGridInterpolator: fill_value must be real for values {v}; got {type_of(fill_value)}."
            )

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The values at points: an array with coordinates on its last axis, or a tuple of arrays of coordinates."""
        method = self.method if method is None else _checked(method)
        x = _points(xi, len(self.grid))
        if type_of(x).ndim == 0 or type_of(x).shape[-1] != len(self.grid):
            raise ValueError(
                f"RegularGridInterpolator: points must have {len(self.grid)} coordinates on their last axis; "
                f"got {type_of(x)}."
            )
        fill = self.fill_value
        if self.bounds_error:
            self._check_bounds(x)
            fill = None
        return _interpolated(list(self.grid), self.values, fill, x, method)

    def _check_bounds(self, x: Any) -> None:
        if any([isinstance(v, Tracer) for v in (x, *self.grid)]):
            raise errors.ConcretizationTypeError(
                "RegularGridInterpolator: bounds_error needs concrete points; got traced ones."
                "\n  try: bounds_error=False, and fill_value=nan to mark points outside."
            )
        for i, p in enumerate(self.grid):
            at = np.asarray(x)[..., i]
            if np.any(at < np.asarray(p)[0]) or np.any(at > np.asarray(p)[-1]):
                raise ValueError(f"RegularGridInterpolator: a point is out of bounds along axis {i}.")


def _checked(method: Any) -> str:
    if method not in ("linear", "nearest"):
        raise ValueError(f"RegularGridInterpolator: the method is 'linear' or 'nearest'; got {method!r}.")
    return method


def _unflatten(settings: Any, parts: Any) -> RegularGridInterpolator:
    out = object.__new__(RegularGridInterpolator)
    (out.grid, out.values, out.fill_value), (out.method, out.bounds_error) = parts, settings
    return out


tree_registry.register_node(
    RegularGridInterpolator,
    lambda f: ((f.grid, f.values, f.fill_value), (f.method, f.bounds_error)),
    _unflatten,
)
