"""Derivatives are as weak as what they are derivatives of: a Python number's gradient gives way to other dtypes."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp

half = jnp.ones(2, jnp.bfloat16)


@atled.custom_vjp
def own_vjp(x):
    return jnp.sin(x)


own_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda x, c: (c * jnp.cos(x),))


@atled.custom_jvp
def own_jvp(x):
    return jnp.sin(x)


own_jvp.defjvp(lambda primals, tangents: (own_jvp(*primals), tangents[0] * jnp.cos(primals[0])))

FUNCTIONS = {
    "sin": jnp.sin,
    "jit": atled.jit(jnp.sin),
    "strong inside": lambda x: jnp.sum(jnp.sin(x) * jnp.ones(1, "float32")),
    "constant": lambda x: 1.0,
    "identity": lambda x: x,
    "custom_vjp": own_vjp,
    "custom_jvp": own_jvp,
    "checkpoint": atled.remat(jnp.sin),
    "scan": lambda x: atled.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=1)[0],
    "cond": lambda x: atled.lax.cond(x > 0, jnp.sin, jnp.cos, x),
}
REVERSE = {
    "grad": atled.grad,
    "value_and_grad": lambda f: lambda x: atled.value_and_grad(f)(x)[1],
    "vjp": lambda f: lambda x: atled.vjp(f, x)[1](jnp.ones_like(f(x)))[0],
    "jacrev": atled.jacrev,
    "jit of grad": lambda f: atled.jit(atled.grad(f)),
    "grad in vmap": lambda f: lambda x: atled.vmap(atled.grad(f))(jnp.stack([x, x]))[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("mode", REVERSE)
def test_gradients_are_as_weak_as_the_argument(mode, name):
    f = FUNCTIONS[name]
    for x, is_weak in ((1.0, True), (np.float32(1), False), (jnp.float32(1), False)):
        out = REVERSE[mode](f)(x)
        assert out.weak_type is is_weak, x
        assert (out * half).dtype == (jnp.bfloat16 if is_weak else jnp.float32)
        want = {"constant": 0.0, "identity": 1.0}.get(name, np.cos(1.0))
        np.testing.assert_allclose(out, want, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "custom_vjp"])
def test_tangents_are_as_weak_as_the_result(name):
    f = FUNCTIONS[name]
    for x in (1.0, jnp.float32(1)):
        for tangent in (1.0, jnp.float32(1)):
            y, t = atled.jvp(f, (x,), (tangent,))
            assert jnp.asarray(y).weak_type == jnp.asarray(t).weak_type
            y, push = atled.linearize(f, x)
            assert jnp.asarray(y).weak_type == jnp.asarray(push(tangent)).weak_type
        y, made = f(x), atled.jacfwd(f)(x)
        assert jnp.asarray(y).weak_type == made.weak_type


def test_values_under_derivatives_are_as_weak_as_without():
    f = lambda x: (x * 2 + 1) * half
    assert f(jnp.asarray(1.0)).dtype == jnp.bfloat16
    for y in (*atled.jvp(f, (1.0,), (1.0,)), atled.vjp(f, 1.0)[0], atled.linearize(f, 1.0)[0]):
        assert y.dtype == jnp.bfloat16


def test_second_derivatives_of_a_number_are_weak():
    for made in (atled.hessian(jnp.sin), atled.grad(atled.grad(jnp.sin)), atled.jacrev(atled.jacfwd(jnp.sin))):
        assert (made(1.0) * half).dtype == jnp.bfloat16
        np.testing.assert_allclose(made(1.0), -np.sin(1.0), rtol=1e-6)


def test_an_update_of_a_python_number_keeps_its_weakness():
    step = atled.jit(lambda w: w - 0.1 * atled.grad(lambda v: v * v)(w))
    w = 1.0
    for _ in range(3):
        w = step(w)
    assert w.weak_type


def test_gradients_by_weak_numbers_accept_narrow_cotangents():
    _, pull = atled.vjp(lambda x: x * half, 2.0)
    (g,) = pull(half)
    assert g.dtype == jnp.float32 and g.weak_type
    with pytest.raises(TypeError, match=r"the cotangent of an output bf16\[2\] must be bf16"):
        pull(jnp.ones(2))
