import math
import os

import numpy as np
import pytest
from shakespeare import Config, counted, main

from atled import data


def words(count):
    """A stand-in for the plays, which are not everywhere: words in any order, so that letters follow from others."""
    known = ["romeo", "juliet", "wherefore", "art", "thou", "prince", "night", "sword", "o", "love"]
    return " ".join([known[i] for i in np.random.RandomState(0).randint(0, len(known), count)])


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "shakespeare", lambda: words(4000))
    config = Config(
        steps=100, context=32, features=32, layers=1, run=str(tmp_path), picture=str(tmp_path / "curve.png")
    )
    found = main(config)
    # log(10) / 6 for the choice of words is 0.4; without learning it is log(19) = 2.9, by frequency 2.7
    assert found["nats"] < 1.0 and found["by counting"] < 0.6
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_counts():
    seen, wanted = np.array([0, 1] * 50), np.array([0, 1] * 10)
    one, two = counted(seen, wanted, 2, 2)
    assert one == pytest.approx(math.log(2)) and two < 0.1


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_plays():
    config = Config(steps=120, context=32, features=32, layers=1, characters=200_000, run=None, picture=None)
    assert main(config)["nats"] < 2.8
