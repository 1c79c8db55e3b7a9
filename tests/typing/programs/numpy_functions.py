"""Functions of `atled.numpy` as users call them, and the types that a checker sees."""

from typing import assert_type

import numpy as np

import atled
import atled.numpy as jnp
from atled import Array

x = jnp.ones((3, 4))
assert_type(x, Array)
assert_type(jnp.zeros(3, "float32"), Array)
assert_type(jnp.arange(3), Array)
assert_type(jnp.asarray([1.0, 2.0]), Array)
assert_type(jnp.array(np.ones(3)), Array)
assert_type(jnp.full((2,), 7), Array)
assert_type(jnp.eye(3), Array)

# elementwise: arrays, NumPy arrays and numbers go in
assert_type(jnp.sin(x), Array)
assert_type(jnp.exp(2.0), Array)
assert_type(jnp.add(x, 1), Array)
assert_type(jnp.maximum(x, np.zeros(4)), Array)
assert_type(jnp.logical_and(x > 0, True), Array)
assert_type(jnp.isnan(x), Array)
assert_type(jnp.power(x, 2), Array)
assert_type(jnp.clip(x, 0, 1), Array)
assert_type(jnp.divmod(x, 2), tuple[Array, Array])
assert_type(jnp.round(x, 2), Array)

# reductions
assert_type(jnp.sum(x, axis=0, keepdims=True), Array)
assert_type(jnp.mean(x), Array)
assert_type(jnp.max(x, axis=1, initial=0.0, where=x > 0), Array)
assert_type(jnp.argmax(x, axis=-1), Array)
assert_type(jnp.var(x, ddof=1), Array)
assert_type(jnp.nansum(x), Array)
assert_type(jnp.cumsum(x, 0), Array)
assert_type(jnp.median(x), Array)
assert_type(jnp.quantile(x, 0.5), Array)

# shapes
assert_type(jnp.reshape(x, (4, 3)), Array)
assert_type(jnp.transpose(x), Array)
assert_type(jnp.concatenate([x, x], axis=1), Array)
assert_type(jnp.stack([x, x]), Array)
assert_type(jnp.split(x, 3), list[Array])
assert_type(jnp.broadcast_to(x, (2, 3, 4)), Array)
assert_type(jnp.expand_dims(x, 0), Array)
assert_type(jnp.squeeze(x), Array)
assert_type(jnp.tile(x, 2), Array)
assert_type(jnp.pad(x, 1), Array)
assert_type(jnp.meshgrid(x[0], x[0]), tuple[Array, ...])

# contractions
assert_type(jnp.dot(x, x.T), Array)
assert_type(jnp.matmul(x, x.T, precision="highest"), Array)
assert_type(jnp.einsum("ij,kj->ik", x, x), Array)
assert_type(jnp.tensordot(x, x, axes=2), Array)
assert_type(jnp.outer(x[0], x[0]), Array)

# searching and sorting
assert_type(jnp.where(x > 0, x, 0.0), Array)
assert_type(jnp.sort(x), Array)
assert_type(jnp.argsort(x, axis=0), Array)
assert_type(jnp.nonzero(x, size=3), tuple[Array, ...])
assert_type(jnp.take(x, jnp.arange(2), axis=0), Array)
assert_type(jnp.searchsorted(x[0], 0.5), Array)

# linear algebra and Fourier transforms
assert_type(jnp.linalg.inv(x @ x.T), Array)
assert_type(jnp.linalg.norm(x, axis=0), Array)
assert_type(jnp.linalg.solve(x @ x.T, x), Array)
assert_type(jnp.linalg.cholesky(x @ x.T), Array)
assert_type(jnp.fft.fft(x), Array)
assert_type(jnp.allclose(x, x), Array)
assert_type(jnp.shape(x), tuple[int, ...])
assert_type(atled.numpy.interp(0.5, x[0], x[1]), Array)

# results that depend on how a function is called
assert_type(jnp.where(x > 0), tuple[Array, ...])
assert_type(jnp.linspace(0, 1, 5), Array)
assert_type(jnp.linspace(0, 1, 5, retstep=True), tuple[Array, Array])
assert_type(jnp.unique(x), Array)
assert_type(jnp.atleast_1d(x), Array)
assert_type(jnp.atleast_2d(x, x), list[Array])
assert_type(jnp.float32(1), Array)
