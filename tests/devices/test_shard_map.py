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
    "all_gather last": lambda x, w: lax.all_gather(x * w, "x", axis=-1),
    "psum_scatter last": lambda x, w: lax.psum_scatter(jnp.tile(x, 8) * w, "x", scatter_dimension=-1, tiled=True),
    "psum_scatter": lambda x, w: lax.psum_scatter(jnp.sin(jnp.tile(x, (8, 1))) * w, "x", tiled=True),
    "ppermute": lambda x, w: lax.ppermute(x * w, "x", [(0, 3), (5, 1), (2, 2)]),
    "pshuffle": lambda x, w: lax.pshuffle(jnp.sin(x) * w, "x", [3, 1, 4, 0, 5, 2, 7, 6]),
    "all_to_all": lambda x, w: lax.all_to_all(jnp.tile(x * w, (8, 1)), "x", 0, 1, tiled=True),
    "pbroadcast": lambda x, w: lax.pbroadcast(jnp.sin(x), "x", 3) * w * x,
    "pvary": lambda x, w: lax.pvary(w, "x") * x,
    "cond": body_cond,
    "scan": body_scan,
    "while": body_while,
    "remat": lambda x, w: atled.remat(lambda v: jnp.sin(lax.psum(jnp.sin(v) * w, "x")) * v)(x),
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


# -- meshes with several axes, and what is refused ----------------------------------------------------------------


@pytest.fixture(scope="module")
def grid():
    return atled.make_mesh((4, 2), ("a", "b"))


X = np.random.default_rng(3).standard_normal((8, 6))
W = np.random.default_rng(4).standard_normal((6, 10))


def test_two_axes(grid):
    f = atled.shard_map(lambda x, w: lax.psum(x @ w, "b"), mesh=grid, in_specs=(P("a", "b"), P("b")), out_specs=P("a"))
    close(f(X, W), X @ W)
    loss = lambda f: lambda x, w: jnp.sum(jnp.sin(f(x, w)))
    close(atled.jit(atled.grad(loss(f), (0, 1)))(X, W), atled.grad(loss(jnp.matmul), (0, 1))(X, W))
    g = atled.shard_map(
        lambda v: lax.all_gather(v, ("a", "b"), tiled=True) * lax.axis_index(("a", "b")),
        mesh=grid, in_specs=P(("a", "b")), out_specs=P(("a", "b")),
    )  # fmt: skip
    close(g(X), np.concatenate([X * i for i in range(8)]))


def test_shared_cotangents_cross_the_mesh_once(grid):
    f = atled.shard_map(lambda x, w: lax.psum(x @ w, "b"), mesh=grid, in_specs=(P("a", "b"), P("b")), out_specs=P("a"))
    text = atled.jit(atled.grad(lambda x, w: jnp.sum(f(x, w)))).lower(X, W).compile().as_text()
    assert "all-reduce" not in text  # the forward sum is not needed, and its transpose moves nothing


SHARING = {
    "gathered": lambda x: lax.all_gather(jnp.sin(x), "x", tiled=True),
    "summed": lambda x: lax.psum(jnp.sin(x), "x"),
    "summed in a loop": lambda x: lax.fori_loop(0, 2, lambda _, c: lax.psum(jnp.sin(c), "x"), x),
    "first": lambda x: lax.pbroadcast(jnp.sin(x), "x", 2),
}


@pytest.mark.parametrize("name", SHARING)
def test_gradients_of_results_that_are_shared(mesh, name):
    """The result that all devices share is one result: as `vmap` with the results of one lane."""
    f = SHARING[name]
    x = np.random.default_rng(5).standard_normal((8, 3))
    ours = atled.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())
    theirs = lambda x: atled.vmap(lambda r: f(r[None]), axis_name="x")(x)[0]
    loss = lambda f: lambda x: jnp.sum(jnp.cos(f(x)))
    close(ours(x), theirs(x))
    close(atled.jit(atled.grad(loss(ours)))(x), atled.grad(loss(theirs))(x))


def test_partly_manual(grid):
    f = atled.shard_map(
        lambda x, w: lax.psum(jnp.sin(x @ w).sum(0) * (1 + lax.axis_index("a")), "a"),
        mesh=grid, in_specs=(P("a"), P()), out_specs=P(), axis_names={"a"},
    )  # fmt: skip
    plain = lambda x, w: (jnp.sin(x @ w) * (1 + np.repeat(np.arange(4), 2))[:, None]).sum(0)
    split = atled.device_put(W, atled.sharding.NamedSharding(grid, P(None, "b")))
    close(atled.jit(f)(X, split), plain(X, W))
    loss = lambda f: lambda x, w: jnp.sum(f(x, w) ** 2)
    close(atled.jit(atled.grad(loss(f), (0, 1)))(X, split), atled.grad(loss(plain), (0, 1))(X, W))


def test_inside_one_another(grid):
    def outer(v):
        return atled.shard_map(
            lambda u: lax.psum(jnp.sin(u), "b"), mesh=grid, in_specs=P(None, "b"), out_specs=P(), axis_names={"b"}
        )(v)

    f = atled.shard_map(outer, mesh=grid, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    want = np.sin(X[:, :3]) + np.sin(X[:, 3:])
    close(atled.jit(f)(X), want)


def test_closed_over_values_are_shared(mesh):
    w = jnp.asarray(np.arange(3.0))
    f = lambda w: atled.shard_map(lambda x: x * w, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = np.ones((8, 3))
    close(f(w)(x), x * np.arange(3.0))
    close(atled.grad(lambda w: f(w)(x).sum())(w), np.full(3, 8.0))
    close(atled.jit(atled.grad(lambda w: f(w)(x).sum()))(w), np.full(3, 8.0))


SHARED = {
    "sum": lambda x: lax.psum(x, "x"),
    "gather": lambda x: lax.all_gather(x, "x"),
    "scan of sums": lambda x: lax.scan(lambda c, _: (lax.psum(c, "x"), None), x, None, length=2)[0],
    "loop": lambda x: lax.fori_loop(0, 2, lambda i, c: lax.psum(c, "x"), x),
    "constant": lambda x: jnp.ones(3),
    "cond": lambda x: lax.cond(lax.psum(x.sum(), "x") > 0, lambda: 1.0, lambda: 2.0),
}
DIFFER = {
    "itself": lambda x: x,
    "index": lambda x: lax.axis_index("x"),
    "loop": lambda x: lax.fori_loop(0, 2, lambda i, c: c * lax.pmax(x, "x").sum(), x),
    "slowly": lambda x: lax.fori_loop(0, 3, lambda i, c: (c[1], c[2], x.sum().astype("float32")), (0.0, 0.0, 0.0))[0],
    "choice": lambda x: lax.cond(x.sum() > 0, lambda: 1.0, lambda: 2.0),
    "count": lambda x: lax.while_loop(lambda c: c < x.sum(), lambda c: c + 1, 0.0),
    "permuted": lambda x: lax.ppermute(lax.psum(x, "x"), "x", [(0, 1)]),
}


@pytest.mark.parametrize("name", SHARED)
def test_results_that_are_shared(mesh, name):
    atled.shard_map(SHARED[name], mesh=mesh, in_specs=P("x"), out_specs=P())(np.ones((8, 3)))


@pytest.mark.parametrize("name", DIFFER)
def test_results_that_differ(mesh, name):
    f = DIFFER[name]
    with pytest.raises(ValueError, match="on each device and differs along 'x', which its spec P\\(\\) omits"):
        atled.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())(np.ones((8, 3)))
    atled.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(np.ones((8, 3)))


def test_what_is_refused(mesh):
    x = P("x")

    def run(f=lambda v: v, ins=x, outs=x, **more):
        return atled.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **more)

    with pytest.raises(ValueError, match=r"dimension 0 of shape \[9\] must be a multiple of 8 \('x'=8\); got 9"):
        run()(np.ones(9))
    with pytest.raises(ValueError, match="in_specs names the axis 'q'; the mesh has 'x'"):
        run(ins=P("q"))(np.ones(8))
    with pytest.raises(ValueError, match="must be a prefix of the tree it describes"):
        run(ins=(P("x"), P("x")))(np.ones(8))
    with pytest.raises(ValueError, match="whose shard is f32\\[\\], with 0 dimensions"):
        run(lambda v: v.sum().astype("float32"))(np.ones(8))
    with pytest.raises(ValueError, match="the mesh has no axis 'q'"):
        run(axis_names={"q"})(np.ones(8))
    with pytest.raises(ValueError, match="a mesh is needed, but none is set"):
        atled.shard_map(lambda v: v, in_specs=P("x"), out_specs=P("x"))(np.ones(8))
    with pytest.raises(NotImplementedError, match="collectives over part of an axis are not supported"):
        run(lambda v: lax.psum(v, "x", axis_index_groups=[[0, 1], [2, 3]]))(np.ones(8))
    with pytest.raises(NameError, match="nowhere"):
        run(lambda v: lax.psum(v, "nowhere"))(np.ones(8))
    with pytest.raises(ValueError, match="in_specs must say how the arguments are split"):
        atled.shard_map(lambda v: v, mesh=mesh, out_specs=P("x"))(np.ones(8))
