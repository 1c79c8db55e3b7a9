"""Derivatives: every mode against the others and against closed forms, and messages."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax


def close(a, b, tol=1e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


FORWARD = lambda f: lambda x: atled.jvp(f, (x,), (jnp.ones_like(x),))[1]
STEPS = {
    "grad": lambda f: atled.grad(lambda z: jnp.sum(f(z))),
    "jvp": FORWARD,
    "jit": atled.jit,
    "vmap": atled.vmap,
    "linearize": lambda f: lambda x: atled.linearize(f, x)[1](jnp.ones_like(x)),
}


@pytest.mark.parametrize("stack", list(itertools.product(STEPS, repeat=3)), ids="-".join)
def test_every_stack_of_three(stack):
    """The k-th derivative of exp(2x) + sin(3x), whatever the transformations and their order."""
    f = lambda x: jnp.exp(2 * x) + jnp.sin(3 * x)
    for s in stack:
        f = STEPS[s](f)
    k, v = sum(s in ("grad", "jvp", "linearize") for s in stack), stack.count("vmap")
    x = np.linspace(-0.4, 0.5, 2**v, dtype="f4").reshape((2,) * v)
    want = 2.0**k * np.exp(2 * x) + 3.0**k * np.sin(3 * x + k * np.pi / 2)
    np.testing.assert_allclose(np.asarray(f(jnp.asarray(x))), want, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product((FORWARD, atled.grad), repeat=2)))
def test_perturbations_are_not_confused(outer, inner):
    assert float(outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0)) == 1.0


def test_closures_over_traced_values():
    def f(x):
        inner = atled.jit(lambda y: x * y)
        mapped = atled.vmap(lambda y: x * y)(jnp.arange(3.0))
        return inner(x) + mapped.sum()

    close(f(2.0), 10.0)
    close(atled.grad(f)(2.0), 7.0)
    close(atled.jit(atled.grad(atled.grad(f)))(2.0), 2.0)
    close(atled.vmap(atled.grad(f))(jnp.arange(3.0)), [3, 5, 7])


def test_python_control_flow_recursion_and_closures():
    def f(x):
        while x < 10:
            x = x * 2
        return x if x > 15 else -x

    assert float(atled.grad(f)(3.0)) == -4.0 and float(atled.grad(f)(4.0)) == 4.0
    power = lambda x, n: x if n == 1 else x * power(x, n - 1)
    close(atled.grad(lambda x: power(x, 5))(1.5), 5 * 1.5**4)


def test_grad_through_jit_is_two_launches():
    f = atled.jit(lambda x: jnp.sum(jnp.tanh(x) ** 3))
    x = jnp.linspace(-1, 1, 5)
    want = 3 * np.tanh(x) ** 2 * (1 - np.tanh(x) ** 2)
    close(atled.grad(f)(x), want)
    close(atled.jit(atled.grad(f))(x), want)
    close(
        atled.grad(lambda y: atled.grad(f)(y).sum())(x),
        atled.grad(lambda y: atled.grad(lambda z: jnp.sum(jnp.tanh(z) ** 3))(y).sum())(x),
    )
    text = str(atled.make_program(atled.grad(f))(x))
    assert text.count("= call") == 2


def test_argnums_has_aux_and_wrt():
    f = lambda a, b, c=1.0: a * b**2 * c
    assert float(atled.grad(f, argnums=1)(2.0, 3.0)) == 12.0
    assert [float(g) for g in atled.grad(f, argnums=(1, 0))(2.0, 3.0)] == [12.0, 9.0]
    assert float(atled.grad(f, argnums=-1)(2.0, 3.0)) == 12.0 and float(atled.grad(f)(2.0, 3.0, c=10.0)) == 90.0
    (value, aux), g = atled.value_and_grad(lambda x: (x**2, {"y": x * 2, "name": "n", "none": None}), has_aux=True)(3.0)
    assert float(value) == 9 and float(aux["y"]) == 6 and aux["name"] == "n" and aux["none"] is None and float(g) == 6
    params = {"w": jnp.float32(2.0), "frozen": jnp.float32(3.0), "n": 4}
    loss = lambda p: p["w"] ** 2 * p["frozen"] * p["n"]
    g = atled.grad(loss, wrt=lambda path, x: "w" in path)(params)
    assert float(g["w"]) == 48.0 and g["frozen"] is None and g["n"] is None
    g = atled.grad(loss, wrt=lambda x: isinstance(x, atled.Array))(params)
    assert float(g["frozen"]) == 16.0 and g["n"] is None


def test_integers_and_scalars():
    with pytest.raises(TypeError, match=r"real or complex.*got ~i32\[\]"):
        atled.grad(lambda x: x * 1.0)(3)
    g = atled.grad(lambda n, x: x**2 * n, argnums=(0, 1), allow_int=True)(jnp.int32(3), 2.0)
    assert g[0].dtype == atled.float0 and float(g[1]) == 12.0
    for f in (lambda x: x * jnp.ones(3), lambda x: (x, x), lambda x: jnp.int32(x), lambda x: "a"):
        with pytest.raises(TypeError, match="must return"):
            atled.grad(f)(1.0)
    with pytest.raises(ValueError, match="argument 5"):
        atled.grad(lambda x: x, argnums=5)(1.0)


def test_tangents_are_checked():
    for tangents in ((jnp.ones(3),), (1,), (1.0, 2.0)):
        with pytest.raises(TypeError):
            atled.jvp(jnp.sin, (1.0,), tangents)
    _, pull = atled.vjp(jnp.sin, jnp.ones(3))
    for cotangent in (jnp.ones(4), (jnp.ones(3),), jnp.ones(3, "int32")):
        with pytest.raises(TypeError):
            pull(cotangent)


def test_linearize_and_transpose():
    runs = []

    def f(x):
        runs.append(1)
        return jnp.sin(x) * x**2

    _, df = atled.linearize(f, 2.0)
    d = math.cos(2) * 4 + math.sin(2) * 4
    close([df(1.0), df(3.0)], [d, 3 * d])
    close(atled.vmap(df)(jnp.arange(3.0)), d * np.arange(3))
    assert len(runs) == 1
    a = np.random.RandomState(0).randn(3, 4).astype("f4")
    t = atled.linear_transpose(lambda x: a @ x, jnp.zeros(4))
    close(t(jnp.array([1.0, -2.0, 0.5]))[0], a.T @ [1.0, -2.0, 0.5])
    with pytest.raises(Exception, match=r".*"):
        atled.linear_transpose(lambda x: x * x, jnp.zeros(3))(jnp.ones(3))


def test_jacobians_and_hessian():
    f = lambda x: jnp.stack([x[0] * x[1], jnp.sin(x[2]), x[0] ** 2])
    x = jnp.array([1.0, 2.0, 3.0])
    want = [[2, 1, 0], [0, 0, math.cos(3)], [2, 0, 0]]
    close(atled.jacfwd(f)(x), want)
    close(atled.jacrev(f)(x), want)
    h = lambda x: x[0] ** 2 * x[1] + jnp.exp(x[1])
    close(atled.hessian(h)(jnp.array([1.5, 0.5])), [[1.0, 3.0], [3.0, math.exp(0.5)]])
    g = lambda p: {"y": p["a"] * p["b"].sum(), "z": p["b"] * 3.0}
    for jac in (atled.jacfwd, atled.jacrev):
        j = jac(g)({"a": jnp.ones(2), "b": jnp.ones(3)})
        assert j["y"]["a"].shape == (2, 2) and j["z"]["b"].shape == (3, 3)
        close(j["z"]["a"], np.zeros((3, 2)))
    assert atled.jacrev(lambda a, b: a @ b, argnums=(0, 1))(jnp.ones((2, 3)), jnp.ones(3))[0].shape == (2, 2, 3)


def test_complex_conventions():
    with atled.enable_x64():
        z = jnp.asarray(1.0 + 2.0j)
        close(atled.grad(lambda z: jnp.real(z * jnp.conj(z)))(z), 2 - 4j)
        close(atled.grad(lambda z: jnp.abs(z) ** 2)(z), 2 - 4j)
        close(atled.grad(lambda z: z**3, holomorphic=True)(z), 3 * (1 + 2j) ** 2)
        close(atled.jacfwd(lambda z: z**2, holomorphic=True)(jnp.array([1j, 2.0 + 0j])), np.diag([2j, 4.0]))
        for bad in (lambda: atled.grad(lambda z: z**2)(z), lambda: atled.grad(lambda x: x**2, holomorphic=True)(1.0)):
            with pytest.raises(TypeError):
                bad()


def test_stop_gradient():
    f = lambda x: x * lax.stop_gradient(x) + lax.stop_gradient({"a": x**2})["a"]
    assert float(atled.grad(f)(3.0)) == 3.0 and float(atled.jvp(f, (3.0,), (1.0,))[1]) == 3.0
    assert float(atled.grad(atled.jit(f))(3.0)) == 3.0
    close(atled.vmap(atled.grad(f))(jnp.arange(3.0)), [0, 1, 2])
    through = lambda x: x + lax.stop_gradient(jnp.round(x) - x)
    assert float(through(1.7)) == 2.0 and float(atled.grad(through)(1.7)) == 1.0


def test_python_numbers_would_lose_the_derivative():
    with pytest.raises(TypeError, match="has no derivative"):
        atled.grad(lambda x: float(x) * 2.0)(1.0)
    with pytest.raises(TypeError, match="has no derivative"):
        atled.grad(lambda x: math.sin(x))(1.0)
    assert float(atled.grad(lambda x: x * float(lax.stop_gradient(x)))(3.0)) == 3.0


def test_gradients_have_the_dtype_of_their_inputs():
    for dtype in ("bfloat16", "float16", "float32", "float64"):
        x = jnp.ones(3, dtype)
        assert atled.grad(lambda x: jnp.sum(x * 2.5).astype("float32"))(x).dtype == x.dtype


def test_unused_arguments():
    g = atled.grad(lambda p: p["used"] * 2.0)({"used": 1.0, "unused": jnp.ones(3)})
    close(g["unused"], np.zeros(3))
    assert float(atled.grad(lambda x: 3.0)(1.0)) == 0.0
