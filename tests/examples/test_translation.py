import math
import os

import numpy as np
import pytest
import translation
from translation import Config, bleu, main

from atled import data


def backwards():
    """A stand-in for the verses, which are not everywhere: ten words, and the other language says them backwards."""
    rng = np.random.default_rng(0)
    texts = [rng.choice(list("abcdefghij"), rng.integers(4, 7)) for _ in range(1000)]
    return [(" ".join(text), " ".join([2 * word for word in text[::-1]])) for text in texts]


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "bible_english_spanish", backwards)
    monkeypatch.setattr(translation, "LONGEST", 6)
    picture = tmp_path / "looks.png"
    config = Config(steps=200, batch=32, rate=0.02, words=14, width=16, tests=64, run=None, picture=str(picture))
    result = main(config)
    assert result["LSTM"] > 50 > result["word by word"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_bleu():
    """Computed by hand: 5 of 6, 3 of 5, 2 of 4 and 1 of 3 runs are right, and the text is one word too short."""
    found, wanted = list("abcdxf"), list("abcdef.")
    by_hand = 100 * math.exp(1 - 7 / 6) * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu([found], [wanted]) == pytest.approx(by_hand)


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_verses(monkeypatch):
    verses = [pair for pair in data.sets.bible_english_spanish() if len(pair[0]) < 50]
    monkeypatch.setattr(data.sets, "bible_english_spanish", lambda: verses)
    monkeypatch.setattr(translation, "LONGEST", 12)
    result = main(Config(steps=80, batch=32, rate=0.02, words=400, width=32, tests=64, run=None, picture=None))
    assert result["LSTM"] > 5
