"""Implementations of real functions whose versions in the compiler are off by more than four ulps.

An op lowers to one of these functions, which are written with other ops, for single and double precision. 16-bit floats
are computed in float32 (`widened`). Most functions have several formulas, each for a part of the range; all are
evaluated on arguments clamped to their part, and one result is selected. Polynomials are near-minimax;
`scripts/fit-polynomials` computes their coefficients. A number in extended precision is a sum of two numbers, split by
masking bits, which the compiler cannot undo.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.ops import conversion, elementary, polynomial_coefficients
from atled.ops import elementwise as ew


def _size(x: Any) -> int:
    return type_of(x).dtype.itemsize


def value(x: Any, number: float) -> Any:
    """A Python number as a scalar in the dtype of x."""
    return np.asarray(number, type_of(x).dtype)


def polynomial(x: Any, found: Sequence[float]) -> Any:
    """The value at x of a polynomial whose coefficients are `found`, the lowest power first."""
    out: Any = value(x, found[-1])
    for c in found[-2::-1]:
        out = ew.add(ew.mul(out, x), c)
    return out


def _bits(x: Any) -> Any:
    return conversion.bitcast_convert(x, dtypes.uint32 if _size(x) == 4 else dtypes.uint64)


def _from_bits(bits: Any, like: Any) -> Any:
    return conversion.bitcast_convert(bits, type_of(like).dtype)


def _sign_bit(x: Any) -> Any:
    bits = _bits(x)
    return ew.logical_and(bits, np.asarray(1 << (8 * _size(x) - 1), type_of(bits).dtype))


def top_half(x: Any) -> Any:
    """x without the lower half of its significant bits; products of two such numbers are exact."""
    bits = _bits(x)
    mask = np.asarray(0xFFFFF000 if _size(x) == 4 else 0xFFFFFFFFF8000000, type_of(bits).dtype)
    return _from_bits(ew.logical_and(bits, mask), x)


def with_sign(size: Any, x: Any) -> Any:
    """`size`, which must not be negative, with the sign of x, also if x is a zero."""
    return _from_bits(ew.logical_or(_bits(size), _sign_bit(x)), x)


def flipped(x: Any, by: Any) -> Any:
    """x, with its sign changed where `by` is negative or -0."""
    return _from_bits(ew.logical_xor(_bits(x), _sign_bit(by)), x)


# -- exponentials -----------------------------------------------------------------------------------------------------


def _expm1_reduced(r: Any, rest: Any) -> Any:
    """expm1(r + rest) for abs(r) < 0.35, where `rest` is the rounding error of r."""
    square = ew.mul(r, r)
    inner = ew.add(ew.mul(polynomial(r, polynomial_coefficients.EXPM1[_size(r)]), r), 0.5)
    return ew.add(ew.add(ew.mul(square, inner), ew.add(rest, ew.mul(rest, r))), r)


_LOG_TWO = {4: (0.693145751953125, 1.42860682030941723e-6), 8: (6.93147180369123816490e-01, 1.90821492927058770002e-10)}


def expm1(x: Any) -> Any:
    """exp(x) - 1, by argument reduction with multiples of log(2) and a sum without cancellation."""
    lowest, highest = {4: (-30.0, 90.0), 8: (-60.0, 711.0)}[_size(x)]
    bounded = ew.clamp(value(x, lowest), x, value(x, highest))
    count = elementary.round_even(ew.mul(bounded, 1 / math.log(2)))
    high, low = _LOG_TWO[_size(x)]
    first, second = ew.sub(bounded, ew.mul(count, high)), ew.mul(count, low)
    r = ew.sub(first, second)
    small = _expm1_reduced(r, ew.sub(ew.sub(first, r), second))
    # 2**count * (small + 1) - 1, with 2**count as two factors that do not overflow
    half = elementary.floor(ew.mul(count, 0.5))
    scale = elementary.power_of_two(half), elementary.power_of_two(ew.sub(count, half))
    inverse = elementary.power_of_two(ew.neg(ew.minimum(count, value(x, 100.0))))
    out = ew.mul(ew.mul(ew.add(small, ew.sub(1, inverse)), scale[0]), scale[1])
    return ew.select(ew.eq(x, 0), x, out)  # keeps the sign of zero


def log1p(x: Any) -> Any:
    """log(1 + x), as the logarithm of the rounded sum plus a correction for the rounding error."""
    total = ew.maximum(ew.add(x, 1), value(x, 0))  # maximum keeps the compiler from simplifying (1 + x) - 1 to x
    usual = ew.logical_and(ew.gt(x, -1), ew.lt(x, value(x, np.inf)))
    lost = ew.div(ew.sub(x, ew.sub(total, 1)), ew.select(usual, total, value(x, 1)))
    out = elementary.log(total)
    out = ew.select(usual, ew.add(out, lost), ew.select(ew.lt(x, -1), value(x, np.nan), out))
    return ew.select(ew.eq(x, 0), x, out)


def tanh(x: Any) -> Any:
    """tanh(x), from expm1(-2 abs(x)), which is accurate for small x and tends to -1."""
    t = expm1(ew.mul(elementary.absolute(x), -2.0))
    return with_sign(ew.div(ew.neg(t), ew.add(t, 2)), x)


def atanh(x: Any) -> Any:
    """log1p(2x / (1 - x)) / 2 for abs(x), with the sign of x; for small x, the quotient is 2x + 2x**2 / (1 - x)."""
    size = elementary.absolute(x)
    double = ew.add(size, size)
    left = ew.sub(1, size)
    near = ew.add(double, ew.div(ew.mul(double, size), left))
    out = elementary.log1p(ew.select(ew.lt(size, 0.5), near, ew.div(double, left)))
    return with_sign(ew.mul(out, 0.5), x)


def cbrt(x: Any, root: Any) -> Any:
    """The cube root of x: one Newton step from `root`. Small x are scaled, because the residual would be subnormal."""
    power = 20 if type_of(x).dtype is dtypes.float32 else 100
    is_small = ew.lt(elementary.absolute(x), 2.0 ** (-3 * power))
    x, scaled = (ew.select(is_small, ew.mul(v, 2.0**n), v) for v, n in ((x, 3 * power), (root, power)))
    square = ew.mul(scaled, scaled)
    step = ew.div(ew.sub(ew.mul(square, scaled), x), ew.mul(square, 3))
    refined = ew.sub(scaled, step)
    refined = ew.select(is_small, ew.mul(refined, 2.0**-power), refined)
    return ew.select(ew.logical_and(ew.ne(x, 0), elementary.is_finite(x)), refined, root)


# -- sums of exponentials ---------------------------------------------------------------------------------------------


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b and its rounding error, for a and b of any order of magnitude (Knuth)."""
    total = ew.add(a, b)
    other = ew.sub(total, a)
    return total, ew.add(ew.sub(a, ew.sub(total, other)), ew.sub(b, other))


def _square(a: Any) -> tuple[Any, Any]:
    """The square of a as a sum of two parts, the first of which is exact."""
    high = top_half(a)
    low = ew.sub(a, high)
    return ew.mul(high, high), ew.mul(ew.add(ew.add(high, high), low), low)


def _exp_in_two(high: Any, low: Any) -> tuple[Any, Any, Any]:
    """scale, a and b with exp(high + low) = scale * (1 + a + b), to about twelve bits more than the dtype has."""
    halvings, terms = {4: (3, 4), 8: (3, 8)}[_size(high)]
    count = elementary.round_even(ew.mul(high, 1 / math.log(2)))
    first, second = _LOG_TWO[_size(high)]
    left, step = ew.sub(high, ew.mul(count, first)), ew.mul(count, second)
    r = ew.sub(left, step)
    rest = ew.mul(ew.add(ew.sub(ew.sub(left, r), step), low), 0.5**halvings)
    r = ew.mul(r, 0.5**halvings)
    a, b = _square(r)
    cube = ew.mul(ew.mul(ew.mul(r, r), r), polynomial(r, [1 / math.factorial(k + 3) for k in range(terms)]))
    total, lost = two_sum(r, ew.mul(a, 0.5))
    a, b = total, ew.add(ew.add(ew.add(lost, ew.mul(b, 0.5)), ew.add(rest, ew.mul(rest, r))), cube)
    for _ in range(halvings):  # (1 + e)**2 = 1 + (2 e + e**2)
        a, lost = two_sum(a, b)
        square, more = _square(a)
        total, rounding = two_sum(ew.add(a, a), square)
        b = ew.add(ew.add(rounding, more), ew.mul(ew.add(lost, ew.mul(lost, a)), 2))
        a = total
    return elementary.power_of_two(count), a, b


def logaddexp(x: Any, y: Any, refined: bool) -> Any:
    """log(exp(x) + exp(y)); with `refined`, also accurate where the result is close to zero.

    Near zero, the result r is a difference of much larger numbers. The error of r is 1 - (exp(x - r) + exp(y - r)),
    computed in extended precision.
    """
    first = ew.ge(x, y)
    top, low = ew.select(first, x, y), ew.select(first, y, x)
    is_lost = ew.logical_and(ew.eq(x, y), ew.logical_not(elementary.is_finite(x)))  # inf - inf is NaN
    gap = ew.select(is_lost, value(x, 0), ew.sub(low, top))
    out = ew.add(top, elementary.log1p(elementary.exp(gap)))
    if not refined:
        return out
    is_near = ew.logical_and(ew.lt(elementary.absolute(out), 0.5), ew.gt(gap, -50.0))
    r, top, low = (ew.select(is_near, v, value(x, 0)) for v in (out, top, low))
    scale, a, b = _exp_in_two(*two_sum(top, ew.neg(r)))
    other, c, d = _exp_in_two(*two_sum(low, ew.neg(r)))
    total, lost = two_sum(ew.add(ew.sub(scale, 1), other), ew.mul(scale, a))
    total, more = two_sum(total, ew.mul(other, c))
    wrong = ew.add(total, ew.add(ew.add(lost, more), ew.add(ew.mul(scale, b), ew.mul(other, d))))
    return ew.select(is_near, ew.add(out, wrong), out)


# -- error function and normal distribution ---------------------------------------------------------------------------


def _scaled_tail(z: Any) -> Any:
    """exp(z * z) * erfc(z) for z >= 0, including infinity."""
    centre = polynomial_coefficients.TAIL_CENTRE[_size(z)]
    q = ew.sub(1, ew.div(2 * centre, ew.add(z, centre)))
    return ew.div(polynomial(q, polynomial_coefficients.TAIL[_size(z)]), ew.add(ew.add(z, z), 1))


def _gaussian(x: Any, scale: float) -> Any:
    """exp(-scale * x * x) for a `scale` that is a power of two; x * x is split into an exact part and a small one."""
    limit = {4: 15.0, 8: 40.0}[_size(x)] / math.sqrt(2 * scale)
    x = ew.clamp(value(x, -limit), x, value(x, limit))
    high = top_half(x)
    rest = ew.mul(ew.mul(ew.sub(x, high), ew.add(x, high)), -scale)
    large = elementary.exp(ew.mul(ew.mul(high, high), -scale))
    small = ew.mul(rest, polynomial(rest, (1, 1 / 2, 1 / 6, 1 / 24, 1 / 120)))  # expm1(rest), for abs(rest) < 0.1
    return ew.add(large, ew.mul(large, small))


def _erf_near(x: Any, limit: float) -> Any:
    """erf(x) for abs(x) <= `limit`, at most 0.95 in single and 0.5 in double precision: x plus x times a polynomial."""
    x = ew.clamp(value(x, -limit), x, value(x, limit))
    return ew.add(x, ew.mul(x, polynomial(ew.mul(x, x), polynomial_coefficients.ERF_NEAR[_size(x)])))


def erfcx(x: Any) -> Any:
    """exp(x * x) * erfc(x)."""
    size = elementary.absolute(x)
    limit = {4: 9.4, 8: 26.7}[_size(x)]
    gaussian = _gaussian(ew.clamp(value(x, -limit), x, value(x, limit)), 1.0)
    tail = _scaled_tail(size)
    far = ew.select(ew.lt(x, 0), ew.sub(ew.div(2, gaussian), tail), tail)
    return ew.select(ew.lt(size, 0.5), ew.div(ew.sub(1, _erf_near(x, 0.5)), gaussian), far)


def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    size = elementary.absolute(x)
    tail = ew.mul(_gaussian(size, 1.0), _scaled_tail(size))
    far = ew.select(ew.lt(x, 0), ew.sub(2, tail), tail)
    return ew.select(ew.lt(size, 0.5), ew.sub(1, _erf_near(x, 0.5)), far)


def ndtr(x: Any) -> Any:
    """The standard normal CDF; its tails use exp(-x * x / 2), which avoids the rounding error of x / sqrt(2)."""
    size = elementary.absolute(x)
    tail = ew.mul(ew.mul(_gaussian(size, 0.5), _scaled_tail(ew.mul(size, math.sqrt(0.5)))), 0.5)
    far = ew.select(ew.lt(x, 0), tail, ew.sub(1, tail))
    near = ew.add(ew.mul(_erf_near(ew.mul(x, math.sqrt(0.5)), 0.5), 0.5), 0.5)
    return ew.select(ew.lt(size, 0.7), near, far)


def log_ndtr(x: Any) -> Any:
    """The logarithm of the standard normal CDF; below -1, -x * x / 2 is a separate term."""
    tail = ndtr(ew.neg(elementary.absolute(x)))
    near = ew.select(ew.lt(x, 0), elementary.log(tail), elementary.log1p(ew.neg(tail)))
    low = ew.minimum(x, value(x, -1))
    far = elementary.log(ew.mul(_scaled_tail(ew.mul(low, -math.sqrt(0.5))), 0.5))
    return ew.select(ew.lt(x, -1), ew.sub(far, ew.mul(ew.mul(low, low), 0.5)), near)


def erfinv_near(x: Any) -> Any:
    """The inverse of erf for abs(x) up to 0.7, as x plus x times a polynomial in x * x."""
    x = ew.clamp(value(x, -0.7), x, value(x, 0.7))
    return ew.add(x, ew.mul(x, polynomial(ew.mul(x, x), polynomial_coefficients.ERFINV[_size(x)])))


def erf(x: Any) -> Any:
    """erf in single precision: a polynomial for abs(x) < 0.92, and 1 - exp of a polynomial beyond."""
    size = elementary.absolute(x)
    far = ew.clamp(value(x, 0.9), size, value(x, 4.0))
    far = ew.sub(1, elementary.exp(ew.neg(ew.mul(far, polynomial(far, polynomial_coefficients.ERF_FAR[4])))))
    return ew.select(ew.lt(size, 0.92), _erf_near(x, 0.95), with_sign(far, x))


# -- gamma ------------------------------------------------------------------------------------------------------------

# Stirling's series for the logarithm of gamma, and its derivative: powers of 1 / x**2
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_STIRLING_SLOPE = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_TERMS = {4: 3, 8: 8}  # terms of these series, enough for x >= 8
_FAR = 8.0


def _steps_down(x: Any) -> tuple[Any, Any]:
    """The number of steps of 1 from x, which is between 3/2 and 8, down to [3/2, 5/2), and the end point."""
    count = ew.maximum(elementary.floor(ew.sub(x, 1.5)), value(x, 0))
    return count, ew.sub(x, count)


def _sine_of_turns(x: Any) -> Any:
    """abs(sin(pi x)), accurate for large x."""
    return elementary.absolute(elementary.sin(ew.mul(ew.sub(x, elementary.round_even(x)), math.pi)))


def _lgamma_far(x: Any) -> Any:
    """lgamma(x) for x >= 8 by Stirling's formula; log(x) - 1 is computed as log(x / e), without cancellation."""
    term = polynomial(ew.div(1, ew.mul(x, x)), STIRLING[: _TERMS[_size(x)]])
    logarithm = elementary.log(ew.mul(x, math.exp(-1)))
    low = ew.add(ew.div(term, x), math.log(2 * math.pi) / 2 - 0.5)
    return ew.add(ew.mul(ew.sub(x, 0.5), logarithm), low)


def lgamma(x: Any) -> Any:
    """log(abs(gamma(x))), by polynomials around 1 and 2, recurrence below 8, Stirling's formula, and reflection."""
    size = elementary.absolute(x)
    is_small, is_one, is_far = ew.lt(size, 0.5), ew.lt(size, 1.25), ew.ge(size, _FAR)
    one = ew.select(is_small, x, ew.clamp(value(x, -0.5), ew.sub(size, 1), value(x, 0.5)))
    near_one = ew.mul(one, polynomial(one, polynomial_coefficients.GAMMA_AT_ONE[_size(x)]))
    middle = ew.clamp(value(x, 1.25), size, value(x, _FAR))
    count, y = _steps_down(middle)
    two = ew.sub(y, 2)
    product: Any = value(x, 1)
    for k in range(1, 7):
        product = ew.select(ew.ge(count, float(k)), ew.mul(product, ew.sub(middle, float(k))), product)
    near_two = ew.mul(two, polynomial(two, polynomial_coefficients.GAMMA_AT_TWO[_size(x)]))
    # one logarithm for the steps down from large operands and for the step up of small ones
    is_negative = ew.logical_and(ew.lt(x, 0), ew.logical_not(is_small))
    turned = ew.div(math.pi, ew.mul(ew.select(is_negative, size, value(x, 1)), _sine_of_turns(x)))
    logarithm = elementary.log(ew.select(is_small, size, ew.select(is_one, value(x, 1), product)))
    out = ew.select(is_one, ew.sub(near_one, ew.select(is_small, logarithm, value(x, 0))), ew.add(near_two, logarithm))
    out = ew.select(is_far, _lgamma_far(ew.maximum(size, value(x, _FAR))), out)
    reflected = ew.sub(elementary.log(turned), out)
    is_pole = ew.logical_and(ew.le(x, 0), ew.eq(elementary.floor(x), x))
    out = ew.select(is_negative, reflected, out)
    return ew.select(ew.logical_or(is_pole, ew.eq(size, value(x, np.inf))), value(x, np.inf), out)


def digamma(x: Any) -> Any:
    """The derivative of lgamma, by a polynomial around its zero, recurrence, the asymptotic series, and reflection."""
    is_negative = ew.lt(x, 0)
    size = ew.select(is_negative, ew.sub(1, x), x)
    is_small, is_far = ew.lt(size, 1), ew.ge(size, _FAR)
    middle = ew.clamp(value(x, 1), ew.select(is_small, ew.add(size, 1), size), value(x, _FAR))
    count, y = _steps_down(middle)
    y = ew.select(ew.lt(middle, 2.5), middle, y)
    root = float(value(x, polynomial_coefficients.DIGAMMA_ROOT))
    rest = polynomial_coefficients.DIGAMMA_ROOT - root + polynomial_coefficients.DIGAMMA_ROOT_REST
    # the low part of the root is subtracted last, or the compiler would add it to the high part
    near = ew.mul(ew.sub(y, root), polynomial(ew.sub(y, 1.5), polynomial_coefficients.DIGAMMA[_size(x)]))
    near = ew.sub(near, rest * polynomial_coefficients.DIGAMMA_SLOPE)
    for k in range(1, 7):
        term = ew.div(1, ew.maximum(ew.sub(middle, float(k)), value(x, 0.5)))
        near = ew.add(near, ew.select(ew.ge(count, float(k)), term, value(x, 0)))
    near = ew.select(is_small, ew.sub(near, ew.div(1, ew.select(is_small, x, value(x, 1)))), near)
    far = ew.maximum(size, value(x, _FAR))
    inverse = ew.div(1, far)
    square = ew.mul(inverse, inverse)
    series = ew.mul(polynomial(square, _STIRLING_SLOPE[: _TERMS[_size(x)]]), square)
    far = ew.sub(elementary.log(far), ew.add(ew.mul(inverse, 0.5), series))
    out = ew.select(is_far, far, near)
    turn = ew.mul(ew.sub(x, elementary.round_even(x)), math.pi)
    reflected = ew.sub(out, ew.div(math.pi, elementary.tan(turn)))
    is_pole = ew.logical_and(is_negative, ew.eq(elementary.floor(x), x))
    out = ew.select(is_negative, reflected, ew.select(ew.ne(x, x), x, out))
    return ew.select(is_pole, value(x, np.nan), out)


# -- Bessel functions -------------------------------------------------------------------------------------------------


def _bessel(x: Any, series: Sequence[float], far: Sequence[float]) -> tuple[Any, Any, Any]:
    """exp(-x) times a power series in x**2, whether x <= 8, and a polynomial in 16 / x - 1 divided by sqrt(x)."""
    near, safe = ew.minimum(x, value(x, 8.0)), ew.maximum(x, value(x, 8.0))
    low = ew.mul(polynomial(ew.mul(near, near), series), elementary.exp(ew.neg(near)))
    high = ew.div(polynomial(ew.sub(ew.div(16.0, safe), 1.0), far), elementary.sqrt(safe))
    return low, ew.le(x, 8.0), high


_BESSEL_TERMS = {4: 19, 8: 27}


def bessel_i0e(x: Any) -> Any:
    """exp(-abs(x)) times the modified Bessel function of order 0."""
    series = [0.25**k / math.factorial(k) ** 2 for k in range(_BESSEL_TERMS[_size(x)])]
    low, is_near, high = _bessel(elementary.absolute(x), series, polynomial_coefficients.BESSEL_I0[_size(x)])
    return ew.select(is_near, low, high)


def bessel_i1e(x: Any) -> Any:
    """exp(-abs(x)) times the modified Bessel function of order 1, which is odd."""
    series = [0.5 * 0.25**k / (math.factorial(k) * math.factorial(k + 1)) for k in range(_BESSEL_TERMS[_size(x)])]
    low, is_near, high = _bessel(elementary.absolute(x), series, polynomial_coefficients.BESSEL_I1[_size(x)])
    return ew.select(is_near, ew.mul(low, x), with_sign(high, x))


# -- ops of `elementary` that lower to these functions ----------------------------------------------------------------


elementary.Expm1.computed = {4: expm1, 8: expm1}
elementary.Log1p.computed = {8: log1p}  # the compiler's is off by more than 100 ulps at -0.4
elementary.Tanh.computed = {8: tanh}
elementary.Atanh.computed = {4: atanh, 8: atanh}
elementary.Cbrt.computed = {"root": cbrt}
