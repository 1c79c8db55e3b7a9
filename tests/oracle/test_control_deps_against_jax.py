"""`experimental.control_deps` orders what the compiler computes, as JAX's does."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest

import atled
from atled.jax.experimental import control_deps

jax = pytest.importorskip("jax")
X = np.random.RandomState(0).randn(32, 32).astype("float32")


def orders(lib, f):
    """The optimized program's order: for each value, those that are computed before it, by what they depend on."""
    text = lib.jit(f).lower(X).compile().as_text()
    lines = dict(re.findall(r"^ +(?:ROOT )?(%[\w.-]+) = (.*)$", text, re.M))
    before = {}
    for name, line in lines.items():
        found = re.search(r"control-predecessors=\{(.*?)\}", line)
        if found:
            before[name] = found[1].split(", ")
    return before


def libraries():
    return (atled, control_deps), (jax, importlib.import_module("jax.experimental.control_deps"))


def test_one_before_the_other():
    found = []
    for lib, module in libraries():

        def f(x, lib=lib, module=module):
            a, b = lib.numpy.dot(x, x), lib.numpy.dot(x.T, x)
            assert module.control_dep(b, a) == ()
            return a, b

        found.append(orders(lib, f))
        np.testing.assert_allclose(lib.jit(f)(X)[1], X.T @ X, rtol=1e-4, atol=1e-4)
    assert [len(v) for v in found[0].values()] == [len(v) for v in found[1].values()] == [1]


def test_in_a_row():
    found = []
    for lib, module in libraries():

        def f(x, lib=lib, module=module):
            steps = [lib.numpy.dot(x, x), lib.numpy.dot(x.T, x), lib.numpy.dot(x, x.T)]
            assert module.schedule(steps) is None
            return steps

        found.append(orders(lib, f))
    for before in found:  # two of three have one before them, and one of these has the other
        assert len(before) == 2 and len({*before} & {v for some in before.values() for v in some}) == 1


def test_calls_are_the_same():
    lines = []
    for lib, module in libraries():
        text = lib.jit(lambda x, y, module=module: (module.control_dep(x, y), x)[1]).lower(X, X).as_text()
        (line,) = [n for n in text.splitlines() if "@control_dep" in n]
        lines.append(re.findall(r"has_side_effect = true|tensor<32x32xf32>", line))
    assert lines[0] == lines[1]


def test_eager_and_transformed():
    assert control_deps.control_dep(1.0, 2.0) == () and control_deps.schedule([1.0]) is None

    def f(x):
        a, b = atled.numpy.sin(x), atled.numpy.cos(x)
        control_deps.control_dep(b, a)
        return atled.numpy.sum(a * b)

    np.testing.assert_allclose(atled.jit(atled.grad(f))(X), np.cos(2 * X), rtol=1e-4, atol=1e-4)
    many = atled.jit(atled.vmap(f))(X)
    np.testing.assert_allclose(many, (np.sin(X) * np.cos(X)).sum(1), rtol=1e-4, atol=1e-4)
    assert control_deps.control_dep(atled.numpy.ones(2), 1) == ()
