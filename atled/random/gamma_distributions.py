"""The gamma distribution by rejection sampling, and others built on it: beta, Student's t, F, Dirichlet, points
in a ball.

The numbers equal JAX's for the same key, up to rounding: every element has its own key, from which it draws until a
value is accepted. 16-bit floats are drawn in float32 and rounded, where JAX computes in 16 bits. Draws are
differentiable in the parameters, by implicit reparametrisation (Figurnov et al., 2018).
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
from atled.higher_order.custom_derivatives import custom_jvp
from atled.higher_order.while_loop import while_loop
from atled.ops import special
from atled.ops.placement import placed
from atled.random.basic_samplers import float_dtype, normal_floats, sample_shape, signs, uniform_floats
from atled.random.inverse_transform import exponential_floats, parameter, unit
from atled.random.keys import split_key, use
from atled.staging.jit import library_function
from atled.transforms.vmap import vmap


def _boosted(key: Any, a: Any) -> tuple[Any, Any]:
    """Factors d and v of a gamma-distributed number with shape a, or a + 1 if a < 1 (Marsaglia and Tsang, 2000)."""
    dtype = type_of(a).dtype
    d = jnp.where(a >= 1, a, a + 1) - np.asarray(1 / 3, dtype)
    c = np.asarray(1 / 3, dtype) / jnp.sqrt(d)
    zero, one = np.zeros((), dtype), np.ones((), dtype)

    def positive(key: Any) -> tuple[Any, Any]:  # a normal number x with 1 + c * x > 0
        def again(state: Any) -> Any:
            keys = split_key(state[0], (2,))
            x = normal_floats(keys[1], (), dtype)
            return keys[0], x, 1 + x * c

        return while_loop(lambda state: state[2] <= 0, again, (key, zero, -one))[1:]

    def propose(state: Any) -> Any:
        keys = split_key(state[0], (3,))
        x, v = positive(keys[1])
        return keys[0], x * x, v * v * v, unit(keys[2], (), dtype)

    def is_rejected(state: Any) -> Any:
        _, square, v, u = state
        is_slow = u >= 1 - np.asarray(0.0331, dtype) * (square * square)
        return is_slow & (jnp.log(u) >= square / 2 + d * (1 - v + jnp.log(v)))

    return d, while_loop(is_rejected, propose, (key, zero, one, one + one))[2]


def _gamma_one(key: Any, a: Any, in_logs: bool) -> Any:
    dtype = type_of(a).dtype
    keys = split_key(key, (2,))
    d, v = _boosted(keys[0], a)
    if in_logs:
        wait = -exponential_floats(keys[1], (), dtype)
        return jnp.log(d) + jnp.log(v) + jnp.where((a >= 1) | (wait == 0), 0, wait * (1 / a))
    return d * v * jnp.where(a >= 1, 1, (1 - unit(keys[1], (), dtype)) ** (1 / a))


@custom_jvp
def _gammas(key: Any, a: Any) -> Any:
    """A gamma-distributed number for each element of a vector, each from its own key."""
    return vmap(lambda k, v: _gamma_one(k, v, False))(split_key(key, type_of(a).shape), a)


@_gammas.defjvp
def _gammas_jvp(primals: Any, tangents: Any) -> Any:
    out = _gammas(*primals)
    return out, tangents[1] * _slope(primals[1], out)


@custom_jvp
def _log_gammas(key: Any, a: Any) -> Any:
    return vmap(lambda k, v: _gamma_one(k, v, True))(split_key(key, type_of(a).shape), a)


@_log_gammas.defjvp
def _log_gammas_jvp(primals: Any, tangents: Any) -> Any:
    a, out = primals[1], _log_gammas(*primals)
    # near zero, `a * out - lgamma(a + 1)` is the log probability, which is held constant
    is_tiny = out < math.log(dtypes.finfo(type_of(out).dtype).eps)
    x = jnp.exp(jnp.where(is_tiny, 0, out))
    slope = jnp.where(is_tiny, (special.digamma(a + 1) - out) / a, _slope(a, x) / x)
    return out, tangents[1] * slope


def _slope(a: Any, x: Any) -> Any:
    from atled.lax.incomplete_functions import random_gamma_grad

    return random_gamma_grad(a, x)


def gamma_floats(key: Any, a: Any, dims: tuple[int, ...], dtype: Any, in_logs: bool = False) -> Any:
    """Gamma-distributed numbers, or their logarithms, which do not underflow if a is small."""
    work = dtypes.float32 if dtypes.bits(dtype) < 32 else dtype
    a = parameter(a, dims, work)
    if 0 in dims:
        return a.astype(dtype)
    return (_log_gammas if in_logs else _gammas)(key, a.reshape(-1)).reshape(dims).astype(dtype)


@library_function(static=("dims", "dtype", "in_logs"))
def _gamma(key: Any, a: Any, dims: tuple[int, ...], dtype: Any, in_logs: bool = False) -> Any:
    return gamma_floats(key, a, dims, dtype, in_logs)


def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with density `x**(a - 1) * exp(-x) / gamma(a)`.

    >>> from atled import random
    >>> abs(float(gamma(random.key(0), 3.0, (10000,)).mean()) - 3) < 0.1
    True
    """
    dims, dtype = sample_shape("gamma", shape, a), float_dtype("gamma", dtype)
    return placed(_gamma(use("gamma", key), a, dims, dtype), out_sharding, "random.gamma")


def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Logarithms of gamma-distributed numbers, finite also where those would underflow.

    >>> from atled import random
    >>> bool(jnp.isfinite(loggamma(random.key(0), 1e-4, (1000,))).all())
    True
    """
    dims, dtype = sample_shape("loggamma", shape, a), float_dtype("loggamma", dtype)
    return placed(_gamma(use("loggamma", key), a, dims, dtype, True), out_sharding, "random.loggamma")


@library_function(static=("dims", "dtype"))
def _chisquare(key: Any, df: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return jnp.exp(gamma_floats(key, jnp.asarray(df).astype(dtype) / 2, dims, dtype, True)) * 2


def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sums of the squares of `df` normal numbers.

    >>> from atled import random
    >>> abs(float(chisquare(random.key(0), 3.0, (1000,)).mean()) - 3) < 0.3
    True
    """
    dims, dtype = sample_shape("chisquare", shape, df), float_dtype("chisquare", dtype)
    return placed(_chisquare(use("chisquare", key), df, dims, dtype), out_sharding, "random.chisquare")


@library_function(static=("dims", "dtype"))
def _f(key: Any, dfnum: Any, dfden: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    keys = split_key(key, (2,))
    dfnum, dfden = (jnp.asarray(v).astype(dtype) for v in (dfnum, dfden))
    return (_chisquare(keys[1], dfnum, dims, dtype) / dfnum) / (_chisquare(keys[0], dfden, dims, dtype) / dfden)


def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Ratios of two `chisquare` numbers, each divided by its degrees of freedom (Fisher's distribution).

    >>> from atled import random
    >>> bool((f(random.key(0), 3.0, 5.0, (1000,)) > 0).all())
    True
    """
    dims, dtype = sample_shape("f", shape, dfnum, dfden), float_dtype("f", dtype)
    return placed(_f(use("f", key), dfnum, dfden, dims, dtype), out_sharding, "random.f")


@library_function(static=("dims", "dtype"))
def _beta(key: Any, a: Any, b: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    keys = split_key(key, (2,))
    x, y = gamma_floats(keys[0], a, dims, dtype, True), gamma_floats(keys[1], b, dims, dtype, True)
    top = jnp.maximum(x, y)
    x, y = jnp.exp(x - top), jnp.exp(y - top)
    return x / (x + y)


def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers between 0 and 1 with density proportional to `x**(a - 1) * (1 - x)**(b - 1)`.

    >>> from atled import random
    >>> x = beta(random.key(0), 2.0, 2.0, (1000,))
    >>> abs(float(x.mean()) - 0.5) < 0.05, bool((x > 0).all() & (x < 1).all())
    (True, True)
    """
    dims, dtype = sample_shape("beta", shape, a, b), float_dtype("beta", dtype)
    return placed(_beta(use("beta", key), a, b, dims, dtype), out_sharding, "random.beta")


@library_function(static=("dims", "dtype"))
def _t(key: Any, df: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    keys = split_key(key, (2,))
    half = jnp.asarray(df).astype(dtype) / 2
    return normal_floats(keys[0], dims, dtype) * jnp.sqrt(half / gamma_floats(keys[1], half, dims, dtype))


def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with Student's t distribution with `df` degrees of freedom.

    >>> from atled import random
    >>> t(random.key(0), 3.0, (2, 3)).shape
    (2, 3)
    """
    dims, dtype = sample_shape("t", shape, df), float_dtype("t", dtype)
    return placed(_t(use("t", key), df, dims, dtype), out_sharding, "random.t")


@library_function(static=("dims", "dtype"))
def _dirichlet(key: Any, alpha: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    logs = gamma_floats(key, alpha, (*dims, type_of(alpha).shape[-1]), dtype, True)
    parts = jnp.exp(logs - jnp.max(logs, axis=-1, keepdims=True, initial=-np.inf))
    return parts / jnp.sum(parts, axis=-1, keepdims=True)


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Dirichlet vectors: positive numbers along a last axis that sum to one, with concentrations `alpha`.

    >>> from atled import random
    >>> dirichlet(random.key(0), jnp.ones(3), (2,)).sum(-1).round(3)
    Array([1., 1.], dtype=float32)
    """
    alpha = jnp.asarray(alpha)
    if alpha.ndim < 1:
        raise ValueError(f"random.dirichlet: alpha must have at least one axis; got {alpha.type}.")
    lead = alpha.shape[:-1]
    dims = lead if shape is None else sample_shape("dirichlet", shape, np.broadcast_to(0, lead))
    return placed(
        _dirichlet(use("dirichlet", key), alpha, dims, float_dtype("dirichlet", dtype)),
        out_sharding,
        "random.dirichlet",
    )


@library_function(static=("dims", "dtype"))
def generalized_normals(key: Any, p: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """Numbers with density proportional to `exp(-abs(x)**p)`."""
    keys = split_key(key, (2,))
    root = 1 / jnp.asarray(p).astype(dtype)
    return signs(keys[1], dims, dtype) * gamma_floats(keys[0], root, dims, dtype) ** root


def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with density proportional to `exp(-abs(x)**p)`: p = 2 is the shape of `normal`, p = 1 that of `laplace`.

    >>> from atled import random
    >>> generalized_normal(random.key(0), 2.0, (2, 3)).shape
    (2, 3)
    """
    dims = sample_shape("generalized_normal", shape, p)
    dtype = float_dtype("generalized_normal", dtype)
    return placed(
        generalized_normals(use("generalized_normal", key), p, dims, dtype), out_sharding, "random.generalized_normal"
    )


@library_function(static=("dims", "dtype"))
def _ball(key: Any, p: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """Barthe, Guédon, Mendelson and Naor (2005): an extra exponential number in the norm moves points inside."""
    keys = split_key(key, (2,))
    g = generalized_normals(keys[0], p, dims, dtype)
    e = exponential_floats(keys[1], dims[:-1], dtype)
    p = jnp.asarray(p).astype(dtype)
    return g / ((jnp.sum(jnp.abs(g) ** p, axis=-1) + e) ** (1 / p))[..., None]


@library_function(static=("dims", "dtype"))
def _cube(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return uniform_floats(key, dims, dtype, -1.0, 1.0)


def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Points uniform in the `d`-dimensional ball `sum(abs(x)**p) <= 1`.

    With `p=inf` the ball is the cube from -1 to 1.

    >>> from atled import random
    >>> bool(((ball(random.key(0), 3, shape=(100,)) ** 2).sum(-1) <= 1).all())
    True
    """
    dims = (*sample_shape("ball", shape), *sample_shape("ball", d))
    dtype, key = float_dtype("ball", dtype), use("ball", key)
    is_cube = isinstance(p, float) and p == math.inf
    return placed(_cube(key, dims, dtype) if is_cube else _ball(key, p, dims, dtype), out_sharding, "random.ball")
