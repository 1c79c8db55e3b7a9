"""Metrics of numbers: `Mean`, `Perplexity`, `R2`."""

from __future__ import annotations

from typing import Any, Self

import atled.numpy as jnp
from atled import lax
from atled.core import errors
from atled.core.array import type_of
from atled.core.tree_registry import struct
from atled.metrics.metric import Metric, mask_of, number, ratio, spread, summed
from atled.nn.losses import cross_entropy


@struct
class Mean(Metric):
    """The mean of numbers: sum(weights * values) / sum(weights).

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> mean = metrics.Mean().update(jnp.array([1.0, 2.0])).update(6.0)
    >>> float(mean.compute())
    3.0
    """

    total: Any = summed()
    weight: Any = summed()

    def update(self, values: Any, *, weights: Any = None, where: Any = None) -> Self:
        """The metric including these numbers, each with a weight, by default 1."""
        name = type(self).__name__
        values = number(name, "values", values)
        mask = mask_of(name, where, values.shape)
        counts = spread(name, "weights", number(name, "weights", 1 if weights is None else weights), values.shape)
        return self._plus(jnp.where(mask, values * counts, 0), jnp.where(mask, counts, 0))

    def _plus(self, values: Any, counts: Any) -> Self:
        return self.replace(total=self.total + jnp.sum(values), weight=self.weight + jnp.sum(counts))  # type: ignore[attr-defined]

    def compute(self) -> Any:
        """The mean, or NaN if the sum of the weights is 0."""
        return ratio(self.total, self.weight)


@struct
class Perplexity(Mean):
    """exp(mean cross entropy of the tokens).

    For losses that are already computed, `jnp.exp(metrics.Mean().update(losses).compute())` is the same.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> round(float(metrics.Perplexity().update(jnp.zeros((2, 10)), jnp.array([3, 4])).compute()), 4)
    10.0
    """

    def update(self, logits: Any, labels: Any, *, where: Any = None) -> Self:  # type: ignore[override]
        """The metric including logits `(*tokens, classes)` and integer labels `(*tokens)`."""
        values = cross_entropy(logits, labels, where=where, reduction=None)
        return self._plus(values.astype("float64"), mask_of("Perplexity", where, values.shape).astype("float64"))

    def compute(self) -> Any:
        """exp(mean), or NaN without tokens."""
        return jnp.exp(Mean.compute(self))


@struct
class R2(Metric):
    """1 - sum((target - prediction)**2) / sum((target - mean of targets)**2), over all elements.

    The result is NaN for fewer than two targets. If all targets are equal, it is 1 for exact predictions, else 0. Means
    and deviations are merged without cancellation, also for targets far from 0.

    >>> from atled import metrics
    >>> import atled.numpy as jnp
    >>> float(metrics.R2().update(jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, 2.0, 3.0])).compute())
    0.5
    """

    count: Any = summed()
    mean: Any = summed()
    spread: Any = summed()  # the sum of squared deviations of targets from their mean
    error: Any = summed()

    def update(self, predictions: Any, targets: Any, *, where: Any = None) -> Self:
        """The metric including predictions and targets of the same shape."""
        predictions, targets = number("R2", "predictions", predictions), number("R2", "targets", targets)
        if type_of(predictions).shape != type_of(targets).shape:
            raise ValueError(
                errors.explained(
                    f"R2: predictions and targets must have the same shape; got {predictions.type} and {targets.type}."
                )
            )
        mask = mask_of("R2", where, targets.shape)
        count = jnp.sum(mask, dtype="int64").astype("float64")
        mean = jnp.sum(jnp.where(mask, targets, 0)) / jnp.maximum(count, 1)
        spread = jnp.sum(jnp.where(mask, jnp.square(targets - mean), 0))
        error = jnp.sum(jnp.where(mask, jnp.square(targets - predictions), 0))
        return self.merge(type(self)(count=count, mean=mean, spread=spread, error=error))

    def merge(self, other: Self) -> Self:
        """The metric of the examples of both metrics."""
        self._check(other)
        return self._joined(lambda of: of(self) + of(other))

    def reduce(self, axis_name: Any) -> Self:
        """The metric of all parts along a named axis."""
        return self._joined(lambda of: lax.psum(of(self), axis_name))

    def _joined(self, added: Any) -> Self:
        """Combine all parts into one; `added` sums a function over the parts."""
        count = added(lambda part: part.count)
        mean = added(lambda part: part.count * part.mean) / jnp.maximum(count, 1)
        spread = added(lambda part: part.spread + part.count * jnp.square(part.mean - mean))
        return type(self)(count=count, mean=mean, spread=spread, error=added(lambda part: part.error))

    def compute(self) -> Any:
        """The coefficient of determination."""
        same = jnp.where(self.error == 0, 1.0, 0.0)
        value = 1 - ratio(self.error, self.spread, 1 - same)
        return jnp.where(self.count < 2, jnp.nan, value)
