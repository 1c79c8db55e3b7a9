"""jit: signatures, static arguments, trees, donation, ahead of time, messages, threads, big programs."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, random


def close(a, b, tol=1e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


class Counted:
    def __init__(self, f):
        self.f, self.n = f, 0
        self.__name__ = "counted"

    def __call__(self, *a, **k):
        self.n += 1
        return self.f(*a, **k)


def test_one_trace_for_each_signature():
    f = Counted(lambda x, y: x * 2 + y)
    g = atled.jit(f)
    x = jnp.ones(3)
    for k in range(5):
        g(x * k, 1.0 + k)
    assert f.n == 1
    for args, count in [
        ((jnp.ones(4), 1.0), 2),
        ((jnp.ones(3, "int32"), 1.0), 3),
        ((x, 1), 4),
        ((np.ones(3, "f4"), 2.0), 4),
    ]:
        g(*args)
        assert f.n == count
    g(x, y=1.0)
    assert f.n == 5 and len(g.compiles) == 5
    assert g.compiles[0].types == (x.type, jnp.asarray(1.0).type)
    g.clear_cache()
    g(x, 1.0)
    assert f.n == 6


def test_launches_alternate_between_shapes_of_calls():
    f = atled.jit(lambda a, b=None, *, c=0.0: a + (0.0 if b is None else b) + c)
    x = jnp.arange(3.0)
    for _ in range(3):
        close(f(x), [0, 1, 2])
        close(f(x, x), [0, 2, 4])
        close(f(x, c=1.0), [1, 2, 3])
        close(f(x, x, c=x), [0, 3, 6])
        close(f(x, 1.0), [1, 2, 3])
        close(f(np.arange(3.0, dtype="f4"), np.float32(2)), [2, 3, 4])


def test_keywords_in_any_order():
    f = atled.jit(lambda **k: k["a"] - k["b"])
    x, y = jnp.ones(2), jnp.zeros(2)
    for _ in range(2):
        close(f(a=x, b=y), [1, 1])
        close(f(b=y, a=x), [1, 1])
        close(f(b=x, a=y), [-1, -1])


def test_trees_in_and_out():
    f = atled.jit(lambda t, *, k: {"sum": t["a"] + t["b"][0], "same": t, "none": None, "k": (k, [k])})
    t = {"a": jnp.ones(2), "b": (jnp.ones(2), None)}
    for _ in range(2):
        out = f(t, k=3)
        close(out["sum"], [2, 2])
        assert out["none"] is None and out["same"]["b"][1] is None and int(out["k"][1][0]) == 3
    assert atled.jit(lambda: ())() == () and atled.jit(lambda: None)() is None


def test_static_arguments_by_value():
    f = Counted(lambda n, x, mode="a": sum([x] * n) * (10 if mode == "b" else 1))
    g = atled.jit(f, static_argnums=0, static_argnames="mode")
    for _ in range(2):
        assert float(g(2, 1.0)) == 2.0 and float(g(3, 1.0, mode="b")) == 30.0 and float(g(2, 5.0)) == 10.0
    assert f.n == 2
    h = atled.jit(lambda x, n: x * n, static_argnames="n")
    assert float(h(1.0, 2)) == 2.0 and float(h(1.0, n=3)) == 3.0 and float(h(1.0, 2.5)) == 2.5
    kinds = Counted(lambda x, s: x if isinstance(s, bool) else x + 1)
    k = atled.jit(kinds, static_argnums=1)
    assert [float(k(0.0, s)) for s in (1, True, 1, True)] == [
        1,
        0,
        1,
        0,
    ] and kinds.n == 2  # 1 == True, but not the same
    with pytest.raises(ValueError, match=r"hashable.*argument n of.*list"):
        atled.jit(lambda n, x: x, static_argnums=0)([1], 1.0)
    assert float(atled.jit(lambda x, n: x * n, static_argnums=-1)(2.0, 3)) == 6.0


def test_identity_and_constants():
    x = jnp.ones(2)
    close(atled.jit(lambda x: x)(x), x)
    a, b = atled.jit(lambda x: (x, x))(x)
    close(a, b)
    assert float(atled.jit(lambda: 3.0)()) == 3.0
    w = jnp.arange(3.0)
    close(atled.jit(lambda: w)(), w)


def test_captured_values_are_baked_in():
    log, box = [], {"k": 2.0}

    @atled.jit
    def f(x):
        log.append(1)
        return x * box["k"]

    assert float(f(1.0)) == 2.0
    box["k"] = 5.0
    assert float(f(1.0)) == 2.0 and len(log) == 1
    with atled.disable_jit():
        assert float(f(1.0)) == 5.0 and len(log) == 2


def test_arguments_that_are_no_arrays():
    with pytest.raises(TypeError, match=r"(?s)argument x of .*got str 'a'.*static_argnames='x'"):
        atled.jit(lambda x: x)("a")
    with pytest.raises(TypeError, match=r"argument t\['k'\]"):
        atled.jit(lambda t: t)({"k": object()})
    with pytest.raises(TypeError, match="results must be arrays"):
        atled.jit(lambda x: "abc")(1.0)
    with pytest.raises(TypeError, match="expected a function"):
        atled.jit(3)


def test_donation_that_is_of_no_use_is_said():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        atled.jit(lambda x: x[:2], donate_argnums=0)(jnp.ones(1024))
    assert any(
        str(w.message).startswith("Some donated buffers were not usable") and "f32[1024]" in str(w.message)
        for w in seen
    )


def test_donation_of_trees_and_names():
    f = atled.jit(lambda p, x: ({k: v + x for k, v in p.items()}, x), donate_argnames="p")
    p = {"a": jnp.ones(512), "b": jnp.zeros(512)}
    out, _ = f(p, jnp.float32(1.0))
    assert p["a"].is_deleted() and p["b"].is_deleted() and float(out["a"][0]) == 2.0
    out, _ = f(out, jnp.float32(1.0))
    assert float(out["a"][0]) == 3.0


def test_ahead_of_time():
    f = atled.jit(lambda x, k: {"y": x @ x.T * k})
    traced = f.trace(atled.ShapeDtypeStruct((3, 4), jnp.float32), 2.0)
    assert [e.op.name for e in traced.program.equations][-1] == "mul"
    lowered = traced.lower()
    assert "stablehlo.dot_general" in lowered.as_text() and "3x4xf32" in lowered.as_text()
    compiled = lowered.compile()
    close(compiled(jnp.ones((3, 4)), 2.0)["y"], np.full((3, 3), 8.0))
    with pytest.raises(TypeError, match=r"argument x was compiled for f32\[3,4\]; got f32\[4,4\]"):
        compiled(jnp.ones((4, 4)), 2.0)
    with pytest.raises(TypeError, match="cannot be transformed"):
        atled.grad(lambda k: compiled(jnp.ones((3, 4)), k)["y"].sum())(2.0)
    assert compiled.cost_analysis()["flops"] > 0 and compiled.memory_analysis().argument_size_in_bytes > 0
    assert lowered.out_info["y"].shape == (3, 3) and f.eval_shape(jnp.ones((3, 4)), 1.0)["y"].shape == (3, 3)


def test_eval_shape_computes_nothing():
    big = atled.ShapeDtypeStruct((10**6, 10**6), jnp.float32)
    out = atled.eval_shape(lambda a: {"p": a @ a, "s": a.sum(0).astype("int8")}, big)
    assert out["p"].shape == (10**6, 10**6) and out["s"].dtype == np.int8


def test_tracers_refuse_to_be_python_values():
    e = atled.errors
    for f, kind in [
        (lambda x: 1 if x > 0 else 2, e.TracerBoolConversionError),
        (lambda x: float(x), e.ConcretizationTypeError),
        (lambda x: int(x), e.ConcretizationTypeError),
        (lambda x: x.item(), e.ConcretizationTypeError),
        (lambda x: np.asarray(x), e.TracerArrayConversionError),
        (lambda x: [1, 2, 3][x.astype(int)], e.TracerIntegerConversionError),
        (lambda x: range(x.astype(int)), e.TracerIntegerConversionError),
        (lambda x: jnp.zeros(x.astype(int)), e.ConcretizationTypeError),
        (lambda x: jnp.arange(x), e.ConcretizationTypeError),
        (lambda x: jnp.arange(3.0)[jnp.arange(3.0) > x], e.NonConcreteBooleanIndexError),
    ]:
        with pytest.raises(kind) as error:
            atled.jit(f)(1.0)
        assert "argument x" in str(error.value) and "test_jit.py" in str(error.value)


def test_leaked_tracers():
    kept = []
    atled.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(atled.errors.UnexpectedTracerError, match="escaped by a side effect"):
        atled.jit(lambda y: y + kept[0])(1.0)
    with pytest.raises(atled.errors.UnexpectedTracerError):
        kept[0] + 1
    atled.vmap(lambda x: kept.append(x) or x)(jnp.ones(2))
    with pytest.raises(atled.errors.UnexpectedTracerError):
        kept[-1] * 2


def test_exceptions_pass_through():
    class Mine(Exception):
        pass

    def f(x):
        raise Mine("as it was")

    for g in (atled.jit(f), atled.grad(f), atled.vmap(f)):
        with pytest.raises(Mine, match="as it was"):
            g(jnp.ones(2))
    assert float(atled.jit(lambda x: x + 1)(1.0)) == 2.0


def test_library_frames_are_hidden():
    def model(x):
        return jnp.ones((3, 4)) + jnp.zeros(5) + x  # OFFENDING

    for run in (
        lambda: model(1.0),
        lambda: atled.jit(model)(1.0),
        lambda: atled.jit(atled.vmap(atled.grad(model)))(jnp.ones(2)),
    ):
        with pytest.raises(ValueError, match=r"\(3, 4\).*\(5,\)") as error:
            run()
        frames = list(error.traceback)
        mine = [t for t in frames if str(t.path) == __file__]
        assert "OFFENDING" in str(mine[-1].statement)
        assert len(frames) - len(mine) <= 4


def test_threads():
    f = atled.jit(lambda x, k: jnp.sin(x) @ x.T * k)
    xs = [jnp.ones((4, 5 + i % 4)) * i for i in range(16)]
    want = [np.sin(np.asarray(x)) @ np.asarray(x).T * i for i, x in enumerate(xs)]
    bad = []

    def work():
        try:
            for i, x in enumerate(xs):
                assert atled.grad(lambda x: f(x, float(i)).sum())(x).shape == x.shape  # noqa: B023
                np.testing.assert_allclose(np.asarray(f(x, float(i))), want[i], rtol=1e-4, atol=1e-4)
        except Exception as e:
            bad.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not bad


def test_big_programs():
    def chain(x):
        for _ in range(1500):
            x = x * 1.0001 + 0.1
        return x

    want = 1.0
    for _ in range(1500):
        want = want * 1.0001 + 0.1
    assert abs(float(atled.jit(chain)(1.0)) - want) < 0.1
    assert float(atled.jit(lambda *a: sum(a))(*[1.0] * 600)) == 600.0
    f = lambda x: x + 1.0
    for _ in range(60):
        f = atled.jit(lambda x, f=f: f(x))
    assert float(f(1.0)) == 2.0


def test_config_changes_are_seen():
    f = atled.jit(lambda x: x + jnp.zeros(2))
    assert f(1.0).dtype == np.float32
    with atled.enable_x64():
        assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32
    atled.settings.update("x64", True)
    try:
        assert f(1.0).dtype == np.float64 and (jnp.ones(2) + 1).dtype == np.float64
    finally:
        atled.settings.update("x64", False)
    assert f(1.0).dtype == np.float32 and (jnp.ones(2) + 1).dtype == np.float32
    with pytest.raises(AttributeError, match="no setting"):
        atled.settings.update("nonsense", 1)


def test_clear_caches():
    f = Counted(lambda x: x + 1)
    g = atled.jit(f)
    g(1.0)
    atled.clear_caches()
    g(1.0)
    assert f.n == 2


def test_clear_caches_drops_executables(monkeypatch):
    from atled.engine import compilation

    f, x = lambda x: x * 3 - x, jnp.arange(3.0)
    made = []
    compile_module = compilation.compile_module
    monkeypatch.setattr(compilation, "compile_module", lambda *a: (made.append(1), compile_module(*a))[1])
    with atled.core.settings.override(cache=False):
        for _ in range(2):
            made.clear()
            atled.clear_caches()
            atled.jit(f)(x)
            assert made
            -x  # without jit
            made.clear()
            atled.clear_caches()
            -x
            assert made


def test_decorator_forms():
    @atled.jit
    def f(x):
        """Doc."""
        return x + 1

    @atled.jit(static_argnames="n")
    def g(x, n):
        return x * n

    assert f.__name__ == "f" and f.__doc__ == "Doc." and float(f(1.0)) == 2.0 and float(g(2.0, n=3)) == 6.0


def test_arguments_by_position_and_by_name():
    def f(x, y=2.0, /, z=3.0, *, w=4.0):
        return x + 10 * y + 100 * z + 1000 * w

    g = atled.jit(f)
    one = jnp.float32(1.0)
    calls = [
        ((one,), {}), ((one, 5.0), {}), ((one, 5.0, 6.0), {}), ((one,), {"z": 7.0}), ((one,), {"w": 8.0}),
        ((one, one), {"z": one, "w": one}),
    ]  # fmt: skip
    for _ in range(3):
        for args, kwargs in calls:
            assert float(g(*args, **kwargs)) == float(f(*args, **kwargs))
    before = len(g.compiles)
    g(one, 5.0, z=6.0)  # the same call as one of the above
    assert len(g.compiles) == before
    with pytest.raises(TypeError, match="positional"):
        g()
    with pytest.raises(TypeError, match="unexpected keyword"):
        g(one, v=1.0)
    with pytest.raises(TypeError, match="positional"):
        g(one, 1.0, 2.0, 3.0)


def test_parameters_may_have_any_name():
    def f(type, execute, a0, s0_1, results, miss=1.0, KeyError=2.0):
        return type + 2 * execute + 3 * a0 + 4 * s0_1 + 5 * results + miss * KeyError

    g, ones = atled.jit(f), jnp.ones(5)
    for _ in range(3):
        assert float(g(*ones)) == 17.0 and float(g(*ones, KeyError=3.0)) == 18.0
    h = atled.jit(lambda x, _UNSET=1, *, fast=2.0: x * fast)
    assert [float(h(2.0)) for _ in range(3)] == [4.0] * 3 and float(h(2.0, fast=3.0)) == 6.0


def test_a_function_may_close_over_what_is_transformed():
    f = lambda v: atled.jit(lambda a: a * v * v)(2.0)
    assert float(atled.grad(f)(3.0)) == 12.0
    assert [float(x) for x in atled.vmap(f)(jnp.arange(3.0))] == [0.0, 2.0, 8.0]
    assert float(atled.grad(atled.grad(f))(3.0)) == 4.0


NO_FUSION = {"xla_disable_hlo_passes": "fusion,cpu-instruction-fusion,fusion-wrapper"}


def test_compiler_options_reach_the_compiler():
    """Programs that differ only in them are compiled apart, in either order, and equal ones once."""

    def f(x):
        return jnp.sum(jnp.sin(x) * jnp.exp(x) + 3.25)

    def kernels(compiled):
        return compiled.as_text().count(" fusion(")

    x = jnp.linspace(0.0, 1.0, 1000)
    plain, apart = atled.jit(f), atled.jit(f, compiler_options=NO_FUSION)
    close(plain(x), apart(x), 1e-5)
    close(apart(x), plain(x), 1e-5)
    few, many = kernels(plain.lower(x).compile()), kernels(apart.lower(x).compile())  # or none at all
    assert few != many
    assert kernels(plain.lower(x).compile(NO_FUSION)) == many and kernels(plain.lower(x).compile()) == few
    merged = apart.lower(x).compile({"xla_cpu_enable_fast_math": False})
    assert kernels(merged) == many
    again = atled.jit(f, compiler_options=dict(NO_FUSION))
    again(x)
    assert again.compiles == apart.compiles
    level = "xla_backend_optimization_level"
    atled.jit(f, compiler_options={level: 1})(x)
    with pytest.raises(ValueError, match=level):  # equal to 1, but not a number
        atled.jit(f, compiler_options={level: True})(x)


def test_compiler_options_under_transformations(monkeypatch):
    """Derivatives and batched forms are compiled with the options, and a trace keeps them."""
    from atled.engine import compile_options

    chosen = []
    before = compile_options.option_values

    def noted(program, where):
        chosen.append(bool(compile_options.tuning(program)))
        return before(program, where)

    monkeypatch.setattr(compile_options, "option_values", noted)
    g = atled.jit(lambda x: jnp.sin(x) * 1.0625, compiler_options=NO_FUSION)
    x = jnp.linspace(0.0, 1.0, 7)
    for f in (atled.grad(lambda v: jnp.sum(g(v))), atled.vmap(g), lambda v: atled.jvp(g, (v,), (v,))[1]):
        chosen.clear()
        assert f(x).shape == x.shape
        assert any(chosen), "compiled without the options"
    close(atled.grad(lambda v: jnp.sum(g(v)))(x), jnp.cos(x) * 1.0625, 1e-6)
    close(atled.vmap(g)(x), jnp.sin(x) * 1.0625, 1e-6)
    assert atled.eval_shape(g, x).shape == (7,)
    assert "sin" in str(atled.jax.make_jaxpr(g)(x))
    for inline in (False, True):
        inner = atled.jit(jnp.sin, compiler_options=NO_FUSION, inline=inline)
        with pytest.raises(ValueError, match="part of another compiled function"):
            atled.jit(lambda x, inner=inner: inner(x) + 1)(1.0)


def test_few_integers_are_not_optimized(monkeypatch):
    """Keys that are split, and the like; loops are, and so is everything with floats, whose bits would change."""
    from atled.engine import compile_options, program_cache

    chosen = []
    before = compile_options.option_values
    noted = lambda *args: chosen.append(before(*args)) or before(*args)
    for module in (compile_options, program_cache):  # to compile, and to look on the disk
        monkeypatch.setattr(module, "option_values", noted)

    def is_optimized(f, *args):
        chosen.clear()
        atled.clear_caches()
        out = atled.jit(f)(*args)
        assert chosen
        return out, chosen[-1].get("xla_backend_optimization_level") != 0

    few, many = np.arange(7), np.arange(1000)
    triple = lambda x: lax.cond(x[0] > 0, lambda x: x - 1, lambda x: x * 3 % 5, x)
    loop = lambda n: lax.while_loop(lambda v: v < 1000, lambda v: v * 2 + 1, n)
    cases = [
        (lambda x: x * 3 % 5, few, False), (triple, few, False), (atled.vmap(lambda x: x * 7 % 3), few, False),
        (lambda x: x * 3 % 5, many, True), (lambda x: x * 0.5, few, True), (loop, 3, True),
        (lambda x: (x * 0.3).astype(int), few, True), (lambda x: lax.cond(x[0] > 1, loop, lambda v: v, 7), few, True),
    ]  # fmt: skip
    for f, x, expected in cases:
        out, found = is_optimized(f, x)
        assert found is expected
        with atled.disable_jit():
            close(out, f(jnp.asarray(x)), 1e-6)
    keys, found = is_optimized(lambda key: random.split(key, 3), random.key(5))
    assert not found
    assert random.key_data(keys).tolist() == random.key_data(random.split(random.key(5), 3)).tolist()


def test_compiler_options_that_are_refused():
    with pytest.raises(TypeError, match=r"must map names .* got 'a': \[1\]"):
        atled.jit(jnp.sin, compiler_options={"a": [1]})
    with pytest.raises(ValueError, match="not a valid bool value"):
        atled.jit(jnp.sin, compiler_options={"xla_cpu_enable_fast_math": "maybe"})(1.0)
