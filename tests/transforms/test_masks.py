"""What a selection leaves out stays out: through rules, solvers, loops and programs, and at no cost elsewhere."""

from __future__ import annotations

import re

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import errors, lax, nn

X = np.array([0.0, 4.0], "f4")
ONES = np.ones(2, "f4")


@atled.custom_jvp
def own_forward(x):
    return jnp.sqrt(x)


@own_forward.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return own_forward(x), jnp.where(x > 0, t, 0.0) * (0.5 / jnp.sqrt(x))


@atled.custom_vjp
def own_backward(x):
    return jnp.sqrt(x)


own_backward.defvjp(lambda x: (jnp.sqrt(x), x), lambda x, g: (g * (0.5 / jnp.sqrt(x)),))


def solved(a):
    by_root = lambda _, b: jnp.where(a > 0, b / jnp.sqrt(a), b)
    return lax.custom_linear_solve(lambda v: jnp.where(a > 0, v * jnp.sqrt(a), v), jnp.ones(2), by_root, by_root)


def repeated(x, **options):
    body = lambda c: (c[0] + 1, jnp.where(x > 0, c[1] * jnp.log(x), 0.0))
    return lax.while_loop(lambda c: c[0] < 2, body, (0, x), **options)[1]


def in_cases(x):
    return lax.scan(lambda c, v: (c, lax.cond(v > 0, jnp.log, lambda v: 0.0 * v, v)), 0.0, x)[1]


GUARDS = {
    "rule with a selection": (lambda x: own_forward(x), [0, 0.25]),
    "rule behind a selection": (lambda x: jnp.where(x > 0, own_forward(x) * 2.0, 0.0), [0, 0.5]),
    "solve": (solved, [0, -0.0625]),
    "while": (lambda x: repeated(x, max_steps=3), [0, np.log(4) ** 2 + 2 * np.log(4)]),
    "cond in scan": (in_cases, [0, 0.25]),
    "checkpoint": (atled.remat(lambda x: jnp.where(x > 0, jnp.log(x), 0.0)), [0, 0.25]),
    "around a call": (lambda x: jnp.where(x > 0, atled.jit(lambda x: jnp.log(x) * x)(x), 0), [0, 1 + np.log(4)]),
    "calls in calls": (
        lambda x: jnp.where(x > 0, atled.jit(lambda x: atled.jit(jnp.sqrt)(x * 2.0) ** 2)(x), 0.0), [0, 2.0]
    ),
    "carried through a loop": (
        lambda x: jnp.where(x > 0, lax.scan(lambda c, _: (c * jnp.log(x), None), x, length=2)[0], 0.0),
        [0, np.log(4) ** 2 + 2 * np.log(4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDS)
def test_every_way_to_differentiate(name):
    f, slope = GUARDS[name]
    total = lambda x: jnp.sum(f(x))
    ways = [
        atled.grad(total), atled.jit(atled.grad(total)), atled.grad(atled.jit(total)), atled.jacfwd(total),
        lambda x: atled.jacrev(f)(x).sum(0), lambda x: atled.vmap(atled.grad(total))(x[None])[0],
        lambda x: atled.grad(lambda x: atled.vmap(total)(x).sum())(x[None])[0],
    ]  # fmt: skip
    for way in ways:
        np.testing.assert_allclose(way(jnp.asarray(X)), slope, rtol=1e-5)
    forward = [
        lambda x: atled.jvp(total, (x,), (ONES,))[1], atled.jit(lambda x: atled.jvp(total, (x,), (ONES,))[1]),
        lambda x: atled.jvp(atled.jit(total), (x,), (ONES,))[1], lambda x: atled.linearize(total, x)[1](ONES),
    ]  # fmt: skip
    for way in forward:
        np.testing.assert_allclose(way(jnp.asarray(X)), np.sum(slope), rtol=1e-5)


def test_a_reverse_mode_rule_behind_a_selection():
    f = lambda x: jnp.sum(jnp.where(x > 0, own_backward(x), 0.0))
    for way in (atled.grad(f), atled.jit(atled.grad(f)), atled.grad(atled.jit(f))):
        assert way(jnp.asarray(X)).tolist() == [0.0, 0.25]
    mapped = atled.vmap(atled.grad(f), in_axes=1, out_axes=1)(jnp.stack([X, X], axis=1))
    assert mapped.tolist() == [[0.0, 0.0], [0.25, 0.25]]


@pytest.mark.parametrize(
    "back",
    [
        lambda g: g + 1.0,
        lambda g: 1.0 - g,
        lambda g: jnp.where(X > 1, g, 3.0),
        lambda g: 2.0 / (g + 1.0),
        lambda g: g**2,
    ],
    ids=["plus", "minus", "where", "over", "square"],
)
def test_rules_that_are_not_linear_lose_nothing(back):
    @atled.custom_vjp
    def f(x):
        return x * 1.0

    f.defvjp(lambda x: (x * 1.0, None), lambda _, g: (back(g),))
    slope = lambda x: 5.0 * np.asarray(back(np.where(np.asarray(x) > 0, 1.0, 0.0).astype("f4")))
    whole = lambda x: jnp.sum(jnp.where(x > 0, f(x * jnp.full(2, 5.0)), 0.0))
    for way in (atled.grad(whole), atled.jit(atled.grad(whole)), atled.grad(atled.jit(whole))):
        np.testing.assert_allclose(way(jnp.asarray(X)), slope(X))


def test_linear_transpose():
    chosen = np.array([False, True])
    back = atled.linear_transpose(lambda t: jnp.where(chosen, t / X, 0.0), jnp.asarray(X))
    assert back(jnp.ones(2))[0].tolist() == [0.0, 0.25]


def test_jacobians_of_elementwise_functions_are_diagonal():
    want = [[np.inf, 0.0], [0.0, 0.25]]
    assert atled.jacfwd(jnp.sqrt)(X).tolist() == want
    assert atled.jacrev(jnp.sqrt)(X).tolist() == want
    assert atled.jit(atled.jacrev(jnp.sqrt))(X).tolist() == want
    assert atled.hessian(lambda x: jnp.sum(x**1.5))(jnp.asarray(X)).tolist() == [[np.inf, 0.0], [0.0, 0.375]]


def test_a_plain_zero_is_no_selection():
    mask = jnp.array([0.0, 1.0])
    assert np.isnan(atled.grad(lambda x: jnp.sum(jnp.sqrt(x) * mask))(X)[0])
    assert np.isnan(atled.jit(atled.grad(lambda x, m: jnp.sum(jnp.sqrt(x) * m)))(X, mask)[0])
    assert atled.grad(lambda x: jnp.sum(x**2) * jnp.nan)(X).tolist() != [0.0, 0.0]
    assert np.isnan(atled.grad(lambda x: jnp.sum(x**2) * jnp.nan)(X)).all()


def test_booleans_select():
    for f in (
        lambda x: (x > 0) * jnp.sqrt(x),
        lambda x: jnp.sqrt(x) * (x > 0),
        lambda x: np.array([False, True]) * jnp.sqrt(x),
    ):
        for way in (atled.grad, lambda f: atled.jit(atled.grad(f)), atled.jacfwd):
            assert way(lambda x: jnp.sum(f(x)))(jnp.asarray(X)).tolist() == [0.0, 0.25]  # noqa: B023
    out = jnp.array([[True], [False]]) * jnp.array([np.inf, np.nan, 1.0], "bfloat16")
    assert out.dtype == jnp.bfloat16 and out.shape == (2, 3)
    assert out[1].tolist() == [0.0, 0.0, 0.0]
    assert (jnp.array([True, False]) * jnp.array([1 + 1j, np.nan])).tolist() == [1 + 1j, 0j]
    assert (jnp.array([True]) * jnp.array([3])).dtype == jnp.int32


def test_rules_see_cotangents_as_tracers():
    seen = []

    @atled.custom_vjp
    def f(x):
        return x * 1.0

    def backward(_, g):
        seen.append(bool((g >= 0).all()))
        assert isinstance(g, atled.Array) and "f32[2]" in repr(g) and g.shape == (2,)
        with pytest.raises(errors.ConcretizationTypeError, match="float"):
            float(g[0])
        return (g * 2.0,)

    f.defvjp(lambda x: (x * 1.0, None), backward)
    assert atled.grad(lambda x: jnp.sum(jnp.where(x > 0, f(x), 0.0)))(jnp.asarray(X)).tolist() == [0.0, 2.0]
    assert seen == [True]


# -- what it costs -----------------------------------------------------------------------------------------------------


def normed(x):
    mean, var = jnp.mean(x, axis=-1, keepdims=True), jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5)


@pytest.mark.parametrize("f", [nn.softmax, normed, nn.gelu], ids=["softmax", "layer norm", "gelu"])
def test_derivatives_without_selections_have_none(f):
    weight = jnp.arange(32.0).reshape(4, 8)
    slope = atled.jit(atled.grad(lambda x: jnp.sum(f(x) * weight)))
    text = slope.lower(jnp.ones((4, 8))).compile().as_text()
    assert not re.findall(r" (?:compare|select)\(", text)


def test_masks_that_nobody_reads_are_not_computed():
    inner = atled.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))
    read = str(atled.make_program(atled.grad(lambda x: jnp.sum(inner(jnp.sqrt(x)))))(X))
    unread = str(atled.make_program(atled.grad(lambda x: jnp.sum(inner(x @ jnp.eye(2)))))(X))
    assert read.count("= call") == 3 and unread.count("= call") == 2


@pytest.mark.parametrize("mode", [lambda f: f, atled.jit], ids=["eager", "jit"])
def test_guards_of_python_numbers(mode):
    for f, x in [
        (lambda x: jnp.where(x != 0, 1 / x, 0.0), 0.0),
        (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), -1.0),
        (lambda x: jnp.where(x > 0, x / jnp.sqrt(x), 0.0), 0.0),
        (lambda x: jnp.where(x != 0, jnp.sin(x) / x, 1.0), 0.0),
    ]:
        assert float(atled.grad(mode(f))(x)) == 0.0 and float(atled.jvp(mode(f), (x,), (1.0,))[1]) == 0.0


JOINS = {
    "set": lambda g: g.at[0].set(5.0),
    "concatenate": lambda g: jnp.concatenate([g[:1], 5.0 * jnp.ones(2)]),
    "pad": lambda g: jnp.pad(g[:2], (1, 0), constant_values=5.0),
    "update a slice": lambda g: lax.dynamic_update_slice(g, 5.0 * jnp.ones(1), (1,)),
    "inside a call": lambda g: atled.jit(lambda h: h.at[0].set(5.0) * 2)(g),
    "add": lambda g: g + 5.0,
    "where": lambda g: jnp.where(jnp.arange(3) > 1, g, 5.0),
    "stack": lambda g: jnp.stack([g[0], jnp.float32(5.0), g[2]]),
}


@pytest.mark.parametrize("name", JOINS)
def test_what_a_rule_joins_to_a_cotangent_is_not_left_out(name):
    @atled.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, g: (JOINS[name](g),))
    factor = jnp.full(3, 3.0)
    loss = lambda x: jnp.sum(jnp.where(jnp.array([False, True, True]), f(x * factor), 0.0))
    want = np.asarray(JOINS[name](jnp.array([0.0, 1.0, 1.0]))) * 3.0
    for mode in (lambda f: atled.grad(f), lambda f: atled.jit(atled.grad(f)), lambda f: atled.grad(atled.jit(f))):
        np.testing.assert_array_equal(mode(loss)(jnp.array([1.0, 2.0, 3.0])), want)
