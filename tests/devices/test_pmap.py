"""`pmap` is `vmap` with an example on each device: the same arguments give the same results."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.sharding import NamedSharding, P

X = np.random.default_rng(0).standard_normal((8, 3, 4)).astype("float32")
W = np.random.default_rng(1).standard_normal(4).astype("float32")

CASES = {
    "one": (lambda x: jnp.sin(x), {}, (X,)),
    "named": (lambda x: x - lax.pmean(x, "i"), {"axis_name": "i"}, (X,)),
    "in_axes": (lambda x, w: (x @ w).sum(), {"in_axes": (0, None)}, (X, W)),
    "inner axis": (lambda x: x * 2, {"in_axes": 1, "out_axes": 1}, (X.transpose(1, 0, 2),)),
    "negative axis": (lambda x: x.sum(0), {"in_axes": -1, "out_axes": -1}, (X.transpose(1, 2, 0),)),
    "trees": (
        lambda d, y: {"u": d["a"] + y, "v": (d["b"],)},
        {"in_axes": ({"a": 0, "b": None}, 0)},
        ({"a": X, "b": W}, X),
    ),
    "no axis out": (lambda x: lax.psum(x, "i"), {"axis_name": "i", "out_axes": None}, (X,)),
    "several out": (lambda x: (x, x.sum(), lax.axis_index("i")), {"axis_name": "i", "out_axes": (1, 0, 0)}, (X,)),
    "fewer devices": (lambda x: x + lax.psum(1, "i"), {"axis_name": "i"}, (X[:3],)),
    "keys": (lambda k: atled.random.normal(k, (2,)), {}, (atled.random.split(atled.random.key(0), 8),)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_vmap(name):
    f, options, args = CASES[name]
    got = atled.pmap(f, **options)(*args)
    if options.get("out_axes", 0) is None:
        want = f_on_one(f, args)
    else:
        want = atled.vmap(f, **options)(*args)
    atled.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)
    again = atled.jit(atled.pmap(f, **options))(*args)
    atled.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), again, want)


def f_on_one(f, args):
    return atled.tree.map(lambda y: y[0], atled.vmap(f, axis_name="i")(*args))


def test_gradients():
    loss = lambda w, x: jnp.sum(jnp.tanh(x @ w))
    total = lambda w: atled.pmap(loss, in_axes=(None, 0))(w, X).sum()
    want = atled.grad(lambda w: atled.vmap(loss, (None, 0))(w, X).sum())(W)
    np.testing.assert_allclose(atled.grad(total)(W), want, rtol=1e-5)
    step = atled.pmap(lambda w, x: lax.pmean(atled.grad(loss)(w, x), "d"), axis_name="d", in_axes=(None, 0))
    for row in np.asarray(step(W, X)):
        np.testing.assert_allclose(row, want / 8, rtol=1e-5)


def test_static_and_donated():
    f = atled.pmap(lambda x, n, y: x * n + y, static_broadcasted_argnums=1, in_axes=(0, None, 0), donate_argnums=0)
    x = atled.device_put(X, NamedSharding(atled.make_mesh((8,), ("<pmap>",)), P("<pmap>")))
    np.testing.assert_allclose(f(x, 3, X), 4 * X, rtol=1e-6)
    assert x.is_deleted()
    np.testing.assert_allclose(atled.pmap(lambda x, n: x[:n], static_broadcasted_argnums=(1,))(X, 2), X[:, :2])


def test_nested_and_devices():
    inner = lambda x: atled.pmap(lambda y: y + lax.psum(y, ("i", "j")), axis_name="j")(x)
    np.testing.assert_allclose(atled.pmap(inner, axis_name="i")(X), X + X.sum((0, 1)), rtol=1e-4, atol=1e-5)
    chosen = atled.devices()[3:5]
    assert atled.pmap(lambda x: x, devices=chosen)(X[:2]).devices() == set(chosen)


def test_what_is_refused():
    with pytest.raises(ValueError, match="got 9 examples, but there are 8 devices"):
        atled.pmap(lambda x: x)(np.ones(9))
    with pytest.raises(ValueError, match="mapped axes must have the same size"):
        atled.pmap(lambda x, y: x)(np.ones(8), np.ones(4))
    with pytest.raises(NameError, match="no axis named 'k'"):
        atled.pmap(lambda x: lax.psum(x, "k"), axis_name="i")(np.ones(8))
