"""Activations at their edges against jax, compiled as users do: with few optimizations, jax errs there."""

import numpy as np
import pytest

import atled

jax = pytest.importorskip("jax")

EDGES = np.float32([-np.inf, -1e30, -1e4, -100, -20, -6, -3, -1, -0.5, -1e-8, 0, 1e-8, 0.5, 1, 3, 6, 20, 100, 1e4, 1e30,
                    np.inf])  # fmt: skip
ACTIVATIONS = (
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "log_sigmoid", "mish", "relu",
    "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "tanh",
)  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_at_edges(name):
    ours, theirs = getattr(atled.nn, name), getattr(jax.nn, name)
    got = atled.jit(atled.vmap(atled.value_and_grad(ours)))(EDGES)
    want = jax.jit(jax.vmap(jax.value_and_grad(theirs)))(EDGES)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-7)
    slope = np.where(np.isnan(want[1]) & np.isfinite(got[1]), got[1], want[1])  # finite here at some infinities
    np.testing.assert_allclose(got[1], slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("axis", [-1, 0, (0, 1)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_complex_numbers(name, axis):
    rng = np.random.RandomState(0)
    x = (rng.randn(3, 4) * 40 + 1j * rng.randn(3, 4)).astype("complex64")
    where = rng.rand(3, 4) > 0.3
    for mask in (None, where):
        got = getattr(atled.nn, name)(x, axis=axis, where=mask)
        want = np.asarray(getattr(jax.nn, name)(x, axis=axis, where=mask))
        chosen = np.isfinite(want)
        np.testing.assert_allclose(np.asarray(got)[chosen], want[chosen], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    "x",
    [[1e6j, 2 + 1e6j], [4j, 2 + 4j], [1 + 10j, 2 + 4j, -3j], [np.inf, 1, 2j], [np.nan, 1, 2j], [-np.inf, 1, 2j]],
    ids=str,
)
def test_complex_numbers_far_from_the_real_axis(name, x):
    x = np.array(x, "complex64")
    got, want = [getattr(library.nn, name)(x) for library in (atled.jax, jax)]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
