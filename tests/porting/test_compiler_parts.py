"""Names about how programs are compiled: options, modules of MLIR, callbacks in rules, changes of modules."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import struct
import subprocess

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import export, ffi, sharding
from atled.jax.experimental import jet, mesh_utils, profiler
from atled.jax.extend import backend, lowering, source_info_util, xla
from atled.jax.extend.core import Primitive
from atled.jax.extend.mlir import ir
from atled.jax.interpreters import mlir, pxla

X = np.arange(6, dtype=np.float32).reshape(2, 3)
COMPILER = shutil.which("g++") or shutil.which("clang++")


def test_compile_options():
    device = atled.devices()[0]
    made = backend.get_compile_options(1, 1, np.array([device]), {"xla_embed_ir_in_executable": "true"})
    assert (made.num_replicas, made.num_partitions) == (1, 1)
    assert made.device_assignment.replica_count() == 1 and made.executable_build_options.use_spmd_partitioning
    assert made.env_option_overrides == [("xla_embed_ir_in_executable", "true")]
    with pytest.raises(ValueError, match="device_assignment must have 2 x 1 devices; got 1 x 1"):
        backend.get_compile_options(2, 1, [[device]])
    more = pxla.create_compile_options(None, False, [False], [True, True], None, np.array([[device]]), {})
    assert more.num_partitions == 1 and not more.parameter_is_tupled_arguments
    assert list(more.executable_build_options.allow_spmd_sharding_propagation_to_output) == [True, True]


def own(name, rule, **settings):
    made = Primitive(name)
    made.multiple_results = True
    made.def_abstract_eval(lambda *types, **_: list(types))
    mlir.register_lowering(made, rule)
    return lambda x, **params: made.bind(x, **params)[0]


def test_callbacks_in_rules():
    seen = []

    def host(x):
        seen.append(x.shape)
        return (2 * x,)

    def rule(ctx, x):
        out, token, _ = mlir.emit_python_callback(
            ctx, host, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        assert token is None
        return out

    f = own("test_calls_back", rule)
    np.testing.assert_array_equal(atled.jit(lambda x: f(x) + 1)(X), 2 * X + 1)
    assert seen == [(2, 3)]

    def wrong(ctx, x):
        return mlir.emit_python_callback(
            ctx, lambda x: (x[0],), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=True
        )[0]

    with pytest.raises(TypeError, match=r"must return f32\[2,3\]"):
        atled.jit(own("test_calls_back_wrong", wrong))(X).block_until_ready()


def test_programs_in_rules():
    program = atled.jax.make_jaxpr(lambda x: [jnp.sin(x) * 3])(X)

    def rule(ctx, x):
        out, tokens = mlir.jaxpr_subcomp(
            ctx.module_context,
            program,
            None,
            "tokens",
            [],
            x,
            dim_var_values=(),
            const_lowering={},
            outer_traceback=None,
        )
        assert tokens == "tokens"
        return out

    np.testing.assert_allclose(atled.jit(own("test_inlines", rule))(X), 3 * np.sin(X), rtol=1e-6)


def test_types_and_constants_of_ones_own():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    class PairType:
        pass

    mlir.register_constant_handler(Pair, lambda value, aval: mlir.ir_constant(np.float32(value.a + value.b)))
    mlir.ir_type_handlers[PairType] = lambda aval: mlir.dtype_to_ir_type(np.dtype("float32"))
    assert mlir.ConstantHandler is not None
    assert str(mlir.aval_to_ir_type(None, PairType())) == "f32"
    assert str(mlir.aval_to_ir_type(atled.jax.typeof(X))) == "tensor<2x3xf32>"
    f = own("test_constant", lambda ctx, x: [mlir.ir_constant(Pair(1.5, 2.0))])
    assert float(atled.jit(f)(np.float32(0))) == 3.5


MODULE = """module {{
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {{
    %0 = call @inner(%x) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }}
  func.func private @inner(%x: tensor<f32>) -> tensor<f32> {{
    %0 = stablehlo.{op} %x : tensor<f32>
    return %0 : tensor<f32>
  }}
}}"""


def test_modules_are_joined():
    assert lowering.upstream_dialects is not None
    with lowering.JaxIrContext():
        assert str(ir.Type.parse("!stablehlo.token")) == "!stablehlo.token"
    with mlir.make_ir_context():
        one, two = (ir.Module.parse(MODULE.format(op=op)) for op in ("sine", "cosine"))
        name = mlir.merge_mlir_modules(one, "other", two)
        text = str(one)
        assert name == "other" and one.operation.verify()
        assert text.count("func.func") == 4 and "public @main" in text and "private @other" in text
        again = mlir.merge_mlir_modules(one, "other", ir.Module.parse(MODULE.format(op="tanh")))
        assert again != "other" and one.operation.verify() and str(one).count("stablehlo.tanh") == 1


def test_modules_are_changed_while_they_are_compiled():
    seen = []
    f = lambda x: jnp.tanh(x) * 17.0
    compiled = lambda: np.asarray(atled.jit(f)(X))
    before = compiled()

    def change(module):
        seen.append(len(module))
        return module.replace(struct.pack("<f", 17.0), struct.pack("<f", 34.0))

    xla.register_hlo_module_transformation(change, name="test_change")
    xla.register_hlo_module_transformation(
        lambda module: None, name="test_look", stage=xla.PipelineStage.POST_SCHEDULER
    )
    try:
        np.testing.assert_allclose(compiled(), 2 * before, rtol=1e-6)
        assert seen
    finally:
        assert xla.clear_hlo_module_transformation("test_change")
        assert xla.clear_hlo_module_transformation("test_look", xla.PipelineStage.POST_SCHEDULER)
    assert not xla.clear_hlo_module_transformation("test_change")
    np.testing.assert_array_equal(compiled(), before)  # nothing of it is kept, in memory or on disk
    atled.clear_caches()
    np.testing.assert_array_equal(compiled(), before)
    with pytest.raises(TypeError, match="stage must be a PipelineStage; got 0"):
        xla.register_hlo_module_transformation(change, name="a", stage=0)
    with pytest.raises(NotImplementedError, match="only the platform cpu"):
        xla.register_hlo_module_transformation(change, name="a", platforms="tpu")


def test_grids_of_ones_own():
    devices = atled.devices()[:1]
    kind = devices[0].device_kind
    mesh_utils.device_kind_handler_dict[kind] = lambda shape, found, **_: np.array(found[::-1]).reshape(shape)
    try:
        assert mesh_utils.create_device_mesh((1, 1), devices).shape == (1, 1)
        mesh_utils.device_kind_handler_dict[kind] = lambda *_, **__: None
        assert mesh_utils.create_device_mesh((1,), devices).shape == (1,)
    finally:
        del mesh_utils.device_kind_handler_dict[kind]


def test_devices_that_are_described():
    device = sharding.AbstractDevice("TPU v5e", 1, "tpu")
    mesh = sharding.AbstractMesh((2,), ("i",), abstract_device=device)
    assert mesh.abstract_device == sharding.AbstractDevice(device_kind="TPU v5e", num_cores=1, platform="tpu")
    assert mesh != sharding.AbstractMesh((2,), ("i",)) and len({mesh, mesh}) == 1


def test_polynomials_of_primitives_of_ones_own():
    wave, twice = Primitive("test_jet_wave"), Primitive("test_jet_twice")
    wave.def_impl(jnp.sin)
    wave.def_abstract_eval(lambda x: x)
    twice.def_impl(lambda x, *, by: jnp.exp(x * by))
    twice.def_abstract_eval(lambda x, *, by: x)
    jet.def_deriv(wave, jnp.cos)
    jet.def_comp(twice, lambda x, *, by: jnp.exp(x * by))
    given = (np.float32(0.3),), ([1.0, 0.5, 0.25, 2.0],)
    for ours, plain in ((wave.bind, jnp.sin), (lambda x: twice.bind(x, by=2.0), lambda x: jnp.exp(2 * x))):
        a, b = (jet.jet(lambda x, f=f: f(x) * x, *given) for f in (ours, plain))
        np.testing.assert_allclose(a[0], b[0], rtol=1e-6)
        np.testing.assert_allclose(np.asarray(a[1]), np.asarray(b[1]), rtol=1e-5)


def test_profiles_of_cpus_have_no_costs(tmp_path):
    with atled.profiler.trace(str(tmp_path)):
        atled.jit(jnp.sin)(X).block_until_ready()
    (run,) = (tmp_path / "plugins" / "profile").iterdir()
    assert profiler.get_profiled_instructions_proto(str(run)) == b""


@pytest.mark.skipif(COMPILER is None, reason="needs a compiler of C++")
def test_exported_calls_of_machine_code(tmp_path):
    out = str(tmp_path / "handlers.so")
    source = pathlib.Path(__file__).with_name("ffi_handlers.cc")
    given = ["-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-DFACTOR=1", f"-I{ffi.include_dir()}"]
    subprocess.run([COMPILER, *given, "-o", out, os.fspath(source)], check=True)
    ffi.register_ffi_target("export_Scale", ffi.pycapsule(ctypes.CDLL(out).Scale))
    f = atled.jit(
        lambda x: ffi.ffi_call("export_Scale", atled.ShapeDtypeStruct(x.shape, x.dtype))(x, factor=np.float32(2))
    )
    with pytest.raises(ValueError, match="calls export_Scale, which another process may define differently"):
        export.export(f)(X)
    check = export.DisabledSafetyCheck.custom_call("export_Scale")
    assert check.is_custom_call() == "export_Scale" and export.DisabledSafetyCheck.platform().is_custom_call() is None
    assert check == export.DisabledSafetyCheck("custom_call:export_Scale") and str(check) == "custom_call:export_Scale"
    saved = export.export(f, disabled_checks=[check])(X).serialize()
    np.testing.assert_array_equal(export.deserialize(saved).call(X), 2 * X)
    assert export.minimum_supported_calling_convention_version == 1
    assert export.maximum_supported_calling_convention_version == 1


def test_places_of_other_equations():
    """What an interpreter of one's own records comes from where the equation did."""
    program = atled.jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(X)
    line = program.eqns[0].source_info.line

    def run(x):
        env = {program.invars[0]: x}
        for e in program.eqns:
            names = source_info_util.new_name_stack("mine")
            with source_info_util.user_context(e.source_info.traceback, name_stack=names):
                values = [v.val if hasattr(v, "val") else env[v] for v in e.invars]
                env[e.outvars[0]] = e.primitive.bind(*values, **e.params)
        return env[program.outvars[0]]

    again = atled.jax.make_jaxpr(run)(X)
    assert [e.source_info.line for e in again.eqns] == [line] * 2
    assert [e.source_info.name_stack for e in again.eqns] == ["mine"] * 2
    assert "mine/sin" in atled.jit(run).lower(X).as_text(debug_info=True)
    after = atled.jax.make_jaxpr(lambda x: (run(x), jnp.cos(x))[1])(X).eqns[-1].source_info
    assert after.line != line and after.name_stack == ""
    assert source_info_util.summarize(source_info_util.new_source_info()) == "unknown"
    with source_info_util.user_context(None):
        assert atled.jax.make_jaxpr(jnp.sin)(X).eqns[0].source_info is not None
