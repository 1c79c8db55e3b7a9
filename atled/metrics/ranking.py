"""Ranking metrics: exact areas under the ROC and precision-recall curves, with ties.

For each threshold, examples with scores at or above it are predicted positive. Examples with equal scores share one
threshold; the curve of `auc` is a straight line over them, and the curve of `average_precision` has one point for all
of them.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import atled.numpy as jnp
from atled import lax
from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import Tracer
from atled.core.tree_registry import static, struct
from atled.metrics.metric import Metric, integers, mask_of, number, ratio


def auc(scores: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None) -> Array:
    """The area under the ROC curve: the probability that a positive example scores higher than a negative one.

    Pairs with equal scores count half. The result is NaN without positives or negatives, if a score is NaN, or if a
    label is not 0 or 1. All axes count as examples.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> float(metrics.auc(jnp.array([0.1, 0.4, 0.35, 0.8]), jnp.array([0, 0, 1, 1])))
    0.75
    """
    return _area(*_examples("auc", scores, labels, where))


def average_precision(scores: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None) -> Array:
    """The mean of the precision over thresholds, weighted by the increase in recall at each.

    The result is NaN without positives, if a score is NaN, or if a label is not 0 or 1. All axes count as examples.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> round(float(metrics.average_precision(jnp.array([0.1, 0.4, 0.35, 0.8]), jnp.array([0, 0, 1, 1]))), 4)
    0.8333
    """
    return _precision(*_examples("average_precision", scores, labels, where))


def _examples(name: str, scores: Any, labels: Any, where: Any) -> tuple[Any, Any, Any]:
    """Scores (NaN where a label is invalid), labels and mask, flattened."""
    number(name, "scores", scores)
    scores = jnp.asarray(scores)
    labels = integers(name, "labels", labels, type_of(scores).shape)
    mask = mask_of(name, where, labels.shape)
    if scores.type.kind != "f":
        scores = _as_floats(name, scores, mask)
    scores = jnp.where((labels == 0) | (labels == 1), scores, jnp.nan)
    return scores.reshape(-1), (labels == 1).reshape(-1), mask.reshape(-1)


def _as_floats(name: str, scores: Any, mask: Any) -> Any:
    """Integers as float64; those too large to be exact raise, or become NaN in compiled code."""
    floats = scores.astype("float64")
    if dtypes.bits(scores.dtype) <= 32:
        return floats
    is_large = jnp.abs(floats) >= 2**53
    if not isinstance(is_large, Tracer) and not isinstance(mask, Tracer) and jnp.any(mask & is_large):
        raise ValueError(
            errors.explained(
                f"{name}: scores that are integers must be below 2**53, or different ones would be equal as float64; "
                f"got {scores.type} with larger ones.",
                "ranks of the scores: jnp.unique(scores, return_inverse=True)[1].",
            )
        )
    return jnp.where(is_large, jnp.nan, floats)


def _curve(scores: Any, labels: Any, mask: Any) -> tuple[Any, ...]:
    """True and false positives at each example in order of decreasing score, and at the previous threshold.

    Also returns whether an example is the last one with its score, and whether any score is NaN. Masked-out examples
    come last.
    """
    is_spoilt = jnp.any(mask & jnp.isnan(scores))
    order = jnp.lexsort((-scores, ~mask))
    scores, labels, mask = scores[order], labels[order], mask[order]
    following = jnp.concatenate([scores[1:] != scores[:-1], jnp.ones(1, bool)])[: len(scores)]
    ends = jnp.concatenate([~mask[1:], jnp.ones(1, bool)])[: len(scores)]
    is_last = mask & (following | ends)
    counts = []
    for is_kind in (mask & labels, mask & ~labels):
        here = jnp.cumsum(is_kind.astype("int64"))
        seen = lax.cummax(jnp.where(is_last, here, 0))
        counts += [here, jnp.concatenate([jnp.zeros(1, "int64"), seen])[: len(here)]]
    return *[x.astype("float64") for x in counts], is_last, is_spoilt


def _area(scores: Any, labels: Any, mask: Any) -> Any:
    true, true_before, false, false_before, is_last, is_spoilt = _curve(scores, labels, mask)
    area = jnp.sum(jnp.where(is_last, (false - false_before) * (true + true_before) / 2, 0))
    pairs = jnp.sum(mask & labels).astype("float64") * jnp.sum(mask & ~labels).astype("float64")
    return jnp.where(is_spoilt, jnp.nan, ratio(area, pairs))


def _precision(scores: Any, labels: Any, mask: Any) -> Any:
    true, true_before, false, _, is_last, is_spoilt = _curve(scores, labels, mask)
    area = jnp.sum(jnp.where(is_last, (true - true_before) * ratio(true, true + false, 0.0), 0))
    return jnp.where(is_spoilt, jnp.nan, ratio(area, jnp.sum(mask & labels)))


@struct
class _Store(Metric):
    """The scores and labels of at most `size` examples."""

    size: int = static(default=10000)
    dtype: str = static(default="float32")
    scores: Any = dataclasses.field(kw_only=True, default=None)
    labels: Any = dataclasses.field(kw_only=True, default=None)
    count: Any = dataclasses.field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(errors.explained(f"{type(self).__name__}: size must be 1 or more; got {self.size}."))
        if self.scores is None:
            object.__setattr__(self, "scores", jnp.zeros(self.size, self.dtype))
            object.__setattr__(self, "labels", jnp.zeros(self.size, bool))
            object.__setattr__(self, "count", jnp.zeros((), "int64"))

    def update(self, scores: Any, labels: Any, *, where: Any = None) -> Self:
        """The metric including these scores, and labels 0 or 1 of the same shape."""
        name = type(self).__name__
        scores, labels, mask = _examples(name, scores, labels, where)
        store_dtype = dtypes.canonical(self.dtype)
        if jnp.promote_types(scores.dtype, store_dtype) != store_dtype:
            raise TypeError(
                errors.explained(
                    f"{name}: scores are stored in {self.dtype}, in which different scores may become equal; "
                    f"got {scores.type}.",
                    f"{name}({self.size}, '{scores.dtype}'), or scores.astype('{self.dtype}').",
                )
            )
        return self._with(scores, labels, mask)

    def _with(self, scores: Any, labels: Any, mask: Any) -> Self:
        """The metric with more examples appended; examples that do not fit are only counted."""
        at = jnp.where(mask, self.count + jnp.cumsum(mask.astype("int64")) - 1, self.size)
        return self.replace(  # type: ignore[attr-defined]
            scores=self.scores.at[at].set(scores.astype(self.dtype), mode="drop"),
            labels=self.labels.at[at].set(labels, mode="drop"),
            count=self.count + jnp.sum(mask, dtype="int64"),
        )

    @property
    def _is_kept(self) -> Any:
        return jnp.arange(self.size) < self.count

    def merge(self, other: Self) -> Self:
        """The metric of the examples of both metrics."""
        self._check(other)
        merged = self._with(other.scores, other.labels, other._is_kept)
        return merged.replace(count=self.count + other.count)  # type: ignore[attr-defined]

    def reduce(self, axis_name: Any) -> Self:
        """The metric merged over a named axis, with all examples concatenated."""
        is_mine = jnp.arange(lax.axis_size(axis_name)) == lax.axis_index(axis_name)
        counts = lax.psum(jnp.where(is_mine, self.count, 0), axis_name)
        before = jnp.sum(jnp.where(jnp.arange(len(counts)) < lax.axis_index(axis_name), counts, 0))
        at = jnp.where(self._is_kept, before + jnp.arange(self.size), self.size)
        scores = jnp.zeros(self.size, self.dtype).at[at].set(self.scores, mode="drop")
        labels = jnp.zeros(self.size, "int32").at[at].set(self.labels.astype("int32"), mode="drop")
        return self.replace(  # type: ignore[attr-defined]
            scores=lax.psum(scores, axis_name), labels=lax.psum(labels, axis_name) > 0, count=jnp.sum(counts)
        )

    def _finished(self, value: Any) -> Any:
        """The value, if all examples fit; otherwise raises, or gives NaN in compiled code."""
        if not isinstance(self.count, Tracer) and jnp.any(self.count > self.size):
            name = type(self).__name__
            raise ValueError(
                errors.explained(
                    f"{name}: it holds at most {self.size} examples, but has seen {int(jnp.max(self.count))}.",
                    f"{name}({int(jnp.max(self.count))}).",
                )
            )
        return jnp.where(self.count > self.size, jnp.nan, value)


@struct
class AUC(_Store):
    """`auc` of all examples, at most `size`; with more, `compute` raises.

    Scores are stored in `dtype`, which must represent them exactly: float32 does for bfloat16 and float16.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> seen = metrics.AUC(10).update(jnp.array([0.1, 0.4]), jnp.array([0, 0]))
    >>> float(seen.update(jnp.array([0.35, 0.8]), jnp.array([1, 1])).compute())
    0.75
    """

    def compute(self) -> Any:
        """The area."""
        return self._finished(_area(self.scores, self.labels, self._is_kept))


@struct
class AveragePrecision(_Store):
    """`average_precision` of all examples, at most `size`; with more, `compute` raises.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> seen = metrics.AveragePrecision(10).update(jnp.array([0.1, 0.4, 0.35, 0.8]), jnp.array([0, 0, 1, 1]))
    >>> round(float(seen.compute()), 4)
    0.8333
    """

    def compute(self) -> Any:
        """The average precision."""
        return self._finished(_precision(self.scores, self.labels, self._is_kept))
