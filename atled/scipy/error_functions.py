"""The error function and the normal distribution: `erf`, `ndtr`, `ndtri` and their inverses and logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atled.core.array import Array, ArrayLike
from atled.numpy.promotion import promote_inexact
from atled.ops import elementary, real_functions
from atled.ops import elementwise as ew
from atled.ops import special as ops
from atled.ops.real_functions import polynomial, value
from atled.scipy.operand_promotion import wide_operands
from atled.staging.jit import library_function

_HALF = math.sqrt(0.5)


@library_function(is_thin=True)
def erf(x: ArrayLike) -> Array:
    """The error function.

    >>> round(float(erf(1.0)), 3)
    0.843
    """
    return ops.erf(promote_inexact("erf", x)[0])


@library_function(is_thin=True)
def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), accurate in the tail.

    >>> float(erfc(9.0)) > 0, float(1 - erf(9.0)) > 0
    (True, False)
    """
    return ops.erfc(promote_inexact("erfc", x)[0])


@library_function
def erfcx(x: ArrayLike) -> Array:
    """exp(x**2) * erfc(x), without overflow or underflow for positive x.

    >>> round(float(erfcx(20.0)), 3)
    0.028
    """
    (x,), back = wide_operands("erfcx", x)
    return back(real_functions.erfcx(x))


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
    """The normal quantile at p = 1/2 + middle; tail is min(p, 1 - p), without the cancellation of 1/2 - abs(middle)."""
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
    # at tail = 0 the result and its derivative are infinite
    pole = ew.neg(elementary.log(ew.select(is_end, tail, value(tail, 1))))
    size = ew.select(is_end, pole, ew.select(is_inside, size, value(size, np.nan)))
    out = ew.select(ew.lt(middle, 0), ew.neg(size), size)
    return ew.select(is_near, near, out)


@library_function
def ndtri(p: ArrayLike) -> Array:
    """The normal quantile: the x at which the normal distribution function is p.

    >>> import atled.numpy as jnp
    >>> ndtri(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    (p,), back = wide_operands("ndtri", p)
    middle = ew.sub(p, 0.5)
    return back(_quantile(middle, ew.select(ew.lt(middle, 0), p, ew.sub(1, p))))


@library_function
def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function.

    >>> round(float(erfinv(erf(0.5))), 3)
    0.5
    """
    (x,), back = wide_operands("erfinv", x)
    tail = ew.mul(ew.sub(1, ew.select(ew.lt(x, 0), ew.neg(x), x)), 0.5)
    far = ew.mul(_quantile(ew.mul(x, 0.5), tail), _HALF)
    return back(ew.select(ew.lt(elementary.absolute(x), 0.7), real_functions.erfinv_near(x), far))


@library_function
def erfcinv(x: ArrayLike) -> Array:
    """The inverse of the complementary error function, accurate in its tail.

    >>> round(float(erfcinv(erfc(2.0))), 3)
    2.0
    """
    (x,), back = wide_operands("erfcinv", x)
    p = ew.mul(x, 0.5)
    middle = ew.sub(0.5, p)
    return back(ew.mul(_quantile(middle, ew.select(ew.gt(middle, 0), p, ew.sub(1, p))), _HALF))


@library_function(is_thin=True)
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution, accurate in both tails.

    >>> round(float(ndtr(0.0)), 3), round(float(ndtr(1.96)), 3)
    (0.5, 0.975)
    """
    return ops.ndtr(promote_inexact("ndtr", x)[0])


@library_function(static=("series_order",), is_thin=True)
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of the normal distribution function, accurate in both tails.

    `series_order` has no effect and is accepted for compatibility.

    >>> import atled.numpy as jnp
    >>> round(float(log_ndtr(jnp.float32(-100.0))), 1)
    -5005.5
    """
    return ops.log_ndtr(promote_inexact("log_ndtr", x)[0])
