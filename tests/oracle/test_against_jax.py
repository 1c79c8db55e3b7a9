"""Value by value as JAX computes them. These run in a process of their own: the other tests see that jax stays out."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "random"))
from draws import DRAWS, ROUNDED

from benchmarks import models

jax = pytest.importorskip("jax")
pytestmark = [
    pytest.mark.filterwarnings("ignore::atled.errors.KeyReuseWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_random_numbers(name):
    for seed in (0, 123):
        ours = np.asarray(DRAWS[name](atled.random, atled.random.key(seed), jnp))
        theirs = np.asarray(DRAWS[name](jax.random, jax.random.key(seed), jax.numpy))
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ROUNDED)
def test_the_same_random_numbers_up_to_rounding(name):
    ours = np.asarray(ROUNDED[name](atled.random, atled.random.key(5), jnp))
    theirs = np.asarray(ROUNDED[name](jax.random, jax.random.key(5), jax.numpy))
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert (
        np.isclose(ours, theirs, rtol=5e-4 if ours.dtype.itemsize > 2 else 2e-3, atol=1e-6, equal_nan=True).mean()
        > 0.995
    )


def test_wide_random_numbers_are_the_same():
    for draw in (
        lambda r, k: r.gamma(k, 0.7, (200,), "float64"),
        lambda r, k: r.truncated_normal(k, -1.0, 2.0, (200,), "float64"),
        lambda r, k: r.randint(k, (200,), -(2**63), 2**63 - 1, "int64"),
        lambda r, k: r.bits(k, (200,), "uint64"),
    ):
        ours = np.asarray(draw(atled.random, atled.random.key(5)))
        with jax.enable_x64(True):
            theirs = np.asarray(draw(jax.random, jax.random.key(5)))
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("name", models.MODELS)
def test_the_same_training_step(name):
    """Loss, gradients and updates of the models of the benchmark, at a small size."""
    (f, args), (g, same_args) = [
        models.MODELS[name](lib, **models.SMALL[name]) for lib in (models.atled_library(), models.jax_library())
    ]
    ours, theirs = atled.jit(f)(*args), jax.jit(g)(*same_args)
    for a, b in zip(atled.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
