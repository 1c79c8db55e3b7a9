"""Objects with `__jax_array__`, such as the variables of libraries, are operands of library functions."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp


class Variable:
    def __init__(self, value):
        self.value = value

    @property
    def shape(self):
        return self.value.shape

    @property
    def dtype(self):
        return self.value.dtype

    def __jax_array__(self):
        return self.value


FUNCTIONS = {
    "unary": lambda v, x: jnp.sin(v),
    "binary": lambda v, x: jnp.multiply(x, v),
    "left": lambda v, x: x + v,
    "product": lambda v, x: jnp.dot(v, x),
    "asarray": lambda v, x: jnp.asarray(v) * 2,
    "named": lambda v, x: jnp.clip(x, min=v),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("times", [1, 3])
def test_operands(name, times):
    f, x, v = FUNCTIONS[name], jnp.float32([1.0, -2.0]), jnp.float32([3.0, 4.0])
    for _ in range(times):  # the second call finds the code that the first one installed
        for way in (lambda f: f, atled.jit, lambda f: atled.grad(lambda *a: f(*a).sum())):
            wrapped = way(lambda v, x: f(Variable(v), x))
            np.testing.assert_array_equal(wrapped(v, x), way(f)(v, x))


def test_a_new_array_is_new():
    v = Variable(jnp.ones(3))
    for made in (jnp.array(v), jnp.copy(v)):
        assert made is not v.value and made.unsafe_buffer_pointer() != v.value.unsafe_buffer_pointer()


def test_new_values_are_seen():
    v = Variable(jnp.float32(1.0))
    for n in range(4):
        v.value = jnp.float32(n)
        assert jnp.exp2(v) == 2.0**n
