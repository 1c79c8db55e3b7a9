"""What the tests of libraries for JAX were found to need: the same here and in JAX."""

from __future__ import annotations

import numpy as np
import pytest

import atled
from atled.jax.extend import core
from atled.jax.interpreters import ad

jax = pytest.importorskip("jax")

LIBRARIES = pytest.mark.parametrize("library", [atled.jax, jax], ids=["atled", "jax"])


@LIBRARIES
def test_short_name_of_a_setting(library):
    assert library.config.x64_enabled is False
    with library.enable_x64(True):
        assert library.config.x64_enabled is True


@LIBRARIES
@pytest.mark.parametrize("shape", [(), (2, 3)], ids=str)
def test_functions_of_numbers_take_keys(library, shape):
    jnp, random = library.numpy, library.random
    keys = random.split(random.key(3), shape)
    words = np.asarray(random.key_data(keys))
    for word, f in enumerate((jnp.zeros_like, jnp.ones_like)):
        for g in (f, library.jit(f)):
            made = g(keys)
            assert made.dtype == keys.dtype and made.shape == shape
            np.testing.assert_array_equal(random.key_data(made), np.full((*shape, 2), word))
    np.testing.assert_array_equal(random.key_data(jnp.nan_to_num(keys)), words)
    for f, value in ((jnp.isfinite, True), (jnp.isnan, False), (jnp.isinf, False)):
        np.testing.assert_array_equal(f(keys), np.full(shape, value))


@LIBRARIES
@pytest.mark.parametrize("kind", ["plain", "jit", "scan", "cond", "fori"])
def test_transposed_derivatives_of_selections(library, kind):
    """The transpose of a pullback is the derivative, though selections leave masks in the pullback."""
    jnp, lax, relu = library.numpy, library.lax, library.nn.relu

    def plain(x):
        return relu(x) * x * jnp.where(x > 1, x, -x)

    f = {
        "plain": plain,
        "jit": library.jit(plain),
        "scan": lambda x: lax.scan(lambda c, y: (jnp.where(c > 2, c, c * y), relu(c) * c), x, x)[1].sum(0),
        "cond": lambda x: lax.cond(x[0] > 0, plain, lambda x: x, x),
        "fori": lambda x: lax.fori_loop(0, 3, lambda _, c: relu(c) * c + x, x),
    }[kind]
    x, direction = jnp.array([1.5, 2.0, -3.0]), jnp.array([1.0, -2.0, 0.5])
    _, pullback = library.vjp(f, x)
    (out,) = library.linear_transpose(lambda u: pullback(u)[0], x)(direction)
    np.testing.assert_allclose(out, library.jvp(f, (x,), (direction,))[1], rtol=1e-6)


class Cube:
    """A callable without a name."""

    def __call__(self, x):
        return x * x * x


class Odd(Cube):
    """A callable whose name is no text."""

    __name__ = 3


TRANSFORMS = ("jit", "grad", "vmap", "value_and_grad", "jacfwd", "jacrev", "hessian", "custom_jvp", "custom_vjp",
              "checkpoint", "pmap")  # fmt: skip


@LIBRARIES
@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_is_transformed_can_be_found(library, name):
    f = Odd() if library is atled else Cube()
    found = getattr(library, name)(f)
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    assert found is f
    if name == "vmap":
        np.testing.assert_array_equal(library.vmap(f)(np.arange(3.0)), [0, 1, 8])


def test_tracers_of_one_transformation_have_one_main():
    def f(x, y):
        first = core.find_top_trace([x])
        assert isinstance(x, ad.JVPTracer) and x._trace.main is first.main
        atled.jvp(lambda z: found.append(z._trace.main) or z * x, (y,), (1.0,))
        found.append(first.main)
        return x

    found: list = []
    atled.jvp(f, (1.0, 2.0), (1.0, 1.0))
    assert found[0] is not found[1]


@LIBRARIES
def test_options_of_the_compiler(library):
    lowered = library.jit(lambda x: x + 1).lower(1.0)
    assert float(lowered.compile(compiler_options=None)(2.0)) == 3
    assert float(lowered.compile(compiler_options={})(2.0)) == 3


def test_options_of_the_compiler_are_refused():
    with pytest.raises(ValueError, match="compiler_options: No such compile option: 'xla_anything'"):
        atled.jit(lambda x: x).lower(1.0).compile(compiler_options={"xla_anything": True})


def _core(library):
    return core if library is atled.jax else __import__("jax.extend", fromlist=["core"]).core


@LIBRARIES
def test_programs_are_closed(library):
    jnp, c = library.numpy, _core(library)
    closed = library.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    again = c.ClosedJaxpr(closed.jaxpr, [])
    assert isinstance(again, c.ClosedJaxpr) and isinstance(again.jaxpr, c.Jaxpr)
    (out,) = c.jaxpr_as_fun(again)(jnp.float32(2.0))
    np.testing.assert_allclose(out, 2 * np.sin(2.0), rtol=1e-6)
    array = jnp.arange(3.0)
    closed = library.make_jaxpr(lambda x: x + array)(1.0)
    other = c.ClosedJaxpr(closed.jaxpr, [10 * array])
    np.testing.assert_array_equal(c.jaxpr_as_fun(other)(jnp.float32(1.0))[0], [1, 11, 21])
    assert not isinstance(3, c.ClosedJaxpr)


@LIBRARIES
def test_types_without_weakness(library):
    weak = library.make_jaxpr(lambda x: x)(1.0).in_avals[0]
    assert weak.weak_type and not weak.strip_weak_type().weak_type
    assert weak.strip_weak_type().dtype == weak.dtype


@LIBRARIES
def test_strict_promotion_lets_integers_become_floating(library):
    jnp = library.numpy
    i = jnp.arange(3)
    with library.numpy_dtype_promotion("strict"):
        for f in (jnp.sin, jnp.mean, jnp.var, lambda x: x / 2, lambda x: x / x[1:2], lambda x: jnp.linspace(0, 1, 3)):
            found = f(i)
            assert found.dtype == np.float32
        for f in (lambda x: x * 2.0, lambda x: x + x.astype("float32")):
            with pytest.raises((TypeError, ValueError)):
                f(i)


@LIBRARIES
@pytest.mark.parametrize("kind", ["psum", "pmean", "pmax", "all_gather", "jit", "cond", "scan", "relu"])
def test_what_collectives_give_is_the_same_for_all(library, kind):
    """So that a mapped function may return it with `out_axes=None`."""
    jnp, lax = library.numpy, library.lax
    x = jnp.arange(8.0).reshape(4, 2)

    def mean(x):
        return lax.pmean(x, "i")

    f = {
        "psum": lambda x: lax.psum(x, "i"),
        "pmean": mean,
        "pmax": lambda x: lax.pmax(x, "i"),
        "all_gather": lambda x: lax.all_gather(x, "i").sum(0),
        "jit": library.jit(lambda x: mean(x) * 2),
        "cond": lambda x: lax.cond(mean(x)[0] > 0, lambda m: m + 1, lambda m: m, mean(x)),
        "scan": lambda x: lax.scan(lambda c, _: (mean(c * x), None), jnp.ones(2), None, length=3)[0],
        "relu": lambda x: library.nn.relu(mean(x)),
    }[kind]
    every = library.vmap(f, axis_name="i")
    one = library.vmap(f, axis_name="i", out_axes=None)
    assert one(x).shape == (2,)
    np.testing.assert_allclose(np.broadcast_to(one(x), (4, 2)), every(x), rtol=1e-6)
    nested = library.vmap(one)(jnp.stack([x, 2 * x]))
    np.testing.assert_allclose(nested, [one(x), one(2 * x)], rtol=1e-6)
    if kind == "pmax":  # JAX has no derivative of it
        return
    weights = jnp.arange(1.0, 3.0)
    slope = library.grad(lambda x: (one(x) * weights).sum())(x)
    np.testing.assert_allclose(slope, library.grad(lambda x: (every(x) * weights).sum())(x) / 4, rtol=1e-6)
    inside = library.vmap(library.grad(lambda x: (f(x) * weights).sum()), axis_name="i")(x)
    assert inside.shape == (4, 2)


@LIBRARIES
def test_types_of_tangents(library):
    typeof = library.typeof
    assert typeof(np.float32(1)).to_tangent_aval().dtype == np.float32
    assert typeof(np.int32(1)).to_tangent_aval().dtype == library.dtypes.float0


@LIBRARIES
@pytest.mark.parametrize("is_compiled", [False, True])
def test_roots_whose_solver_closes_over_what_moves(library, is_compiled):
    """Derivatives come from the equation alone; how its root is found does not matter."""
    jnp, lax = library.numpy, library.lax

    def root(t):
        def solve(_, x):
            return lax.fori_loop(0, 20, lambda i, x: x - (x**2 - t["a"]) / (2.0 * x), x)

        return lax.custom_root(lambda x: x**2 - t["a"], t["start"], solve, lambda g, y: y / g(jnp.ones_like(y)))

    f = library.jit(root) if is_compiled else root
    at = {"a": jnp.float32(4.0), "start": jnp.float32(1.0)}
    assert abs(float(f(at)) - 2) < 1e-6
    slope = library.grad(f)(at)
    assert abs(float(slope["a"]) - 0.25) < 1e-6 and float(slope["start"]) == 0
    second = library.grad(lambda a: library.grad(f)({**at, "a": a})["a"])(at["a"])
    assert abs(float(second) + 1 / 32) < 1e-6
    batch = library.vmap(lambda a: library.grad(f)({**at, "a": a})["a"])(jnp.array([1.0, 4.0]))
    np.testing.assert_allclose(batch, [0.5, 0.25], rtol=1e-6)


@LIBRARIES
def test_values_that_numpy_cannot_hold_stay(library):
    jnp, get = library.numpy, library.device_get
    assert float(library.jit(lambda x: get(x) * 2)(1.0)) == 2
    assert float(library.grad(lambda x: get({"x": x})["x"] * 2)(1.0)) == 2
    np.testing.assert_array_equal(library.vmap(lambda x: get(x) * 2)(jnp.ones(2)), [2, 2])
    key = library.random.key(0)
    assert get(key).dtype == key.dtype
    assert type(get(jnp.ones(2))) is np.ndarray


@LIBRARIES
def test_what_is_not_mapped_need_not_be_an_array(library):
    out = library.vmap(lambda x, f: f["f"](x) * f["n"], in_axes=(0, None))(np.arange(3.0), {"f": abs, "n": 2})
    np.testing.assert_array_equal(out, [0, 2, 4])
    with pytest.raises(TypeError):
        library.vmap(lambda x, f: f(x))(np.arange(3.0), abs)
