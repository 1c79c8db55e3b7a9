import os

import numpy as np
import pytest
from mnist_cnn import Config, main

from atled import data


def squares(n, seed):
    """A stand-in for the digits, which are not everywhere: class c is a bright square at place c."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 10, n).astype("uint8")
    images = rng.randint(0, 60, (n, 28, 28)).astype("uint8")
    for image, label in zip(images, labels):
        top, left = 5 + 6 * (label // 4), 3 + 6 * (label % 4)
        image[top : top + 4, left : left + 4] = 255
    return {"image": images, "label": labels}


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "mnist", lambda: {"train": squares(640, 0), "test": squares(500, 1)})
    config = Config(epochs=3, batch=32, channels=4, run=None, picture=str(tmp_path / "wrong.png"))
    assert main(config)["accuracy"] > 0.6
    assert (tmp_path / "wrong.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_digits():
    assert main(Config(epochs=2, batch=64, channels=4, examples=3200, run=None, picture=None))["accuracy"] > 0.8
