"""Programs compiled for hardware you don't have: train steps over meshes, what they take, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import ShapeDtypeStruct, lax
from atled.sharding import Mesh, NamedSharding
from atled.sharding import PartitionSpec as P


def of(mesh, shape, *spec, dtype="float32"):
    return ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def mlp_step(weights, x, y):
    def loss(weights):
        h = x
        for up, down in weights:
            h = h + jnp.tanh(h @ up) @ down
        return jnp.mean((h - y) ** 2)

    value, grads = atled.value_and_grad(loss)(weights)
    return atled.tree.map(lambda w, g: w - 0.1 * g, weights, grads), value


def mlp_arguments(mesh, width=256, layers=2, batch=8):
    rows = mesh.shape["data"] * batch
    weights = [(of(mesh, (width, 4 * width), None, "model"), of(mesh, (4 * width, width), "model"))] * layers
    return weights, of(mesh, (rows, width), "data"), of(mesh, (rows, width), "data")


@pytest.mark.parametrize(
    "name, shape",
    [
        ("tpu v5e:2x4", (4, 2)),
        ("tpu v5e:16x16", (64, 4)),
        ("tpu v5p:8x8x16", (128, 8)),
        ("cuda h100 1x1x8", (4, 2)),
        ("cuda h100 1x32x8", (32, 8)),
    ],
)
def test_a_step_over_data_and_model(machine, name, shape):
    topology = machine(name)
    mesh = atled.make_mesh(shape, ("data", "model"), devices=topology.devices)
    weights, x, y = mlp_arguments(mesh)
    lowered = atled.jit(mlp_step, donate_argnums=0).lower(weights, x, y)
    compiled = lowered.compile(effort=-1.0)
    text = compiled.as_text()
    assert "all-reduce" in text and f"num_partitions={mesh.size}" in text
    stats = compiled.memory_analysis()
    whole = sum([4 * w.size for w in atled.tree.leaves(weights)])
    assert stats.argument_size_in_bytes == pytest.approx(whole // shape[1] + 2 * 4 * x.size // shape[0], rel=0.1)
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.output_shardings[0][0][0].spec == P(None, "model")
    assert compiled.input_shardings[0][1].spec == P("data")
    assert len(compiled.serialize()) > 1000
    with pytest.raises(RuntimeError, match=f"mlp_step: compiled for {name}, but no such device is attached"):
        compiled(weights, x, y)
    assert "jax" not in sys.modules


@pytest.mark.parametrize("name", ["tpu v5e:2x4", "cuda h100 1x1x8"])
def test_in_shardings_over_a_topology(machine, name):
    topology = machine(name)
    mesh = Mesh(np.array(topology.devices).reshape(8), ("data",))
    f = atled.jit(lambda x: jnp.sum(x * x), in_shardings=NamedSharding(mesh, P("data")))
    assert "all-reduce" in f.lower(ShapeDtypeStruct((64, 128), "float32")).compile(effort=-1.0).as_text()


@pytest.mark.parametrize("name", ["tpu v5e:2x4", "cuda h100 1x1x8"])
def test_a_loop_with_remat_and_shard_map(machine, name):
    topology = machine(name)
    mesh = atled.make_mesh((8,), ("data",), devices=topology.devices)

    def local(ws, x):
        out, _ = lax.scan(atled.remat(lambda h, w: (jnp.tanh(h @ w), None)), x, ws)
        return lax.psum(jnp.sum(out), "data")

    loss = atled.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=P())
    args = of(mesh, (4, 128, 128)), of(mesh, (64, 128), "data")
    compiled = atled.jit(atled.grad(loss)).lower(*args).compile(effort=-1.0)
    assert "while" in compiled.as_text() and "all-reduce" in compiled.as_text()


@pytest.mark.parametrize("name", ["tpu v5e:2x2", "cuda a100 1x1x8"])
def test_one_device_of_a_topology(machine, name):
    topology = machine(name)
    compiled = atled.jit(lambda x: jnp.sin(x) @ x).lower(ShapeDtypeStruct((256, 256), "float32")).compile(topology)
    assert compiled.memory_analysis().argument_size_in_bytes == 4 * 256 * 256


@pytest.mark.parametrize("name, there", [("tpu v5e:2x2", "15.75 GiB"), ("cuda h100 1x1x8", "79.11 GiB")])
def test_what_does_not_fit(machine, name, there):
    topology = machine(name)
    lowered = atled.jit(lambda x: jnp.sin(x)).lower(ShapeDtypeStruct((2**20, 2**16), "float32"))
    with pytest.raises(MemoryError, match=rf"<lambda>: needs \d+\.\d+ GiB on each device of {name}, which has {there}"):
        lowered.compile(topology)


def test_temporary_memory_that_does_not_fit(machine):
    topology = machine("tpu v5e:2x2")

    def f(x):
        y = jnp.outer(x, x)
        return jnp.sum(jnp.sort(y, axis=0) @ jnp.sort(y, axis=1))

    lowered = atled.jit(f).lower(ShapeDtypeStruct((2**16,), "float32"))
    with pytest.raises(MemoryError, match=r"f: needs \d+\.\d+ GiB on each device of tpu v5e:2x2, which has 15.75 GiB"):
        lowered.compile(topology, effort=-1.0)


def test_ops_that_only_a_cpu_has_say_so(machine):
    topology = machine("tpu v5e:2x2")
    lowered = atled.jit(lambda x: jnp.linalg.eigh(x)[0]).lower(ShapeDtypeStruct((8, 8), "float32"))
    with pytest.raises(NotImplementedError, match="eigh: there is no lowering for tpu yet"):
        lowered.compile(topology)
    seen = atled.jit(lambda x: atled.pure_callback(np.sin, x, x)).lower(ShapeDtypeStruct((8,), "float32"))
    with pytest.raises(NotImplementedError, match="callback: compiled code on tpu cannot call Python yet"):
        seen.compile(topology)


def test_a_mesh_of_other_devices(machine):
    topology, other = machine("tpu v5e:2x2"), machine("tpu v5e:2x4")
    here = atled.make_mesh((1,), ("data",), devices=atled.devices()[:1])
    with pytest.raises(ValueError, match="compile: the mesh must have devices of tpu v5e:2x2"):
        atled.jit(jnp.sin).lower(of(here, (8,), "data")).compile(topology)
    there = atled.make_mesh((4,), ("data",), devices=topology.devices)
    with pytest.raises(ValueError, match="compile: the arguments are on tpu v5e:2x2; got tpu v5e:2x4"):
        atled.jit(jnp.sin).lower(of(there, (8,), "data")).compile(other)


def test_devices_come_by_number_and_are_the_same_again(machine):
    topology = machine("tpu v5p:2x2x2")
    assert [d.id for d in topology.devices] == list(range(8)) and topology is machine("tpu v5p:2x2x2")
    assert repr(topology) == "Topology('tpu v5p:2x2x2', 8 devices, 95.74 GiB each)"
    assert len(machine("tpu v5e:2x2", num_slices=2).devices) == 8


@pytest.mark.parametrize("name, options", [("tpu v5p:3x3x3", {}), ("tpu v5e:2x2", {"slices": 2})])
def test_machines_that_do_not_exist(machine, name, options):
    with pytest.raises(ValueError, match=f"topologies.get: {name} is not an existing machine: "):
        machine(name, **options)


@pytest.mark.parametrize(
    ("name", "f", "dtype", "says"),
    [
        ("tpu v5e:2x2", lambda x: x / x, "complex128", "div: TPUs have no complex128; got c128"),
        ("tpu v5e:2x2", lambda x: lax.fori_loop(0, 3, lambda i, c: abs(c) * c, x), "complex128", "no complex128"),
        (
            "cuda h100 1x1x2",
            lambda x: lax.dot(x, x, preferred_element_type="int32"),
            "int8",
            "dot_general: products of int8 in int32 cannot be compiled without a GPU",
        ),
        (
            "cuda h100 1x1x2",
            lambda x: lax.scan(
                lambda c, _: (c + lax.dot(x, x, preferred_element_type="int32").sum(), None), 0, length=2
            ),
            "int8",
            "products of int8 in int32",
        ),
    ],
)
def test_what_would_end_the_compiler_raises(machine, name, f, dtype, says):
    topology = machine(name)
    lowered = atled.jit(f).lower(ShapeDtypeStruct((4, 4), dtype))
    with pytest.raises(NotImplementedError, match=says) as caught:
        lowered.compile(topology=topology)
    assert "test_compile.py" in str(caught.value) and "try: " in str(caught.value)
