import os

import numpy as np
import pytest
from cifar10 import Config, main

from atled import data


def colours(n, seed):
    """A stand-in for the photographs, which are not everywhere: a class is a colour, with noise."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 10, n).astype("uint8")
    palette = np.random.RandomState(7).randint(40, 215, (10, 1, 1, 3))
    images = np.clip(palette[labels] + rng.randint(-40, 40, (n, 32, 32, 3)), 0, 255).astype("uint8")
    return {"image": images, "label": labels}


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "cifar10", lambda: {"train": colours(320, 0), "test": colours(250, 1)})
    config = Config(epochs=3, batch=16, rate=0.1, channels=4, blocks=1, run=None, picture=str(tmp_path / "p.png"))
    assert main(config)["accuracy"] > 0.5
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_photographs():
    config = Config(epochs=2, batch=64, rate=0.1, channels=4, blocks=1, examples=3200, run=None, picture=None)
    assert main(config)["accuracy"] > 0.2
