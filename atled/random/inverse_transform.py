"""Distributions whose draws are an explicit function of one uniform number, by inverting the distribution function.

Parameters broadcast against the shape, and draws are differentiable in them. A draw has the resolution of its dtype:
16-bit floats use 10 (float16) or 7 (bfloat16) random bits, as in JAX, so that the numbers are the same.
The other distributions are in `normal_distributions.py`, `gamma_distributions.py` and `discrete_distributions.py`.
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
from atled.numpy.promotion import broadcast_shapes
from atled.ops.placement import placed
from atled.random.basic_samplers import float_dtype, sample_shape, uniform_floats
from atled.random.keys import use
from atled.staging.jit import library_function


def unit(key: Any, dims: tuple[int, ...], dtype: Any, low: float = 0.0) -> Any:
    """Uniform numbers from `low` up to 1."""
    return uniform_floats(key, dims, dtype, np.asarray(low, dtype), np.asarray(1.0, dtype))


def parameter(x: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """A parameter broadcast to the shape of the draw, in its dtype."""
    return jnp.broadcast_to(jnp.asarray(x).astype(dtype), dims)


@library_function(static=("dims", "dtype"))
def exponential_floats(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """Exponentially distributed numbers with rate 1."""
    return -jnp.log1p(-unit(key, dims, dtype))


def exponential(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Exponentially distributed numbers with rate 1.

    >>> from atled import random
    >>> abs(float(exponential(random.key(0), (1000,)).mean()) - 1) < 0.1
    True
    """
    dims, dtype = sample_shape("exponential", shape), float_dtype("exponential", dtype)
    return placed(exponential_floats(use("exponential", key), dims, dtype), out_sharding, "random.exponential")


@library_function(static=("dims", "dtype"))
def _laplace(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    low = np.asarray(-1 + dtypes.finfo(dtype).epsneg, dtype)
    u = uniform_floats(key, dims, dtype, low, np.asarray(1.0, dtype))
    return jnp.sign(u) * jnp.log1p(-jnp.abs(u))


def laplace(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with the Laplace distribution: density `exp(-abs(x)) / 2`.

    >>> from atled import random
    >>> abs(float(laplace(random.key(0), (1000,)).mean())) < 0.2
    True
    """
    dims, dtype = sample_shape("laplace", shape), float_dtype("laplace", dtype)
    return placed(_laplace(use("laplace", key), dims, dtype), out_sharding, "random.laplace")


@library_function(static=("dims", "dtype"))
def _logistic(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    u = unit(key, dims, dtype, float(dtypes.finfo(dtype).tiny))
    return jnp.log(u) - jnp.log1p(-u)


def logistic(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with the logistic distribution, whose distribution function is the sigmoid.

    >>> from atled import random
    >>> abs(float(logistic(random.key(0), (1000,)).mean())) < 0.2
    True
    """
    dims, dtype = sample_shape("logistic", shape), float_dtype("logistic", dtype)
    return placed(_logistic(use("logistic", key), dims, dtype), out_sharding, "random.logistic")


@library_function(static=("dims", "dtype"))
def _cauchy(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return jnp.tan((unit(key, dims, dtype, float(dtypes.finfo(dtype).eps)) - 0.5) * math.pi)


def cauchy(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with the Cauchy distribution: density `1 / (pi * (1 + x**2))`.

    >>> from atled import random
    >>> abs(float(jnp.median(cauchy(random.key(0), (1000,))))) < 0.2
    True
    """
    dims, dtype = sample_shape("cauchy", shape), float_dtype("cauchy", dtype)
    return placed(_cauchy(use("cauchy", key), dims, dtype), out_sharding, "random.cauchy")


@library_function(static=("dims", "dtype"))
def _pareto(key: Any, b: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return jnp.exp(exponential_floats(key, dims, dtype) / jnp.asarray(b).astype(dtype))


def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with the Pareto distribution: density `b / x**(b + 1)` for x >= 1.

    >>> from atled import random
    >>> bool((pareto(random.key(0), 3.0, (1000,)) >= 1).all())
    True
    """
    dims, dtype = sample_shape("pareto", shape, b), float_dtype("pareto", dtype)
    return placed(_pareto(use("pareto", key), b, dims, dtype), out_sharding, "random.pareto")


@library_function(static=("dims", "dtype"))
def _rayleigh(key: Any, scale: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    # uniform numbers are multiples of eps; instead of 0, eps / 2 is used, whose logarithm is finite
    u = jnp.maximum(unit(key, dims, dtype), np.asarray(2.0 ** -(int(dtypes.finfo(dtype).nmant) + 1), dtype))
    return parameter(scale, dims, dtype) * jnp.sqrt(-2 * jnp.log(u))


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Rayleigh-distributed numbers: lengths of 2-d normal vectors with standard deviation `scale`. The numbers equal
    JAX's, but are never inf.

    >>> from atled import random
    >>> bool((rayleigh(random.key(0), 2.0, (1000,)) > 0).all())
    True
    """
    dims, dtype = sample_shape("rayleigh", shape, scale), float_dtype("rayleigh", dtype)
    return placed(_rayleigh(use("rayleigh", key), scale, dims, dtype), out_sharding, "random.rayleigh")


@library_function(static=("dims", "dtype"))
def _triangular(key: Any, left: Any, mode: Any, right: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    left, mode, right = (parameter(v, dims, dtype) for v in (left, mode, right))
    u, width = unit(key, dims, dtype), right - left
    rising = left + jnp.sqrt(u * width * (mode - left))
    falling = right - jnp.sqrt((1 - u) * width * (right - mode))
    return jnp.where(u < (mode - left) / width, rising, falling)


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers between `left` and `right` with a triangular density that peaks at `mode`.

    >>> from atled import random
    >>> x = triangular(random.key(0), 0.0, 1.0, 3.0, (1000,))
    >>> bool((x >= 0).all() and (x <= 3).all())
    True
    """
    dims, dtype = sample_shape("triangular", shape, left, mode, right), float_dtype("triangular", dtype)
    return placed(
        _triangular(use("triangular", key), left, mode, right, dims, dtype), out_sharding, "random.triangular"
    )


@library_function(static=("dims", "dtype"))
def _weibull_min(key: Any, scale: Any, concentration: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    scale, concentration = parameter(scale, dims, dtype), parameter(concentration, dims, dtype)
    return exponential_floats(key, dims, dtype) ** (1 / concentration) * scale


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Weibull-distributed numbers, which exceed x with probability `exp(-(x / scale) ** concentration)`.

    Every element is an independent draw, also if the parameters have axes that `shape` does not have.

    >>> from atled import random
    >>> abs(float(weibull_min(random.key(0), 2.0, 1.0, (1000,)).mean()) - 2) < 0.2
    True
    """
    dims = broadcast_shapes(sample_shape("weibull_min", shape), type_of(scale).shape, type_of(concentration).shape)
    return _weibull_min(use("weibull_min", key), scale, concentration, dims, float_dtype("weibull_min", dtype))
