"""`evaluate`: metrics of a model over batches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from atled import metrics
from atled.core import errors, tree
from atled.core.array import describe
from atled.core.settings import override
from atled.engine.progress import Progress
from atled.staging.jit import eval_shape, jit
from atled.train.batch_feed import arguments, feed, fitting
from atled.train.state import not_training


def evaluate(
    model: Any, measure: Callable[..., Any], batches: Any, *, sharding: Any = None, progress: bool = False
) -> dict[str, Any]:
    """Metrics of a model over all batches, as numbers by name.

    `measure(model, *batch)` returns a dict of `atled.metrics` of the batch, which are merged. A number or an array
    instead of a metric is averaged over all of its elements. The model is in `eval` mode. `measure` is jitted: globals
    and closures are read in the first call only.

    Args:
        batches: a pipeline of one epoch, or any iterable.
        sharding: a `NamedSharding` for batches, or a mesh, whose first axis splits them.
        progress: whether to show a progress bar, which is erased at the end.

    >>> from atled import data, metrics, nn, random, train
    >>> import numpy as np
    >>> def measure(model, batch):
    ...     scores = model(batch["x"])
    ...     return {"accuracy": metrics.Accuracy().update(scores, batch["y"]), "size": abs(scores)}
    >>> rows = data.arrays(x=np.eye(4, dtype="float32"), y=np.zeros(4, "int32")).batch(2)
    >>> found = train.evaluate(nn.Linear(4, 3, key=random.key(0)), measure, rows)
    >>> sorted(found), 0 <= found["accuracy"] <= 1
    (['accuracy', 'size'], True)
    """
    model = not_training(model)
    total, size = None, []
    fed, count = feed(batches, fitting(sharding), 0, 1, False)
    for batch in Progress(fed, 0, count, label="evaluate", is_shown=progress, is_kept=False):
        size, before = [np.shape(x)[:1] for x in tree.leaves(batch)], size
        is_expected = total is None or size < before  # another function, or a smaller last batch
        with override(explain_compiles=False) if is_expected else contextlib.nullcontext():
            batch_metrics = _measured(measure, model, arguments(batch))
        with override(explain_compiles=False):
            total = batch_metrics if total is None else _merged(total, batch_metrics)
    if total is None:
        raise ValueError(errors.explained("train.evaluate: there are no batches."))
    return {name: _number(m.result()) for name, m in total.items()}


def tried(model: Any, measure: Callable[..., Any], batches: Any) -> list[str]:
    """The names of metrics. Later errors are found now: by a trace with the first batch, which computes nothing."""
    batch = next(iter(batches), None)
    if batch is None:
        raise ValueError(errors.explained("train.evaluate: there are no batches."))
    made = eval_shape(lambda model, batch: _metrics(measure, model, batch), not_training(model), arguments(batch))
    return list(made)


def _metrics(measure: Callable[..., Any], model: Any, batch: tuple[Any, ...]) -> dict[str, Any]:
    measured = measure(model, *batch)
    if not isinstance(measured, dict):
        raise TypeError(
            errors.explained(
                f"train.evaluate: measure must return a dict of metrics; got {describe(measured)}.",
                'return {"accuracy": metrics.Accuracy().update(scores, labels)}.',
            )
        )
    return {k: m if isinstance(m, metrics.Metric) else metrics.Mean().update(m) for k, m in measured.items()}


_measured = jit(_metrics, static_argnums=0)


@jit
def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {name: a[name] | b[name] for name in a}


def _number(x: Any) -> Any:
    """A number, or an array of them."""
    array = np.asarray(x)
    return array.item() if not array.ndim else array
