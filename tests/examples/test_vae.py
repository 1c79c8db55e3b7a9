"""The autoencoder needs far fewer nats for an image than independent pixels do."""

import os

import numpy as np
import pytest
import vae

from atled import data

SMALL = {"batch": 50, "rate": 5e-3, "width": 64, "average": 0.9, "run": None}


def stand_in():
    """Images of the same form, each with a thick bar somewhere: two numbers say all of it."""
    rng = np.random.default_rng(0)
    image = np.zeros((900, 28, 28), "uint8")
    for one in image:
        row, column = rng.integers(2, 20, 2)
        one[row : row + 6, column : column + 6] = 255
    label = np.zeros(900, "uint8")
    return {"train": {"image": image[:800], "label": label[:800]}, "test": {"image": image[800:], "label": label[800:]}}


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "mnist", stand_in)
    picture = tmp_path / "vae.png"
    config = vae.Config(epochs=50, **SMALL, latent=4, picture=str(picture))
    result = vae.main(config)
    assert result["nats"] < 0.7 * result["baseline"]
    assert picture.stat().st_size > 1000


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="needs the data set")
def test_real_digits():
    config = vae.Config(epochs=16, **SMALL, latent=8, examples=2000, picture=None)
    assert vae.main(config)["nats"] < 170
