"""Distributions made from the basic draws: by inverting the distribution function, or by rejection.

Rejection draws for all elements at once and keeps what is accepted, until every element has one. Parameters broadcast
against the shape. Gradients go through the parameters where the draw is an explicit function of them; the rejection
loops (`gamma`, `poisson` and what is made from them) have none, and say so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import type_of
from atled.higher_order.jit import library_function
from atled.higher_order.loops import while_loop
from atled.ops import special
from atled.random.keys import fold_in, split_key, use
from atled.random.samplers import float_dtype, normal_floats, sample_shape, uniform_floats


def _unit(key: Any, dims: tuple[int, ...], dtype: Any, low: float = 0.0) -> Any:
    return uniform_floats(key, dims, dtype, np.asarray(low, dtype), np.asarray(1.0, dtype))


@library_function(static=("dims", "dtype"))
def _exponential(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return -jnp.log1p(-_unit(key, dims, dtype))


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Waiting times between events that come at rate 1."""
    return _exponential(use("exponential", key), sample_shape("exponential", shape), float_dtype("exponential", dtype))


@library_function(static=("dims", "dtype"))
def _laplace(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    low = np.asarray(-1 + dtypes.finfo(dtype).epsneg, dtype)
    u = uniform_floats(key, dims, dtype, low, np.asarray(1.0, dtype))
    return jnp.sign(u) * jnp.log1p(-jnp.abs(u))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers with density `exp(-abs(x)) / 2`."""
    return _laplace(use("laplace", key), sample_shape("laplace", shape), float_dtype("laplace", dtype))


@library_function(static=("dims", "dtype"))
def _logistic(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    u = _unit(key, dims, dtype, float(dtypes.finfo(dtype).eps))
    return jnp.log(u) - jnp.log1p(-u)


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers whose distribution function is the sigmoid."""
    return _logistic(use("logistic", key), sample_shape("logistic", shape), float_dtype("logistic", dtype))


@library_function(static=("dims", "dtype"))
def _cauchy(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return jnp.tan((_unit(key, dims, dtype, float(dtypes.finfo(dtype).eps)) - 0.5) * math.pi)


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers with density `1 / (pi * (1 + x**2))`."""
    return _cauchy(use("cauchy", key), sample_shape("cauchy", shape), float_dtype("cauchy", dtype))


@library_function(static=("dims", "dtype"))
def _pareto(key: Any, b: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return jnp.exp(-jnp.log1p(-_unit(key, dims, dtype)) / jnp.asarray(b).astype(dtype))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers from 1 up with density `b / x**(b + 1)`."""
    return _pareto(use("pareto", key), b, sample_shape("pareto", shape, b), float_dtype("pareto", dtype))


@library_function(static=("dims", "dtype"))
def _truncated_normal(key: Any, lower: Any, upper: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    lower, upper = (jnp.broadcast_to(jnp.asarray(v).astype(dtype), dims) for v in (lower, upper))
    root = np.asarray(math.sqrt(2), dtype)
    low, high = special.erf(lower / root), special.erf(upper / root)
    out = root * special.erf_inv(low + (high - low) * _unit(key, dims, dtype))
    inside = (jnp.nextafter(lower, np.asarray(np.inf, dtype)), jnp.nextafter(upper, np.asarray(-np.inf, dtype)))
    return jnp.clip(out, *inside)


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Normal numbers of which only those between `lower` and `upper` are kept."""
    dims = sample_shape("truncated_normal", shape, lower, upper)
    dtype = float_dtype("truncated_normal", dtype)
    return _truncated_normal(use("truncated_normal", key), lower, upper, dims, dtype)


# -- by rejection -----------------------------------------------------------------------------------------------------


def _until_accepted(key: Any, dims: tuple[int, ...], dtype: Any, propose: Callable[[Any], tuple[Any, Any]]) -> Any:
    """Propose values for all elements, again and again, until each has one that was accepted."""

    def step(state: Any) -> Any:
        count, value, is_done = state
        new, accepts = propose(fold_in(key, count))
        return count + 1, jnp.where(accepts & ~is_done, new, value), is_done | accepts

    start = (jnp.uint32(0), jnp.zeros(dims, dtype), jnp.zeros(dims, bool))
    return while_loop(lambda state: ~jnp.all(state[2]), step, start)[1]


def gamma_floats(key: Any, a: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """Gamma numbers by the method of Marsaglia and Tsang; below 1 the shape is raised by one, and lowered again."""
    boost, main = (split_key(key, (2,))[i] for i in (0, 1))
    a = jnp.broadcast_to(jnp.asarray(a).astype(dtype), dims)
    raised = jnp.where(a < 1, a + 1, a)
    d = raised - 1 / 3
    c = 1 / jnp.sqrt(9 * d)

    def propose(k: Any) -> tuple[Any, Any]:
        first, second = (split_key(k, (2,))[i] for i in (0, 1))
        x = normal_floats(first, dims, dtype)
        v = (1 + c * x) ** 3
        u = _unit(second, dims, dtype, float(dtypes.finfo(dtype).tiny))
        safe = jnp.where(v > 0, v, 1)
        return d * v, (v > 0) & (jnp.log(u) < 0.5 * x * x + d - d * v + d * jnp.log(safe))

    out = _until_accepted(main, dims, dtype, propose)
    lowered = jnp.log(_unit(boost, dims, dtype, float(dtypes.finfo(dtype).tiny))) / jnp.where(a < 1, a, 1)
    return jnp.where(a < 1, out * jnp.exp(lowered), out)


@library_function(static=("dims", "dtype"))
def _gamma(key: Any, a: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return gamma_floats(key, a, dims, dtype)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers with density `x**(a - 1) * exp(-x) / gamma(a)`.

    >>> from atled import random
    >>> abs(float(gamma(random.key(0), 3.0, (10000,)).mean()) - 3) < 0.1
    True
    """
    return _gamma(use("gamma", key), a, sample_shape("gamma", shape, a), float_dtype("gamma", dtype))


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Sums of the squares of `df` normal numbers."""
    dims, dtype = sample_shape("chisquare", shape, df), float_dtype("chisquare", dtype)
    return 2 * _gamma(use("chisquare", key), jnp.asarray(df) / 2, dims, dtype)


@library_function(static=("dims", "dtype"))
def _beta(key: Any, a: Any, b: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    keys = split_key(key, (2,))
    x, y = gamma_floats(keys[0], a, dims, dtype), gamma_floats(keys[1], b, dims, dtype)
    return x / (x + y)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers between 0 and 1 with density in proportion to `x**(a - 1) * (1 - x)**(b - 1)`."""
    return _beta(use("beta", key), a, b, sample_shape("beta", shape, a, b), float_dtype("beta", dtype))


@library_function(static=("dims", "dtype"))
def _t(key: Any, df: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    keys = split_key(key, (2,))
    half = jnp.asarray(df).astype(dtype) / 2
    return normal_floats(keys[0], dims, dtype) * jnp.sqrt(half / gamma_floats(keys[1], half, dims, dtype))


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers with Student's distribution of `df` degrees of freedom."""
    return _t(use("t", key), df, sample_shape("t", shape, df), float_dtype("t", dtype))


@library_function(static=("dims", "dtype"))
def _dirichlet(key: Any, alpha: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    parts = gamma_floats(key, alpha, (*dims, type_of(alpha).shape[-1]), dtype)
    return parts / jnp.sum(parts, axis=-1, keepdims=True)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers along a last axis that are positive and sum to one, with weights `alpha`."""
    alpha = jnp.asarray(alpha)
    if alpha.ndim < 1:
        raise ValueError(f"random.dirichlet: alpha needs an axis for the parts; got {alpha.type}.")
    dims = sample_shape("dirichlet", alpha.shape[:-1] if shape is None else shape)
    return _dirichlet(use("dirichlet", key), alpha, dims, float_dtype("dirichlet", dtype))


@library_function(static=("dims", "dtype"))
def _poisson(key: Any, lam: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    work = dtypes.float32
    lam = jnp.broadcast_to(jnp.asarray(lam).astype(work), dims)
    few, many = (split_key(key, (2,))[i] for i in (0, 1))
    is_small = lam < 10
    small, large = jnp.where(is_small, lam, 1), jnp.where(is_small, 20, lam)

    def more(state: Any) -> Any:  # how many exponential waiting times fit into lam
        i, count, left = state
        left = left + jnp.log1p(-_unit(fold_in(few, i), dims, work))
        return i + 1, jnp.where(left > 0, count + 1, count), left

    start = (jnp.uint32(0), jnp.zeros(dims, work), small)
    _, counted, _ = while_loop(lambda s: jnp.any(s[2] > 0), more, start)

    # Hörmann's transformed rejection
    b = 0.931 + 2.53 * jnp.sqrt(large)
    a = -0.059 + 0.02483 * b
    scale = jnp.log(1.1239 + 1.1328 / (b - 3.4))
    log_mean = jnp.log(large)

    def propose(k: Any) -> tuple[Any, Any]:
        first, second = (split_key(k, (2,))[i] for i in (0, 1))
        u, v = _unit(first, dims, work) - 0.5, _unit(second, dims, work, float(np.finfo(np.float32).tiny))
        us = 0.5 - jnp.abs(u)
        n = jnp.floor((2 * a / us + b) * u + large + 0.43)
        quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        bad = (n < 0) | ((us < 0.013) & (v > us))
        exact = jnp.log(v) + scale - jnp.log(a / (us * us) + b) <= -large + n * log_mean - special.lgamma(n + 1)
        return n, quick | (~bad & exact)

    rejected = _until_accepted(many, dims, work, propose)
    return jnp.where(is_small, counted, rejected).astype(dtype)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Any:
    """How many events happen in a time in which `lam` are expected.

    >>> from atled import random
    >>> abs(float(poisson(random.key(0), 40.0, (10000,)).mean()) - 40) < 0.5
    True
    """
    found = dtypes.canonical(int if dtype is None else dtype)
    if dtypes.kind(found) not in "iu":
        raise ValueError(f"random.poisson: the dtype must be an integer; got {found.name}.")
    return _poisson(use("poisson", key), lam, sample_shape("poisson", shape, lam), found)
