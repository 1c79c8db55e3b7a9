"""Functions of `atled.lax`."""

from typing import assert_type

import atled.numpy as jnp
from atled import Array, lax

x = jnp.ones((3, 4))
assert_type(lax.sin(x), Array)
assert_type(lax.add(x, x), Array)
assert_type(lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST), Array)
assert_type(lax.clamp(0.0, x, 1.0), Array)
assert_type(lax.select(x > 0, x, -x), Array)
assert_type(lax.dynamic_slice(x, (0, 1), (2, 2)), Array)
assert_type(lax.dynamic_update_slice(x, x[:1], (0, 0)), Array)
assert_type(lax.conv_general_dilated(x[None], x[None], (1,), "SAME"), Array)
assert_type(lax.linalg.cholesky(x @ x.T), Array)
assert_type(lax.axis_size("i"), int)
