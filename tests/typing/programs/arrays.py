"""Operators, methods and attributes of arrays."""

from typing import Any, assert_type

import numpy as np

import atled.numpy as jnp
from atled import Array

x = jnp.ones((3, 4))
assert_type(x + 1, Array)
assert_type(1 + x, Array)
assert_type(x * np.ones(4), Array)
assert_type(2.0 / x, Array)
assert_type(x @ x.T, Array)
assert_type(-x, Array)
assert_type(abs(x), Array)
assert_type(x**2, Array)
assert_type(2**x, Array)
assert_type(x > 0, Array)
assert_type(x == x, Array)
assert_type((x > 0) & (x < 1), Array)
assert_type(~(x > 0), Array)
assert_type(1 << jnp.arange(3), Array)
assert_type(x[0, 1:], Array)
assert_type(x[x > 0], Array)
assert_type(x.T, Array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x.size, int)
assert_type(x.sum(), Array)
assert_type(x.mean(axis=(0, 1), keepdims=True), Array)
assert_type(x.reshape(4, 3), Array)
assert_type(x.reshape((4, -1)).astype("int32"), Array)
assert_type(x.transpose(1, 0), Array)
assert_type(x.ravel().cumsum().clip(0, 1), Array)
assert_type(x.argmax(), Array)
assert_type(float(x[0, 0]), float)
assert_type(int(x[0, 0]), int)
assert_type(bool(x[0, 0] > 0), bool)
assert_type(len(x), int)
assert_type(x.block_until_ready(), Array)
assert_type(x.tolist(), Any)
for row in x:
    assert_type(row, Array)
