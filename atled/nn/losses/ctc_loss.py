"""`ctc`: a loss for sequences whose alignment with their labels is not known."""

from __future__ import annotations

from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import lax
from atled.core import errors
from atled.core.array import Array, ArrayLike, is_array_like, shown, type_of
from atled.nn.activations import log_softmax, logsumexp
from atled.nn.losses.loss_reductions import between, chosen, integers, numbers, reduced, selection, within
from atled.transforms.grad import stop_gradient

_NEVER = -1e30  # the logarithm of probability zero; unlike -inf, it has finite derivatives


def ctc(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    lengths: ArrayLike | None = None,
    label_lengths: ArrayLike | None = None,
    blank: int = 0,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """Connectionist temporal classification (CTC): -log of the probability of the labels, summed over all alignments
    with repetitions and blanks.

    The forward algorithm computes logarithms of probabilities, so nothing underflows.
    Labels that need more steps than there are have probability 0: their loss is infinite,
    and their gradients are 0. With `reduction="mean"`, all examples count the same,
    whatever their lengths.

    Args:
        logits: `(*batch, steps, classes)`.
        labels: integers `(*batch, count)`, none of them `blank`; labels beyond their lengths are ignored.
        lengths: integers `(*batch)`, the number of steps of each example; None means all steps.
        label_lengths: integers `(*batch)`, the number of labels of each example; None means all labels.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> round(float(losses.ctc(jnp.zeros((1, 2, 3)), jnp.array([[1]]))), 4)  # 1 1, 1 blank, blank 1: 3 of 9
    1.0986
    """
    name = "ctc"
    logits = numbers(name, "logits", logits)
    if logits.ndim < 2 or not is_array_like(labels) or type_of(labels).ndim != logits.ndim - 1:
        raise ValueError(
            errors.explained(
                "losses.ctc: the logits must be (*batch, steps, classes) and the labels (*batch, count); got "
                f"{logits.type} and {shown(labels)}."
            )
        )
    (*batch, steps, classes), count = logits.shape, type_of(labels).shape[-1]
    batch = tuple(batch)
    between(name, "blank", blank, 0, classes - 1)
    mask = selection(name, where, batch)
    labels = integers(name, "labels", labels, (*batch, count), "the logits' batch and label axis")
    times, good = _lengths("lengths", lengths, batch, steps, mask, logits.dtype)
    counts, good_counts = _lengths("label_lengths", label_lengths, batch, count, mask, logits.dtype)
    is_label = jnp.arange(count) < counts[..., None]
    if mask is not None:
        is_label &= mask[..., None]
    other = 1 if blank == 0 else 0  # a valid class, in place of ignored labels
    low, high = (1, classes) if blank == 0 else (0, classes - 1 if blank == classes - 1 else classes)
    if low < high:
        labels, good_labels = within(name, "labels", jnp.where(is_label, labels, other), low, high, logits.dtype)
        good_labels = jnp.where(labels == blank, jnp.nan, good_labels)
    else:  # the blank is the only class
        labels, good_labels = jnp.full_like(labels, blank), jnp.where(is_label, jnp.nan, 1).astype(logits.dtype)
    is_step = jnp.arange(steps) < times[..., None]
    if mask is not None:
        is_step &= mask[..., None]
    logs = log_softmax(chosen(is_step, logits, more=1))
    total = _total(logs, labels, is_step, counts, blank)
    factor = good * good_counts * jnp.prod(good_labels, -1)
    return reduced(name, -total * factor, mask, weights, reduction)


def _lengths(what: str, given: Any, batch: tuple[int, ...], most: int, mask: Any, dtype: Any) -> tuple[Any, Any]:
    """The lengths, with 0 for those out of range, and a factor that is NaN for these and 1 for others."""
    if given is None:
        return jnp.asarray(np.full(batch, most, "int32")), jnp.ones(batch, dtype)
    given = chosen(mask, integers("ctc", what, given, batch, "the batch"))
    return within("ctc", what, given, 0, most + 1, dtype)


def _total(logs: Any, labels: Any, is_step: Any, counts: Any, blank: int) -> Any:
    """The logarithm of the probability of labels, summed over alignments.

    The states are the labels with a blank before, between and after them. In each step the path stays, or advances by
    one state, or by two, skipping a blank between different labels.
    """
    blanks = jnp.full_like(labels, blank)
    ahead = jnp.concatenate([jnp.zeros_like(labels[..., :1], bool), labels[..., 1:] != labels[..., :-1]], -1)
    states = _between(blanks, labels, jnp.full((*labels.shape[:-1], 1), blank, labels.dtype))
    may_skip = _between(jnp.zeros_like(ahead), ahead, jnp.zeros((*labels.shape[:-1], 1), bool))
    emitted = jnp.maximum(jnp.take_along_axis(logs, states[..., None, :], -1), _NEVER)
    nothing = jnp.full((*labels.shape[:-1], 2), _NEVER, logs.dtype)

    def step(carry: Any, given: Any) -> tuple[Any, None]:
        (now, scale), (emitted, is_on) = carry, given
        before = jnp.concatenate([nothing, now], -1)
        two = jnp.where(may_skip, before[..., :-2], _NEVER)
        after = logsumexp(jnp.stack([now, before[..., 1:-1], two]), 0) + emitted
        top = stop_gradient(jnp.max(after, -1, keepdims=True))
        top = jnp.where(is_on[..., None] & (top > _NEVER / 2), top, 0)  # keeps values near 0, where float32 is accurate
        return (jnp.where(is_on[..., None], after - top, now), scale + top[..., 0]), None

    # paths start in the first blank, from which the first step reaches that blank and the first label
    first = jnp.where(jnp.arange(states.shape[-1]) == 0, 0, _NEVER).astype(logs.dtype)
    start = jnp.broadcast_to(first, states.shape), jnp.zeros(labels.shape[:-1], logs.dtype)
    (last, scale), _ = lax.scan(step, start, (jnp.moveaxis(emitted, -2, 0), jnp.moveaxis(is_step, -1, 0)))
    ends = jnp.stack([2 * counts, 2 * counts + 1], -1)
    total = logsumexp(jnp.take_along_axis(jnp.concatenate([nothing[..., :1], last], -1), ends, -1), -1)
    return jnp.where(total < _NEVER / 2, -jnp.inf, total + scale)


def _between(even: Any, odd: Any, end: Any) -> Any:
    """Two arrays interleaved along the last axis, followed by an end element."""
    turns = jnp.stack([even, odd], -1).reshape(*odd.shape[:-1], 2 * odd.shape[-1])
    return jnp.concatenate([turns, end], -1)
