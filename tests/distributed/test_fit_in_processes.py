"""`train.fit` in several processes: the losses of one, the same step for all, and other numbers of processes go on."""

from __future__ import annotations

import pathlib

import numpy as np
from worlds import run

from atled import checkpoints, train

FILE = str(pathlib.Path(__file__).with_name("fitting.py"))


def losses(path):
    found = train.records(path)
    assert [one["step"] for one in found] == list(range(1, len(found) + 1))
    return np.array([[one["loss"], one["norm"]] for one in found])


def test_losses_are_those_of_one_process(tmp_path):
    """And a run of four goes on as two: the batch is that of all processes together, so it stays the same."""
    run(FILE, 1, "plain", tmp_path / "one", 20, ATLED_NUM_CPU_DEVICES="1")
    said = run(FILE, 4, "plain", tmp_path / "four", 10, ATLED_NUM_CPU_DEVICES="1")
    assert len({one[0]["weight"] for one in said}) == 1
    run(FILE, 2, "plain", tmp_path / "four", 20, ATLED_NUM_CPU_DEVICES="2")
    np.testing.assert_allclose(losses(tmp_path / "one"), losses(tmp_path / "four"), rtol=1e-5, atol=1e-6)


def test_all_stop_at_the_same_step_if_one_is_told(tmp_path):
    said = run(FILE, 2, "signal", tmp_path, 3000, ATLED_NUM_CPU_DEVICES="1")
    assert [one[0] for one in said] == [{"code": 143}] * 2
    latest = checkpoints.Saver(tmp_path).latest()
    assert latest is not None and 5 <= latest < 3000 and len(losses(tmp_path)) == latest


def test_a_nan_in_several_processes(tmp_path):
    for one in run(FILE, 2, "nan", tmp_path, 10, ATLED_NUM_CPU_DEVICES="1"):
        assert "step 1: loss nan" in one[0]["error"]
