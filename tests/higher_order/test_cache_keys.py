"""The same function made anew hits the cache; a function that differs does not."""

from __future__ import annotations

import functools
import gc
import weakref

import numpy as np
import pytest

import atled
import atled.numpy as jnp

X = np.ones(3, "f4")
GLOBAL = 1.0


TRACES: list[str] = []


def traced(x):
    TRACES.append("t")
    return x


def again(make, times=4):
    """How often a function is traced when it is made anew for every call."""
    TRACES.clear()
    for _ in range(times):
        atled.jit(make())(X)
    return len(TRACES)


class Model:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return traced(x) * self.scale

    def step(self, x):
        return traced(x) + self.scale


MODEL = Model(2.0)


def with_default(scale):
    return lambda x, k=scale: traced(x) * k


def outer(scale):
    def inner(x):
        return traced(x) * scale

    return inner


def scaled(x, k):
    return traced(x) * k


PATTERNS = {
    "lambda": lambda: lambda x: traced(x) + 1.0,
    "closure over a number": lambda: outer(2.0),
    "closure over a string": lambda: (lambda mode: lambda x: traced(x) if mode == "a" else -x)("a"),
    "closure over a tuple": lambda: (lambda dims: lambda x: traced(x).reshape(dims))((3, 1)),
    "closure over a function": lambda: (lambda f: lambda x: traced(f(x)))(jnp.sin),
    "closure over a made function": lambda: (lambda f: lambda x: f(x))(outer(3.0)),
    "default argument": lambda: with_default(2.0),
    "partial": lambda: functools.partial(scaled, k=2.0),
    "partial of a lambda": lambda: functools.partial(lambda k, x: traced(x) * k, 2.0),
    "bound method": lambda: MODEL.step,
    "callable object": lambda: MODEL,
    "named function": lambda: traced,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_made_anew_traced_once(name):
    if name == "callable object":
        assert again(PATTERNS[name]) == 1
        return
    assert again(PATTERNS[name]) == 1


def test_different_values_are_different_functions():
    for make, want in [
        (lambda v: outer(v), lambda v: v),
        (lambda v: with_default(v), lambda v: v),
        (lambda v: functools.partial(scaled, k=v), lambda v: v),
        (lambda v: (lambda t: lambda x: x * t[0])((v,)), lambda v: v),
    ]:
        for v in (1.0, 2.0, 2, True, -1.0):
            assert float(atled.jit(make(v))(X)[0]) == want(v)


def test_zero_and_minus_zero_differ():
    f = lambda v: atled.jit((lambda s: lambda x: x * s)(v))(X)
    assert np.signbit(np.asarray(1.0 / f(-0.0)[0])) != np.signbit(np.asarray(1.0 / f(0.0)[0]))


def test_a_global_that_changed_is_seen():
    global GLOBAL
    for GLOBAL in (1.0, 5.0):
        assert float(atled.jit(lambda x: x * GLOBAL)(X)[0]) == GLOBAL  # noqa: B023


def test_closed_over_arrays_are_told_apart():
    out = [float(atled.jit((lambda w: lambda x: x * w)(jnp.float32(k)))(X)[0]) for k in range(4)]
    assert out == [0, 1, 2, 3]


def test_closed_over_arrays_compile_once():
    from atled.engine import execute

    before = dict(execute._loaded)
    for k in range(4):
        w = jnp.full((3,), float(k))
        atled.jit(lambda x, w=w: x * w + 0.123)(X)
    assert len([k for k in execute._loaded if k not in before and k[0] not in {b[0] for b in before}]) <= 2


def test_objects_that_are_closed_over_do_not_stay_alive():
    class Thing:
        value = 2.0

    thing = Thing()
    watch = weakref.ref(thing)

    def f(x):
        return x * thing.value  # noqa: F821

    atled.jit(f)(X)
    del f, thing
    gc.collect()
    assert watch() is None


def test_bound_methods_do_not_keep_their_object_alive():
    model = Model(3.0)
    watch = weakref.ref(model)
    assert float(atled.jit(model.step)(X)[0]) == 4.0
    del model
    gc.collect()
    assert watch() is None


def test_two_objects_of_one_class():
    a, b = Model(2.0), Model(3.0)
    assert float(atled.jit(a.step)(X)[0]) == 3.0 and float(atled.jit(b.step)(X)[0]) == 4.0


def test_recursive_functions():
    def count(n, x):
        return x if n == 0 else count(n - 1, x + 1.0)

    assert float(atled.jit(count, static_argnums=0)(3, 1.0)) == 4.0


def test_methods_of_classes_can_be_decorated():
    class Net:
        calls = 0

        def __init__(self, k):
            self.k = k

        @functools.partial(atled.jit, static_argnums=0)
        def __call__(self, x):
            Net.calls += 1
            return x * self.k

    a, b = Net(2.0), Net(3.0)
    assert [float(n(1.0)) for n in (a, b, a, b)] == [2, 3, 2, 3] and Net.calls == 2
