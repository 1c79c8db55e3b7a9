"""Values that fill up rows must fit into them; filters that nothing passes end."""

from __future__ import annotations

import numpy as np
import pytest

from atled import data
from atled.data import epoch_readers

GOOD = [
    ("int32", -1), ("uint8", 255), ("int8", 1.0), ("bool", False), ("bool", 1), ("float32", 0.1), ("float32", np.nan),
    ("float32", -np.inf), ("float16", 0.1), ("complex64", 1j), ("float64", 3), ("int64", np.int8(4)), ("str", "<pad>"),
]  # fmt: skip
BAD = [
    ("int32", 0.5), ("int32", np.nan), ("uint8", -1), ("uint8", 256), ("int8", 300), ("bool", 2), ("int32", np.inf),
    ("float16", 1e6), ("float32", 1e300), ("float32", 1j), ("int32", "a"), ("str", 0), 
    ("float32", None),
]  # fmt: skip


def example(dtype):
    return np.array(["a", "bcd"]) if dtype == "str" else np.ones(2, dtype)


def steps(dtype, fill):
    source = data.source([example(dtype)])
    return {
        "pad": source.pad(3, padding_value=fill),
        "pack": source.pack(3, padding_value=fill),
        "bucket": source.bucket([3], 1, padding_value=fill),
    }


@pytest.mark.parametrize(("dtype", "fill"), GOOD, ids=str)
def test_a_fill_is_what_was_asked_for(dtype, fill):
    for pipeline in steps(dtype, fill).values():
        got = next(iter(pipeline))["tokens"].ravel()
        assert got.dtype == (object if dtype == "str" else dtype)
        np.testing.assert_array_equal(got[:2], example(dtype))
        if dtype == "str":
            assert got[2] == fill
        else:
            np.testing.assert_array_equal(got[2], np.asarray(fill, dtype))


@pytest.mark.parametrize(("dtype", "fill"), BAD, ids=str)
def test_a_fill_that_does_not_fit(dtype, fill):
    for name, pipeline in steps(dtype, fill).items():
        with pytest.raises(ValueError, match=f"data.{name}: padding_value must fit into the field tokens"):
            next(iter(pipeline))


@pytest.mark.parametrize("endless", [
    data.source([1, 2, 3]).repeat(), data.source([1, 2, 3]).shuffle(0).repeat(),
    data.mix([data.source([1, 2]), data.source([3])], [1, 1], 0),
])  # fmt: skip
def test_a_filter_that_nothing_passes_ends(endless, monkeypatch):
    monkeypatch.setattr(epoch_readers, "MOST_DROPPED", 1000)
    for pipeline in (endless.filter(lambda x: x > 9), endless.filter(lambda x: x > 9).batch(2)):
        with pytest.raises(ValueError, match=r"data\.filter: nothing passes; the last 1000 examples of"):
            next(iter(pipeline))
    rare = iter(endless.map(lambda x: x).filter(lambda x: x == 3))
    assert [next(rare) for _ in range(3)] == [3, 3, 3]
