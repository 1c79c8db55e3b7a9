"""Rules with `symbolic_zeros=True` are told what is zero, however they are transformed."""

import pytest

import atled
import atled.numpy as jnp
from atled.jax.custom_derivatives import CustomVJPPrimal, SymbolicZero

WAYS = {
    "eager": lambda f: f,
    "jit": atled.jit,
    "vmap": lambda f: lambda x, y: atled.vmap(f)(jnp.stack([x, x]), jnp.stack([y, y]))[0],
    "jit of vmap": lambda f: atled.jit(lambda x, y: atled.vmap(f)(jnp.stack([x, x]), jnp.stack([y, y]))[0]),
    "scan": lambda f: lambda x, y: atled.lax.scan(lambda c, _: (c, f(x, y)), 0.0, None, length=1)[1][0],
    "cond": lambda f: lambda x, y: atled.lax.cond(x > -100, f, lambda x, y: x, x, y),
}


def product(seen):
    @atled.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        seen.append((type(dx) is SymbolicZero, type(dy) is SymbolicZero))
        terms = [y * dx] if type(dx) is not SymbolicZero else []
        terms += [x * dy] if type(dy) is not SymbolicZero else []
        return f(x, y), sum(terms[1:], terms[0]) if terms else SymbolicZero.from_primal_value(x)

    f.defjvp(rule, symbolic_zeros=True)
    return f


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", [0, 1])
def test_tangents_that_are_zero(way, by):
    seen = []
    f = product(seen)
    x, y = jnp.float32(3.0), jnp.float32(5.0)
    assert atled.grad(lambda *args: WAYS[way](f)(*args), argnums=by)(x, y) == (y, x)[by]
    assert (by == 1, by == 0) in seen and (True, True) not in seen and (False, False) not in seen
    seen.clear()
    assert atled.grad(WAYS[way](f), argnums=(0, 1))(x, y) == (5.0, 3.0) and (False, False) in seen


@pytest.mark.parametrize("inner", ["eager", "jit", "vmap", "scan"])
def test_second_derivatives(inner):
    f = product([])
    g = WAYS[inner](lambda x, y: f(f(x, y), y))  # x y²
    assert atled.grad(atled.grad(g, argnums=1), argnums=1)(jnp.float32(3.0), jnp.float32(5.0)) == 6.0


def test_a_result_that_does_not_move():
    @atled.custom_jvp
    def f(x):
        return x * 2

    f.defjvp(lambda primals, tangents: (f(*primals), SymbolicZero.from_primal_value(primals[0])), symbolic_zeros=True)
    assert atled.grad(f)(1.0) == 0.0 and atled.jit(atled.grad(f))(1.0) == 0.0
    assert atled.grad(lambda x: f(x) * x)(3.0) == 6.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", [0, 1])
def test_primals_know_whether_they_move(way, by):
    seen = []

    @atled.custom_vjp
    def f(x, y):
        return x * y

    def fwd(x, y):
        assert type(x) is type(y) is CustomVJPPrimal
        seen.append((x.perturbed, y.perturbed))
        return x.value * y.value, (x.value, y.value)

    f.defvjp(fwd, lambda kept, g: (g * kept[1], g * kept[0]), symbolic_zeros=True)
    x, y = jnp.float32(3.0), jnp.float32(5.0)
    assert atled.grad(WAYS[way](f), argnums=by)(x, y) == (y, x)[by]
    assert (by == 0, by == 1) in seen and (True, True) not in seen
    assert atled.grad(WAYS[way](f), argnums=(0, 1))(x, y) == (5.0, 3.0) and (True, True) in seen


def test_integers_never_move():
    seen = []

    @atled.custom_vjp
    def f(n, x):
        return n * x

    def fwd(n, x):
        seen.append((n.perturbed, x.perturbed))
        return n.value * x.value, n.value

    f.defvjp(fwd, lambda n, g: (None, g * n), symbolic_zeros=True)
    assert atled.grad(lambda x: f(3, x))(2.0) == 3.0 and atled.jit(atled.grad(lambda x: f(3, x)))(2.0) == 3.0
    assert set(seen) == {(False, True)}
