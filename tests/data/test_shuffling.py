"""Orders: permutations, even ones, another in each epoch, at no cost that grows with their length."""

import math
import time
import tracemalloc

import numpy as np
import pytest

from atled import data
from atled.data.permutations import permuted, round_keys


@pytest.mark.parametrize("seed", range(3))
def test_each_number_once(seed):
    for n in [*range(301), 509, 4093, 65537, 65536, 99991]:
        found = permuted(np.arange(n), n, round_keys(seed, 1))
        assert found.dtype == np.int64
        assert np.array_equal(np.sort(found), np.arange(n)), n


@pytest.mark.parametrize("n", [4, 5])
def test_all_orders_of_few_are_as_likely(n):
    counts = {}
    for epoch in range(2400):
        order = tuple(permuted(np.arange(n), n, round_keys(3, epoch)).tolist())
        counts[order] = counts.get(order, 0) + 1
    orders = math.factorial(n)
    expected = 2400 / orders
    chi = sum([(c - expected) ** 2 / expected for c in counts.values()]) + expected * (orders - len(counts))
    assert chi < orders - 1 + 5 * math.sqrt(2 * (orders - 1))


@pytest.mark.parametrize("n", [1000, 10**6])
def test_even(n):
    """Where positions go is even over tenths, neighbours are torn apart, and little stays where it was."""
    found = permuted(np.arange(n), n, round_keys(0, 0))
    bins = min(100, n // 10)
    table = np.zeros((bins, bins))
    np.add.at(table, (np.arange(n) * bins // n, found * bins // n), 1)
    expected = n / bins**2
    chi = ((table - expected) ** 2 / expected).sum()
    freedom = (bins - 1) ** 2
    assert abs(chi - freedom) < 6 * math.sqrt(2 * freedom)
    for gap in (1, 2, 3, math.isqrt(n - 1) + 1):
        kept = (np.abs(np.diff(found)) == gap).sum()  # 2 in n pairs by chance
        assert kept <= 2 + 6 * math.sqrt(2), gap
    assert (found == np.arange(n)).sum() <= 1 + 6  # 1 by chance
    lags = found.astype(float) - found.mean()
    assert abs((lags[1:] * lags[:-1]).mean() / lags.var()) < 6 / math.sqrt(n)


def test_epochs_and_seeds_differ():
    n = 10_000
    orders = [permuted(np.arange(n), n, round_keys(s, e)) for s, e in ((0, 0), (0, 1), (1, 0), (1, 1))]
    for i, a in enumerate(orders):
        for b in orders[:i]:
            assert (a == b).sum() < 10
            assert abs(np.corrcoef(a, b)[0, 1]) < 0.06


class Virtual:
    """A source of many examples, none of which is stored."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        assert 0 <= i < self.n
        return np.int64(i)


def test_ten_billion_cost_nothing():
    batches = data.source(Virtual(10**10)).shuffle(0).batch(128)
    next(batches.iterator())
    tracemalloc.start()
    began = time.process_time()
    batch = next(batches.iterator())
    took = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert took < 0.05  # with tracing; 1 ms without
    assert peak < 1_000_000
    assert len(set(batch.tolist())) == 128 and batch.max() > 10**9


def test_restore_at_a_billion():
    batches = data.source(Virtual(10**12)).shuffle(0).batch(100)
    iterator = batches.iterator()
    state = {**iterator.state(), "position": 10**9, "batches": 10**7}
    began = time.process_time()
    batch = next(iterator.restore(state))
    assert time.process_time() - began < 0.5
    want = permuted(np.arange(10**9, 10**9 + 100), 10**12, round_keys(0, 0))
    assert np.array_equal(batch, want)
