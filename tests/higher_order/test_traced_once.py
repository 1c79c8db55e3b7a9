"""The Python of a loop, a branch or a rule runs once for each trace, however deep constructs are nested."""

import time

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

seen = []


def step(x):
    seen.append(x)
    return jnp.sin(x)


def own_jvp(x):
    f = atled.custom_jvp(step)
    f.defjvp(lambda primals, tangents: (jnp.sin(*primals), tangents[0] * jnp.cos(*primals)))
    return f(x)


def own_vjp(x):
    f = atled.custom_vjp(step)
    f.defvjp(lambda x: (step(x), x), lambda x, c: (c * jnp.cos(x),))
    return f(x)


CONSTRUCTS = {
    "scan": lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0],
    "scan of strong slices": lambda x: lax.scan(lambda c, v: (step(c) * v, c), x, jnp.ones(3))[0],
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1])), (0, x))[1],
    "condition of while_loop": lambda x: lax.while_loop(lambda c: step(c) < 0, lambda c: c + 1, x),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: step(c), x),
    "fori_loop to a traced number": lambda x: lax.fori_loop(0, jnp.int32(x), lambda i, c: step(c), x),
    "cond": lambda x: lax.cond(x > 0, step, lambda v: v, x),
    "switch": lambda x: lax.switch(jnp.int32(x), [jnp.cos, step, jnp.exp], x),
    "map": lambda x: lax.map(step, jnp.ones(3) * x).sum(),
    "checkpoint": lambda x: atled.remat(step)(x),
    "custom_jvp": own_jvp,
    "custom_vjp": own_vjp,
    "vmap": lambda x: atled.vmap(step)(jnp.ones(3) * x).sum(),
    "jit": lambda x: atled.jit(step)(x),
}
FORWARD_ONLY = ("while_loop", "condition of while_loop", "fori_loop to a traced number")


@pytest.mark.parametrize("start", [1.0, np.float32(1)], ids=["weak", "strong"])
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_the_python_runs_once(name, start):
    f = CONSTRUCTS[name]
    ways = {
        "jit": lambda g: atled.jit(g)(start),
        "eager": lambda g: g(start),
        "vmap": lambda g: atled.jit(atled.vmap(g))(jnp.asarray(start) * np.ones(2, np.float32)),
    }
    if name not in FORWARD_ONLY:
        ways["grad"] = lambda g: atled.jit(atled.grad(g))(start)
        ways["eager grad"] = lambda g: atled.grad(g)(start)
    if name != "custom_vjp":
        ways["jvp"] = lambda g: atled.jit(lambda x: atled.jvp(g, (x,), (x,)))(start)
    for way, run in ways.items():
        atled.clear_caches()
        seen.clear()
        run(lambda x: f(x))
        is_replaced = name == "custom_jvp" and way in ("grad", "eager grad", "jvp")  # by its rule
        assert len(seen) == (0 if is_replaced else 1), way


def test_a_carry_that_becomes_another_dtype_is_traced_again_and_no_more():
    seen.clear()
    total = lax.scan(lambda c, x: (step(c) + x, None), 0, jnp.ones(3))[0]
    assert total.dtype == np.float32 and len(seen) == 2


def test_a_weak_start_is_strong_where_the_body_makes_it_so():
    """As if the body had been run with a strong carry: what it computes with narrow arrays is float32."""
    half = jnp.ones(2, "bfloat16")
    carry, (same, product, inner) = lax.scan(
        lambda c, x: (c + x, (c, c * half, lax.scan(lambda d, _: (d * 2.0, d), c, None, length=2)[1])), 0.0, jnp.ones(3)
    )
    for out in (carry, same, product, inner):
        assert out.dtype == np.float32 and not out.weak_type
    np.testing.assert_array_equal(same, [0, 1, 2])
    np.testing.assert_array_equal(inner, [[0, 0], [1, 2], [2, 4]])


NESTED = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "scan of strong slices": lambda f: lambda x: lax.scan(lambda c, v: (f(c) * v, None), x, jnp.ones(1))[0],
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x),
    "while_loop": lambda f: lambda x: lax.while_loop(lambda c: c < 0, f, x),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda v: v, x),
    "checkpoint": lambda f: lambda x: atled.remat(f)(x),
}


@pytest.mark.parametrize("name", NESTED)
def test_nesting_costs_in_proportion_to_its_depth(name):
    f = step
    for _ in range(14):
        f = NESTED[name](f)
    made = [f, lambda x: atled.jvp(f, (x,), (x,)), lambda x: atled.vmap(f)(jnp.ones(2) * x)]
    for g in made if name == "while_loop" else [*made, atled.grad(f)]:
        atled.clear_caches()
        seen.clear()
        begin = time.process_time()
        atled.make_program(g)(1.0)
        assert len(seen) == 1 and time.process_time() - begin < 2.0
