"""Sharded arrays, and `jit` over meshes: values, placements, donation, launches, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from model import train

import atled
import atled.numpy as jnp
from atled import lax
from atled.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

SPECS = [
    P(),
    P("a"),
    P("b"),
    P(None, "a"),
    P("a", "b"),
    P("b", "a"),
    P(("a", "b")),
    P(None, ("b", "a")),
    P(("b", "a"), None),
]


@pytest.fixture(scope="module")
def mesh():
    return atled.make_mesh((4, 2), ("a", "b"))


X = np.arange(64.0, dtype="float32").reshape(8, 8)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_sharded_array_is_its_parts(mesh, spec):
    s = NamedSharding(mesh, spec)
    x = atled.device_put(X, s)
    assert x.sharding == s and x.committed and x.devices() == set(atled.devices())
    np.testing.assert_array_equal(x, X)
    assert len(x.addressable_shards) == 8
    for part in x.addressable_shards:
        assert part.data.shape == s.shard_shape((8, 8)) and part.data.device == part.device
        np.testing.assert_array_equal(part.data, X[part.index])
    copies = [p for p in x.addressable_shards if p.replica_id == 0]
    assert sum([p.data.size for p in copies]) == X.size
    again = atled.make_array_from_single_device_arrays((8, 8), s, [p.data for p in x.addressable_shards])
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(atled.make_array_from_callback((8, 8), s, lambda i: X[i]), X)
    np.testing.assert_array_equal(atled.make_array_from_process_local_data(s, X), X)


@pytest.mark.parametrize("source", SPECS, ids=str)
def test_every_sharding_becomes_every_other(mesh, source):
    x = atled.device_put(X, NamedSharding(mesh, source))
    turned = Mesh(np.array(atled.devices()[::-1]).reshape(2, 4), ("p", "q"))
    targets = [NamedSharding(mesh, t) for t in SPECS]
    targets += [
        NamedSharding(turned, P("p", "q")),
        NamedSharding(turned, P()),
        SingleDeviceSharding(atled.devices()[5]),
    ]
    targets += [
        NamedSharding(mesh, source, memory_kind="pinned_host"),
        NamedSharding(mesh, P("a"), memory_kind="pinned_host"),
    ]
    targets += [NamedSharding(Mesh(atled.devices()[:4], "z"), P("z"))]
    for target in targets:
        y = atled.device_put(x, target)
        assert y.sharding == target
        np.testing.assert_array_equal(y, X)
        np.testing.assert_array_equal(atled.device_put(y, x.sharding), X)


def test_host_memory_is_not_shared(mesh):
    host = X.copy()
    x = atled.device_put(host, NamedSharding(mesh, P("a")))
    host[:] = 0
    np.testing.assert_array_equal(x, X)


def test_keys_are_split_too(mesh):
    keys = atled.random.split(atled.random.key(3), 8)
    for spec in (P("a"), P(), P(("a", "b"))):
        placed = atled.device_put(keys, NamedSharding(mesh, spec))
        assert placed.sharding.is_equivalent_to(NamedSharding(mesh, spec), 1)
        draws = atled.jit(atled.vmap(lambda k: atled.random.normal(k, (3,))))
        np.testing.assert_array_equal(draws(placed), draws(keys))
        np.testing.assert_array_equal(
            atled.random.key_data(atled.device_put(placed, atled.devices()[2])), atled.random.key_data(keys)
        )


FUNCTIONS = {
    "sum": lambda x: x.sum(),
    "rows": lambda x: x.sum(0),
    "matmul": lambda x: x @ x.T,
    "sort": lambda x: jnp.sort(x * jnp.cos(x), axis=0),
    "cumsum": lambda x: jnp.cumsum(x, axis=1),
    "reshape": lambda x: x.reshape(4, 16),
    "flat": lambda x: x.reshape(-1),
    "concatenate": lambda x: jnp.concatenate([x, 2 * x[:3]]),
    "index": lambda x: x[2],
    "gather": lambda x: x[jnp.array([3, 1, 7])],
    "update": lambda x: x.at[2, 3].set(7.0),
    "pad": lambda x: jnp.pad(x, 1),
    "conv": lambda x: jnp.convolve(x[0], x[1]),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(8), x),
    "softmax": lambda x: atled.nn.softmax(x),
    "uneven": lambda x: x[:7, :5] + 1,
    "cholesky": lambda x: jnp.linalg.cholesky(x.T @ x / 1e3 + 40 * jnp.eye(8)),
    "grad": atled.grad(lambda x: jnp.sum(jnp.tanh(x @ x.T))),
    "vmap": atled.vmap(lambda r: jnp.outer(r, r)),
    "fft": lambda x: jnp.abs(jnp.fft.fft(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_sharded_arrays(mesh, name):
    f = FUNCTIONS[name]
    want = atled.tree.map(np.asarray, f(jnp.asarray(X)))
    for spec in (P("a", "b"), P(None, "a"), P()):
        x = atled.device_put(X, NamedSharding(mesh, spec))
        for g in (f, atled.jit(f)):
            got = g(x)
            atled.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-4), got, want)
            assert all([y.sharding.devices == mesh.flat for y in atled.tree.leaves(got)])


def test_shardings_asked_for(mesh):
    ns = lambda *parts: NamedSharding(mesh, P(*parts))
    f = atled.jit(
        lambda d, y: ({"u": d["w"] * 2, "v": d["b"] + y}, y),
        in_shardings=({"w": ns("a"), "b": None}, ns("b")),
        out_shardings=({"u": ns(None, "b"), "v": None}, ns()),
    )
    for _ in range(3):
        out, y = f({"w": X, "b": np.float32(1)}, np.ones(8, "float32"))
        assert out["u"].sharding == ns(None, "b") and y.sharding.is_fully_replicated
        np.testing.assert_array_equal(out["u"], 2 * X)
    with atled.set_mesh(mesh):
        g = atled.jit(lambda x: lax.with_sharding_constraint(x + 1, P("b")), in_shardings=P("a"), out_shardings=P("b"))
        assert g(X).sharding.is_equivalent_to(ns("b"), 2)
    lowered = f.lower({"w": atled.ShapeDtypeStruct((8, 8), "float32"), "b": 1.0}, np.ones(8, "float32"))
    compiled = lowered.compile()
    assert compiled.out_info[0]["u"].sharding == lowered.out_info[0]["u"].sharding == ns(None, "b")
    assert compiled.out_info[1].shape == (8,) and compiled.out_info[0]["v"].sharding.devices == mesh.flat
    assert compiled.output_shardings[0]["u"] == ns(None, "b") and compiled.input_shardings[0][1] == ns("b")
    np.testing.assert_array_equal(compiled({"w": X, "b": 1.0}, np.ones(8, "float32"))[0]["u"], 2 * X)


def test_constraints_under_transforms(mesh):
    ns = NamedSharding(mesh, P("a", "b"))
    f = lambda x: lax.with_sharding_constraint(jnp.sin(x), ns).sum()
    np.testing.assert_allclose(atled.jit(atled.grad(f))(X), np.cos(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        atled.jit(atled.vmap(f))(np.stack([X, -X])), [np.sin(X).sum(), -np.sin(X).sum()], rtol=1e-4
    )
    assert lax.with_sharding_constraint(jnp.asarray(X), ns).sharding == ns


def test_a_split_array_that_was_donated_is_not_used_again(mesh):
    x = atled.device_put(jnp.arange(8.0), NamedSharding(mesh, P("a")))
    f = atled.jit(lambda x: x + 1, donate_argnums=0)
    f(x)
    for use in (f, atled.jit(lambda x: x * 2), lambda x: x + 1, jnp.sum):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="deleted or donated"):
                use(x)


def test_donation_and_numbers(mesh):
    s = NamedSharding(mesh, P("a"))
    f = atled.jit(lambda x, k: x * k, donate_argnums=0)
    x = atled.device_put(X, s)
    for _ in range(5):
        y, x = x, f(x, 0.5)
        assert y.is_deleted() and x.sharding.is_equivalent_to(s, 2)
    np.testing.assert_array_equal(x, X / 32)
    assert len(f.compiles) == 1


def test_a_thousand_steps_under_way(mesh):
    step = atled.jit(lambda x: lax.with_sharding_constraint(x - x.mean(), NamedSharding(mesh, P(("a", "b")))))
    x = atled.device_put(X, NamedSharding(mesh, P(("a", "b"))))
    for _ in range(1000):
        x = step(x)
    assert abs(float(x.sum())) < 1e-2


def test_losses_are_the_same_on_every_mesh():
    shapes = [(1, 1), (8, 1), (4, 2), (2, 4), (1, 8)]
    runs = [train(atled.make_mesh(s, ("data", "model"), devices=atled.devices()[: s[0] * s[1]]), 20)[1] for s in shapes]
    assert runs[0][-1] < runs[0][0]
    for run in runs[1:]:
        np.testing.assert_allclose(run, runs[0], rtol=1e-6)


def test_random_draws_have_the_same_bits(mesh):
    key = atled.random.key(7)
    for draw in (
        lambda k: atled.random.normal(k, (16, 8)),
        lambda k: atled.random.bits(k, (16, 8)),
        lambda k: atled.random.bernoulli(k, 0.3, (16, 8)),
        lambda k: atled.random.randint(k, (16, 8), 0, 99),
    ):
        want = np.asarray(atled.jit(draw)(key))
        for spec in SPECS:
            np.testing.assert_array_equal(atled.jit(draw, out_shardings=NamedSharding(mesh, spec))(key), want)


def test_what_is_refused(mesh):
    ns = lambda *parts: NamedSharding(mesh, P(*parts))
    with pytest.raises(ValueError, match=r"dimension 0 of shape \[7, 8\] must be a multiple of 4 \('a'=4\); got 7"):
        atled.device_put(X[:7], ns("a"))
    with pytest.raises(ValueError, match=r"splits 2 dimensions, but an array of shape \[8\] has 1"):
        atled.device_put(X[0], ns("a", "b"))
    with pytest.raises(ValueError, match="the mesh has no axis 'q'; its axes are 'a', 'b'"):
        ns("q")
    with pytest.raises(ValueError, match="splits one dimension at most"):
        ns("a", "a")
    with pytest.raises(ValueError, match="16 devices are needed; there are 8"):
        atled.make_mesh((16,), ("a",))
    with pytest.raises(ValueError, match="each axis of the grid must have a name"):
        Mesh(atled.devices(), ("a", "b"))
    with pytest.raises(ValueError, match="committed to different devices"):
        atled.jit(jnp.add)(atled.device_put(X, ns("a")), atled.device_put(X, atled.devices()[0]))
    with pytest.raises(ValueError, match="committed to different devices"):
        _ = atled.device_put(X, ns("a")) + atled.device_put(X, NamedSharding(Mesh(atled.devices()[:4], "z"), P("z")))
    with pytest.raises(ValueError, match="a mesh is needed, but none is set"):
        atled.jit(lambda x: lax.with_sharding_constraint(x, P("a")))(X)
    with pytest.raises(ValueError, match="the callback returned"):
        atled.make_array_from_callback((8, 8), ns("a"), lambda i: X)
    with pytest.raises(ValueError, match="one array is needed for each device"):
        atled.make_array_from_single_device_arrays((8, 8), ns("a"), [jnp.asarray(X[:2])])
    with pytest.raises(ValueError, match="in_shardings of <lambda>, argument x: dimension 0"):
        atled.jit(lambda x: x, in_shardings=ns("a"))(X[:5])
    with pytest.raises(ValueError, match="must be a prefix of the tree"):
        atled.jit(lambda x, y: x, in_shardings=(ns("a"),))(X, X)
    with pytest.raises(TypeError, match="expected a Mesh"):
        NamedSharding(atled.devices(), P("a"))


def test_more_devices_than_a_collective_can_run_on():
    code = """
import numpy as np, atled
from atled.sharding import NamedSharding, P
mesh = atled.make_mesh((272,), ("x",))
x = atled.device_put(np.ones(272, "float32"), NamedSharding(mesh, P("x")))
assert float((x + 1).addressable_shards[0].data[0]) == 2.0
try:
    atled.jit(lambda x: x.sum())(x)
except RuntimeError as error:
    assert "at most 256 CPU devices of one process; got 272" in str(error)
else:
    raise AssertionError
"""
    environment = {**os.environ, "ATLED_NUM_CPU_DEVICES": "272"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1500:]


def test_constraints_that_are_no_meshes():
    x = jnp.ones(3)
    assert lax.with_sharding_constraint(x, x.sharding) is x
    for bad in ("data", 3, atled.devices()[0], atled.devices()[1]):
        with pytest.raises(
            TypeError, match="with_sharding_constraint: expected a NamedSharding or a PartitionSpec; got"
        ):
            lax.with_sharding_constraint(x, bad)
