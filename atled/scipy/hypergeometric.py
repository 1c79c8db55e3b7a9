"""Hypergeometric functions of real numbers, and the ratio of gamma functions.

A series ends when a bound of its terms is negligible for all elements. The bound is not zero where a term happens to be
zero, so derivatives with respect to the parameters converge, too. All functions are computed in double precision.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core.array import Array, ArrayLike
from atled.core.trace import bind
from atled.higher_order.elementwise_loops import Looped, in_double
from atled.higher_order.scan import repeat
from atled.higher_order.while_loop import while_loop
from atled.lax.incomplete_functions import stirling
from atled.scipy.gamma_functions import gammasgn
from atled.scipy.operand_promotion import real_operands
from atled.staging.jit import library_function
from atled.transforms.grad import stop_gradient

_DOUBLE = np.dtype(float)
_LIMIT = 5000


def _is_pole(x: Any) -> Any:
    """Whether x is zero or a negative integer."""
    return (x <= 0) & (x == jnp.floor(x))


# -- ratios of gamma functions ----------------------------------------------------------------------------------------


def _log_ratio(x: Any, y: Any, gap: Any) -> tuple[Any, Any]:
    """gamma(x) / gamma(y) for positive x and y, as a factor and a logarithm; `gap` is x - y without rounding error."""
    shift = 8
    p, q = jnp.where(x < 12, x + shift, x), jnp.where(y < 12, y + shift, y)
    factor: Any = 1.0
    for i in range(shift):
        factor = factor * jnp.where(y < 12, y + i, 1) / jnp.where(x < 12, x + i, 1)
    gap = gap + shift * (jnp.where(x < 12, 1, 0) - jnp.where(y < 12, 1, 0))
    log = (q - 0.5) * jnp.log1p(gap / q) + gap * jnp.log(p) - gap + stirling(p) - stirling(q)
    return factor, log


def _sine(x: Any) -> Any:
    """sin(pi x)."""
    whole = stop_gradient(jnp.round(x))
    out = jnp.sin(math.pi * (x - whole))
    return jnp.where(jnp.floor(whole / 2) * 2 == whole, out, -out)


def _poch(z: Any, m: Any) -> Any:
    end = z + m
    falls, ends_low = z < 0.5, end < 0.5
    # operands below 1/2: gamma(x) = pi / (sin(pi x) gamma(1 - x))
    top = jnp.where(ends_low, jnp.where(falls, 1 - z, 1), jnp.where(falls, 1, end))
    low = jnp.where(ends_low, jnp.where(falls, 1 - end, 1), jnp.where(falls, 1, z))
    is_mixed = falls != ends_low
    factor, log = _log_ratio(top, low, jnp.where(is_mixed, 0, m))
    one_sided = jnp.where(falls & ~ends_low, 1 - z, jnp.where(ends_low & ~falls, 1 - end, 1))
    other = jnp.where(falls & ~ends_low, end, jnp.where(ends_low & ~falls, z, 1))
    # z < 1/2 <= end: gamma(end) gamma(1 - z) sin(pi z) / pi; end < 1/2 <= z: its reciprocal with z and end exchanged
    first, first_log = _log_ratio(one_sided, jnp.ones_like(z), one_sided - 1)
    second, second_log = _log_ratio(other, jnp.ones_like(z), other - 1)
    product, product_log = first * second, first_log + second_log
    whole = m == jnp.floor(m)
    sign = jnp.where(jnp.floor(m / 2) * 2 == m, 1.0, -1.0)
    lower = jnp.where(ends_low & ~_is_pole(end), _sine(end), 1)
    upper = jnp.where(falls & ~_is_pole(z), _sine(z), 1)
    both = jnp.where(whole, sign, upper / lower)
    raised = jnp.where(falls, upper / math.pi, math.pi / lower)
    same = jnp.where(falls, both, 1) * factor * jnp.exp(log)
    mixed = raised * jnp.where(falls, product * jnp.exp(product_log), jnp.exp(-product_log) / product)
    out = jnp.where(is_mixed, mixed, same)
    out = jnp.where(_is_pole(z) & ~_is_pole(end), 0.0, out)
    out = jnp.where(_is_pole(end) & ~_is_pole(z), np.inf, out)
    out = jnp.where(m == 0, 1.0 + 0 * out, out)
    return jnp.where((z != z) | (m != m), np.nan, out)


def _poch_everywhere(z: Any, m: Any) -> Any:
    """`_poch`, and its limits where operands are infinite."""
    has_end, is_far = jnp.isinf(z), jnp.isinf(z) | jnp.isinf(m)
    inside = _poch(jnp.where(is_far, 1, z), jnp.where(is_far, 0, m))
    odd = jnp.floor(m / 2) * 2 != m
    power = jnp.where(m > 0, np.inf, jnp.where(m == 0, 1.0, 0.0))  # the limit of |z| ** m
    of_z = jnp.where(z > 0, power, jnp.where(m == jnp.floor(m), jnp.where(odd, -power, power), np.nan))
    of_z = jnp.where((z < 0) & jnp.isinf(m), np.nan, of_z)
    of_m = jnp.where(_is_pole(z), 0.0, jnp.where(m > 0, np.inf * gammasgn(z), np.nan))
    out = jnp.where(is_far, jnp.where(has_end, of_z, of_m), inside)
    return jnp.where((z != z) | (m != m), np.nan, out)


@library_function
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """gamma(z + m) / gamma(z), also where both gamma functions are infinite.

    >>> round(float(poch(3.0, 2.0)), 3)
    12.0
    """
    return in_double(_poch_everywhere)(*real_operands("poch", z, m))


# -- the confluent function -------------------------------------------------------------------------------------------


def _series(tops: list[Any], low: Any, x: Any, first: Any) -> Any:
    """`first` times the sum of x**k (tops[0])_k (tops[1])_k ... / ((low)_k k!) over k, with rising factorials (a)_k."""
    sizes = [stop_gradient(v) for v in (*tops, low, x)]
    # up to this index, where a parameter + k is not positive, a small term does not mean convergence
    least = jnp.max(-functools.reduce(jnp.minimum, sizes[:-1]), initial=0)

    def goes_on(state: Any) -> Any:
        k, _, total, bound = state
        return (k < _LIMIT) & ((k <= least) | jnp.any(bound > 1e-19 * jnp.abs(stop_gradient(total))))

    def step(state: Any) -> Any:
        k, term, total, bound = state
        below = jnp.where(low + k == 0, 1, low + k)  # only after the end of a polynomial
        term = term * (math.prod([t + k for t in tops]) * x) / (below * (k + 1))
        growth = math.prod([jnp.maximum(jnp.abs(t + k), 1) for t in sizes[:-2]]) * jnp.abs(sizes[-1])
        return k + 1, term, total + term, bound * growth / (jnp.abs(stop_gradient(below)) * (k + 1))

    start = (jnp.zeros((), _DOUBLE), first, first, jnp.abs(stop_gradient(first)))
    return while_loop(goes_on, step, start)[2]


def _far_below(a: Any, b: Any, x: Any) -> Any:
    """The asymptotic series of 1F1(a, b, -x) for large x: gamma(b) / gamma(b - a) x**-a (1 + ...)."""

    def step(i: Any, s: Any) -> Any:
        k = 30 - i
        return 1 + (a + (k - 1)) * (a - b + k) / (k * x) * s

    return _poch(b - a, a) * jnp.exp(-a * jnp.log(x)) * repeat(step, 30, jnp.ones_like(x), 0, _DOUBLE)


class Hyp1f1(Looped):
    """Kummer's confluent hypergeometric function."""

    def compute(self, a: Any, b: Any, x: Any) -> Any:
        is_bad = _is_pole(b) & ~(_is_pole(a) & (a >= b))
        is_nan = (a != a) | (b != b) | (x != x)
        b = jnp.where(is_bad | is_nan, 1, b)
        a, x = jnp.where(is_nan, 1, a), jnp.where(is_nan, 1, x)
        is_far = (x < -900) & ~_is_pole(a)
        turned = (x < 0) & ~_is_pole(a)  # Kummer's transformation
        p = jnp.where(turned, b - a, a)
        at = jnp.where(is_far, 1, jnp.where(turned, -x, x))
        root = jnp.where(turned & ~is_far, jnp.exp(jnp.where(turned & ~is_far, x, 0) / 2), 1)
        near = root * _series([p], b, at, root)
        far = _far_below(jnp.where(is_far, a, 1), jnp.where(is_far, b, 2), jnp.where(is_far, -x, 900))
        out = jnp.where(is_far, far, near)
        return jnp.where(is_nan, np.nan, jnp.where(is_bad, np.inf, out))

    def slope(self, i: int) -> Callable[..., Any] | None:
        if i < 2:
            return None
        return lambda a, b, x: a / b * bind(Hyp1f1((0, 0, 0)), a + 1, b + 1, x)


@library_function
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The confluent hypergeometric function 1F1(a; b; x), differentiable with respect to all operands.

    >>> import atled.numpy as jnp
    >>> bool(abs(hyp1f1(1.0, 1.0, jnp.float32(2.0)) - jnp.exp(2.0)) < 1e-5)
    True
    """
    return bind(Hyp1f1((0, 0, 0)), *real_operands("hyp1f1", a, b, x))


# -- Gauss's function -------------------------------------------------------------------------------------------------


def _towards_one(a: Any, b: Any, c: Any, rest: Any) -> Any:
    """2F1 at 1 - rest for rest below 1/2: Taylor series of its differential equation, in steps halfway to the pole."""
    half = jnp.full_like(rest, 0.5)
    start = _series([a, b], c, half, jnp.ones_like(rest))
    slope = a * b / c * _series([a + 1, b + 1], c + 1, half, jnp.ones_like(rest))

    def turn(state: Any) -> Any:
        left, value, slope = state
        t = jnp.minimum(left - rest, left / 2)
        moves = t > 0
        step = jnp.where(moves, t, left / 2)
        at = 1 - left

        def term(n: Any, inner: Any) -> Any:
            u, v, total, rise = inner  # Taylor coefficients n and n + 1, times powers of the step
            w = -(n + 1) * ((2 * left - 1) * n + c - (a + b + 1) * at) * v * step + (n + a) * (n + b) * u * step * step
            w = w / (at * left * (n + 2) * (n + 1))
            return v, w, total + w, rise + (n + 2) * w

        first = slope * step
        _, _, total, rise = repeat(term, 90, (value, first, value + first, first), 0, _DOUBLE)
        return left - jnp.where(moves, t, 0), jnp.where(moves, total, value), jnp.where(moves, rise / step, slope)

    return while_loop(lambda s: jnp.any(stop_gradient(s[0]) > stop_gradient(rest)), turn, (half, start, slope))[1]


def _at_one(a: Any, b: Any, c: Any) -> Any:
    """2F1 at x = 1: Gauss's sum if c > a + b, else infinity with the sign of gamma(c) gamma(a) gamma(b)."""
    excess = c - a - b
    fits = excess > 0
    safe = jnp.where(fits, excess, 1)
    signs = [jnp.where((v > 0) | (jnp.floor(jnp.floor(v) / 2) * 2 == jnp.floor(v)), 1, -1) for v in (a, b, c)]
    return jnp.where(fits, _poch(c - a, a) / _poch(safe, a), math.prod(signs) * np.inf)


class Hyp2f1(Looped):
    """Gauss's hypergeometric function of real numbers."""

    def compute(self, a: Any, b: Any, c: Any, x: Any) -> Any:
        is_nan = (a != a) | (b != b) | (c != c) | (x != x)
        # if the series is a polynomial, a is the parameter that ends it
        a, b = jnp.where(_is_pole(b), b, a), jnp.where(_is_pole(b), a, b)
        is_finite = _is_pole(a)
        is_bad = _is_pole(c) & ~(is_finite & (a >= c))
        is_beyond = (x > 1) & ~is_finite
        is_end = (x == 1) & ~is_finite
        is_safe = ~(is_nan | is_bad | is_beyond | is_end)
        p, q, r, s = (jnp.where(is_safe, v, w) for v, w in ((a, 1), (b, 1), (c, 2), (x, 0)))
        # Euler's transformation if the result is a polynomial, else Pfaff's for negative x
        is_short = (p == r) | (q == r) | ((_is_pole(r - p) | _is_pole(r - q)) & ~is_finite)
        turned = (s < 0) & ~is_finite & ~is_short
        power = jnp.where(is_short, r - p - q, jnp.where(turned, -p, 0))
        p, q = jnp.where(is_short, r - p, p), jnp.where(turned | is_short, r - q, q)
        is_finite = is_finite | is_short
        factor = jnp.exp(power * jnp.log(jnp.where(turned | is_short, 1 - s, 1)))
        rest = jnp.where(turned, 1 / (1 - s), 1 - s)
        at = jnp.where(turned, s / (s - 1), s)
        is_far = (rest < 0.5) & ~is_finite
        near = _series([p, q], r, jnp.where(is_far, 0, at), jnp.ones_like(at))
        far = _towards_one(*[jnp.where(is_far, v, w) for v, w in ((p, 1), (q, 1), (r, 2), (rest, 0.5))])
        out = jnp.where(is_far, far, near) * factor
        out = jnp.where(is_end, _at_one(a, b, c), out)
        out = jnp.where(is_bad, np.inf, jnp.where(is_beyond, np.nan, out))
        return jnp.where(is_nan, np.nan, out)

    def slope(self, i: int) -> Callable[..., Any] | None:
        if i < 3:
            return None
        return lambda a, b, c, x: a * b / c * bind(Hyp2f1((0, 0, 0, 0)), a + 1, b + 1, c + 1, x)


@library_function
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function 2F1(a, b; c; x) for x up to 1, differentiable with respect to all operands.

    For x above 1 the function is complex, and the result is NaN, unless a or b is a negative integer.

    >>> round(float(hyp2f1(1.0, 1.0, 2.0, 0.5)), 3)
    1.386
    """
    return bind(Hyp2f1((0, 0, 0, 0)), *real_operands("hyp2f1", a, b, c, x))
