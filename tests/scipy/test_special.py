"""Special functions against SciPy, and against mpmath in the tails; derivatives against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.scipy import special

scipy_special = pytest.importorskip("scipy.special")
mpmath = pytest.importorskip("mpmath")
inf, nan = np.inf, np.nan


def same(got, want, tol):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    np.testing.assert_allclose(got, want, rtol=tol, atol=0)


LINE = np.linspace(-20.1, 40.3, 301)
SMALL = 10.0 ** -np.arange(1, 300, 7)
ONE = {  # name: operands for float64, tolerance
    "erf": (np.linspace(-6, 6, 201), 1e-14),
    "erfc": (np.linspace(-6, 5, 201), 1e-14),  # the tail: tests/ops/test_accuracy.py, as SciPy errs there
    "erfcx": (np.r_[np.linspace(-26, 40, 401), 10.0 ** np.arange(2, 30), inf], 1e-13),
    "erfinv": (
        np.r_[np.linspace(-1, 1, 201), 1 - 10.0 ** -np.arange(1, 16), 10.0 ** -np.arange(1, 30), 2.0, nan],
        1e-13,
    ),
    "erfcinv": (np.r_[np.linspace(0, 2, 201), SMALL, -1.0, 3.0], 1e-13),
    "ndtr": (np.linspace(-6, 10, 301), 1e-13),
    "ndtri": (np.r_[np.linspace(0, 1, 201), SMALL, -0.5, 1.5, nan], 1e-13),
    "log_ndtr": (np.r_[np.linspace(-40, 20, 301), -(10.0 ** np.arange(2, 18)), inf, -inf, nan], 1e-13),
    "gammaln": (np.r_[np.linspace(2.5, 40, 101), 1e5, 1e100, 0.0, 0.3, inf], 1e-12),
    "gamma": (np.r_[np.linspace(-19.97, 170, 301), 0.0, -0.0, -1.0, -2.0, 180.0, inf, -inf, nan], 1e-12),
    "gammasgn": (np.r_[0.0, -0.0, -1.0, 0.5, 5, -0.5, -1.5, -2.5, inf, nan], 0),
    "loggamma": (np.r_[0.3, 2.5, 30.0, -0.5, nan], 1e-12),
    "factorial": (np.r_[0.0, 1.0, 5.0, 0.5, 30.0, 170.0, -1.0], 1e-13),
    "digamma": (np.r_[np.linspace(2, 40, 101), 0.1, 1e10, -3.3], 1e-12),
    "i0": (LINE, 1e-13),
    "i0e": (LINE, 1e-13),
    "i1": (LINE, 1e-13),
    "i1e": (LINE, 1e-13),
    "expit": (np.r_[LINE, -700.0, 700.0, inf, -inf], 1e-14),
    "logit": (np.r_[np.linspace(0, 1, 301), 0.5 + 10.0 ** -np.arange(2, 14), SMALL, 1 - 1e-15, 2.0, nan], 1e-13),
    "entr": (np.r_[-1.0, 0.0, -0.0, 0.3, 1.0, inf, nan, 1e-300], 1e-14),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name):
    x, tol = ONE[name]
    ours, theirs = getattr(special, name), getattr(scipy_special, name)
    with np.errstate(all="ignore"):
        want = theirs(x)
    got = ours(x)
    assert got.dtype == np.float64
    same(got, want, tol)
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    single = single[(np.abs(single) < 9) & ((np.abs(single) > 1e-30) | (single == 0))]
    got = ours(single)
    assert got.dtype == np.float32
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, theirs(single.astype(float)), rtol=2e-5, atol=1e-6)
    for dtype in ("float16", "bfloat16"):
        assert ours(jnp.ones(2, dtype) / 2).dtype == dtype
    assert ours(jnp.ones(2, "int32")).dtype == np.float32
    assert ours(1).shape == ()


GRID = np.linspace(0.1, 20, 12)
WIDE = 10.0 ** np.linspace(-3, 8, 23)
EDGES = np.array([0.0, -1.0, 1.0, 0.3, nan, inf, 1e-300, 3e-300, 1e300])
TWO = [
    ("beta", GRID, GRID, 1e-12),
    ("beta", np.linspace(-3.3, -0.1, 9), np.linspace(0.15, 20, 8), 1e-11),
    ("betaln", WIDE, WIDE, 1e-8),
    ("xlogy", EDGES, EDGES, 1e-14),
    ("xlog1py", EDGES, EDGES, 1e-14),
    ("rel_entr", EDGES, EDGES, 1e-13),
    ("rel_entr", GRID, GRID, 1e-13),
    ("kl_div", EDGES[:5], EDGES, 1e-13),
    ("kl_div", GRID, GRID, 1e-11),
    ("zeta", np.linspace(1.1, 20, 9), np.linspace(0.5, 5, 7), 1e-13),
    ("polygamma", np.arange(5.0), np.linspace(0.5, 5, 7), 1e-12),
    ("comb", np.arange(40.0), np.arange(12.0), 1e-12),
    ("boxcox", np.array([0, 0.1, 1, 5, 100.0]), np.array([0, 1e-9, 0.01, 0.1, 1, -0.5, -2]), 1e-13),
    ("boxcox1p", np.array([-1, 0, 0.1, 1, 5, 1e-9]), np.array([0, 1e-9, 0.1, 1, -0.5, -2]), 1e-13),
]


@pytest.mark.parametrize("name, x, y, tol", TWO)
def test_functions_of_two_operands(name, x, y, tol):
    x, y = x[:, None], y[None]
    with np.errstate(all="ignore"):
        want = getattr(scipy_special, name)(x, y)
    same(getattr(special, name)(x, y), want, tol)


def test_more_values():
    same(
        special.comb(np.arange(1.0, 20)[:, None], np.arange(6.0), repetition=True),
        scipy_special.comb(np.arange(1.0, 20)[:, None], np.arange(6.0), repetition=True),
        1e-12,
    )
    for d in (1, 2, 5):
        same(special.multigammaln(np.array([3.5, 7.0]), d), scipy_special.multigammaln(np.array([3.5, 7.0]), d), 1e-13)
    same(special.zeta(np.array([2.0, 3.0, 40.0])), scipy_special.zeta(np.array([2.0, 3.0, 40.0])), 1e-14)


def exact(f, xs):
    with mpmath.workdps(60):
        return np.array([float(f(mpmath.mpf(float(x)))) for x in xs])


def test_tails_are_exact():
    """What SciPy itself gets wrong by more than rounding, or is the point of the function."""
    low = -(10.0 ** np.linspace(0, 8, 40))
    log_cdf = lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2) if x > -5000 else log_tail(x)
    log_tail = lambda x: (
        -x * x / 2 - mpmath.log(-x * mpmath.sqrt(2 * mpmath.pi)) + mpmath.log(1 - 1 / x**2 + 3 / x**4 - 15 / x**6)
    )
    same(special.log_ndtr(low), exact(log_cdf, low), 1e-14)
    upper = lambda x: mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2)
    same(special.log_ndtr(-low[:8]), exact(upper, -low[:8]), 1e-13)
    a, b = np.meshgrid(10.0 ** np.linspace(-2, 10, 13), 10.0 ** np.linspace(-2, 10, 13))
    with mpmath.workdps(60):
        f = lambda p, q: float(mpmath.loggamma(p) + mpmath.loggamma(q) - mpmath.loggamma(mpmath.mpf(p) + q))
        want = np.array([f(float(p), float(q)) for p, q in zip(a.ravel(), b.ravel())]).reshape(a.shape)
    np.testing.assert_allclose(special.betaln(a, b), want, rtol=1e-13, atol=1e-14)
    slope = atled.vmap(atled.grad(special.log_ndtr))(jnp.asarray(low))
    hazard = lambda x: mpmath.exp(-x * x / 2 - log_cdf(x)) / mpmath.sqrt(2 * mpmath.pi)
    same(slope, exact(hazard, low), 1e-12)


# -- derivatives ------------------------------------------------------------------------------------------------------


def differences(f, x, h=1e-5):
    return (np.asarray(f(jnp.asarray(x + h))) - np.asarray(f(jnp.asarray(x - h)))) / (2 * h)


INSIDE = np.linspace(0.15, 0.85, 9)
SMOOTH = {
    **{name: INSIDE for name in ONE if name not in ("gammasgn",)},
    "ndtr": np.linspace(-4, 4, 9),
    "log_ndtr": np.r_[-30.0, -5.5, -4.5, -2.0, -1.0, 0.2, 0.9, 1.1, 4.0],
    "erfcx": np.r_[-3.0, -0.5, 0.0, 1.0, 2.9, 3.1, 10.0],
    "gamma": np.r_[-2.3, -0.7, 0.3, 0.49, 0.51, 3.2, 20.0],
    "logit": np.r_[0.01, 0.29, 0.31, 0.5, 0.64, 0.66, 0.99],
    "ndtri": np.r_[0.01, 0.05, 0.074, 0.076, 0.5, 0.95],
}


@pytest.mark.parametrize("name", SMOOTH)
def test_first_and_second_derivatives(name):
    f, x = getattr(special, name), SMOOTH[name]
    with atled.enable_x64():
        first = lambda v: atled.jvp(f, (v,), (jnp.ones_like(v),))[1]
        back = lambda v: atled.grad(lambda u: jnp.sum(f(u)))(v)
        for d in (first, back):
            np.testing.assert_allclose(np.asarray(d(jnp.asarray(x))), differences(f, x), rtol=1e-6, atol=1e-7)
            want = differences(d, x)
            np.testing.assert_allclose(
                np.asarray(atled.grad(lambda u, d=d: jnp.sum(d(u)))(jnp.asarray(x))), want, rtol=1e-5, atol=1e-6
            )


PAIRS = {
    "betaln": (np.r_[0.5, 3.0, 9.0, 3.0], np.r_[0.7, 12.0, 30.0, 3.0]),
    "beta": (np.r_[0.5, 3.0, 9.0], np.r_[0.7, 12.0, 30.0]),
    "xlogy": (np.r_[0.0, 0.5, 2.0], np.r_[0.7, 0.2, 3.0]),
    "xlog1py": (np.r_[0.0, 0.5, 2.0], np.r_[0.7, -0.2, 3.0]),
    "rel_entr": (np.r_[0.4, 0.5, 2.0], np.r_[0.7, 0.45, 0.1]),
    "kl_div": (np.r_[0.4, 0.5, 2.0], np.r_[0.7, 0.45, 0.1]),
    "boxcox": (np.r_[0.4, 0.5, 2.0, 2.0], np.r_[0.7, 0.0, 1e-3, -1.0]),
    "boxcox1p": (np.r_[0.4, 0.5, 2.0, 2.0], np.r_[0.7, 0.0, 1e-3, -1.0]),
    "comb": (np.r_[5.0, 7.3], np.r_[2.0, 3.1]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_of_functions_of_two_operands(name):
    f, (x, y) = getattr(special, name), PAIRS[name]
    with atled.enable_x64():
        by_x, by_y = atled.grad(lambda a, b: jnp.sum(f(a, b)), (0, 1))(jnp.asarray(x), jnp.asarray(y))
        np.testing.assert_allclose(by_x, differences(lambda v: f(v, y), x), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(by_y, differences(lambda v: f(x, v), y), rtol=1e-6, atol=1e-7)
        slope = lambda a, b: atled.grad(lambda p, q: jnp.sum(f(p, q)))(a, b)
        mixed = atled.grad(lambda a, b: jnp.sum(slope(a, b)), 1)(jnp.asarray(x), jnp.asarray(y))
        np.testing.assert_allclose(mixed, differences(lambda v: slope(jnp.asarray(x), v), y), rtol=1e-5, atol=1e-6)


def test_derivatives_by_the_real_operand_alone():
    with atled.enable_x64():
        x = np.r_[0.6, 2.5]
        for f in (
            lambda v: special.polygamma(2, v),
            lambda v: special.zeta(3.0, v),
            lambda v: special.multigammaln(v + 3, 3),
        ):
            np.testing.assert_allclose(
                atled.grad(lambda v, f=f: jnp.sum(f(v)))(jnp.asarray(x)), differences(f, x), rtol=1e-6
            )


def test_derivatives_in_the_tails_are_finite():
    far = jnp.array([-1e4, -300.0, -40.0, 40.0, 300.0, 1e4])
    for f in (special.log_ndtr, special.ndtr, special.expit, special.erf, special.erfc, special.i0e, special.i1e):
        for g in (f, atled.vmap(atled.grad(f)), atled.vmap(atled.grad(atled.grad(f)))):
            assert np.all(np.isfinite(np.asarray(g(far)))), f.__name__
    assert np.isfinite(float(atled.grad(special.erfcx)(jnp.float32(1e4))))
    np.testing.assert_allclose(atled.vmap(atled.grad(special.log_ndtr))(far)[:3], [1e4, 300.003, 40.025], rtol=1e-4)


def test_derivatives_at_edges_are_finite():
    assert [float(v) for v in atled.grad(special.xlogy, (0, 1))(0.0, 0.0)] == [0.0, 0.0]
    assert [float(v) for v in atled.grad(special.xlog1py, (0, 1))(0.0, -1.0)] == [0.0, 0.0]
    np.testing.assert_allclose(atled.grad(special.xlogy, (0, 1))(0.0, 2.0), [np.log(2.0), 0.0], rtol=1e-6)
    assert float(atled.grad(special.entr)(0.0)) == 0.0
    assert [float(v) for v in atled.grad(special.rel_entr, (0, 1))(0.0, 0.0)] == [0.0, 0.0]
    assert [float(v) for v in atled.grad(special.kl_div, (0, 1))(0.0, 0.5)] == [-1.0, 1.0]
    # an entropy whose probabilities underflow
    logits = jnp.array([0.0, -300.0])
    assert np.all(np.isfinite(np.asarray(atled.grad(lambda v: special.entr(special.softmax(v)).sum())(logits))))
    assert not np.isnan(np.asarray(atled.grad(special.logsumexp)(jnp.array([-inf, 0.0])))).any()
    np.testing.assert_allclose(atled.grad(atled.grad(special.boxcox, 1), 1)(2.0, 0.0), np.log(2.0) ** 3 / 3, rtol=1e-5)


# -- sums of exponentials ---------------------------------------------------------------------------------------------

X = np.random.RandomState(0).randn(3, 4)


def test_softmax_family():
    with atled.enable_x64():
        for axis in (None, 0, -1, (0, 1)):
            same(special.softmax(X, axis=axis), scipy_special.softmax(X, axis), 1e-12)
            same(special.log_softmax(X, axis=axis), scipy_special.log_softmax(X, axis), 1e-12)
            for keepdims in (False, True):
                same(
                    special.logsumexp(X, axis, keepdims=keepdims),
                    scipy_special.logsumexp(X, axis, keepdims=keepdims),
                    1e-12,
                )
                same(
                    special.logsumexp(X, axis, X**2, keepdims), scipy_special.logsumexp(X, axis, X**2, keepdims), 1e-12
                )
            for got, want in zip(
                special.logsumexp(X, axis, X, return_sign=True), scipy_special.logsumexp(X, axis, X, return_sign=True)
            ):
                same(got, want, 1e-12)
        mask = X > 0
        masked = np.where(mask, X, -inf)
        same(special.logsumexp(X, where=mask), scipy_special.logsumexp(masked), 1e-12)
        same(special.logsumexp(np.array([1000.0, 1000.0])), 1000 + np.log(2), 1e-14)


def test_logsumexp_of_complex_numbers():
    z = X + 1j * X[::-1]
    w = X - 2j
    with atled.enable_x64():
        for axis in (None, 0, 1):
            same(special.logsumexp(z, axis), scipy_special.logsumexp(z, axis), 1e-12)
            same(special.logsumexp(z, axis, w, True), scipy_special.logsumexp(z, axis, w, True), 1e-12)
            for got, want in zip(
                special.logsumexp(z, axis, return_sign=True), scipy_special.logsumexp(z, axis, return_sign=True)
            ):
                same(got, want, 1e-12)
        same(special.logsumexp(z, 0, where=X > 0), np.log(np.sum(np.where(X > 0, np.exp(z), 0), 0)), 1e-12)
        same(special.logsumexp(z + 1000), np.log(np.sum(np.exp(z))) + 1000, 1e-12)
        slope = atled.grad(special.logsumexp, holomorphic=True)(jnp.asarray(z))
        same(slope, np.exp(z) / np.sum(np.exp(z)), 1e-12)


# -- transformations and complaints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["log_ndtr", "ndtri", "gamma", "erfcx", "logit", "entr", "digamma", "i1", "softmax", "logsumexp"]
)
def test_vmap_is_a_loop_and_jit_changes_nothing(name):
    f = getattr(special, name)
    with atled.enable_x64():
        x = jnp.asarray(np.random.RandomState(1).uniform(0.1, 0.9, (3, 4)))
        rows = np.stack([np.asarray(f(x[i])) for i in range(3)])
        same(atled.vmap(f)(x), rows, 1e-14)
        same(atled.jit(f)(x), f(x), 1e-13)


def test_complaints():
    with pytest.raises(TypeError, match=r"ndtri: real numbers are needed; got c128\[1\]"):
        special.ndtri(np.array([1j]))
    with pytest.raises(TypeError, match="gamma: argument x of gamma must be an array, a number"):
        special.gamma("x")
    with pytest.raises(NotImplementedError, match="factorial: results are floating"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match="multigammaln: the dimension must be positive"):
        special.multigammaln(3.0, 0)
    with pytest.raises(ValueError, match="xlogy: shapes"):
        special.xlogy(np.ones(2), np.ones(3))


def test_submodules_are_attributes():
    assert atled.scipy.special is special
    assert set(atled.scipy.__all__) <= set(dir(atled.scipy))
    with pytest.raises(AttributeError, match=r"module 'atled.scipy' has no attribute 'stat'"):
        atled.scipy.stat
    assert all(getattr(special, name).__doc__ for name in special.__all__)
