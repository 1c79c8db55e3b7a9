"""A value with much behind it is computed once: programs of chains compile and run in time linear in their length."""

import numpy as np

import atled
import atled.numpy as jnp
from atled.compiler.fusion_barriers import walls
from atled.core import settings
from atled.engine import program_cache


def chain(steps):
    def f(x, ws):
        total = x
        for i in range(steps):
            x = jnp.where(x > 0, x * ws[i], -x) * 0.5 + ws[i] - x * 0.25  # each x has several uses
            total = total + jnp.sin(x)  # computed once, and so each step is
        return total

    return f


def cell(steps):
    def f(w, x):
        carry = x
        for _ in range(steps):
            gate = jnp.tanh(x @ w)
            carry = carry * gate + x * 0.5
            x = jnp.tanh(carry)
        return x.sum()

    return atled.grad(f)


def instructions(steps):
    return atled.jit(cell(steps)).lower(jnp.eye(4), jnp.ones((2, 4))).compile().as_text().count(" = ")


def test_compiled_code_grows_in_proportion(monkeypatch):
    have = instructions(30), instructions(10)
    assert have[0] < 3.5 * have[1]
    with settings.override(cache=False):
        monkeypatch.setattr("atled.compiler.lowering.walls", lambda program: ())
        atled.clear_caches()
        program_cache.forget()
        without = instructions(30)
        program_cache.forget()
    assert without > 2 * have[0]  # what the walls are for


def test_values_are_the_same():
    x, ws = np.linspace(-1, 1, 8).astype("f4"), np.linspace(0.1, 1.0, 30).astype("f4")
    want, total = x, x
    for w in ws:
        want = np.where(want > 0, want * w, -want) * np.float32(0.5) + w - want * np.float32(0.25)
        total = total + np.sin(want)
    np.testing.assert_allclose(atled.jit(chain(30))(x, ws), total, rtol=1e-5)


def test_short_programs_have_no_walls():
    assert not walls(atled.make_program(chain(2))(jnp.ones(8), jnp.ones(2)))
    assert walls(atled.make_program(chain(40))(jnp.ones(8), jnp.ones(40)))


def test_a_long_chain_is_several_kernels():
    def f(h, w):
        for i in range(200):
            h = jnp.tanh(w * h + i)
        return h

    h, w = np.linspace(-1, 1, 1000).astype("f4"), np.linspace(0.1, 1.0, 1000).astype("f4")
    program = atled.make_program(f)(h, w)
    assert 600 / 60 <= len(walls(program)) <= 600 / 40
    text = atled.jit(f).lower(h, w).compile().as_text()
    longest = max(body.count(" tanh(") for body in text.split("\n\n"))
    assert 0 < longest < 20  # of the 200
    want = h
    for i in range(200):
        want = np.tanh(w * want + np.float32(i))
    np.testing.assert_allclose(atled.jit(f)(h, w), want, rtol=1e-5)


def test_a_spread_value_is_not_stored():
    def f(x, ws):
        for i in range(40):
            x = x * ws[i] + 1.0
        large = jnp.broadcast_to(x, (64, 64))
        return (large + 1.0).sum() + (large * 2.0).sum()

    program = atled.make_program(f)(jnp.float32(2.0), jnp.ones(40))
    assert all(v.type.size < 64 for v in walls(program))
