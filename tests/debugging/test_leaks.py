"""Values that outlive their transformation: the message names what kept them."""

from __future__ import annotations

import collections
import functools

import pytest

import atled
from atled import lax

STORE: list = []
TABLE: dict = {}


class Model:
    shared = None

    def __init__(self):
        self.cache = {}
        self.last = None

    def remember(self, x):
        self.last = x * 2
        return x

    def nest(self, x):
        self.cache["rows"] = [x, x + 1]
        return x

    def share(self, x):
        type(self).shared = x
        return x


class Slotted:
    __slots__ = ("value",)


def to_global(x):
    global KEPT
    KEPT = x
    return x


model, box, slot = Model(), collections.deque(), Slotted()
local: dict = {"deep": {"list": []}}
holders: list = [lambda: None]


def closure():
    kept = None

    def keep(x):
        nonlocal kept
        kept = x
        return x

    keep.read = lambda: kept
    return keep


keep = closure()
jit, grad, vmap = atled.jit, lambda f: atled.grad(lambda x: f(x) * 1.0), lambda f: lambda x: atled.vmap(f)(x[None])
PATTERNS = {
    "list": (jit, lambda x: STORE.append(x) or x, lambda: STORE[-1], "test_leaks.STORE[0]"),
    "dict": (jit, lambda x: TABLE.update(a=x) or x, lambda: TABLE["a"], "test_leaks.TABLE['a']"),
    "attribute": (jit, model.remember, lambda: model.last, "Model().last"),
    "nested attribute": (jit, model.nest, lambda: model.cache["rows"][1], "Model().cache['rows'][1]"),
    "class attribute": (jit, model.share, lambda: Model.shared, "Model.shared"),
    "global": (jit, to_global, lambda: KEPT, "test_leaks.KEPT"),
    "closure": (jit, keep, lambda: keep.read(), "kept in closure.<locals>"),
    "deep": (jit, lambda x: local["deep"]["list"].append(x) or x, lambda: local["deep"]["list"][-1],
             "test_leaks.local['deep']['list'][0]"),
    "function attribute": (jit, lambda x: setattr(to_global, "x", x) or x, lambda: to_global.x, "to_global.x"),
    "default": (jit, lambda x: holders.append(functools.partial(int, x)) or x, lambda: holders[-1].args[0], ""),
    "grad": (grad, lambda x: TABLE.update(g=x) or x, lambda: TABLE["g"], "test_leaks.TABLE['g']"),
    "vmap": (vmap, lambda x: TABLE.update(v=x) or x, lambda: TABLE["v"], "test_leaks.TABLE['v']"),
    "scan": (lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2), 
             lambda x: TABLE.update(s=x) or x, lambda: TABLE["s"], "test_leaks.TABLE['s']"),
    "cond": (lambda f: jit(lambda x: lax.cond(x > 0, f, f, x)), lambda x: TABLE.update(c=x) or x, lambda: TABLE["c"],
             "test_leaks.TABLE['c']"),
    "deque": (jit, lambda x: box.append(x) or x, lambda: box[-1], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_what_kept_the_value_is_named(name):
    transform, function, read, path = PATTERNS[name]
    STORE.clear()
    local["deep"]["list"].clear()
    transform(function)(atled.numpy.float32(1.0))
    value = read()
    with pytest.raises(atled.errors.UnexpectedTracerError, match="escaped by a side effect") as caught:
        _use(read)
    assert f"kept in {path}" in str(caught.value) if path else True, str(caught.value)
    del value


def _use(read):
    read() + 1


def test_checking_leaks():
    kept = []
    leak = atled.jit(lambda x: kept.append(x) or x * 2)
    with pytest.raises(atled.errors.UnexpectedTracerError, match=r"of jit, kept in kept"), atled.jax.checking_leaks():
        leak(1.0)
    kept.clear()
    with atled.jax.checking_leaks():
        assert float(atled.jit(atled.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x)))(1.0)) == 4.0
        atled.vmap(atled.remat(lambda x: x * 2))(atled.numpy.ones(3))
