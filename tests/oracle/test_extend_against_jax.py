"""`core` and `extend`: programs, wrapped functions, backends, names of scopes, seeds: as JAX has them."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys

import numpy as np
import pytest

import atled.jax as atled

jax = pytest.importorskip("jax")

LIBRARIES = pytest.mark.parametrize("library", [atled, jax], ids=["atled", "jax"])


def module(library, name):
    return importlib.import_module(f"{library.__name__}.{name}")


@LIBRARIES
def test_core(library):
    core = module(library, "core")
    assert (core.max_dim(2, 5), core.min_dim(2, 5)) == (5, 2)
    types = [core.AbstractValue, core.Trace, core.Tracer, core.ShapedArray]
    assert all([isinstance(t, type) for t in types]) and core.Atom and core.Value and core.ParamDict
    assert isinstance(library.numpy.ones(2).aval, core.AbstractValue)

    def f(x):
        with core.eval_context():
            three = float(library.numpy.sum(library.numpy.ones(3)))
        return x * three

    assert float(library.jit(f)(2.0)) == 6.0
    closed = library.make_jaxpr(lambda x: x * 2 + 1)(1.0)
    assert float(core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0, propagate_source_info=False)[0]) == 7.0


@LIBRARIES
def test_programs(library):
    core = module(library, "extend.core")
    closed = library.make_jaxpr(lambda x, y: (library.numpy.sin(x) * y, x))(1.0, 2.0)
    assert isinstance(closed, core.ClosedJaxpr) and isinstance(closed.jaxpr, core.Jaxpr)
    assert all([isinstance(e, core.JaxprEqn) for e in closed.eqns])
    core.check_jaxpr(closed.jaxpr)
    assert [float(v) for v in core.jaxpr_as_fun(closed)(0.0, 3.0)] == [0.0, 0.0]
    assert not core.no_effects and isinstance(core.Effect, type) and core.Effects and isinstance(core.TraceTag, type)
    assert issubclass(core.DropVar, core.Var) and issubclass(core.JaxprTypeError, Exception)
    e = closed.eqns[0]
    again = core.new_jaxpr_eqn(e.invars, e.outvars, e.primitive, e.params, set(), None)
    assert again.primitive is e.primitive
    aval = module(library, "core").ShapedArray((3, 2), np.dtype("float32"))
    assert core.mapped_aval(3, 0, aval).shape == (2,)
    assert core.unmapped_aval(4, 1, aval, explicit_mesh_axis=None).shape == (3, 4, 2)
    assert core.gensym()(aval).aval == aval
    assert core.valid_jaxtype(1.0) and not core.valid_jaxtype("a")
    assert core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == library.float0
    assert np.ndarray in core.array_types and np.float32 in core.array_types


def test_a_program_that_is_none():
    core = module(atled, "extend.core")
    closed = atled.make_jaxpr(lambda x: x * 2 + 1)(1.0)
    broken = core.Jaxpr(closed.inputs, closed.equations[1:], closed.outputs)
    with pytest.raises(core.JaxprTypeError):
        core.check_jaxpr(broken)


@LIBRARIES
def test_values_and_transformations(library):
    core = module(library, "extend.core")
    assert core.concrete_or_error(int, 3.0) == 3
    with pytest.raises(library.errors.ConcretizationTypeError):
        library.jit(lambda x: core.concrete_or_error(int, x, "a length"))(1.0)
    before = core.get_opaque_trace_state(convention="nnx")
    assert before == core.get_opaque_trace_state(convention="nnx")
    seen = []

    def f(x):
        seen.append(core.get_opaque_trace_state(convention="nnx"))
        seen.append(core.unsafe_am_i_under_a_jit_DO_NOT_USE())
        return x

    library.jit(f)(1.0)
    assert seen[0] != before and seen[1] and not core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    names = []
    library.vmap(lambda x: (names.extend(core.unsafe_get_axis_names_DO_NOT_USE()), x)[1], axis_name="i")(np.ones(2))
    assert names == ["i"] and not core.nonempty_axis_env_DO_NOT_USE()
    with core.take_current_trace() as trace, core.set_current_trace(trace):
        assert float(library.numpy.sin(0.0)) == 0.0
    assert isinstance(core.find_top_trace([1.0]), module(library, "core").Trace) or library is atled


@LIBRARIES
def test_calls(library):
    core, lu = module(library, "extend.core"), module(library, "extend.linear_util")
    information = core.DebugInfo("test", "f at here", ("x",), None)
    wrapped = lu.wrap_init(lambda x: [x * 2], debug_info=information)
    assert core.call_impl(wrapped, 3.0) == [6.0]
    call = core.CallPrimitive("my_call")
    assert call.multiple_results and isinstance(call, core.Primitive) and information.func_name == "f"


def test_calls_are_transformed():
    core, lu = module(atled, "extend.core"), module(atled, "extend.linear_util")
    call = core.CallPrimitive("my_call")
    f = lambda x: call.bind(lu.wrap_init(lambda y: [y * y]), x)[0]
    assert float(atled.grad(f)(3.0)) == 6.0 and float(atled.jit(f)(3.0)) == 9.0


@LIBRARIES
def test_wrapped_functions(library):
    lu, core = module(library, "extend.linear_util"), module(library, "extend.core")
    make = functools.partial(lu.wrap_init, debug_info=core.DebugInfo("test", "f", ("x",), None))
    f = make(lambda x: x + 1)
    assert isinstance(f, lu.WrappedFun)

    @lu.transformation
    def doubled(*args):
        yield 2 * (yield args, {})

    @lu.transformation2
    def negated(inner, *args):
        return -inner(*args)

    @lu.transformation_with_aux2
    def noted(inner, store, *args):
        store.store(len(args))
        return inner(*args)

    assert doubled(f).call_wrapped(2) == 6 and negated(f).call_wrapped(2) == -3
    g, count = noted(f)
    h, other = noted(make(lambda x: x))
    with pytest.raises(lu.StoreException):
        count()
    assert g.call_wrapped(5) == 6 and lu.merge_linear_aux(count, other) == (True, 1)
    assert h.call_wrapped(5) == 5
    counted = lambda inner, store, *args: (store.store(1), inner(*args))[1]
    many, last = lu.transformation_with_aux2(counted, use_eq_store=True)(f)
    assert [many.call_wrapped(1), many.call_wrapped(2), last()] == [2, 3, 1]


def test_caches_of_wrapped_functions():
    lu, calls = module(atled, "extend.linear_util"), []
    kept = lu.cache(lambda fun, x: (calls.append(x), fun.call_wrapped(x))[1], explain=None)
    f = lu.wrap_init(lambda x: x + 1)
    assert [kept(f, 1), kept(f, 1), kept(f, 2)] == [2, 2, 3] and calls == [1, 2]
    assert callable(module(jax, "extend.linear_util").cache)


@LIBRARIES
def test_backends(library):
    backend = module(library, "extend.backend")
    assert backend.get_backend("cpu").platform == "cpu" and "cpu" in backend.backends()
    assert backend.backend_xla_version("cpu") == getattr(backend.get_backend("cpu"), "xla_version", None)
    assert backend.get_default_device() == library.devices()[0]
    f = library.jit(lambda x: x + 1)
    assert float(f(1.0)) == 2.0
    backend.clear_in_memory_compilation_cache()
    assert float(f(1.0)) == 2.0
    assert isinstance(backend.get_backend(), module(library, "interpreters.xla").Backend)


@pytest.mark.parametrize("library", ["atled.jax", "jax"])
def test_caches_of_backends(library):
    code = f"""
import functools, {library} as library
from {library}.extend import backend
@functools.cache
def where():
    return backend.get_backend().platform
backend.register_backend_cache(where, "where")
where()
before = where.cache_info().currsize
backend.clear_backends()
print(before, where.cache_info().currsize, float(library.numpy.ones(3).sum()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "1 0 3.0", done.stderr


@LIBRARIES
def test_under_a_vmap(library):
    ask = module(library, "extend.core").unsafe_am_i_under_a_vmap_DO_NOT_USE
    seen, x = [], np.ones(3, "f4")

    def f(x):
        seen.append(ask())
        return x

    jit, vmap, grad = library.jit, library.vmap, library.grad
    loop = lambda x: library.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    for g in (f, jit(lambda x: f(x)), lambda x: grad(lambda x: f(x).sum())(x)):
        g(x)
    assert not any(seen)
    seen.clear()
    for g in (f, jit(lambda x: f(x)), grad(f), loop, lambda x: f(1.0)):
        vmap(g)(x)
    jit(vmap(f))(x)
    grad(lambda x: vmap(f)(x).sum())(x)
    assert len(seen) >= 7 and all(seen) and not ask()


@LIBRARIES
def test_effects(library):
    core, debug = module(library, "extend.core"), module(library, "debug")
    io_callback = module(library, "experimental").io_callback
    effects = lambda f: library.make_jaxpr(f)(np.ones(3, "f4")).effects
    printed = lambda x, **options: debug.print("{}", x, **options)
    (plain,), (ordered,) = effects(printed), effects(lambda x: printed(x, ordered=True))
    assert isinstance(plain, debug.DebugEffect) and isinstance(ordered, debug.OrderedDebugEffect)
    assert not isinstance(plain, debug.OrderedDebugEffect) and not isinstance(ordered, debug.DebugEffect)
    assert [str(e) for e in (plain, ordered)] == ["Debug", "OrderedDebug"]
    for f in (
        library.jit(printed), lambda x: debug.callback(lambda x: None, x), lambda x: library.vmap(printed)(x),
        lambda x: library.lax.scan(lambda c, a: (printed(a), (c, a))[1], x, x),
        lambda x: library.lax.cond(x[0] > 0, printed, lambda x: None, x),
    ):  # fmt: skip
        assert effects(f) == {plain}
    assert effects(lambda x: (printed(x), printed(x, ordered=True))) == {plain, ordered}
    assert [str(e) for e in effects(lambda x: io_callback(lambda x: None, None, x))] == ["IO"]
    assert effects(library.numpy.sin) == core.no_effects and core.Effects is not None
    assert isinstance(plain, core.Effect)

    class Writes(core.Effect):
        pass

    writes, own = Writes(), core.Primitive("own")
    own.def_effectful_abstract_eval(lambda x: (x, {writes}))
    assert effects(lambda x: own.bind(x)) == {writes}
    assert [e.effects for e in library.make_jaxpr(own.bind)(1.0).eqns] == [{writes}]


@LIBRARIES
def test_names_of_transformations(library):
    info = module(library, "extend.source_info_util")
    stack = info.new_name_stack("a").transform("vmap")
    assert (str(stack), str(stack.extend("b")), len(stack.extend("b"))) == ("a/vmap()", "a/vmap(b)", 3)
    with info.transform_name_stack("one"), library.named_scope("a"):
        assert str(info.current_name_stack()) == "one(a)"
        with info.transform_name_stack("two"):
            assert str(info.current_name_stack()) == "one(a)/two()"
            with info.extend_name_stack("b"):
                assert str(info.current_name_stack()) == "one(a)/two(b)"
        assert str(info.current_name_stack()) == "one(a)"

    def f(x):
        with info.transform_name_stack("mine"), library.named_scope("inner"):
            return library.numpy.sin(x)

    assert "/mine(inner)/sin" in library.jit(f).lower(1.0).as_text(debug_info=True)
    assert str(library.make_jaxpr(f)(1.0).eqns[0].source_info.name_stack) == "mine(inner)"


@LIBRARIES
def test_names_of_scopes(library):
    info = module(library, "extend.source_info_util")
    assert str(info.new_name_stack("a").extend("b")) == "a/b" and len(info.NameStack()) == 0
    assert str(info.new_name_stack("a") + info.new_name_stack("b")) == "a/b"
    assert str(info.new_name_stack("a").extend("b")[:1]) == "a"
    with info.extend_name_stack("model") as names, info.extend_name_stack("layer"):
        assert str(names) == "model" and str(info.current_name_stack()) == "model/layer"
        with info.reset_name_stack():
            assert str(info.current_name_stack()) == ""
            with info.set_name_stack(info.new_name_stack("other")):
                assert str(info.current_name_stack()) == "other"

    @library.jit
    def f(x):
        with info.set_name_stack(info.new_name_stack("outer").extend("inner")):
            return library.numpy.sin(x)

    assert "outer/inner" in f.lower(1.0).as_text(debug_info=True)
    assert isinstance(info.current(), info.SourceInfo) and isinstance(info.summarize(info.current()), str)
    info.register_exclusion("/nowhere/of_tests")


def test_seeds():
    ours, theirs = (module(m, "extend.random") for m in (atled, jax))
    data = lambda m, f: np.asarray(m.random.key_data(f(module(m, "extend.random"))))
    for seed in (0, 3, 2**31 - 1):
        same = [data(m, lambda r, s=seed: r.seed_with_impl(r.threefry_prng_impl, s)) for m in (atled, jax)]
        np.testing.assert_array_equal(*same)
    many = [data(m, lambda r: r.random_seed(np.arange(4, dtype="i4"), r.threefry_prng_impl)) for m in (atled, jax)]
    np.testing.assert_array_equal(*many)
    assert ours.threefry_prng_impl.key_shape == theirs.threefry_prng_impl.key_shape
    pair = (np.uint32(7), np.uint32(9))
    for counts in (np.arange(6, dtype="u4"), np.arange(5, dtype="u4"), np.arange(6, dtype="u4").reshape(2, 3)):
        np.testing.assert_array_equal(ours.threefry_2x32(pair, counts), theirs.threefry_2x32(pair, counts))
    with pytest.raises(TypeError, match="threefry_2x32: the key and the counts must be uint32"):
        ours.threefry_2x32(pair, np.arange(3))


@LIBRARIES
def test_shardings_of_xla(library):
    sharding = module(library, "extend.sharding")
    found = sharding.get_hlo_sharding_from_serialized_proto(b"")
    assert found.is_replicated() and sharding.get_serialized_proto_from_hlo_sharding(found) == b""


@LIBRARIES
def test_modules_as_bytes(library):
    mlir = module(library, "extend.mlir")
    lowered = library.jit(lambda x: x + 1).lower(np.ones(2, "f4"))
    found = lowered.compiler_ir("stablehlo")
    data = mlir.serialize_portable_artifact(lowered.as_text(), "1.0.0")
    assert data[:4] == b"ML\xefR"
    with found.context:
        assert "stablehlo.add" in str(mlir.deserialize_portable_artifact(data))
    assert callable(mlir.refine_polymorphic_shapes) and callable(mlir.hlo_to_stablehlo)


@LIBRARIES
def test_contexts_of_rules(library):
    context = module(library, "extend.lowering").LoweringRuleContext
    assert context is module(library, "interpreters.mlir").LoweringRuleContext
