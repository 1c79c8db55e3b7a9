"""Draws have the distributions that they are named for, under jit and vmap too."""

from __future__ import annotations

import math

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import random

stats = pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore::atled.errors.KeyReuseWarning")
N = 6000
CASES = {
    "exponential": (lambda k: random.exponential(k, (N,)), stats.expon()),
    "laplace": (lambda k: random.laplace(k, (N,)), stats.laplace()),
    "logistic": (lambda k: random.logistic(k, (N,)), stats.logistic()),
    "cauchy": (lambda k: random.cauchy(k, (N,)), stats.cauchy()),
    "pareto": (lambda k: random.pareto(k, 3.0, (N,)), stats.pareto(3.0)),
    "truncated_normal": (lambda k: random.truncated_normal(k, -0.5, 2.0, (N,)), stats.truncnorm(-0.5, 2.0)),
    "gamma": (lambda k: random.gamma(k, 4.5, (N,)), stats.gamma(4.5)),
    "gamma below one": (lambda k: random.gamma(k, 0.3, (N,)), stats.gamma(0.3)),
    "beta": (lambda k: random.beta(k, 0.7, 2.0, (N,)), stats.beta(0.7, 2.0)),
    "t": (lambda k: random.t(k, 3.0, (N,)), stats.t(3.0)),
    "chisquare": (lambda k: random.chisquare(k, 5.0, (N,)), stats.chi2(5.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_distribution(name):
    draw, law = CASES[name]
    values = np.asarray(draw(random.key(11)))
    assert np.isfinite(values).all()
    assert stats.kstest(values, law.cdf).statistic * math.sqrt(N) < 2.0  # seven in ten thousand would be above


@pytest.mark.parametrize("name", CASES)
def test_same_under_jit_and_vmap(name):
    draw = CASES[name][0]
    keys = random.split(random.key(3), 2)
    want = np.stack([draw(keys[i]) for i in range(2)])
    np.testing.assert_allclose(atled.jit(draw)(keys[0]), want[0], rtol=1e-5)
    np.testing.assert_allclose(atled.vmap(draw)(keys), want, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("lam", [0.0, 0.5, 3.0, 15.0, 400.0])
def test_poisson(lam):
    n = np.asarray(random.poisson(random.key(1), lam, (N,)))
    assert n.dtype == np.int32 and (n >= 0).all()
    assert abs(n.mean() - lam) < 5 * math.sqrt(max(lam, 1e-9) / N) + 1e-9
    assert abs(n.var() - lam) <= 0.12 * lam


def test_parameters_broadcast():
    assert random.gamma(random.key(0), jnp.ones((3, 1)), (3, 4)).shape == (3, 4)
    assert random.pareto(random.key(0), jnp.ones(5)).shape == (5,)
    d = np.asarray(random.dirichlet(random.key(0), jnp.array([1.0, 2.0, 3.0]), (4000,)))
    np.testing.assert_allclose(d.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(d.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.02)
    assert random.exponential(random.key(0), (2,), "bfloat16").dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="does not fit parameters"):
        random.gamma(random.key(0), jnp.ones(3), (4,))


def test_gradients_of_parameters():
    key = random.key(0)
    f = lambda b: jnp.sum(jnp.log(random.pareto(key, b, (10,))))
    np.testing.assert_allclose(atled.grad(f)(2.0), -f(2.0) / 2, rtol=1e-4)
    with pytest.raises(ValueError, match="reverse mode"):
        atled.grad(lambda a: random.gamma(key, a))(2.0)
