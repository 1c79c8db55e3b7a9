"""Special functions: error functions, gamma and its relatives, Bessel, zeta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from atled.core.trace import bind
from atled.core.types import Zero
from atled.ops import elementary, elementwise
from atled.ops.family import Elementwise, function, one_like, spread_all, spread_tangent


class Special(Elementwise):
    """A special function of one real operand that the compiler knows."""

    takes = "f"


class Erf(Special):
    """The error function."""

    hlo = "chlo.erf"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return _gaussian(x, 2 / math.sqrt(math.pi))


class Erfc(Special):
    """1 - erf(x), exact in the tail."""

    hlo = "chlo.erfc"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return _gaussian(x, -2 / math.sqrt(math.pi))


def _gaussian(x: Any, scale: float) -> Any:
    return elementwise.mul(elementary.exp(elementwise.neg(elementwise.mul(x, x))), scale)


class ErfInv(Special):
    """The inverse of the error function."""

    hlo = "chlo.erf_inv"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.mul(elementary.exp(elementwise.mul(out, out)), math.sqrt(math.pi) / 2)


class Lgamma(Special):
    """The logarithm of the absolute value of the gamma function."""

    hlo = "chlo.lgamma"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return digamma(x)


class Digamma(Special):
    """The derivative of lgamma."""

    hlo = "chlo.digamma"
    is_singular = True

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return polygamma(one_like(x), x)


class Polygamma(Special):
    """Derivative number m + 1 of lgamma at x, for whole m."""

    hlo = "chlo.polygamma"
    is_singular = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (m, x), (s, t) = primals, tangents
        if type(s) is not Zero:
            raise NotImplementedError(
                "Polygamma has no derivative by its order; differentiation by x alone is defined."
            )
        out = bind(self, m, x)
        factor = bind(self, elementwise.add(m, 1), x)
        return out, spread_tangent(elementwise.shielded(t, factor), out)


class Zeta(Special):
    """The Hurwitz zeta function of x and q."""

    hlo = "chlo.zeta"
    is_singular = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, q), (s, t) = primals, tangents
        if type(s) is not Zero:
            raise NotImplementedError(
                "Zeta has no derivative by its first operand; differentiation by q alone is defined."
            )
        out = bind(self, x, q)
        factor = elementwise.neg(elementwise.mul(x, bind(self, elementwise.add(x, 1), q)))
        return out, spread_tangent(elementwise.shielded(t, factor), out)


class BesselI1e(Special):
    """exp(-abs(x)) times the modified Bessel function of order 1."""

    hlo = "chlo.bessel_i1e"

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        # i0e(x) - i1e(x) * (sign(x) + 1 / x), which tends to 1/2 at 0
        is_small = elementwise.lt(elementary.absolute(x), 1e-6)
        safe = elementwise.select(is_small, one_like(x), x)
        slope = elementwise.sub(
            bessel_i0e(safe),
            elementwise.mul(bessel_i1e(safe), elementwise.add(elementary.sign(safe), elementwise.div(1, safe))),
        )
        return elementwise.select(is_small, elementwise.mul(one_like(x), 0.5), slope)


class BesselI0e(Special):
    """exp(-abs(x)) times the modified Bessel function of order 0."""

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(_bessel_i0e, *spread_all(build, self, (x,)))

    def derivative(self, i: int, out: Any, x: Any) -> Any:
        return elementwise.sub(bessel_i1e(x), elementwise.mul(elementary.sign(x), out))


def _chebyshev(x: Any, coefficients: Sequence[float]) -> Any:
    """A Chebyshev series by Clenshaw's recurrence, in the form of the Cephes library."""
    zero = elementwise.mul(x, 0)
    b0, b1, b2 = zero, zero, zero
    for c in coefficients:
        b2, b1 = b1, b0
        b0 = elementwise.add(elementwise.sub(elementwise.mul(x, b1), b2), c)
    return elementwise.mul(elementwise.sub(b0, b2), 0.5)


# Chebyshev coefficients of exp(-x) I0(x) on [0, 8] and of exp(-x) sqrt(x) I0(x) on the rest (Cephes, i0.c)
_I0_NEAR = (
    -4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16, 1.71539128555513303061e-15,
    -1.16853328779934516808e-14, 7.67618549860493561688e-14, -4.85644678311192946090e-13, 2.95505266312963983461e-12,
    -1.72682629144155570723e-11, 9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-9,
    -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7, 1.11738753912010371815e-6,
    -4.41673835845875056359e-6, 1.64484480707288970893e-5, -5.75419501008210370398e-5, 1.88502885095841655729e-4,
    -5.76375574538582365885e-4, 1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
    -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2, 1.71620901522208775349e-1,
    -3.04682672343198398683e-1, 6.76795274409476084995e-1,
)  # fmt: skip
_I0_FAR = (
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17, 3.46122286769746109310e-17,
    -2.82762398051658348494e-16, -3.42548561967721913462e-16, 1.77256013305652638360e-15, 3.81168066935262242075e-15,
    -9.55484669882830764870e-15, -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11, -3.14991652796324136454e-11,
    1.18891471078464383424e-11, 4.94060238822496958910e-10, 3.39623202570838634515e-9, 2.26666899049817806459e-8,
    2.04891858946906374183e-7, 2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)  # fmt: skip


def _bessel_i0e(x: Any) -> Any:
    size = elementary.absolute(x)
    near = _chebyshev(elementwise.sub(elementwise.mul(size, 0.5), 2.0), _I0_NEAR)
    safe = elementwise.maximum(size, elementwise.mul(one_like(x), 8.0))
    far = _chebyshev(elementwise.sub(elementwise.div(32.0, safe), 2.0), _I0_FAR)
    far = elementwise.div(far, elementary.sqrt(safe))
    return elementwise.select(elementwise.le(size, 8.0), near, far)


erf, erfc, erf_inv, lgamma, digamma = map(function, (Erf(), Erfc(), ErfInv(), Lgamma(), Digamma()))
polygamma, zeta, bessel_i0e, bessel_i1e = map(function, (Polygamma(), Zeta(), BesselI0e(), BesselI1e()))
