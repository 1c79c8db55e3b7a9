# Written by scripts/stubs.
from atled.data import sets as sets
from atled.data.devices import to_devices as to_devices
from atled.data.files import array_record as array_record
from atled.data.files import images as images
from atled.data.files import parquet as parquet
from atled.data.iterables import iterable as iterable
from atled.data.iterating import Iterator as Iterator
from atled.data.mixing import concatenate as concatenate
from atled.data.mixing import interleave as interleave
from atled.data.mixing import mix as mix
from atled.data.pipeline import Pipeline as Pipeline
from atled.data.sources import arrays as arrays
from atled.data.sources import lines as lines
from atled.data.sources import source as source
from atled.data.sources import tokens as tokens
from atled.data.states import joined as joined
from atled.data.workers import WorkerLost as WorkerLost

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
    "joined",
    "lines",
    "mix",
    "parquet",
    "sets",
    "source",
    "to_devices",
    "tokens",
]
