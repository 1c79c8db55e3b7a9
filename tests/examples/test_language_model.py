import math
import os

import numpy as np
import pytest
from language_model import Config, counted, main, split

from atled import data


def speeches(words):
    """A stand-in for the speeches, which are not everywhere: one a year, of words in any order."""
    rng, known = (
        np.random.RandomState(0),
        ["fellow", "citizens", "the", "state", "of", "union", "is", "strong", "peace"],
    )
    return "\n".join([f"{year} Somebody\n\n{' '.join(rng.choice(known, words))}.\n" for year in range(1998, 2004)])


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "sotu", lambda: speeches(1000))
    picture = tmp_path / "curve.png"
    config = Config(
        steps=60, context=16, pieces=30, features=32, layers=1, run=str(tmp_path / "run"), picture=str(picture)
    )
    found = main(config)
    # log(9) / 5.4 for the choice of words is 0.4; without learning, a piece alone is log(286), 2.1 per byte
    assert found["Transformer"] < 0.8 and found["3-grams"] < 0.6
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_pieces():
    """They spell the text, words of it are one piece, and the text that is held out teaches nothing."""
    texts = ["the state of the union: aaaa, the state. " * 5, "the unión, zzzz zzzz zzzz"]
    ids, pieces = split(texts, 12)
    assert ["".join([pieces[i].decode("latin1") for i in x]) for x in ids] == [
        text.encode().decode("latin1") for text in texts
    ]
    assert b" the" in pieces and b"zz" not in pieces and len(pieces) == 256 + 12


def test_counts():
    seen, wanted = np.array([0, 0, 1] * 50), np.array([0, 0, 1] * 20)
    assert counted(seen, wanted, 2) < 0.1 < counted(np.random.RandomState(0).randint(0, 2, 500), wanted, 2)
    assert counted(np.array([0, 1, 2, 3]), np.array([0]), 4) == pytest.approx(math.log(4))


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_speeches(monkeypatch):
    text = data.sets.sotu()
    start, end = [text.index(f"\n{year} ") for year in (1995, 2004)]
    monkeypatch.setattr(data.sets, "sotu", lambda: text[start + 1 : end + 1])
    config = Config(steps=200, context=32, pieces=100, features=64, layers=1, run=None, picture=None)
    assert main(config)["Transformer"] < 2.3  # by how often each piece is there alone, it is 2.64
