"""Distributions on a half line or an interval."""

from __future__ import annotations

import math
from typing import Any

import atled.numpy as jnp
from atled.scipy import special
from atled.scipy.stats import log_tails
from atled.scipy.stats.family import INFINITE, continuous

uniform = continuous(
    "uniform",
    "the uniform distribution",
    support=lambda: (0, 1),
    logpdf=lambda z: z * 0,
    cdf=lambda z: z,
    ppf=lambda q: q,
)

expon = continuous(
    "expon",
    "the exponential distribution",
    support=lambda: (0, INFINITE),
    logpdf=lambda z: -z,
    cdf=lambda z: -jnp.expm1(-z),
    logcdf=log_tails.log1mexp,
    sf=lambda z: jnp.exp(-z),
    logsf=lambda z: -z,
    ppf=lambda q: -jnp.log1p(-q),
)

pareto = continuous(
    "pareto",
    "the Pareto distribution",
    "b",
    support=lambda b: (1, INFINITE),
    inside=2.0,
    allows=lambda b: b > 0,
    logpdf=lambda z, b: jnp.log(b) - (b + 1) * jnp.log(z),
    cdf=lambda z, b: -jnp.expm1(-b * jnp.log(z)),
    logcdf=lambda z, b: log_tails.log1mexp(b * jnp.log(z)),
    sf=lambda z, b: jnp.exp(-b * jnp.log(z)),
    logsf=lambda z, b: -b * jnp.log(z),
    ppf=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)

gamma = continuous(
    "gamma",
    "the gamma distribution",
    "a",
    support=lambda a: (0, INFINITE),
    allows=lambda a: a > 0,
    logpdf=log_tails.log_gamma_density,
    cdf=lambda z, a: special.gammainc(a, z),
    logcdf=lambda z, a: log_tails.log_gammainc(a, z),
    sf=lambda z, a: special.gammaincc(a, z),
    logsf=lambda z, a: log_tails.log_gammaincc(a, z),
)

chi2 = continuous(
    "chi2",
    "the chi-squared distribution with df degrees of freedom",
    "df",
    support=lambda df: (0, INFINITE),
    allows=lambda df: df > 0,
    logpdf=lambda z, df: log_tails.log_gamma_density(z / 2, df / 2) - math.log(2),
    cdf=lambda z, df: special.gammainc(df / 2, z / 2),
    logcdf=lambda z, df: log_tails.log_gammainc(df / 2, z / 2),
    sf=lambda z, df: special.gammaincc(df / 2, z / 2),
    logsf=lambda z, df: log_tails.log_gammaincc(df / 2, z / 2),
)


@log_tails.in_double
def _log_above(z: Any, a: Any, b: Any) -> Any:
    return log_tails.log_betainc(b, a, 1 - z)


beta = continuous(
    "beta",
    "the beta distribution",
    "a b",
    support=lambda a, b: (0, 1),
    allows=lambda a, b: (a > 0) & (b > 0),
    logpdf=lambda z, a, b: log_tails.log_beta_density(a, b, z, 1 - z),
    cdf=lambda z, a, b: special.betainc(a, b, z),
    logcdf=lambda z, a, b: log_tails.log_betainc(a, b, z),
    sf=log_tails.in_double(lambda z, a, b: special.betainc(b, a, 1 - z)),
    logsf=_log_above,
)
