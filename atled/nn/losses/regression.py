"""Regression losses: one number for each element of predictions and targets, which have the same shape."""

from __future__ import annotations

import math
from typing import Any

import atled.numpy as jnp
from atled import lax
from atled.core.array import Array, ArrayLike
from atled.nn.losses.loss_reductions import alike, between, chosen, numbers, reduced, selection


def pair(name: str, what: str, predictions: Any, targets: Any, where: Any) -> tuple[Any, Any, Any]:
    """The validated predictions, targets and mask of an elementwise loss."""
    predictions = numbers(name, what, predictions)
    targets = alike(name, "labels" if what == "logits" else "targets", targets, predictions, f"the {what}")
    mask = selection(name, where, predictions.shape)
    return *chosen(mask, predictions, targets), mask


def squared_error(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """(prediction - target)**2 for each element; its mean is the mean squared error.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> float(losses.squared_error(jnp.array([1.0, 2.0]), jnp.array([1.0, 4.0])))
    2.0
    """
    p, t, mask = pair("squared_error", "predictions", predictions, targets, where)
    return reduced("squared_error", jnp.square(p - t), mask, weights, reduction)


def absolute_error(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """abs(prediction - target) for each element; its derivative is 0 where they are equal.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> float(losses.absolute_error(jnp.array([1.0, 2.0]), jnp.array([1.0, 4.0])))
    1.0
    """
    p, t, mask = pair("absolute_error", "predictions", predictions, targets, where)
    return reduced("absolute_error", jnp.abs(p - t), mask, weights, reduction)


def _huber(off: Any, delta: Any) -> Any:
    size = jnp.abs(off)
    return jnp.where(size <= delta, 0.5 * off * off, delta * (size - 0.5 * delta))


def huber(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    delta: float = 1.0,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """d**2 / 2 where abs(d) <= delta, with d = prediction - target, and delta * (abs(d) - delta / 2) beyond.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> losses.huber(jnp.array([1.0, 3.0]), jnp.zeros(2), reduction=None)
    Array([0.5, 2.5], dtype=float32)
    """
    between("huber", "delta", delta, 0)
    p, t, mask = pair("huber", "predictions", predictions, targets, where)
    return reduced("huber", _huber(p - t, delta), mask, weights, reduction)


def smooth_l1(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    beta: float = 1.0,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """`huber` with delta = beta, divided by beta: d**2 / (2 * beta) near 0, abs(d) - beta / 2 beyond.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> losses.smooth_l1(jnp.array([0.5, 3.0]), jnp.zeros(2), beta=0.5, reduction=None)
    Array([0.25, 2.75], dtype=float32)
    """
    between("smooth_l1", "beta", beta, 0)
    p, t, mask = pair("smooth_l1", "predictions", predictions, targets, where)
    values = jnp.abs(p - t) if isinstance(beta, (int, float)) and beta == 0 else _huber(p - t, beta) / beta
    return reduced("smooth_l1", values, mask, weights, reduction)


def log_cosh(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """log(cosh(d)), with d = prediction - target: d**2 / 2 near 0, abs(d) - log(2) for large d, exact in between.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> round(float(losses.log_cosh(jnp.array([1000.0]), jnp.zeros(1))), 3)
    999.307
    """
    p, t, mask = pair("log_cosh", "predictions", predictions, targets, where)
    off = p - t
    is_near = jnp.abs(off) < 1
    near = 0.5 * jnp.log1p(jnp.square(jnp.sinh(jnp.where(is_near, off, 0))))  # cosh(x)**2 is 1 + sinh(x)**2
    size = jnp.abs(off)
    values = jnp.where(is_near, near, size + jnp.log1p(jnp.exp(-2 * size)) - math.log(2))
    return reduced("log_cosh", values, mask, weights, reduction)


def poisson(
    log_rates: ArrayLike,
    targets: ArrayLike,
    *,
    full: bool = False,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """exp(x) - target * x: minus the log-likelihood of counts whose rates have the logarithms x.

    `full` adds log(target!), which does not depend on the predictions.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> float(losses.poisson(jnp.zeros(3), jnp.array([0, 1, 2])))
    1.0
    """
    x, t, mask = pair("poisson", "log_rates", log_rates, targets, where)
    values = jnp.exp(x) - t * x
    return reduced("poisson", values + lax.lgamma(t + 1) if full else values, mask, weights, reduction)
