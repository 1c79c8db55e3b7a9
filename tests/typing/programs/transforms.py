"""Functions that are compiled, batched and differentiated, and random draws."""

from typing import assert_type

import atled
import atled.numpy as jnp
from atled import Array


@atled.jit
def step(x: Array, rate: float = 0.1) -> Array:
    return x - rate * jnp.sin(x)


@atled.jit(static_argnames="n", donate_argnums=0)
def twice(x: Array, n: int) -> tuple[Array, Array]:
    return x * n, x


x = jnp.ones(3)
assert_type(step(x), Array)
assert_type(step(x, rate=0.5), Array)
assert_type(twice(x, n=2), tuple[Array, Array])
step.lower(x).compile()
assert_type(len(step.compiles), int)
assert_type(atled.jit(jnp.tanh)(x), Array)
assert_type(atled.vmap(step)(x), Array)
assert_type(atled.vmap(jnp.dot, in_axes=(0, None))(x, x), Array)

key = atled.random.key(0)
assert_type(key, Array)
first, second = atled.random.split(key)
assert_type(first, Array)
assert_type(atled.random.normal(first, (3,)), Array)
assert_type(atled.random.uniform(second, (3,), minval=-1.0), Array)
assert_type(atled.random.choice(second, x), Array)
assert_type(atled.random.fold_in(key, 1), Array)
