"""Batching: axes as trees, sizes, names and collectives, and messages."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax


def close(a, b, tol=1e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


N = np.arange(24.0, dtype="f4").reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("out", [0, 1, 2, -1])
def test_axes_in_and_out(axis, out):
    got = atled.vmap(lambda v: v * 2, in_axes=axis, out_axes=out)(jnp.asarray(N))
    close(got, np.moveaxis(2 * np.moveaxis(N, axis, 0), 0, out))


def test_trees_of_axes():
    p = {"a": jnp.arange(3.0), "b": (jnp.ones((2, 3)), jnp.float32(7.0))}
    f = lambda p, q: {"s": p["a"] + p["b"][0].sum() + p["b"][1], "q": q}
    out = atled.vmap(f, in_axes=({"a": 0, "b": (1, None)}, None), out_axes={"s": 0, "q": None})(p, 5.0)
    close(out["s"], [9, 10, 11])
    assert float(out["q"]) == 5.0
    close(atled.vmap(lambda x, *, k: x * k)(jnp.arange(3.0), k=jnp.arange(3.0)), [0, 1, 4])
    close(atled.vmap(lambda: jnp.float32(1.0), axis_size=3)(), [1, 1, 1])


def test_numpy_arrays_and_numbers():
    close(atled.vmap(lambda x, y: x + y, in_axes=(0, None))(np.arange(3.0, dtype="f4"), 10.0), [10, 11, 12])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: atled.vmap(lambda x, y: x + y)(jnp.ones(3), jnp.ones(4)), "3 for f32.*4 for f32"),
        (lambda: atled.vmap(lambda x: x, in_axes=None)(1.0), "one argument must be mapped"),
        (lambda: atled.vmap(lambda x: x, in_axes=2)(jnp.ones((2, 2))), "axis 2 of f32"),
        (lambda: atled.vmap(lambda x: x, out_axes=None)(jnp.ones(3)), "differs between examples"),
        (lambda: atled.vmap(lambda x: x, out_axes=5)(jnp.ones(3)), "out_axes asks for axis 5"),
        (lambda: atled.vmap(lambda x: x, in_axes=({"a": 0, "b": 0},))({"a": jnp.ones(2)}), "prefix"),
        (lambda: atled.vmap(lambda x: x)(1.0), "axis 0"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_kinds():
    with pytest.raises(TypeError):
        atled.vmap(lambda x: x, in_axes="a")
    with pytest.raises(TypeError):
        atled.vmap(lambda x: x)("abc")
    with pytest.raises(TypeError):
        atled.vmap(lambda x: "abc")(jnp.ones(2))


def test_traced_branches_are_refused():
    with pytest.raises(atled.errors.TracerBoolConversionError, match="vmap"):
        atled.vmap(lambda x: x if x > 0 else -x)(jnp.ones(2))


def test_of_jit_and_under_jit():
    f = atled.jit(lambda x, y: jnp.sin(x) @ y)
    a, b = np.random.RandomState(0).randn(2, 5, 4).astype("f4")
    want = [np.sin(x) @ y for x, y in zip(a, b)]
    close(atled.vmap(f)(a, b), want, 1e-5)
    close(atled.jit(atled.vmap(f))(a, b), want, 1e-5)
    close(atled.vmap(f, (0, None))(a, b[0]), [np.sin(x) @ b[0] for x in a], 1e-5)


def test_per_example_gradients():
    r = np.random.RandomState(0)
    w, x, y = r.randn(5).astype("f4"), r.randn(7, 5).astype("f4"), r.randn(7).astype("f4")
    loss = lambda w, x, y: (jnp.tanh(x @ w) - y) ** 2
    each = atled.vmap(atled.grad(loss), (None, 0, 0))(w, x, y)
    close(each, np.stack([atled.grad(loss)(w, a, b) for a, b in zip(x, y)]), 1e-5)


def test_nested_axes_with_names():
    both = atled.vmap(atled.vmap(lambda x: (lax.psum(x, "r"), lax.psum(x, ("r", "c"))), axis_name="c"), axis_name="r")
    a, b = both(jnp.arange(6.0).reshape(2, 3))
    close(a, [[3, 5, 7]] * 2)
    close(b, np.full((2, 3), 15.0))
    index = atled.vmap(atled.vmap(lambda x: lax.axis_index(("r", "c")), axis_name="c"), axis_name="r")
    close(index(jnp.zeros((2, 3))), np.arange(6).reshape(2, 3))


def test_names_reach_into_jit():
    f = atled.jit(lambda x: x - lax.pmean(x, "i"))
    close(atled.vmap(f, axis_name="i")(jnp.arange(4.0)), np.arange(4) - 1.5)
    close(atled.jit(atled.vmap(atled.jit(lambda: lax.psum(1, "i")), axis_name="i", axis_size=3))(), [3, 3, 3])


def test_unknown_names():
    with pytest.raises(NameError, match=r"'nope'.*in scope are: 'i'"):
        atled.vmap(lambda x: lax.psum(x, "nope"), axis_name="i")(jnp.ones(2))
    with pytest.raises(NameError):
        lax.axis_index("i")
