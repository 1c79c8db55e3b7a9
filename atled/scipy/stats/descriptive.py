"""Descriptive statistics: the most frequent value, ranks, the standard error of the mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axis
from atled.numpy.promotion import promote_inexact
from atled.ops import cumulative
from atled.staging.jit import library_function


class ModeResult(NamedTuple):
    """The result of `mode`: the most frequent values, and how often they occur."""

    mode: Any
    count: Any


def _check_policy(name: str, nan_policy: str, known: tuple[str, ...] = ("propagate",)) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"{name}: nan_policy must be 'propagate', 'omit' or 'raise'; got {nan_policy!r}.")
    if nan_policy not in known:
        raise NotImplementedError(
            f"{name}: nan_policy {nan_policy!r} is not supported; use {' or '.join(map(repr, known))}."
        )


def _starts(x: Any) -> Any:
    """A mask of the elements of a sorted last axis that are the first of their value; all NaNs count as one value."""
    left, right = x[..., :-1], x[..., 1:]
    is_new = (left != right) & ~((left != left) & (right != right))
    return jnp.concatenate([jnp.ones((*x.shape[:-1], 1), bool), is_new], -1)


def _first_of_run(is_start: Any) -> Any:
    """For each position on the last axis, the position at which its run of equal values begins."""
    place = jnp.arange(is_start.shape[-1])
    return cumulative.cummax(jnp.where(is_start, place, 0), is_start.ndim - 1)


@library_function(static=("axis", "keepdims"))
def _mode(x: Any, axis: int | None, keepdims: bool) -> tuple[Any, Any]:
    result_dims = tuple([1 if axis is None or i == axis else n for i, n in enumerate(type_of(x).shape)])
    x = jnp.ravel(x) if axis is None else jnp.moveaxis(x, axis, -1)
    if x.shape[-1] == 0:
        none = jnp.full(x.shape[:-1], np.nan)
        values, counts = none, jnp.zeros_like(none)
    else:
        x = jnp.sort(x, -1)
        length = jnp.arange(x.shape[-1]) - _first_of_run(_starts(x)) + 1
        at = jnp.argmax(length, -1, keepdims=True)
        values, counts = jnp.take_along_axis(x, at, -1)[..., 0], jnp.max(length, -1)
    return (values.reshape(result_dims), counts.reshape(result_dims)) if keepdims else (values, counts)


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis (the smallest if tied) and its count; NaN counts as a value.

    >>> import atled.numpy as jnp
    >>> found = mode(jnp.array([3, 1, 2, 1, 3]))
    >>> int(found.mode), int(found.count)
    (1, 2)
    """
    _check_policy("mode", nan_policy)
    x = jnp.atleast_1d(a)
    return ModeResult(*_mode(x, axis if axis is None else check_axis("mode", axis, x.ndim), keepdims))


@library_function(static=("method", "axis"))
def _rankdata(x: Any, method: str, axis: int | None) -> Any:
    x = jnp.ravel(x) if axis is None else jnp.moveaxis(x, axis, -1)
    n, dtype = x.shape[-1], dtypes.default("f")
    order = jnp.argsort(x, -1, stable=True)
    place = jnp.argsort(order, -1)
    if method == "ordinal" or n == 0:
        rank = place + 1
    else:
        is_start = _starts(jnp.take_along_axis(x, order, -1))
        low = _first_of_run(is_start) + 1
        ends = jnp.concatenate([is_start[..., 1:], jnp.ones((*x.shape[:-1], 1), bool)], -1)
        high = n - jnp.flip(_first_of_run(jnp.flip(ends, -1)), -1)
        ranks = {"min": low, "max": high, "average": (low + high) * np.asarray(0.5, dtype)}
        sorted_ranks = ranks[method] if method != "dense" else jnp.cumsum(is_start, -1)
        rank = jnp.take_along_axis(sorted_ranks, place, -1)
    rank = jnp.where(jnp.any(x != x, -1, keepdims=True), np.nan, rank.astype(dtype))
    return rank if axis is None else jnp.moveaxis(rank, -1, axis)


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Ranks from 1, along an axis or of all elements; `method` says how ties are ranked. With a NaN, all ranks are NaN.

    >>> rankdata(np.float32([0, 2, 3, 2]))
    Array([1. , 2.5, 4. , 2.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"rankdata: method must be average, min, max, dense or ordinal; got {method!r}.")
    x = jnp.asarray(a)
    return _rankdata(x, method, axis if axis is None else check_axis("rankdata", axis, x.ndim))


@library_function(static=("axis", "ddof", "omits", "keepdims"))
def _sem(x: Any, axis: Any, ddof: int, omits: bool, keepdims: bool) -> Any:
    (x,) = promote_inexact("sem", x)
    spread = (jnp.nanstd if omits else jnp.std)(x, axis, ddof=ddof, keepdims=keepdims)
    is_counted = x == x if omits else jnp.ones_like(x, bool)
    return spread / jnp.sqrt(jnp.sum(is_counted, axis, dtype=spread.dtype, keepdims=keepdims))


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: the standard deviation divided by the square root of the count.

    >>> round(float(sem(jnp.array([1.0, 5.0, 5.0, 9.0]))), 3)
    1.633
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    return _sem(jnp.asarray(a), axis, int(ddof), nan_policy == "omit", bool(keepdims))
