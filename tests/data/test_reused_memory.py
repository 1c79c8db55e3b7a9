"""Examples that a source, an iterable or a map returns in the same memory each time are not overwritten."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from atled import data
from atled.data.copies import owned

Pair = collections.namedtuple("Pair", "x y")


class Reusing:
    """A data set that fills one array anew for each example."""

    def __init__(self, wrap):
        self.buffer, self.wrap = np.zeros(2), wrap

    def __len__(self):
        return 6

    def __getitem__(self, i):
        self.buffer[:] = i
        return self.wrap(self.buffer)


WRAPS = {
    "array": (lambda b: b, lambda e: e), "dict": (lambda b: {"a": b}, lambda e: e["a"]),
    "tuple": (lambda b: (0, b), lambda e: e[1]), "named": (lambda b: Pair(0, b), lambda e: e.y),
    "nested": (lambda b: {"a": [b, {"c": b}]}, lambda e: e["a"][1]["c"]),
    "view": (lambda b: b[:1], lambda e: e), "reversed": (lambda b: b[::-1], lambda e: e),
    "reshaped": (lambda b: b.reshape(2, 1), lambda e: e),
}  # fmt: skip


def pipelines(wrap):
    def iterate(epoch):
        items = Reusing(wrap)
        for i in range(6):
            yield items[i]

    shared = Reusing(wrap)
    return {
        "source": data.source(Reusing(wrap)), "iterable": data.iterable(iterate),
        "map": data.source(range(6)).map(lambda i: shared[i]),
        "map and filter": data.source(range(6)).map(lambda i: shared[i]).filter(lambda e: True),
        "map before a shuffle": data.source(range(6)).map(lambda i: shared[i]).repeat(1),
        "random map": data.source(range(6)).random_map(lambda i, rng: shared[i], 0),
    }  # fmt: skip


@pytest.mark.parametrize("name", WRAPS)
@pytest.mark.parametrize("way", ["source", "iterable", "map", "map and filter", "map before a shuffle", "random map"])
def test_each_example_is_its_own(way, name):
    wrap, get = WRAPS[name]
    pipeline = pipelines(wrap)[way]
    assert [float(get(e).ravel()[0]) for e in list(pipeline)] == [0, 1, 2, 3, 4, 5]
    batches = [get(b).reshape(3, -1)[:, 0].tolist() for b in pipeline.batch(3)]
    assert batches == [[0, 1, 2], [3, 4, 5]]


def test_reused_containers():
    def iterate(epoch):
        example = {}
        for i in range(4):
            example["a"] = i
            yield example

    assert [e["a"] for e in list(data.iterable(iterate))] == [0, 1, 2, 3]


def test_what_nobody_else_holds_is_not_copied():
    address = lambda x: x.__array_interface__["data"][0]
    held = np.zeros((4, 3))
    fixed = held.view()
    fixed.flags.writeable = False
    for make, is_copied in (
        (lambda: np.ones(3), False), (lambda: np.ones((4, 3))[1], False), (lambda: np.ones((2, 3)).T, False),
        (lambda: np.frombuffer(b"abcd", np.uint8), False), (lambda: fixed, False), (lambda: fixed[1], False),
        (lambda: held, True), (lambda: held[1], True), (lambda: held.T[0], True),
    ):  # fmt: skip
        box = [make()]
        before = address(box[0])
        assert (address(owned(box)) != before) == is_copied


def test_packing_and_buckets_of_reused_memory():
    def iterate(epoch):
        buffer = np.zeros(3, "int32")
        for i in range(4):
            buffer[:] = i
            yield buffer[: 1 + i % 3]

    rows = [r["tokens"].tolist() for r in data.iterable(iterate).pack(4)]
    assert rows == [[0, 1, 1, 2], [2, 2, 3, 0]]
    (batch,) = data.iterable(iterate).bucket([3], 4)
    assert batch["tokens"].tolist() == [[0, 0, 0], [1, 1, 0], [2, 2, 2], [3, 0, 0]]
