import os

import numpy as np
import pytest
from wordnet import Config, main

from atled import data


def families():
    """A stand-in for WordNet, which is not everywhere: below a root, 59 nodes whose definition tells their class, one
    of six, and below those 840, whose definition does not, so that the graph is needed."""
    rng = np.random.default_rng(0)
    upper = np.concatenate([[0], np.zeros(59, int), rng.integers(1, 60, 840)])
    label = np.concatenate([rng.integers(0, 6, 60), np.zeros(840, int)])
    label[60:] = label[upper[60:]]
    filler = " ".join([2 * letter for letter in "abcdefghijklmnopqrstuvwxyz"])  # the most common words are left out
    tells = [" ".join([3 * letter for letter in "abcdefghijklmnopqr"[3 * c : 3 * c + 3]]) for c in label]
    noise = [" ".join([3 * letter for letter in rng.choice(list("stuvwxyz"), 3)]) for _ in label]
    return {
        "label": label.astype("uint8"),
        "gloss": [f"{filler} {tells[i] if i < 60 else noise[i]}" for i in range(900)],
        "edges": np.stack([np.arange(1, 900), upper[1:]], 1).astype("int32"),
        "kind": np.zeros(899, "uint8"),
        "kinds": ["@"],
    }


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "wordnet", families)
    picture = tmp_path / "nouns.png"
    result = main(Config(steps=60, batch=45, room=128, width=16, layers=1, rate=0.03, run=None, picture=str(picture)))
    assert result["graph network"] > 0.7 > 0.4 > result["bag of words"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_nouns(monkeypatch):
    nouns = data.sets.wordnet()
    few = 14_210  # the most general ones, acts and animals
    inside = (nouns["edges"] < few).all(1)
    part = {"label": nouns["label"][:few], "gloss": nouns["gloss"][:few], "kinds": nouns["kinds"]}
    part |= {"edges": nouns["edges"][inside], "kind": nouns["kind"][inside]}
    monkeypatch.setattr(data.sets, "wordnet", lambda: part)
    result = main(Config(steps=30, batch=203, room=1024, width=16, layers=2, rate=0.03, run=None, picture=None))
    assert result["graph network"] > 0.75
