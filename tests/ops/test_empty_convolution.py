"""Convolutions whose result, image or kernel has no elements, and their derivatives."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

CASES = {
    "window too long": ((1, 1, 3), (1, 1, 5), {}),
    "no batch": ((0, 2, 5), (3, 2, 2), {}),
    "no output features": ((2, 2, 5), (0, 2, 2), {}),
    "no input features": ((2, 0, 5), (3, 0, 2), {}),
    "no image": ((2, 2, 0), (3, 2, 2), {}),
    "no kernel": ((2, 2, 4), (3, 2, 0), {}),
    "strides": ((1, 2, 3), (3, 2, 5), {"window_strides": (2,)}),
    "dilated kernel": ((1, 2, 5), (3, 2, 3), {"rhs_dilation": (3,)}),
    "dilated image": ((1, 2, 2), (3, 2, 5), {"lhs_dilation": (2,)}),
    "groups": ((1, 4, 3), (4, 2, 5), {"feature_group_count": 2}),
    "two axes": ((1, 2, 3, 8), (3, 2, 5, 2), {"window_strides": (1, 2)}),
    "three axes": ((2, 2, 4, 3, 4), (3, 2, 2, 5, 1), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_of_nothing_are_zero(name):
    x_shape, kernel_shape, options = CASES[name]
    x, kernel = jnp.ones(x_shape), jnp.ones(kernel_shape)
    options = {"window_strides": (1,) * (len(x_shape) - 2), "padding": "VALID", **options}

    def f(x, kernel):
        return lax.conv_general_dilated(x, kernel, **options)

    for made in (f, atled.jit(f)):
        assert not np.asarray(made(x, kernel)).any()
    loss = lambda x, kernel: jnp.sum(f(x, kernel))
    for made in (atled.grad(loss, (0, 1)), atled.jit(atled.grad(loss, (0, 1))), atled.grad(atled.jit(loss), (0, 1))):
        for g, v in zip(made(x, kernel), (x, kernel), strict=True):
            np.testing.assert_array_equal(g, np.zeros(v.shape))
    y, t = atled.jvp(f, (x, kernel), (x, kernel))
    assert y.shape == t.shape and not np.asarray(t).any()
    (g,) = atled.vmap(atled.grad(loss), (0, None))(jnp.ones((1, *x_shape)), kernel)
    assert g.shape == x_shape
    atled.hessian(loss)(x, kernel)
