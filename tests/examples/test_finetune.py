import os

import numpy as np
import pytest
from finetune import Config, adapted, main
from small_language_model import load

from atled import checkpoints, data, models, nn, tree


def plays():
    """A stand-in for the plays, which are not everywhere: two, of a few words in any order."""
    rng, known = np.random.RandomState(0), ["king", "queen", "sword", "crown", "love"]
    return "by William Shakespeare".join([" ".join(rng.choice(known, n)) for n in (2000, 300)])


def test_it_learns(monkeypatch, tmp_path):
    """And nothing but the matrices of LoRA is trained, and saved."""
    monkeypatch.setattr(data.sets, "smollm2", lambda: None)
    monkeypatch.setattr(data.sets, "shakespeare", plays)
    monkeypatch.setattr(models, "load", load)
    picture, run = tmp_path / "curve.png", tmp_path / "run"
    small = {"batch": 8, "context": 16, "rank": 8, "rate": 0.03, "tests": 16, "prompt": "king "}
    result = main(Config(steps=60, **small, run=str(run), picture=str(picture)))
    assert result["after"] < 2.5 < 5 < result["before"]  # log(257) is 5.5
    assert picture.read_bytes().startswith(b"\x89PNG")

    arrays = checkpoints.manifest(run / "step-00000060").arrays
    saved = [path for path in arrays if path.startswith("model/")]
    assert len(saved) == 2 * 7 and all([path.endswith(("/down/weight", "/up/weight")) for path in saved])
    model, _ = load()
    frozen = nn.filter(adapted(model, 8), nn.Frozen)
    assert all([(a == b).all() for a, b in zip(tree.leaves(frozen), tree.leaves(model), strict=True)])


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_plays():
    result = main(Config(steps=6, batch=2, context=32, rate=3e-3, tests=4, run=None, picture=None))
    assert result["after"] < result["before"] < 6
