import os

import numpy as np
import pytest
from tagging import Config, main

from atled import data


def text(verses):
    """A stand-in for the Greek text, which is not everywhere: the part of speech shows in a word's last letter.

    Words that end in "e" are verbs after an "o", and nouns elsewhere, so neighbours matter as well.
    """
    rng = np.random.RandomState(0)
    endings = {"o": "RA", "s": "N-", "n": "A-"}
    found = {"verse": [], "word": [], "part": []}
    for i in range(verses):
        before = ""
        for _ in range(8):
            word = "".join(rng.choice(list("abcdfg"), 3)) + rng.choice(list("osne"))
            part = endings.get(word[-1]) or ("V-" if before.endswith("o") else "N-")
            found["verse"].append(10000 * (1 + i % 5) + i)
            found["word"].append(word)
            found["part"].append(part)
            before = word
    order = np.argsort(found["verse"], kind="stable")
    return {name: np.array(column)[order] for name, column in found.items()}


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "greek_new_testament", lambda: text(500))
    path = tmp_path / "tags.png"
    found = main(Config(epochs=6, batch=16, rate=2e-2, features=32, letters=4, run=None, picture=str(path)))
    assert found["model"] > 0.97 and found["model, new words"] > 0.97
    assert found["most frequent"] < 0.95 and found["most frequent, new words"] < 0.5
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_verses():
    found = main(
        Config(epochs=3, batch=8, rate=1e-2, features=32, letters=3, book=26, verses=640, run=None, picture=None)
    )
    assert found["model"] > 0.75
