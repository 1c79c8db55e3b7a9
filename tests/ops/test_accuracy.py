"""Errors in units in the last place against mpmath: at most four for all functions but one.

Half of the points are spread evenly over the range, half evenly over the magnitudes, and a few are where a function is
computed in another way than next to it. Results that are subnormal are left out: the engine may flush them to zero.
"""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn
from atled.scipy import special

mp = pytest.importorskip("mpmath")
LIMIT = 4.0
OTHERS = {("gamma", "f8"): 8.0}  # a power that is rounded is squared


def gelu(x):
    return nn.gelu(x, approximate=False)


WHOLE = ((-80, 88), (-700, 709))
ONE = {  # name: the function, the truth, the range in single and in double precision
    "exp": (jnp.exp, mp.exp, WHOLE),
    "exp2": (jnp.exp2, lambda x: mp.power(2, x), ((-125, 127), (-1020, 1023))),
    "expm1": (jnp.expm1, mp.expm1, WHOLE),
    "log": (jnp.log, mp.log, ((0, 1e38), (0, 1e300))),
    "log1p": (jnp.log1p, mp.log1p, (-0.999, 1e6)),
    "log1p near": (jnp.log1p, mp.log1p, (-0.9, 1.0)),
    "log2": (jnp.log2, lambda x: mp.log(x, 2), ((0, 1e38), (0, 1e300))),
    "log10": (jnp.log10, mp.log10, ((0, 1e38), (0, 1e300))),
    "sin": (jnp.sin, mp.sin, (-1e4, 1e4)),
    "cos": (jnp.cos, mp.cos, (-1e4, 1e4)),
    "tan": (jnp.tan, mp.tan, (-100, 100)),
    "tanh": (jnp.tanh, mp.tanh, ((-6, 6), (-20, 20))),
    "sinh": (jnp.sinh, mp.sinh, ((-85, 85), (-700, 700))),
    "cosh": (jnp.cosh, mp.cosh, ((-85, 85), (-700, 700))),
    "arcsin": (jnp.arcsin, mp.asin, (-1, 1)),
    "arccos": (jnp.arccos, mp.acos, (-1, 1)),
    "arctan": (jnp.arctan, mp.atan, (-1e3, 1e3)),
    "arcsinh": (jnp.arcsinh, mp.asinh, (-1e6, 1e6)),
    "arccosh": (jnp.arccosh, mp.acosh, (1, 1e6)),
    "arctanh": (jnp.arctanh, mp.atanh, (-0.999, 0.999)),
    "sqrt": (jnp.sqrt, mp.sqrt, ((0, 1e38), (0, 1e300))),
    "rsqrt": (lax.rsqrt, lambda x: 1 / mp.sqrt(x), ((0, 1e38), (0, 1e300))),
    "cbrt": (jnp.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), ((-1e30, 1e30), (-1e200, 1e200))),
    "sigmoid": (nn.sigmoid, lambda x: 1 / (1 + mp.exp(-x)), ((-80, 80), (-600, 600))),
    "softplus": (nn.softplus, lambda x: mp.log1p(mp.exp(x)), ((-80, 80), (-600, 600))),
    "gelu": (gelu, lambda x: x * mp.ncdf(x), (-8, 10)),
    "erf": (special.erf, mp.erf, (-6, 6)),
    "erfc": (special.erfc, mp.erfc, ((-4, 9), (-6, 26))),
    "erfcx": (special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), ((-9, 40), (-26, 60))),
    "erfinv": (special.erfinv, mp.erfinv, (-0.9, 0.9)),
    "ndtr": (special.ndtr, mp.ncdf, ((-12, 8), (-30, 8))),
    "log_ndtr": (special.log_ndtr, lambda x: mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x)), (-30, 8)),
    "lgamma": (special.gammaln, lambda x: mp.log(abs(mp.gamma(x))), (0.01, 1e4)),
    "digamma": (special.digamma, mp.digamma, (0.01, 1e4)),
    "i0e": (special.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), (-50, 50)),
    "i1e": (special.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (-50, 50)),
    "gamma": (special.gamma, mp.gamma, ((0.01, 34), (0.01, 170))),
}
# where one way of computing ends and the next begins
BORDERS = [0.5, 0.7, 0.92, 0.95, 1.0, 1.25, 1.4616321, 1.5, 2.0, 2.5, 3.5, 7.5, 8.0, 0.34657]


def points(low, high, dtype, count):
    r = np.random.RandomState(7)
    largest, least = max(abs(low), abs(high)), {"f4": 1e-30, "f8": 1e-200}[dtype]
    spread = r.uniform(low, high, count // 2)
    sizes = np.exp(r.uniform(np.log(least), np.log(largest), count // 2)) * r.choice(
        [-1, 1] if low < 0 else [1], count // 2
    )
    at = np.concatenate([[b * s, np.nextafter(b, 0) * s, b * (1 + 1e-6) * s] for b in BORDERS for s in (1, -1)])
    x = np.concatenate([spread, sizes, at]).astype(dtype)
    return x[(x >= low) & (x <= high) & (np.abs(x) >= np.finfo(dtype).tiny)]


def worst(got, operands, truth, dtype):
    """The largest error, in units in the last place of the truth, and where it is."""
    info, found = np.finfo(dtype), (0.0, None)
    with mp.workprec(160):
        for g, *xs in zip(got, *operands):
            t = truth(*[mp.mpf(float(x)) for x in xs])
            if t == 0 or not info.tiny <= abs(t) <= info.max:
                continue
            unit = mp.mpf(2) ** (mp.floor(mp.log(abs(t), 2)) - info.nmant)
            error = float(abs(mp.mpf(float(g)) - t) / unit) if np.isfinite(g) else np.inf
            found = max(found, (error, tuple(map(float, xs))), key=lambda e: e[0])
    return found


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name, dtype):
    f, truth, ranges = ONE[name]
    low, high = ranges[dtype == "f8"] if isinstance(ranges[0], tuple) else ranges
    x = points(low, high, dtype, 60 if name in ("erfinv", "i0e", "i1e", "lgamma", "digamma") else 300)
    error, where = worst(np.asarray(f(x)), (x,), truth, dtype)
    assert error <= OTHERS.get((name, dtype), LIMIT), (error, where)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gamma_of_negative_numbers(dtype):
    x = np.random.RandomState(5).uniform(-30, 0, 300).astype(dtype)
    error, where = worst(np.asarray(special.gamma(x)), (x,), mp.gamma, dtype)
    assert error <= OTHERS.get(("gamma", dtype), LIMIT), (error, where)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_exponentials(dtype):
    """Also where the result is close to zero, which is a difference of numbers that are not."""
    r = np.random.RandomState(3)
    y = np.concatenate([r.uniform(-3, -0.01, 300), r.uniform(-20, 20, 100)]).astype(dtype)
    near = np.log(-np.expm1(y[:300].astype("f8"))) + 10.0 ** r.uniform(-3, -1, 300) * r.choice([-1, 1], 300)
    x = np.concatenate([near, r.uniform(-20, 20, 100)]).astype(dtype)
    truth = lambda a, b: mp.log(mp.exp(a) + mp.exp(b))
    error, where = worst(np.asarray(jnp.logaddexp(x, y)), (x, y), truth, dtype)
    assert error <= LIMIT, (error, where)


@pytest.mark.parametrize("name", ["power", "arctan2", "hypot"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_two_operands(name, dtype):
    r = np.random.RandomState(4)
    x, y = np.exp(r.uniform(-20, 20, 300)).astype(dtype), r.uniform(-3, 3, 300).astype(dtype)
    truth = {"power": mp.power, "arctan2": mp.atan2, "hypot": mp.hypot}[name]
    error, where = worst(np.asarray(getattr(jnp, name)(x, y)), (x, y), truth, dtype)
    assert error <= LIMIT, (error, where)


def test_values_beyond_numbers():
    """NaN, infinities, signed zeros and poles."""
    inf, nan = np.inf, np.nan
    rows = {
        "expm1": ([nan, inf, -inf, -0.0, 800.0, -800.0], [nan, inf, -1, -0.0, inf, -1]),
        "log1p": ([nan, inf, -inf, -0.0, 0.0, -1.0, -2.0], [nan, inf, nan, -0.0, 0.0, -inf, nan]),
        "tanh": ([nan, inf, -inf, -0.0], [nan, 1, -1, -0.0]),
        "arctanh": ([nan, 1, -1, -0.0, 2.0], [nan, inf, -inf, -0.0, nan]),
        "cbrt": ([nan, inf, -inf, -0.0, -8], [nan, inf, -inf, -0.0, -2]),
        "erf": ([nan, inf, -inf, -0.0], [nan, 1, -1, -0.0]),
        "erfc": ([nan, inf, -inf, 0.0], [nan, 0, 2, 1]),
        "erfcx": ([nan, inf, -inf, 0.0], [nan, 0, inf, 1]),
        "ndtr": ([nan, inf, -inf, 0.0], [nan, 1, 0, 0.5]),
        "log_ndtr": ([nan, inf, -inf], [nan, -0.0, -inf]),
        "gammaln": ([nan, inf, -inf, 0.0, -0.0, 1, 2, -1, -3.0], [nan, inf, inf, inf, inf, -0.0, 0, inf, inf]),
        "digamma": ([nan, inf, 0.0, -0.0, -1, -5.0], [nan, inf, -inf, inf, nan, nan]),
        "i0e": ([nan, inf, -inf, 0.0], [nan, 0, 0, 1]),
    }
    for name, (x, want) in rows.items():
        f = getattr(special, name, None) or getattr(jnp, name)
        for dtype in ("f4", "f8"):
            got = np.asarray(f(np.array(x, dtype)))
            np.testing.assert_array_equal(got, np.array(want, dtype), name)
            signs = ~np.isnan(got)
            np.testing.assert_array_equal(np.signbit(got)[signs], np.signbit(np.array(want))[signs], name)
    np.testing.assert_array_equal(
        jnp.logaddexp(jnp.array([inf, -inf, inf, nan, -inf]), jnp.array([inf, -inf, -inf, 1, 1.0])),
        np.array([inf, -inf, inf, nan, 1], "f4"),
    )


def test_reflection():
    """Negative operands of gamma's logarithm and its derivative."""
    x = np.array([-0.25, -0.5, -0.75, -1.5, -2.3, -7.1, -50.5, -1e-20, -1e-300])
    with mp.workprec(160):
        want = [float(mp.log(abs(mp.gamma(v)))) for v in x], [float(mp.digamma(mp.mpf(v))) for v in x]
    np.testing.assert_allclose(special.gammaln(x), want[0], rtol=1e-13)
    np.testing.assert_allclose(special.digamma(x), want[1], rtol=1e-13)


def test_half_precisions_are_rounded_once():
    for dtype in ("float16", "bfloat16"):
        x = jnp.linspace(0.1, 4, 50).astype(dtype)
        for f in (jnp.expm1, jnp.cbrt, special.erf, special.erfc, special.ndtr, special.gammaln, special.digamma):
            want = f(x.astype("float32")).astype(dtype)
            np.testing.assert_array_equal(np.asarray(f(x), "f4"), np.asarray(want, "f4"))


def test_derivatives_in_the_tails():
    slope = atled.vmap(atled.grad(special.log_ndtr))
    x = np.array([-1e4, -100.0, -30.0, -5.0, -0.1, 0.0, 3.0, 30.0])
    with mp.workprec(300):
        want = [
            float(mp.exp(-(mp.mpf(v) ** 2) / 2) / mp.sqrt(2 * mp.pi) / mp.ncdf(v)) if v > -40 else -v - 1 / v for v in x
        ]
    np.testing.assert_allclose(slope(x), want, rtol=1e-7)
    np.testing.assert_allclose(slope(x[2:]), want[2:], rtol=1e-13)
    second = atled.vmap(atled.grad(atled.grad(special.log_ndtr)))(x)
    assert np.isfinite(np.asarray(second)).all()
    np.testing.assert_allclose(second[0], -1, rtol=1e-6)


@pytest.mark.parametrize("f", [special.erf, special.gammaln, jnp.expm1, lambda x: jnp.logaddexp(x, 1 - x)])
def test_long_functions_are_one_loop(f):
    """Loops over the memory, which the compiler would make one of for each value that is used twice."""
    x = jnp.ones((16, 16))
    entry = atled.jit(f).lower(x).compile().as_text().split("ENTRY")[1]
    loops = [line for line in entry.splitlines() if " fusion(" in line or " map(" in line or " call(" in line]
    assert 1 <= len(loops) <= 2, entry
