"""Metrics accumulated over batches: frozen structs of arrays, which are pytrees.

A new metric is empty. `metric.update(…)` returns a metric that includes a batch, `a.merge(b)` or `a | b` combines two,
and `metric.compute()` is the value. All of it is pure, and works in `jit`, `scan`, `vmap` and over meshes: in a `jit`
over a mesh, batches that are split over devices are counted as one. In `shard_map` and `pmap`,
`metric.reduce(axis_name)` merges along a named axis; `metric.gather()` merges over processes.

Counts are int64 and sums float64 whatever the default dtypes are, so they are exact for far more than 10**12 examples;
results are float64. `where` excludes the padding of a batch. The result of an empty metric is NaN, and so is that of
one that has seen NaN, or labels out of range.
"""

from atled.core import lazy_imports

_AT_ONCE = {
    "classification": "Accuracy ConfusionMatrix F1 IoU Precision Recall TopK",
    "means": "Mean Perplexity R2",
    "metric": "Metric",
    "ranking": "AUC auc average_precision AveragePrecision",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "", _AT_ONCE)
