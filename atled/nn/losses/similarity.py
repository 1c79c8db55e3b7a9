"""Losses of vectors, such as embeddings: by angles and distances."""

from __future__ import annotations

from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import errors
from atled.core.array import Array, ArrayLike, is_array_like, type_of
from atled.nn.losses.classification import cross_entropy
from atled.nn.losses.loss_reductions import alike, between, check_shape, chosen, numbers, reduced, selection
from atled.transforms.grad import stop_gradient


def _vectors(name: str, where: Any, **vectors: Any) -> tuple[Any, ...]:
    """Vectors of the same shape along the last axis, in float32 or wider, and the mask of selected vectors."""
    (first, x), *others = vectors.items()
    x = numbers(name, first, x)
    if not x.ndim:
        raise ValueError(errors.explained(f"losses.{name}: {first} must have an axis for its features; got {x.type}."))
    operands = [x, *[alike(name, n, y, x, first) for n, y in others]]
    mask = selection(name, where, x.shape[:-1])
    return *chosen(mask, *operands, more=1), mask


def _unit(x: Any) -> Any:
    """Vectors scaled to length 1 (zero stays zero); divides by the largest element first, so no square overflows."""
    top = stop_gradient(jnp.max(jnp.abs(x), -1, keepdims=True, initial=0))
    x = x / jnp.where(top == 0, 1, top)
    square = jnp.sum(x * x, -1, keepdims=True)
    return x / jnp.sqrt(jnp.where(square == 0, 1, square))


def _distance(x: Any, y: Any) -> Any:
    """The distance between vectors; its derivative is 0 where they are the same."""
    return jnp.linalg.norm(x - y, axis=-1)


def _signs(name: str, labels: Any, shape: tuple[int, ...], mask: Any) -> Any:
    """The validated labels of pairs of vectors: 1 and -1, or booleans."""
    check_shape(name, "labels", labels, shape, "the vectors without their last axis")
    if type_of(labels).kind not in "biuf":
        raise TypeError(errors.explained(f"losses.{name}: the labels must be real numbers; got {type_of(labels)}."))
    labels = jnp.asarray(labels)
    return chosen(mask, labels if labels.dtype == bool else labels.astype("float32"))


def _by_sign(labels: Any, same: Any, apart: Any) -> Any:
    """`same` for labels 1 and True, `apart` for -1 and False; NaN for other labels."""
    if labels.dtype == bool:
        return jnp.where(labels, same, apart)
    return jnp.where(labels == 1, same, jnp.where(labels == -1, apart, np.asarray(np.nan, same.dtype)))


def cosine_distance(
    x: ArrayLike,
    y: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """1 - cos(x, y) for each pair of vectors along the last axis; 1 if one of them is zero.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> losses.cosine_distance(jnp.array([[1.0, 0.0], [2.0, 0.0]]), jnp.array([[0.0, 1.0], [1.0, 0.0]]), reduction=None)
    Array([1., 0.], dtype=float32)
    """
    x, y, mask = _vectors("cosine_distance", where, x=x, y=y)
    return reduced("cosine_distance", 1 - jnp.sum(_unit(x) * _unit(y), -1), mask, weights, reduction)


def cosine_embedding(
    x: Array | np.ndarray,
    y: Array | np.ndarray,
    labels: ArrayLike,
    *,
    margin: float = 0.0,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """1 - cos(x, y) for pairs with label 1 (or True), max(0, cos(x, y) - margin) for those with -1 (or False).

    Labels are `(*pairs)` for vectors `(*pairs, features)`; other labels, such as 0, give NaN.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [1.0, 0.0]])
    >>> losses.cosine_embedding(x, x, jnp.array([1, -1]), reduction=None)
    Array([0., 1.], dtype=float32)
    """
    x, y, mask = _vectors("cosine_embedding", where, x=x, y=y)
    labels = _signs("cosine_embedding", labels, x.shape[:-1], mask)
    cosine = jnp.sum(_unit(x) * _unit(y), -1)
    values = _by_sign(labels, 1 - cosine, jnp.maximum(0, cosine - margin))
    return reduced("cosine_embedding", values, mask, weights, reduction)


def contrastive(
    x: Array | np.ndarray,
    y: Array | np.ndarray,
    labels: ArrayLike,
    *,
    margin: float = 1.0,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """d**2 / 2 for pairs with label 1 (or True), max(0, margin - d)**2 / 2 for those with -1 (or False).

    d is the Euclidean distance between x and y. Labels are `(*pairs)` for vectors `(*pairs, features)`.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> x, y = jnp.zeros((2, 2)), jnp.array([[3.0, 4.0], [0.0, 0.5]])
    >>> losses.contrastive(x, y, jnp.array([True, False]), reduction=None)
    Array([12.5  ,  0.125], dtype=float32)
    """
    x, y, mask = _vectors("contrastive", where, x=x, y=y)
    labels = _signs("contrastive", labels, x.shape[:-1], mask)
    near = jnp.sum(jnp.square(x - y), -1)
    values = _by_sign(labels, near, jnp.square(jnp.maximum(0, margin - _distance(x, y)))) / 2
    return reduced("contrastive", values, mask, weights, reduction)


def triplet(
    anchors: ArrayLike,
    positives: ArrayLike,
    negatives: ArrayLike,
    *,
    margin: float = 1.0,
    squared: bool = False,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with distances d or, if `squared`, their squares.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> a, p, n = jnp.zeros((1, 2)), jnp.array([[3.0, 4.0]]), jnp.array([[0.0, 2.0]])
    >>> float(losses.triplet(a, p, n))
    4.0
    """
    a, p, n, mask = _vectors("triplet", where, anchors=anchors, positives=positives, negatives=negatives)
    if squared:
        near, far = jnp.sum(jnp.square(a - p), -1), jnp.sum(jnp.square(a - n), -1)
    else:
        near, far = _distance(a, p), _distance(a, n)
    return reduced("triplet", jnp.maximum(0, near - far + margin), mask, weights, reduction)


def info_nce(
    x: Array | np.ndarray,
    y: Array | np.ndarray,
    *,
    temperature: ArrayLike = 0.1,
    symmetric: bool = False,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduction: str | None = "mean",
) -> Array:
    """The cross entropy of matching each row of x with the same row of y among all rows, with logits cos(x, y) /
    temperature.

    Both x and y are `(rows, features)`. With `symmetric`, the loss is averaged with that of matching rows of y with
    those of x. Rows that `where` does not select are neither queries nor candidates.

    >>> from atled.nn import losses
    >>> import atled.numpy as jnp
    >>> round(float(losses.info_nce(jnp.eye(2), jnp.eye(2), temperature=1.0)), 4)
    0.3133
    """
    if isinstance(temperature, (int, float)):
        between("info_nce", "the temperature", temperature, 1e-30)
    if is_array_like(x) and type_of(x).ndim != 2:
        raise ValueError(errors.explained(f"losses.info_nce: x must be (rows, features); got {type_of(x)}."))
    x, y, mask = _vectors("info_nce", where, x=x, y=y)
    if not len(x):
        return reduced("info_nce", jnp.sum(x * y, -1), mask, weights, reduction)  # no rows at all
    alikes = jnp.dot(_unit(x), _unit(y).T) / temperature
    labels = jnp.arange(len(alikes))

    def found(logits: Any) -> Any:
        if mask is not None:
            logits = jnp.where(mask[None], logits, np.asarray(-np.inf, logits.dtype))
        return cross_entropy(logits, labels, where=mask, reduction=None)

    values = (found(alikes) + found(alikes.T)) / 2 if symmetric else found(alikes)
    return reduced("info_nce", values, mask, weights, reduction)
