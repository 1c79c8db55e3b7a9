"""A line search for the strong Wolfe conditions, as one loop with one evaluation of the function per iteration.

The condition on values holds up to rounding error, the condition on slopes exactly: close to a minimum, where values
are equal up to rounding, slopes still differ (W. W. Hager and H. Zhang, 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes
from atled.core.array import type_of
from atled.higher_order.while_loop import while_loop

ENOUGH = 1e-4  # the required fraction of the decrease that the slope predicts
FLAT = 0.9  # the allowed fraction of the initial slope
_ROUNDINGS = 8  # the assumed error of values, in units of machine epsilon times the value


class Point(NamedTuple):
    """A point on the line: its distance from the start, the value, the slope along the line, and the gradient."""

    at: Any
    value: Any
    slope: Any
    gradient: Any


class Search(NamedTuple):
    """The state of a search: the best point so far, the other end of the interval, and the last point evaluated."""

    low: Point  # the value is low enough, and the slope negative
    high: Point  # the value is too high, or the slope not negative; at infinity at first
    last: Point
    is_done: Any
    count: Any


def noise(value: Any) -> Any:
    """A bound of the rounding error of values close to this one."""
    rounding = float(dtypes.finfo(type_of(value).dtype).eps)
    return _ROUNDINGS * rounding * jnp.abs(value)


def _next(search: Search) -> Any:
    """The next point to try: four times as far until `high` is finite, then the minimum of an interpolant."""
    low, high, last = search.low, search.high, search.last
    width = high.at - low.at
    by_slopes = low.at - low.slope * width / (high.slope - low.slope)
    by_values = low.at - 0.5 * low.slope * width**2 / (high.value - low.value - low.slope * width)
    guess = jnp.where(high.slope > 0, by_slopes, by_values)
    middle = low.at + 0.5 * width
    guess = jnp.where(jnp.isfinite(guess) & (search.count % 3 != 2), guess, middle)
    inside = jnp.clip(guess, low.at + 0.1 * width, high.at - 0.1 * width)
    return jnp.where(jnp.isfinite(high.at), inside, 4 * last.at)


def line_search(evaluate: Callable[[Any], Point], start: Point, first: Any, steps: Any) -> Search:
    """Search from `start`, where the slope is negative, with `first` as the first step, in at most `steps` evaluations.

    If the search `is_done`, `last` meets the conditions. Otherwise `low` is at least as low as the start.
    """
    far = Point(jnp.full_like(start.at, np.inf), start.value, start.slope, start.gradient)

    def goes_on(search: Search) -> Any:
        return ~search.is_done & (search.count < steps)

    def step(search: Search) -> Search:
        at = jnp.where(search.count == 0, first, _next(search))
        point = evaluate(at)
        limit = start.value + ENOUGH * at * start.slope + noise(start.value)
        is_low = (point.value <= limit) & jnp.isfinite(point.slope)
        is_done = is_low & (jnp.abs(point.slope) <= -FLAT * start.slope)
        is_falling = is_low & (point.slope < 0)
        pick = lambda condition, x, y: Point(*[jnp.where(condition, a, b) for a, b in zip(x, y, strict=True)])  # noqa: E731
        return Search(
            pick(is_falling, point, search.low), pick(is_falling, search.high, point), point, is_done, search.count + 1
        )

    return while_loop(goes_on, step, Search(start, far, start, jnp.asarray(False), 0))
