"""Hamiltonian Monte Carlo finds the posterior, and is better at it than a random walk."""

import os

import hmc
import numpy as np
import pytest

from atled import data

SMALL = {"chains": 8, "warmup": 80, "draws": 80, "leaps": 8}


def stand_in():
    """Images of the same form: an 8 has a dot that a 3 lacks, and everything else is noise."""
    rng = np.random.default_rng(0)
    label = rng.choice(np.array([3, 8], "uint8"), 60)
    image = rng.integers(0, 5, (60, 8, 8), "uint8")
    image[label == 8, 4, 2:4] += 8
    return {"image": image, "label": label}


def test_chains_agree_and_predict(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "digits", stand_in)
    picture = tmp_path / "hmc.png"
    result = hmc.main(hmc.Config(**SMALL, picture=str(picture)))
    assert result["Hamiltonian"]["rhat"] < 1.1
    assert result["Hamiltonian"]["draws"] > 2 * result["random walk"]["draws"]
    assert result["Hamiltonian"]["loss"] < 0.3  # 0.69 is what a coin would have
    assert picture.stat().st_size > 1000


def test_diagnosed():
    """Independent draws count fully, those of a sluggish chain little, and chains at different places are noticed."""
    draws = np.random.default_rng(0).normal(size=(1000, 4, 1))
    rhat, size = hmc.diagnosed(draws)
    assert rhat[0] < 1.01 and 3000 < size[0] < 5000
    slow = np.zeros((1000, 4, 1))
    for i in range(1, 1000):
        slow[i] = 0.9 * slow[i - 1] + draws[i]
    assert 100 < hmc.diagnosed(slow)[1][0] < 400  # a share of 0.1 / 1.9
    assert hmc.diagnosed(draws + np.arange(4)[:, None])[0][0] > 1.3


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="needs the data set")
def test_real_digits():
    result = hmc.main(hmc.Config(**SMALL, picture=None))
    assert result["Hamiltonian"]["loss"] < 0.15
