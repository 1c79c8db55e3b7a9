"""Classification losses: from logits (log-probabilities up to a constant) or scores."""

from __future__ import annotations

from typing import Any

import atled.numpy as jnp
from atled.core import errors
from atled.core.array import Array, ArrayLike, is_array_like, type_of
from atled.core.axes import check_axis
from atled.core.former_names import formerly
from atled.nn.activations import log_softmax, one_hot, sigmoid, softmax, softplus
from atled.nn.losses.loss_reductions import (
    alike,
    between,
    chosen,
    integers,
    numbers,
    reduced,
    selection,
    within,
)
from atled.nn.losses.regression import pair
from atled.transforms.grad import stop_gradient


@formerly(smoothing="label_smoothing")
def cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    axis: int = -1,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """-log(softmax(logits)[label]) for each example, computed as logsumexp(logits) - logits[label].

    With dense labels, -sum(labels * log(softmax(logits))) over the classes; a label of 0 contributes 0, even for an
    infinite logit.

    Args:
        logits: `(*examples, classes)`, or the classes at another `axis`.
        labels: integers `(*examples)`, or floating-point numbers of the shape of the logits, in rows that sum to 1.
        label_smoothing: the fraction of uniform probability mixed into the labels.
        z_loss: the coefficient of log(sum(exp(logits)))**2, which is added to keep logits from drifting.
        where: booleans `(*examples)`; labels where it is False may be any integers.

    Raises:
        ValueError: if a label is not one of the classes. In compiled code, only the first call is checked; in later
            calls, the loss of that example is NaN, and so are its gradients.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> logits, labels = jnp.array([[0.0, 0.0], [0.0, 3.0]]), jnp.array([1, 1])
    >>> losses.cross_entropy(logits, labels, reduction=None).round(3)
    Array([0.693, 0.049], dtype=float32)
    """
    name = "cross_entropy"
    between(name, "label_smoothing", label_smoothing, 0, 1)
    logits = numbers(name, "logits", logits)
    at = check_axis(f"losses.{name}", axis, logits.ndim)
    if logits.shape[at] == 0:
        raise ValueError(
            errors.explained(f"losses.{name}: there must be at least one class; got logits {logits.type}.")
        )
    shape = logits.shape[:at] + logits.shape[at + 1 :]
    mask = selection(name, where, shape)
    is_dense = is_array_like(labels) and type_of(labels).kind == "f"
    if is_dense:
        labels = jnp.moveaxis(alike(name, "labels", labels, logits, "the logits"), at, -1)
        labels = chosen(mask, labels, more=1)
    else:
        labels = chosen(mask, integers(name, "labels", labels, shape, f"the logits without axis {axis}"))
    logits = chosen(mask, jnp.moveaxis(logits, at, -1), more=1)
    if is_dense:
        values = _of_dense(logits, labels, label_smoothing, z_loss)
    else:
        labels, factor = within(name, "labels", labels, 0, logits.shape[-1], logits.dtype)
        values = of_labels(logits, labels, label_smoothing, z_loss)[0] * factor
    return reduced(name, values, mask, weights, reduction)


def of_labels(logits: Any, labels: Any, label_smoothing: Any, z_loss: Any) -> tuple[Any, Any, Any, Any]:
    """The cross entropy of each example with an integer label, and log(sum(exp(logits))); classes are last.

    Also returns exp(logits - max) and its sum, from which softmax is computed.
    """
    shifted, top = _shifted(logits)
    powers = jnp.exp(shifted)
    total = jnp.sum(powers, -1)
    log_total = jnp.log(total)
    target = (
        jnp.take_along_axis(logits, labels[..., None], -1)[..., 0] - top
    )  # from `logits`, so that `shifted` is not stored
    if not _is_zero(label_smoothing):
        target = (1 - label_smoothing) * target + label_smoothing * jnp.mean(shifted, -1)
    values, logsumexp = log_total - target, log_total + top
    values = values if _is_zero(z_loss) else values + z_loss * jnp.square(logsumexp)
    return values, logsumexp, powers, total


def _of_dense(logits: Any, labels: Any, label_smoothing: Any, z_loss: Any) -> Any:
    """The cross entropy of each example whose labels are probabilities."""
    if not _is_zero(label_smoothing):
        labels = (1 - label_smoothing) * labels + label_smoothing / logits.shape[-1]
    shifted, top = _shifted(logits)
    log_total = jnp.log(jnp.sum(jnp.exp(shifted), -1))
    values = -_expectation(labels, shifted - log_total[..., None])
    return values if _is_zero(z_loss) else values + z_loss * jnp.square(log_total + top)


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _shifted(logits: Any) -> tuple[Any, Any]:
    """Logits minus the maximum of their row, for accuracy with large logits, and the maximum."""
    top = stop_gradient(jnp.max(logits, -1, keepdims=True))
    return logits - top, top[..., 0]


def _expectation(probabilities: Any, logs: Any) -> Any:
    """sum(p * log q) over the last axis, where 0 * log 0 is 0."""
    return jnp.sum(probabilities * jnp.where((probabilities == 0) & jnp.isneginf(logs), 0, logs), -1)


@formerly(log_targets="log_target")
def kl_divergence(
    logits: ArrayLike,
    targets: ArrayLike,
    *,
    log_target: bool = False,
    axis: int = -1,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """sum(p * (log p - log q)) for each example, with q = softmax(logits) and the targets p.

    Log-probabilities are logits, too. With `log_target`, p = softmax(targets), as for a teacher's logits.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> round(float(losses.kl_divergence(jnp.zeros(2), jnp.array([0.0, 1.0]))), 4)
    0.6931
    """
    name = "kl_divergence"
    logits = numbers(name, "logits", logits)
    targets = alike(name, "targets", targets, logits, "the logits")
    at = check_axis(f"losses.{name}", axis, logits.ndim)
    logits, targets = jnp.moveaxis(logits, at, -1), jnp.moveaxis(targets, at, -1)
    mask = selection(name, where, logits.shape[:-1])
    logits, targets = chosen(mask, logits, targets, more=1)
    if log_target:
        logs = log_softmax(targets)
        targets = jnp.exp(logs)
    else:
        logs = jnp.log(jnp.where(targets == 0, 1, targets))
    values = _expectation(targets, logs) - _expectation(targets, log_softmax(logits))
    return reduced(name, values, mask, weights, reduction)


def _binary(logits: Any, labels: Any) -> Any:
    return labels * softplus(-logits) + (1 - labels) * softplus(logits)  # exact for both labels


def binary_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """-label * log(p) - (1 - label) * log(1 - p) for each element, with p = sigmoid(logit).

    Labels are 0 and 1, booleans, or probabilities, of the shape of the logits.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> losses.binary_cross_entropy(jnp.array([0.0, 100.0]), jnp.array([1, 0]), reduction=None)
    Array([  0.6931472, 100.       ], dtype=float32)
    """
    x, y, mask = pair("binary_cross_entropy", "logits", logits, labels, where)
    return reduced("binary_cross_entropy", _binary(x, y), mask, weights, reduction)


def focal(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    gamma: float = 2.0,
    alpha: float | None = None,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """(1 - p)**gamma times the binary cross entropy, with p the predicted probability of the label.

    Well-classified elements count little. With `alpha`, elements with label 1 have weight alpha, others 1 - alpha.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> losses.focal(jnp.array([0.0, 5.0]), jnp.array([1, 1]), reduction=None)[0].round(4)
    Array(0.1733, dtype=float32)
    """
    between("focal", "gamma", gamma, 0)
    x, y, mask = pair("focal", "logits", logits, labels, where)
    values = _binary(x, y)
    if not _is_zero(gamma):
        missed = sigmoid(x) * (1 - y) + sigmoid(-x) * y
        values = (
            values * jnp.maximum(missed, jnp.finfo(x.dtype).tiny) ** gamma
        )  # above 0, where powers have finite derivatives
    if alpha is not None:
        values = values * (alpha * y + (1 - alpha) * (1 - y))
    return reduced("focal", values, mask, weights, reduction)


def _margin(name: str, scores: Any, labels: Any, where: Any) -> tuple[Any, Any]:
    """max(0, 1 - label * score) for each score, and the mask; NaN for labels other than 1 and -1."""
    is_bool = is_array_like(labels) and type_of(labels).kind == "b"
    x, y, mask = pair(name, "logits", scores, labels, where)
    y = 2 * y - 1 if is_bool else jnp.where(jnp.abs(y) == 1, y, jnp.nan)
    return jnp.maximum(0, 1 - x * y), mask


def hinge(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """max(0, 1 - label * logit) for each element.

    Labels are -1 and 1, or booleans; with others, such as 0, the loss is NaN.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> losses.hinge(jnp.array([0.5, 0.5]), jnp.array([1, -1]), reduction=None)
    Array([0.5, 1.5], dtype=float32)
    """
    values, mask = _margin("hinge", logits, labels, where)
    return reduced("hinge", values, mask, weights, reduction)


def squared_hinge(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """max(0, 1 - label * logit)**2 for each element, with labels as in `hinge`.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> losses.squared_hinge(jnp.array([0.5, 0.5]), jnp.array([1, -1]), reduction=None)
    Array([0.25, 2.25], dtype=float32)
    """
    values, mask = _margin("squared_hinge", logits, labels, where)
    return reduced("squared_hinge", jnp.square(values), mask, weights, reduction)


def dice(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    smooth: float = 1.0,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """1 - (2 * sum(p * label) + smooth) / (sum(p) + sum(label) + smooth) for each example, summed over its positions.

    Args:
        logits: `(batch, *spatial)`, with p = sigmoid(logits); or `(batch, *spatial, classes)`, with p =
            softmax(logits) and integer labels of one axis fewer: the loss is then the mean over the classes.
        labels: 0 and 1, booleans or probabilities of the shape of the logits; or integers `(batch, *spatial)`.
        where: booleans `(batch, *spatial)`; an example without selected positions is ignored.
        weights: one factor for each example, `(batch,)`.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> round(float(losses.dice(jnp.array([[50.0, -50.0]]), jnp.array([[1, 1]]))), 4)
    0.25
    """
    name = "dice"
    x = numbers(name, "logits", logits)
    has_classes = is_array_like(labels) and type_of(labels).kind in "iu" and type_of(labels).ndim == x.ndim - 1
    places = x.shape[:-1] if has_classes else x.shape
    if len(places) < 2:
        raise ValueError(
            errors.explained(f"losses.dice: the logits must be (batch, *spatial); got {x.type}.", "logits[None].")
        )
    mask = selection(name, where, places)
    if has_classes:
        x = chosen(mask, x, more=1)
        y = chosen(mask, integers(name, "labels", labels, places, "the logits without classes"))
        y, factor = within(name, "labels", y, 0, x.shape[-1], x.dtype)
        p, y = softmax(x), one_hot(y, x.shape[-1], dtype=x.dtype) * factor[..., None]
    else:
        x, y = chosen(mask, x, alike(name, "labels", labels, x, "the logits"))
        p = sigmoid(x)
    p, y = chosen(mask, p, y, more=int(has_classes))
    axes = tuple(range(1, len(places)))
    values = 1 - (2 * jnp.sum(p * y, axes) + smooth) / (jnp.sum(p, axes) + jnp.sum(y, axes) + smooth)
    values = jnp.mean(values, -1) if has_classes else values
    return reduced(name, values, None if mask is None else jnp.any(mask, axes), weights, reduction)
