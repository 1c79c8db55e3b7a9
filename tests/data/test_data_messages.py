"""What is said about mistakes: the function, what must hold, what was got."""

# ruff: noqa: E501 (a table, one row a line)

import subprocess
import sys
import tempfile

import numpy as np
import pytest

from atled import data

TEN = data.source(list(range(10)))
DICTS = data.source([{"a": np.zeros(2), "b": 1}, {"a": np.zeros(3), "b": 2}])


def run(pipeline, **settings):
    return list(pipeline.iterator(**settings))


def closed():
    iterator = TEN.batch(2).iterator()
    iterator.close()
    return iterator


def odd_tokens():
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"123")
        file.flush()
        return data.tokens(file.name, "u8", 3)


MISTAKES = {
    "ragged": (lambda: run(DICTS.batch(2)), r"batch: the field \['a'\] must have the same shape.*float64\[2\] in example 0 of .* and float64\[3\] in example 1[\s\S]*\.pad"),
    "dtypes": (lambda: run(data.source([1, 2.5]).batch(2)), r"batch: the field the example must have the same dtype"),
    "structures": (lambda: run(data.source([{"a": 1}, {"b": 1}]).batch(2)), r"batch: examples must have the same structure"),
    "structures of fields": (lambda: run(data.source([{"a": 1}, {"a": (1, 2)}]).batch(2)), r"batch: the leaves of examples must be arrays.*\['a'\] is a tuple"),
    "structures of tuples": (lambda: run(data.source([(1, 2), (1, (2, 3))]).batch(2)), r"batch: examples must have the same structure"),
    "leaves": (lambda: run(data.source([{"a": object()}]).batch(1)), r"batch: the leaves of examples must be arrays.*\['a'\] is a object"),
    "lengths": (lambda: data.arrays(x=np.zeros(3), y=np.zeros(4)), r"data.arrays: all arrays must have the same length along the first axis; got \['x'\]: 3, \['y'\]: 4"),
    "numbers": (lambda: data.arrays(x=3), r"data.arrays: .*a number"),
    "nothing": (lambda: data.arrays(), r"data.arrays: give a tree of arrays"),
    "seed": (lambda: TEN.shuffle(-1), r"data.shuffle: the seed must be"),
    "no seed": (lambda: TEN.random_map(max, None), r"data.random_map: the seed must be"),
    "no function": (lambda: TEN.map(3), r"data.map: the first argument must be a function"),
    "no source": (lambda: data.source(x for x in "ab"), r"data.source: a source must have a length and support indexing; got a generator"),
    "dict": (lambda: data.source({"a": 1}), r"data.source: got a dict"),
    "size": (lambda: TEN.batch(0), r"data.batch: batch_size must be an integer of 1 or more; got 0"),
    "batches twice": (lambda: TEN.batch(2).batch(2), r"data.batch: batch may occur once"),
    "shuffle late": (lambda: TEN.filter(bool).shuffle(0), r"data.shuffle: shuffle needs random access to examples by position"),
    "shuffle batches": (lambda: TEN.batch(2).shuffle(0), r"data.shuffle: it needs random access"),
    "shuffle no end": (lambda: TEN.repeat().shuffle(0), r"data.shuffle: the number of examples of an epoch must be known.*has no end"),
    "shuffle iterables": (lambda: data.iterable(range).shuffle(0), r"data.shuffle: .*does not say how many examples"),
    "mix filters": (lambda: data.mix([TEN.filter(bool)], [1], 0), r"data.mix: it needs random access"),
    "weights": (lambda: data.mix([TEN, TEN], [1, -1], 0), r"data.mix: there must be a weight above 0"),
    "exhausted": (lambda: data.mix([TEN], [1], 0, exhausted="wait"), r"data.mix: exhausted must be"),
    "no pipelines": (lambda: data.concatenate(), r"data.concatenate: the arguments must be pipelines"),
    "filter late": (lambda: TEN.batch(2).filter(bool), r"data.filter: filter must come before"),
    "random late": (lambda: TEN.batch(2).random_map(max, 0), r"data.random_map: random_map applies to single"),
    "repeat twice": (lambda: TEN.repeat().repeat(), r"data.repeat: the pipeline is already repeated"),
    "repeat nothing": (lambda: data.source([]).repeat(), r"data.repeat: there are no examples"),
    "repeat no batch": (lambda: run(TEN.batch(11).repeat()), r"data.repeat: an epoch of .* has no batches to repeat"),
    "map after repeat": (lambda: TEN.filter(bool).repeat().map(str), r"data: after filter and pack, repeat must come"),
    "processes": (lambda: TEN.batch(3).sharded(0, 2), r"data.sharded: the batch size.*got 3 for 2 processes[\s\S]*batch of 4"),
    "which process": (lambda: TEN.batch(4).sharded(2, 2), r"data.sharded: there is no process 2 of 2"),
    "drop_last": (lambda: TEN.batch(4, drop_last=False).sharded(0, 2), r"data.sharded: with drop_last=False"),
    "pad": (lambda: TEN.pad(), r"data.pad: give either length or pad_to_multiple_of"),
    "pad long": (lambda: run(data.source([[1, 2, 3]]).pad(2)), r"data.pad: an example must not be longer than 2; got 3"),
    "pad unclear": (lambda: run(data.source([{"a": [1, 2], "b": [1]}]).pad(2)), r"data.pad: the ragged fields.*a: \[2\], b: \[1\]"),
    "pad mask": (lambda: run(data.source([{"mask": [1, 2]}]).pad(2)), r"data.pad: the example has a field 'mask'"),
    "pack long": (lambda: run(data.source([[1, 2, 3]]).pack(2, truncate=False)), r"data.pack: with truncate=False.*got 3"),
    "pack axes": (lambda: run(data.source([[[1, 2, 3]]]).pack(2)), r"data.pack: examples must be 1-d arrays"),
    "pack dtypes": (lambda: run(data.source([[1], [2.5]]).pack(2)), r"data.pack: all examples must have the same fields and dtypes"),
    "bounds": (lambda: TEN.bucket([4, 2], 3), r"data.bucket: boundaries must be increasing lengths"),
    "bucket long": (lambda: run(data.source([[1, 2, 3]]).bucket([2], 1)), r"data.bucket: examples must not be longer than the last boundary, 2; got 3"),
    "workers": (lambda: TEN.batch(2).iterator(num_workers=-1), r"data.iterator: num_workers must be"),
    "closed": (lambda: next(closed()), r"data: the iterator is closed"),
    "no file": (lambda: data.lines("/no/such/file"), r"data.lines: every path must be a file; got /no/such/file"),
    "odd bytes": (odd_tokens, r"data.tokens: .* must be a file of uint64"),
    "strings": (lambda: list(data.to_devices(data.source(["a"]).batch(1).iterator())), r"data.to_devices: devices cannot hold strings"),
    "ahead": (lambda: data.to_devices(TEN.iterator(), prefetch=0), r"data.to_devices: prefetch must be"),
    "no state": (lambda: data.to_devices(iter([1])).state(), r"data.to_devices: a list_iterator has no state"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, says = MISTAKES[name]
    with pytest.raises((TypeError, ValueError, OSError), match=says):
        call()


def test_the_import_is_light():
    """NumPy and the standard library; no package that only some sources need, and XLA is not started."""
    code = "import sys, atled.data; from atled.engine import client; print(bool(client._clients), [m for m in ('PIL', 'pyarrow', 'torch', 'jax', 'array_record', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "False []", done.stderr
