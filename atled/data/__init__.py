"""Input pipelines: lazy, deterministic, resumable at any example, and split over processes without losing examples.

A source gives a `Pipeline`; its methods (`shuffle`, `map`, `random_map`, `filter`, `batch`, `repeat` and others) give
another one. `pipeline.iterator(workers=2)` iterates over it, with `state()` and `restore(state)`. `to_devices`
prefetches the batches to devices. Everything else uses only NumPy.
"""

from atled.data import sets
from atled.data.devices import to_devices
from atled.data.files import array_record, images, parquet
from atled.data.iterables import iterable
from atled.data.iterating import Iterator
from atled.data.mixing import concatenate, interleave, mix
from atled.data.pipeline import Pipeline
from atled.data.sources import arrays, lines, source, tokens
from atled.data.states import joined
from atled.data.workers import WorkerLost

__all__ = [
    "Iterator", "Pipeline", "WorkerLost", "array_record", "arrays", "concatenate", "images", "interleave", "iterable",
    "joined", "lines", "mix", "parquet", "sets", "source", "to_devices", "tokens",
]  # fmt: skip
