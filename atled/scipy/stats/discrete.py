"""Distributions of integers. Values that are not integers have probability zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core.array import type_of
from atled.numpy.promotion import cast
from atled.scipy import special
from atled.scipy.stats.family import INFINITE, counted, function, wide_operands
from atled.scipy.stats.log_tails import log_binomial, log_poisson
from atled.staging.jit import library_function


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


bernoulli = counted(
    "bernoulli",
    "the Bernoulli distribution with parameter p",
    "p",
    support=lambda p: (0, 1),
    allows=_is_probability,
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: 1 - p,
    with_place=False,
)


def _bernoulli_quantile(q: Any, p: Any) -> Any:
    is_inside = (q >= 0) & (q <= 1) & _is_probability(p)
    return jnp.where(is_inside, (q > 1 - p).astype(type_of(q).dtype), np.nan)


bernoulli["ppf"] = function(
    "bernoulli", "ppf", "q p", "the Bernoulli distribution with parameter p", _bernoulli_quantile
)

binom = counted(
    "binom",
    "the binomial distribution of successes in n trials",
    "n p",
    support=lambda n, p: (0, n),
    allows=lambda n, p: (n >= 0) & (n == jnp.floor(n)) & _is_probability(p),
    logpmf=lambda k, n, p: log_binomial(k, n - k, p, 1 - p),
)

geom = counted(
    "geom",
    "the geometric distribution of trials up to the first success",
    "p",
    support=lambda p: (1, INFINITE),
    allows=lambda p: (p > 0) & (p <= 1),
    logpmf=lambda k, p: special.xlog1py(k - 1, -p) + jnp.log(p),
)


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    """The log of the probability of k failures before success n: a binomial probability times n / (n + k)."""
    return log_binomial(k, n, 1 - p, p) + jnp.log(n / (n + k))


nbinom = counted(
    "nbinom",
    "the negative binomial distribution of failures before success n",
    "n p",
    support=lambda n, p: (0, INFINITE),
    allows=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    logpmf=_negative_binomial,
)


def _beta_binomial(k: Any, n: Any, a: Any, b: Any) -> Any:
    left = n - k
    coefficient = -special.betaln(left + 1, k + 1) - jnp.log1p(n)
    return coefficient + special.betaln(k + a, left + b) - special.betaln(a, b)


betabinom = counted(
    "betabinom",
    "the beta-binomial distribution of successes in n trials",
    "n a b",
    support=lambda n, a, b: (0, n),
    allows=lambda n, a, b: (n >= 0) & (n == jnp.floor(n)) & (a > 0) & (b > 0),
    logpmf=_beta_binomial,
)

_EVENTS = "the Poisson distribution with mean mu"
poisson = counted(
    "poisson",
    _EVENTS,
    "mu",
    support=lambda mu: (0, INFINITE),
    allows=lambda mu: mu >= 0,
    logpmf=log_poisson,
    cdf=lambda k, mu: special.gammaincc(k + 1, mu),
)


def _poisson_entropy(mu: Any, loc: Any) -> Any:
    """The entropy of the Poisson distribution: a sum if mu < 100, else a series in 1 / mu."""
    mu = jnp.broadcast_to(mu, jnp.broadcast_shapes(type_of(mu).shape, type_of(loc).shape))
    is_small = mu < 100
    mean = jnp.where(is_small, mu, 1.0)[..., None]
    k = jnp.arange(260, dtype=mean.dtype)  # up to 16 standard deviations above the mean 100
    log_p = log_poisson(k, mean)
    is_counted = log_p > -80
    total = -jnp.sum(jnp.where(is_counted, jnp.exp(log_p) * log_p, 0.0), -1)
    w = 1 / jnp.where(is_small, 100.0, mu)
    series = -w * (1 / 12 + w * (1 / 24 + w * (19 / 360 + w * (9 / 80 + w * 863 / 2520))))
    out = jnp.where(is_small, total, (math.log(2 * math.pi * math.e) - jnp.log(w)) / 2 + series)
    return jnp.where(mu >= 0, out, np.nan)


poisson["entropy"] = function("poisson", "entropy", "mu loc=0", _EVENTS, _poisson_entropy)


# -- of several kinds -------------------------------------------------------------------------------------------------


@library_function
def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    """The logarithm of the probability that n trials end x[i] times with outcome i, along the last axis."""
    for count in (x, n):
        if type_of(count).kind not in "biu":
            raise ValueError(f"multinomial.logpmf: x and n must be integers; got {type_of(x)} and {type_of(n)}.")
    (p,), dtype = wide_operands("multinomial.logpmf", p)
    wide = type_of(p).dtype
    is_whole = (jnp.sum(x, -1) == n) & jnp.all(jnp.asarray(x) >= 0, -1)
    x, n = jnp.maximum(cast(x, wide), 0), cast(n, wide)
    out = special.gammaln(n + 1) + jnp.sum(special.xlogy(x, p) - special.gammaln(x + 1), -1)
    return cast(jnp.where(is_whole, out, -INFINITE), dtype)


def _multinomial_pmf(x: Any, n: Any, p: Any) -> Any:
    """The probability that n trials end x[i] times with outcome i, along the last axis."""
    return jnp.exp(_multinomial_logpmf(x, n, p))


multinomial = {"logpmf": _multinomial_logpmf, "pmf": _multinomial_pmf}
