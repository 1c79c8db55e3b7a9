"""`experimental.ode`: solutions and their derivatives, as JAX computes them and as formulas say."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.jax.experimental.ode import odeint

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.experimental.ode")

R = np.random.RandomState(0)
W = (R.randn(3, 3) * 0.5).astype("f4")
TIMES = np.array([0.0, 0.3, 0.5, 1.2, 2.0], "f4")
F4 = lambda *x: np.array(x, "f4")
# name -> (function of either numpy, y0, arguments)
SYSTEMS = {
    "decay": (lambda m: lambda y, t, a: -a * y, F4(1.0, 2.0), (F4(0.7, 0.2),)),
    "driven": (lambda m: lambda y, t, a, b: a * m.sin(3 * t) - b * y, np.float32(0.5), (F4(2.0)[0], F4(0.3)[0])),
    "pendulum": (lambda m: lambda y, t, a: m.stack([y[1], -a * m.sin(y[0]) - 0.1 * y[1]]), F4(1.0, 0.0), (F4(4.0)[0],)),
    "prey": (
        lambda m: lambda y, t, p: m.stack([p["a"] * y[0] - y[0] * y[1], y[0] * y[1] - p["b"] * y[1]]),
        F4(1.0, 0.5),
        ({"a": F4(1.5)[0], "b": F4(0.8)[0]},),
    ),
    "matrix": (lambda m: lambda y, t, w, b: m.tanh(y @ w + b), R.randn(2, 3).astype("f4"), (W, F4(0.1, 0.2, 0.3))),
    "tree": (
        lambda m: lambda y, t, k: {"x": y["v"], "v": -k * y["x"] + m.cos(t)},
        {"x": F4(1.0, 0.0), "v": F4(0.0, 1.0)},
        (F4(2.0, 1.0),),
    ),
    "oscillator": (
        lambda m: lambda y, t, mu: (y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]),
        (np.float32(1.0), np.float32(0.0)),
        (F4(1.0)[0],),
    ),
    "no arguments": (lambda m: lambda y, t: -y * t, F4(1.0), ()),
}


def leaves_close(ours, wanted, tolerance):
    ours, wanted = atled.tree.leaves(ours), jax.tree.leaves(wanted)
    for a, b in zip(ours, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, tolerance, tolerance)


@pytest.mark.parametrize("name", SYSTEMS)
def test_values(name):
    make, y0, args = SYSTEMS[name]
    wanted = theirs.odeint(make(jax.numpy), y0, TIMES, *args, rtol=1e-7, atol=1e-7)
    for tolerance in (1e-6, 1e-3) if name in ("driven", "prey") else (1e-6,):
        ours = odeint(make(jnp), y0, TIMES, *args, rtol=tolerance, atol=tolerance)
        leaves_close(ours, wanted, 30 * tolerance)


@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives(name):
    make, y0, args = SYSTEMS[name]

    def loss(m, lib, solve):
        def f(y0, t, *args):
            out = solve(make(m), y0, t, *args, rtol=1e-6, atol=1e-6)
            leaves = (atled.tree if m is jnp else jax.tree).leaves(out)
            return sum([(m.sin(x) * m.arange(1.0, 1 + x.size).reshape(x.shape)).sum() for x in leaves])

        return lib.grad(f, tuple(range(2 + len(args))))

    ours = atled.jit(loss(jnp, atled, odeint))(y0, TIMES, *args)
    wanted = jax.jit(loss(jax.numpy, jax, theirs.odeint))(y0, TIMES, *args)
    leaves_close(ours, wanted, 3e-3)


def test_formulas():
    with atled.enable_x64():
        t = np.linspace(0, 3, 7)
        y = odeint(lambda y, t, a: -a * y, 2.0, t, 0.7)
        assert y.dtype == "float64"
        np.testing.assert_allclose(y, 2 * np.exp(-0.7 * t), 1e-7)
        by_start, by_time, by_rate = atled.grad(lambda y, t, a: odeint(lambda y, t, a: -a * y, y, t, a)[-1], (0, 1, 2))(
            2.0, t, 0.7
        )
        last = 2 * math.exp(-2.1)
        np.testing.assert_allclose(by_start, last / 2, 1e-6)
        np.testing.assert_allclose(by_rate, -3 * last, 1e-6)
        np.testing.assert_allclose(by_time, [0.7 * last, 0, 0, 0, 0, 0, -0.7 * last], 1e-6, 1e-9)


def test_settings():
    f = lambda y, t: -y
    t = np.linspace(0.0, 2.0, 5).astype("f4")
    exact = np.exp(-t)
    np.testing.assert_allclose(odeint(f, 1.0, t, hmax=0.05), exact, 1e-5)
    np.testing.assert_allclose(odeint(f, 1.0, t, mxstep=100), exact, 1e-5)
    np.testing.assert_allclose(odeint(f, 1.0, t, mxstep=3), exact, 2e-2)  # goes on from where it got to
    coarse, fine = (np.abs(odeint(f, 1.0, t, rtol=e, atol=e) - exact).max() for e in (1e-2, 1e-6))
    assert fine < 1e-5 < coarse < 2e-2
    pulse = lambda y, t: jnp.where((t > 5) & (t < 5.1), 10.0, 0.0)  # which long steps would not see
    assert abs(float(odeint(pulse, 0.0, F4(0.0, 10.0), hmax=0.02, rtol=1e-4, atol=1e-4)[-1]) - 1) < 0.05
    counted = theirs.odeint(lambda y, t: -y, 1.0, t, mxstep=0)
    assert np.isnan(odeint(f, 1.0, t, mxstep=0))[1:].all() and np.isnan(counted)[1:].all()


def test_dtypes_and_containers():
    t = F4(0.0, 0.5, 1.0)
    for y0, f in (
        (1.0 + 0j, lambda y, t: 1j * y),
        ([1.0, 2.0], lambda y, t: [-v for v in y]),
        ([F4(1.0)[0], F4(2.0)[0]], lambda y, t: (-y[0], -y[1])),
    ):
        leaves_close(odeint(f, y0, t, rtol=1e-6), theirs.odeint(f, y0, t, rtol=1e-6), 1e-5)
    half = odeint(lambda y, t: -y, jnp.ones(2, jnp.bfloat16), t, rtol=1e-2, atol=1e-2)
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(half).astype("f4")[:, 0], np.exp(-t), 3e-2)
    assert odeint(lambda y, t: -y, 1.0, t[:1]).tolist() == [1.0]
    np.testing.assert_allclose(odeint(lambda y, t: -y, 1.0, F4(0.0, 0.0, 1.0, 1.0)), np.exp(F4(0, 0, -1, -1)), 1e-5)
    assert np.isnan(odeint(lambda y, t: -y, 1.0, -t)[1:]).all()  # times must increase
    assert np.isnan(odeint(lambda y, t: y * jnp.nan, 1.0, t)[1:]).all()


def test_complex_derivatives():
    def loss(m, solve):
        return lambda a: abs(solve(lambda y, t, a: a * y, m.array(1.0 + 0j), F4(0.0, 1.0), a, rtol=1e-6)[-1] - 2.0) ** 2

    a = np.complex64(0.3 + 0.7j)
    np.testing.assert_allclose(atled.grad(loss(jnp, odeint))(a), jax.grad(loss(jax.numpy, theirs.odeint))(a), 1e-4)


def test_what_the_function_closes_over():
    t = F4(0.0, 1.0, 2.0)

    def f(lib, solve):
        return lambda a, y0: solve(lambda y, t: -a * y * W[0, 0], y0, t, rtol=1e-6)[-1]

    for wrap in (lambda lib, f: f, lambda lib, f: lib.jit(f)):
        ours = wrap(atled, atled.grad(f(atled, odeint), (0, 1)))(2.0, 1.0)
        wanted = wrap(jax, jax.grad(f(jax, theirs.odeint), (0, 1)))(2.0, 1.0)
        leaves_close(ours, wanted, 1e-4)
    rates = F4(0.5, 1.0, 3.0)
    ours = atled.vmap(atled.grad(f(atled, odeint)), (0, None))(rates, 1.0)
    leaves_close(ours, jax.vmap(jax.grad(f(jax, theirs.odeint)), (0, None))(rates, 1.0), 1e-4)


def test_batches():
    f = lambda m: lambda y, t, a: m.stack([y[1], -a * m.sin(y[0])])
    y0, a = R.randn(4, 2).astype("f4"), F4(1.0, 2.0, 5.0, 20.0)
    ours = atled.vmap(lambda y, a: odeint(f(jnp), y, TIMES, a, rtol=1e-5, atol=1e-5))(y0, a)
    wanted = jax.vmap(lambda y, a: theirs.odeint(f(jax.numpy), y, TIMES, a, rtol=1e-5, atol=1e-5))(y0, a)
    leaves_close(ours, wanted, 1e-3)


def test_arguments_without_derivatives():
    g = atled.grad(
        lambda a: odeint(lambda y, t, n, on, a: jnp.where(on, -a * n * y, 0.0), 1.0, F4(0, 1), 3, True, a)[-1]
    )
    np.testing.assert_allclose(g(0.5), -3 * math.exp(-1.5), 1e-4)


def test_second_derivatives():
    f = lambda a: odeint(lambda y, t, a: -a * y, 1.0, F4(0, 1, 2), a)[-1]
    np.testing.assert_allclose(atled.grad(atled.grad(f))(2.0), 4 * math.exp(-4.0), 1e-3)


def test_signature():
    a, b = (inspect.signature(f).parameters.values() for f in (odeint, theirs.odeint))
    assert [(p.name, p.default, p.kind) for p in a] == [(p.name, p.default, p.kind) for p in b]


MISTAKES = {
    "must be a function": (TypeError, lambda: odeint(3, 1.0, TIMES)),
    "y0 must be a tree": (TypeError, lambda: odeint(lambda y, t: y, 1, TIMES)),
    "t must be an array of floating": (TypeError, lambda: odeint(lambda y, t: y, 1.0, np.arange(3))),
    "t must be a vector": (ValueError, lambda: odeint(lambda y, t: y, 1.0, np.float32(1.0))),
    "arguments of the function": (TypeError, lambda: odeint(lambda y, t, a: y, 1.0, TIMES, "fast")),
    "as many numbers as y has, 1; got 3": (ValueError, lambda: odeint(lambda y, t: jnp.ones(3), 1.0, TIMES)),
    "forward mode": (TypeError, lambda: atled.jvp(lambda y: odeint(lambda y, t: y, y, TIMES), (1.0,), (1.0,))),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_mistakes(says):
    error, call = MISTAKES[says]
    with pytest.raises(error, match=says):
        call()
