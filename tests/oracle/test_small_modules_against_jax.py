"""`flatten_util`, `test_util`, `typing`, `dlpack` and `custom_derivatives`: as JAX has them."""

from __future__ import annotations

import functools
import importlib
import inspect
import subprocess
import sys
import typing

import ml_dtypes
import numpy as np
import pytest

import atled.jax as atled
import atled.numpy as jnp

jax = pytest.importorskip("jax")

R = np.random.RandomState(0)
MODULES = ("flatten_util", "test_util", "typing", "dlpack", "custom_derivatives")
LEFT_OUT = {"custom_jvp_call_p", "custom_vjp_call_p", "remat_opt_p"}  # primitives


def modules(name):
    return [importlib.import_module(f"{m}.{name}") for m in ("atled.jax", "jax")]


def close(ours, theirs, tolerance=1e-6):
    ours, theirs = atled.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind != "V":
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", MODULES)
def test_names_and_parameters(name):
    ours, theirs = modules(name)
    public = [n for n in dir(theirs) if not n.startswith("_") and not inspect.ismodule(getattr(theirs, n))]
    assert [n for n in public if n not in LEFT_OUT and not hasattr(ours, n)] == []
    assert sorted(ours.__all__) == sorted(set(public) - LEFT_OUT)
    for n in public:
        if n in LEFT_OUT or name == "typing":
            continue
        a, b = (inspect.signature(getattr(m, n)).parameters.values() for m in (ours, theirs))
        assert [(p.name, p.kind, p.default) for p in a] == [(p.name, p.kind, p.default) for p in b], n


def test_modules_are_loaded_on_demand():
    code = f"import atled, sys; print([m for m in {MODULES!r} if f'atled.{{m}}' in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


# -- vectors of trees -------------------------------------------------------------------------------------------------

TREES = {
    "empty": {},
    "floats": {"a": np.ones((2, 3), "f4"), "b": 1.0},
    "floats and integers": {"a": np.arange(3, dtype="i4"), "b": np.asarray(2, "f2")},
    "integers": [np.arange(3, dtype="i4")],
    "a number": 3.0,
    "an integer": 2,
    "a bool": [True, np.ones(2, "f4")],
    "complex": (1j, np.ones(2, "f4")),
    "bools": [True, False],
    "narrow": [np.asarray(3, "i1"), np.asarray(4, "i4"), None],
    "none of one": [np.zeros((0, 3), "f4"), np.ones(2, "f4")],
}


@pytest.mark.parametrize("name", TREES)
def test_trees_as_vectors(name):
    ours, theirs = (m.ravel_pytree(TREES[name]) for m in modules("flatten_util"))
    close(ours[0], theirs[0])
    close(ours[1](ours[0]), theirs[1](theirs[0]))
    assert atled.tree.structure(ours[1](ours[0])) == atled.tree.structure(TREES[name])
    close(atled.jit(ours[1])(ours[0]), theirs[1](theirs[0]))
    assert ours[1] == modules("flatten_util")[0].ravel_pytree(TREES[name])[1] and hash(ours[1])
    if len({np.asarray(x).dtype for x in atled.tree.leaves(TREES[name])}) == 1:  # other dtypes pass
        close(ours[1](2 * ours[0].astype("float32")), theirs[1](2 * theirs[0].astype("float32")))


def test_vectors_that_do_not_fit():
    unravel = modules("flatten_util")[0].ravel_pytree([np.ones(3, "f4"), np.ones(1, "i4")])[1]
    for x in (jnp.ones(3), jnp.ones((2, 2))):
        with pytest.raises(ValueError, match="unravel: a vector of 4 numbers is needed"):
            unravel(x)
    with pytest.raises(TypeError, match="needs a vector of float32; got i32"):
        unravel(jnp.ones(4, "int32"))


def test_vectors_in_transforms():
    def f(m, v):
        flat, unravel = importlib.import_module(f"{m.__name__}.flatten_util").ravel_pytree({"a": v, "n": 3})
        return m.numpy.sum(unravel(2 * flat)["a"] ** 2) + m.numpy.sum(flat)

    x = R.randn(3).astype("f4")
    for g in (
        lambda m: m.grad(functools.partial(f, m))(x),
        lambda m: m.vmap(functools.partial(f, m))(np.stack([x, x])),
    ):
        close(g(atled), g(jax), 1e-5)


# -- derivatives against differences ----------------------------------------------------------------------------------


def test_right_derivatives_pass():
    check_grads = modules("test_util")[0].check_grads
    x = R.randn(3).astype("f4")
    check_grads(lambda a, b: jnp.sin(a) * b, (x, 2.0), order=3)
    check_grads(lambda d: {"o": d["a"] @ d["b"], "n": d["n"]}, ({"a": x, "b": 2 * x, "n": 3},), order=2)
    check_grads(lambda z: z * jnp.conj(z) + jnp.exp(z), ((x + 1j * x[::-1]).astype("c8"),), order=2)
    check_grads(lambda a: jnp.sum(a), (x.astype(ml_dtypes.bfloat16),), order=1, modes=["rev"])
    check_grads(jnp.linalg.inv, (np.eye(3, dtype="f4") * 2 + 0.1,), 2, modes=("fwd",), atol=1e-2, rtol=1e-2, eps=1e-3)
    with atled.enable_x64(True):
        check_grads(jnp.tanh, (R.randn(4),), order=2)


def wrong():
    @atled.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), 1.1 * jnp.cos(p[0]) * t[0]))
    return f


def test_wrong_derivatives_do_not():
    util, other = modules("test_util")
    f, x = wrong(), np.array([0.5, 0.7], "f4")
    with pytest.raises(AssertionError, match=r"check_jvp, the tangent: at the result\[\d\], got .* in the jvp"):
        util.check_grads(f, (x,), order=1)
    with pytest.raises(AssertionError, match=r"check_vjp, the cotangents times a direction: .* in the vjp"):
        util.check_grads(f, (x,), order=1, modes=["rev"])
    with pytest.raises(AssertionError, match=r"in the jvp of the jvp|in the vjp of the jvp|in the jvp of the vjp"):
        g = atled.custom_jvp(lambda x: jnp.sin(x))
        g.defjvp(lambda p, t: (g(*p), atled.lax.stop_gradient(jnp.cos(p[0])) * t[0]))
        util.check_grads(g, (x,), order=2)
    with pytest.raises(AssertionError, match="check_jvp, the value"):
        util.check_jvp(f, lambda p, t: (2 * p[0], t[0]), (x,))
    with pytest.raises(AssertionError, match="trees differ"):
        util.check_jvp(f, lambda p, t: ([f(*p)], t[0]), (x,))
    with pytest.raises(AssertionError, match="said by me"):
        util.check_vjp(f, functools.partial(atled.vjp, f), (x,), err_msg="said by me")
    with pytest.raises(ValueError, match="the modes are 'fwd' and 'rev'"):
        util.check_grads(f, (x,), order=1, modes=["back"])
    util.check_grads(f, (x,), order=1, atol=1.0, rtol=1.0)
    util.check_vjp(jnp.sin, functools.partial(atled.vjp, jnp.sin), (x,), eps=1e-3)
    other.check_vjp(jax.numpy.sin, functools.partial(jax.vjp, jax.numpy.sin), (x,), eps=1e-3)


# -- types and other libraries ----------------------------------------------------------------------------------------


def test_types():
    ours, theirs = modules("typing")
    assert ours.ArrayLike is sys.modules["atled.core.array"].ArrayLike
    plain = {bool, int, float, complex}
    assert plain < set(typing.get_args(ours.ArrayLike)) and plain < set(typing.get_args(theirs.ArrayLike))
    assert {str, np.dtype} < set(typing.get_args(ours.DTypeLike))
    assert isinstance(1.0, ours.ArrayLike) and isinstance(jnp.ones(2), ours.ArrayLike)


def test_dtypes_of_other_libraries():
    ours, theirs = modules("dlpack")
    plain = ["bool", "int8", "uint64", "float16", "float64", "complex64", "complex128", float, object, "S4", np.float32]
    odd = ["bfloat16", "int4", "uint4", "int2", "float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn"]
    for d in [*plain, *map(np.dtype, plain), *[getattr(ml_dtypes, n) for n in odd], "datetime64[s]", jax.dtypes.float0]:
        assert ours.is_supported_dtype(d) == theirs.is_supported_dtype(d), d
    assert ours.is_supported_dtype("bfloat16") and not ours.is_supported_dtype("int4")
    for bad in ("other", None):
        with pytest.raises(TypeError):
            ours.is_supported_dtype(bad)


def test_arrays_of_other_libraries():
    ours, theirs = modules("dlpack")
    x = R.randn(2, 3).astype("f4")
    for args in ((x,), (x, None, True), (x.T,), (np.arange(3, dtype="i4"),), (x[0] + 1j * x[1],)):
        close(ours.from_dlpack(*args), theirs.from_dlpack(*args))
    assert ours.from_dlpack(external_array=x, device=atled.devices()[0]).tolist() == x.tolist()
    assert ours.from_dlpack(jax.numpy.asarray(x)).tolist() == x.tolist()
    assert ours.from_dlpack(jnp.asarray(x)).tolist() == x.tolist()
    with pytest.raises(TypeError, match="__dlpack__ and __dlpack_device__ is needed; got list"):
        ours.from_dlpack([1.0])
    with pytest.raises(ValueError, match="arrays are always copied; got copy=False"):
        ours.from_dlpack(x, copy=False)


# -- derivatives of one's own -----------------------------------------------------------------------------------------


def test_second_names():
    ours = modules("custom_derivatives")[0]
    assert ours.custom_jvp is atled.custom_jvp and ours.custom_vjp is atled.custom_vjp


GRADIENTS = {
    "one": (lambda x: (x**2, lambda g: (100 * g * x,)), (3.0,)),
    "without a tuple": (lambda x: (x**2, lambda g: 100 * g * x), (3.0,)),
    "two": (lambda x, y: (x * y, lambda g: (10 * g * y, g * x)), (3.0, 4.0)),
    "a tree": (
        lambda d, y: (d["a"] * d["b"] * y, lambda g: ({"a": 2 * g * d["b"], "b": 3 * g * d["a"]}, None)),
        ({"a": 2.0, "b": 3.0}, 4.0),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_ones_own(name):
    f, args = GRADIENTS[name]
    made = {m: modules("custom_derivatives")[i].custom_gradient(f) for i, m in enumerate((atled, jax))}
    rows = atled.tree.map(lambda x: np.array([x, 2 * x], "f4"), args)
    for g in (
        lambda m, h: h(*args),
        lambda m, h: m.grad(h)(*args),
        lambda m, h: m.jit(m.grad(h))(*args),
        lambda m, h: m.grad(m.jit(h))(*args),
        lambda m, h: m.vmap(m.grad(h))(*rows),
        lambda m, h: m.grad(lambda *a: m.numpy.sum(m.vmap(h)(*a)))(*rows),
        lambda m, h: m.value_and_grad(lambda *a: m.numpy.sin(h(*a)))(*args),
        lambda m, h: m.grad(lambda *a: m.lax.fori_loop(0, 2, lambda i, c: c + h(*a), 0.0))(*args),
    ):
        close(g(atled, made[atled]), g(jax, made[jax]), 1e-5)


def test_gradients_of_ones_own_again():
    ours, theirs = modules("custom_derivatives")
    f = lambda x: (x**3, lambda g: (g * x**2,))
    close(atled.grad(atled.grad(ours.custom_gradient(f)))(3.0), jax.grad(jax.grad(theirs.custom_gradient(f)))(3.0))
    several = ours.custom_gradient(lambda x, n: ((x * n, n), lambda g: (7 * g[0], None)))
    assert float(atled.grad(lambda x: several(x, 2)[0])(3.0)) == 7.0  # n is an integer, also as a result
    with pytest.raises(TypeError, match="must return a result and a function; got"):
        ours.custom_gradient(lambda x: x)(3.0)
    with pytest.raises(atled.errors.TracerBoolConversionError):
        atled.grad(ours.custom_gradient(lambda x: (x, lambda g: (g if g > 0 else 2 * g,))))(3.0)
    with pytest.raises(TypeError, match="custom_vjp: bwd of wrapped_fun must return a tuple"):
        atled.grad(ours.custom_gradient(lambda x: (x, lambda g: (g, g))))(3.0)


def test_closures():
    ours = modules("custom_derivatives")[0]

    def f(m, y):
        module = importlib.import_module(f"{m.__name__}.custom_derivatives")
        made, captured = module.closure_convert(lambda d: {"o": d["a"] * y + m.numpy.arange(3.0).sum()}, {"a": 1.0})
        return made({"a": 5.0}, *captured)["o"]

    for g in (
        lambda m: f(m, 2.0),
        lambda m: m.grad(functools.partial(f, m))(2.0),
        lambda m: m.jit(functools.partial(f, m))(2.0),
        lambda m: m.jit(m.grad(functools.partial(f, m)))(2.0),
        lambda m: m.vmap(functools.partial(f, m))(np.ones(2, "f4")),
    ):
        close(g(atled), g(jax))
    assert ours.closure_convert(lambda x: x * jnp.ones(3), 1.0)[1] == []
    seen = []
    atled.grad(lambda y: (seen.append(len(ours.closure_convert(lambda x: x * y, 1.0)[1])), y)[1])(2.0)
    assert seen == [1]
    with pytest.raises(TypeError, match="closure_convert: arguments must have the structure of the example"):
        ours.closure_convert(lambda x: x, 1.0)[0](1.0, 2.0)

    # what it is for: a function as an argument of one with derivatives of its own
    @functools.partial(atled.custom_vjp, nondiff_argnums=(0,))
    def _solve(f, x, *captured):
        return f(x, *captured)

    def fwd(f, x, *captured):
        return f(x, *captured), (x, captured)

    def bwd(f, kept, g):
        x, captured = kept
        return (g, *[10 * x * g for _ in captured])

    _solve.defvjp(fwd, bwd)

    def solve(f, x):
        made, captured = ours.closure_convert(f, x)
        return _solve(made, x, *captured)

    assert float(atled.grad(lambda y: solve(lambda x: x * y, 3.0))(2.0)) == 30.0
    assert float(atled.jit(atled.grad(lambda y: solve(lambda x: x * y, 3.0)))(2.0)) == 30.0


def test_linear_calls():
    ours, theirs = modules("custom_derivatives")
    f, t = (lambda r, x: x / r), (lambda r, g: 10 * g / r)
    g = lambda m, x, r: x + (ours if m is atled else theirs).linear_call(f, t, r, x)
    for h in (
        lambda m: g(m, 9.0, 3.0),
        lambda m: m.grad(functools.partial(g, m))(9.0, 3.0),
        lambda m: m.jit(m.grad(functools.partial(g, m)))(9.0, 3.0),
        lambda m: m.grad(m.jit(functools.partial(g, m)))(9.0, 3.0),
        lambda m: m.jvp(lambda x: g(m, x, 3.0), (9.0,), (2.0,)),
        lambda m: m.grad(m.grad(functools.partial(g, m)))(9.0, 3.0),
        lambda m: m.linear_transpose(lambda x: g(m, x, 3.0), 1.0)(18.0),
    ):
        close(h(atled), h(jax))
    rows = np.array([1.0, 2.0], "f4")
    close(atled.vmap(lambda x, r: g(atled, x, r))(rows, 2 * rows), rows + 0.5)
    close(atled.vmap(lambda x: g(atled, x, 2.0))(rows), 1.5 * rows)
    close(atled.vmap(atled.grad(lambda x, r: g(atled, x, r)))(rows, rows), 1 + 10 / rows)
    close(atled.grad(lambda x: atled.vmap(lambda r: g(atled, x, r))(rows).sum())(3.0), np.float32(2 + 15))
    # by what it is not linear in, it is differentiated as it is; JAX cannot
    close(atled.grad(lambda r: g(atled, 9.0, r))(3.0), np.float32(-1))
    close(atled.grad(lambda k: ours.linear_call(lambda r, x: k * x, lambda r, g: k * g, (), 2.0))(3.0), np.float32(2))

    turned = lambda m, f: lambda y: m.linear_transpose(f, 1.0)(y)[0]
    one = lambda module: lambda x: module.linear_call(lambda _, x: x, lambda _, g: 7.0, (), x)
    for times in range(4):
        a, b = one(ours), one(theirs)
        for _ in range(times):
            a, b = turned(atled, a), turned(jax, b)
        assert float(a(1.0)) == float(b(1.0))
    tree = lambda m: m.grad(
        lambda d: (ours if m is atled else theirs).linear_call(
            lambda r, d: {"o": d["a"] * r["k"]}, lambda r, g: {"a": g["o"] * r["k"] * 10}, {"k": 2.0}, d
        )["o"]
    )({"a": 1.0})
    close(tree(atled), tree(jax))
    with pytest.raises(TypeError, match="must return the tree of linear_args"):
        ours.linear_call(f, lambda r, g: (g, g), 2.0, 1.0)
    with pytest.raises(TypeError, match="must return the shapes of linear_args"):
        ours.linear_call(f, lambda r, g: jnp.ones(3), 2.0, 1.0)


def test_zeros():
    ours, theirs = modules("custom_derivatives")
    for x in (np.ones(2, "f4"), np.float32(1), 2.0, np.ones(2, "c8")):
        close(ours.zero_from_primal(x), theirs.zero_from_primal(x))
        made, other = (m.zero_from_primal(x, symbolic_zeros=True) for m in (ours, theirs))
        assert type(made) is ours.SymbolicZero and repr(made) == repr(other) == "SymbolicZero"
        assert made.shape == other.shape and made.dtype == other.dtype and made.aval.shape == other.aval.shape
    for x in (1, np.ones(2, "i4"), True):
        made, other = ours.zero_from_primal(x), theirs.zero_from_primal(x)
        assert made.dtype == other.dtype == atled.float0 and made.shape == other.shape
    assert atled.tree.leaves(made) and len(atled.tree.leaves(ours.SymbolicZero(made))) == 1
    for m in (ours, theirs):
        p = m.CustomVJPPrimal(1.0, True)
        assert repr(p) == "CustomVJPPrimal(value=1.0, perturbed=True)" and p.value == 1.0 and p.perturbed
        assert m.custom_vjp_primal_tree_values({"a": p, "b": [m.CustomVJPPrimal(2, False)]}) == {"a": 1.0, "b": [2]}
        with pytest.raises(TypeError):
            m.custom_vjp_primal_tree_values({"a": 1.0})
