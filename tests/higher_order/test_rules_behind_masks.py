"""Rules of users hold where derivatives leave out what was not selected: `where` around a function with a rule."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp


@atled.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (cubed(x), x), lambda x, c: (7 * c * x,))  # not the derivative, to tell them apart


@atled.custom_vjp
def outer(x):
    return x * 2


outer.defvjp(lambda x: (outer(x), x), lambda x, c: (cubed(c * x),))  # the way back has a rule, too


@atled.custom_jvp
def tilted(x):
    return x * x


tilted.defjvp(lambda p, t: (tilted(*p), 11 * t[0]))


@atled.custom_vjp
def over_tilted(x):
    return x * 2


over_tilted.defvjp(lambda x: (over_tilted(x), x), lambda x, c: (tilted(c * x),))


@pytest.mark.parametrize("selected", [True, False])
@pytest.mark.parametrize("f, second", [(outer, 7 * 2.0), (over_tilted, 11.0)])
def test_second_derivatives_take_the_rule_of_the_way_back(f, second, selected):
    around = (lambda x: jnp.where(x > 0, f(x), x)) if selected else f
    for g in (around, atled.jit(around)):
        assert float(atled.grad(atled.grad(g))(2.0)) == pytest.approx(second)


def test_loops_behind_rules_are_not_differentiated():
    @atled.custom_vjp
    def g(x):
        return atled.lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] * x), (0, jnp.ones_like(x)))[1]

    g.defvjp(lambda x: (g(x), x), lambda x, c: (3 * c * x * x,))

    @atled.custom_vjp
    def f(x):
        return g(x)

    f.defvjp(lambda x: (f(x), x), lambda x, c: (3 * g(c * x) / x / c**2,))
    found = atled.grad(atled.grad(atled.jit(lambda x: jnp.where(x > 0, f(x), x))))(2.0)
    np.testing.assert_allclose(found, 12.0, rtol=1e-6)
