"""Discrete distributions: geometric, Poisson, binomial, multinomial, and random signs.

Computation is in float32 or wider, whatever the dtype of the result. The numbers equal JAX's for the same key up to
rounding, which differs because acceptance tests avoid cancellation between large numbers, and because the remainder of
Stirling's formula is evaluated at the count itself, also above 9. Samples have no derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.higher_order.scan import scan
from atled.higher_order.while_loop import while_loop
from atled.numpy.promotion import broadcast_shapes, common_dtype, inexact_dtype
from atled.ops.placement import placed
from atled.random.basic_samplers import float_dtype, integer_dtype, sample_shape, signs
from atled.random.inverse_transform import parameter, unit
from atled.random.keys import split_key, use
from atled.staging.jit import library_function
from atled.transforms.grad import stop_gradient


@library_function(static=("dims", "dtype"))
def _rademacher(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return signs(key, dims, dtype)


def rademacher(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """-1 or 1, both with probability one half.

    >>> from atled import random
    >>> set(rademacher(random.key(0), (20,)).tolist()) == {-1, 1}
    True
    """
    target_dtype = dtypes.canonical(int if dtype is None else dtype)
    if dtypes.kind(target_dtype) not in "ifc":
        raise ValueError(f"random.rademacher: the dtype must be signed; got {target_dtype.name}.")
    return placed(
        _rademacher(use("rademacher", key), sample_shape("rademacher", shape), target_dtype),
        out_sharding,
        "random.rademacher",
    )


def _work(*parameters: Any) -> Any:
    """The dtype to compute in: that of the parameters, at least float32."""
    wide = inexact_dtype(common_dtype([type_of(p) for p in parameters])[0])
    return dtypes.float32 if dtypes.bits(wide) < 32 else wide


@library_function(static=("dims", "dtype"))
def _geometric(key: Any, p: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    work = _work(p)
    u = unit(key, dims, work)
    tries = jnp.floor(jnp.log(jnp.where(u == 0, 1, u)) / jnp.log1p(-parameter(p, dims, work))) + 1
    return stop_gradient(tries).astype(dtype)


def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Geometrically distributed numbers of trials until the first success, each with probability p; at least 1.

    >>> from atled import random
    >>> abs(float(geometric(random.key(0), 0.25, (1000,)).mean()) - 4) < 0.4
    True
    """
    dims, dtype = sample_shape("geometric", shape, p), integer_dtype("geometric", dtype)
    return placed(_geometric(use("geometric", key), p, dims, dtype), out_sharding, "random.geometric")


def _until_accepted(key: Any, start: Any, is_done: Any, propose: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    """Rejection sampling: propose values for all elements, from two keys each time, until all are accepted."""

    def step(state: Any) -> Any:
        key, value, is_done = state
        keys = split_key(key, (3,))
        new, accepts = propose(keys[1], keys[2])
        return keys[0], jnp.where(accepts, new, value), is_done | accepts

    return while_loop(lambda state: ~jnp.all(state[2]), step, (key, start, is_done))[1]


_REST = np.array(
    [math.lgamma(n + 1) - (n + 0.5) * math.log(n + 1) + n + 1 - math.log(2 * math.pi) / 2 for n in range(10)]
)


def _stirling_rest(n: Any) -> Any:
    """log(n!) - ((n + 1/2) log(n + 1) - (n + 1) + log(2 pi) / 2), from a table for n up to 9, else from a series."""
    square = (n + 1) * (n + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (n + 1)
    table = jnp.asarray(_REST, type_of(n).dtype)
    return jnp.where(n <= 9, jnp.take(table, jnp.clip(n, 0, 9).astype("int32")), series)


# -- Poisson -------------------------------------------------------------------------------------------------------


def _few_events(key: Any, lam: Any) -> Any:
    """Poisson counts by Knuth's method: how many waiting times fit into `lam`; -1 if `lam` is negative or nan."""
    dims, dtype = type_of(lam).shape, type_of(lam).dtype

    def step(state: Any) -> Any:
        key, count, total = state
        keys = split_key(key, (2,))
        return keys[0], jnp.where(total > -lam, count + 1, count), total + jnp.log(unit(keys[1], dims, dtype))

    zeros = jnp.zeros(dims, dtype)
    return while_loop(lambda state: jnp.any(state[2] > -lam), step, (key, zeros, zeros))[1] - 1


def _many_events(key: Any, lam: Any) -> Any:
    """Poisson counts by Hörmann's transformed rejection (PTRS, 1993)."""
    dims, dtype = type_of(lam).shape, type_of(lam).dtype
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)

    def propose(first: Any, second: Any) -> tuple[Any, Any]:
        u, v = unit(first, dims, dtype) - 0.5, unit(second, dims, dtype)
        us = 0.5 - jnp.abs(u)
        n = jnp.floor((2 * a / us + b) * u + lam + 0.43)
        x = (lam - (n + 1)) / (n + 1)  # for log(lam**n exp(-lam) / n!) without cancellation
        log_mass = n * (jnp.log1p(x) - x) - x - (jnp.log(n + 1) + math.log(2 * math.pi)) / 2 - _stirling_rest(n)
        is_out = (n < 0) | ((us < 0.013) & (v > us))
        fits = jnp.log(v * scale / (a / (us * us) + b)) <= log_mass
        return n, ((us >= 0.07) & (v <= quick)) | (~is_out & fits)

    return _until_accepted(key, jnp.full(dims, -1, dtype), jnp.zeros(dims, bool), propose)


@library_function(static=("dims", "dtype"))
def _poisson(key: Any, lam: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    lam = stop_gradient(parameter(lam, dims, dtypes.float32))
    is_small, is_endless = ~(lam >= 10), jnp.isinf(lam)
    few = _few_events(key, jnp.where(is_small, lam, 0))
    many = _many_events(key, jnp.where(is_small | is_endless, 1e5, lam))
    counts = jnp.where(is_small, few, jnp.where(is_endless, jnp.inf, many))
    return jnp.where(lam == 0, 0, counts).astype(dtype)


def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Poisson-distributed counts with mean `lam`; -1 where `lam` is negative or nan.

    >>> from atled import random
    >>> abs(float(poisson(random.key(0), 40.0, (10000,)).mean()) - 40) < 0.5
    True
    """
    dims, dtype = sample_shape("poisson", shape, lam), integer_dtype("poisson", dtype)
    return placed(_poisson(use("poisson", key), lam, dims, dtype), out_sharding, "random.poisson")


# -- binomial ------------------------------------------------------------------------------------------------------


def _few_successes(key: Any, n: Any, p: Any) -> Any:
    """Binomially distributed counts for small n p, by summing geometric gaps between successes."""
    dims, dtype = type_of(p).shape, type_of(p).dtype
    log_failure = jnp.log1p(-p)

    def step(state: Any) -> Any:
        key, count, tried = state
        keys = split_key(key, (2,))
        jump = jnp.ceil(jnp.log(unit(keys[0], dims, dtype)) / log_failure)
        return keys[1], jnp.where(tried <= n, count + 1, count), tried + jump

    zeros = jnp.zeros(dims, dtype)
    return while_loop(lambda state: jnp.any(state[2] <= n), step, (key, zeros, zeros))[1] - 1


def _many_successes(key: Any, n: Any, p: Any) -> Any:
    """Binomial counts by Hörmann's transformed rejection (BTRS, 1993), for p <= 1/2 and n * p >= 10."""
    dims, dtype = type_of(p).shape, type_of(p).dtype
    deviation = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    quick, scale = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
    mode = jnp.floor((n + 1) * p)
    log_odds = jnp.log((mode + 1) * (1 - p) / (p * (n - mode + 1)))
    top = _stirling_rest(mode) + _stirling_rest(n - mode)

    def propose(first: Any, second: Any) -> tuple[Any, Any]:
        u, v = unit(first, dims, dtype) - 0.5, unit(second, dims, dtype)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + n * p + 0.5)
        away = k - mode  # log_ratio is log(probability of k / probability of the mode)
        hits, misses = jnp.log1p(-away / (k + 1)), jnp.log1p(away / (n - k + 1))
        log_ratio = (n + 1) * misses - away * log_odds + (k + 0.5) * (hits - misses)
        log_ratio = log_ratio + top - _stirling_rest(k) - _stirling_rest(n - k)
        is_in = (k >= 0) & (k <= n)
        fits = jnp.log(v * scale / (a / (us * us) + b)) <= log_ratio
        return k, ((us >= 0.07) & (v <= quick)) | (is_in & fits)

    return _until_accepted(key, jnp.full(dims, -1, dtype), jnp.zeros(dims, bool), propose)


def binomial_floats(key: Any, n: Any, p: Any) -> Any:
    """Binomially distributed counts for n and p of the same shape and dtype."""
    q = jnp.where(p < 0.5, p, 1 - p)
    is_bad = ~(n >= 0) | ~(q >= 0)
    is_endless = jnp.isinf(n)
    n = jnp.floor(n)
    is_few = is_bad | (n * q <= 10)
    few = _few_successes(key, jnp.where(is_few & ~is_bad & ~is_endless, n, -1), jnp.where(is_bad, 0.01, q))
    is_easy = is_few | is_endless
    many = _many_successes(key, jnp.where(is_easy, 1e4, n), jnp.where(is_easy, 0.5, q))
    counts = jnp.where(is_few, few, many)
    counts = jnp.where(p < 0.5, counts, n - counts)
    return jnp.where(is_bad, jnp.nan, jnp.where(is_endless, jnp.inf, counts))


@library_function(static=("dims", "dtype"))
def _binomial(key: Any, n: Any, p: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    work = dtype if dtype is dtypes.float64 else _work(p)
    n, p = (stop_gradient(parameter(v, dims, work)) for v in (n, p))
    return binomial_floats(key, n, p).astype(dtype)


def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Binomially distributed counts of successes in n trials with probability p; nan for invalid n or p.

    >>> from atled import random
    >>> abs(float(binomial(random.key(0), 100, 0.3, (10000,)).mean()) - 30) < 0.3
    True
    """
    dims, dtype = sample_shape("binomial", shape, n, p), float_dtype("binomial", dtype)
    return _binomial(use("binomial", key), n, p, dims, dtype)


@library_function(static=("dims", "dtype", "unroll"))
def _multinomial(key: Any, n: Any, p: Any, dims: tuple[int, ...], dtype: Any, unroll: int | bool) -> Any:
    work = dtype if dtype is dtypes.float64 else _work(n, p)
    n = stop_gradient(parameter(n, dims[:-1], work))
    p = jnp.moveaxis(stop_gradient(parameter(p, dims, work)), -1, 0)
    left = jnp.flip(jnp.cumsum(jnp.flip(p, 0), 0), 0)
    ratios = jnp.clip(p / jnp.where(left == 0, 1, left), 0, 1)

    def step(n: Any, given: Any) -> tuple[Any, Any]:
        ratio, key = given
        count = binomial_floats(key, n, ratio)
        return n - count, count

    _, counts = scan(step, n, (ratios, split_key(key, (dims[-1],))), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Counts of n draws in categories along the last axis, with probabilities proportional to p.

    `n` broadcasts against the other axes. `shape` is that of the result; `unroll` unrolls the loop over categories.

    >>> from atled import random
    >>> import atled.numpy as jnp
    >>> float(multinomial(random.key(0), 10, jnp.array([0.2, 0.3, 0.5])).sum())
    10.0
    """
    p = jnp.asarray(p)
    if p.ndim < 1:
        raise ValueError(f"random.multinomial: p needs an axis for the categories; got {p.type}.")
    lead = broadcast_shapes(p.shape[:-1], type_of(n).shape)
    dims = (
        (*lead, p.shape[-1])
        if shape is None
        else sample_shape("multinomial", shape, np.broadcast_to(0, (*lead, p.shape[-1])))
    )
    return _multinomial(use("multinomial", key), n, p, dims, float_dtype("multinomial", dtype), unroll)
