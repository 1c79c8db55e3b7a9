"""`experimental.jet`: derivatives of high order, as JAX's `jet` and as nested `jvp`s give them."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn, random
from atled.jax.experimental.jet import jet

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.experimental.jet")

R = np.random.RandomState(0)
X = R.rand(3) + 0.3
M = R.randn(3, 3) + 2 * np.eye(3)
W = [R.randn(3, 4) * 0.5, R.randn(4, 2) * 0.5]


@atled.custom_jvp
def cube(x):
    return x**3


cube.defjvps(lambda t, out, x: 3 * x**2 * t)


def nested(f, x, terms):
    """Derivatives of f along a curve, by a `jvp` of a `jvp`, and so on."""
    curve = lambda s: f(x + sum([v * s**k / math.factorial(k) for k, v in enumerate(terms, 1)], 0 * x))
    out = []
    for _ in range(len(terms) + 1):
        out.append(curve(jnp.float64(0.0)))
        curve = lambda s, g=curve: atled.jvp(g, (s,), (jnp.float64(1.0),))[1]
    return out


ELEMENTWISE = {
    name: (lambda m, name=name: getattr(m, name))
    for name in ("sin", "cos", "tan", "exp", "log", "log1p", "expm1", "sqrt", "tanh", "sinh", "cosh", "arctan",
                 "square", "abs", "sign", "floor", "negative", "reciprocal", "arcsinh", "cbrt", "exp2")
}  # fmt: skip
COMMON = {
    **ELEMENTWISE,
    "product": lambda m: lambda x: x * m.sin(x) * x,
    "quotient": lambda m: lambda x: m.sin(x) / (1 + x * x),
    "one over": lambda m: lambda x: 2.0 / x,
    "powers": lambda m: lambda x: x**5 + x**-2 + x**2.5,
    "power of both": lambda m: lambda x: x**x,
    "matrices": lambda m: lambda x: (M.astype(x.dtype) @ x) @ m.outer(x, x),
    "network": lambda m: lambda x: m.tanh(x @ W[0].astype(x.dtype)) @ W[1].astype(x.dtype),
    "sums": lambda m: lambda x: m.cumsum(x) * x.sum(),
    "choices": lambda m: lambda x: m.where(x > 0.6, m.sin(x), x**2),
    "extremes": lambda m: lambda x: m.max(x) * m.maximum(x, 0.5) + m.min(x),
    "shapes": lambda m: lambda x: m.concatenate([x[::-1], x[:2] ** 2]).reshape(5, 1).T,
    "softmax": lambda m: lambda x: m.exp(x) / m.exp(x).sum(),
}
OURS = {
    "inverse": lambda x: jnp.linalg.inv(M + jnp.outer(x, x)),
    "determinant": lambda x: jnp.linalg.slogdet(M + jnp.outer(x, x))[1],
    "sort": lambda x: jnp.sort(x) * jnp.arange(3.0),
    "gather": lambda x: x[np.array([2, 0, 2])] * x.at[1].set(0.0),
    "scan": lambda x: lax.scan(lambda c, v: (c * jnp.sin(v), c + v), 1.0 + x[0], x),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) * x, x),
    "while": lambda x: lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] * jnp.cos(x)), (0, x))[1],
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "jit": atled.jit(lambda x: jnp.exp(-x) * x),
    "remat": atled.remat(lambda x: jnp.sin(jnp.cos(x))),
    "custom": lambda x: cube(jnp.sin(x)),
    "custom jit": atled.jit(lambda x: cube(jnp.sin(x))),
    "vmap": atled.vmap(lambda x: x * jnp.log(x)),
    "logsumexp": lambda x: nn.logsumexp(x),
    "gelu": nn.gelu,
    "erf": lambda x: lax.erf(x),
    "fft": lambda x: jnp.abs(jnp.fft.fft(x)) ** 2,
    "gradient": atled.grad(lambda x: jnp.sum(jnp.sin(x) ** 2 * x)),
    "stopped": lambda x: x * lax.stop_gradient(x),
    "drawn": lambda x: x * random.normal(random.key(0), (3,)),
}


def terms(order):
    r = np.random.RandomState(order)
    return [r.randn(3) for _ in range(order)]


def all_close(ours, wanted, tolerance=1e-9):
    for a, b in zip(atled.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)


@pytest.mark.parametrize("name", [*COMMON, *OURS])
def test_as_nested_derivatives(name):
    f = COMMON[name](jnp) if name in COMMON else OURS[name]
    with atled.enable_x64():
        value, series = jet(f, (X,), (terms(3),))
        wanted = nested(f, X, terms(3))
        rows = atled.tree.leaves(series)
        for i, v in enumerate(atled.tree.leaves(value)):
            mine = [v, *rows[3 * i : 3 * i + 3]]
            all_close(mine, [atled.tree.leaves(w)[i] for w in wanted], 1e-7)


@pytest.mark.parametrize("name", COMMON)
def test_as_jax(name):
    x, series = X.astype("f4"), [v.astype("f4") for v in terms(3)]
    for is_scaled in (True, False):
        try:
            wanted = theirs.jet(COMMON[name](jax.numpy), (x,), (series,), factorial_scaled=is_scaled)
        except (KeyError, NotImplementedError):
            pytest.skip("JAX has no rule for it")
        all_close(jet(COMMON[name](jnp), (x,), (series,), factorial_scaled=is_scaled), wanted, 2e-3)


def test_several_arguments_and_results():
    f = lambda m: lambda x, y: {"a": x * y, "b": (m.sin(x), 3.0), "c": y @ y}
    args = ((F(1), F(2)), ([F(3), F(4), F(5)], [F(6), F(7), F(8)]))
    ours, wanted = jet(f(jnp), *args), theirs.jet(f(jax.numpy), *args)
    all_close(ours, wanted, 1e-4)
    assert isinstance(ours[1]["a"], list) and len(ours[1]["b"]) == 2


def F(seed):
    return np.random.RandomState(seed).randn(3).astype("f4")


def test_high_orders():
    order = 12
    with atled.enable_x64():
        _, series = jet(lambda x: jnp.sin(jnp.exp(x) / (1 + x * x)), (0.3,), ([1.0] + [0.0] * (order - 1),))
        _, lower = jet(lambda x: jnp.sin(jnp.exp(x) / (1 + x * x)), (0.3,), ([1.0] + [0.0] * 4,))
        all_close(series[:5], lower)
        _, tanh = jet(jnp.tanh, (0.0,), ([1.0] + [0.0] * 8,))
        np.testing.assert_allclose(tanh, [1, 0, -2, 0, 16, 0, -272, 0, 7936], atol=1e-9)  # tangent numbers
        _, exp = jet(jnp.exp, (0.0,), ([1.0] + [0.0] * 9,), factorial_scaled=False)
        np.testing.assert_allclose(exp, [1 / math.factorial(k) for k in range(1, 11)])


def test_transforms():
    f = lambda j, m: lambda x: j(m.sin, (x,), ((m.ones_like(x), m.zeros_like(x), m.zeros_like(x)),))[1][2]
    ours, wanted = f(jet, jnp), f(theirs.jet, jax.numpy)
    all_close(atled.jit(ours)(0.5), jax.jit(wanted)(0.5), 1e-5)
    all_close(atled.grad(ours)(0.5), jax.grad(wanted)(0.5), 1e-5)
    all_close(atled.vmap(ours)(X.astype("f4")), jax.vmap(wanted)(X.astype("f4")), 1e-5)
    all_close(atled.jvp(ours, (0.5,), (1.0,)), jax.jvp(wanted, (0.5,), (1.0,)), 1e-5)
    twice = lambda x: jet(lambda y: jet(jnp.sin, (y,), ((1.0,),))[1][0], (x,), ((1.0,),))[1][0]
    np.testing.assert_allclose(twice(0.5), -math.sin(0.5), 1e-6)


def test_dtypes_and_constants():
    value, series = jet(lambda x: (jnp.floor(x).astype(int), jnp.ones(2), x), (1.5,), ((1.0, 0.0),))
    assert value[0].dtype == "int32" and [v.tolist() for v in series[1]] == [[0, 0]] * 2
    assert [float(v) for v in series[0]] == [0, 0]
    _, (first,) = jet(jnp.sin, (jnp.float16(0.5),), ((jnp.float16(1),),))
    assert first.dtype == "float16"
    all_close(jet(jnp.exp, (0.5 + 1j,), ((1j, 0j),)), theirs.jet(jax.numpy.exp, (0.5 + 1j,), ((1j, 0j),)), 1e-5)
    value, series = jet(jnp.sin, (0.5,), ((),))
    assert series == [] and abs(float(value) - math.sin(0.5)) < 1e-6


def test_signature():
    a, b = (inspect.signature(f).parameters.values() for f in (jet, theirs.jet))
    assert [(p.name, p.default, p.kind) for p in a] == [(p.name, p.default, p.kind) for p in b]


MISTAKES = {
    "must be tuples": (TypeError, lambda: jet(jnp.sin, 0.5, (1.0,))),
    "all of one length": (ValueError, lambda: jet(jnp.add, (0.5, 1.0), ((1.0,), (1.0, 0.0)))),
    "a tuple or list of terms": (TypeError, lambda: jet(jnp.sin, (0.5,), (1.0,))),
    "arguments must be arrays or numbers": (ValueError, lambda: jet(jnp.sin, ({"a": 1.0},), ((1.0,),))),
    "arguments must be floating or complex": (TypeError, lambda: jet(jnp.sin, (1,), ((1,),))),
    "terms must have the shape": (ValueError, lambda: jet(jnp.sin, (X,), ((X[:2],),))),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_mistakes(says):
    error, call = MISTAKES[says]
    with pytest.raises(error, match=says):
        call()
