"""Processes that launch in different orders: `scripts/fuzz-orders` tries more of them."""

from __future__ import annotations

import pytest
from orders import orders, trial


@pytest.mark.parametrize(("seed", "size"), [(1, 2), (3, 2), (4, 3), (6, 2), (9, 3)])
def test_no_wrong_value_is_read(seed, size):
    assert trial(seed, size) == ""


def test_the_seeds_try_both():
    assert {orders(seed, size)[2] for seed, size in [(1, 2), (3, 2), (4, 3), (6, 2), (9, 3)]} == {True, False}
