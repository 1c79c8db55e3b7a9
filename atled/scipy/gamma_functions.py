"""Gamma functions and functions built on them: `gamma`, `factorial`, `beta`, `comb`, `digamma`, `zeta`."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np

from atled.core.array import Array, ArrayLike
from atled.core.trace import bind
from atled.higher_order.elementwise_loops import in_double
from atled.ops import elementary
from atled.ops import elementwise as ew
from atled.ops import special as ops
from atled.ops.real_functions import STIRLING, polynomial, value
from atled.scipy.operand_promotion import all_of, wide_operands
from atled.staging.jit import library_function

_LOG_TWO_PI = math.log(2 * math.pi)


@library_function
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function.

    >>> round(float(gammaln(5.0)), 3), round(math.log(24), 3)
    (3.178, 3.178)
    """
    (x,), back = wide_operands("gammaln", x)
    return back(ops.lgamma(x))


@library_function
def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function of a positive number; infinite at zero, NaN below. Complex numbers are not
    supported.

    >>> round(float(loggamma(5.0)), 3)
    3.178
    """
    (x,), back = wide_operands("loggamma", x)
    is_positive = ew.ge(x, 0)
    return back(ew.select(is_positive, ops.lgamma(ew.select(is_positive, x, value(x, 1))), value(x, np.nan)))


def _positive_gamma(x: Any) -> Any:
    """The gamma function of positive numbers, by Stirling's formula; x below 8 is first shifted by 8."""
    is_low = ew.lt(x, 8)
    shift = ew.select(is_low, value(x, 8), value(x, 0))
    z = ew.maximum(ew.add(x, shift), value(x, 0))  # XLA would simplify (x + shift) - shift to x below
    lost = ew.mul(ew.sub(x, ew.sub(z, shift)), elementary.log(z))
    # two equal factors of a power, which overflow only if the result does
    root = elementary.pow(z, ew.mul(ew.sub(z, 0.5), 0.5))
    series = ew.div(polynomial(ew.div(1, ew.mul(z, z)), STIRLING), z)
    more = ew.mul(ew.mul(elementary.exp(series), ew.add(lost, 1)), math.sqrt(2 * math.pi))
    out = ew.mul(ew.mul(ew.mul(root, elementary.exp(ew.neg(z))), root), more)
    product = ew.select(is_low, x, value(x, 1))
    for k in range(1, 8):
        product = ew.mul(product, ew.select(is_low, ew.add(x, k), value(x, 1)))
    return ew.div(out, product)


def _sine_of_turns(x: Any) -> Any:
    """sin(pi x), accurate for large x, which is reduced to its distance from the nearest integer first."""
    whole = bind(ew.StopGradient(), elementary.round_even(x))
    half = ew.mul(whole, 0.5)
    is_odd = ew.ne(elementary.floor(half), half)
    out = elementary.sin(ew.mul(ew.sub(x, whole), math.pi))
    return ew.select(is_odd, ew.neg(out), out)


@library_function
def gamma(x: ArrayLike) -> Array:
    """The gamma function.

    >>> import atled.numpy as jnp
    >>> bool(abs(gamma(jnp.float32(5.0)) - 24) < 1e-4)
    True
    """
    (x,), back = wide_operands("gamma", x)
    return back(in_double(_gamma)(x))


def _gamma(x: Any) -> Any:
    size = elementary.absolute(x)
    limit = value(x, 172.5)  # larger operands overflow; NaN and infinity are handled separately
    is_large, is_zero = ew.gt(size, limit), ew.eq(x, 0)
    high = _positive_gamma(ew.select(is_large, limit, ew.select(is_zero, value(x, 1), size)))
    high = ew.select(is_large, value(x, np.inf), high)
    is_low = ew.lt(x, 0)
    safe = ew.select(is_low, x, value(x, -0.5))
    low = ew.div(-math.pi, ew.mul(ew.mul(safe, _sine_of_turns(safe)), high))  # by the reflection formula
    is_pole = ew.logical_or(ew.eq(x, value(x, -np.inf)), all_of(is_low, ew.eq(elementary.floor(x), x)))
    out = ew.select(is_low, ew.select(is_pole, value(x, np.nan), low), high)
    return ew.select(is_zero, ew.div(1, x), out)


@library_function
def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function; NaN at its poles, except at 0.0 and -0.0, where it is 1 and -1.

    >>> import atled.numpy as jnp
    >>> gammasgn(jnp.array([-1.5, -0.5, 2.0]))
    Array([ 1., -1.,  1.], dtype=float32)
    """
    (x,), back = wide_operands("gammasgn", x)
    one, minus = value(x, 1), value(x, -1)
    whole = elementary.floor(x)
    half = ew.mul(whole, 0.5)
    sign = ew.select(ew.logical_or(ew.ge(x, 0), ew.eq(elementary.floor(half), half)), one, minus)
    sign = ew.select(ew.eq(x, 0), ew.select(ew.lt(ew.div(one, x), 0), minus, one), sign)
    is_pole = ew.logical_or(all_of(ew.lt(x, 0), ew.eq(whole, x)), ew.ne(x, x))
    return back(ew.select(is_pole, value(x, np.nan), sign))


@library_function(static=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """gamma(n + 1), and zero for negative n; the result is floating point.

    >>> import atled.numpy as jnp
    >>> factorial(jnp.array([0, 3, 5])).round()
    Array([  1.,   6., 120.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial: results are floating; exact=True is not supported.")
    (n,), back = wide_operands("factorial", n)
    is_negative = ew.lt(n, 0)
    out = gamma(ew.add(ew.select(is_negative, value(n, 0), n), 1))
    return back(ew.select(is_negative, value(n, 0), out))


@library_function
def digamma(x: ArrayLike) -> Array:
    """The derivative of the logarithm of the gamma function.

    >>> round(float(digamma(1.0)), 3)
    -0.577
    """
    (x,), back = wide_operands("digamma", x)
    return back(ops.digamma(x))


@library_function
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of digamma at x, for integer n >= 0; differentiable with respect to x. Infinite at the poles,
    with the sign of the derivative to the right.

    >>> round(float(polygamma(1, 1.0)), 3)
    1.645
    """
    (n, x), back = wide_operands("polygamma", n, x)
    return back(ops.polygamma(n, x))


@library_function
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The sum of (k + q)**-x over k = 0, 1, 2, ... for x > 1; q is 1 by default. Differentiable with respect to q.

    >>> round(float(zeta(2.0)), 3), round(float(zeta(2.0, 2.0)), 3)
    (1.645, 0.645)
    """
    (x, q), back = wide_operands("zeta", x, 1.0 if q is None else q)
    return back(ops.zeta(x, q))


def _stirling(x: Any) -> Any:
    """The remainder of log(gamma(x)) after Stirling's formula, for x >= 8."""
    return ew.div(polynomial(ew.div(1, ew.mul(x, x)), STIRLING), x)


def _stirling_fall(x: Any, y: Any) -> Any:
    """_stirling(y) - _stirling(x + y) as a divided difference, accurate for small x."""
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
    # subtracting large or almost equal logarithms would cancel: their leading terms are removed analytically
    is_tiny = all_of(ew.gt(low, 0), ew.lt(low, 0.1), ew.lt(high, 8))
    is_large = ew.logical_or(all_of(ew.gt(low, 0), ew.ge(high, 8)), is_tiny)
    x = ew.select(is_large, low, value(low, 8))
    y = ew.select(is_large, high, value(low, 8))
    steps: Any = value(low, 1)
    for i in range(8):  # gamma(x + y) / gamma(y) for tiny x: y is shifted by 8
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
    out = ew.select(is_large, ew.add(shared, ew.select(both_large, two_sided, one_sided)), plain)
    return ew.select(all_of(ew.lt(low, 0), ew.ge(ew.add(low, high), 8)), _betaln_of_negative(low, high), out)


def _betaln_of_negative(low: Any, high: Any) -> Any:
    """betaln for negative `low` and low + high >= 8: log(gamma(high) / gamma(low + high)) as one expression."""
    is_here = all_of(ew.lt(low, 0), ew.ge(ew.add(low, high), 8))
    x, y = ew.select(is_here, ew.neg(low), value(low, 1)), ew.select(is_here, ew.add(low, high), value(low, 8))
    fall = ew.sub(_stirling_fall(x, y), ew.mul(ew.sub(y, 0.5), elementary.log1p(ew.div(x, y))))
    fall = ew.add(fall, ew.sub(x, ew.mul(x, elementary.log(ew.add(x, y)))))
    return ew.sub(ops.lgamma(low), fall)


def _betaln_everywhere(a: Any, b: Any) -> tuple[Any, Any]:
    """The logarithm of the magnitude of the beta function, and its sign, as SciPy defines both at poles.

    At zero and negative integers, the function is infinite unless the other operand is a positive integer that is not
    larger in magnitude: then the poles of gamma(a) or gamma(b) and of gamma(a + b) cancel.
    """
    turns = all_of(_is_pole(b), ew.logical_not(_is_pole(a)))
    a, b = ew.select(turns, b, a), ew.select(turns, a, b)
    is_pole, is_whole = _is_pole(a), ew.eq(elementary.floor(b), b)
    rest = ew.sub(ew.sub(value(a, 1), a), b)
    is_left = all_of(is_pole, is_whole, ew.gt(rest, 0), ew.lt(rest, value(a, np.inf)))
    is_finite = all_of(is_left, ew.gt(b, 0))
    is_endless = all_of(ew.eq(b, value(b, np.inf)), ew.logical_not(is_pole))
    is_endless = ew.logical_or(is_endless, ew.eq(a, value(a, np.inf)))
    is_usual = ew.logical_not(ew.logical_or(is_pole, is_endless))
    first = ew.select(is_usual, a, ew.select(is_finite, rest, value(a, 1)))
    second = ew.select(ew.logical_or(is_usual, is_finite), b, value(b, 1))
    log = ew.select(ew.logical_or(is_usual, is_finite), _betaln(first, second), value(a, np.inf))
    other = ew.select(ew.eq(a, value(a, np.inf)), b, a)  # beta(inf, other) is 1 / inf**other
    end = ew.select(ew.gt(other, 0), value(a, -np.inf), value(a, np.inf))
    log = ew.select(is_endless, end, log)
    half = ew.mul(b, 0.5)
    of_whole = ew.select(all_of(is_left, ew.ne(elementary.floor(half), half)), value(b, -1), value(b, 1))
    signs = [gammasgn(ew.select(_is_pole(v), value(v, 1), v)) for v in (a, b, ew.add(a, b))]
    of_usual = ew.mul(ew.mul(signs[0], signs[1]), signs[2])
    of_endless = gammasgn(ew.select(_is_pole(other), value(a, 1), other))
    sign = ew.select(is_pole, of_whole, ew.select(is_endless, of_endless, of_usual))
    is_nan = ew.logical_or(ew.ne(a, a), ew.ne(b, b))
    return ew.select(is_nan, value(a, np.nan), log), sign


def _is_pole(x: Any) -> Any:
    """Whether x is zero or a negative integer."""
    return all_of(ew.le(x, 0), ew.eq(elementary.floor(x), x))


@library_function
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The log of the absolute value of the beta function, also where gamma(a), gamma(b) and gamma(a + b) are huge or
    infinite.

    >>> round(float(betaln(1e4, 1e4)), 1)
    -13866.3
    """
    (a, b), back = wide_operands("betaln", a, b)
    return back(_betaln_everywhere(a, b)[0])


@library_function
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """gamma(a) gamma(b) / gamma(a + b), also where the gamma functions are infinite.

    >>> round(float(beta(2.0, 3.0) * 12), 3)
    1.0
    """
    (a, b), back = wide_operands("beta", a, b)
    log, sign = _betaln_everywhere(a, b)
    return back(ew.mul(sign, elementary.exp(log)))


@library_function(static=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:  # noqa: N803
    """The number of ways to choose k of N things, as a float; with `repetition`, with replacement.

    >>> import atled.numpy as jnp
    >>> comb(jnp.array([4.0, 5.0]), 2.0).round()
    Array([ 6., 10.], dtype=float32)
    """
    (n, k), back = wide_operands("comb", N, k)
    if repetition:
        n = ew.sub(ew.add(n, k), 1)
    fits = all_of(ew.le(k, n), ew.ge(n, 0), ew.ge(k, 0))
    left = ew.select(fits, ew.sub(n, k), value(n, 0))
    k = ew.select(fits, k, value(n, 0))
    out = ew.div(elementary.exp(ew.neg(_betaln(ew.add(left, 1), ew.add(k, 1)))), ew.add(ew.add(left, k), 1))
    return back(ew.select(fits, out, value(n, 0)))


@library_function(static=("d",))
def _multigammaln(a: Any, d: int) -> Any:
    (a,), back = wide_operands("multigammaln", a)
    out: Any = d * (d - 1) / 4 * math.log(math.pi)
    is_inside = ew.gt(a, (d - 1) / 2)
    safe = ew.select(is_inside, a, value(a, d))
    for j in range(d):
        out = ew.add(ops.lgamma(ew.sub(safe, j / 2)), out)
    return back(ew.select(is_inside, out, value(a, np.nan)))


def multigammaln(a: ArrayLike, d: SupportsIndex) -> Array:
    """The logarithm of the multivariate gamma function in d dimensions, for a static integer d and a > (d - 1) / 2.

    >>> round(float(multigammaln(5.0, 1)), 3), round(float(multigammaln(5.0, 2)), 3)
    (3.178, 6.204)
    """
    d = d.__index__()
    if d < 1:
        raise ValueError(f"multigammaln: the dimension must be positive; got {d}.")
    return _multigammaln(a, d)
