"""Input pipelines: lazy, deterministic, resumable at any example, and split over processes without losing examples.

A source gives a `Pipeline`; its methods (`shuffle`, `map`, `random_map`, `filter`, `batch`, `repeat` and others) give
another one. `pipeline.iterator(workers=2)` iterates over it, with `state()` and `restore(state)`. `to_devices`
prefetches the batches to devices. Everything else uses only NumPy.
"""

from atled.core import lazy

_AT_ONCE = {
    "devices": "to_devices",
    "files": "array_record images parquet",
    "iterables": "iterable",
    "iterating": "Iterator",
    "mixing": "concatenate interleave mix",
    "pipeline": "Pipeline",
    "sources": "arrays lines source tokens",
    "states": "joined",
    "workers": "WorkerLost",
}
__getattr__, __dir__, __all__ = lazy.public(__name__, {}, "sets", _AT_ONCE)
