"""Logarithms of tail and binomial probabilities, without cancellation between large numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import type_of
from atled.numpy.promotion import cast
from atled.scipy import special
from atled.scipy.stats.family import LOG_TWO_PI


def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, by one formula up to about log(2) and one above (M. Maechler, 2012)."""
    is_near = x < 0.7
    near = jnp.log(-jnp.expm1(-jnp.where(is_near, x, 0.5)))
    return jnp.where(is_near, near, jnp.log1p(-jnp.exp(-jnp.where(is_near, 1.0, x))))


def log_of_complement(x: Any, log_of_x: Any) -> Any:
    """log(1 - exp(-x)) from log(x), even where x itself underflows to zero."""
    is_small = x < 1e-2
    small = jnp.where(is_small, x, 0.0)
    return jnp.where(is_small, log_of_x - small / 2 + small * small / 24, log1mexp(jnp.where(is_small, 1.0, x)))


def log1p_square(x: Any) -> Any:
    """log(1 + x**2), also where the square overflows."""
    is_large = jnp.abs(x) > 1e3
    large = jnp.where(is_large, jnp.abs(x), 1e3)
    near = jnp.where(is_large, 0.0, x)
    return jnp.where(is_large, 2 * jnp.log(large) + jnp.log1p((1 / large) ** 2), jnp.log1p(near * near))


# -- C. Loader, "Fast and accurate computation of binomial probabilities" (2000) ------------------------------------


def stirling_error(n: Any) -> Any:
    """log(gamma(n + 1)) minus Stirling's formula for it, for positive n."""
    is_large = n >= 8
    large = jnp.where(is_large, n, 8.0)
    w = 1 / (large * large)
    series = (1 / 12 + w * (-1 / 360 + w * (1 / 1260 + w * (-1 / 1680 + w * (1 / 1188 - w * 691 / 360360))))) / large
    small = jnp.where(is_large, 1.0, n)
    rest = special.gammaln(small + 1) - (small + 0.5) * jnp.log(small) + small - LOG_TWO_PI / 2
    return jnp.where(is_large, series, rest)


def deviance(x: Any, mean: Any) -> Any:
    """x log(x / mean) + mean - x for positive numbers, also where they are almost equal."""
    v = (x - mean) / (x + mean)
    is_near = jnp.abs(v) < 0.1
    u = jnp.where(is_near, v, 0.0)
    square = u * u
    series = 1 / 19
    for n in range(17, 1, -2):
        series = series * square + 1 / n
    near = (x - mean) * u + 2 * x * u * square * series
    ratio = jnp.where(is_near, 2.0, x / mean)
    return jnp.where(is_near, near, x * jnp.log(ratio) + mean - x)


def log_poisson(k: Any, mean: Any) -> Any:
    """log(mean**k exp(-mean) / gamma(k + 1)) for k >= 0 and a positive mean; k need not be an integer."""
    is_large = k >= 8
    small, large = jnp.where(is_large, 1.0, k), jnp.where(is_large, k, 8.0)
    plain = special.xlogy(small, mean) - mean - special.gammaln(small + 1)
    is_zero = mean <= 0
    safe = jnp.where(is_zero, 1.0, mean)
    saddle = -deviance(large, safe) - stirling_error(large) - (LOG_TWO_PI + jnp.log(large)) / 2
    return jnp.where(is_large, jnp.where(is_zero, -np.inf, saddle), plain)


def log_gamma_density(x: Any, a: Any) -> Any:
    """log(x**(a - 1) exp(-x) / gamma(a)) for x >= 0."""
    is_large = a >= 9
    plain = special.xlogy(jnp.where(is_large, 0.0, a - 1), x) - x - special.gammaln(jnp.where(is_large, 1.0, a))
    return jnp.where(is_large, log_poisson(jnp.where(is_large, a - 1, 8.0), x), plain)


def log_binomial(k: Any, left: Any, p: Any, q: Any) -> Any:
    """log(gamma(n + 1) / (gamma(k + 1) gamma(left + 1)) p**k q**left), for n = k + left and p + q = 1."""
    is_plain = (k < 8) | (left < 8)
    # the coefficient is a beta function, which is accurate for large n, too
    less, more = jnp.where(is_plain, k, 1.0), jnp.where(is_plain, left, 1.0)
    plain = -special.betaln(less + 1, more + 1) - jnp.log(less + more + 1)
    plain = plain + jnp.where(q < p, special.xlog1py(less, -q), special.xlogy(less, p))
    plain = plain + jnp.where(p < q, special.xlog1py(more, -p), special.xlogy(more, q))
    a, b = jnp.where(is_plain, 8.0, k), jnp.where(is_plain, 8.0, left)
    total = a + b
    is_edge = (p <= 0) | (q <= 0)
    p, q = jnp.where(is_edge, 0.5, p), jnp.where(is_edge, 0.5, q)
    saddle = stirling_error(total) - stirling_error(a) - stirling_error(b)
    saddle = saddle - deviance(a, total * p) - deviance(b, total * q)
    saddle = saddle + (jnp.log(total) - jnp.log(a) - jnp.log(b) - LOG_TWO_PI) / 2
    return jnp.where(is_plain, plain, jnp.where(is_edge, -np.inf, saddle))


# -- incomplete gamma and beta functions ----------------------------------------------------------------------------


def in_double(f: Callable[..., Any]) -> Callable[..., Any]:
    """f computed in float64, in which probabilities down to 1e-300 have finite logarithms."""

    def computed(*operands: Any) -> Any:
        dtype = type_of(operands[0]).dtype
        return cast(f(*[cast(x, dtypes.float64) for x in operands]), dtype)

    return computed


def _fraction(terms: Iterable[tuple[Any, Any]], last: Any) -> Any:
    """The continued fraction b1 + a1 / (b2 + a2 / (...)), from pairs (a, b), the last pair first."""
    for a, b in terms:
        last = b + a / last
    return last


_TINY = 1e-290  # smaller probabilities are computed as the density times a continued fraction of _STEPS terms
_STEPS = 20


def _far(probability: Any, far: Any) -> Any:
    is_far = probability < _TINY
    return jnp.where(is_far, far, jnp.log(jnp.where(is_far, 0.5, probability)))


@in_double
def log_gammaincc(a: Any, x: Any) -> Any:
    """The log of the regularized upper incomplete gamma function; if tiny, by Legendre's continued fraction."""
    is_far = (x > a + 1) & (x > 100) & (x < np.inf)
    far_a, far_x = jnp.where(is_far, a, 1.0), jnp.where(is_far, x, 800.0)
    steps = ((-n * (n - far_a), far_x + (2 * n - 1) - far_a) for n in range(_STEPS, 0, -1))
    fraction = _fraction(steps, far_x + (2 * _STEPS + 1) - far_a)
    far = log_gamma_density(far_x, far_a) + jnp.log(far_x) - jnp.log(fraction)
    return _far(special.gammaincc(a, x), jnp.where(is_far, far, -np.inf))


@in_double
def log_gammainc(a: Any, x: Any) -> Any:
    """The log of the regularized lower incomplete gamma function; if tiny, by a continued fraction (DLMF 8.9.1)."""
    is_far = (x < a) & (x > 0)
    far_a, far_x = jnp.where(is_far, a, 2.0), jnp.where(is_far, x, 1.0)
    steps = ((-(far_a + j // 2) * far_x if j % 2 else j // 2 * far_x, far_a + (j - 1)) for j in range(_STEPS, 0, -1))
    fraction = _fraction(steps, far_a + _STEPS)
    far = log_gamma_density(far_x, far_a) + jnp.log(far_x) - jnp.log(fraction)
    return _far(special.gammainc(a, x), jnp.where(is_far, far, -np.inf))


def log_beta_density(a: Any, b: Any, x: Any, y: Any) -> Any:
    """log(x**(a - 1) y**(b - 1) / beta(a, b)), for x + y = 1."""
    is_large = (a >= 9) & (b >= 9)
    small_a, small_b = jnp.where(is_large, 1.0, a), jnp.where(is_large, 1.0, b)
    plain = special.xlogy(small_a - 1, x) + special.xlog1py(small_b - 1, -x) - special.betaln(small_a, small_b)
    k, left = jnp.where(is_large, a - 1, 8.0), jnp.where(is_large, b - 1, 8.0)
    return jnp.where(is_large, log_binomial(k, left, x, y) + jnp.log(k + left + 1), plain)


@in_double
def log_betainc(a: Any, b: Any, x: Any) -> Any:
    """The log of the regularized incomplete beta function; if tiny, by a continued fraction (DLMF 8.17.22)."""
    is_far = (x * (a + b + 2) < a + 1) & (x > 0)
    far_a, far_b, far_x = jnp.where(is_far, a, 1.0), jnp.where(is_far, b, 1.0), jnp.where(is_far, x, 0.25)

    def term(j: int) -> Any:
        m = j // 2
        if j % 2:
            return -(far_a + m) * (far_a + far_b + m) * far_x / ((far_a + 2 * m) * (far_a + 2 * m + 1))
        return m * (far_b - m) * far_x / ((far_a + 2 * m - 1) * (far_a + 2 * m))

    fraction = _fraction(((term(j), 1.0) for j in range(_STEPS, 0, -1)), 1.0)
    density = log_beta_density(far_a, far_b, far_x, 1 - far_x)
    far = density + jnp.log(far_x) + jnp.log1p(-far_x) - jnp.log(far_a) - jnp.log(fraction)
    return _far(special.betainc(a, b, x), jnp.where(is_far, far, -np.inf))
