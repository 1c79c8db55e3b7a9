"""`experimental`: marks of operations and calls, values that are split alike, compiled functions as bytes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.jax.experimental import compute_on, scheduling_groups, serialize_executable, xla_metadata
from atled.jax.experimental.shard_alike import shard_alike

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_marked_values():
    mark = lambda x: xla_metadata.set_xla_metadata(x, kind="wave", deep=True, level=3)
    f = lambda x: mark(jnp.sin(x)) * 2
    text = atled.jit(f).lower(X).as_text()
    assert 'stablehlo.sine %arg0 {mhlo.frontend_attributes = {deep = "true", kind = "wave", level = "3"}}' in text
    np.testing.assert_allclose(f(X), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(atled.grad(lambda x: f(x).sum())(X), 2 * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(atled.vmap(f)(X), 2 * np.sin(X), rtol=1e-6)
    assert "frontend" not in atled.jit(lambda x: mark(x)).lower(X).as_text()  # given by no operation
    both = atled.jit(lambda x: mark({"a": jnp.sin(x), "b": jnp.cos(x)})).lower(X).as_text()
    assert both.count("frontend_attributes") == 2
    twice = (
        atled.jit(lambda x: xla_metadata.set_xla_metadata(mark(jnp.sin(x)), kind="other", more=1)).lower(X).as_text()
    )
    assert '{deep = "true", kind = "other", level = "3", more = "1"}' in twice
    with pytest.raises(NotImplementedError, match="only values can be annotated"):
        xla_metadata.set_xla_metadata(kind="wave")


def test_marks_are_part_of_programs():
    """Programs that differ in marks alone are two programs for the cache."""
    from atled.compiler.fingerprint import digest

    program = lambda mark: digest(atled.make_program(lambda x: xla_metadata.set_xla_metadata(jnp.sin(x), k=mark))(X))
    assert program("a") == program("a") != program("b")


@pytest.mark.parametrize(
    "make, said",
    [
        (scheduling_groups.scheduling_group("first"), 'scheduling_group = "first"'),
        (compute_on.compute_on2(compute_type="device_host", out_memory_spaces=None), '_xla_compute_type = "host"'),
        (
            compute_on.compute_on2(compute_type="gpu_stream:1", out_memory_spaces=None),
            '_xla_stream_annotation = "1", inlineable = "false"',
        ),
    ],
)
def test_marked_calls(make, said):
    k = jnp.asarray(3.0)
    plain = lambda x, *, y: jnp.sin(x) * y * k
    f = make(plain)
    text = atled.jit(lambda x: f(x, y=x)).lower(X).as_text()
    assert text.count(said) == 1 and "call @" in text
    both = lambda f: (
        f(X, y=X),
        atled.grad(lambda x: f(x, y=x).sum())(X),
        atled.vmap(lambda x: f(x, y=x))(X),
        atled.jit(atled.vmap(atled.grad(lambda x: f(x, y=2.0))))(X[0]),
    )
    for ours, theirs in zip(both(f), both(plain)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert atled.jit(atled.grad(lambda x: f(x, y=x).sum())).lower(X).as_text().count(said) >= 1


def test_blocks_elsewhere():
    with compute_on.compute_on("device_host"):
        np.testing.assert_array_equal(atled.jit(lambda x: x * 2)(X), 2 * X)
    wrong = pytest.raises(ValueError, match=r"compute_on: compute_type is 'device_host', .*; got 'moon'")
    with wrong, compute_on.compute_on("moon"):
        pass
    with pytest.raises(TypeError, match="compute_on2: compute_type is a string; got 3"):
        compute_on.compute_on2(lambda x: x, compute_type=3, out_memory_spaces=None)
    options = compute_on.compute_on2(
        lambda x: x * 2, compute_type="device", out_memory_spaces=None, compiler_options={"a": "1"}
    )
    assert "backend_config" in atled.jit(options).lower(X).as_text()
    with pytest.raises(TypeError, match="the name of a group must be a string"):
        scheduling_groups.scheduling_group(3)


def test_values_that_are_split_alike():
    x, y = shard_alike({"a": X}, {"a": X + 1})
    np.testing.assert_array_equal(x["a"], X)
    np.testing.assert_array_equal(y["a"], X + 1)
    f = lambda x, y: (lambda a, b: (a * b).sum())(*shard_alike(x, y))
    for argnums in (0, 1, (0, 1)):
        ours, plain = (atled.grad(g, argnums)(X, X + 1) for g in (f, lambda x, y: (x * y).sum()))
        for a, b in zip(atled.tree.leaves(ours), atled.tree.leaves(plain), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(atled.vmap(f, (0, None))(X, X[1]), (X * X[1]).sum(1))
    np.testing.assert_array_equal(atled.jvp(f, (X, X), (X, X))[1], 2 * (X * X).sum())
    np.testing.assert_array_equal(atled.grad(lambda x: shard_alike(x, X)[0].sum())(X), np.ones_like(X))
    with pytest.raises(ValueError, match="both arrays must have the same shape"):
        shard_alike(X, X[0])
    with pytest.raises(ValueError, match="both trees must have the same structure"):
        shard_alike(X, [X])


SPLIT = """
import numpy as np, atled, atled.numpy as jnp
from atled.jax.experimental.serialize_executable import deserialize_and_load, serialize
from atled.jax.experimental.shard_alike import shard_alike
from atled.sharding import NamedSharding, PartitionSpec as P
mesh = atled.make_mesh((4,), ("i",))
x = atled.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), NamedSharding(mesh, P("i")))
for alike in (lambda x, y: (x, y), shard_alike):
    f = atled.jit(lambda x: alike(x * 2, jnp.ones((8, 4)) + 1))
    print(f(x)[1].sharding.spec)
compiled = f.lower(x).compile()
again = deserialize_and_load(*serialize(compiled))
for a, b in zip(again(x), compiled(x)):
    assert a.sharding == b.sharding
    np.testing.assert_array_equal(a, b)
reverse = deserialize_and_load(*serialize(compiled), execution_devices=atled.devices()[::-1])
assert reverse.mesh.flat[0].id == 3
np.testing.assert_array_equal(reverse(np.asarray(x))[0], 2 * np.asarray(x))
"""


def test_on_several_devices():
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    out = subprocess.run([sys.executable, "-c", SPLIT], capture_output=True, text=True, env=env)
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines() == ["P()", "P('i')"]


# -- compiled functions as bytes --------------------------------------------------------------------------------------

LOAD = """
import pickle, sys
import numpy as np, atled
from atled.jax.experimental.serialize_executable import deserialize_and_load
saved, ins, outs = pickle.load(open(sys.argv[1], "rb"))
f = deserialize_and_load(saved, ins, outs)
out = f({"a": np.ones((2, 2), np.float32)}, 5.0, k=np.ones(2, np.float32))
print(float(out["x"].sum()), out["y"].shape, f.in_tree == ins, f.out_tree == outs)
"""


def test_compiled_functions_in_another_process(tmp_path):
    def f(tree, unused, *, k):
        return {"x": tree["a"] @ k, "y": jnp.linalg.cholesky(tree["a"] + 3 * jnp.eye(2))}

    given = {"a": np.ones((2, 2), np.float32)}, 5.0
    compiled = atled.jit(f).lower(*given, k=np.ones(2, np.float32)).compile()
    file = tmp_path / "saved"
    file.write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    out = subprocess.run([sys.executable, "-c", LOAD, str(file)], capture_output=True, text=True)
    assert out.stdout.strip() == "4.0 (2, 2) True True", out.stderr


def test_loaded_functions():
    f = atled.jit(lambda key, x: (atled.random.split(key), x * 2), donate_argnums=1)
    key = atled.random.key(0)
    saved, ins, outs = serialize_executable.serialize(f.lower(key, X).compile())
    again = serialize_executable.deserialize_and_load(saved, ins, outs, "cpu")
    assert isinstance(again, atled.jax.stages.Compiled)
    keys, y = again(key, X)
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(atled.random.key_data(keys), atled.random.key_data(atled.random.split(key)))
    x = jnp.asarray(X)
    again(key, x)
    assert x.is_deleted()
    with pytest.raises(TypeError, match=r"argument .* was compiled for f32\[2,3\]; got f32\[3\]"):
        again(key, X[0])
    assert "HloModule" in again.as_text()


def test_what_was_loaded_from_the_cache_is_written():
    f = lambda x: jnp.tanh(x) * 3 + jnp.cumsum(x, 0)
    atled.jit(f)(X)  # on disk now
    atled.clear_caches()
    saved = serialize_executable.serialize(atled.jit(f).lower(X).compile())
    again = serialize_executable.deserialize_and_load(*saved)
    np.testing.assert_allclose(again(X), f(X), rtol=1e-6)


def test_what_cannot_be_loaded():
    load, serialize = serialize_executable.deserialize_and_load, serialize_executable.serialize
    saved, ins, outs = serialize(atled.jit(jnp.sin).lower(X).compile())
    with pytest.raises(ValueError, match="are not from serialize, or they are damaged"):
        load(saved[:-1] + bytes([saved[-1] ^ 1]), ins, outs)
    with pytest.raises(ValueError, match="compiled for 1 devices; got 2"):
        load(saved, ins, outs, execution_devices=atled.devices()[:1] * 2)
    k = jnp.asarray(X)
    with pytest.raises(NotImplementedError, match="closes over 1 arrays"):
        serialize(atled.jit(lambda x: x + k).lower(X).compile())
    with pytest.raises(NotImplementedError, match="has static arguments"):
        serialize(atled.jit(lambda x, n: x * n, static_argnums=1).lower(X, 3).compile())
    call = lambda x: atled.pure_callback(np.sin, atled.ShapeDtypeStruct(x.shape, x.dtype), x)
    with pytest.raises(ValueError, match="which is only valid in this process"):
        serialize(atled.jit(call).lower(X).compile())


def test_remote_runtimes_raise():
    from atled.jax.experimental import colocated_python

    for name in ("colocated_cpu_devices", "colocated_python", "colocated_python_class"):
        with pytest.raises(NotImplementedError, match="remote runtimes are not supported"):
            getattr(colocated_python, name)(None)
