"""Metrics accumulated over batches: frozen structs of arrays, which are pytrees.

A new metric is empty. `metric.update(…)` returns a metric that includes a batch, `a.merge(b)` or `a | b` combines two,
and `metric.compute()` is the value. All of these are pure, and work in `jit`, `scan`, `vmap` and over meshes: in a
`jit` over a mesh, a batch that is sharded over devices counts as one batch. In `shard_map` and `pmap`,
`metric.reduce(axis_name)` merges along a named axis; `metric.gather()` merges over processes.

Counts are int64 and sums float64, whatever the default dtypes are, so counts are exact for far more than 10**12
examples; results are float64. `where` excludes the padding of a batch. Except for `ConfusionMatrix`, the result of an
empty metric is NaN. NaN makes a result NaN, except in classification metrics, where a NaN score predicts no class.
Labels out of range count as wrong for `Accuracy` and `TopK`; for other metrics, they raise or make the result NaN.
"""

from atled.core import lazy_imports

_AT_ONCE = {
    "classification": "Accuracy ConfusionMatrix F1 IoU Precision Recall TopK",
    "means": "Mean Perplexity R2",
    "metric": "Metric",
    "ranking": "AUC auc average_precision AveragePrecision",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "", _AT_ONCE)
