"""Distributions on the whole real line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import type_of
from atled.numpy.promotion import cast
from atled.scipy import special
from atled.scipy.stats.family import INFINITE, LOG_TWO_PI, continuous
from atled.scipy.stats.log_tails import log1mexp, log1p_square, log_of_complement

norm = continuous(
    "norm",
    "the normal distribution",
    logpdf=lambda z: (z * z + LOG_TWO_PI) * -0.5,
    cdf=special.ndtr,
    logcdf=special.log_ndtr,
    sf=lambda z: special.ndtr(-z),
    logsf=lambda z: special.log_ndtr(-z),
    ppf=special.ndtri,
    isf=lambda q: -special.ndtri(q),
)


# -- slow tails -------------------------------------------------------------------------------------------------------


def _cauchy_log(z: Any) -> Any:
    """The logarithm of the Cauchy distribution function at z, computed from the smaller tail."""
    size = jnp.abs(z)
    is_far = size > 1e3
    inverse = 1 / jnp.where(is_far, size, 1e3)
    square = inverse * inverse
    tail = jnp.arctan2(1.0, jnp.where(is_far, 1.0, size)) / math.pi
    # for large size, a series of log(arctan(1 / size)), whose derivative is accurate, too
    log_tail = square * (square * 13 / 90 - 1 / 3) - jnp.log(jnp.where(is_far, size, 1e3)) - math.log(math.pi)
    lower = jnp.where(is_far, log_tail, jnp.log(tail))
    return jnp.where(z < 0, lower, jnp.log1p(-jnp.where(is_far, jnp.arctan(inverse) / math.pi, tail)))


def _cauchy_quantile(q: Any) -> Any:
    is_low, is_high = q < 0.25, q > 0.75
    tail = jnp.where(is_low, q, jnp.where(is_high, 1 - q, 0.25))
    far = 1 / jnp.tan(tail * math.pi)
    middle = jnp.tan((jnp.where(is_low | is_high, 0.5, q) - 0.5) * math.pi)
    return jnp.where(is_low, -far, jnp.where(is_high, far, middle))


cauchy = continuous(
    "cauchy",
    "the Cauchy distribution",
    logpdf=lambda z: -math.log(math.pi) - log1p_square(z),
    cdf=lambda z: jnp.arctan2(1.0, -z) / math.pi,
    logcdf=_cauchy_log,
    sf=lambda z: jnp.arctan2(1.0, z) / math.pi,
    logsf=lambda z: _cauchy_log(-z),
    ppf=_cauchy_quantile,
    isf=lambda q: -_cauchy_quantile(q),
)


def _student(z: Any, df: Any) -> Any:
    log_tail = log1p_square(z / jnp.sqrt(df)) * (df + 1)
    return -special.betaln(0.5, df / 2) - (jnp.log(df) + log_tail) / 2


t = continuous(
    "t", "Student's t distribution with df degrees of freedom", "df", allows=lambda df: df > 0, logpdf=_student
)


# -- exponential tails ------------------------------------------------------------------------------------------------

laplace = continuous(
    "laplace",
    "the Laplace distribution",
    logpdf=lambda z: -jnp.abs(z) - math.log(2),
    cdf=lambda z: jnp.where(z < 0, jnp.exp(-jnp.abs(z)) / 2, 1 - jnp.exp(-jnp.abs(z)) / 2),
)

logistic = continuous(
    "logistic",
    "the logistic distribution",
    variables={"ppf": "x", "isf": "x"},
    logpdf=lambda z: -jnp.abs(z) - 2 * jnp.log1p(jnp.exp(-jnp.abs(z))),
    cdf=special.expit,
    sf=lambda z: special.expit(-z),
    ppf=special.logit,
    isf=lambda q: -special.logit(q),
)

_GUMBEL: dict[str, Any] = {  # functions of gumbel_r in terms of y = -z; gumbel_l is its mirror image
    "logpdf": lambda y: y - jnp.exp(y),
    "logcdf": lambda y: -jnp.exp(y),
    "cdf": lambda y: jnp.exp(-jnp.exp(y)),
    "sf": lambda y: -jnp.expm1(-jnp.exp(y)),
    "logsf": lambda y: log_of_complement(jnp.exp(y), y),
}
_mirrored = {"logpdf": "logpdf", "logcdf": "logsf", "cdf": "sf", "sf": "cdf", "logsf": "logcdf"}
_right: dict[str, Any] = {name: lambda z, f=f: f(-z) for name, f in _GUMBEL.items()}
gumbel_r = continuous(
    "gumbel_r",
    "the Gumbel distribution of maxima",
    variables={"ppf": "p"},
    ppf=lambda p: -jnp.log(-jnp.log(p)),
    **_right,
)
gumbel_l = continuous(
    "gumbel_l",
    "the Gumbel distribution of minima",
    variables={"ppf": "p"},
    ppf=lambda p: jnp.log(-jnp.log1p(-p)),
    **{name: _GUMBEL[other] for name, other in _mirrored.items()},
)


def _power(x: Any, beta: Any) -> Any:
    """abs(x)**beta, with a zero derivative with respect to beta at x = 0."""
    size = jnp.abs(x)
    return jnp.where(size == 0, 0.0, jnp.where(size == 0, 1.0, size) ** beta)


def _gennorm_probability(x: Any, beta: Any) -> Any:
    tail = special.gammaincc(1 / beta, _power(x, beta)) / 2
    return jnp.where(x < 0, tail, 1 - tail)


gennorm = continuous(
    "gennorm",
    "the generalized normal distribution with exponent beta",
    "beta",
    allows=lambda beta: beta > 0,
    place="",
    logpdf=lambda x, beta: jnp.log(beta / 2) - special.gammaln(1 / beta) - _power(x, beta),
    cdf=_gennorm_probability,
)


# -- the normal distribution between bounds ---------------------------------------------------------------------------


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability between a and b, for a < b, accurate also if both are in one tail."""
    is_right = a > 0
    low, high = jnp.where(is_right, -b, a), jnp.where(is_right, -a, b)
    is_tail = high <= 0
    upper, lower = (special.log_ndtr(jnp.where(is_tail, v, w)) for v, w in ((high, -1.0), (low, -2.0)))
    has_lower = lower > -INFINITE
    tail = jnp.where(has_lower, upper + log1mexp(upper - jnp.where(has_lower, lower, -3.0)), upper)
    return jnp.where(is_tail, tail, jnp.log1p(-special.ndtr(low) - special.ndtr(-high)))


def _between(a: Any, b: Any) -> Any:
    return a < b


def _truncated(log_part: Any) -> Any:
    """A formula log_part(z, a, b) in float64, because z, a and b may be almost equal; z is clipped to [a, b]."""

    def formula(z: Any, a: Any, b: Any) -> Any:
        z, low, high = (cast(v, dtypes.float64) for v in (z, a, b))
        is_fine = low < high
        low, high = jnp.where(is_fine, low, -1.0), jnp.where(is_fine, high, 1.0)
        return cast(log_part(jnp.clip(z, low, high), low, high), type_of(a).dtype)

    return formula


def _log_below(z: Any, a: Any, b: Any) -> Any:
    """The log of the probability below z, computed from the probability above z if that is small."""
    whole = _log_mass(a, b)
    is_low, is_high = z <= a, z >= b
    safe = jnp.where(is_low | is_high, _middle(a, b), z)
    below, above = _log_mass(a, safe) - whole, _log_mass(safe, b) - whole
    is_most = below > -0.1
    out = jnp.where(is_most, jnp.log1p(-jnp.exp(jnp.where(is_most, above, -3.0))), below)
    return jnp.where(is_low, -np.inf, jnp.where(is_high, 0.0, out))


def _middle(a: Any, b: Any) -> Any:
    low, high = jnp.maximum(a, jnp.minimum(b, 0) - 1e3), jnp.minimum(b, jnp.maximum(a, 0) + 1e3)
    return (low + high) / 2


_log_above = lambda z, a, b: _log_below(-z, -b, -a)  # noqa: E731
truncnorm = continuous(
    "truncnorm",
    "the normal distribution truncated to the range from a to b",
    "a b",
    support=lambda a, b: (a, b),
    allows=_between,
    logpdf=_truncated(lambda z, a, b: (z * z + LOG_TWO_PI) * -0.5 - _log_mass(a, b)),
    logcdf=_truncated(_log_below),
    logsf=_truncated(_log_above),
    cdf=_truncated(lambda z, a, b: jnp.exp(_log_below(z, a, b))),
    sf=_truncated(lambda z, a, b: jnp.exp(_log_above(z, a, b))),
)
