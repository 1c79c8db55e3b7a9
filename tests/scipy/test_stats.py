"""Distributions against SciPy, far tails against mpmath, derivatives against differences."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.scipy import stats

scipy_stats = pytest.importorskip("scipy.stats")
mpmath = pytest.importorskip("mpmath")
inf, nan = np.inf, np.nan

PLACE = (0.25, 1.5)
LINE = np.array([-inf, -50, -3, -1, -0.1, 0, 0.2, 0.5, 1, 1.5, 2, 10, 60, inf, nan])
COUNTS = np.array([-1, 0, 1, 2, 3, 7, 8, 9, 12, 19, 20, 2.5, 21, nan])
QUANTILES = np.array([-0.1, 0, 1e-10, 0.1, 0.3, 0.5, 0.8, 0.99, 1, 1.1, nan])
INSIDE = np.array([0.6, 0.9, 1.3])
DISTRIBUTIONS = {  # parameters, operands inside of the support where functions are smooth
    "norm": (PLACE, LINE, INSIDE),
    "cauchy": (PLACE, LINE, np.array([-7e3, -3.0, 0.9, 5.0])),
    "laplace": (PLACE, LINE, INSIDE),
    "logistic": (PLACE, LINE, INSIDE),
    "gumbel_r": (PLACE, LINE, np.array([-0.5, 0.9, 9.0])),
    "gumbel_l": (PLACE, LINE, np.array([-9.0, 0.9, 1.5])),
    "gennorm": ((1.3,), LINE, np.array([-2.0, 0.9, 5.0])),
    "t": ((3.3, *PLACE), LINE, np.array([-3.0, 0.9, 4e3])),
    "truncnorm": ((-1.1, 2.5, *PLACE), LINE, np.array([-1.0, 0.9, 3.0])),
    "uniform": (PLACE, LINE, INSIDE),
    "expon": (PLACE, LINE, INSIDE),
    "pareto": ((2.5, *PLACE), LINE, INSIDE + 1.5),
    "gamma": ((2.2, *PLACE), LINE, INSIDE),
    "gamma large": ((20.0, *PLACE), LINE, INSIDE * 30),
    "chi2": ((3.1, *PLACE), LINE, INSIDE),
    "beta": ((2.1, 3.2, *PLACE), LINE, INSIDE),
    "beta large": ((20.0, 12.0, *PLACE), LINE, INSIDE),
    "vonmises": ((1.2,), LINE[1:-2], INSIDE),
    "wrapcauchy": ((0.4,), LINE, INSIDE),
    "bernoulli": ((0.3,), COUNTS, np.array([0.0, 1.0])),
    "binom": ((20.0, 0.4), COUNTS, np.array([0.0, 5.0, 9.0, 20.0])),
    "geom": ((0.3,), COUNTS, np.array([1.0, 2.0, 9.0])),
    "nbinom": ((4.5, 0.3), COUNTS, np.array([0.0, 2.0, 9.0])),
    "nbinom large": ((40.0, 0.3), COUNTS, np.array([0.0, 2.0, 9.0, 100.0])),
    "poisson": ((6.5,), COUNTS, np.array([0.0, 2.0, 9.0])),
    "betabinom": ((20.0, 2.3, 3.1), COUNTS, np.array([0.0, 5.0, 20.0])),
}  # fmt: skip
# what takes long to compile: loops, whose derivatives are among those of the tails, and have tests of their own
INCOMPLETE = dict.fromkeys(("beta", "chi2", "gamma", "gennorm"), ("cdf", "sf", "logcdf", "logsf"))
SMOOTH = [n for n in DISTRIBUTIONS if n not in ("uniform",)]


def functions(name, but=()):
    """The functions of a distribution; of "large" ones only the logarithm, which has a formula of its own there."""
    module = getattr(stats, name.split()[0])
    kinds = module.__all__
    if "large" in name:
        kinds = [f for f in kinds if f.startswith("logp")]
    if name == "chi2":  # the others are those of gamma
        kinds = [f for f in kinds if f in ("logpdf", "pdf", "sf")]
    return {f: getattr(module, f) for f in kinds if f not in (*but, "entropy")}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_values(name):
    parameters, x, _ = DISTRIBUTIONS[name]
    for kind, f in functions(name, ("pdf",) if name in INCOMPLETE else ()).items():
        operand = QUANTILES if kind in ("ppf", "isf") else x
        if name == "bernoulli" and kind == "ppf":
            operand = operand[operand != 0]  # SciPy has the quantile -1 there, as for all counts
        with np.errstate(all="ignore"):
            want = getattr(getattr(scipy_stats, name.split()[0]), kind)(operand, *parameters)
        if kind in ("pdf", "logpdf"):  # SciPy has infinity minus infinity for some
            want = np.where(np.isinf(operand), -inf if kind == "logpdf" else 0, want)
        got = f(operand, *parameters)
        assert got.dtype == np.float64 and got.shape == operand.shape
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-15 if kind.startswith("log") else 0, err_msg=kind)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    """By all operands at once, along a random direction, forwards and backwards."""
    parameters, among, x = DISTRIBUTIONS[name]
    found = functions(name, ("ppf", "isf", "pdf", "pmf", "sf", *INCOMPLETE.get(name, ())))
    fs = [f for kind, f in found.items() if kind != "cdf" or "logcdf" not in found]
    together = lambda operands: jnp.stack([f(*operands) for f in fs])
    operands = [x, *[np.full(x.shape, p) for p in parameters]]
    way = [np.random.RandomState(i).rand(*x.shape) * np.maximum(np.abs(v), 0.1) for i, v in enumerate(operands)]
    for i in ((0, 1) if name in ("binom", "betabinom") else (0,)) if among is COUNTS else ():
        way[i] = np.zeros(x.shape)  # those are whole
    value = atled.jit(together)
    above, below = (np.asarray(value([v + h * w for v, w in zip(operands, way)])) for h in (1e-6, -1e-6))
    slope = atled.jit(lambda v, w: atled.jvp(together, (v,), (w,))[1])(operands, way)
    np.testing.assert_allclose(slope, (above - below) / 2e-6, rtol=2e-6, atol=2e-8)
    back = atled.jit(atled.grad(lambda v: jnp.sum(together(v))))(operands)
    total = sum(np.sum(np.asarray(b) * w) for b, w in zip(back, way))
    np.testing.assert_allclose(total, np.sum(slope), rtol=1e-9)


@pytest.mark.parametrize("name", ["norm", "expon", "binom"])
def test_vmap(name):
    parameters, x, _ = DISTRIBUTIONS[name]
    for f in functions(name, ("ppf", "isf")).values():
        np.testing.assert_allclose(atled.vmap(lambda v, f=f: f(v, *parameters))(x), f(x, *parameters), rtol=1e-13)


OUTSIDE = {
    "expon": (),
    "gamma": (2.5,),
    "chi2": (3.0,),
    "beta": (2.5, 3.5),
    "pareto": (2.0,),
    "uniform": (),
    "truncnorm": (1.0, 2.0),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_gradients_outside_of_the_support_are_finite(name):
    parameters = OUTSIDE[name]
    fs = functions(name, ("ppf", "isf", "cdf", "sf", "pdf", *INCOMPLETE.get(name, ()))).values()
    finite = lambda v: jnp.where(jnp.isfinite(v), v, 0)
    total = lambda *operands: sum(jnp.sum(finite(f(*operands))) for f in fs)
    x = jnp.array([-4.0, -1e30, -0.5 if name != "truncnorm" else 0.5])
    for slope in atled.jit(atled.grad(total, tuple(range(len(parameters) + 1))))(x, *parameters):
        assert not np.asarray(slope).any()


# -- far out, in single precision -------------------------------------------------------------------------------------

log, exp = mpmath.log, mpmath.exp
upper = lambda a, x: log(mpmath.gammainc(a, x, mpmath.inf, regularized=True))
lower = lambda a, x: a * log(x) - x - mpmath.loggamma(a + 1) + log(mpmath.hyp1f1(1, a + 1, x))
beta_lower = lambda a, b, x: (
    a * log(x) + b * mpmath.log1p(-x) - log(a) - log(mpmath.beta(a, b)) + log(mpmath.hyp2f1(a + b, 1, a + 1, x))
)
poisson = lambda k, m: k * log(m) - m - mpmath.loggamma(k + 1)
binomial = lambda k, n, p: (
    mpmath.loggamma(n + 1)
    - mpmath.loggamma(k + 1)
    - mpmath.loggamma(n - k + 1)
    + k * log(p)
    + (n - k) * mpmath.log1p(-p)
)
normal = lambda a, b: mpmath.ncdf(b) - mpmath.ncdf(a)
TAILS = {  # function, operand, parameters, the exact one
    "norm.logcdf": ((-300.0,), lambda x: log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)),
    "norm.logsf": ((40.0,), lambda x: log(mpmath.erfc(x / mpmath.sqrt(2)) / 2)),
    "cauchy.logpdf": ((1e25,), lambda x: -log(mpmath.pi) - log(1 + x * x)),
    "cauchy.logcdf": ((-1e25,), lambda x: log(mpmath.atan(-1 / x) / mpmath.pi)),
    "t.logpdf": ((1e25, 3.0), lambda x, n: mpmath.loggamma((n + 1) / 2) - mpmath.loggamma(n / 2)
                 - log(n * mpmath.pi) / 2 - (n + 1) / 2 * log(1 + x * x / n)),
    "t.logpdf large": ((1.5, 1e7), lambda x, n: mpmath.loggamma((n + 1) / 2) - mpmath.loggamma(n / 2)
                       - log(n * mpmath.pi) / 2 - (n + 1) / 2 * log(1 + x * x / n)),
    "logistic.logpdf": ((-500.0,), lambda x: x - 2 * log(1 + exp(x))),
    "gumbel_r.logsf": ((300.0,), lambda x: log(-mpmath.expm1(-exp(-x)))),
    "gumbel_l.logcdf": ((-20.0,), lambda x: log(-mpmath.expm1(-exp(x)))),
    "expon.logcdf": ((1e-30,), lambda x: log(-mpmath.expm1(-x))),
    "expon.logcdf far": ((12.0,), lambda x: log(-mpmath.expm1(-x))),
    "pareto.logcdf": ((40.0, 3.0), lambda x, b: mpmath.log1p(-(x**-b))),
    "gamma.logpdf": ((1.01e6, 1e6), lambda x, a: (a - 1) * log(x) - x - mpmath.loggamma(a)),
    "gamma.logsf": ((300.0, 2.5), lambda x, a: upper(a, x)),
    "gamma.logsf farther": ((5000.0, 2.5), lambda x, a: upper(a, x)),
    "gamma.logcdf": ((1e-20, 40.0), lambda x, a: lower(a, x)),
    "beta.logpdf": ((1e-5, 3.0, 1e6), lambda x, a, b: (a - 1) * log(x) + (b - 1) * mpmath.log1p(-x)
                    - mpmath.loggamma(a) - mpmath.loggamma(b) + mpmath.loggamma(a + b)),
    "beta.logcdf": ((1e-10, 50.0, 2.5), lambda x, a, b: beta_lower(a, b, x)),
    "beta.logcdf near": ((0.1, 50.0, 2.5), lambda x, a, b: beta_lower(a, b, x)),
    "beta.logsf": ((0.9999, 2.5, 100.0), lambda x, a, b: beta_lower(b, a, 1 - x)),
    "truncnorm.logpdf": ((10.5, 10.0, 11.0), lambda x, a, b: -x * x / 2 - log(2 * mpmath.pi) / 2 - log(normal(-b, -a))),
    "truncnorm.logcdf": ((-30.5, -31.0, 2.0), lambda x, a, b: log(normal(a, x) / normal(a, b))),
    "truncnorm.logsf": ((30.5, -2.0, 31.0), lambda x, a, b: log(normal(-b, -x) / normal(-b, -a))),
    "wrapcauchy.logpdf": ((1e-4, 0.9999), lambda x, c: log((1 - c * c) / (2 * mpmath.pi))
                          - log(1 + c * c - 2 * c * mpmath.cos(x))),
    "vonmises.logpdf": ((1e-3, 1e5), lambda x, k: k * mpmath.cos(x) - log(2 * mpmath.pi * mpmath.besseli(0, k))),
    "poisson.logpmf": ((1000100.0, 1e6), poisson),
    "binom.logpmf": ((500500.0, 1e6, 0.5), lambda *operands: binomial(*operands)),
    "binom.logpmf rare": ((2.0, 1e6, 1e-9), lambda *operands: binomial(*operands)),
}  # fmt: skip


SHORT = ("beta.logsf", "truncnorm.logsf")  # whose slopes are those of logcdf
FLAT = ("t.logpdf large", "vonmises.logpdf")  # whose slope by the last parameter is a difference of equal numbers


@pytest.mark.parametrize("name", TAILS)
def test_tails_in_single_precision(name):
    operands, exact = TAILS[name]
    distribution, kind = name.split()[0].split(".")
    f = getattr(getattr(stats, distribution), kind)
    operands = [np.float32(v) for v in operands]
    last = len(operands) - 1 if name not in FLAT + SHORT else 0
    by = (last,) if kind == "logpmf" else tuple(sorted({0, last}))
    value, slopes = atled.jit(atled.value_and_grad(f, by))(*operands)
    with mpmath.workdps(60):
        given = [mpmath.mpf(float(v)) for v in operands]
        np.testing.assert_allclose(float(value), float(exact(*given)), rtol=3e-6)
        for i, slope in zip(by, slopes, strict=True):
            moved = lambda v, i=i: exact(*given[:i], v, *given[i + 1 :])
            want = mpmath.diff(moved, given[i], h=abs(given[i]) * mpmath.mpf("1e-15"))
            np.testing.assert_allclose(float(slope), float(want), rtol=5e-4, err_msg=f"by operand {i}")


# -- what is special --------------------------------------------------------------------------------------------------


def test_parameters_that_make_no_sense_give_nan():
    for name, parameters in {
        "norm": (0.0, -1.0), "gamma": (-1.0,), "beta": (1.0, -2.0), "t": (0.0,), "truncnorm": (2.0, 1.0),
        "pareto": (-1.0,), "vonmises": (-1.0,), "wrapcauchy": (1.5,),
    }.items():  # fmt: skip
        assert np.isnan(getattr(stats, name).logpdf(0.5, *parameters)), name
    for name, parameters in {"binom": (3.0, 1.5), "geom": (0.0,), "nbinom": (-1.0, 0.5), "poisson": (-1.0,)}.items():
        assert np.isnan(getattr(stats, name).logpmf(1.0, *parameters)), name


def test_dtypes_broadcasting_and_keywords():
    for dtype in ("float16", "bfloat16", "float32"):
        assert stats.norm.logpdf(jnp.ones(2, dtype)).dtype == dtype
    assert stats.gamma.logsf(jnp.ones(2, "float16"), 2).dtype == "float16"
    assert stats.poisson.logpmf(np.int32([1, 2]), 3).dtype == np.float32
    assert stats.norm.pdf(0).shape == ()
    assert stats.norm.pdf(np.zeros((3, 1)), np.zeros(4), scale=2).shape == (3, 4)
    assert stats.uniform.logpdf(0.5, 0, np.ones((0, 2), "f4")).shape == (0, 2)
    np.testing.assert_allclose(stats.gamma.cdf(np.array(2.0), scale=2.0, a=1.5), scipy_stats.gamma.cdf(2, 1.5, scale=2))
    with pytest.raises(TypeError, match=r"missing .* required .*argument: 'a'"):
        stats.gamma.logpdf(1.0)
    with pytest.raises(TypeError, match=r"norm\.cdf: real numbers are needed"):
        stats.norm.cdf(1j)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = stats.norm.nothing


def test_poisson_entropy():
    mu = np.array([0, 1e-3, 0.3, 5, 9, 50, 99, 101, 180.0])
    np.testing.assert_allclose(stats.poisson.entropy(mu), scipy_stats.poisson.entropy(mu), rtol=1e-9)
    assert stats.poisson.entropy(2.0, np.zeros(3, "f4")).shape == (3,)


def test_modules_load_when_used():
    code = (
        "import sys, atled.scipy.stats.norm, atled.scipy.stats as s; from atled.scipy.stats import beta\n"
        "from atled.scipy.stats.expon import logpdf\n"
        "assert 'atled.scipy.stats.bounded_support' in sys.modules\n"
        "assert 'atled.scipy.stats.real_line' not in sys.modules\n"
        "assert float(atled.scipy.stats.norm.cdf(0.0)) == 0.5 and 'logpdf' in dir(s.cauchy) and callable(s.sem)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- several numbers --------------------------------------------------------------------------------------------------

R = np.random.RandomState(0)


def test_dirichlet():
    alpha = np.array([0.7, 2.0, 3.5])
    x = R.dirichlet(alpha, 5).T
    want = [scipy_stats.dirichlet.logpdf(v, alpha) for v in x.T]
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), want, rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:-1], alpha), want, rtol=1e-9)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:, 0], alpha), np.exp(want[0]), rtol=1e-12)
    assert stats.dirichlet.logpdf(x * 2, alpha)[0] == -inf
    slope = atled.grad(lambda a: stats.dirichlet.logpdf(jnp.asarray(x[:, 0]), a))(jnp.asarray(alpha))
    h = 1e-6 * np.eye(3)
    f = lambda a: scipy_stats.dirichlet.logpdf(x[:, 0], a)
    np.testing.assert_allclose(slope, [(f(alpha + v) - f(alpha - v)) / 2e-6 for v in h], rtol=1e-6)
    with pytest.raises(ValueError, match=r"dirichlet\.logpdf: alpha must have one axis"):
        stats.dirichlet.logpdf(x[0], alpha)


def test_multinomial():
    x, p = R.multinomial(9, [0.2, 0.3, 0.5], 4), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stats.multinomial.logpmf(x, 9, p), scipy_stats.multinomial.logpmf(x, 9, p), rtol=1e-12)
    np.testing.assert_allclose(stats.multinomial.pmf(x[0], 9, p), scipy_stats.multinomial.pmf(x[0], 9, p), rtol=1e-12)
    assert np.all(np.asarray(stats.multinomial.logpmf(x, 8, p)) == -inf)
    assert float(stats.multinomial.pmf(np.array([3, 0]), 3, np.array([1.0, 0.0]))) == 1
    with pytest.raises(ValueError, match=r"multinomial\.logpmf: x and n must be integers"):
        stats.multinomial.logpmf(x * 1.0, 9, p)


def test_multivariate_normal():
    x, mean = R.randn(4, 5, 3), R.randn(3)
    root = R.randn(3, 3)
    cov = root @ root.T + np.eye(3)
    ours, theirs = stats.multivariate_normal, scipy_stats.multivariate_normal
    np.testing.assert_allclose(ours.logpdf(x, mean, cov), theirs.logpdf(x, mean, cov), rtol=1e-11)
    np.testing.assert_allclose(ours.pdf(x[0, 0], mean, cov), theirs.pdf(x[0, 0], mean, cov), rtol=1e-11)
    np.testing.assert_allclose(ours.logpdf(x, mean, 2.0), theirs.logpdf(x, mean, 2 * np.eye(3)), rtol=1e-11)
    np.testing.assert_allclose(
        ours.logpdf(x[0, 0], 0.5, 2.0), scipy_stats.norm.logpdf(x[0, 0], 0.5, 2**0.5), rtol=1e-12
    )
    many = np.stack([cov, 2 * cov])
    want = np.stack([theirs.logpdf(x[0], mean, c) for c in many])
    np.testing.assert_allclose(ours.logpdf(x[0], mean, many[:, None]), want, rtol=1e-11)
    each = atled.vmap(lambda c: ours.logpdf(x[0], mean, c))(jnp.asarray(many))
    np.testing.assert_allclose(each, want, rtol=1e-11)
    f = lambda c: jnp.sum(ours.logpdf(x[0], mean, c))
    way = root + root.T
    moved = [float(f(jnp.asarray(cov + s * way))) for s in (1e-5, -1e-5)]
    np.testing.assert_allclose(np.sum(atled.grad(f)(jnp.asarray(cov)) * way), (moved[0] - moved[1]) / 2e-5, rtol=1e-7)
    with pytest.raises(ValueError, match=r"multivariate_normal\.logpdf: cov must be"):
        ours.logpdf(x, mean, np.eye(2))
    with pytest.raises(NotImplementedError, match="allow_singular"):
        ours.logpdf(x, mean, cov, allow_singular=True)


# -- densities and descriptions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [None, "silverman", 0.3, lambda kde: 0.5])
@pytest.mark.parametrize("d", [1, 2])
def test_gaussian_kde(method, d):
    data, points = R.randn(d, 30), R.randn(d, 7)
    weights = R.rand(30) if d == 2 else None
    ours = stats.gaussian_kde(jnp.asarray(data), method, weights)
    theirs = scipy_stats.gaussian_kde(data, method, weights)
    for name in ("neff", "covariance", "inv_cov", "d", "n"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-10)
    np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
    np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-10)
    mean, cov = np.full(d, 0.3), np.eye(d) * 0.5
    np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), rtol=1e-10)
    other = scipy_stats.gaussian_kde(data[:, :9] + 1)
    np.testing.assert_allclose(
        ours.integrate_kde(stats.gaussian_kde(jnp.asarray(data[:, :9] + 1))), theirs.integrate_kde(other), rtol=1e-10
    )
    if d == 1:
        np.testing.assert_allclose(ours.integrate_box_1d(-0.5, 1.2), theirs.integrate_box_1d(-0.5, 1.2), rtol=1e-10)
        np.testing.assert_allclose(atled.jit(lambda k, p: k(p))(ours, points), theirs(points), rtol=1e-10)


def test_resampling_and_what_kernel_densities_refuse():
    kde = stats.gaussian_kde(jnp.asarray(np.float32(R.randn(2, 200) * [[1], [3]])))
    drawn = kde.resample(atled.random.key(0), (5000,))
    assert drawn.shape == (2, 5000) and drawn.dtype == np.float32
    np.testing.assert_allclose(np.cov(drawn), np.cov(kde.dataset) + np.asarray(kde.covariance), rtol=0.1, atol=0.15)
    assert kde.resample(atled.random.key(0), 3).shape == (2, 3)
    for call, error, message in (
        (lambda: kde(np.ones((3, 4))), ValueError, "points must have 2 dimensions"),
        (lambda: kde.integrate_box_1d(0, 1), ValueError, "integrate_box_1d needs one dimension"),
        (lambda: kde.integrate_gaussian(np.ones(3), np.eye(2)), ValueError, "mean and cov must have 2 dimensions"),
        (lambda: kde.integrate_box(0, 1), NotImplementedError, "boxes must have one dimension"),
        (lambda: kde.set_bandwidth(1.0), NotImplementedError, "instances are immutable"),
        (lambda: stats.gaussian_kde(np.ones(1)), ValueError, "two samples or more"),
        (lambda: stats.gaussian_kde(np.ones(3), "wide"), ValueError, "bw_method must be"),
        (lambda: stats.gaussian_kde(np.ones(3), None, np.ones(2)), ValueError, "one weight for each of 3 samples"),
    ):
        with pytest.raises(error, match=message):
            call()


X = R.randint(0, 5, (6, 7, 2))


def test_mode():
    for axis in (0, 1, -1, None):
        for keepdims in (False, True):
            got, want = stats.mode(X, axis, keepdims=keepdims), scipy_stats.mode(X, axis, keepdims=keepdims)
            np.testing.assert_array_equal(got.mode, want.mode)
            np.testing.assert_array_equal(got.count, want.count)
    assert stats.mode(np.float32([1, nan, nan])).count == 2
    assert np.isnan(stats.mode(np.zeros((0, 2), "f4")).mode).all() and stats.mode(3).mode == 3
    assert atled.vmap(stats.mode)(X).mode.shape == (6, 2)
    with pytest.raises(ValueError, match="nan_policy must be"):
        stats.mode(X, nan_policy="ignore")
    with pytest.raises(NotImplementedError, match="is not supported; use 'propagate'"):
        stats.mode(X, nan_policy="omit")


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_rankdata(method):
    for axis in (None, 0, -1):
        got = stats.rankdata(X, method, axis=axis)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, scipy_stats.rankdata(X, method, axis=axis))
    assert np.isnan(stats.rankdata(np.float32([1, nan, 2]), method)).all()
    f = functools.partial(stats.rankdata, method=method)
    np.testing.assert_array_equal(atled.vmap(f)(X[:, :, 0]), stats.rankdata(X[:, :, 0], method, axis=1))


def test_sem_and_unknown_methods():
    y = R.randn(5, 4)
    y[1, 2] = nan
    for options in ({}, {"axis": None}, {"ddof": 0, "keepdims": True}, {"nan_policy": "omit"}, {"axis": 1}):
        np.testing.assert_allclose(stats.sem(y, **options), scipy_stats.sem(y, **options), rtol=1e-12)
    with pytest.raises(ValueError, match="rankdata: method must be"):
        stats.rankdata(X, "first")
    with pytest.raises(NotImplementedError, match="sem: nan_policy 'raise' is not supported"):
        stats.sem(y, nan_policy="raise")
