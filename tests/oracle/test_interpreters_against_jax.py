"""`interpreters`: rules for primitives of one's own by every way there is to say them, as JAX takes them."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest

import atled.jax as atled

jax = pytest.importorskip("jax")

LIBRARIES = pytest.mark.parametrize("library", [atled, jax], ids=["atled", "jax"])
X = np.float32([1.0, 2.0, 3.0])
Y = np.float32([0.5, -1.0, 2.0])


def module(library, name):
    return importlib.import_module(f"{library.__name__}.{name}")


def primitive(library, name, f, typed=None):
    """A primitive that does what a function does, compiled by tracing it."""
    core, mlir = module(library, "extend.core"), module(library, "interpreters.mlir")
    shaped = module(library, "core").ShapedArray
    made = core.Primitive(name)
    made.def_impl(lambda *xs, **params: f(*xs, **params))
    made.def_abstract_eval(typed or (lambda x, *_, **__: shaped(x.shape, x.dtype)))
    mlir.register_lowering(made, mlir.lower_fun(f, multiple_results=False))
    return made


def same(f):
    for a, b in zip(f(atled), f(jax), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_derivatives():
    def found(library):
        ad, jnp = module(library, "interpreters.ad"), library.numpy
        one = primitive(library, "one", lambda x, y: x * x * y)
        ad.defjvp(one, lambda t, x, y: 2 * x * y * t, lambda t, x, y: x * x * t)
        two = primitive(library, "two", lambda x: jnp.exp(x))
        ad.defjvp2(two, lambda t, out, x: t * out)
        both = primitive(library, "both", lambda x, y: x * y)
        ad.defbilinear(both, lambda ct, x, y: both.bind(ct, y), lambda ct, x, y: both.bind(x, ct))
        twice = primitive(library, "twice", lambda x: 2 * x)
        ad.deflinear2(twice, lambda ct, x: [2 * ct])
        assert ad.get_primitive_transpose(twice) is ad.primitive_transposes[twice]
        return [
            library.grad(lambda x: one.bind(x, Y).sum())(X), library.grad(lambda y: one.bind(X, y).sum())(Y),
            library.jvp(two.bind, (X,), (Y,))[1], library.grad(lambda x: both.bind(x, Y).sum())(X),
            library.grad(lambda y: both.bind(X, y).sum())(Y), library.jvp(both.bind, (X, Y), (Y, X))[1],
            library.grad(lambda x: (twice.bind(x) * Y).sum())(X), library.jit(library.grad(lambda x: two.bind(x)))(1.0),
        ]  # fmt: skip

    same(found)


@LIBRARIES
def test_tangents(library):
    ad, core = module(library, "interpreters.ad"), module(library, "core")
    aval = core.ShapedArray((3,), np.dtype("float32"))
    zero = ad.Zero(aval)
    np.testing.assert_array_equal(ad.zeros_like_aval(aval), [0, 0, 0])
    np.testing.assert_array_equal(ad.instantiate_zeros(zero), [0, 0, 0])
    np.testing.assert_array_equal(ad.add_jaxvals(X, Y), X + Y)
    assert ad.add_tangents(zero, X) is X and ad.add_tangents(X, zero) is X
    assert ad.is_undefined_primal(ad.UndefinedPrimal(aval)) and not ad.is_undefined_primal(X)
    seen = []
    library.jvp(lambda x: (seen.append(x), x)[1], (X,), (X,))
    assert isinstance(seen[0], ad.JVPTracer) and isinstance(ad.JVPTrace, type)


def test_batches():
    def found(library):
        batching, jnp = module(library, "interpreters.batching"), library.numpy
        shaped = module(library, "core").ShapedArray
        total = primitive(
            library, "total", lambda x, axes: jnp.sum(x, axes),
            lambda x, axes: shaped(tuple([n for i, n in enumerate(x.shape) if i not in axes]), x.dtype),
        )  # fmt: skip
        batching.defreducer(total)
        added = primitive(library, "added", lambda x, y: x + y)
        batching.defbroadcasting(added)
        scaled = primitive(library, "scaled", lambda x: 3 * x)
        batching.fancy_primitive_batchers[scaled] = lambda axis, args, dims: (
            scaled.bind(args[0]) + 0 * axis.size, dims[0],
        )  # fmt: skip
        m = np.arange(24, dtype="f4").reshape(2, 3, 4)
        run = library.vmap(lambda x: total.bind(x, axes=(0,)), in_axes=1)
        return [
            run(m), library.vmap(lambda x: total.bind(x, axes=(1,)))(m), library.jit(run)(m),
            library.vmap(lambda x: total.bind(x, axes=(0, 1)), in_axes=2)(m),
            library.vmap(added.bind, in_axes=(0, 1))(m[0], m[1].T), library.vmap(scaled.bind, in_axes=1)(m[0]),
            batching.broadcast(X, 2, 0, None), batching.bdim_at_front(m, 1, 3),
        ]  # fmt: skip

    same(found)


def test_rules_of_another_form():
    batching = module(atled, "interpreters.batching")
    p = primitive(atled, "p", lambda x: 2 * x)
    batching.axis_primitive_batchers[p] = lambda size, name, main, args, dims: (p.bind(args[0]) * size, dims[0])
    assert p in batching.fancy_primitive_batchers and p in batching.axis_primitive_batchers
    np.testing.assert_array_equal(atled.vmap(p.bind)(X), 6 * X)
    assert hasattr(module(jax, "interpreters.batching"), "axis_primitive_batchers")


def lowered(library, rule, *arguments):
    """The text of a module in which a rule was used."""
    mlir, shaped = module(library, "interpreters.mlir"), module(library, "core").ShapedArray
    made = module(library, "extend.core").Primitive("made")
    made.def_abstract_eval(lambda *xs: shaped(xs[0].shape, xs[0].dtype))
    mlir.register_lowering(made, rule)
    done = library.jit(lambda *xs: made.bind(*xs)).lower(*arguments)
    return done, done.compile()(*arguments)


@LIBRARIES
def test_values_of_modules(library):
    mlir = module(library, "interpreters.mlir")
    from jaxlib.mlir.dialects import stablehlo as hlo

    seen = {}

    def rule(ctx, x):
        aval = ctx.avals_in[0]
        assert isinstance(ctx, mlir.LoweringRuleContext) and isinstance(x, mlir.Value) and mlir.Token is mlir.Value
        assert isinstance(ctx.module_context, mlir.ModuleContext) and "cpu" in ctx.module_context.platforms
        kind = mlir.aval_to_ir_type(ctx.module_context, aval)
        assert (kind,) == tuple(mlir.aval_to_ir_types(ctx.module_context, aval)) and x.type == kind
        constant = mlir.ir_constant(np.asarray([1, 2, 3], "f4"))
        (other,) = mlir.ir_constants(np.asarray([1, 1, 1], "f4"))
        seen["types"] = [str(mlir.dtype_to_ir_type(np.dtype(d))) for d in ("float32", "int8", "uint16", "bool")]
        seen["attributes"] = [
            str(a) for a in (
                mlir.i32_attr(3), mlir.i64_attr(4), mlir.dense_int_array([1, 2]), mlir.dense_int_elements([1, 2]),
                mlir.ir_attribute("a"), mlir.ir_attribute(np.float32(2)), mlir.ir_attribute(True),
                mlir.ir_attribute(np.int32(7)),
            )
        ]  # fmt: skip
        seen["shape"] = str(mlir.shape_tensor(ctx.module_context, (2, 3)).type)
        seen["token"] = str(mlir.token_type())
        seen["flat"] = len(mlir.flatten_ir_values([constant, (other, x)])) if library is atled else 3
        return [hlo.add(hlo.multiply(x, constant), other)]

    done, out = lowered(library, rule, X)
    np.testing.assert_array_equal(out, [2, 5, 10])
    constants = (mlir.DEVICE_TO_DEVICE_TYPE, mlir.SEND_TO_HOST_TYPE, mlir.RECV_FROM_HOST_TYPE)
    assert constants == (1, 2, 3) and mlir.Mesh is library.sharding.Mesh and mlir.LoweringRule and mlir.MeshAxisName
    found = done.compiler_ir("stablehlo")
    assert "stablehlo.multiply" in mlir.module_to_string(found) and len(mlir.module_to_bytecode(found)) > 50
    SEEN.append(seen)
    if len(SEEN) == 2:
        assert SEEN[0] == SEEN[1]


SEEN: list[dict] = []


@LIBRARIES
def test_calls_in_modules(library):
    mlir = module(library, "interpreters.mlir")
    program = library.make_jaxpr(lambda x: library.numpy.sin(x) * 2)(X)
    rule = lambda ctx, x: mlir.core_call_lowering(ctx, x, name="inner", call_jaxpr=program)
    np.testing.assert_allclose(lowered(library, rule, X)[1], 2 * np.sin(X), rtol=1e-6)


@LIBRARIES
def test_fewer_results(library):
    pe = module(library, "interpreters.partial_eval")
    jnp, core = library.numpy, module(library, "core")
    closed = library.make_jaxpr(lambda x, y, z: (jnp.sin(x) + y, jnp.cos(z)))(1.0, 2.0, 3.0)
    few, used = pe.dce_jaxpr(closed.jaxpr, [True, False])
    assert used == [True, True, False] and [e.primitive.name for e in few.eqns] == ["sin", "add"]
    np.testing.assert_allclose(core.eval_jaxpr(few, closed.consts, 1.0, 2.0)[0], np.sin(1.0) + 2, rtol=1e-6)
    few, used = pe.dce_jaxpr(closed.jaxpr, [False, True], instantiate=[True, False, False])
    assert used == [True, False, True] and [e.primitive.name for e in few.eqns] == ["cos"]
    assert pe.dce_jaxpr(closed.jaxpr, [True, False], instantiate=True)[1] == [True] * 3
    few, consts, used = pe.dce_jaxpr_consts(closed.jaxpr, [False, True])
    assert (consts, used) == ([], [False, False, True])
    assert pe.Val is not None


def test_constants_that_are_left():
    pe, a, b = module(atled, "interpreters.partial_eval"), atled.numpy.arange(3.0), atled.numpy.arange(4.0)
    closed = atled.make_jaxpr(lambda x: (x + a, x * b.sum()))(1.0)
    few, consts, used = pe.dce_jaxpr_consts(closed, [False, True])
    assert sorted(consts) == [False, True] and used == [True] and len(few.consts) == 1
    out = module(atled, "core").eval_jaxpr(few, few.consts, 2.0)
    assert float(out[0]) == 12.0
    whole, used = pe.dce_jaxpr(closed, [True, False])
    np.testing.assert_array_equal(module(atled, "core").eval_jaxpr(whole, whole.consts, 2.0)[0], [2, 3, 4])


@LIBRARIES
def test_programs_of_wrapped_functions(library):
    pe, lu = module(library, "interpreters.partial_eval"), module(library, "extend.linear_util")
    core = module(library, "extend.core")
    seen = []
    f = lu.wrap_init(
        lambda x: (seen.append(x), [x * 2])[1], debug_info=core.DebugInfo("test", "f", ("x",), ("result",))
    )
    aval = module(library, "core").ShapedArray((3,), np.dtype("float32"))
    program, types, consts = pe.trace_to_jaxpr_dynamic(f, [aval])
    assert [e.primitive.name for e in program.eqns] == ["mul"] and types[0].shape == (3,) and not consts
    assert isinstance(seen[0], pe.DynamicJaxprTracer) and isinstance(pe.JaxprTracer, type)


# -- what is not used ------------------------------------------------------------------------------------------------


@LIBRARIES
def test_rules_for_what_is_not_used(library):
    core, pe, jnp = module(library, "extend.core"), module(library, "interpreters.partial_eval"), library.numpy
    both = core.Primitive("both")
    both.multiple_results = True
    both.def_abstract_eval(lambda x, y: [x, y])
    sine = library.make_jaxpr(jnp.sin)(1.0).eqns[0]
    seen = []

    def rule(used, eqn):
        seen.append(list(used))
        if not any(used):
            return [False, False], None
        if used[1]:
            return [True, True], eqn
        new = core.new_jaxpr_eqn(
            eqn.invars[:1], eqn.outvars[:1], sine.primitive, sine.params, eqn.effects, eqn.source_info
        )
        return [True, False], new

    pe.dce_rules[both] = rule
    closed = library.make_jaxpr(lambda x, y: both.bind(jnp.cos(x), jnp.exp(y)))(X, Y)

    def left(*used):
        program, is_left = pe.dce_jaxpr(closed.jaxpr, list(used))
        return [e.primitive.name for e in program.eqns], list(is_left), len(program.outvars)

    assert left(True, False) == (["cos", "sin"], [True, False], 1)
    assert left(False, True) == (["cos", "exp", "both"], [True, True], 1)
    assert left(False, False) == ([], [False, False], 0)
    assert seen == [[True, False], [False, True], [False, False]]


@LIBRARIES
def test_calls_of_which_a_part_is_not_used(library):
    core, pe, jnp = module(library, "extend.core"), module(library, "interpreters.partial_eval"), library.numpy
    inner = library.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(X, Y)
    assert callable(pe.dce_jaxpr_call_rule)
    call = core.Primitive("my_call")
    call.multiple_results = True
    call.def_abstract_eval(lambda *types, call_jaxpr: list(call_jaxpr.out_avals))
    pe.dce_rules[call] = pe.dce_jaxpr_closed_call_rule
    mine = library.make_jaxpr(lambda x, y: call.bind(x, y, call_jaxpr=inner))(X, Y)
    jitted = library.make_jaxpr(lambda x, y: library.jit(lambda x, y: (jnp.sin(x), jnp.cos(y)))(x, y))(X, Y)
    for outer, name in ((mine, "call_jaxpr"), (jitted, "jaxpr")):
        program, is_left = pe.dce_jaxpr(outer.jaxpr, [False, True])
        (e,) = program.eqns
        assert list(is_left) == [False, True] and len(e.invars) == len(e.outvars) == 1
        assert [i.primitive.name for i in e.params[name].eqns] == ["cos"]
        assert not pe.dce_jaxpr(outer.jaxpr, [False, False])[0].eqns
    rule = pe.dce_rules[call]
    assert rule([False, False], mine.eqns[0]) == ([False, False], None)


# -- modules ---------------------------------------------------------------------------------------------------------


def as_module(library, program, context=None, **given):
    mlir = module(library, "interpreters.mlir")
    options = {
        "num_const_args": 0, "in_avals": program.in_avals, "ordered_effects": [], "platforms": ["cpu"], "backend": None,
        "axis_context": context or mlir.ShardingContext(1), "donated_args": [False] * len(program.in_avals),
        "lowering_parameters": mlir.LoweringParameters(), **given,
    }  # fmt: skip
    result = mlir.lower_jaxpr_to_module("mine", program, **options)
    assert isinstance(result, mlir.LoweringResult) and len(result) == 4
    return result


def ops_of(result):
    return re.findall(r"stablehlo\.\w+", str(result.module))


@LIBRARIES
def test_programs_as_modules(library):
    mlir, jnp = module(library, "interpreters.mlir"), library.numpy
    assert mlir.AxisContext == mlir.SPMDAxisContext | mlir.ShardingContext
    program = library.make_jaxpr(lambda x, y: (jnp.sin(x), x + y))(X, Y)
    result = as_module(library, program)
    assert "module @mine" in str(result.module) and "func.func public @main" in str(result.module)
    assert ops_of(result) == ["stablehlo.sine", "stablehlo.add"] and result.host_callbacks == []
    assert "tf.aliasing_output = 0" in str(as_module(library, program, donated_args=[False, True]).module)
    called = library.make_jaxpr(lambda x: library.pure_callback(lambda x: x, x, x))(X)
    assert len(as_module(library, called).host_callbacks) == 1
    held = np.float32([4.0, 5.0, 6.0])
    closed = library.make_jaxpr(lambda x: x * library.numpy.asarray(held))(X)
    assert "stablehlo.multiply" in ops_of(as_module(library, closed))


@LIBRARIES
def test_other_rules_for_a_module(library):
    mlir, jnp = module(library, "interpreters.mlir"), library.numpy
    inner = library.jit(lambda x: jnp.sin(x) * 2)
    program = library.make_jaxpr(lambda x: inner(x) + jnp.sin(x))(X)
    sine = library.make_jaxpr(jnp.sin)(1.0).eqns[0].primitive
    rules = ((sine, lambda ctx, x, **params: [x]),)
    found = ops_of(
        as_module(library, program, lowering_parameters=mlir.LoweringParameters(override_lowering_rules=rules))
    )
    assert "stablehlo.sine" not in found and {"stablehlo.multiply", "stablehlo.add"} <= set(found)
    assert "stablehlo.sine" in ops_of(as_module(library, program))


@LIBRARIES
def test_modules_over_a_mesh(library):
    mlir, sharding = module(library, "interpreters.mlir"), module(library, "sharding")
    program = library.make_jaxpr(lambda x: library.lax.psum(x, "a"), axis_env=[("a", 4)])(X)
    context = mlir.SPMDAxisContext(sharding.AbstractMesh((4,), ("a",)), frozenset("a"))
    text = str(as_module(library, program, context, num_partitions=4).module)
    assert "stablehlo.all_reduce" in text and "dense<[[0, 1, 2, 3]]>" in text


@LIBRARIES
def test_programs_as_functions(library):
    mlir, func = module(library, "interpreters.mlir"), importlib.import_module("jaxlib.mlir.dialects.func")
    program = library.make_jaxpr(lambda x: library.numpy.sin(x) * 2)(X)

    def rule(ctx, x):
        make = lambda: mlir.lower_jaxpr_to_fun(
            ctx.module_context, "helper", program, [], num_const_args=0, in_avals=program.in_avals
        )
        first, second = make(), make()
        assert isinstance(first, func.FuncOp) and first.name.value == "helper" and second.name.value != "helper"
        return func.CallOp(second, list(func.CallOp(first, [x]).results)).results

    own = module(library, "extend.core").Primitive("own")
    own.def_abstract_eval(lambda x: x)
    mlir.register_lowering(own, rule)
    f = library.jit(own.bind)
    np.testing.assert_allclose(f(X), 2 * np.sin(2 * np.sin(X)), rtol=1e-6)
    assert "call @helper" in f.lower(X).as_text() and "func.func private @helper" in f.lower(X).as_text()


def test_modules_of_several_devices():
    mesh = atled.make_mesh((1,), ("i",), devices=atled.devices()[:1])
    program = atled.make_jaxpr(lambda x, y: x + y)(X, Y)
    placed = atled.NamedSharding(mesh, atled.P("i"))
    text = str(as_module(atled, program, arg_shardings=[placed, None]).module)
    assert '@mesh, [{"i"}]' in text and "@mesh, [{}]" in text
    with pytest.raises(NotImplementedError, match="lower_jaxpr_to_module: one platform is needed; got cpu, tpu"):
        as_module(atled, program, platforms=["cpu", "tpu"])
