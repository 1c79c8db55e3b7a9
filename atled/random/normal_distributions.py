"""Distributions built on normal numbers: truncated, multivariate, Maxwell, log-normal, Wald.

The numbers equal JAX's for the same key, up to rounding. Two differences are intentional: `wald` avoids cancellation
for large means, and the shape of `double_sided_maxwell` is always the requested shape followed by the shape of the
parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.numpy.promotion import broadcast_shapes, common_dtype, inexact_dtype
from atled.ops import special
from atled.ops.placement import placed
from atled.random.basic_samplers import float_dtype, normal_floats, normals, sample_shape, signs, uniform_floats
from atled.random.inverse_transform import parameter, unit
from atled.random.keys import split_key, use
from atled.staging.jit import library_function
from atled.transforms.grad import stop_gradient

_ONE = np.float32(1)


@library_function(static=("dims", "dtype"))
def _truncated_normal(key: Any, lower: Any, upper: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    lower, upper = (parameter(v, dims, dtype) for v in (lower, upper))
    root = np.asarray(math.sqrt(2), dtype)
    u = uniform_floats(key, dims, dtype, special.erf(lower / root), special.erf(upper / root))
    bounds = zip((lower, upper), (np.inf, -np.inf), strict=True)
    inside = [jnp.nextafter(stop_gradient(v), np.asarray(way, dtype)) for v, way in bounds]
    return jnp.clip(root * special.erf_inv(u), *inside)


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Normal numbers truncated to the range from `lower` to `upper`.

    The distribution function is inverted in `dtype`: beyond 5 standard deviations, float32 gives only the ends of the
    interval.

    >>> from atled import random
    >>> x = truncated_normal(random.key(0), -1.0, 2.0, (1000,))
    >>> bool((x > -1).all() & (x < 2).all())
    True
    """
    dims = sample_shape("truncated_normal", shape, lower, upper)
    dtype = float_dtype("truncated_normal", dtype)
    return placed(
        _truncated_normal(use("truncated_normal", key), lower, upper, dims, dtype),
        out_sharding,
        "random.truncated_normal",
    )


@library_function(static=("dims", "dtype"))
def _lognormal(key: Any, sigma: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return jnp.exp(normals(key, dims, dtype) * jnp.asarray(sigma).astype(dtype))


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = _ONE,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers, real or complex, whose logarithm is normal with standard deviation `sigma`.

    >>> from atled import random
    >>> bool((lognormal(random.key(0), 0.5, (1000,)) > 0).all())
    True
    """
    dims = sample_shape("lognormal", shape, sigma)
    dtype = float_dtype("lognormal", dtype, "fc")
    return placed(_lognormal(use("lognormal", key), sigma, dims, dtype), out_sharding, "random.lognormal")


@library_function(static=("dims", "dtype"))
def _maxwell(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return jnp.linalg.norm(normal_floats(key, (*dims, 3), dtype), axis=-1)


def maxwell(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Maxwell-distributed numbers: lengths of 3-d standard normal vectors.

    >>> from atled import random
    >>> bool((maxwell(random.key(0), (1000,)) > 0).all())
    True
    """
    dims, dtype = sample_shape("maxwell", shape), float_dtype("maxwell", dtype)
    return placed(_maxwell(use("maxwell", key), dims, dtype), out_sharding, "random.maxwell")


@library_function(static=("dims", "dtype"))
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    keys = split_key(key, (2,))
    loc, scale = (jnp.asarray(v).astype(dtype) for v in (loc, scale))
    return signs(keys[1], dims, dtype) * _maxwell(keys[0], dims, dtype) * scale + loc


def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Numbers whose distance from `loc`, to either side, is `scale` times a `maxwell` number.

    The shape of the result is `shape` followed by the shape of the parameters.

    >>> from atled import random
    >>> import atled.numpy as jnp
    >>> double_sided_maxwell(random.key(0), jnp.zeros(3), 1.0, (2,)).shape
    (2, 3)
    """
    name = "double_sided_maxwell"
    dims = (*sample_shape(name, shape), *broadcast_shapes(type_of(loc).shape, type_of(scale).shape))
    return _double_sided_maxwell(use(name, key), loc, scale, dims, float_dtype(name, dtype))


@library_function(static=("dims", "dtype"))
def _wald(key: Any, mean: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """The method of Michael, Schucany and Haas (1976), with the smaller root computed without a difference."""
    keys = split_key(key, (2,))
    mean = parameter(mean, dims, dtype)
    spread = mean * normal_floats(keys[0], dims, dtype) ** 2
    ratio = ((jnp.sqrt(spread) + jnp.sqrt(spread + 4)) / 2) ** 2
    is_small = unit(keys[1], dims, dtype) <= ratio / (ratio + 1)
    return jnp.where(is_small, mean / ratio, mean * ratio)


def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Wald (inverse Gaussian) numbers: first passage times of a Brownian motion with drift, with the given mean.

    >>> from atled import random
    >>> abs(float(wald(random.key(0), 2.0, (10000,)).mean()) - 2) < 0.1
    True
    """
    dims, dtype = sample_shape("wald", shape, mean), float_dtype("wald", dtype)
    return placed(_wald(use("wald", key), mean, dims, dtype), out_sharding, "random.wald")


@library_function(static=("dims", "dtype", "method"))
def _multivariate_normal(key: Any, mean: Any, cov: Any, dims: tuple[int, ...], dtype: Any, method: str) -> Any:
    wide, _ = common_dtype([type_of(mean), type_of(cov)])
    wide = inexact_dtype(wide)
    work = dtypes.float32 if dtypes.bits(wide) < 32 else wide
    mean, cov = (jnp.asarray(v).astype(work) for v in (mean, cov))
    if method == "cholesky":
        factor = jnp.linalg.cholesky(cov)
    else:
        vectors, values = jnp.linalg.svd(cov)[:2] if method == "svd" else jnp.linalg.eigh(cov)[::-1]
        factor = vectors * jnp.sqrt(values[..., None, :])
    z = normal_floats(key, (*dims, type_of(mean).shape[-1]), dtype)
    return (mean + jnp.einsum("...ij,...j->...i", factor, z)).astype(dtype)


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Multivariate normal vectors, along a last axis, with a given mean and covariance matrix.

    `method` selects the square root of the matrix: 'cholesky', the fastest, needs a positive definite matrix; 'eigh'
    and 'svd' also accept singular ones. The default dtype is that of the parameters.

    >>> from atled import random
    >>> import atled.numpy as jnp
    >>> multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2), (5,)).shape
    (5, 2)
    """
    name = "multivariate_normal"
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(f"random.{name}: the method is 'cholesky', 'eigh' or 'svd'; got {method!r}.")
    mean, cov = jnp.asarray(mean), jnp.asarray(cov)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ValueError(
            f"random.{name}: a vector of n means and n x n covariances are needed; got {mean.type} and {cov.type}."
        )
    dtype = float_dtype(name, inexact_dtype(common_dtype([mean.type, cov.type])[0]) if dtype is None else dtype)
    lead = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    dims = lead if shape is None else sample_shape(name, shape, np.broadcast_to(0, lead))
    return placed(
        _multivariate_normal(use(name, key), mean, cov, dims, dtype, method), out_sharding, "random.multivariate_normal"
    )


@library_function(static=("dims", "dtype"))
def _orthogonal(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    work = dtypes.float32 if dtypes.bits(dtype) < 32 else dtype
    q, r = jnp.linalg.qr(normals(key, dims, dtype).astype(work))
    return (q * jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]).astype(dtype)


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Orthogonal (n, n) matrices, or unitary ones, uniformly distributed (Haar); or (n, m), the first rows or columns
    of one.

    >>> from atled import random
    >>> import atled.numpy as jnp
    >>> q = orthogonal(random.key(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
    True
    """
    rows, columns = sample_shape("orthogonal", (n, n if m is None else m))
    dims = (*sample_shape("orthogonal", shape), max(rows, columns), min(rows, columns))
    matrices = _orthogonal(use("orthogonal", key), dims, float_dtype("orthogonal", dtype, "fc"))
    return placed(matrices.mT if rows < columns else matrices, out_sharding, "random.orthogonal")
