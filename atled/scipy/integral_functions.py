"""The exponential, sine and cosine integrals; Fresnel's, Dawson's and Owen's functions; `wofz` and `spence`.

All are computed in double precision and returned in the dtype of their operands: tails and derivatives are accurate to
the last digits. If the derivative is an elementary function, it is computed by its formula.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.higher_order.elementwise_loops import Looped, in_double
from atled.higher_order.scan import repeat, scan
from atled.lax.incomplete_functions import exact_product, polynomial
from atled.numpy.promotion import promote_inexact
from atled.ops import conversion, special
from atled.scipy.operand_promotion import real_operands
from atled.staging.jit import library_function

_DOUBLE = np.dtype(float)


# -- exponential integrals --------------------------------------------------------------------------------------------


def _expn_near(n: Any, x: Any) -> Any:
    """E_n for x up to 2, by its power series, in which the term of power n - 1 has a logarithm."""

    def step(m: Any, state: Any) -> Any:
        term, harmonic, total = state
        is_special = n == m + 1
        usual = -1 / jnp.where(is_special, 1, m + 1 - n)
        total = total + term * jnp.where(is_special, harmonic - np.euler_gamma - jnp.log(x), usual)
        return term * (-x / (m + 1)), harmonic + 1 / (m + 1), total

    one, zero = jnp.ones_like(x), jnp.zeros_like(x)
    return repeat(step, 40, (one, zero, zero), 0, _DOUBLE)[2]


def _expn_far(n: Any, x: Any) -> Any:
    """E_n for x >= 2, by its continued fraction."""

    def step(j: Any, f: Any) -> Any:
        i = 50 - j
        return x + n + (2 * i - 2) - i * (n + (i - 1)) / f

    return jnp.exp(-x) / repeat(step, 50, x + n + 100, 0, _DOUBLE)


class Expn(Looped):
    """The exponential integral E_n of integer order n."""

    def compute(self, n: Any, x: Any) -> Any:
        is_zero = n == 0
        is_inside = (n >= 0) & (n == jnp.floor(n)) & (x > 0) & (x < np.inf)
        at, order = jnp.where(is_inside, x, 1), jnp.where(is_inside & ~is_zero, n, 1)
        is_far = at > 2
        near = _expn_near(order, jnp.where(is_far, 1, at))
        out = jnp.where(is_far, _expn_far(order, jnp.where(is_far, at, 2)), near)
        out = jnp.where(is_zero, jnp.exp(-at) / at, out)
        edge = jnp.where(x == 0, jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), np.inf), 0.0)
        fits = (n >= 0) & (n == jnp.floor(n)) & (x >= 0)
        return jnp.where(is_inside, out, jnp.where(fits, edge, np.nan))

    def derivative(self, i: int, out: Any, *operands: Any) -> Any:
        if i == 0:
            raise NotImplementedError(
                "expn: the derivative with respect to its order is not defined; differentiate with respect to x only."
            )
        return super().derivative(i, out, *operands)


@library_function
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The integral of exp(-x t) / t**n over t from 1 to infinity, for integer n >= 0 and x >= 0.

    >>> import atled.numpy as jnp
    >>> expn(2, jnp.float32(0.0))
    Array(1., dtype=float32)
    """
    return bind(Expn((0, 0)), *real_operands("expn", n, x))


@library_function
def exp1(x: ArrayLike) -> Array:
    """The integral of exp(-t) / t over t from x to infinity, for positive x.

    >>> round(float(exp1(1.0)), 3)
    0.219
    """
    return bind(Expn((0, 0)), *real_operands("exp1", 1.0, x))


_ROOT, _AT_ROOT = (
    0.3725074107813666,
    -5.1196989365556847e-17,
)  # the zero of Ei, rounded, and the value of Ei at the rounded zero


def _expi_at_root(x: Any) -> Any:
    gap = x - _ROOT
    power, total = gap, gap  # power is x**k - root**k
    for k in range(2, 20):
        power = x * power + _ROOT ** (k - 1) * gap
        total = total + power / (k * math.factorial(k))
    return jnp.log1p(gap / _ROOT) + total + _AT_ROOT


class Expi(Looped):
    """The exponential integral Ei."""

    def compute(self, x: Any) -> Any:
        is_low, is_far = x < 0, x > 40
        is_root = jnp.abs(x - _ROOT) < 0.2
        is_near = ~is_low & ~is_far & ~is_root & (x > 0)
        low = -Expn((0, 0)).compute(jnp.ones_like(x), jnp.where(is_low, -x, 1))
        far = jnp.where(is_far, x, 40)
        tail = repeat(lambda i, s: 1 + (41 - i) / far * s, 40, jnp.ones_like(x), 1, _DOUBLE)
        at = jnp.where(is_near, x, 1)

        def step(k: Any, state: Any) -> Any:
            term, total = state
            term = term * (at / k)
            return term, total + term / k

        _, total = repeat(step, 130, (jnp.ones_like(x), jnp.zeros_like(x)), 1, _DOUBLE)
        near = np.euler_gamma + jnp.log(at) + total
        out = jnp.where(is_low, low, jnp.where(is_far, jnp.exp(far) / far * tail, near))
        out = jnp.where(is_root, _expi_at_root(jnp.where(is_root, x, _ROOT)), out)
        out = jnp.where(x == np.inf, np.inf, jnp.where(x == 0, -np.inf, out))
        return jnp.where(x != x, np.nan, out)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return lambda x: jnp.exp(x) / x


@library_function
def expi(x: ArrayLike) -> Array:
    """The integral of exp(t) / t over t from minus infinity up to x, as a principal value.

    >>> round(float(expi(1.0)), 3)
    1.895
    """
    return bind(Expi((0,)), *real_operands("expi", x))


# -- sine and cosine integrals ----------------------------------------------------------------------------------------


def _sine_cosine(x: Any) -> tuple[Any, Any]:
    """Si(x) and Ci(x) for positive x."""
    is_far = x > 4
    z = jnp.where(is_far, x, 4) * 1j

    def step(j: Any, f: Any) -> Any:
        i = 60 - j
        return z + (2 * i - 1) - i * i / f

    tail = jnp.exp(-z) / repeat(step, 60, z + 121, 0, _DOUBLE)  # E_1(i x)
    at = jnp.where(is_far, 1, x)

    def term(k: Any, state: Any) -> Any:
        power, si, ci = state
        even = power * at / (2 * k)  # x**(2k) / (2k)!
        odd = even * at / (2 * k + 1)
        sign = -1.0
        return sign * odd, si + sign * odd / (2 * k + 1), ci + sign * even / (2 * k)

    _, si, ci = repeat(term, 22, (at, at, jnp.zeros_like(at)), 1, _DOUBLE)
    ci = np.euler_gamma + jnp.log(at) + ci
    return jnp.where(is_far, math.pi / 2 + jnp.imag(tail), si), jnp.where(is_far, -jnp.real(tail), ci)


class SineIntegral(Looped):
    """The integral of sin(t) / t over t from 0 to x."""

    def compute(self, x: Any) -> Any:
        size = jnp.abs(x)
        is_inside = (size > 0) & (size < np.inf)
        out = _sine_cosine(jnp.where(is_inside, size, 1))[0]
        out = jnp.where(is_inside, out, jnp.where(size == np.inf, math.pi / 2, size))
        return jnp.where(x < 0, -out, out)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return lambda x: jnp.sinc(x / math.pi)


class CosineIntegral(Looped):
    """The integral of -cos(t) / t over t from abs(x) to infinity."""

    def compute(self, x: Any) -> Any:
        x = jnp.abs(x)
        is_inside = (x > 0) & (x < np.inf)
        out = _sine_cosine(jnp.where(is_inside, x, 1))[1]
        edge = jnp.where(x == 0, -np.inf, jnp.where(x == np.inf, 0.0, np.nan))
        return jnp.where(is_inside, out, edge)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return lambda x: jnp.cos(x) / x


@library_function
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine integral, and the cosine integral of abs(x).

    >>> [round(float(v), 3) for v in sici(1.0)]
    [0.946, 0.337]
    """
    (x,) = real_operands("sici", x)
    return bind(SineIntegral((0,)), x), bind(CosineIntegral((0,)), x)


# -- the Faddeeva function and its relatives --------------------------------------------------------------------------

# The Faddeeva function by the trapezoidal or the midpoint rule, corrected for the poles of the integrand:
# M. Al Azah and S. N. Chandler-Wilde, SIAM Journal on Numerical Analysis 59 (2021)
_NODES = 11
_STEP = math.sqrt(math.pi / (_NODES + 1))


def _sum_over_nodes(square: Any, nodes: np.ndarray) -> Any:
    return functools.reduce(lambda s, t: s + math.exp(-t * t) / (square - t * t), nodes.tolist(), 0.0)


def _faddeeva(z: Any) -> Any:
    """The Faddeeva function of complex numbers in the upper half plane."""
    x, y = jnp.abs(jnp.real(z)), jnp.imag(z)
    turn = x / _STEP - jnp.floor(x / _STEP)
    is_plain = y >= jnp.maximum(x, math.pi / _STEP)
    is_trapezoid = ~is_plain & (y < x) & (turn >= 0.25) & (turn <= 0.75)
    # 8j replaces z in the rule that is not selected, whose nodes are poles
    one, other = jnp.where(is_trapezoid, 8j, z), jnp.where(is_trapezoid, z, 8j)
    middle = _sum_over_nodes(one * one, (np.arange(_NODES + 1) + 0.5) * _STEP)
    ends = 0.5 / (other * other) + _sum_over_nodes(other * other, np.arange(1, _NODES + 1) * _STEP)
    total = (2j * _STEP / math.pi) * jnp.where(is_trapezoid, other * ends, one * middle)
    at = jnp.where(is_plain, 1.0 + 0j, z)
    turned = jnp.exp(at * (2j * math.pi / _STEP))
    pole = 2 * jnp.exp(-at * at) * turned / (turned + jnp.where(is_trapezoid, -1, 1))
    return jnp.where(is_plain, total, total + pole)


@library_function
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z**2) erfc(-i z).

    >>> bool(abs(wofz(1j) - 0.42758358) < 1e-6)
    True
    """
    (z,) = promote_inexact("wofz", z)
    dtype = dtypes.promote((type_of(z).dtype, False), (dtypes.complex64, False))[0]
    z = conversion.convert(z, dtypes.complex128)
    is_lower = jnp.imag(z) < 0
    is_infinite = jnp.isinf(jnp.real(z)) | (jnp.isinf(jnp.imag(z)) & ~is_lower)
    z = jnp.where(is_infinite, 1j, z)
    upper = _faddeeva(jnp.where(is_lower, -z, z))
    below = jnp.where(is_lower, z, 0)
    out = jnp.where(is_lower, 2 * jnp.exp(-below * below) - upper, upper)
    return conversion.convert(jnp.where(is_infinite, 0, out), dtype)


def _dawson(x: Any) -> Any:
    size = jnp.abs(x)
    is_small, is_far = size < 0.3, size > 1e9
    at = jnp.where(is_small | is_far, 1, size)
    turn = at / _STEP - jnp.round(at / _STEP)
    is_middle = jnp.abs(turn) <= 0.25  # selects the midpoint rule: x is far from its nodes
    one, other = jnp.where(is_middle, at, 4 * _STEP), jnp.where(is_middle, 1.5 * _STEP, at)
    middle = one * _sum_over_nodes(one * one, (np.arange(_NODES + 1) + 0.5) * _STEP)
    ends = 0.5 / other + other * _sum_over_nodes(other * other, np.arange(1, _NODES + 1) * _STEP)
    tangent = jnp.tan(math.pi * jnp.where(is_middle, turn, 0))
    cotangent = jnp.tan(math.pi * (0.5 - jnp.where(is_middle, 0.5, turn)))
    far = (2 * _STEP / math.pi) * jnp.where(is_middle, middle, ends)
    far = far + jnp.exp(-at * at) * jnp.where(is_middle, tangent, -cotangent)
    far = jnp.where(x < 0, -far, far) * (math.sqrt(math.pi) / 2)
    small = jnp.where(is_small, x, 0)
    coefficients = [1.0]
    for k in range(1, 14):
        coefficients.append(coefficients[-1] * -2 / (2 * k + 1))
    out = jnp.where(is_small, small * polynomial(small * small, coefficients), far)
    out = jnp.where(is_far, 0.5 / jnp.where(is_far, x, 1), out)
    return jnp.where(x != x, np.nan, out)


@library_function
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 up to x.

    >>> round(float(dawsn(1.0)), 3)
    0.538
    """
    return in_double(_dawson)(*real_operands("dawsn", x))


def _quarter_turns(x: Any) -> Any:
    """pi x**2 / 2 reduced modulo 2 pi, without the rounding error of x**2."""
    return math.pi / 2 * sum([v - 4 * jnp.round(v / 4) for v in exact_product(x, x)])


def _fresnel(x: Any, is_sine: bool) -> Any:
    size = jnp.abs(x)
    is_near, is_far = size < 1.5, size > 1e8
    near, at = jnp.where(is_near, x, 0), jnp.where(is_near | is_far, 2, size)
    first = int(is_sine)
    terms = [(-1) ** k * (math.pi / 2) ** (2 * k + first) / math.factorial(2 * k + first) for k in range(18)]
    series = polynomial(near**4, [t / (4 * k + 1 + 2 * first) for k, t in enumerate(terms)])
    near = series * (near**3 if is_sine else near)
    angle = _quarter_turns(at)
    phase = jnp.cos(angle) + 1j * jnp.sin(angle)
    rest = (0.5 + 0.5j) * phase * _faddeeva(at * ((1 + 1j) * math.sqrt(math.pi) / 2))
    far = 0.5 - (jnp.imag(rest) if is_sine else jnp.real(rest))
    far = jnp.where(is_far, 0.5, far)
    out = jnp.where(is_near, near, jnp.where(x < 0, -far, far))
    return jnp.where(x != x, np.nan, out)


class FresnelSine(Looped):
    """The integral of sin(pi t**2 / 2) over t from 0 to x."""

    def compute(self, x: Any) -> Any:
        return _fresnel(x, True)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return lambda x: jnp.sin(_quarter_turns(x))


class FresnelCosine(Looped):
    """The integral of cos(pi t**2 / 2) over t from 0 to x."""

    def compute(self, x: Any) -> Any:
        return _fresnel(x, False)

    def slope(self, i: int) -> Callable[..., Any] | None:
        return lambda x: jnp.cos(_quarter_turns(x))


@library_function
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of sin(pi t**2 / 2) and of cos(pi t**2 / 2) over t from 0 to x.

    >>> [round(float(v), 3) for v in fresnel(1.0)]
    [0.438, 0.78]
    """
    (x,) = real_operands("fresnel", x)
    return bind(FresnelSine((0,)), x), bind(FresnelCosine((0,)), x)


# -- Owen's function and the dilogarithm ------------------------------------------------------------------------------


def _upper_tail(x: Any) -> Any:
    return special.erfc(x * math.sqrt(0.5)) / 2


class OwensT(Looped):
    """Owen's T function, by Gaussian quadrature over the interval where the integrand is not negligible."""

    def compute(self, h: Any, a: Any) -> Any:
        size, slope = jnp.abs(h), jnp.abs(a)
        is_steep = slope > 1
        steep = jnp.where(is_steep & (size > 0), slope, 1)
        far = jnp.where(is_steep & (size == 0), 0, steep * size)
        width = jnp.minimum(jnp.where(is_steep, far, size), 1e200)
        top = jnp.where(is_steep, 1 / jnp.where(is_steep, slope, 1), slope)
        top = jnp.minimum(top, 9.5 / jnp.maximum(width, 1e-300))
        nodes, weights = np.polynomial.legendre.leggauss(36)

        def step(total: Any, row: Any) -> Any:
            node, weight = row
            x = top * node
            return total + weight * jnp.exp(-0.5 * (width * x) * (width * x)) / (1 + x * x), None

        total, _ = scan(step, jnp.zeros_like(top), ((nodes + 1) / 2, weights / (4 * math.pi)))
        flat = total * top * jnp.exp(-0.5 * width * width)
        p, q = _upper_tail(size), _upper_tail(far)
        out = jnp.where(is_steep, 0.5 * (p + q) - p * q - flat, flat)
        out = jnp.where(size == np.inf, 0.0, out)
        out = jnp.where((h != h) | (a != a), np.nan, out)
        return jnp.where(a < 0, -out, out)

    def slope(self, i: int) -> Callable[..., Any] | None:
        if i == 1:
            return lambda h, a: jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))
        return lambda h, a: (
            jnp.exp(-0.5 * h * h) * special.erf(a * h * math.sqrt(0.5)) * (-0.5 / math.sqrt(2 * math.pi))
        )


@library_function
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """The probability that X > h and 0 < Y < a X, for independent standard normal X and Y.

    >>> round(float(owens_t(0.0, 1.0)), 3)
    0.125
    """
    return bind(OwensT((0, 0)), *real_operands("owens_t", h, a))


# B[2k] / (2k + 1)! for k = 1, 2, ..., with Bernoulli numbers B
_DILOGARITHM = (
    1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1.8978869988971e-9, -4.0647616451442256e-11,
    8.921691020456452e-13, -1.9939295860721074e-14, 4.518980029619918e-16, -1.0356517612181247e-17,
)  # fmt: skip


def _dilogarithm(log: Any) -> Any:
    """The dilogarithm Li2(u) as a series in powers of log = -log(1 - u)."""
    square = log * log
    return log - square / 4 + log * square * polynomial(square, _DILOGARITHM)


def _spence(x: Any) -> Any:
    is_positive = (x > 0) & (x < np.inf)
    x0, x = x, jnp.where(is_positive, x, 1)
    is_high, is_low = x > 2, x < 0.5
    is_middle = ~is_high & ~is_low
    middle = _dilogarithm(-jnp.log1p(jnp.where(is_middle, x, 1) - 1))
    small = jnp.where(is_high, 1 / jnp.where(is_high, x, 2), jnp.where(is_low, x, 0.25))
    rest = -jnp.log1p(-small)
    log = jnp.log(jnp.where(is_middle, 1, x))
    low = math.pi**2 / 6 + jnp.where(is_high, -log, log) * rest - _dilogarithm(rest)
    out = jnp.where(is_middle, middle, jnp.where(is_high, -0.5 * log * log - low, low))
    edge = jnp.where(x0 == np.inf, -np.inf, np.nan)
    return jnp.where(is_positive, out, jnp.where(x0 == 0, jnp.full_like(out, math.pi**2 / 6), edge))


@library_function
def spence(x: ArrayLike) -> Array:
    """The integral of log(t) / (1 - t) over t from 1 to x, for x >= 0: the dilogarithm of 1 - x.

    >>> round(float(spence(0.0)), 3)
    1.645
    """
    return in_double(_spence)(*real_operands("spence", x))
