"""The incomplete gamma and beta functions, and their derivatives with respect to all operands.

Both functions are a kernel times a slowly varying factor, with a formula for each of three ranges. Around the mean, for
large parameters, the formula is a uniform expansion: an error function plus a correction (N. M. Temme, Special
Functions, Wiley 1996, chapter 11). Below the mean it is a series, above the mean a continued fraction; the incomplete
beta function uses a continued fraction on both sides. The smaller of the function and its complement is computed; one
minus that is the other. Numbers of steps are fixed: enough for double precision at the worst operands of each range.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core.array import Array, ArrayLike
from atled.core.trace import bind
from atled.higher_order.elementwise_loops import Looped, in_double
from atled.higher_order.scan import repeat, scan
from atled.ops import special
from atled.ops.elementwise_family import match
from atled.ops.real_functions import STIRLING, top_half

# -- parts ------------------------------------------------------------------------------------------------------------


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """The value of a polynomial at x; the constant coefficient comes first."""
    out: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        out = out * x + c
    return out


def _gap(u: Any, ratio: Any) -> tuple[Any, Any]:
    """g = u - log(1 + u) and g / u**2, without cancellation; `ratio` is 1 + u, with small relative error near 0."""
    is_near = (u > -0.55) & (u < 1)
    v = jnp.where(is_near, u, 0)
    r = v / (2 + v)  # log(1 + v) is 2 atanh(r)
    series = polynomial(r * r, [1 / (2 * k + 3) for k in range(20)])
    near = (1 - 2 * r * series / (2 + v)) / (2 + v)
    w = jnp.where(is_near, 1, u)
    far = w - jnp.log(jnp.where(is_near, 2, ratio))
    return jnp.where(is_near, v * v * near, far), jnp.where(is_near, near, far / (w * w))


def stirling(x: Any) -> Any:
    """The remainder of log(gamma(x)) after Stirling's formula, for x >= 8."""
    return polynomial(1 / (x * x), STIRLING) / x


_LARGE = 12.0  # smaller parameters are shifted by 8 for Stirling's formula
_SHIFT = 8


def _shifted_product(a: Any, first: int) -> Any:
    """The product (a + first) (a + first + 1) ... (a + 7)."""
    return math.prod([a + i for i in range(first, _SHIFT)])


def _scaled_erfc(z: Any) -> Any:
    """exp(z * z) erfc(z) for z >= 0: by Laplace's continued fraction for z >= 3."""
    is_far = z > 3
    near = jnp.where(is_far, 0, z)
    near = jnp.exp(near * near) * special.erfc(near)
    far = fraction = jnp.where(is_far, z, 3)
    for k in range(28, 0, -1):
        fraction = far + k / 2 / fraction
    return jnp.where(is_far, 1 / math.sqrt(math.pi) / fraction, near)


_ORDER = 28  # order of the uniform expansion


@functools.cache
def _expansion() -> np.ndarray:
    """The coefficients of z / w in powers of z and of m, where w' w = z (1 + m w - (1 - m**2) w**2 / 4), w(z) ~ z."""
    count = _ORDER + 2
    times = lambda p, q: np.convolve(p, q)[:count]  # noqa: E731
    unit = lambda i: np.eye(count)[i]  # noqa: E731
    c, square = [unit(0) * 0, unit(0)], [unit(0) * 0, unit(0) * 0, unit(0)]  # coefficients of w, and of w * w
    k = (unit(0) - unit(2)) / 4
    for s in range(3, count + 2):
        square.append((times(unit(1), c[s - 2]) - times(k, square[s - 2])) * 2 / s)
        c.append((square[s] - sum([times(c[i], c[s - i]) for i in range(2, s - 1)], unit(0) * 0)) / 2)
    out = [unit(0)]
    for n in range(1, count - 1):
        out.append(-sum([times(c[j + 1], out[n - j]) for j in range(1, n + 1)], unit(0) * 0))
    return np.stack(out)


def _correction(size: Any, m: Any, z: Any) -> Any:
    """The correction in units of exp(-size z**2 / 2) / sqrt(2 pi size), which is added to erfc(z sqrt(size / 2)) / 2.

    Its coefficients b in powers of z satisfy b[n] = f[n + 1] + (n + 2) b[n + 2] / size, where f is `_expansion`, and
    are divided by 1 + b[1] / size. `m` is None for the incomplete gamma function, for which m is one.
    """

    def step(state: Any, row: Any) -> Any:  # two coefficients
        odd, even, total = state
        n, f_even, f_odd = row
        odd = f_even + (n + 3) / size * odd
        even = f_odd + (n + 2) / size * even
        return (odd, even, (total * z + odd) * z + even)

    table = _expansion()
    zero = jnp.zeros_like(z)
    state = (zero, zero, zero)
    if m is None:
        f = table.sum(1)
        for n in range(_ORDER - 2, -2, -2):
            state = step(state, (n, f[n + 2], f[n + 1]))
    else:
        rows = range(_ORDER - 2, -2, -2)
        even = np.stack([table[n + 2, 0::2] for n in rows])
        odd = np.stack([table[n + 1, 1::2] for n in rows])

        def turn(state: Any, row: Any) -> Any:
            n, p, q = row
            s = m * m
            at = lambda c: polynomial(s, [c[i] for i in range(table.shape[1] // 2)])  # noqa: E731
            return step(state, (n, at(p), m * at(q))), None

        state, _ = scan(turn, state, (np.array(rows, float), even, odd))
    odd, _, total = state
    return total / (1 + odd / size)


def _around_mean(size: Any, m: Any, z: Any, exponential: Any) -> Any:
    """The smaller tail of a distribution with standard deviation 1 / sqrt(size) at z."""
    side = jnp.where(z > 0, 1, -1)
    scaled = _scaled_erfc(side * z * jnp.sqrt(size / 2)) / 2
    return exponential * (scaled + side * _correction(size, m, z) / jnp.sqrt(2 * math.pi * size))


# -- the incomplete gamma function ------------------------------------------------------------------------------------


def _gamma_kernel(a: Any, x: Any) -> tuple[Any, Any]:
    """x**a exp(-x) / gamma(a + 1), and its exponential factor, which is exp(-a phi) for large a."""
    is_large = a >= _LARGE
    large = jnp.where(is_large, a, a + _SHIFT)
    gap = (x - large) / large
    phi, _ = _gap(gap, x / large)
    exponential = jnp.exp(-a * phi - jnp.where(is_large, 0, _SHIFT * (gap + jnp.log(large))))
    factor = jnp.where(is_large, 1 / a, _shifted_product(jnp.where(is_large, 1, a), 1))
    return exponential * jnp.sqrt(large / (2 * math.pi)) * jnp.exp(-stirling(large)) * factor, exponential


def _gamma_series(a: Any, x: Any) -> Any:
    """The sum of x**n / ((a + 1) ... (a + n))."""
    return repeat(lambda i, s: 1 + x / (a + (60 - i)) * s, 60, jnp.ones_like(x), 0, np.dtype(float))


def _gamma_fraction(a: Any, x: Any) -> Any:
    """gamma(a, x) / (x**a exp(-x)), by a continued fraction."""

    def step(i: Any, f: Any) -> Any:
        n = 50 - i
        return x + (2 * n - 1) - a - n * (n - a) / f

    return 1 / repeat(step, 50, x + 101 - a, 0, np.dtype(float))


# The coefficients of (1 / gamma(1 + a) - 1) / a
_RECIPROCAL_GAMMA = (
    0.57721566490153286061, -0.65587807152025388108, -0.042002635034095235529, 0.1665386113822914895,
    -0.042197734555544336748, -0.0096219715278769735621, 0.0072189432466630995424, -0.0011651675918590651121,
    -0.00021524167411495097282, 0.00012805028238811618615, -0.000020134854780788238656, -1.2504934821426706573e-6,
    1.1330272319816958824e-6, -2.0563384169776071035e-7, 6.1160951044814158179e-9, 5.0020076444692229301e-9,
    -1.1812745704870201446e-9, 1.0434267116911005105e-10, 7.782263439905071254e-12, -3.6968056186422057082e-12,
)  # fmt: skip


def _small_gamma_complement(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function for small a and x, where the lower one is close to one."""
    log = a * jnp.log(x) + jnp.log1p(a * polynomial(a, _RECIPROCAL_GAMMA))

    def step(i: Any, state: Any) -> Any:
        term, total = state
        term = term * (-x / i)
        return term, total + term / (a + i)

    _, total = repeat(step, 32, (jnp.ones_like(x), jnp.zeros_like(x)), 1, np.dtype(float))
    return -jnp.expm1(log) - jnp.exp(log) * a * total


def _igamma(a: Any, x: Any, is_complement: bool) -> Any:
    is_inside = (a > 0) & (x > 0) & (a < np.inf) & (x < np.inf)
    a0, x0 = a, x
    a, x = jnp.where(is_inside, a, 1), jnp.where(is_inside, x, 1)
    kernel, exponential = _gamma_kernel(a, x)
    is_middle = (a >= _LARGE) & (x > 0.3 * a) & (x < 2.36 * a)
    is_upper = ~is_middle & (x > jnp.maximum(a, 2))
    series = _gamma_series(jnp.where(is_upper | is_middle, 1, a), jnp.where(is_upper | is_middle, 1, x))
    fraction = _gamma_fraction(jnp.where(is_upper, a, 1), jnp.where(is_upper, x, 2))
    part = kernel * jnp.where(is_upper, a * fraction, series)
    size, at = jnp.where(is_middle, a, _LARGE), jnp.where(is_middle, x, _LARGE)
    gap = (at - size) / size
    z = gap * jnp.sqrt(2 * _gap(gap, at / size)[1])
    part = jnp.where(is_middle, _around_mean(size, None, z, jnp.where(is_middle, exponential, 1)), part)
    is_upper = is_upper | (is_middle & (x > a))
    if is_complement:
        is_small = (a < 0.5) & (x <= 2)
        small = _small_gamma_complement(jnp.where(is_small, a, 0.25), jnp.where(is_small, x, 1))
        out = jnp.where(is_upper, part, jnp.where(is_small, small, 1 - part))
    else:
        out = jnp.where(is_upper, 1 - part, part)
    # limits: zero at x = 0, one at a = 0 or x = inf, and zero at a = inf
    is_one = ((a0 == 0) & (x0 > 0)) | ((x0 == np.inf) & (a0 >= 0) & (a0 < np.inf))
    is_zero = ((x0 == 0) & (a0 > 0)) | ((a0 == np.inf) & (x0 >= 0) & (x0 < np.inf))
    low, high = (1.0, 0.0) if is_complement else (0.0, 1.0)
    edge = jnp.where(is_one, high, jnp.where(is_zero, low, np.nan))
    return jnp.where(is_inside, out, edge)


def _gamma_density(a: Any, x: Any) -> Any:
    """x**(a - 1) exp(-x) / gamma(a)."""
    is_inside = (a > 0) & (x > 0) & (a < np.inf) & (x < np.inf)
    p, q = jnp.where(is_inside, a, 1), jnp.where(is_inside, x, 1)
    edge = jnp.where(a < 1, np.inf, jnp.where(a == 1, 1.0, 0.0))
    edge = jnp.where((x == 0) & (a > 0), edge, jnp.where((a >= 0) & (x >= 0), 0.0, np.nan))
    return jnp.where(is_inside, _gamma_kernel(p, q)[0] * p / q, edge)


class Igamma(Looped):
    """The regularized lower incomplete gamma function."""

    def compute(self, a: Any, x: Any) -> Any:
        return _igamma(a, x, False)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return _gamma_density if i == 1 else None


class Igammac(Looped):
    """The regularized upper incomplete gamma function."""

    def compute(self, a: Any, x: Any) -> Any:
        return _igamma(a, x, True)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return (lambda a, x: -_gamma_density(a, x)) if i == 1 else None


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function: the probability below x under a gamma distribution with shape a.

    >>> round(float(igamma(1.0, 1.0)), 3)
    0.632
    """
    return bind(Igamma((0, 0)), *match(a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, 1 - igamma(a, x).

    >>> round(float(igammac(1.0, 1.0)), 3)
    0.368
    """
    return bind(Igammac((0, 0)), *match(a, x))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of igamma with respect to a.

    >>> round(float(igamma_grad_a(1.0, 1.0)), 3)
    -0.432
    """
    return bind(Igamma((1, 0)), *match(a, x))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a sample x of the gamma distribution with respect to its shape a.

    >>> round(float(random_gamma_grad(1.0, 1.0)), 3)
    1.174
    """
    a, x = match(a, x)
    return -bind(Igamma((1, 0)), a, x) / in_double(_gamma_density)(a, x)


# -- the incomplete beta function -------------------------------------------------------------------------------------


def exact_product(x: Any, y: Any) -> list[Any]:
    """Terms that add up to x * y, largest first. Only the last term is rounded: fused multiply-adds of the others give
    the same sums.
    """
    a, c = top_half(x), top_half(y)
    b, d = x - a, y - c
    return [a * c, a * d, b * c, b * d]


def _distance(a: Any, b: Any, x: Any) -> Any:
    """x (a + b) - a, as if rounded once: (a + b) times the distance of x from the mean, without cancellation."""
    total = a + b
    rest = jnp.where(a > b, b - (total - a), a - (total - b))
    return sum(exact_product(x, total), -a) + x * rest  # near the mean, only the last sums are rounded


def _beta_kernel(a: Any, b: Any, x: Any, y: Any, is_upper: Any) -> tuple[Any, Any]:
    """x**a y**b / beta(a, b) with y = 1 - x, divided by b if `is_upper`, else by a; and its exponential factor."""
    lift = [jnp.where(v < _LARGE, float(_SHIFT), 0.0) for v in (a, b)]
    p, q = a + lift[0], b + lift[1]
    total = p + q
    gap = _distance(p, q, x)
    first, _ = _gap(gap / p, x * (total / p))
    second, _ = _gap(-gap / q, y * (total / q))
    exponent = -a * first - b * second + gap * (lift[1] / q - lift[0] / p)
    exponential = jnp.exp(exponent - lift[0] * jnp.log(p / total) - lift[1] * jnp.log(q / total))
    top = [jnp.where(is_upper, a, 1), jnp.where(is_upper, 1, b)]  # a b / b or a b / a
    for i in range(_SHIFT):  # beta(a, b) = beta(a + 1, b) (a + b) / a
        top[0] = top[0] * jnp.where(lift[0] > 0, (a + i if i else 1) / (a + b + i), 1)
        top[1] = top[1] * jnp.where(lift[1] > 0, (b + i if i else 1) / (p + b + i), 1)
    factor = jnp.where(lift[0] > 0, top[0], top[0] / a) * jnp.where(lift[1] > 0, top[1], top[1] / b)
    rest = jnp.exp(stirling(total) - stirling(p) - stirling(q))
    return exponential * jnp.sqrt(p * (q / total) / (2 * math.pi)) * rest * factor, exponential


def _beta_fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    """a times the incomplete beta function divided by its kernel, for x up to the mean.

    A. R. DiDonato and A. H. Morris, ACM Transactions on Mathematical Software 18 (1992), equation 9.
    """
    count = 100
    edge = a * y - b * x + 1
    rest = lambda n, f: (a + b + (n - 1)) * x * (n * ((b - n) * x) / (a + (2 * n - 1))) / f  # noqa: E731

    def step(i: Any, f: Any) -> Any:  # term n, given the terms after it
        n = count - i
        scale = (a + n) / (a + (2 * n + 1))
        return n + n * ((b - n) * x) / (a + (2 * n - 1)) + scale * (edge + n * (1 + y) + rest(n + 1, f))

    tail = repeat(step, count, a + (count + 1), 0, np.dtype(float))
    return (a + 1) / (edge + rest(1, tail))


def _small_beta_complement(a: Any, b: Any, x: Any) -> Any:
    """One minus the regularized incomplete beta function, for small a and x below the mean."""
    z = b + _SHIFT
    u, v = 1 / (z + a), 1 / z
    value, slope = 0.0, 0.0  # Stirling's series and its divided difference
    for c in reversed([s for t in STIRLING for s in (t, 0.0)][:-1]):
        slope, value = slope * u + value, value * v + c
    series = -a * u * v * (slope * u + value)
    ratio = (z - 0.5) * jnp.log1p(a / z) - a + a * jnp.log((z + a) * x) + series
    for i in range(_SHIFT):
        ratio = ratio - jnp.log1p(a / (b + i))
    log = ratio + jnp.log1p(a * polynomial(a, _RECIPROCAL_GAMMA))

    def step(i: Any, state: Any) -> Any:
        term, total = state
        term = term * ((i - b) * x / i)
        return term, total + term / (a + i)

    _, total = repeat(step, 70, (jnp.ones_like(x), jnp.zeros_like(x)), 1, np.dtype(float))
    return -jnp.expm1(log) - jnp.exp(log) * a * total


def _betainc(a0: Any, b0: Any, x0: Any) -> Any:
    is_inside = (a0 > 0) & (b0 > 0) & (x0 > 0) & (x0 < 1) & (a0 < np.inf) & (b0 < np.inf)
    a, b, x = (jnp.where(is_inside, v, s) for v, s in ((a0, 1), (b0, 1), (x0, 0.5)))
    y = 1 - x
    is_upper = x > (a + 2) / (a + b + 4)
    kernel, exponential = _beta_kernel(a, b, x, y, is_upper)
    is_large = (a >= _LARGE) & (b >= _LARGE)
    p, q, r = (jnp.where(is_large, v, s) for v, s in ((a, 20), (b, 20), (x, 0.5)))
    total = p + q
    gap = _distance(p, q, r)
    first, second = _gap(gap / p, r * (total / p))[1], _gap(-gap / q, (1 - r) * (total / q))[1]
    size = p * (q / total)
    z = gap * jnp.sqrt(2 * (first / p + second / q) / size)
    is_middle = is_large & (jnp.abs(z) < 1)
    z = jnp.where(is_middle, z, 0)
    middle = _around_mean(size, (q - p) / total, z, jnp.where(is_middle, exponential, 1))

    c, d = jnp.where(is_upper, b, a), jnp.where(is_upper, a, b)
    u, v = jnp.where(is_upper, y, x), jnp.where(is_upper, x, y)
    c, d, u, v = (jnp.where(is_middle, s, w) for w, s in ((c, 1), (d, 1), (u, 0.5), (v, 0.5)))
    part = kernel * _beta_fraction(c, d, u, v)
    is_small = is_upper & (c < 0.5) & ~is_middle
    small = _small_beta_complement(*[jnp.where(is_small, w, s) for w, s in ((c, 0.25), (d, 1), (u, 0.25))])
    out = jnp.where(is_upper, jnp.where(is_small, small, 1 - part), part)
    out = jnp.where(is_middle, jnp.where(z > 0, 1 - middle, middle), out)
    return jnp.where(is_inside, out, _beta_edge(a0, b0, x0))


def _beta_edge(a: Any, b: Any, x: Any) -> Any:
    """The value 0 or 1 at x = 0 and x = 1, and if a parameter is zero or infinite (a point mass); else NaN."""
    fits = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~((a == 0) & (b == 0)) & ~((a == np.inf) & (b == np.inf))
    is_one = (x == 1) | (a == 0) | (b == np.inf)
    is_zero = (x == 0) | (b == 0) | (a == np.inf)
    out = jnp.where(x == 0, 0.0, jnp.where(x == 1, 1.0, jnp.where(is_one, 1.0, jnp.where(is_zero, 0.0, np.nan))))
    return jnp.where(fits, out, np.nan)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) (1 - x)**(b - 1) / beta(a, b)."""
    is_inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < np.inf) & (b < np.inf)
    p, q, r = (jnp.where(is_inside, v, s) for v, s in ((a, 1), (b, 1), (x, 0.5)))
    out = _beta_kernel(p, q, r, 1 - r, False)[0] * p / (r * (1 - r))
    near, far = jnp.where(x == 0, a, b), jnp.where(x == 0, b, a)
    edge = jnp.where(near < 1, np.inf, jnp.where(near == 1, far, 0.0))
    edge = jnp.where(((x == 0) | (x == 1)) & (a > 0) & (b > 0), edge, np.nan)
    return jnp.where(is_inside, out, edge)


class Betainc(Looped):
    """The regularized incomplete beta function."""

    def compute(self, a: Any, b: Any, x: Any) -> Any:
        return _betainc(a, b, x)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return _beta_density if i == 2 else None


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function: the probability below x under a beta distribution.

    >>> round(float(betainc(2.0, 2.0, 0.5)), 3)
    0.5
    """
    return bind(Betainc((0, 0, 0)), *match(a, b, x))
