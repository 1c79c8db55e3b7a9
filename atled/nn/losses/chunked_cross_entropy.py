"""`linear_cross_entropy`: the last layer fused with its loss, without materializing the logits of all tokens."""

from __future__ import annotations

import functools
import math
from typing import Any

import atled.numpy as jnp
from atled import lax
from atled.core import errors
from atled.core.array import Array, ArrayLike
from atled.core.former_names import formerly
from atled.core.trace import Tracer
from atled.higher_order.custom_derivatives import custom_vjp
from atled.higher_order.remat import remat
from atled.nn.losses.classification import of_labels
from atled.nn.losses.loss_reductions import (
    between,
    check_reduction,
    chosen,
    factors,
    integers,
    mean,
    numbers,
    selection,
    within,
)


@formerly(smoothing="label_smoothing", chunk="chunk_size")
def linear_cross_entropy(
    x: ArrayLike,
    weight: ArrayLike,
    labels: ArrayLike,
    *,
    chunk_size: int = 512,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """The cross entropy of the logits `x @ weight.T`, which are computed for one chunk of tokens at a time.

    The value is that of `cross_entropy(x @ weight.T, labels, …)`. Under reverse-mode
    differentiation, gradients with respect to x and weight are computed along with the
    loss, chunk by chunk: three matrix products in all, as without chunks. With
    `reduction=None`, the backward pass recomputes the logits instead. Products of 16-bit
    floats are accumulated in float32. Forward mode (`jvp`) is supported only for
    `reduction=None`.

    Args:
        x: `(*tokens, features)`, such as the output of the last block.
        weight: `(classes, features)`, such as the `weight` of an `nn.Embedding`, or `weight.T` of an `nn.Linear`.
        labels: integers `(*tokens)`.
        chunk_size: the number of tokens whose logits are in memory at a time. Each chunk takes tokens from the whole
            array (strided), so every device has a share of it if the tokens are sharded.

    >>> from atled import random
    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> x, weight, labels = jnp.ones((5, 2)), jnp.zeros((10, 2)), jnp.arange(5)
    >>> round(float(losses.linear_cross_entropy(x, weight, labels, chunk_size=2)), 4)
    2.3026
    """
    name = "linear_cross_entropy"
    check_reduction(name, reduction)
    settings = (_plain("label_smoothing", label_smoothing), _plain("z_loss", z_loss))
    between(name, "label_smoothing", label_smoothing, 0, 1)
    between(name, "chunk_size", chunk_size, 1)
    numbers(name, "x", x)
    numbers(name, "weight", weight)
    x, weight = jnp.asarray(x), jnp.asarray(weight)
    if not x.ndim or weight.ndim != 2 or x.shape[-1] != weight.shape[-1]:
        raise ValueError(
            errors.explained(
                "losses.linear_cross_entropy: x must be (*tokens, features) and weight (classes, features); got "
                f"{x.type} and {weight.type}.",
                "weight.T for the weight of an nn.Linear.",
            )
        )
    if not len(weight):
        raise ValueError(
            errors.explained(f"losses.{name}: there must be at least one class; got weight {weight.type}.")
        )
    shape = x.shape[:-1]
    mask = selection(name, where, shape)
    labels = chosen(mask, integers(name, "labels", labels, shape, "x without its last axis"))
    dtype = jnp.result_type(x, weight)
    x, weight = chosen(mask, x, more=1).astype(dtype), weight.astype(dtype)
    wide = jnp.promote_types(dtype, "float32")
    given = factors(name, mask, weights, jnp.zeros(shape, wide))
    labels, counts = within(name, "labels", labels, 0, len(weight), wide)
    counts = counts if given is None else counts * given
    parts = _Chunks(shape, int(chunk_size))
    if reduction is None:
        return parts.joined(_losses(parts.split(x), parts.split(labels), weight, settings)) * counts
    total = _total(parts.split(x), parts.split(labels), parts.split(counts), weight, settings)
    return total if reduction == "sum" else mean(total, mask, None if weights is None else given, math.prod(shape))


def _plain(what: str, x: Any) -> float:
    """A static setting, as a Python number."""
    if isinstance(x, Tracer):
        raise TypeError(
            errors.explained(
                f"losses.linear_cross_entropy: {what} must be a static number; got {x}.",
                f"static_argnames='{what}' for jit, or cross_entropy(x @ weight.T, …), where it may be traced.",
            )
        )
    return float(x)


class _Chunks:
    """Splits tokens into strided chunks of equal size, after padding with zeros."""

    def __init__(self, shape: tuple[int, ...], chunk: int) -> None:
        self.shape, self.tokens = shape, math.prod(shape)
        self.count = max(1, -(-self.tokens // chunk))
        self.size = -(-self.tokens // self.count)

    def split(self, x: Any) -> Any:
        """Chunks along a new first axis."""
        rest = x.shape[len(self.shape) :]
        x = x.reshape(self.tokens, *rest)
        x = jnp.pad(x, [(0, self.count * self.size - self.tokens)] + [(0, 0)] * len(rest))
        return jnp.swapaxes(x.reshape(self.size, self.count, *rest), 0, 1)

    def joined(self, x: Any) -> Any:
        """The tokens of all chunks, in their original order."""
        return jnp.swapaxes(x, 0, 1).reshape(-1)[: self.tokens].reshape(self.shape)


def _product(a: Any, b: Any, axes: tuple[int, int]) -> Any:
    """The product of a and b, contracted over one axis of each, in float32 or wider."""
    wide = jnp.promote_types(a.dtype, "float32")
    return lax.dot_general(a, b, (((axes[0],), (axes[1],)), ((), ())), preferred_element_type=wide)


def _losses(x: Any, labels: Any, weight: Any, settings: tuple[float, float]) -> Any:
    """The losses of chunks; logits are recomputed in the backward pass."""

    @remat
    def one(x: Any, labels: Any, weight: Any) -> Any:
        return of_labels(_product(x, weight, (1, 1)), labels, *settings)[0]

    return lax.map(lambda given: one(given[0], given[1], weight), (x, labels))


@functools.partial(custom_vjp, nondiff_argnums=(4,))
def _total(x: Any, labels: Any, counts: Any, weight: Any, settings: tuple[float, float]) -> Any:
    """The sum of losses, each times its factor in `counts`."""
    return jnp.sum(_losses(x, labels, weight, settings) * counts)


def _total_and_gradients(x: Any, labels: Any, counts: Any, weight: Any, settings: tuple[float, float]) -> Any:
    """The sum and its residuals: gradients with respect to x and weight, and the losses."""
    label_smoothing, z_loss = settings
    classes = jnp.arange(len(weight))

    def one(by_weight: Any, given: Any) -> Any:
        x, labels, counts = given
        logits = _product(x, weight, (1, 1))
        losses, log_total, powers, total = of_labels(logits, labels, label_smoothing, z_loss)
        is_label = classes == labels[:, None]
        softmax = powers * ((1 + 2 * z_loss * log_total) / total)[:, None]
        by_logits = jnp.where(is_label, softmax - (1 - label_smoothing), softmax) - label_smoothing / len(weight)
        by_logits = (by_logits * counts[:, None]).astype(x.dtype)
        by_x = _product(by_logits, weight, (1, 0))
        return by_weight + _product(by_logits, x, (0, 0)), (losses, by_x)

    by_weight, (losses, by_x) = lax.scan(one, jnp.zeros(weight.shape, counts.dtype), (x, labels, counts))
    return jnp.sum(losses * counts), (by_x, losses, by_weight, x[:0], weight[:0])


def _scaled(settings: tuple[float, float], kept: Any, scale: Any) -> Any:
    """The gradients, scaled by the cotangent of the sum."""
    by_x, losses, by_weight, x, weight = kept
    return (scale * by_x).astype(x.dtype), None, scale * losses, (scale * by_weight).astype(weight.dtype)


_total.defvjp(_total_and_gradients, _scaled)
