"""`experimental.roofline` finds the costs that JAX finds, and counts loops, branches and more ops besides."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import atled
from atled import lax
from atled import numpy as jnp
from atled.jax.experimental import roofline as our
from atled.jax.extend.core import Primitive
from atled.sharding import AbstractMesh, P

jax = pytest.importorskip("jax")
their = pytest.importorskip("jax.experimental.roofline")


def rows(shape, dtype="float32"):
    return np.ones(shape, dtype)


def same(f, *args, mesh=None, specs=None, skip=(), **options):
    """Both libraries find the same cost and shapes for a function of a library's `numpy` and `lax`."""
    found = []
    for module, lib in ((our, atled), (their, jax)):
        given = dict(options)
        if mesh is not None:
            spec = lambda s: s if s is None else lib.sharding.PartitionSpec(*s)  # noqa: B023
            given["mesh"] = lib.sharding.AbstractMesh(*mesh)
            given["in_specs"], given["out_specs"] = [
                tuple(map(spec, s)) if isinstance(s, list) else spec(s) for s in specs
            ]
        shapes, cost = module.roofline(lambda *a: f(lib.lax, lib.numpy, *a), **given)(*args)  # noqa: B023
        shapes = [(x.shape, str(x.dtype)) for x in lib.tree.leaves(shapes)]
        numbers = {k: v for k, v in dataclasses.asdict(cost).items() if k not in skip}
        found.append((shapes, numbers))
    assert found[0] == found[1]
    return found[0][1]


X = rows((4, 8))


@pytest.mark.parametrize("name", [
    "sin", "cos", "exp", "log", "abs", "neg", "sign", "floor", "ceil", "sqrt", "rsqrt", "logistic", "erf", "sinh",
    "asin", "log1p", "expm1", "cbrt", "tan", "square", "lgamma", "digamma", "is_finite", "erf_inv", "round",
])  # fmt: skip
def test_functions_of_elements(name):
    cost = same(lambda lax, np, x: getattr(lax, name)(x), X)
    assert cost["unfused_flops"] == X.size and cost["flops"] == 0


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "rem", "max", "min", "eq", "lt"])
def test_functions_of_two(name):
    same(lambda lax, np, x, y: getattr(lax, name)(x, y), X, X)


def test_more_of_elements():
    same(lambda lax, np, x: lax.integer_pow(x, 3), X)
    same(lambda lax, np, x: x + 1.0, X)
    same(lambda lax, np, x: lax.bitwise_not(x), rows((2, 3), "int32"))
    same(lambda lax, np, m, x, y: lax.select(m, x, y), X > 0, X, X)
    same(lambda lax, np, x, y: lax.add(lax.sin(lax.cos(x)), y), X, X)
    same(lambda lax, np, x: {"a": x["b"] + x["b"]}, {"b": X})


def test_moves_cost_nothing():
    for f in (
        lambda lax, np, x: np.reshape(x, (-1,)),
        lambda lax, np, x: lax.transpose(x, (1, 0)),
        lambda lax, np, x: lax.broadcast(x, (3,)),
        lambda lax, np, x: lax.convert_element_type(x, "bfloat16"),
        lambda lax, np, x: lax.concatenate([x, lax.rev(x, (0,))], 0),
        lambda lax, np, x: lax.rev(x, (0,)),
        lambda lax, np, x: lax.sort(x),
    ):
        assert same(f, X)["unfused_flops"] == 0


BOTH = {"pin_lhs_in_vmem": True, "pin_rhs_in_vmem": True}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int8"])
@pytest.mark.parametrize("pins", [{}, {"pin_lhs_in_vmem": True}, {"pin_rhs_in_vmem": True}, BOTH], ids=str)
def test_products(dtype, pins):
    x, y = jnp.ones((3, 4, 8), dtype), jnp.ones((3, 8, 16), dtype)
    x, y = (np.asarray(v) for v in (x, y))
    dims = (((2,), (1,)), ((0,), (0,)))
    assert same(lambda lax, np, x, y: lax.dot_general(x, y, dims), x, y, **pins)["flops"] == 3 * 2 * 4 * 8 * 16


def test_a_layer():
    cost = same(lambda lax, np, x, w, b: lax.sin(lax.dot(x, w) + b), X, rows((8, 16)), rows((4, 16)))
    assert cost["hbm_bytes"] < cost["unfused_hbm_bytes"]


@pytest.mark.parametrize("options", [
    {"padding": "SAME"}, {"padding": "VALID", "window_strides": (2, 2)}, {"padding": "SAME", "rhs_dilation": (2, 2)},
    {"padding": ((1, 0), (0, 2))}, {"padding": ((2, 2), (1, 1)), "lhs_dilation": (2, 3)},
    {"padding": "SAME", "kernel": (6, 1, 3, 3), "feature_group_count": 3},
    {"padding": "SAME", "kernel": (6, 3, 3, 3), "batch_group_count": 2},
], ids=str)  # fmt: skip
def test_convolutions(options):
    kernel = options.pop("kernel", (4, 3, 3, 3))
    given = {"window_strides": (1, 1), **options}
    same(lambda lax, np, x, w: lax.conv_general_dilated(x, w, **given), rows((2, 3, 8, 8)), rows(kernel))


def test_reductions():
    for axes in ((0,), (1,), (0, 1)):
        cost = same(lambda lax, np, x: lax.reduce_sum(x, axes), X)  # noqa: B023
        assert our.roofline(lambda x: lax.reduce_max(x, axes))(X)[1].unfused_flops == cost["unfused_flops"]  # noqa: B023


def test_indexing():
    def rows_of(lax, np, x, i):
        axes = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        return lax.gather(x, i, axes, (1, 8), mode="clip")

    def combined(how):
        def f(lax, np, x, i, u):
            axes = lax.ScatterDimensionNumbers((1,), (0,), (0,))
            return getattr(lax, how)(x, i, u, axes, mode="clip")

        return f

    at = np.array([[1], [2]], "int32")
    same(rows_of, X, at)
    for how in ("scatter", "scatter_add", "scatter_mul", "scatter_max"):
        same(combined(how), X, at, rows((2, 8)))


def test_calls():
    for lib, module in ((atled, our), (jax, their)):

        def f(x, lib=lib):
            inner = lib.jit(lambda x: lib.numpy.dot(x, x))
            return inner(x) + lib.remat(lib.numpy.sin)(x)

        cost = module.roofline(f)(rows((8, 8)))[1]
        assert (cost.flops, cost.unfused_flops, cost.hbm_bytes) == (1024, 1024 + 128, 768)


def test_custom_rules():
    for lib, module in ((atled, our), (jax, their)):
        f = lib.custom_vjp(lambda x: lib.numpy.sin(lib.numpy.dot(x, x)))  # noqa: B023
        f.defvjp(lambda x: (x, x), lambda r, g: (g,))
        assert module.roofline(f)(rows((8, 8)))[1].unfused_flops == 1024 + 64


def test_what_is_alive():
    big = rows((64, 64))
    assert same(lambda lax, np, x, y: lax.sin(x), X, big)["peak_hbm_bytes"] == 128  # y is not used
    same(lambda lax, np, x, y: (lax.sin(x), y), X, big)
    same(lambda lax, np, x: lax.broadcast(x, (9,)), X)
    same(lambda lax, np, x: (lax.sin(x), lax.cos(x))[0], X)
    same(lambda lax, np, x: lax.reduce_sum(lax.broadcast(x, (9,)), (0,)), X)


def test_a_call_adds_to_what_is_alive():
    inner = atled.jit(lambda x: jnp.sum(lax.broadcast(x, (9,))))
    cost = our.roofline(lambda x, y: (inner(x), y))(X, rows((64, 64)))[1]
    assert cost.peak_hbm_bytes == 64 * 64 * 4 + 9 * 128


def test_loops_count_each_step():
    """JAX counts the body once."""

    def loop(lib):
        return lambda x: lib.lax.scan(lambda c, a: (lib.numpy.dot(c, c), a), x, None, length=5)[0]

    ours, theirs = our.roofline(loop(atled))(rows((8, 8)))[1], their.roofline(loop(jax))(rows((8, 8)))[1]
    assert ours.flops == 5 * theirs.flops and ours.unfused_hbm_bytes == 5 * theirs.unfused_hbm_bytes
    assert ours.peak_hbm_bytes == theirs.peak_hbm_bytes


def test_branches_and_loops_of_unknown_length():
    """JAX counts nothing of them."""
    choose = lambda p, x: lax.cond(p, lambda x: x @ x, jnp.sin, x)
    assert our.roofline(choose)(True, rows((8, 8)))[1].flops == 1024
    until = lambda x: lax.while_loop(lambda x: x[0, 0] < 0, lambda x: x @ x, x)
    assert our.roofline(until)(rows((8, 8)))[1].flops == 1024


def test_windows_and_normalizations():
    pool = lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID")
    assert our.roofline(pool)(X)[1].unfused_flops == 3 * 8
    assert our.roofline(lambda x: atled.nn.softmax(x))(X)[1].unfused_flops == 5 * 32
    assert our.roofline(lambda x: lax.cumsum(x))(X)[1].unfused_flops == 32


# -- on a mesh -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("name", ["psum", "all_gather", "psum_scatter", "all_to_all"])
def test_collectives(name, n):
    f = {
        "psum": lambda lax, np, x: lax.psum(x, "a"),
        "all_gather": lambda lax, np, x: lax.all_gather(x, "a", tiled=True),
        "psum_scatter": lambda lax, np, x: lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True),
        "all_to_all": lambda lax, np, x: lax.all_to_all(x, "a", 1, 0, tiled=True),
    }[name]
    out = () if name == "psum" else ("a",)
    same(f, rows((n, n * n, 16)), mesh=((n,), ("a",)), specs=(("a",), out))


@pytest.mark.parametrize("sizes", [(2, 4), (3, 3), (4, 4), (2, 2, 2), (3, 5)])
def test_collectives_over_several_axes(sizes):
    names, n = tuple("abc"[: len(sizes)]), int(np.prod(sizes))
    mesh = (sizes, names)
    same(lambda lax, np, x: lax.psum(x, names), rows((n, n)), mesh=mesh, specs=((names,), ()))
    swap = lambda lax, np, x: lax.all_to_all(x, names, 1, 0, tiled=True)
    same(swap, rows((n, n)), mesh=mesh, specs=((names,), (names,)))
    ahead = [(i, (i + 3) % n) for i in range(n)]
    same(lambda lax, np, x: lax.ppermute(x, names, ahead), rows((n, n)), mesh=mesh, specs=((names,), (names,)))


@pytest.mark.parametrize("pairs", [
    [(0, 1)], [(0, 3)], [(0, 5)], [(0, 2), (1, 3)], [(0, 2), (2, 0)], [(i, (i + 3) % 8) for i in range(8)], [(0, 0)],
    [(i, (i + 4) % 8) for i in range(8)],
], ids=str)  # fmt: skip
def test_permutations(pairs):
    same(lambda lax, np, x: lax.ppermute(x, "a", pairs), rows((8, 16)), mesh=((8,), ("a",)), specs=(("a",), ("a",)))


def test_per_device():
    mesh, specs = ((4,), ("a",)), ([("a",), ()], ("a",))
    same(lambda lax, np, x, w: lax.sin(lax.dot(x, w)), rows((8, 16)), rows((16, 2)), mesh=mesh, specs=specs)
    assert our.roofline(jnp.sin, AbstractMesh((4,), ("a",)))(X)[1].unfused_flops == X.size  # without specs: as a whole


def test_shapes_are_placed():
    mesh = atled.make_mesh((1,), ("a",), devices=atled.devices()[:1])
    shape, _ = our.roofline(jnp.sin, mesh, P("a"), P("a"))(X)
    assert shape.sharding == atled.NamedSharding(mesh, P("a"))


# -- derivatives -----------------------------------------------------------------------------------------------------


def test_derivatives():
    """JAX's cotangents are bfloat16, so that only functions of these have derivatives there."""
    x, y = (np.asarray(jnp.ones(s, "bfloat16")) for s in ((8, 16), (16, 8)))
    skip = ("peak_hbm_bytes",)  # what is alive depends on the order of the two products
    assert same(lambda lax, np, x, y: lax.dot(x, y), x, y, vjp=True, skip=skip)["flops"] == 3 * 2048
    assert same(lambda lax, np, x: lax.sin(x), x, vjp=True, skip=skip)["unfused_flops"] == 3 * 128
    assert our.roofline(jnp.sin, vjp=True)(X)[1].unfused_flops == 3 * 32


def test_forward_and_backward():
    found = []
    for lib, module in ((atled, our), (jax, their)):
        spec = lib.sharding.PartitionSpec
        mesh = lib.sharding.AbstractMesh((4,), ("a",))
        x, y = lib.numpy.ones((8, 16), "bfloat16"), lib.numpy.ones((16, 8), "bfloat16")
        f = lambda x, y, lib=lib: lib.numpy.sin(lib.lax.dot(x, y))
        shape, *costs = module.roofline_and_grad(f, mesh, (spec("a"), spec()), spec("a"))(x, y)
        found.append([shape.shape, *[(c.flops, c.unfused_flops, c.ici_bytes, c.ici_latency) for c in costs]])
    assert found[0] == found[1]


# -- users' primitives -----------------------------------------------------------------------------------------------


def _primitive(lib):
    cls = Primitive if lib is atled else pytest.importorskip("jax.extend.core").Primitive
    own = cls("own")
    own.def_impl(lambda x, k: x)
    own.def_abstract_eval(lambda x, k: x)
    return own


def test_registered_rules():
    seen = []
    for lib, module in ((atled, our), (jax, their)):
        own = _primitive(lib)

        @module.register_roofline(own)
        def rule(ctx, x, k, module=module, own=own):
            assert ctx.primitive is own and ctx.mesh is None and ctx.pin_lhs_in_vmem and not ctx.pin_rhs_in_vmem
            assert isinstance(x, module.RooflineShape) and isinstance(ctx, module.RooflineRuleContext)
            assert str(ctx.name_stack) == "roofline(test_registered_rules.<locals>.f)"
            seen.append((x.shape, x.size, x.bytes, k, [t.shape for t in (*ctx.avals_in, *ctx.avals_out)]))
            return module.RooflineResult(flops=7, ici_bytes={"a": 3}, peak_hbm_bytes=10**5)

        def f(x, own=own):
            return own.bind(x, k=2) + 1.0

        cost = module.roofline(f, pin_lhs_in_vmem=True)(X)[1]
        seen.append(dataclasses.asdict(cost))
    assert seen[:2] == seen[2:]


def test_standard_rules_cost_nothing():
    for lib, module in ((atled, our), (jax, their)):
        own = _primitive(lib)
        module.register_standard_roofline(own)
        cost = module.roofline(lambda x, own=own: own.bind(x, k=1) + 1.0)(X)[1]
        assert (cost.unfused_flops, cost.unfused_hbm_bytes, cost.peak_hbm_bytes) == (32, 260, 128)


def test_without_a_rule():
    own = _primitive(atled)
    with pytest.warns(UserWarning, match="roofline: no rule for own"):
        assert our.roofline(lambda x: own.bind(x, k=1))(X)[1].unfused_flops == 0


def test_rules_of_the_library_can_be_replaced():
    sine = atled.jax.make_jaxpr(jnp.sin)(1.0).eqns[0].primitive
    our.register_roofline(sine)(lambda ctx, x: our.RooflineResult(flops=99))
    try:
        assert our.roofline(jnp.sin)(X)[1].flops == 99
    finally:
        del our._rules[sine]


def test_results_are_added_and_scaled():
    for module, aval in ((our, atled.jax.core.ShapedArray), (their, jax.core.ShapedArray)):
        first = module.RooflineResult(flops=7, ici_bytes={"a": 3, "b": 1}, peak_hbm_bytes=10)
        both = first + module.RooflineResult(flops=1, ici_bytes={"a": 3, "c": 1}, peak_hbm_bytes=7)
        assert both == module.RooflineResult(flops=8, ici_bytes={"a": 6, "b": 1, "c": 1}, peak_hbm_bytes=10)
        assert 2 * first == first * 2 == module.RooflineResult(flops=14, ici_bytes={"a": 6, "b": 2}, peak_hbm_bytes=20)
        assert module.RooflineResult.zeros() == module.RooflineResult()
        t = aval((2, 3), np.dtype("float32"))
        shape = module.RooflineShape.from_aval(t)
        assert (shape.shape, shape.size, shape.bytes, shape.total_bytes([t, t])) == ((2, 3), 6, 24, 48)
        with pytest.raises(TypeError, match="xpected"):
            module.RooflineShape.from_aval(3)


def test_programs_are_printed(capsys):
    our.roofline(lambda x: jnp.sin(x), print_jaxpr=True)(X)
    assert "sin a" in capsys.readouterr().out


def test_the_shapes_of_a_pullback():
    """Leaves of a result are told apart, also where it holds equal ones once."""
    pull = atled.eval_shape(lambda x, y: atled.vjp(jnp.dot, x, y)[1], rows((2, 3)), rows((3, 2)))
    assert [x.shape for x in atled.eval_shape(lambda pull, g: pull(g), pull, rows((2, 2)))] == [(2, 3), (3, 2)]
