import os

import numpy as np
import pytest
from diffusion import Config, frechet, gaussian, main

from atled import data


def bars(n, seed):
    """A stand-in for the digits, which are not everywhere: class c is a white bar, somewhere in row or column c."""
    rng = np.random.RandomState(seed)
    labels, images = (np.arange(n) % 10).astype("uint8"), np.zeros((n, 28, 28), "uint8")
    for image, label in zip(images, labels):
        start, place = rng.randint(4, 14), 5 * (label % 5) + 3
        (image if label < 5 else image.T)[place : place + 3, start : start + 12] = 255
    return {"image": images, "label": labels}


def test_it_learns(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "mnist", lambda: {"train": bars(1000, 0), "test": bars(1000, 1)})
    picture = tmp_path / "found.png"
    found = main(Config(steps=100, batch=32, width=32, layers=2, samples=100, run=None, picture=str(picture)))
    assert found["written"] < 10 and found["flow"] < 130  # without learning it is 200
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_frechet():
    """Of a Gaussian and the one that is moved by 3 and twice as wide: 3² + (2 - 1)², for each of two features."""
    x = np.random.RandomState(0).randn(1000, 2)
    x = (x - x.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    assert frechet(x, x) == pytest.approx(0, abs=1e-6)
    assert frechet(x, 2 * x + 3) == pytest.approx(20)


def test_gaussians_are_those_of_their_digit():
    label, digits = np.arange(1000) % 10, np.arange(2000) % 10
    image = label[:, None, None, None] / 20 + 0.01 * np.random.RandomState(0).randn(1000, 28, 28, 1)
    away = gaussian(image, label, digits) - digits[:, None, None, None] / 20
    assert abs(away.mean()) < 1e-3 and abs(away.std() - 0.01) < 1e-3


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="without the data")
def test_it_learns_real_digits(monkeypatch):
    sets = {part: {name: x[:3000] for name, x in arrays.items()} for part, arrays in data.sets.mnist().items()}
    monkeypatch.setattr(data.sets, "mnist", lambda: sets)
    found = main(Config(steps=100, batch=32, width=32, layers=2, samples=100, run=None, picture=None))
    assert found["flow"] < 130  # without learning it is 220
