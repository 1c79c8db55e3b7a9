"""SciPy's special functions; those that need loops are in the files next to this one.

They are accurate in the tails, and so are their derivatives: formulas change with the range, and each range gets
operands that are harmless to the others. Half precision computes in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, type_of
from atled.core.axes import check_axes
from atled.core.trace import bind
from atled.higher_order.looped import in_double
from atled.nn import functions as nn
from atled.numpy.family import to_bool
from atled.numpy.promotion import broadcast, broadcast_to, cast, operand_type, promote_inexact
from atled.ops import approximation, conversion, elementary, reduction, shape
from atled.ops import elementwise as ew
from atled.ops import special as ops
from atled.ops.approximation import STIRLING, polynomial, value
from atled.scipy.harmonics import bernoulli, bessel_jn, sph_harm_y
from atled.scipy.hypergeometric import hyp1f1, hyp2f1, poch
from atled.scipy.incomplete import betainc, gammainc, gammaincc
from atled.scipy.integrals import dawsn, exp1, expi, expn, fresnel, owens_t, sici, spence, wofz
from atled.scipy.operands import real_operands
from atled.staging.jit import library_function

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn", "digamma",
    "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi", "expit", "expn", "factorial", "fresnel",
    "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e",
    "kl_div", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri",
    "owens_t", "poch", "polygamma", "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip

_HALF = math.sqrt(0.5)
_LOG_TWO_PI = math.log(2 * math.pi)


# -- operands ---------------------------------------------------------------------------------------------------------


def _real(name: str, *operands: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """Real operands in one shape and in at least single precision, and what brings a result into their dtype."""
    found = real_operands(name, *operands)
    dtype = type_of(found[0]).dtype
    if dtypes.bits(dtype) >= 32:
        return found, lambda x: x
    return [cast(x, dtypes.float32) for x in found], lambda x: conversion.convert(x, dtype)


def _all(*conditions: Any) -> Any:
    out = conditions[0]
    for c in conditions[1:]:
        out = ew.logical_and(out, c)
    return out


# -- error function and normal distribution ---------------------------------------------------------------------------


@library_function(is_thin=True)
def erf(x: Any) -> Array:
    """The error function.

    >>> round(float(erf(1.0)), 3)
    0.843
    """
    return ops.erf(promote_inexact("erf", x)[0])


@library_function(is_thin=True)
def erfc(x: Any) -> Array:
    """1 - erf(x), exact in the tail.

    >>> float(erfc(9.0)) > 0, float(1 - erf(9.0)) > 0
    (True, False)
    """
    return ops.erfc(promote_inexact("erfc", x)[0])


@library_function
def erfcx(x: Any) -> Array:
    """exp(x**2) * erfc(x), which neither over- nor underflows for positive x.

    >>> round(float(erfcx(20.0)), 3)
    0.028
    """
    (x,), back = _real("erfcx", x)
    return back(approximation.erfcx(x))


# Rational approximations of the normal quantile: M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988)
_MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
_OUTSIDE = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


def _quantile(middle: Any, tail: Any) -> Any:
    """The normal quantile at 1/2 + middle, where tail, the smaller of that and its complement, is given exactly."""
    ratio = lambda x, c: ew.div(polynomial(x, c[0]), polynomial(x, c[1]))  # noqa: E731
    is_near = ew.le(elementary.absolute(middle), 0.425)
    q = ew.select(is_near, middle, value(middle, 0))
    near = ew.mul(q, ratio(ew.sub(0.180625, ew.mul(q, q)), _MIDDLE))
    is_inside = ew.gt(tail, 0)
    p = ew.select(ew.logical_and(is_inside, ew.logical_not(is_near)), tail, value(tail, 0.05))
    r = elementary.sqrt(ew.neg(elementary.log(p)))
    is_far = ew.gt(r, 5.0)
    outside = ratio(ew.sub(ew.select(is_far, value(r, 5), r), 1.6), _OUTSIDE)
    far = ratio(ew.sub(ew.select(is_far, r, value(r, 5)), 5.0), _FAR)
    size = ew.select(is_far, far, outside)
    is_end = ew.eq(tail, 0)
    pole = ew.neg(elementary.log(ew.select(is_end, tail, value(tail, 1))))  # infinite, and so is its slope
    size = ew.select(is_end, pole, ew.select(is_inside, size, value(size, np.nan)))
    out = ew.select(ew.lt(middle, 0), ew.neg(size), size)
    return ew.select(is_near, near, out)


@library_function
def ndtri(p: Any) -> Array:
    """The x at which the normal distribution function is p.

    >>> import atled.numpy as jnp
    >>> ndtri(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    (p,), back = _real("ndtri", p)
    middle = ew.sub(p, 0.5)
    return back(_quantile(middle, ew.select(ew.lt(middle, 0), p, ew.sub(1, p))))


@library_function
def erfinv(x: Any) -> Array:
    """The inverse of the error function.

    >>> round(float(erfinv(erf(0.5))), 3)
    0.5
    """
    (x,), back = _real("erfinv", x)
    tail = ew.mul(ew.sub(1, ew.select(ew.lt(x, 0), ew.neg(x), x)), 0.5)
    far = ew.mul(_quantile(ew.mul(x, 0.5), tail), _HALF)
    return back(ew.select(ew.lt(elementary.absolute(x), 0.7), approximation.erfinv_near(x), far))


@library_function
def erfcinv(x: Any) -> Array:
    """The inverse of the complementary error function, exact in its tail.

    >>> round(float(erfcinv(erfc(2.0))), 3)
    2.0
    """
    (x,), back = _real("erfcinv", x)
    p = ew.mul(x, 0.5)
    middle = ew.sub(0.5, p)
    return back(ew.mul(_quantile(middle, ew.select(ew.gt(middle, 0), p, ew.sub(1, p))), _HALF))


@library_function(is_thin=True)
def ndtr(x: Any) -> Array:
    """The distribution function of the standard normal distribution, exact in both tails.

    >>> round(float(ndtr(0.0)), 3), round(float(ndtr(1.96)), 3)
    (0.5, 0.975)
    """
    return ops.ndtr(promote_inexact("ndtr", x)[0])


@library_function(static=("series_order",), is_thin=True)
def log_ndtr(x: Any, series_order: int = 3) -> Array:
    """The logarithm of the normal distribution function, exact in both tails.

    `series_order` is there for compatibility: no series is cut off.

    >>> import atled.numpy as jnp
    >>> round(float(log_ndtr(jnp.float32(-100.0))), 1)
    -5005.5
    """
    return ops.log_ndtr(promote_inexact("log_ndtr", x)[0])


# -- gamma and its relatives ------------------------------------------------------------------------------------------


@library_function
def gammaln(x: Any) -> Array:
    """The logarithm of the size of the gamma function.

    >>> round(float(gammaln(5.0)), 3), round(math.log(24), 3)
    (3.178, 3.178)
    """
    (x,), back = _real("gammaln", x)
    return back(ops.lgamma(x))


@library_function
def loggamma(x: Any) -> Array:
    """The logarithm of the gamma function of a positive number; NaN for others. Complex numbers are not supported.

    >>> round(float(loggamma(5.0)), 3)
    3.178
    """
    (x,), back = _real("loggamma", x)
    is_positive = ew.gt(x, 0)
    return back(ew.select(is_positive, ops.lgamma(ew.select(is_positive, x, value(x, 1))), value(x, np.nan)))


def _positive_gamma(x: Any) -> Any:
    """The gamma function of positive numbers, by Stirling's formula; that of x + 8 and a product for x below 8."""
    is_low = ew.lt(x, 8)
    shift = ew.select(is_low, value(x, 8), value(x, 0))
    z = ew.maximum(ew.add(x, shift), value(x, 0))  # the compiler would undo a plain sum
    lost = ew.mul(ew.sub(x, ew.sub(z, shift)), elementary.log(z))
    root = elementary.pow(z, ew.mul(ew.sub(z, 0.5), 0.5))  # in two factors, which do not overflow before the result
    series = ew.div(polynomial(ew.div(1, ew.mul(z, z)), STIRLING), z)
    more = ew.mul(ew.mul(elementary.exp(series), ew.add(lost, 1)), math.sqrt(2 * math.pi))
    out = ew.mul(ew.mul(ew.mul(root, elementary.exp(ew.neg(z))), root), more)
    product = ew.select(is_low, x, value(x, 1))
    for k in range(1, 8):
        product = ew.mul(product, ew.select(is_low, ew.add(x, k), value(x, 1)))
    return ew.div(out, product)


def _sine_of_turns(x: Any) -> Any:
    """sin(pi x), exact for large x."""
    whole = bind(ew.StopGradient(), elementary.round_even(x))
    half = ew.mul(whole, 0.5)
    is_odd = ew.ne(elementary.floor(half), half)
    out = elementary.sin(ew.mul(ew.sub(x, whole), math.pi))
    return ew.select(is_odd, ew.neg(out), out)


@library_function
def gamma(x: Any) -> Array:
    """The gamma function.

    >>> import atled.numpy as jnp
    >>> bool(abs(gamma(jnp.float32(5.0)) - 24) < 1e-4)
    True
    """
    (x,), back = _real("gamma", x)
    return back(in_double(_gamma)(x))


def _gamma(x: Any) -> Any:
    size = elementary.absolute(x)
    limit = value(x, 172.5)  # beyond the largest operand with a finite result; NaN and infinity take their own way
    is_large, is_zero = ew.gt(size, limit), ew.eq(x, 0)
    high = _positive_gamma(ew.select(is_large, limit, ew.select(is_zero, value(x, 1), size)))
    high = ew.select(is_large, value(x, np.inf), high)
    is_low = ew.lt(x, 0)
    safe = ew.select(is_low, x, value(x, -0.5))
    low = ew.div(-math.pi, ew.mul(ew.mul(safe, _sine_of_turns(safe)), high))  # by reflection
    is_pole = ew.logical_or(ew.eq(x, value(x, -np.inf)), _all(is_low, ew.eq(elementary.floor(x), x)))
    out = ew.select(is_low, ew.select(is_pole, value(x, np.nan), low), high)
    return ew.select(is_zero, ew.div(1, x), out)


@library_function
def gammasgn(x: Any) -> Array:
    """The sign of the gamma function; NaN where it has poles, but for zero, which has the sign it is given with.

    >>> import atled.numpy as jnp
    >>> gammasgn(jnp.array([-1.5, -0.5, 2.0]))
    Array([ 1., -1.,  1.], dtype=float32)
    """
    (x,), back = _real("gammasgn", x)
    one, minus = value(x, 1), value(x, -1)
    whole = elementary.floor(x)
    half = ew.mul(whole, 0.5)
    sign = ew.select(ew.logical_or(ew.ge(x, 0), ew.eq(elementary.floor(half), half)), one, minus)
    sign = ew.select(ew.eq(x, 0), ew.select(ew.lt(ew.div(one, x), 0), minus, one), sign)
    is_pole = ew.logical_or(_all(ew.lt(x, 0), ew.eq(whole, x)), ew.ne(x, x))
    return back(ew.select(is_pole, value(x, np.nan), sign))


@library_function(static=("exact",))
def factorial(n: Any, exact: bool = False) -> Array:
    """gamma(n + 1), and zero for negative n; always floating.

    >>> import atled.numpy as jnp
    >>> factorial(jnp.array([0, 3, 5])).round()
    Array([  1.,   6., 120.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial: results are floating; exact=True is not supported.")
    (n,), back = _real("factorial", n)
    is_negative = ew.lt(n, 0)
    out = gamma(ew.add(ew.select(is_negative, value(n, 0), n), 1))
    return back(ew.select(is_negative, value(n, 0), out))


@library_function
def digamma(x: Any) -> Array:
    """The derivative of the logarithm of the gamma function.

    >>> round(float(digamma(1.0)), 3)
    -0.577
    """
    (x,), back = _real("digamma", x)
    return back(ops.digamma(x))


@library_function
def polygamma(n: Any, x: Any) -> Array:
    """Derivative number n of digamma at x, for whole n; differentiable by x.

    >>> round(float(polygamma(1, 1.0)), 3)
    1.645
    """
    (n, x), back = _real("polygamma", n, x)
    is_far = _all(ew.eq(x, value(x, np.inf)), ew.gt(n, 0))
    return back(ew.select(is_far, value(x, 0), ops.polygamma(n, ew.select(is_far, value(x, 1), x))))


@library_function
def zeta(x: Any, q: Any = None) -> Array:
    """The sum of (k + q)**-x over k from 0 on, for x > 1; q is 1 by default. Differentiable by q.

    >>> round(float(zeta(2.0)), 3), round(float(zeta(2.0, 2.0)), 3)
    (1.645, 0.645)
    """
    (x, q), back = _real("zeta", x, 1.0 if q is None else q)
    is_far = ew.eq(x, value(x, np.inf))  # only the first term is left, and whether it is below, at or above one
    first = ew.select(ew.eq(q, 1), value(q, 1), ew.select(ew.gt(q, 1), value(q, 0), value(q, np.inf)))
    first = ew.select(ew.eq(q, q), first, q)
    return back(ew.select(is_far, first, ops.zeta(ew.select(is_far, value(x, 2), x), q)))


def _stirling(x: Any) -> Any:
    """What is left of log(gamma(x)) after Stirling's formula, for x from 8 on."""
    return ew.div(polynomial(ew.div(1, ew.mul(x, x)), STIRLING), x)


def _stirling_fall(x: Any, y: Any) -> Any:
    """_stirling(y) - _stirling(x + y), exact for small x: a divided difference."""
    u, v = ew.div(1, ew.add(x, y)), ew.div(1, y)
    p, q = ew.mul(u, u), ew.mul(v, v)
    value: Any = STIRLING[-1]
    slope: Any = 0.0
    for c in STIRLING[-2::-1]:
        slope, value = ew.add(ew.mul(p, slope), value), ew.add(ew.mul(q, value), c)
    return ew.mul(ew.mul(x, ew.mul(u, v)), ew.add(value, ew.mul(ew.mul(u, ew.add(u, v)), slope)))


def _betaln(a: Any, b: Any) -> Any:
    is_first = ew.le(a, b)
    low, high = ew.select(is_first, a, b), ew.select(is_first, b, a)
    plain = ew.sub(ew.add(ops.lgamma(low), ops.lgamma(high)), ops.lgamma(ew.add(low, high)))
    # large logarithms must not be subtracted, nor almost equal ones: their leading terms are, on paper
    is_tiny = _all(ew.gt(low, 0), ew.lt(low, 0.1), ew.lt(high, 8))
    is_large = ew.logical_or(_all(ew.gt(low, 0), ew.ge(high, 8)), is_tiny)
    x = ew.select(is_large, low, value(low, 8))
    y = ew.select(is_large, high, value(low, 8))
    steps: Any = value(low, 1)
    for i in range(8):  # gamma(x + y) / gamma(y), eight steps higher
        start = ew.add(ew.select(is_tiny, high, value(high, 1)), i)
        steps = ew.mul(steps, ew.add(ew.div(ew.select(is_tiny, low, value(low, 0)), start), 1))
    y = ew.select(is_tiny, ew.add(y, 8), y)
    total = ew.add(x, y)
    shared = ew.sub(_stirling_fall(x, y), ew.mul(ew.sub(y, 0.5), elementary.log1p(ew.div(x, y))))
    one_sided = ew.sub(ew.add(ops.lgamma(x), x), ew.mul(x, elementary.log(total)))
    one_sided = ew.add(one_sided, elementary.log(steps))
    both_large = ew.ge(x, 8)
    z = ew.select(both_large, x, value(x, 8))
    two_sided = ew.sub(_stirling(z), ew.mul(ew.sub(z, 0.5), elementary.log1p(ew.div(y, z))))
    two_sided = ew.add(two_sided, ew.sub(_LOG_TWO_PI / 2, ew.mul(elementary.log(total), 0.5)))
    return ew.select(is_large, ew.add(shared, ew.select(both_large, two_sided, one_sided)), plain)


@library_function
def betaln(a: Any, b: Any) -> Array:
    """The logarithm of the size of the beta function, also where gamma(a), gamma(b) and gamma(a + b) are huge.

    >>> round(float(betaln(1e4, 1e4)), 1)
    -13866.3
    """
    (a, b), back = _real("betaln", a, b)
    return back(_betaln(a, b))


@library_function
def beta(a: Any, b: Any) -> Array:
    """gamma(a) gamma(b) / gamma(a + b).

    >>> round(float(beta(2.0, 3.0) * 12), 3)
    1.0
    """
    (a, b), back = _real("beta", a, b)
    sign = ew.mul(ew.mul(gammasgn(a), gammasgn(b)), gammasgn(ew.add(a, b)))
    return back(ew.mul(sign, elementary.exp(_betaln(a, b))))


@library_function(static=("repetition",))
def comb(N: Any, k: Any, *, repetition: bool = False) -> Array:  # noqa: N803
    """In how many ways k of N things can be chosen, floating; with `repetition`, each any number of times.

    >>> import atled.numpy as jnp
    >>> comb(jnp.array([4.0, 5.0]), 2.0).round()
    Array([ 6., 10.], dtype=float32)
    """
    (n, k), back = _real("comb", N, k)
    if repetition:
        n = ew.sub(ew.add(n, k), 1)
    fits = _all(ew.le(k, n), ew.ge(n, 0), ew.ge(k, 0))
    left = ew.select(fits, ew.sub(n, k), value(n, 0))
    k = ew.select(fits, k, value(n, 0))
    out = ew.div(elementary.exp(ew.neg(_betaln(ew.add(left, 1), ew.add(k, 1)))), ew.add(ew.add(left, k), 1))
    return back(ew.select(fits, out, value(n, 0)))


@library_function(static=("d",))
def _multigammaln(a: Any, d: int) -> Any:
    (a,), back = _real("multigammaln", a)
    out: Any = d * (d - 1) / 4 * math.log(math.pi)
    is_inside = ew.gt(a, (d - 1) / 2)
    safe = ew.select(is_inside, a, value(a, d))
    for j in range(d):
        out = ew.add(ops.lgamma(ew.sub(safe, j / 2)), out)
    return back(ew.select(is_inside, out, value(a, np.nan)))


def multigammaln(a: Any, d: Any) -> Array:
    """The logarithm of the gamma function of d dimensions, for a fixed integer d and a above (d - 1) / 2.

    >>> round(float(multigammaln(5.0, 1)), 3), round(float(multigammaln(5.0, 2)), 3)
    (3.178, 6.204)
    """
    d = d.__index__()
    if d < 1:
        raise ValueError(f"multigammaln: the dimension must be positive; got {d}.")
    return _multigammaln(a, d)


# -- Bessel functions -------------------------------------------------------------------------------------------------


@library_function
def i0e(x: Any) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 0.

    >>> round(float(i0e(100.0)), 3)
    0.04
    """
    (x,), back = _real("i0e", x)
    return back(ops.bessel_i0e(x))


@library_function
def i0(x: Any) -> Array:
    """The modified Bessel function of order 0.

    >>> round(float(i0(1.0)), 3)
    1.266
    """
    (x,), back = _real("i0", x)
    return back(ew.mul(elementary.exp(elementary.absolute(x)), ops.bessel_i0e(x)))


@library_function
def i1e(x: Any) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 1.

    >>> round(float(i1e(100.0)), 3)
    0.04
    """
    (x,), back = _real("i1e", x)
    return back(ops.bessel_i1e(x))


@library_function
def i1(x: Any) -> Array:
    """The modified Bessel function of order 1.

    >>> round(float(i1(1.0)), 3)
    0.565
    """
    (x,), back = _real("i1", x)
    return back(ew.mul(elementary.exp(elementary.absolute(x)), ops.bessel_i1e(x)))


# -- logistic function, entropies, powers -----------------------------------------------------------------------------


@library_function(is_thin=True)
def expit(x: Any) -> Array:
    """1 / (1 + exp(-x)).

    >>> round(float(expit(0.0)), 3), round(float(expit(2.0)), 3)
    (0.5, 0.881)
    """
    return elementary.logistic(promote_inexact("expit", x)[0])


@library_function
def logit(x: Any) -> Array:
    """log(x / (1 - x)), exact near 0, 1/2 and 1.

    >>> import atled.numpy as jnp
    >>> logit(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    (x,), back = _real("logit", x)
    is_near = _all(ew.gt(x, 0.3), ew.lt(x, 0.65))
    middle = ew.mul(ew.sub(ew.select(is_near, x, value(x, 0.5)), 0.5), 2)
    near = ew.sub(elementary.log1p(middle), elementary.log1p(ew.neg(middle)))
    far = ew.select(is_near, value(x, 0.25), x)
    return back(ew.select(is_near, near, ew.sub(elementary.log(far), elementary.log1p(ew.neg(far)))))


def _times_logarithm(x: Any, y: Any, log: Callable[[Any], Any], lowest: float) -> Any:
    """x log(y), and zero where x is zero, even if the logarithm is not finite there."""
    is_zero = ew.eq(x, 0)
    if type_of(y).kind == "c":
        is_lost = ew.logical_and(is_zero, ew.eq(y, lowest))
    else:
        is_lost = _all(is_zero, ew.logical_or(ew.le(y, lowest), ew.eq(y, value(y, np.inf))))
    return ew.mul(x, log(ew.select(is_lost, value(y, lowest + 1), y)))


@library_function
def xlogy(x: Any, y: Any) -> Array:
    """x log(y), and zero where x is zero; derivatives are finite there, also for y = 0.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32)
    """
    x, y = broadcast("xlogy", promote_inexact("xlogy", x, y))
    return _times_logarithm(x, y, elementary.log, 0.0)


@library_function
def xlog1py(x: Any, y: Any) -> Array:
    """x log(1 + y), and zero where x is zero; derivatives are finite there, also for y = -1.

    >>> import atled.numpy as jnp
    >>> xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.0]))
    Array([0., 0.], dtype=float32)
    """
    x, y = broadcast("xlog1py", promote_inexact("xlog1py", x, y))
    return _times_logarithm(x, y, elementary.log1p, -1.0)


@library_function
def entr(x: Any) -> Array:
    """-x log(x), zero at zero and minus infinity below. The infinite slope at zero is taken to be zero.

    >>> import atled.numpy as jnp
    >>> entr(jnp.array([-1.0, 0.0])), round(float(entr(0.5)), 3)
    (Array([-inf,   0.], dtype=float32), 0.347)
    """
    (x,), back = _real("entr", x)
    is_inside = ew.logical_not(ew.le(x, 0))  # NaN is inside
    safe = ew.select(is_inside, x, value(x, 1))
    edge = ew.select(ew.eq(x, 0), value(x, 0), value(x, -np.inf))
    return back(ew.select(is_inside, ew.neg(ew.mul(safe, elementary.log(safe))), edge))


def _relative_entropy(p: Any, q: Any) -> tuple[Any, Any]:
    """p log(p / q) where both are positive, and its values elsewhere."""
    has_nan = ew.logical_or(ew.ne(p, p), ew.ne(q, q))
    is_inside = ew.logical_or(_all(ew.gt(p, 0), ew.gt(q, 0)), has_nan)
    is_zero = _all(ew.eq(p, 0), ew.ge(q, 0))
    x, y = ew.select(is_inside, p, value(p, 1)), ew.select(is_inside, q, value(q, 1))
    gap = ew.div(ew.sub(x, y), y)
    is_near = ew.lt(elementary.absolute(gap), 0.5)
    near = elementary.log1p(ew.select(is_near, gap, value(x, 0)))
    ratio = ew.div(x, y)
    info = dtypes.finfo(type_of(x).dtype)
    is_usual = ew.logical_and(ew.gt(ratio, float(info.tiny)), ew.lt(ratio, float(info.max)))
    far = ew.select(
        is_usual, elementary.log(ew.select(is_usual, ratio, value(x, 1))), ew.sub(elementary.log(x), elementary.log(y))
    )
    inside = ew.mul(x, ew.select(is_near, near, far))
    return is_inside, ew.select(is_inside, inside, ew.select(is_zero, value(p, 0), value(p, np.inf)))


@library_function
def rel_entr(p: Any, q: Any) -> Array:
    """p log(p / q), zero where p is zero, and infinite where p or q is negative, or q alone is zero.

    >>> import atled.numpy as jnp
    >>> rel_entr(jnp.array([0.5, 0.0, 0.5]), jnp.array([0.5, 0.5, 0.0]))
    Array([ 0.,  0., inf], dtype=float32)
    """
    (p, q), back = _real("rel_entr", p, q)
    return back(_relative_entropy(p, q)[1])


@library_function
def kl_div(p: Any, q: Any) -> Array:
    """p log(p / q) - p + q, which is never negative; its values at the edges follow those of `rel_entr`.

    >>> import atled.numpy as jnp
    >>> kl_div(jnp.array([0.5, 0.0]), jnp.array([0.5, 0.25]))
    Array([0.  , 0.25], dtype=float32)
    """
    (p, q), back = _real("kl_div", p, q)
    _, found = _relative_entropy(p, q)
    is_infinite = ew.eq(found, value(found, np.inf))
    return back(ew.select(is_infinite, found, ew.add(ew.sub(found, ew.select(is_infinite, value(p, 0), p)), q)))


def _relative_exponential(x: Any) -> Any:
    """(exp(x) - 1) / x, and its limit at zero with all derivatives."""
    is_small = ew.lt(elementary.absolute(x), 0.02)
    small, large = ew.select(is_small, x, value(x, 0)), ew.select(is_small, value(x, 1), x)
    series = polynomial(small, [1 / math.factorial(k + 1) for k in range(9)])
    return ew.select(is_small, series, ew.div(elementary.expm1(large), large))


@library_function
def boxcox(x: Any, lmbda: Any) -> Array:
    """(x**lmbda - 1) / lmbda, which is log(x) for lmbda = 0.

    >>> import atled.numpy as jnp
    >>> boxcox(jnp.array([1.0, 3.0]), 2.0).round()
    Array([0., 4.], dtype=float32)
    """
    (x, power), back = _real("boxcox", x, lmbda)
    logarithm = elementary.log(x)
    return back(_power_transform(logarithm, power))


@library_function
def boxcox1p(x: Any, lmbda: Any) -> Array:
    """((1 + x)**lmbda - 1) / lmbda, which is log(1 + x) for lmbda = 0.

    >>> import atled.numpy as jnp
    >>> boxcox1p(jnp.array([0.0, 2.0]), 2.0).round()
    Array([0., 4.], dtype=float32)
    """
    (x, power), back = _real("boxcox1p", x, lmbda)
    return back(_power_transform(elementary.log1p(x), power))


def _power_transform(logarithm: Any, power: Any) -> Any:
    # at zero, -1 / power or minus infinity; at infinity, infinity or -1 / power
    is_low, is_high = (ew.eq(logarithm, value(logarithm, v)) for v in (-np.inf, np.inf))
    is_edge = ew.logical_or(is_low, is_high)
    safe = ew.select(is_edge, value(logarithm, 0), logarithm)
    is_bounded = ew.select(is_low, ew.gt(power, 0), ew.lt(power, 0))
    edge = ew.div(-1, ew.select(is_bounded, power, value(power, 1)))
    edge = ew.select(is_bounded, edge, ew.select(ew.eq(power, power), logarithm, power))
    return ew.select(is_edge, edge, ew.mul(safe, _relative_exponential(ew.mul(power, safe))))


# -- sums of exponentials ---------------------------------------------------------------------------------------------


def _plain_axis(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def softmax(x: Any, /, *, axis: Any = None) -> Array:
    """exp(x) scaled to sum to one over axes, by default all.

    >>> import atled.numpy as jnp
    >>> softmax(jnp.zeros((2, 2)))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return nn.softmax(x, _plain_axis(axis))


def log_softmax(x: Any, /, *, axis: Any = None) -> Array:
    """log(softmax(x)), without losing small probabilities; over all axes by default.

    >>> import atled.numpy as jnp
    >>> log_softmax(jnp.array([0.0, -200.0]))
    Array([   0., -200.], dtype=float32)
    """
    return nn.log_softmax(x, _plain_axis(axis))


@library_function(static=("axis", "keepdims", "return_sign"))
def _complex_logsumexp(a: Any, axis: Any, b: Any, keepdims: bool, return_sign: bool, where: Any) -> Any:
    x, weight = promote_inexact("logsumexp", a, 1.0 if b is None else b)
    dims = type_of(x).shape
    if b is not None:
        x, weight = broadcast("logsumexp", [x, weight])
        dims = max(type_of(x).shape, type_of(weight).shape, key=len)
        x, weight = broadcast_to(x, dims), broadcast_to(weight, dims)
    real = dtypes.real_part(type_of(x).dtype)
    axes = check_axes("logsumexp", axis, len(dims))
    size = conversion.real(x)
    keep = None if where is None else broadcast_to(to_bool("logsumexp", where), dims)
    if keep is not None:
        size = ew.select(keep, size, np.asarray(-np.inf, real))
    top = bind(ew.StopGradient(), reduction.reduce_max(size, axes))
    top = ew.select(elementary.is_finite(top), top, np.zeros((), real))
    kept = tuple([i for i in range(len(dims)) if i not in axes])
    term = elementary.exp(ew.sub(x, cast(shape.broadcast(top, dims, kept), type_of(x).dtype)))
    term = term if b is None else ew.mul(term, weight)
    if keep is not None:
        term = ew.select(keep, term, np.zeros((), type_of(term).dtype))
    total = reduction.reduce_sum(term, axes)
    if return_sign:
        out = ew.add(elementary.log(elementary.absolute(total)), top)
    else:
        out = ew.add(elementary.log(total), cast(top, type_of(total).dtype))
    found = [out, elementary.sign(total)]
    if keepdims:
        found = [shape.reshape(v, [1 if i in axes else n for i, n in enumerate(dims)]) for v in found]
    return tuple(found) if return_sign else found[0]


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """log(sum(b * exp(a))) over axes, without overflow; with `return_sign`, the logarithm of the size, and the sign.

    >>> import atled.numpy as jnp
    >>> logsumexp(jnp.array([-jnp.inf, 0.0]))
    Array(0., dtype=float32)
    """
    axis = _plain_axis(axis)
    kinds = [operand_type("logsumexp", x).kind for x in (a, b) if x is not None]
    if "c" in kinds:
        return _complex_logsumexp(a, axis, b, keepdims, return_sign, where)
    return nn.logsumexp(a, axis, b, keepdims, return_sign, where)
