"""Why a function is compiled again, and when that is too often; and jit switched off."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

CALLS = {
    "shape": (lambda f: (f(np.ones(3, "f4"), 1), f(np.ones(4, "f4"), 1)), r"argument x was f32\[3\] and is f32\[4\]"),
    "dtype": (lambda f: (f(np.ones(3, "f4"), 1), f(np.ones(3, "i4"), 1)), r"argument x was f32\[3\] and is i32\[3\]"),
    "weak": (lambda f: (f(jnp.float32(1), 1), f(1.0, 1)), r"argument x was f32\[\] and is ~f32\[\]"),
    "static": (lambda f: (f(1.0, 1), f(1.0, 2)), r"static argument n was 1 and is 2"),
    "static left out": (lambda f: (f(1.0), f(1.0, n=2)), r"static argument n was omitted, and is given"),
    "static text": (lambda f: (f(1.0, "a"), f(1.0, "b")), r"static argument n was 'a' and is 'b'"),
    "tree": (lambda f: (f({"a": 1.0}, 1), f({"b": 1.0}, 1)), r"arguments changed: x\['a'\] is gone; x\['b'\] is new"),
    "path": (lambda f: (f({"a": [1.0, jnp.ones(2)]}, 1), f({"a": [1.0, jnp.ones(3)]}, 1)),
             r"argument x\['a'\]\[1\] was f32\[2\] and is f32\[3\]"),
    "several": (lambda f: (f([1.0, 1.0], 1), f([1, 1], 1)), r"argument x\[0\] was ~f32\[\] and is ~i32\[\], and 1 m"),
    "nearest": (lambda f: (f(jnp.ones(3), 1), f(jnp.ones(3), 2), f(jnp.ones(4), 2)),
                r"number 3: argument x was f32\[3\] and is f32\[4\]"),
    "settings": (lambda f: (f(1.0, 1), _wide(f)), r"the settings were|argument x was"),
}  # fmt: skip


def _wide(f):
    with atled.enable_x64():
        return f(1.0, 1)


@pytest.mark.parametrize("name", CALLS)
def test_the_reason_is_given(name, caplog):
    calls, message = CALLS[name]
    with caplog.at_level(logging.WARNING, "atled"):
        calls(atled.jit(lambda x, n=2: (name, atled.tree.map(lambda v: v * 1, x))[1], static_argnums=1))
    text = caplog.text
    assert re.search(message, text), text
    assert "test_compiles.py" in text and re.search(r"\d+ ms, \d+ ms so far", text)


def test_the_first_time_nothing_is_said(caplog):
    f = atled.jit(lambda x: x + 1)
    f(1.0), f(2.0), f(3.0)
    jnp.sin(jnp.ones(3)), jnp.sin(jnp.ones(4))
    assert caplog.text == ""
    with atled.settings.override(explain_compiles=False):
        f(jnp.ones(2))
    assert caplog.text == ""


def test_too_many_compiles():
    f = atled.jit(lambda x: x * 2, max_compiles=2)
    f(jnp.ones(1)), f(jnp.ones(2)), f(jnp.ones(1))
    with pytest.raises(
        RuntimeError, match=r"has reached max_compiles=2, .*argument x was f32\[2\] and is f32\[3\]"
    ) as caught:
        f(jnp.ones(3))  # HERE
    assert "# HERE" in str(caught.value) and "try:" in str(caught.value)
    assert len(f.compiles) == 2


def test_without_jit_python_runs_the_loops():
    def f(x):
        seen.append("f")
        x = lax.cond(x > 0, lambda v: seen.append("yes") or v * 2, lambda v: seen.append("no") or v, x)
        x, ys = lax.scan(lambda c, s: (seen.append(float(lax.stop_gradient(s))) or c + s, c), x, jnp.arange(3.0))
        x = lax.fori_loop(0, 2, lambda i, c: seen.append(int(i)) or c * x, x)
        x = lax.while_loop(lambda c: c < 1000, lambda c: seen.append("w") or c * 3, x)
        return x + ys.sum()

    seen: list = []
    want = atled.jit(lambda x: f2(x))(1.0)
    with atled.disable_jit():
        got = atled.jit(f)(1.0)
        slope = atled.grad(atled.jit(f))(1.0)
    assert float(got) == float(want)
    assert seen[:7] == ["f", "yes", 0.0, 1.0, 2.0, 0, 1] and seen[7] == "w"
    assert float(slope) == pytest.approx(float(atled.jvp(f2, (1.0,), (1.0,))[1]))


def f2(x):
    x = lax.cond(x > 0, lambda v: v * 2, lambda v: v, x)
    x, ys = lax.scan(lambda c, s: (c + s, c), x, jnp.arange(3.0))
    x = lax.fori_loop(0, 2, lambda i, c: c * x, x)
    x = lax.while_loop(lambda c: c < 1000, lambda c: c * 3, x)
    return x + ys.sum()


def test_without_jit_batches_still_work():
    f = atled.vmap(lambda n: lax.while_loop(lambda c: c[0] > 1, lambda c: (c[0] // 2, c[1] + 1), (n, 0))[1])
    with atled.disable_jit():
        assert [int(v) for v in f(jnp.array([1, 8, 5]))] == [0, 3, 2]
        out = atled.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(jnp.array([True, False]), jnp.zeros(2))
        assert [float(v) for v in out] == [0.0, 1.0]
