# Written by scripts/stubs.
from atled.data import sets as sets
from atled.data.device_prefetch import to_devices as to_devices
from atled.data.file_sources import array_record as array_record
from atled.data.file_sources import images as images
from atled.data.file_sources import parquet as parquet
from atled.data.iterables import iterable as iterable
from atled.data.iterator import Iterator as Iterator
from atled.data.iterator_state import merge_states as merge_states
from atled.data.mixtures import concatenate as concatenate
from atled.data.mixtures import interleave as interleave
from atled.data.mixtures import mix as mix
from atled.data.pipeline import Pipeline as Pipeline
from atled.data.sources import arrays as arrays
from atled.data.sources import lines as lines
from atled.data.sources import source as source
from atled.data.sources import tokens as tokens
from atled.data.worker_pool import WorkerLost as WorkerLost

__all__ = [
    "Iterator",
    "Pipeline",
    "WorkerLost",
    "array_record",
    "arrays",
    "concatenate",
    "images",
    "interleave",
    "iterable",
    "lines",
    "merge_states",
    "mix",
    "parquet",
    "sets",
    "source",
    "to_devices",
    "tokens",
]
