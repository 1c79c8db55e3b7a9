"""Names that programs written for JAX use, and what they do here."""

import glob
import gzip
import logging

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import debug, profiler, sharding
from atled.jax import ad_checkpoint, config, stages
from atled.jax.experimental import mesh_utils, multihost_utils
from atled.jax.extend import core
from atled.jax.interpreters import ad, batching
from atled.sharding import P


def test_scopes_have_names_in_programs():
    def inner(x):
        with atled.named_scope("encoder"), atled.named_scope("first"):
            y = jnp.sin(x)
        return y * 2

    f = atled.jit(atled.grad(lambda x: inner(x).sum()))
    lowered = f.lower(jnp.ones(3))
    text = lowered.as_text(debug_info=True)
    assert "encoder/first/cos" in text and "encoder/first/backward(mul)" in text
    assert "encoder/first" in lowered.compile().as_text()
    after = atled.jit(lambda x: jnp.exp(x)).lower(1.0).as_text(debug_info=True)
    assert "encoder" not in after


def test_scopes_as_decorators_and_nested_calls():
    @atled.named_scope("outer")
    def g(x):
        return atled.jax.named_call(jnp.sin, name="wave")(x) + 1

    assert "outer/wave/sin" in atled.jit(g).lower(1.0).as_text(debug_info=True)
    with pytest.raises(TypeError, match="named_scope: the name must be a non-empty string"):
        atled.named_scope("")


def test_values_are_computed_while_recording():
    seen = []

    @atled.jit
    def f(x):
        with atled.ensure_compile_time_eval():
            table = jnp.arange(4) * 2
            seen.append(int(table.sum()))
            with pytest.raises(atled.errors.TracerBoolConversionError):
                bool(x > 0)
        return x + table

    np.testing.assert_array_equal(f(1.0), [1, 3, 5, 7])
    assert seen == [12]
    np.testing.assert_array_equal(atled.vmap(f)(jnp.ones(2)), [[1, 3, 5, 7]] * 2)
    assert float(atled.grad(lambda x: f(x).sum())(1.0)) == 4


def test_stages():
    traced = atled.jit(lambda x, y: (x + y["a"], x), donate_argnums=0).trace(jnp.ones(3), {"a": jnp.ones(3)})
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage, kind in ((traced, stages.Traced), (lowered, stages.Lowered), (compiled, stages.Compiled)):
        assert isinstance(stage, kind) and stage.in_tree.num_leaves == 2 and stage.out_tree.num_leaves == 2
        (x, y), names = stage.args_info
        assert x.donated and not y["a"].donated and x.shape == (3,) and x.dtype == "float32" and not names
        assert stage.in_avals[0][0].shape == (3,) and stage.donate_argnums == (0,) and stage.fun_name == "<lambda>"
    assert "stablehlo.add" in str(lowered.compiler_ir()) and lowered.cost_analysis()["flops"] >= 3
    assert "ENTRY" in lowered.compiler_ir("hlo").as_hlo_text()
    with pytest.raises(NotImplementedError, match="the dialect must be 'stablehlo'"):
        lowered.compiler_ir("mhlo")


def test_compiled_functions_know_their_static_arguments():
    compiled = atled.jit(lambda n, x, y: x * n + y, static_argnums=0).lower(7, 1.0, 2.0).compile()
    for _ in range(3):
        assert float(compiled(3.0, 4.0)) == float(compiled(7, 3.0, 4.0)) == 25
        with pytest.raises(TypeError, match=r"compiled for static arguments \{0: 7\}; got \{0: 8\}"):
            compiled(8, 3.0, 4.0)


def test_programs_under_jaxs_names():
    table = jnp.arange(3.0)
    closed, shapes = atled.jax.make_jaxpr(lambda x: {"y": jnp.sin(x) * table}, return_shape=True)(jnp.ones(3))
    assert shapes["y"].shape == (3,) and closed.in_avals == closed.out_avals == [closed.invars[0].aval]
    assert len(closed.consts) == len(closed.constvars) == 1 and len(closed.invars) == 1
    assert [e.primitive.name for e in closed.jaxpr.eqns] == ["sin", "mul"] and not closed.effects
    (found,) = core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.ones(3))
    np.testing.assert_allclose(found, np.sin(1) * np.arange(3.0), rtol=1e-6)
    loop = atled.jax.make_jaxpr(lambda x: atled.lax.scan(lambda c, _: (c * 2, c), x, None, length=3))(1.0)
    (e,) = [e for e in loop.eqns if core.jaxprs_in_params(e.params)]
    assert core.subjaxprs(loop) and e.invars and e.outvars
    many = atled.jax.make_jaxpr(lambda x: atled.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert many.eqns[0].primitive.name == "psum"


def test_two_programs_of_one_function_have_their_own_constants():
    def made(n):
        table = jnp.full(2, float(n))
        return atled.jax.make_jaxpr(lambda x: x + table)(jnp.ones(2))

    one, two = made(1), made(2)
    assert float(one.consts[0][0]) == 1 and float(two.consts[0][0]) == 2


def test_disable_jit_by_jaxs_name():
    seen = []
    f = atled.jit(lambda x: seen.append(type(x).__name__) or x)
    config.update("jax_disable_jit", True)
    try:
        f(1.0)
    finally:
        config.update("jax_disable_jit", False)
    assert seen == ["float"]


def test_parameters_by_jaxs_names():
    assert float(atled.jit(fun=lambda x: x + 1, backend="cpu")(1.0)) == 2
    assert float(atled.grad(fun=jnp.sin)(0.0)) == 1 and atled.devices(backend="cpu")
    assert atled.local_devices(process_index=0, backend="cpu") == atled.local_devices()
    assert atled.vmap(fun=jnp.sin, spmd_axis_name="x")(jnp.zeros(2)).shape == (2,)
    assert atled.device_put(1.0, donate=True, may_alias=False, src=None).shape == ()
    with pytest.raises(ValueError, match="compiler_options: No such compile option: 'xla_cpu_x'"):
        atled.jit(lambda x: x, compiler_options={"xla_cpu_x": True})(1.0)


def test_shapes_like_others():
    like = atled.ShapeDtypeStruct.like(jnp.ones((2, 3)))
    assert like.shape == (2, 3) and like.update(shape=(4,)).shape == (4,)
    assert atled.jax.typeof(jnp.ones(2)) is jnp.ones(2).aval and atled.jax.typeof(1.0).str_short() == "~f32[]"


def test_sharding_names():
    device = atled.devices()[:1]
    mesh = atled.make_mesh((1,), "x", (sharding.AxisType.Auto,), devices=device)
    for make in (sharding.Mesh, lambda d, n, t: atled.make_mesh((1,), n, t, devices=d), sharding.AbstractMesh):
        for kind in (sharding.AxisType.Explicit, sharding.AxisType.Manual):
            with pytest.raises(NotImplementedError, match=f"axes of type {kind.name} are not supported"):
                make(device if make is not sharding.AbstractMesh else (1,), ("x",), (kind,))
    assert mesh.axis_types == (sharding.AxisType.Auto,) and mesh.shape_tuple == (("x", 1),)
    with sharding.set_mesh(mesh):
        assert sharding.get_mesh() is mesh and atled.reshard(jnp.arange(2), P("x")).sharding.spec == P("x")
        double = sharding.auto_axes(out_sharding=P("x"))(lambda x: x * 2)
        np.testing.assert_array_equal(double(jnp.arange(2)), [0, 2])
        np.testing.assert_array_equal(atled.jit(double)(jnp.arange(2)), [0, 2])
    assert mesh_utils.create_device_mesh((1, 1), atled.devices()[:1]).shape == (1, 1)
    with pytest.raises(ValueError, match="a mesh of 3 x 5 needs 15 devices"):
        mesh_utils.create_device_mesh((3, 5), atled.devices()[:1])


def test_one_process_agrees_with_itself():
    x = {"a": np.arange(3), "b": np.float32(2)}
    found = multihost_utils.process_allgather(x)
    assert found["a"].shape == (1, 3) and multihost_utils.broadcast_one_to_all(x)["b"] == 2
    multihost_utils.assert_equal(x)
    multihost_utils.sync_global_devices("here")
    with pytest.raises(ValueError, match="one process must be the source; got 0"):
        multihost_utils.broadcast_one_to_all(x, is_source=False)


def test_what_is_saved(capsys):
    def f(x, p):
        return (jnp.sin(jnp.dot(x, p["w"])) * p["b"]).sum()

    args = jnp.ones((2, 3)), {"w": jnp.ones(3), "b": 2.0}
    ad_checkpoint.print_saved_residuals(f, *args)
    text = capsys.readouterr().out
    assert "f32[3] from the argument p['w']" in text and "output of cos from test_small_names.py" in text
    ad_checkpoint.print_saved_residuals(atled.remat(f), *args)
    assert "output of" not in capsys.readouterr().out
    ad_checkpoint.print_saved_residuals(lambda x, *, y: x * y, 1.0, y=2.0)
    assert "from the argument y" in capsys.readouterr().out


def test_debugging_names(capsys, caplog):
    debug.visualize_array_sharding(jnp.arange(4), use_color=False)
    assert "whole on device 0" in capsys.readouterr().out
    with caplog.at_level(logging.INFO, "atled"):
        atled.jit(lambda x: debug.log("x is {}", x))(3)
        atled.effects_barrier()
    assert "x is 3" in caplog.text
    with pytest.raises(NotImplementedError, match="has no sharding yet"):
        atled.jit(lambda x: debug.inspect_array_sharding(x, callback=print))(1.0)


def test_profiles(tmp_path):
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        for i in range(2):
            with profiler.StepTraceAnnotation("train", step_num=i), profiler.TraceAnnotation("my part"):
                atled.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((64, 64))).block_until_ready()
        with pytest.raises(RuntimeError, match="a profile is being written"):
            profiler.start_trace(tmp_path)
    (plane,) = glob.glob(f"{tmp_path}/plugins/profile/*/*.xplane.pb")
    with open(plane, "rb") as file:
        found = profiler.ProfileData.from_serialized_xspace(file.read())
    names = {event.name for p in found.planes for line in p.lines for event in line.events}
    assert {"train", "my part"} <= names
    (events,) = glob.glob(f"{tmp_path}/plugins/profile/*/perfetto_trace.json.gz")
    with gzip.open(events) as file:
        assert b"my part" in file.read()
    with pytest.raises(RuntimeError, match="no profile was started"):
        profiler.stop_trace()
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").stat().st_size > 0


def test_processes_and_memory(capsys):
    x = jnp.ones(5)
    assert any(y is x for y in atled.jax.live_arrays()) and atled.jax.process_indices() == [0]
    assert atled.jax.copy_to_host_async({"x": x})["x"] is x
    atled.jax.print_environment_info()
    assert "jaxlib" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["axis", "self", "args", "dims", "x", "t", "cotangent", "primals"])
def test_parameters_of_primitives_may_have_any_name(name):
    total = core.Primitive("total")
    total.def_impl(lambda v, /, **at: jnp.sum(v, at[name]))
    total.def_abstract_eval(lambda v, /, **at: core.ShapedArray(tuple(np.delete(v.shape, at[name])), v.dtype))
    ad.deflinear2(total, lambda g, v, /, **at: [jnp.broadcast_to(jnp.expand_dims(g, at[name]), v.aval.shape)])
    batching.primitive_batchers[total] = lambda vs, ds, /, **at: (total.bind(vs[0], **{name: at[name] + 1}), 0)
    f = lambda v: total.bind(v, **{name: 0})
    np.testing.assert_array_equal(atled.vmap(f)(jnp.ones((2, 3))), [3, 3])
    np.testing.assert_array_equal(atled.vmap(atled.grad(f))(jnp.ones((2, 3))), np.ones((2, 3)))


def test_the_type_of_a_reference():
    r = atled.jax.new_ref(jnp.ones(2))
    assert (
        isinstance(atled.jax.typeof(r), atled.jax.ref.AbstractRef)
        and atled.jax.typeof(r).inner_aval is jnp.ones(2).aval
    )


def test_an_empty_mesh_has_no_axes():
    assert atled.sharding.get_abstract_mesh().axis_sizes == ()
