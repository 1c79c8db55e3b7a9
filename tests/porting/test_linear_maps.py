"""The functions that `vjp` and `linearize` give are trees: compiled functions return them, and take them."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import tree

X = np.random.RandomState(0).randn(4, 3).astype("float32")
W = np.random.RandomState(1).randn(3, 2).astype("float32")


def f(x, w):
    return jnp.sin(x @ w).sum(0)  # where the derivative is not a difference that cancels, as that of tanh


def test_a_way_back_leaves_a_compiled_function_and_enters_another():
    forward = atled.jit(lambda x, w: atled.vjp(lambda w: f(x, w), w))
    backward = atled.jit(lambda pull, g: pull(g))
    for i in range(3):
        y, pull = forward(X + i, W)
        (found,) = backward(pull, jnp.ones(2))
        (want,) = atled.vjp(lambda w, i=i: f(X + i, w), W)[1](jnp.ones(2))
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(y, f(X + i, W), rtol=1e-5, atol=1e-6)
    assert len(forward.compiles) == len(backward.compiles) == 1


def test_a_linear_function_leaves_a_compiled_function():
    y, df = atled.jit(lambda x: atled.linearize(lambda x: f(x, W), x))(X)
    np.testing.assert_allclose(df(X), atled.jvp(lambda x: f(x, W), (X,), (X,))[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, f(X, W), rtol=1e-5, atol=1e-6)


def test_values_in_them_can_be_changed():
    _, pull = atled.vjp(lambda x: x * jnp.float32(3), jnp.float32(2))
    doubled = tree.map(lambda v: v * 2, pull)
    assert float(pull(jnp.float32(1))[0]) == 3 and float(doubled(jnp.float32(1))[0]) == 6
    assert len(tree.leaves(pull)) == 1


def test_a_value_that_is_used_twice_is_one_leaf():
    _, pull = atled.vjp(lambda a, b: (a * b, a * b * 2), X, X)
    ids = [id(x) for x in tree.leaves(pull)]
    assert len(ids) == len(set(ids))


def test_batches_of_them():
    pulls = atled.vmap(lambda x: atled.vjp(jnp.sin, x)[1])(jnp.arange(3.0))
    found = atled.vmap(lambda pull: pull(jnp.float32(1))[0])(pulls)
    np.testing.assert_allclose(found, np.cos(np.arange(3.0)), rtol=1e-6)


def test_scan_carries_them():
    _, pull = atled.vjp(jnp.sin, jnp.float32(0.5))
    carried, _ = atled.lax.scan(lambda p, _: (p, None), pull, None, length=2)
    assert float(carried(jnp.float32(1))[0]) == pytest.approx(np.cos(0.5))


def test_the_structures_of_two_ways_back_differ():
    a, b = atled.vjp(jnp.sin, 1.0)[1], atled.vjp(jnp.cos, 1.0)[1]
    assert tree.structure(a) != tree.structure(b) and tree.structure(a) == tree.structure(a)
    assert hash(tree.structure(a)) == hash(tree.structure(a))


@pytest.mark.parametrize("jitted", [True, False])
def test_forward_and_backward(jitted):
    forward, backward = atled.jax.fwd_and_bwd(f, argnums=(0, 1), jitted=jitted)
    _, between = forward(X, W)
    g = jnp.ones(2)
    for found, want in zip(backward(between, g), atled.vjp(f, X, W)[1](g), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    one = atled.jax.fwd_and_bwd(f, argnums=1, jitted=jitted)
    np.testing.assert_allclose(one[1](one[0](X, W)[1], g), atled.vjp(f, X, W)[1](g)[1], rtol=1e-5, atol=1e-6)


def test_integers_and_masks():
    _, pull = atled.vjp(lambda x, n: x * n, 2.0, 3)
    back = atled.jit(lambda p: p(1.0)[0])(pull)
    assert float(back) == 3
