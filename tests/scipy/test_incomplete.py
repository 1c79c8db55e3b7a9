"""Incomplete gamma and beta functions against mpmath, in the tails too; derivatives by all operands, twice."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.scipy import special

scipy_special = pytest.importorskip("scipy.special")
mpmath = pytest.importorskip("mpmath")
mpf = mpmath.mpf
inf, nan = np.inf, np.nan


def gamma_points():
    """Small, moderate and large parameters; on both sides of the borders of all ranges, and far out."""
    rows = []
    for a in (1e-8, 1e-3, 0.1, 0.49, 0.51, 1.0, 3.3, 11.9, 12.1, 40.0, 1000.0):
        ratios = (1e-3, 0.29, 0.31, 0.9, 1.0, 1.1, 2.3, 2.4, 20.0)
        rows += [(a, a * r) for r in ratios] + [(a, x) for x in (1e-8, 0.5, 1.9, 2.1, 6.0)]
        rows += [(a, a + k * np.sqrt(a)) for k in (-6, -1, 0.3, 3, 9) if a > 40]
    return np.array(rows).T


def beta_points():
    """As for gamma, around the mean in units of the spread, and far out."""
    rows = []
    sizes = (1e-6, 0.1, 0.51, 1.0, 3.3, 11.9, 12.1, 40.0, 900.0)
    for a in sizes:
        for b in sizes:
            mean, spread = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
            near = [mean + k * spread for k in (-6, -2, 0, 1, 4)]
            rows += [(a, b, x) for x in (1e-6, 0.3, 0.99, *near) if 0 < x < 1]
    return np.array(rows).T


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def beta_integral(a, b, x):
    log = a * mpmath.log(x) + b * mpmath.log1p(-x) + mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)
    if x <= (a + 1) / (a + b + 2):
        return mpmath.exp(log) / a * mpmath.hyp2f1(a + b, 1, a + 1, x)
    return 1 - mpmath.exp(log) / b * mpmath.hyp2f1(a + b, 1, b + 1, 1 - x)


VALUES = {
    "gammainc": (lower, gamma_points()),
    "gammaincc": (upper, gamma_points()),
    "betainc": (beta_integral, beta_points()),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_exact_in_all_ranges(name):
    exact, operands = VALUES[name]
    for dtype, tol in (("float64", 5e-13), ("float32", 2e-7)):
        given = operands.astype(dtype)
        if dtype == "float32":
            given = given[:, ::7]
        with mpmath.workdps(40):
            want = np.array([float(exact(*map(mpf, map(float, row)))) for row in given.T])
        usual = np.abs(want) > np.finfo(dtype).tiny * 1e3
        got = getattr(special, name)(*given)
        assert got.dtype == dtype
        np.testing.assert_allclose(np.asarray(got)[usual], want[usual], rtol=tol)
        assert np.all(np.abs(np.asarray(got)[~usual]) < np.finfo(dtype).tiny * 2e3)


def test_huge_parameters():
    """Where the width is a millionth of the mean: x is as exact as it is given."""
    for a, b, x in ((1e6, 1e6, 0.49681802028015537), (1e9, 1e9, 0.49989937694103764), (1e12, 3.0, 1 - 1e-11)):
        with mpmath.workdps(40):
            p, q, r = mpf(a), mpf(b), mpf(x)
            log = p * mpmath.log(r) + q * mpmath.log1p(-r) + mpmath.loggamma(p + q)
            log -= mpmath.loggamma(p) + mpmath.loggamma(q)
            tail = mpf(0)
            for n in range(2000, 0, -1):  # the classical continued fraction
                m = n // 2
                if n % 2:
                    d = -(p + m) * (p + q + m) * r / ((p + 2 * m) * (p + 2 * m + 1))
                else:
                    d = m * (q - m) * r / ((p + 2 * m - 1) * (p + 2 * m))
                tail = d / (1 + tail)
            want = float(mpmath.exp(log) / p / (1 + tail))
        got = float(special.betainc(*[np.array([v]) for v in (a, b, x)])[0])
        assert abs(got / want - 1) < 1e-13, (a, b, x)
    a = np.array([1e6, 1e9, 1e15])
    x = a + np.sqrt(a) * np.array([-5.0, 0.5, 4.0])
    with mpmath.workdps(40):
        density = lambda t, p: mpmath.exp((p - 1) * mpmath.log(t) - t - mpmath.loggamma(p))
        ranges = [mpmath.linspace(p - 14 * mpmath.sqrt(p), q, 12) for p, q in zip(map(mpf, a), map(mpf, x))]
        want = [float(mpmath.quad(lambda t, p=p: density(t, p), r)) for p, r in zip(map(mpf, a), ranges)]
    np.testing.assert_allclose(special.gammainc(a, x), want, rtol=1e-14)


def test_edges():
    a, x = (v.ravel() for v in np.meshgrid([0.0, -1.0, 0.5, 1.0, 3.0, inf, nan], [0.0, -1.0, 1.0, inf, nan]))
    for name in ("gammainc", "gammaincc"):
        np.testing.assert_allclose(getattr(special, name)(a, x), getattr(scipy_special, name)(a, x), rtol=1e-13)
    a, b = (v.ravel() for v in np.meshgrid([0.5, 1.0, 2.0, -1.0, nan], [0.5, 1.0, 2.0, -1.0, nan]))
    for at in (0.0, 1.0, -0.1, 1.1, nan, 0.5):
        got = special.betainc(a, b, np.full_like(a, at))
        np.testing.assert_allclose(got, scipy_special.betainc(a, b, at), rtol=1e-13)
    for given, want in (((inf, 1.0), 0), ((1.0, inf), 1), ((0.0, 1.0), 1), ((1.0, 0.0), 0), ((inf, inf), nan)):
        np.testing.assert_equal(float(special.betainc(*given, 0.5)), want)
    with atled.enable_x64():
        slope = atled.vmap(atled.grad(special.gammainc, 1))
        np.testing.assert_array_equal(slope(jnp.array([0.5, 1.0, 2.0, 2.0]), jnp.array([0, 0, 0, inf])), [inf, 1, 0, 0])
        slope = atled.vmap(atled.grad(special.betainc, 2))
        ends = slope(jnp.array([0.5, 1.0, 2.0, 1.0]), jnp.array([1.0, 3.0, 0.5, 2.0]), jnp.array([0.0, 0.0, 1.0, 1.0]))
        np.testing.assert_array_equal(ends, [inf, 3, inf, 0])


# -- derivatives ------------------------------------------------------------------------------------------------------

INSIDE = {
    "gammainc": (lower, [(2, 3), (0.3, 0.2), (30, 50), (12, 12), (13, 60), (1e-3, 0.3), (0.2, 1.9), (300, 290)]),
    "gammaincc": (upper, [(2, 3), (0.3, 0.2), (30, 50), (12, 12), (13, 60), (1e-3, 0.3), (0.2, 1.9), (300, 290)]),
    "betainc": (
        lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
        [(2, 3, 0.4), (0.3, 0.2, 0.9), (30, 50, 0.3), (15, 15, 0.5), (90, 5, 0.99), (1e-3, 2, 0.3), (2, 1e-3, 0.7)],
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_derivatives_by_every_operand(name):
    exact, rows = INSIDE[name]
    f = getattr(special, name)
    operands = tuple([jnp.asarray(v) for v in np.array(rows, float).T])
    count = len(operands)
    total = lambda *xs: jnp.sum(f(*xs))
    with atled.enable_x64():
        first = atled.jit(atled.grad(total, tuple(range(count))))(*operands)
        pairs = [(0, 0), (0, 1), (1, count - 1)]  # what is known in closed form, and what is not
        second = {
            (i, j): atled.grad(lambda *xs, i=i: jnp.sum(atled.grad(total, i)(*xs)), j)(*operands) for i, j in pairs
        }
    for k, row in enumerate(rows):
        with mpmath.workdps(50):
            at = [mpf(v) for v in row]

            def moved(*moves, at=at):
                point = list(at)
                for i, h in moves:
                    point[i] += h
                return exact(*point)

            h = [v * mpf(10) ** -12 for v in at]
            for i in range(count):
                want = float((moved((i, h[i])) - moved((i, -h[i]))) / (2 * h[i]))
                np.testing.assert_allclose(first[i][k], want, rtol=1e-11)
            for i, j in pairs:
                signs = [(s, t) for s in (1, -1) for t in (1, -1)]
                want = sum(s * t * moved((i, s * h[i] / 2), (j, t * h[j] / 2)) for s, t in signs) / (h[i] * h[j])
                np.testing.assert_allclose(second[i, j][k], float(want), rtol=1e-9, atol=1e-13)


def test_under_transformations():
    a, b, x = (
        np.random.RandomState(i).uniform(0.2, 0.9, (3, 4)).astype(np.float32) * s for i, s in enumerate((4, 9, 1))
    )
    for f, operands in ((special.gammainc, (a, x * 5)), (special.betainc, (a, b, x))):
        want = np.asarray(f(*operands))
        np.testing.assert_array_equal(atled.vmap(f)(*operands), want)
        np.testing.assert_array_equal(atled.jit(f)(*operands), want)
        slope = atled.vmap(atled.grad(f), in_axes=(0, *[None] * (len(operands) - 1)))
        rest = [v[0, 0] for v in operands[1:]]
        loop = [atled.grad(f)(v, *rest) for v in operands[0][0]]
        np.testing.assert_allclose(slope(jnp.asarray(operands[0][0]), *rest), loop, rtol=1e-6)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert special.gammainc(jnp.ones(2, dtype), jnp.ones(2, dtype)).dtype == dtype
    assert special.betainc(1, 2, 0.5).dtype == np.float32
    assert special.gammaincc(jnp.zeros((0, 3)) + 1, 2.0).shape == (0, 3)
    assert special.gammainc(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    with pytest.raises(TypeError, match=r"gammainc: real numbers are needed; got c128\[1\] and f64\[1\]"):
        special.gammainc(np.array([1j]), np.array([1.0]))


def test_lax_names():
    a, x = np.float32([0.3, 2.0, 7.0, 30.0]), np.float32([0.2, 3.0, 5.0, 28.0])
    np.testing.assert_array_equal(lax.igamma(a, x), special.gammainc(a, x))
    np.testing.assert_array_equal(lax.igammac(a, x), special.gammaincc(a, x))
    np.testing.assert_array_equal(lax.betainc(a, x, 1 / x), special.betainc(a, x, 1 / x))
    np.testing.assert_allclose(lax.igamma_grad_a(a, x), atled.vmap(atled.grad(special.gammainc))(a, x), rtol=1e-6)
    quantile = scipy_special.gammaincinv
    wide, h = a.astype(float), 1e-5
    p = scipy_special.gammainc(wide, x)
    np.testing.assert_allclose(
        lax.random_gamma_grad(a, x), (quantile(wide + h, p) - quantile(wide - h, p)) / (2 * h), rtol=1e-5
    )
    with pytest.raises(TypeError, match="igamma: operands must have the same dtype"):
        lax.igamma(a, x.astype(np.float64))
