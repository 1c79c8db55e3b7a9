"""Functions of `nn` and `scipy` give arrays."""

from typing import assert_type

import atled.numpy as jnp
from atled import Array, nn
from atled.scipy import fft, linalg, ndimage, signal, special

x = jnp.ones((4, 4))
assert_type(nn.relu(x), Array)
assert_type(nn.gelu(x, approximate=False), Array)
assert_type(nn.softmax(x, axis=-1), Array)
assert_type(nn.log_softmax(x), Array)
assert_type(nn.one_hot(jnp.arange(3), 3), Array)
assert_type(nn.standardize(x), Array)
assert_type(special.gamma(x), Array)
assert_type(special.gammaln(2.5), Array)
assert_type(special.erf(x) + special.ndtr(x), Array)
assert_type(special.betainc(2.0, 3.0, x / 2), Array)
assert_type(special.logit(x / 2), Array)
assert_type(linalg.expm(x), Array)
assert_type(linalg.solve(x + jnp.eye(4), x), Array)
assert_type(linalg.toeplitz(x[0]), Array)
assert_type(signal.convolve(x[0], x[1]), Array)
assert_type(fft.dct(x), Array)
assert_type(ndimage.map_coordinates(x, [x[0], x[0]], 1), Array)
