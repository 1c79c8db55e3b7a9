"""Functions of two operands in `lax`: axes of length one are repeated, and nothing else is, as in JAX."""

import jax
import numpy as np
import pytest
from jax import lax as jlax

import atled
from atled import lax

FLOATS = [
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "pow",
    "max",
    "min",
    "atan2",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "nextafter",
]
INTEGERS = ["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"]
SHAPES = [((1,), (2,)), ((2, 1), (1, 3)), ((2, 3), (2, 1)), ((0, 1), (1, 3)), ((), (2, 3)), ((2, 3), ())]


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_values(name):
    rng = np.random.RandomState(0)
    dtype = "float32" if name in FLOATS else "int32"
    for first, second in SHAPES:
        x, y = [np.asarray(rng.randint(1, 9, dims), dtype) for dims in (first, second)]
        want = getattr(jlax, name)(x, y)
        for f in (getattr(lax, name), atled.jit(getattr(lax, name))):
            got = f(x, y)
            assert got.shape == want.shape and np.allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "lt", "atan2"])
@pytest.mark.parametrize("shapes", [((2,), (1, 2)), ((2,), (3,)), ((2, 1), (3, 3)), ((1, 2), (2,))])
def test_what_does_not_fit(name, shapes):
    x, y = [np.ones(dims, "float32") for dims in shapes]
    for one in (jlax, lax):
        with pytest.raises((TypeError, ValueError)):
            getattr(one, name)(x, y)


def test_derivatives():
    x, y = np.float32([[1], [2]]), np.float32([[3, 4, 5]])
    want = jax.grad(lambda x, y: jlax.mul(x, y).sum() + jlax.pow(x, y).sum(), (0, 1))(x, y)
    got = atled.grad(lambda x, y: lax.mul(x, y).sum() + lax.pow(x, y).sum(), (0, 1))(x, y)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
