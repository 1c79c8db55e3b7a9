"""Every binding of jaxlib that the engine uses, pinned: what a new jaxlib changes, this file names."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import jaxlib.version
import numpy as np
import pytest
from jaxlib import _hlo, _jax

import atled
from atled.core.sharding import Placed
from atled.core.types import ArrayType
from atled.engine import client, executable, jaxlib_versions, mlir_attributes, placement, stablehlo
from atled.engine.array import put

ENGINE = pathlib.Path(atled.__file__).parent / "engine"
ADD = """module @m { func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32> return %0 : tensor<4xf32> } }"""


def device():
    return client.devices("cpu")[0]


def test_the_versions_that_are_allowed():
    found = tuple(int(n) for n in jaxlib.version.__version__.split(".")[:3])
    assert (0, 10, 2) <= found < (0, 13)


def bindings() -> list[str]:
    """Names that the engine takes from jaxlib's modules."""
    found = set()
    for file in ENGINE.glob("*.py"):
        found.update(
            re.findall(r"\b(_jax|_hlo|ir|_stablehlo|_chlo|_sdy|_jax_mlir_ext)\.([A-Za-z_]\w*)", file.read_text())
        )
    return sorted(f"{module}.{name}" for module, name in found)


@pytest.mark.parametrize("binding", bindings())
def test_binding_is_there(binding: str):
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

    modules = {
        "_jax": _jax,
        "_hlo": _hlo,
        "ir": ir,
        "_stablehlo": _stablehlo,
        "_chlo": _chlo,
        "_sdy": _sdy,
        "_jax_mlir_ext": _jax_mlir_ext,
    }
    module, _, name = binding.partition(".")
    assert hasattr(modules[module], name), f"{binding} is gone"


def placed(shape, dtype):
    return Placed(ArrayType(shape, np.dtype(dtype)), placement.on_device(device()), False)


def test_a_buffer_carries_our_object():
    p = placed((4,), "f4")
    assert put(np.ones(4, "f4"), p).aval is p


def test_put_copies_when_told_to():
    raw = np.zeros(64 * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    aligned = raw[start : start + 256].view("f4")  # what a zero-copy put would share
    buffer = put(aligned, placed((64,), "f4"))
    aligned[:] = 7
    assert np.asarray(memoryview(buffer)).max() == 0


def test_compile_execute_and_consume():
    d = device()
    raw = d.client.compile_and_load(ADD, placement.device_list((d,)), _jax.CompileOptions())
    p = placed((4,), "f4")
    (out,) = raw.execute_sharded([put(np.ones(4, "f4"), p)] * 2).consume_with_handlers([executable.handler(p)])
    assert out.aval is p and np.asarray(memoryview(out)).tolist() == [2, 2, 2, 2]
    assert not np.asarray(memoryview(out)).flags.writeable
    assert raw.cost_analysis()["flops"] == 4 and raw.get_compiled_memory_stats().argument_size_in_bytes == 32
    assert "add" in raw.get_hlo_text()
    assert out.traceback is not None


def test_wrong_counts_and_deleted_buffers_raise():
    d, p = device(), placed((4,), "f4")
    raw = d.client.compile_and_load(ADD, placement.device_list((d,)), _jax.CompileOptions())
    x = put(np.ones(4, "f4"), p)
    with pytest.raises(jaxlib_versions.EngineError):
        raw.execute_sharded([x])
    x.delete()
    assert x.is_deleted()
    with pytest.raises((jaxlib_versions.EngineError, RuntimeError)):
        raw.execute_sharded([x, x])
    with pytest.raises((jaxlib_versions.EngineError, BufferError, RuntimeError)):
        memoryview(x)


def test_executables_survive_serialization():
    d, p = device(), placed((4,), "f4")
    raw = d.client.compile_and_load(ADD, placement.device_list((d,)), _jax.CompileOptions())
    again = d.client.deserialize_executable(raw.serialize(), placement.device_list((d,)), None)
    (out,) = again.execute_sharded([put(np.ones(4, "f4"), p)] * 2).consume_with_handlers([executable.handler(p)])
    assert np.asarray(memoryview(out))[0] == 2


def test_the_machine_has_a_fingerprint():
    a, b = (str(_jax.get_topology_for_devices([device()]).fingerprint()) for _ in range(2))
    assert a == b and a


def test_unknown_compile_options_are_refused():
    d = device()
    options = _jax.CompileOptions()
    options.env_option_overrides = [("xla_no_such_option", True)]
    with pytest.raises(jaxlib_versions.EngineError, match=r"(?i)no such"):
        d.client.compile_and_load(ADD, placement.device_list((d,)), options)


@pytest.mark.parametrize(
    ("name", "value"), [("xla_cpu_use_fusion_emitters", False), ("xla_cpu_parallel_codegen_split_count", 2)]
)
def test_options_for_speed_may_be_missing(name, value):
    assert name in jaxlib_versions.MAY_BE_MISSING
    d, p = device(), placed((4,), "f4")
    options = _jax.CompileOptions()
    options.env_option_overrides = [(name, value)]
    raw = jaxlib_versions.compile_and_load(d.client, ADD, placement.device_list((d,)), options)
    assert [o[0] for o in options.env_option_overrides] == ([] if name in jaxlib_versions.missing else [name])
    (out,) = raw.execute_sharded([put(np.ones(4, "f4"), p)] * 2).consume_with_handlers([executable.handler(p)])
    assert np.asarray(memoryview(out))[0] == 2


def test_other_options_may_not_be_missing():
    d = device()
    options = _jax.CompileOptions()
    options.env_option_overrides = [("xla_cpu_use_fusion_emitters", False), ("xla_no_such_option", True)]
    with pytest.raises(jaxlib_versions.EngineError, match=r"(?i)no such"):
        jaxlib_versions.compile_and_load(d.client, ADD, placement.device_list((d,)), options)


def test_barriers_survive_as_asked():
    """A pass that is called otherwise would be left on, without a word."""
    d, kept = device(), {}
    text = ADD.replace("return", "%1 = stablehlo.optimization_barrier %0 : tensor<4xf32> return").replace(
        "return %0", "return %1"
    )
    for passes in ("", "cse_barrier_expander"):
        options = _jax.CompileOptions()
        options.env_option_overrides = [("xla_disable_hlo_passes", passes)]
        raw = d.client.compile_and_load(text, placement.device_list((d,)), options)
        kept[passes] = "opt-barrier" in raw.get_hlo_text()
    assert kept == {"": False, "cse_barrier_expander": True}


@pytest.mark.parametrize("effort", [-1.0, 0.0, 1.0])
def test_effort_can_be_said(effort):
    options = _jax.CompileOptions().executable_build_options
    jaxlib_versions.set_effort(options, effort)
    if not hasattr(options, "exec_time_optimization_effort"):
        assert options.optimization_level == {-1: 9, 0: 0, 1: 39}[effort]


def test_locations_reach_the_compiled_program():
    import atled.numpy as jnp

    # a program that nothing else compiles: equal ones are shared, with the lines of the first
    text = atled.jit(lambda x: jnp.tanh(x) * 1.2345 - 6.789).lower(np.ones(3, "f4")).compile().as_text()
    assert "test_contract.py" in text


def test_portable_artifacts_round_trip():
    program = atled.make_program(lambda x: x + 1.0)(np.ones(3, "f4"))
    data = stablehlo.to_portable(stablehlo.build(program, "cpu"))
    with mlir_attributes.context:
        module = stablehlo._stablehlo.deserialize_portable_artifact(mlir_attributes.context, data)
        assert "stablehlo.add" in str(module)


def test_jax_is_never_imported():
    """With jax installed or not: an import hook would tell."""
    code = """
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "jax" or name.startswith("jax."):
            raise AssertionError("jax was imported")
sys.meta_path.insert(0, Watch())
import numpy as np, ml_dtypes, pickle, atled, atled.numpy as jnp, atled.random as random
x = jnp.arange(6.0).reshape(2, 3)
for y in (x, x.astype("bfloat16"), x.astype("float8_e5m2"), x.astype("int4"), x.astype(bool)):
    np.asarray(y), repr(y)
np.from_dlpack(x), jnp.from_dlpack(np.ones(3)), pickle.loads(pickle.dumps(x))
f = atled.jit(atled.grad(lambda v: jnp.sum(jnp.sin(v) @ v.T)), donate_argnums=0)
f(x).block_until_ready(); x.is_deleted()
atled.vmap(lambda v: v * 2)(jnp.ones((2, 3)))
random.normal(random.key(0), (3,))
atled.lax.linalg.cholesky(jnp.eye(3))
atled.export.deserialize(atled.export.export(atled.jit(jnp.sin))(jnp.ones(2)).serialize()).call(jnp.ones(2))
assert not [m for m in sys.modules if m == "jax" or m.startswith("jax.")]
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
