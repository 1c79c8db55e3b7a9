"""Draws have the distributions that they are named for, in every dtype, under jit and vmap too."""

from __future__ import annotations

import math

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import random

stats = pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore::atled.errors.KeyReuseWarning")
N = 10_000
# The draw of a shape and dtype from parameters; parameters; the law.
CASES = {
    "exponential": (random.exponential, (), stats.expon()),
    "laplace": (random.laplace, (), stats.laplace()),
    "logistic": (random.logistic, (), stats.logistic()),
    "cauchy": (random.cauchy, (), stats.cauchy()),
    "gumbel": (random.gumbel, (), stats.gumbel_r()),
    "maxwell": (random.maxwell, (), stats.maxwell()),
    "pareto": (random.pareto, (3.0,), stats.pareto(3.0)),
    "rayleigh": (random.rayleigh, (2.0,), stats.rayleigh(scale=2.0)),
    "triangular": (random.triangular, (-1.0, 0.5, 1.0), stats.triang(0.75, -1, 2)),
    "weibull_min": (random.weibull_min, (2.0, 1.5), stats.weibull_min(1.5, scale=2.0)),
    "truncated_normal": (random.truncated_normal, (-0.5, 2.0), stats.truncnorm(-0.5, 2.0)),
    "lognormal": (random.lognormal, (0.7,), stats.lognorm(0.7)),
    "double_sided_maxwell": (random.double_sided_maxwell, (1.0, 2.0), stats.dgamma(1.5)),  # of (x - 1)^2, see below
    "wald": (random.wald, (3.0,), stats.invgauss(3.0)),
    "gamma": (random.gamma, (4.5,), stats.gamma(4.5)),
    "gamma below one": (random.gamma, (0.3,), stats.gamma(0.3)),
    "beta": (random.beta, (0.7, 2.0), stats.beta(0.7, 2.0)),
    "t": (random.t, (3.0,), stats.t(3.0)),
}
COUNTS = {
    "poisson few": (random.poisson, (3.0,), stats.poisson(3.0)),
    "poisson": (random.poisson, (15.0,), stats.poisson(15.0)),
    "poisson many": (random.poisson, (400.0,), stats.poisson(400.0)),
    "poisson very many": (random.poisson, (1e6,), stats.poisson(1e6)),
    "binomial few": (random.binomial, (20, 0.3), stats.binom(20, 0.3)),
    "binomial": (random.binomial, (30, 0.45), stats.binom(30, 0.45)),
    "binomial many": (random.binomial, (2000, 0.9), stats.binom(2000, 0.9)),
    "binomial very many": (random.binomial, (10**6, 0.3), stats.binom(10**6, 0.3)),
    "geometric": (random.geometric, (0.2,), stats.geom(0.2)),
}


def drawn(name, key, dims=(N,), dtype=None):
    draw, parameters, _ = CASES[name]
    return draw(key, *parameters, dims, dtype)


@pytest.mark.parametrize("name", CASES)
def test_distribution(name):
    values = np.asarray(drawn(name, random.key(11)))
    assert np.isfinite(values).all()
    if name == "double_sided_maxwell":
        values = np.sign(values - 1) * ((values - 1) / 2) ** 2 / 2
    assert (
        stats.kstest(values, CASES[name][2].cdf).statistic * math.sqrt(N) < 2.0
    )  # seven in ten thousand would be above


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    draw, parameters, law = COUNTS[name]
    values = np.asarray(draw(random.key(2), *parameters, (N,)))
    edges = np.unique(law.ppf(np.linspace(0, 1, 22)[1:-1]))
    want = np.diff(law.cdf([-np.inf, *edges, np.inf])) * N
    got = np.bincount(np.searchsorted(edges, values), minlength=len(want))
    assert (want > 20).all() and stats.chisquare(got, want).pvalue > 1e-3


LOOPS = ("gamma below one", "beta", "t")  # as `gamma`, and slow to compile


@pytest.mark.parametrize("name", [*[n for n in CASES if n not in LOOPS], "poisson"])
def test_same_under_jit_and_vmap(name):
    """Keys and parameters in batches, in one compiled program."""
    draw, parameters, _ = CASES.get(name) or COUNTS[name]
    rows = [parameters, tuple([p * 1.25 for p in parameters])]
    keys = random.split(random.key(3), 2)
    want = np.stack([draw(keys[i], *rows[i], (N,)) for i in range(2)])
    columns = [jnp.array(column) for column in zip(*rows)]
    got = atled.jit(atled.vmap(lambda k, *row: draw(k, *row, (N,))))(keys, *columns)
    assert np.isclose(got, want, rtol=2e-4, atol=1e-6).mean() > 0.999  # rounding may decide what is accepted


@pytest.mark.parametrize("name", [n for n in CASES if n not in LOOPS])
def test_dtypes(name):
    dtype = ("bfloat16", "float16", "float64")[list(CASES).index(name) % 3]
    values = drawn(name, random.key(1), (40,), dtype)
    assert values.dtype == jnp.dtype(dtype) and values.shape == (40,)
    assert np.isfinite(np.asarray(values, "f8")).all()


def test_empty_shapes():
    for draw in (random.exponential, random.maxwell, random.rademacher):
        assert draw(random.key(0), (0, 3)).shape == (0, 3)
    for draw in (random.gamma, random.poisson, random.geometric, random.wald):
        assert draw(random.key(0), 0.5, (0, 3)).shape == (0, 3)
    assert random.dirichlet(random.key(0), jnp.ones((0, 2))).shape == (0, 2)
    assert random.orthogonal(random.key(0), 2, (0,)).shape == (0, 2, 2)


def test_half_precisions_by_rejection_are_rounded():
    wide = np.asarray(random.gamma(random.key(1), 2.5, (N,)))
    np.testing.assert_array_equal(random.gamma(random.key(1), 2.5, (N,), "bfloat16"), wide.astype(jnp.bfloat16))
    logits = jnp.log(jnp.array([0.999, 0.001], "bfloat16"))
    assert 0 < float((random.categorical(random.key(0), logits, shape=(N,)) == 1).mean()) < 0.003
    assert abs(float(random.bernoulli(random.key(0), jnp.bfloat16(0.001), (10 * N,)).mean()) - 0.001) < 0.0003


def test_counts_at_the_ends():
    n = np.asarray(random.poisson(random.key(1), jnp.array([0.0, -1.0, np.nan, np.inf])))
    assert n.dtype == np.int32 and n.tolist() == [0, -1, -1, 2**31 - 1]
    n = random.binomial(
        random.key(1),
        jnp.array([7.0, 7.0, 0.0, -1.0, 5.0, np.inf, 7.9]),
        jnp.array([0.0, 1.0, 0.5, 0.5, 1.5, 0.5, 1.0]),
    )
    np.testing.assert_array_equal(n, [0, 7, 0, np.nan, np.nan, np.inf, 7])
    assert random.geometric(random.key(1), 1.0, (3,)).tolist() == [1, 1, 1]
    assert random.rademacher(random.key(0), (5,), "bfloat16").dtype == jnp.bfloat16


def test_wald_of_a_large_mean_does_not_cancel():
    values = np.asarray(random.wald(random.key(0), 1e6, (N,)))
    assert (values > 0).all() and np.isfinite(values).all()
    assert stats.kstest(values, stats.invgauss(1e6).cdf).statistic * math.sqrt(N) < 2.0


def test_vectors():
    d = np.asarray(random.dirichlet(random.key(0), jnp.array([1.0, 2.0, 3.0]), (4000,)))
    np.testing.assert_allclose(d.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(d.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.02)
    m = np.asarray(
        random.multinomial(random.key(0), 50, jnp.array([[0.2, 0.3, 0.5], [0.0, 0.0, 2.0]]), shape=(2000, 2, 3))
    )
    assert (m.sum(-1) == 50).all() and (m[:, 1] == [0, 0, 50]).all() and (m >= 0).all()
    np.testing.assert_allclose(m[:, 0].mean(0), [10, 15, 25], atol=0.5)
    np.testing.assert_allclose(
        np.cov(m[:, 0].T), 50 * (np.diag([0.2, 0.3, 0.5]) - np.outer([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])), atol=1
    )
    cov = np.array([[2.0, 0.5], [0.5, 1.0]], "f4")
    for method in ("cholesky", "eigh"):
        z = np.asarray(random.multivariate_normal(random.key(1), jnp.array([1.0, -1.0]), cov, (N,), method=method))
        np.testing.assert_allclose(z.mean(0), [1, -1], atol=0.06)
        np.testing.assert_allclose(np.cov(z.T), cov, atol=0.1)
    assert (
        random.multivariate_normal(random.key(1), jnp.zeros(2, "bfloat16"), cov.astype(jnp.bfloat16)).dtype
        == jnp.bfloat16
    )
    assert random.multivariate_normal(random.key(1), jnp.zeros((3, 1, 2)), jnp.stack([cov] * 4)).shape == (3, 4, 2)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_balls(p):
    x = np.abs(np.asarray(random.ball(random.key(0), 3, p, (N,)), "f8"))
    radius = x.max(-1) if p == math.inf else (x**p).sum(-1) ** (1 / p)
    assert stats.kstest(radius**3, "uniform").statistic * math.sqrt(N) < 2.0


def test_orthogonal_matrices():
    for dtype in ("float32", "float64", "complex64", "bfloat16"):
        q = np.asarray(random.orthogonal(random.key(0), 3, (50,), dtype)).astype("c16")
        np.testing.assert_allclose(
            q @ q.conj().mT, np.broadcast_to(np.eye(3), q.shape), atol=2e-2 if dtype == "bfloat16" else 1e-5
        )
    q = np.asarray(random.orthogonal(random.key(0), 2, (N,)))
    angles = np.arctan2(q[:, 0, 1], q[:, 0, 0]) / (2 * np.pi) + 0.5
    assert stats.kstest(angles, "uniform").statistic * math.sqrt(N) < 2.0
    assert abs(np.linalg.det(q).mean()) < 0.05
    assert random.orthogonal(random.key(0), 2, m=5).shape == (2, 5) and random.orthogonal(
        random.key(0), 5, m=2
    ).shape == (5, 2)


def test_parameters_broadcast():
    assert random.gamma(random.key(0), jnp.ones((3, 1)), (3, 4)).shape == (3, 4)
    assert random.pareto(random.key(0), jnp.ones(5)).shape == (5,)
    assert random.exponential(random.key(0), (2,), "bfloat16").dtype == jnp.bfloat16
    assert random.double_sided_maxwell(random.key(0), jnp.zeros(3), 1.0).shape == (3,)
    each = np.asarray(random.weibull_min(random.key(0), jnp.ones(4), 1.0))
    assert len(set(each.tolist())) == 4


GRADIENTS = {
    "pareto": (random.pareto, (2.0,)),
    "rayleigh": (random.rayleigh, (2.0,)),
    "triangular": (random.triangular, (-1.0, 0.3, 2.0)),
    "weibull_min": (random.weibull_min, (2.0, 1.5)),
    "truncated_normal": (random.truncated_normal, (-0.5, 2.0)),
    "lognormal": (random.lognormal, (0.7,)),
    "double_sided_maxwell": (random.double_sided_maxwell, (1.0, 2.0)),
    "wald": (random.wald, (3.0,)),
    "multivariate_normal": (random.multivariate_normal, (np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]))),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_parameters(name):
    draw, parameters = GRADIENTS[name]
    parameters = [np.asarray(p, "f8") for p in parameters]
    f = lambda *ps: jnp.sum(jnp.arctan(draw(random.key(4), *ps, (6,), "float64")))
    found = atled.grad(f, tuple(range(len(parameters))))(*parameters)
    for i, (p, g) in enumerate(zip(parameters, found, strict=True)):
        way = np.eye(2) + 1 if p.ndim == 2 else np.ones(p.shape)
        at = [np.asarray(p + s * 1e-5 * way) for s in (1, -1)]  # a NumPy scalar would count as a Python number
        ends = [float(f(*parameters[:i], x, *parameters[i + 1 :])) for x in at]
        np.testing.assert_allclose(np.sum(np.asarray(g) * way), (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_gamma_draws_move_with_their_parameter(name):
    """So that the probability of smaller draws stays."""
    a = np.array([0.02, 0.5, 1.0, 3.0, 40.0])
    f = lambda v: getattr(random, name)(random.key(4), v, None, "float64")
    x, slope = (np.asarray(v) for v in atled.jvp(f, (a,), (np.ones(5),)))
    cdf = lambda v, at: stats.gamma.logcdf(np.exp(at) if name == "loggamma" else at, v)
    np.testing.assert_allclose(cdf(a + 1e-5, x + 1e-5 * slope), cdf(a - 1e-5, x - 1e-5 * slope), rtol=1e-6, atol=1e-9)


def test_gamma_draws_of_single_precision_move():
    a = np.array([0.02, 0.5, 1.0, 3.0, 40.0], "f4")
    slope = np.asarray(atled.grad(lambda v: jnp.sum(random.gamma(random.key(4), v)))(a))
    assert np.isfinite(slope).all() and (slope > 0).all()


def test_draws_are_placed():
    sharding = atled.sharding.NamedSharding(
        atled.make_mesh((1,), ("x",), devices=atled.devices()[:1]), atled.sharding.PartitionSpec("x")
    )
    for draw in (random.normal, random.exponential, random.maxwell, random.rademacher):
        x = draw(random.key(0), (4,), out_sharding=sharding)
        assert x.sharding.is_equivalent_to(sharding, 1)
        np.testing.assert_allclose(x, draw(random.key(0), (4,)), rtol=1e-6)


@pytest.mark.parametrize(
    "bad, message",
    [
        (lambda k: random.gamma(k, jnp.ones(3), (4,)), "is not compatible with parameters"),
        (lambda k: random.exponential(k, (3,), "int32"), "random.exponential: the dtype must be floating; got int32"),
        (lambda k: random.lognormal(k, 1.0, (3,), "int32"), "must be floating or complex"),
        (lambda k: random.poisson(k, 1.0, (3,), "float32"), "random.poisson: the dtype must be an integer"),
        (lambda k: random.rademacher(k, (3,), "uint8"), "random.rademacher: the dtype must be signed"),
        (lambda k: random.multivariate_normal(k, jnp.zeros(3), jnp.eye(2)), "n means and n x n covariances"),
        (lambda k: random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2), method="lu"), "the method is 'cholesky'"),
        (lambda k: random.dirichlet(k, 1.0), "random.dirichlet: alpha must have at least one axis"),
        (lambda k: random.multinomial(k, 3, 1.0), "random.multinomial: p needs an axis"),
        (lambda k: random.gumbel(k, (2,), mode="best"), "random.gumbel: the mode is"),
        (lambda k: random.bernoulli(k, 0.5, mode="best"), "random.bernoulli: the mode is"),
        (lambda k: random.key(0, impl="fry", dtype="fry"), "random.key: give the generator as dtype or as impl"),
    ],
)  # fmt: skip
def test_bad_arguments(bad, message):
    with pytest.raises(ValueError, match=message):
        bad(random.key(0))


def test_bad_types():
    with pytest.raises(
        TypeError, match=r"random.permutation: an integer or an array with at least one axis is needed; got ~f32"
    ):
        random.permutation(random.key(0), 2.5)
    with pytest.raises(NotImplementedError, match=r"random.key_dtype: the only generator is threefry2x32"):
        random.key_dtype("rbg")
