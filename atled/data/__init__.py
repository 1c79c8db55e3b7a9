"""Input pipelines: lazy, deterministic, resumable at any example, and split over processes without losing examples.

Sources return a `Pipeline`; its methods (`shuffle`, `map`, `random_map`, `filter`, `batch`, `repeat` and others) return
a new one. `pipeline.iterator(num_workers=2)` yields its batches and has `state()` and `restore(state)`. `to_devices`
prefetches the batches to devices; everything else uses only NumPy.
"""

from atled.core import lazy_imports

_AT_ONCE = {
    "device_prefetch": "to_devices",
    "file_sources": "array_record images parquet",
    "iterables": "iterable",
    "iterator": "Iterator",
    "mixtures": "concatenate interleave mix",
    "pipeline": "Pipeline",
    "sources": "arrays lines source tokens",
    "iterator_state": "merge_states",
    "worker_pool": "WorkerLost",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "sets", _AT_ONCE)
