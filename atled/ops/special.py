"""Special functions: error functions, gamma functions, Bessel functions, and zeta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import Zero
from atled.ops import elementary, elementwise, real_functions
from atled.ops.elementwise_family import (
    Elementwise,
    function,
    match,
    one_like,
    spread_all,
    spread_tangent,
    widened,
    zero_like,
)


class Special(Elementwise):
    """Base class of special functions of real operands, provided by the compiler or `computed` with other ops."""

    takes = "f"


class Erf(Special):
    """The error function."""

    hlo = "chlo.erf"  # accurate in double precision
    computed = dict.fromkeys((4,), real_functions.erf)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return _gaussian(x, 2 / math.sqrt(math.pi))


class Erfc(Special):
    """1 - erf(x), accurate in the tail."""

    computed = dict.fromkeys((4, 8), real_functions.erfc)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return _gaussian(x, -2 / math.sqrt(math.pi))


class LogAddExp(Special):
    """log(exp(x) + exp(y)), without overflow; if `refined`, also accurate where the result is close to zero."""

    refined: bool

    def lower(self, build: Any, x: Any, y: Any) -> Any:
        compute = lambda a, b: real_functions.logaddexp(a, b, self.refined)  # noqa: E731
        lower = build.map if self.refined else build.apply
        return lower(widened(compute), *spread_all(build, self, (x, y)))

    def derivative(self, i: int, out: Any, x: Any, y: Any) -> Any:
        # equal infinities, whose difference is NaN, share the derivative
        is_lost = elementwise.logical_and(elementwise.eq(x, y), elementwise.logical_not(elementary.is_finite(x)))
        gap = elementwise.sub(x, y) if i == 0 else elementwise.sub(y, x)
        return elementary.logistic(elementwise.select(is_lost, zero_like(gap), gap))


class Ndtr(Special):
    """The CDF of the standard normal distribution, accurate in both tails."""

    computed = dict.fromkeys((4, 8), real_functions.ndtr)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(elementary.exp(elementwise.mul(elementwise.mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))


class LogNdtr(Special):
    """The logarithm of the standard normal CDF, accurate in both tails."""

    computed = dict.fromkeys((4, 8), real_functions.log_ndtr)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        scaled = widened(real_functions.erfcx)(elementwise.mul(x, -math.sqrt(0.5)))
        return elementwise.div(math.sqrt(2 / math.pi), scaled)


def _gaussian(x: Any, scale: float) -> Any:
    return elementwise.mul(elementary.exp(elementwise.neg(elementwise.mul(x, x))), scale)


class ErfInv(Special):
    """The inverse of the error function."""

    hlo = "chlo.erf_inv"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(elementary.exp(elementwise.mul(out, out)), math.sqrt(math.pi) / 2)


class Lgamma(Special):
    """The logarithm of the absolute value of the gamma function."""

    computed = dict.fromkeys((4, 8), real_functions.lgamma)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return digamma(x)


class Digamma(Special):
    """The derivative of lgamma."""

    computed = dict.fromkeys((4, 8), real_functions.digamma)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return polygamma(one_like(x), x)


class Polygamma(Special):
    """The derivative of order m + 1 of lgamma at x, for integer m."""

    hlo = "chlo.polygamma"

    def lower(self, build: Any, m: Any, x: Any) -> Any:
        m, x = spread_all(build, self, (m, x))
        inner = build.apply(self._without_edges, m, x)
        return build.apply(self._with_edges, m, x, super().lower(build, m, inner))

    def _is_edge(self, x: Any) -> Any:
        is_pole = elementwise.logical_and(elementwise.le(x, 0), elementwise.eq(elementary.floor(x), x))
        return elementwise.logical_or(is_pole, elementwise.eq(x, math.inf))

    def _without_edges(self, m: Any, x: Any) -> Any:
        return elementwise.select(self._is_edge(x), one_like(x), x)

    def _with_edges(self, m: Any, x: Any, out: Any) -> Any:
        """`out`, but inf or -inf (by parity of m) at integers up to zero, 0 at infinity, and digamma for m = 0."""
        half = elementwise.mul(m, 0.5)
        is_even = elementwise.eq(elementary.floor(half), half)
        pole = elementwise.select(is_even, np.asarray(-np.inf, type_of(x).dtype), np.asarray(np.inf, type_of(x).dtype))
        edge = elementwise.select(elementwise.gt(x, 0), zero_like(x), pole)
        out = elementwise.select(self._is_edge(x), edge, out)
        return elementwise.select(elementwise.eq(m, 0), digamma(x), out)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (m, x), (s, t) = primals, tangents
        if type(s) is not Zero:
            raise NotImplementedError(
                "Polygamma has no derivative with respect to its order; differentiate with respect to x only."
            )
        out = bind(self, m, x)
        factor = bind(self, elementwise.add(m, 1), x)
        return out, spread_tangent(elementwise.slope(t, factor), out)


class Zeta(Special):
    """The Hurwitz zeta function of x and q."""

    hlo = "chlo.zeta"

    def lower(self, build: Any, x: Any, q: Any) -> Any:
        x, q = spread_all(build, self, (x, q))
        safe = build.apply(
            lambda a, b: elementwise.select(self._is_edge(a, b), elementwise.mul(one_like(a), 2), a), x, q
        )
        return build.apply(self._with_edges, x, q, super().lower(build, safe, q))

    def _is_edge(self, x: Any, q: Any) -> Any:
        is_pole = elementwise.logical_and(elementwise.le(q, 0), elementwise.eq(elementary.floor(q), q))
        is_edge = elementwise.logical_or(is_pole, elementwise.eq(q, math.inf))
        is_far = elementwise.logical_or(elementwise.eq(x, math.inf), elementwise.ne(q, q))
        return elementwise.logical_or(is_far, elementwise.logical_and(is_edge, elementwise.gt(x, 1)))

    def _with_edges(self, x: Any, q: Any, out: Any) -> Any:
        """`out`, but inf at poles in q, 0 at infinite q, and the limit of q**-x at infinite x: 0, 1 or inf."""
        infinite = np.asarray(np.inf, type_of(q).dtype)
        edge = elementwise.select(elementwise.gt(q, 1), zero_like(q), infinite)
        edge = elementwise.select(elementwise.eq(q, 1), one_like(q), edge)
        edge = elementwise.select(elementwise.ne(q, q), q, edge)
        return elementwise.select(self._is_edge(x, q), edge, out)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, q), (s, t) = primals, tangents
        if type(s) is not Zero:
            raise NotImplementedError(
                "Zeta has no derivative with respect to its first operand; differentiate with respect to q only."
            )
        out = bind(self, x, q)
        factor = elementwise.neg(elementwise.mul(x, bind(self, elementwise.add(x, 1), q)))
        return out, spread_tangent(elementwise.slope(t, factor), out)


class Entr(Special):
    """-x log(x) for x > 0, 0 for x = 0 and -inf for x < 0; the derivative is 0 for x <= 0."""

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(self._compute, x)

    def _compute(self, x: Any) -> Any:
        edge = elementwise.select(elementwise.eq(x, 0), zero_like(x), np.asarray(-np.inf, type_of(x).dtype))
        return elementwise.select(elementwise.le(x, 0), edge, elementwise.neg(elementwise.mul(x, elementary.log(x))))

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        is_edge = elementwise.le(x, 0)
        slope = elementwise.sub(-1, elementary.log(elementwise.select(is_edge, one_like(x), x)))
        return elementwise.select(is_edge, zero_like(x), slope)


class BesselI1e(Special):
    """exp(-abs(x)) times the modified Bessel function of order 1."""

    computed = dict.fromkeys((4, 8), real_functions.bessel_i1e)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        # i0e(x) - i1e(x) * (sign(x) + 1 / x), whose limit at 0 is 1/2
        is_small = elementwise.lt(elementary.absolute(x), 1e-6)
        safe = elementwise.select(is_small, one_like(x), x)
        slope = elementwise.sub(
            bessel_i0e(safe),
            elementwise.mul(bessel_i1e(safe), elementwise.add(elementary.sign(safe), elementwise.div(1, safe))),
        )
        return elementwise.select(is_small, elementwise.mul(one_like(x), 0.5), slope)


class BesselI0e(Special):
    """exp(-abs(x)) times the modified Bessel function of order 0."""

    computed = dict.fromkeys((4, 8), real_functions.bessel_i0e)

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.sub(bessel_i1e(x), elementwise.mul(elementary.sign(x), out))


erf, erfc, erf_inv, ndtr, log_ndtr, lgamma, digamma = map(
    function, (Erf(), Erfc(), ErfInv(), Ndtr(), LogNdtr(), Lgamma(), Digamma())
)
polygamma, zeta, bessel_i0e, bessel_i1e, entr = map(function, (Polygamma(), Zeta(), BesselI0e(), BesselI1e(), Entr()))


def logaddexp(x: Any, y: Any, refined: bool = True) -> Any:
    """log(exp(x) + exp(y)), elementwise; without `refined`, results near zero have the rounding error of x and y."""
    return bind(LogAddExp(refined), *match(x, y))
