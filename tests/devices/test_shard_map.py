"""`shard_map` over an axis is `vmap` with an axis name, and its derivative is that of the `vmap`: on everything.

Each body runs on eight devices by `shard_map` and on one by `vmap`, and both are differentiated, batched and compiled.
"""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.sharding import P

N = 8


def body_cond(x, w):
    return lax.cond(lax.psum(x.sum(), "x") > 0, lambda v: jnp.sin(v) * w, lambda v: jnp.cos(v), x)


def body_scan(x, w):
    def step(c, _):
        c = jnp.tanh(c * w + lax.ppermute(c, "x", [(i, (i + 1) % N) for i in range(N)]))
        return c, lax.psum(c, "x").sum()

    return lax.scan(step, x, None, length=3)


def body_while(x, w):
    return lax.while_loop(lambda c: lax.pmax(c[0], "x") < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) * w), (0, x))[1]


@atled.custom_jvp
def cube(x):
    return lax.psum(x, "x") * x**2


@cube.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return cube(x), lax.psum(t, "x") * x**2 + 2 * lax.psum(x, "x") * x * t


@atled.custom_vjp
def scaled(x, w):
    return x * w


scaled.defvjp(lambda x, w: (x * w, (x, w)), lambda kept, ct: (ct * kept[1], (ct * kept[0]).sum()))

BODIES = {
    "local": lambda x, w: jnp.sin(x) * w,
    "psum": lambda x, w: lax.psum(jnp.sin(x) * w, "x"),
    "psum of shared": lambda x, w: x * lax.psum(w, "x"),
    "psum twice": lambda x, w: lax.psum(x * lax.psum(x * w, "x"), "x"),
    "pmean": lambda x, w: x - lax.pmean(x, "x") * w,
    "pmax": lambda x, w: lax.pmax(x * w, "x") - lax.pmin(x, "x"),
    "axis_index": lambda x, w: x * lax.axis_index("x") * w,
    "axis_size": lambda x, w: x * w / lax.axis_size("x"),
    "all_gather": lambda x, w: jnp.sin(lax.all_gather(x, "x")) * w,
    "all_gather tiled": lambda x, w: lax.all_gather(x * w, "x", axis=1, tiled=True) ** 2,
    "psum_scatter": lambda x, w: lax.psum_scatter(jnp.sin(jnp.tile(x, (8, 1))) * w, "x", tiled=True),
    "ppermute": lambda x, w: lax.ppermute(x * w, "x", [(0, 3), (5, 1), (2, 2)]),
    "pshuffle": lambda x, w: lax.pshuffle(jnp.sin(x) * w, "x", [3, 1, 4, 0, 5, 2, 7, 6]),
    "all_to_all": lambda x, w: lax.all_to_all(jnp.tile(x * w, (8, 1)), "x", 0, 1, tiled=True),
    "pbroadcast": lambda x, w: lax.pbroadcast(jnp.sin(x), "x", 3) * w * x,
    "pvary": lambda x, w: lax.pvary(w, "x") * x,
    "cond": body_cond,
    "scan": body_scan,
    "while": body_while,
    "checkpoint": lambda x, w: atled.checkpoint(lambda v: jnp.sin(lax.psum(jnp.sin(v) * w, "x")) * v)(x),
    "custom_jvp": lambda x, w: cube(x) * w,
    "custom_vjp": lambda x, w: lax.psum(scaled(x, w), "x"),
    "jit": lambda x, w: atled.jit(lambda v: lax.psum(v * w, "x") * v)(x),
    "vmap inside": lambda x, w: atled.vmap(lambda r: lax.psum(r * w, "x"))(x),
    "grad inside": lambda x, w: atled.grad(lambda v: jnp.sum(jnp.sin(v) * w))(x),
    "matmul": lambda x, w: lax.psum(x.T @ x, "x") * w,
    "sort": lambda x, w: jnp.sort(lax.all_gather(x, "x", tiled=True), axis=0) * w,
    "where": lambda x, w: jnp.where(lax.axis_index("x") == 2, x * w, lax.psum(x, "x")),
}
FORWARD_ONLY = {"while"}


@pytest.fixture(scope="module")
def mesh():
    return atled.make_mesh((N,), ("x",))


@pytest.fixture(scope="module")
def values():
    r = np.random.default_rng(0)
    return r.uniform(-1, 1, (N, 2, 3)), np.asarray(r.uniform(0.5, 1.5)), r


def both(body, mesh):
    """The same function by shard_map and by vmap, on arrays [device, ...]."""

    def part(x, w):
        return atled.tree.map(lambda y: y[None], body(x[0], w))

    ours = atled.shard_map(part, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    return ours, atled.vmap(body, in_axes=(0, None), axis_name="x")


def close(a, b):
    for x, y in zip(atled.tree.leaves(a), atled.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BODIES)
def test_values(name, mesh, values):
    x, w, _ = values
    ours, theirs = both(BODIES[name], mesh)
    close(ours(x, w), theirs(x, w))
    close(atled.jit(ours)(x, w), theirs(x, w))


@pytest.mark.parametrize("name", [n for n in BODIES if n not in FORWARD_ONLY])
def test_gradients(name, mesh, values):
    x, w, r = values
    ours, theirs = both(BODIES[name], mesh)
    weights = atled.tree.map(lambda y: r.uniform(-1, 1, np.shape(y)), theirs(x, w))

    def loss(f):
        return lambda x, w: sum(jnp.sum(a * b) for a, b in zip(atled.tree.leaves(f(x, w)), atled.tree.leaves(weights)))

    want = atled.grad(loss(theirs), (0, 1))(x, w)
    close(atled.jit(atled.grad(loss(ours), (0, 1)))(x, w), want)
    close(atled.grad(loss(ours), (0, 1))(x, w), want)


@pytest.mark.parametrize("name", [n for n in BODIES if n != "custom_vjp"])
def test_forward_mode(name, mesh, values):
    x, w, r = values
    ours, theirs = both(BODIES[name], mesh)
    tangents = (r.uniform(-1, 1, x.shape), np.asarray(0.3))
    close(atled.jit(lambda *a: atled.jvp(ours, a, tangents))(x, w), atled.jvp(theirs, (x, w), tangents))


@pytest.mark.parametrize("name", BODIES)
def test_batched(name, mesh, values):
    x, w, _ = values
    ours, theirs = both(BODIES[name], mesh)
    xs, ws = np.stack([x, 0.5 * x, -x]), np.asarray([1.0, 0.5, 2.0]) * w
    if name == "while":
        ws = np.asarray(w)
        close(atled.jit(atled.vmap(ours, (0, None)))(xs, ws), atled.vmap(theirs, (0, None))(xs, ws))
        return
    close(atled.jit(atled.vmap(ours))(xs, ws), atled.vmap(theirs)(xs, ws))


def test_second_derivatives(mesh, values):
    x, w, _ = values
    ours, theirs = both(BODIES["psum twice"], mesh)
    second = [
        atled.grad(lambda w, f=f: atled.grad(lambda x, w: jnp.sum(f(x, w) ** 2))(x, w).sum()) for f in (ours, theirs)
    ]
    close(atled.jit(second[0])(w), second[1](w))
