"""Metrics accumulated over batches: frozen structs of arrays, which are pytrees.

A new metric is empty. `metric.update(…)` returns a metric that includes a batch, `a.merge(b)` or `a | b` combines two,
and `metric.result()` is the value. All of it is pure, and works in `jit`, `scan`, `vmap` and over meshes: in a `jit`
over a mesh, batches that are split over devices are counted as one. In `shard_map` and `pmap`,
`metric.over(axis_name)` merges along a named axis; `metric.gathered()` merges over processes.

Counts are int64 and sums float64 whatever the default dtypes are, so they are exact for far more than 10**12 examples;
results are float64. `where` excludes the padding of a batch. The result of an empty metric is NaN, and so is that of
one that has seen NaN, or labels out of range.
"""

from atled.metrics.classification import F1, Accuracy, ConfusionMatrix, IoU, Precision, Recall, TopK
from atled.metrics.means import R2, Mean, Perplexity
from atled.metrics.metric import Metric
from atled.metrics.ranking import AUC, AveragePrecision, auc, average_precision

__all__ = [
    "AUC", "F1", "R2", "Accuracy", "AveragePrecision", "ConfusionMatrix", "IoU", "Mean", "Metric", "Perplexity",
    "Precision", "Recall", "TopK", "auc", "average_precision",
]  # fmt: skip
