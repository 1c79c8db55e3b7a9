"""The Gaussian process finds the settings that made the data, and predicts better than a polynomial."""

import os

import gaussian_process
import numpy as np
import pytest

from atled import data


def stand_in():
    """Addresses of the same form: of 10 presidents, each for 5 years, whose sentences differ by 30 % or so."""
    rng = np.random.default_rng(0)
    styles = 30 * np.exp(0.3 * rng.normal(size=10))
    lines = []
    for year in range(50):
        words = [rng.poisson(styles[year // 5]) + 1 for _ in range(100)]
        text = " ".join(["word " * (n - 1) + "end." for n in words])
        lines.append(f"{1800 + year} Name {'ABCDEFGHIJ'[year // 5]}\n\n{text}\n\n")
    return "\n".join(lines)


def test_settings_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(data.sets, "sotu", stand_in)
    picture = tmp_path / "gaussian_process.png"
    result = gaussian_process.main(gaussian_process.Config(folds=5, picture=str(picture)))
    assert result["settings"]["noise"] < 0.04  # the mean of 100 sentences is off by 2 %
    assert 0.1 < np.hypot(result["settings"]["president"], result["settings"]["drift"]) < 0.6
    assert result["process"]["error"] < 0.05
    assert result["process"]["density"] > result["polynomial"]["density"] + 1
    assert picture.stat().st_size > 1000


@pytest.mark.skipif("ATLED_DATA" not in os.environ, reason="needs the data set")
def test_real_addresses():
    result = gaussian_process.main(gaussian_process.Config(folds=2, steps=20, picture=None))
    assert result["process"]["error"] < 0.12
    assert result["process"]["density"] > result["polynomial"]["density"]
