"""`evaluate`: metrics of a model over batches."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from atled import metrics
from atled.core import errors, tree
from atled.core.array import describe
from atled.core.former_names import formerly
from atled.core.settings import override
from atled.engine.progress import Progress
from atled.staging.jit import eval_shape, jit
from atled.train.batch_feed import arguments, feed, fitting
from atled.train.state import not_training


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How `fit` measures a model on held-out batches: `train.fit(…, evaluation=train.Evaluation(test, every=100))`.

    Args:
        batches: a pipeline of one epoch, or any iterable that can be iterated many times.
        metrics_fn: `metrics_fn(model, *batch)`, as for `train.evaluate`; by default the loss. In the log, the names of
            its metrics begin with "eval/".
        every: the number of steps between evaluations; the last step is also evaluated.
        best: a metric, such as "eval/loss"; the checkpoint with its best value is kept.
        mode: "min", the default, or "max": whether the smallest or the largest value is best.
        patience: the number of evaluations in a row without improvement after which the run stops.

    >>> from atled import train
    >>> train.Evaluation([1, 2], every=50, best="eval/loss").every
    50
    """

    batches: Any
    metrics_fn: Callable[..., Any] | None = None
    _: dataclasses.KW_ONLY
    every: int = 1000
    best: str | None = None
    mode: str | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        for name, n in (("every", self.every), ("patience", self.patience)):
            if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
                raise ValueError(errors.explained(f"train.Evaluation: {name} must be a positive integer; got {n!r}."))
        if self.mode not in ("min", "max", None):
            raise ValueError(errors.explained(f'train.Evaluation: mode must be "min" or "max"; got {self.mode!r}.'))
        if self.batches is None or iter(self.batches) is self.batches:
            raise TypeError(
                errors.explained(
                    "train.Evaluation: the batches are iterated many times; an iterator can be used only once.",
                    "a pipeline or list.",
                )
            )


@formerly(measure="metrics_fn")
def evaluate(
    model: Any, metrics_fn: Callable[..., Any], batches: Any, *, sharding: Any = None, progress: bool = False
) -> dict[str, Any]:
    """Metrics of a model over all batches, as numbers by name.

    `metrics_fn(model, *batch)` returns a dict of `atled.metrics` of one batch; those of all batches are merged. Numbers
    and arrays in the dict are averaged over all elements. The model is in `eval` mode. `metrics_fn` is jitted: globals
    and closures are read in the first call only.

    Args:
        batches: a pipeline of one epoch, or any iterable.
        sharding: a `NamedSharding` for batches, or a mesh, whose first axis splits them.
        progress: whether to show a progress bar, which is erased at the end.

    >>> from atled import data, metrics, nn, random, train
    >>> import numpy as np
    >>> def metrics_fn(model, batch):
    ...     scores = model(batch["x"])
    ...     return {"accuracy": metrics.Accuracy().update(scores, batch["y"]), "size": abs(scores)}
    >>> rows = data.arrays(x=np.eye(4, dtype="float32"), y=np.zeros(4, "int32")).batch(2)
    >>> found = train.evaluate(nn.Linear(4, 3, key=random.key(0)), metrics_fn, rows)
    >>> sorted(found), 0 <= found["accuracy"] <= 1
    (['accuracy', 'size'], True)
    """
    model = not_training(model)
    total, size = None, []
    fed, count = feed(batches, fitting(sharding), 0, 1, False)
    for batch in Progress(fed, 0, count, label="evaluate", is_shown=progress, is_kept=False):
        size, before = [np.shape(x)[:1] for x in tree.leaves(batch)], size
        is_expected = total is None or size < before  # the first call, or a smaller last batch
        with override(explain_compiles=False) if is_expected else contextlib.nullcontext():
            batch_metrics = _measured(metrics_fn, model, arguments(batch))
        with override(explain_compiles=False):
            total = batch_metrics if total is None else _merged(total, batch_metrics)
    if total is None:
        raise ValueError(errors.explained("train.evaluate: there are no batches."))
    return {name: _number(m.compute()) for name, m in total.items()}


def tried(model: Any, metrics_fn: Callable[..., Any], batches: Any) -> list[str]:
    """The names of the metrics. Traces `metrics_fn` with the first batch, so that its errors appear before training."""
    batch = next(iter(batches), None)
    if batch is None:
        raise ValueError(errors.explained("train.evaluate: there are no batches."))
    made = eval_shape(lambda model, batch: _metrics(metrics_fn, model, batch), not_training(model), arguments(batch))
    return list(made)


def _metrics(metrics_fn: Callable[..., Any], model: Any, batch: tuple[Any, ...]) -> dict[str, Any]:
    measured = metrics_fn(model, *batch)
    if not isinstance(measured, dict):
        raise TypeError(
            errors.explained(
                f"train.evaluate: metrics_fn must return a dict of metrics; got {describe(measured)}.",
                'return {"accuracy": metrics.Accuracy().update(scores, labels)}.',
            )
        )
    return {k: m if isinstance(m, metrics.Metric) else metrics.Mean().update(m) for k, m in measured.items()}


_measured = jit(_metrics, static_argnums=0)


@jit
def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {name: a[name] | b[name] for name in a}


def _number(x: Any) -> Any:
    """An array as a NumPy array, or as a Python number if it has no axes."""
    array = np.asarray(x)
    return array.item() if not array.ndim else array
