"""Random programs that change what functions read, and make a new function for every call.

A world is a namespace: globals, classes, modules, objects, cells, defaults, containers and functions that read them. A
program is a list of steps, each of which changes something in the world or makes a function and calls it. Run with
caches and with caches cleared before every call, it gives the same numbers, to the bit.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np
from hypothesis import strategies as st

import atled
import atled.numpy as jnp
from atled import lax

SOURCE = """
K = 1.0
class Base:
    momentum = 1.0
class C(Base):
    rate = 1.0
    @staticmethod
    def scaled(x): return x * K
    @classmethod
    def moved(cls, x): return x + cls.rate
class Thing:
    __slots__ = ("k",)
    def __init__(self, k): self.k = k
class Model:
    bias = 1.0
    def __init__(self, k): self.k = k
    def factor(self): return self.k
    def __call__(self, x): return x * self.factor() + self.bias
    def through(self, x): return helper(x) * self.k
model, thing = Model(1.0), Thing(1.0)
module = types.ModuleType("module")
module.k, module.inner = 1.0, types.ModuleType("inner")
module.inner.k = 1.0
def helper(x): return x * K
def deep(x): return helper(x) + C.rate
def with_default(x, k=1.0, *, m=1.0): return x * k + m
def cells(v):
    def read(x): return x + v
    def write(n):
        nonlocal v
        v = n
    return read, write
read, write = cells(1.0)
table, settings = [1.0], {"a": 1.0}
weights = np.ones(2, "f4")
def recursive(x, n=2): return x * K if n == 0 else recursive(x + 1.0, n - 1)
"""
CODE = compile(SOURCE, "<world>", "exec")

VALUES = [1, 1.0, True, np.float32(1.0), 2, 2.0, 0.0, -0.0, -1.0]

CHANGES = [
    "K = v", "C.rate = v", "Base.momentum = v", "C.momentum = v", "del_momentum()", "model.k = v", "thing.k = v",
    "Model.bias = v", "model.bias = v", "module.k = v", "module.inner.k = v", "write(v)", "table[0] = v",
    "settings['a'] = v", "weights[0] = v", "with_default.__defaults__ = (v,)", "with_default.__kwdefaults__ = {'m': v}",
    "model = Model(v)", "helper = lambda x: x + v * K", "helper = lambda x: x * K",
    "Model.factor = lambda self: self.k + v", "C.scaled = staticmethod(lambda x: x + v)",
    "helper.__code__ = (lambda x: x - K).__code__", "abs = lambda x: x * v", "globals().pop('abs', None)",
    "helper.note = v", "read, write = cells(v)",
]  # fmt: skip

FUNCTIONS = [
    "lambda x: x * K", "lambda x: jnp.copysign(x, K)", "lambda x: helper(x)", "lambda x: deep(x) * 2",
    "lambda x: x - C.rate", "lambda x: x * C.momentum", "lambda x: C.scaled(x)", "lambda x: C.moved(x)",
    "lambda x: x * module.k", "lambda x: x * module.inner.k", "lambda x: x * model.k", "model.through",
    "model.__call__",
    "lambda x: model(x)", "lambda x: model.through(x)", "lambda x: x * thing.k", "lambda x, k=K: x * k",
    "functools.partial(with_default, k=K)", "functools.partial(with_default)", "lambda x: read(x)",
    "functools.partial(lambda f, x: f(x), read)", "(lambda v: lambda x: x + v)(K)",
    "(lambda t: lambda x: x * t[1])((0, K))",
    "lambda x: x * table[0]", "lambda x: x * settings['a']", "lambda x: x * weights[0]", "lambda x: abs(x)",
    "lambda x: recursive(x)", "lambda x: sum([x * i * K for i in range(3)])", "lambda x: {K: x}",
    "lambda x: (lambda y: y * K)(x)", "atled.grad(lambda x: jnp.sum(helper(x) ** 2))",
    "lambda x: lax.scan(lambda c, y: (c + helper(y) * x, None), 0.0 * x, jnp.arange(2.0))[0]",
    "lambda x: lax.cond(jnp.sum(x) > 0, lambda y: 1.0 * helper(y), lambda y: 1.0 * deep(y), x)",
    "lambda x: getattr(C, 'rate') * x", "lambda x: vars(module)['k'] * x", "lambda x: x * with_default(K)",
    "lambda x: x * getattr(helper, 'note', 1.0)", "lambda x: x * helper.note if hasattr(helper, 'note') else x",
]  # fmt: skip

CALLS = [
    "jit(f)(x)",
    "jit(lambda x: f(x))(x)",
    "jit(f)(x[:1]) if x.shape else jit(f)(x)",
    "jit(lambda x, s: jnp.copysign(f(x), s) if isinstance(s, float) else f(x) * s, static_argnums=1)(x, v)",
    "jit(lambda d: {k: y * 2 for k, y in d.items()})({v: x})",
    "lax.scan(lambda c, y: (c + jnp.sum(leaves(f(y * x))[0]) * 1.0, None), 0.0, jnp.arange(2.0))[0]",
    "lax.cond(True, lambda y: leaves(f(y))[0] * 1.0, lambda y: y * 1.0, x)",
    "lax.fori_loop(0, 2, lambda i, y: y + jnp.sum(leaves(f(y))[0]) * 1.0, 1.0)",
    "leaves(f(x))[0] + v",
]


@st.composite
def programs(draw: Any) -> list[Any]:
    """Steps of a few kinds, so that each comes up again after a change."""
    functions = draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=2))
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=2))
    changes = draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4))
    step = st.tuples(
        st.integers(0, 2), st.sampled_from(changes), st.sampled_from(functions), st.sampled_from(calls),
        st.sampled_from(VALUES), st.sampled_from([True, True, True, False]),
    )  # fmt: skip
    return draw(st.lists(step, min_size=3, max_size=8))


def run(program: list[Any], is_cleared: bool) -> list[Any]:
    """What the calls of a program give, or the name of the error that they raise."""
    world: dict[str, Any] = {
        "types": types, "np": np, "jnp": jnp, "lax": lax, "atled": atled, "functools": functools, "jit": atled.jit,
        "leaves": atled.tree.leaves, "__name__": "world",
    }  # fmt: skip
    exec(CODE, world)
    world["del_momentum"] = lambda: "momentum" in vars(world["C"]) and delattr(world["C"], "momentum")
    found = []
    for count, change, function, call, v, is_vector in program:
        world["v"] = v
        for _ in range(count):
            try:
                exec(_compiled(change, "exec"), world)
            except Exception as error:
                found.append(type(error).__name__)
        if is_cleared:
            atled.clear_caches()
        try:
            world["f"] = eval(_compiled(function, "eval"), world)
            x = jnp.asarray([3.0, -2.0]) if is_vector else jnp.asarray(3.0)
            # `f` and `v` are rebound by the next step, so the calls get namespaces of their own
            out = eval(_compiled(call, "eval"), {**world, "x": x})
            found.append([(repr(k), *_bits(y)) for k, y in atled.tree.leaves_with_path(out)])
        except Exception as error:
            found.append(type(error).__name__)
    return found


@functools.cache
def _compiled(text: str, mode: str) -> Any:
    return compile(text, "<step>", mode)


def _bits(x: Any) -> Any:
    x = jnp.asarray(x)
    return x.dtype.name, x.weak_type, x.shape, np.asarray(x).tobytes()
