"""Results that are numbers written into a program, and loops that carry nothing."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax


@pytest.mark.parametrize(
    "make", [lambda: jnp.full((), 3, "int32"), lambda: jnp.zeros(()), lambda: jnp.ones((), "bool")]
)
def test_a_scalar_made_while_tracing_is_an_array(make):
    want = np.asarray(make())[..., None]
    for run in (lambda: make()[..., None], lambda: make().reshape(1)):
        np.testing.assert_array_equal(atled.jit(run)(), want)
    np.testing.assert_array_equal(atled.vmap(lambda x: make()[None] + 0 * x)(jnp.ones(2)), np.stack([want, want]))


def test_a_number_from_an_inlined_function():
    assert float(atled.jit(lambda: atled.jit(lambda: 3, inline=True)().astype("float32"))()) == 3.0


def test_loops_that_carry_nothing():
    seen = (jnp.arange(3), jnp.zeros(3))
    for length in (0, 1, 2, 3):
        xs = tuple([x[:length] for x in seen])
        assert lax.scan(lambda carry, x: (carry, None), {}, xs) == ({}, None)
        assert atled.jit(lambda xs: lax.scan(lambda carry, x: (carry, None), {}, xs))(xs) == ({}, None)
    assert lax.fori_loop(0, 3, lambda i, carry: carry, {}) == {}
