"""Classification metrics: accuracy, precision, recall, IoU, confusion matrix.

Predictions are integers or booleans of the shape of the labels, or scores with one more axis, the last, for the
classes. The predicted class is that of the highest score: the first one in case of ties, and none if a score is NaN.
With `threshold`, predictions are scores of the shape of the labels, and those above it are class 1.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np

import atled.numpy as jnp
from atled.core import errors
from atled.core.array import is_array_like, shown, type_of
from atled.core.former_names import formerly
from atled.core.trace import Tracer
from atled.core.tree_registry import static, struct
from atled.metrics.metric import Metric, counter, integers, mask_of, ratio


def _scores(name: str, scores: Any, labels: Any, classes: int | None = None) -> tuple[Any, Any]:
    """Validated scores, with the classes along the last axis, and labels."""
    labels = integers(name, "labels", labels)
    if not is_array_like(scores) or type_of(scores).kind not in "fiu" or type_of(scores).shape[:-1] != labels.shape:
        raise ValueError(
            errors.explained(
                f"{name}: the scores must be numbers of the shape {labels.shape} and one more axis for the "
                f"classes; got "
                f"{shown(scores)}."
            )
        )
    count = type_of(scores).shape[-1]
    if count != classes if classes is not None else count < 2:
        needed = "2 or more" if classes is None else classes
        raise ValueError(
            errors.explained(
                f"{name}: the last axis of scores, of the classes, must have length {needed}; got {shown(scores)}.",
                "scores[..., 0], one score for each label, and threshold=…." if count == 1 else "",
            )
        )
    return jnp.asarray(scores), labels


def _predicted(
    name: str, predictions: Any, labels: Any, threshold: float | None, classes: int | None = None
) -> tuple[Any, Any]:
    """Predicted classes, -1 for none, and labels."""
    labels = integers(name, "labels", labels)
    t = type_of(predictions) if is_array_like(predictions) else None
    if t is not None and t.kind == "f" and t.shape == labels.shape and threshold is not None:
        scores = jnp.asarray(predictions).astype(jnp.promote_types(t.dtype, "float32"))
        return jnp.where(jnp.isnan(scores), -1, scores > np.asarray(threshold, scores.dtype)).astype("int64"), labels
    if t is not None and t.ndim == labels.ndim + 1 and threshold is None:
        scores, labels = _scores(name, predictions, labels, classes)
        best = jnp.argmax(scores, -1).astype("int64")
        return jnp.where(jnp.any(jnp.isnan(scores), -1), -1, best) if t.kind == "f" else best, labels
    if t is None or t.kind not in "iub" or t.shape != labels.shape or threshold is not None:
        raise ValueError(
            errors.explained(
                f"{name}: predictions for labels of the shape {labels.shape} must be "
                + ("scores of that shape" if threshold is not None else "integers, or scores with one more axis")
                + f"; got {shown(predictions)}.",
                "" if threshold is not None else f"{name}(…, threshold=0.0) for one score for each label.",
            )
        )
    return integers(name, "predictions", predictions), labels


class _Share(Metric):
    """Base of metrics that are the fraction of hits among examples."""

    hits: Any
    count: Any

    def _plus(self, is_hit: Any, mask: Any) -> Any:
        hits, seen = (jnp.sum(x, dtype="int64") for x in (is_hit & mask, mask))
        return self.replace(hits=self.hits + hits, count=self.count + seen)  # type: ignore[attr-defined]

    def compute(self) -> Any:
        """The fraction of hits, or NaN without examples."""
        return ratio(self.hits, self.count)


@struct
class Accuracy(_Share):
    """The fraction of correct predictions. A label out of range is never predicted and counts as an error.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> accuracy = metrics.Accuracy().update(jnp.array([[0.1, 0.9], [0.8, 0.2]]), jnp.array([1, 1]))
    >>> float(accuracy.compute())
    0.5
    """

    threshold: float | None = static(default=None)
    hits: Any = counter()
    count: Any = counter()

    def update(self, predictions: Any, labels: Any, *, where: Any = None) -> Self:
        """The metric including these predictions."""
        predicted, labels = _predicted("Accuracy", predictions, labels, self.threshold)
        is_hit = (predicted == labels) & (labels >= 0)
        return self._plus(is_hit, mask_of("Accuracy", where, labels.shape))


@struct
class TopK(_Share):
    """The fraction of labels among the k classes with the highest scores; ties go to the lower class.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> float(metrics.TopK(2).update(jnp.array([[3.0, 1.0, 2.0]] * 2), jnp.array([2, 1])).compute())
    0.5
    """

    k: int = static(default=5)
    hits: Any = counter()
    count: Any = counter()

    def update(self, scores: Any, labels: Any, *, where: Any = None) -> Self:
        """The metric including scores `(*examples, classes)` and labels `(*examples)`."""
        scores, labels = _scores("TopK", scores, labels)
        classes = scores.shape[-1]
        is_label = (labels >= 0) & (labels < classes)
        own = jnp.take_along_axis(scores, jnp.where(is_label, labels, 0)[..., None], -1)
        is_before = (scores > own) | ((scores == own) & (jnp.arange(classes) < labels[..., None]))
        is_hit = is_label & (jnp.sum(is_before, -1) < self.k)
        if type_of(scores).kind == "f":
            is_hit &= ~jnp.any(jnp.isnan(scores), -1)
        return self._plus(is_hit, mask_of("TopK", where, labels.shape))


def _counted(places: Any, mask: Any, size: int) -> Any:
    """How often each class occurs where the mask is True."""
    places = jnp.where(mask & (places >= 0), places, size).reshape(-1)
    return jnp.zeros(size, "int64").at[places].add(1, mode="drop")


def _out_of_range(predicted: Any, labels: Any, mask: Any, classes: int) -> Any:
    """The number of examples with a prediction or label out of range; a prediction of -1, for no class, is in range."""
    is_bad = (labels < 0) | (labels >= classes) | (predicted < -1) | (predicted >= classes)
    return jnp.sum(is_bad & mask, dtype="int64")


_AVERAGES = ("binary", "micro", "macro", "weighted", None)


@struct
class _ByClass(Metric):
    """Ratios of three counts per class: correct predictions, predictions, labels."""

    num_classes: int = static(default=2)
    average: str | None = static(default="binary")
    zero_division: float = static(default=0.0)
    threshold: float | None = static(default=None)
    hits: Any = dataclasses.field(kw_only=True, default=None)
    predicted: Any = dataclasses.field(kw_only=True, default=None)
    actual: Any = dataclasses.field(kw_only=True, default=None)
    invalid: Any = counter()

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.average not in _AVERAGES:
            raise ValueError(errors.explained(f"{name}: average must be one of {_AVERAGES}; got {self.average!r}."))
        if self.average == "binary" and self.num_classes != 2:
            raise ValueError(
                errors.explained(
                    f"{name}: the average 'binary' is for 2 classes; got {self.num_classes}.",
                    f"{name}({self.num_classes}, 'macro').",
                )
            )
        for field in ("hits", "predicted", "actual"):
            if getattr(self, field) is None:
                object.__setattr__(self, field, jnp.zeros(self.num_classes, "int64"))

    def update(self, predictions: Any, labels: Any, *, where: Any = None) -> Self:
        """The metric including these predictions."""
        name = type(self).__name__
        predicted, labels = _predicted(name, predictions, labels, self.threshold, self.num_classes)
        mask = mask_of(name, where, labels.shape)
        return self.replace(  # type: ignore[attr-defined]
            hits=self.hits + _counted(labels, mask & (predicted == labels), self.num_classes),
            predicted=self.predicted + _counted(predicted, mask, self.num_classes),
            actual=self.actual + _counted(labels, mask, self.num_classes),
            invalid=self.invalid + _out_of_range(predicted, labels, mask, self.num_classes),
        )

    def _quotient(self) -> tuple[Any, Any]:
        """Numerator and denominator for each class."""
        raise NotImplementedError

    def compute(self) -> Any:
        """The average over classes, or with `average=None`, a number for each class; without examples, NaN."""
        above, below = self._quotient()
        otherwise = self.zero_division
        each = ratio(above, below, otherwise)
        counts = jnp.ones(self.num_classes) if self.average == "macro" else self.actual
        counts = jnp.where(jnp.isnan(each), 0, counts.astype("float64"))  # NaN values are left out
        if self.average == "binary":
            value = each[1]
        elif self.average == "micro":
            value = ratio(jnp.sum(above), jnp.sum(below), otherwise)
        elif self.average is None:
            value = each
        else:
            value = ratio(jnp.sum(jnp.where(counts == 0, 0, each * counts)), jnp.sum(counts), otherwise)
        return jnp.where((jnp.sum(self.actual) == 0) | (self.invalid > 0), jnp.nan, value)


@formerly(classes="num_classes")
@struct
class Precision(_ByClass):
    """Precision: the fraction of predictions of a class that are correct.

    `Precision()` is the precision for class 1 of two. For more classes, `average` is "macro", the mean over classes,
    "weighted", the mean weighted by the number of labels, "micro", all classes counted together, or None, a number for
    each class. `zero_division` is the value of a class that was never predicted: 0, or NaN, which leaves it out of the
    mean.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> predicted, labels = jnp.array([0, 1, 1, 2]), jnp.array([0, 1, 2, 2])
    >>> metrics.Precision(3, None).update(predicted, labels).compute()
    Array([1. , 0.5, 1. ], dtype=float64)
    """

    def _quotient(self) -> tuple[Any, Any]:
        return self.hits, self.predicted


@formerly(classes="num_classes")
@struct
class Recall(_ByClass):
    """Recall: the fraction of examples of a class that were predicted as such. The settings are those of `Precision`.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> float(metrics.Recall(threshold=0.5).update(jnp.array([0.9, 0.2]), jnp.array([1, 1])).compute())
    0.5
    """

    def _quotient(self) -> tuple[Any, Any]:
        return self.hits, self.actual


@formerly(classes="num_classes")
@struct
class F1(_ByClass):
    """2 * precision * recall / (precision + recall). The settings are those of `Precision`.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> float(metrics.F1().update(jnp.array([1, 1, 0, 1]), jnp.array([1, 0, 0, 1])).compute())
    0.8
    """

    def _quotient(self) -> tuple[Any, Any]:
        return 2 * self.hits, self.predicted + self.actual


@formerly(classes="num_classes")
@struct
class IoU(_ByClass):
    """Intersection over union (IoU): correct predictions of a class over examples that are in it or predicted to be.

    By default, the mean over classes. The settings are those of `Precision`.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> float(metrics.IoU(2).update(jnp.array([[0, 1], [1, 1]]), jnp.array([[0, 0], [1, 1]])).compute().round(4))
    0.5833
    """

    average: str | None = static(default="macro")

    def _quotient(self) -> tuple[Any, Any]:
        return self.hits, self.predicted + self.actual - self.hits


@formerly(classes="num_classes")
@struct
class ConfusionMatrix(Metric):
    """How often each class (row) was predicted as each class (column).

    NaN predictions are ignored. Classes out of range make `compute` raise; in compiled code, all counts are then -1.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> metrics.ConfusionMatrix(2).update(jnp.array([0, 1, 1]), jnp.array([0, 0, 1])).compute()
    Array([[1, 1],
           [0, 1]], dtype=int64)
    """

    num_classes: int = static(default=2)
    threshold: float | None = static(default=None)
    counts: Any = dataclasses.field(kw_only=True, default=None)
    invalid: Any = counter()

    def __post_init__(self) -> None:
        if self.counts is None:
            object.__setattr__(self, "counts", jnp.zeros((self.num_classes, self.num_classes), "int64"))

    def update(self, predictions: Any, labels: Any, *, where: Any = None) -> Self:
        """The metric including these predictions."""
        predicted, labels = _predicted("ConfusionMatrix", predictions, labels, self.threshold, self.num_classes)
        mask, n = mask_of("ConfusionMatrix", where, labels.shape), self.num_classes
        is_class = (labels >= 0) & (labels < n) & (predicted >= 0) & (predicted < n)
        batch_counts = _counted(n * labels + predicted, mask & is_class, n * n).reshape(n, n)
        invalid = self.invalid + _out_of_range(predicted, labels, mask, n)
        return self.replace(counts=self.counts + batch_counts, invalid=invalid)  # type: ignore[attr-defined]

    def compute(self) -> Any:
        """The counts, int64."""
        if not isinstance(self.invalid, Tracer) and jnp.any(self.invalid > 0):
            raise ValueError(
                errors.explained(
                    f"ConfusionMatrix: classes must be 0 or more and less than {self.num_classes}; {int(self.invalid)} "
                    "predictions or labels were not.",
                    "where=labels != …, if such labels mark examples to ignore.",
                )
            )
        return jnp.where(self.invalid > 0, -1, self.counts)
