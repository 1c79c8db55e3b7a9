"""The whole path, once, in half a minute: arrays, derivatives, batches, compiled code. Run this first."""

import numpy as np

import atled
import atled.numpy as jnp


def test_a_network_learns():
    keys = atled.random.split(atled.random.key(0), 3)
    x = atled.random.normal(keys[0], (64, 4))
    y = jnp.sin(x @ jnp.array([1.0, -2.0, 0.5, 0.3]))
    params = {
        "w": [atled.random.normal(keys[1], (4, 16)) / 2, atled.random.normal(keys[2], (16, 1)) / 4],
        "b": jnp.zeros(16),
    }

    def loss(params, x, y):
        return jnp.mean((jnp.squeeze(jnp.tanh(x @ params["w"][0] + params["b"]) @ params["w"][1], -1) - y) ** 2)

    @atled.jit
    def step(params):
        value, grads = atled.value_and_grad(loss)(params, x, y)
        return atled.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    first = float(loss(params, x, y))
    for _ in range(150):
        params, value = step(params)
    assert float(value) < first / 3 and len(step.compiles) == 1


def test_transforms_compose():
    f = lambda x: jnp.sum(jnp.exp(-x) * jnp.cos(3 * x))
    x = np.linspace(-1, 1, 5).astype("f4")
    want = -np.exp(-x) * (np.cos(3 * x) + 3 * np.sin(3 * x))
    for g in (atled.grad(f), atled.jit(atled.grad(f)), atled.grad(atled.jit(f))):
        np.testing.assert_allclose(g(x), want, rtol=1e-5)
    rows = atled.jit(atled.vmap(atled.grad(f)))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(rows[0], want, rtol=1e-5)
    np.testing.assert_allclose(
        np.diag(atled.hessian(f)(x)), atled.jvp(atled.grad(f), (x,), (np.ones_like(x),))[1], rtol=1e-5
    )


def test_numpy_as_written():
    x = jnp.arange(12.0).reshape(3, 4)
    y = np.arange(12.0, dtype="f4").reshape(3, 4)
    np.testing.assert_array_equal(x[1:, ::2].T, y[1:, ::2].T)
    np.testing.assert_array_equal(x.at[0, 1].set(9.0)[0], [0, 9, 2, 3])
    np.testing.assert_allclose(jnp.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(jnp.where(x > 5, x, -x), np.where(y > 5, y, -y))
    np.testing.assert_allclose(jnp.einsum("ij,kj->ik", x, x), y @ y.T)
