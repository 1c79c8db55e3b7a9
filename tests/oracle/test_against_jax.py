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
from draws import DRAWS

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


@pytest.mark.parametrize("name", models.MODELS)
def test_the_same_training_step(name):
    """Loss, gradients and updates of the models of the benchmark, at a small size."""
    (f, args), (g, same_args) = [
        models.MODELS[name](lib, **models.SMALL[name]) for lib in (models.atled_library(), models.jax_library())
    ]
    ours, theirs = atled.jit(f)(*args), jax.jit(g)(*same_args)
    for a, b in zip(atled.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
