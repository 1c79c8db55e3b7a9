"""SciPy's special functions; most are imported from the other files of this folder.

The functions and their derivatives are accurate in the tails: each range of operands has its own formula, and operands
outside of the range are replaced before it is evaluated. 16-bit floats are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes
from atled.core.trace import bind
from atled.nn import activations as nn
from atled.numpy.elementwise_family import to_bool
from atled.numpy.promotion import broadcast, broadcast_to, cast, operand_type, promote_inexact
from atled.ops import conversion, elementary, reduction, shape
from atled.ops import elementwise as ew
from atled.ops import special as ops
from atled.ops.real_functions import polynomial, value
from atled.scipy.bessel_harmonics import bernoulli, bessel_jn, sph_harm_y
from atled.scipy.error_functions import erf, erfc, erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri
from atled.scipy.gamma_functions import (
    beta,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    polygamma,
    zeta,
)
from atled.scipy.hypergeometric import hyp1f1, hyp2f1, poch
from atled.scipy.incomplete_gamma_beta import betainc, gammainc, gammaincc
from atled.scipy.integral_functions import dawsn, exp1, expi, expn, fresnel, owens_t, sici, spence, wofz
from atled.scipy.operand_promotion import all_of, wide_operands
from atled.staging.jit import library_function

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn", "digamma",
    "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi", "expit", "expn", "factorial", "fresnel",
    "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e",
    "kl_div", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri",
    "owens_t", "poch", "polygamma", "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip
__dir__ = __all__.copy


# -- Bessel functions -------------------------------------------------------------------------------------------------


@library_function
def i0e(x: ArrayLike) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 0.

    >>> round(float(i0e(100.0)), 3)
    0.04
    """
    (x,), back = wide_operands("i0e", x)
    return back(ops.bessel_i0e(x))


@library_function
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0.

    >>> round(float(i0(1.0)), 3)
    1.266
    """
    (x,), back = wide_operands("i0", x)
    return back(ew.mul(elementary.exp(elementary.absolute(x)), ops.bessel_i0e(x)))


@library_function
def i1e(x: ArrayLike) -> Array:
    """exp(-abs(x)) times the modified Bessel function of order 1.

    >>> round(float(i1e(100.0)), 3)
    0.04
    """
    (x,), back = wide_operands("i1e", x)
    return back(ops.bessel_i1e(x))


@library_function
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1.

    >>> round(float(i1(1.0)), 3)
    0.565
    """
    (x,), back = wide_operands("i1", x)
    return back(ew.mul(elementary.exp(elementary.absolute(x)), ops.bessel_i1e(x)))


# -- logistic function, entropies, powers -----------------------------------------------------------------------------


@library_function(is_thin=True)
def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    >>> round(float(expit(0.0)), 3), round(float(expit(2.0)), 3)
    (0.5, 0.881)
    """
    return elementary.logistic(promote_inexact("expit", x)[0])


@library_function
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), accurate near 0, 1/2 and 1.

    >>> import atled.numpy as jnp
    >>> logit(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    (x,), back = wide_operands("logit", x)
    is_near = all_of(ew.gt(x, 0.3), ew.lt(x, 0.65))
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
        is_lost = all_of(is_zero, ew.logical_or(ew.le(y, lowest), ew.eq(y, value(y, np.inf))))
    return ew.mul(x, log(ew.select(is_lost, value(y, lowest + 1), y)))


@library_function
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(y), and zero where x is zero; derivatives are finite there, also for y = 0.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32)
    """
    x, y = broadcast("xlogy", promote_inexact("xlogy", x, y))
    return _times_logarithm(x, y, elementary.log, 0.0)


@library_function
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), and zero where x is zero; derivatives are finite there, also for y = -1.

    >>> import atled.numpy as jnp
    >>> xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.0]))
    Array([0., 0.], dtype=float32)
    """
    x, y = broadcast("xlog1py", promote_inexact("xlog1py", x, y))
    return _times_logarithm(x, y, elementary.log1p, -1.0)


@library_function
def entr(x: ArrayLike) -> Array:
    """-x log(x), zero at zero and minus infinity below. The derivative at zero, which is infinite, is defined as zero.

    >>> import atled.numpy as jnp
    >>> entr(jnp.array([-1.0, 0.0])), round(float(entr(0.5)), 3)
    (Array([-inf,   0.], dtype=float32), 0.347)
    """
    (x,), back = wide_operands("entr", x)
    return back(ops.entr(x))


def _relative_entropy(p: Any, q: Any) -> tuple[Any, Any]:
    """p log(p / q) for positive p and q, 0 for p = 0 <= q, else infinity; and a mask of positive (or NaN) p and q."""
    has_nan = ew.logical_or(ew.ne(p, p), ew.ne(q, q))
    is_inside = ew.logical_or(all_of(ew.gt(p, 0), ew.gt(q, 0)), has_nan)
    is_zero = all_of(ew.eq(p, 0), ew.ge(q, 0))
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
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q), zero where p is zero, and infinite where p or q is negative, or q alone is zero.

    >>> import atled.numpy as jnp
    >>> rel_entr(jnp.array([0.5, 0.0, 0.5]), jnp.array([0.5, 0.5, 0.0]))
    Array([ 0.,  0., inf], dtype=float32)
    """
    (p, q), back = wide_operands("rel_entr", p, q)
    return back(_relative_entropy(p, q)[1])


@library_function
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q, which is never negative; if p or q is not positive, it uses the value of `rel_entr`.

    >>> import atled.numpy as jnp
    >>> kl_div(jnp.array([0.5, 0.0]), jnp.array([0.5, 0.25]))
    Array([0.  , 0.25], dtype=float32)
    """
    (p, q), back = wide_operands("kl_div", p, q)
    _, entropy = _relative_entropy(p, q)
    is_infinite = ew.eq(entropy, value(entropy, np.inf))
    return back(ew.select(is_infinite, entropy, ew.add(ew.sub(entropy, ew.select(is_infinite, value(p, 0), p)), q)))


def _relative_exponential(x: Any) -> Any:
    """(exp(x) - 1) / x, continued by its limit at zero; all derivatives are correct there."""
    is_small = ew.lt(elementary.absolute(x), 0.02)
    small, large = ew.select(is_small, x, value(x, 0)), ew.select(is_small, value(x, 1), x)
    series = polynomial(small, [1 / math.factorial(k + 1) for k in range(9)])
    return ew.select(is_small, series, ew.div(elementary.expm1(large), large))


@library_function
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x**lmbda - 1) / lmbda, which is log(x) for lmbda = 0.

    >>> import atled.numpy as jnp
    >>> boxcox(jnp.array([1.0, 3.0]), 2.0).round()
    Array([0., 4.], dtype=float32)
    """
    (x, power), back = wide_operands("boxcox", x, lmbda)
    logarithm = elementary.log(x)
    return back(_power_transform(logarithm, power))


@library_function
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """((1 + x)**lmbda - 1) / lmbda, which is log(1 + x) for lmbda = 0.

    >>> import atled.numpy as jnp
    >>> boxcox1p(jnp.array([0.0, 2.0]), 2.0).round()
    Array([0., 4.], dtype=float32)
    """
    (x, power), back = wide_operands("boxcox1p", x, lmbda)
    return back(_power_transform(elementary.log1p(x), power))


def _power_transform(logarithm: Any, power: Any) -> Any:
    # limits for positive and negative power: at zero -1 / power and -inf, at infinity inf and -1 / power
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


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """exp(x) scaled to sum to one over axes, by default all.

    >>> import atled.numpy as jnp
    >>> softmax(jnp.zeros((2, 2)))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return nn.softmax(x, _plain_axis(axis))


def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """log(softmax(x)) over axes, by default all; finite also where softmax(x) underflows.

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
    other_axes = tuple([i for i in range(len(dims)) if i not in axes])
    term = elementary.exp(ew.sub(x, cast(shape.broadcast(top, dims, other_axes), type_of(x).dtype)))
    term = term if b is None else ew.mul(term, weight)
    if keep is not None:
        term = ew.select(keep, term, np.zeros((), type_of(term).dtype))
    total = reduction.reduce_sum(term, axes)
    if return_sign:
        out = ew.add(elementary.log(elementary.absolute(total)), top)
    else:
        out = ew.add(elementary.log(total), cast(top, type_of(total).dtype))
    results = [out, elementary.sign(total)]
    if keepdims:
        results = [shape.reshape(v, [1 if i in axes else n for i, n in enumerate(dims)]) for v in results]
    return tuple(results) if return_sign else results[0]


def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """log(sum(b * exp(a))) over axes, without overflow; with `return_sign`, also the sign of the sum.

    >>> import atled.numpy as jnp
    >>> logsumexp(jnp.array([-jnp.inf, 0.0]))
    Array(0., dtype=float32)
    """
    axis = _plain_axis(axis)
    kinds = [operand_type("logsumexp", x).kind for x in (a, b) if x is not None]
    if "c" in kinds:
        return _complex_logsumexp(a, axis, b, keepdims, return_sign, where)
    return nn.logsumexp(a, axis, b, keepdims, return_sign, where)
