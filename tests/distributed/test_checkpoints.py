"""Checkpoints of several processes: each writes its parts, and any number of processes reads them."""

from __future__ import annotations

import pathlib

import pytest
from worlds import run

from atled import checkpoints

FILE = str(pathlib.Path(__file__).with_name("checkpointing.py"))


@pytest.mark.parametrize("writers, readers", [(4, 2), (1, 2), (2, 4), (4, 1)])
def test_saved_by_some_and_loaded_by_others(tmp_path, writers, readers):
    """The devices are eight in all."""
    run(FILE, writers, "save", tmp_path, ATLED_NUM_CPU_DEVICES=str(8 // writers))
    found = checkpoints.manifest(tmp_path)
    assert len(found.files) == writers and len(found.arrays["rows"].pieces) == 8
    for said in run(FILE, readers, "load", tmp_path, ATLED_NUM_CPU_DEVICES=str(8 // readers)):
        assert said[0]["bits"] == said[0]["want"]


def test_a_saver_of_several_processes(tmp_path):
    assert run(FILE, 2, "saver", tmp_path) == [[{"steps": [1, 2]}], [{"steps": [1, 2]}]]
    assert sorted([p.name for p in tmp_path.iterdir()]) == ["step-00000001", "step-00000002"]


@pytest.mark.parametrize("who", ["fail", "fail first", "fail late"])
def test_all_hear_of_one_that_could_not_write(tmp_path, who):
    for said in run(FILE, 2, who, tmp_path / "c", timeout=30):
        assert "No space left on device" in said[0]["error"]
    assert not (tmp_path / "c").exists()


def test_processes_that_are_not_in_step(tmp_path):
    for said in run(FILE, 2, "apart", tmp_path, timeout=30):
        assert "all processes must save the same" in said[0]["error"] and "step-00000006" in said[0]["error"]
    assert list(tmp_path.iterdir()) == []


def test_all_restore_the_same_step_if_one_finds_damage(tmp_path):
    run(FILE, 2, "saver", tmp_path)
    file = next((tmp_path / "step-00000002").glob("*-1-0.data"))  # which the second process alone reads
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    first, second = [said[0] for said in run(FILE, 2, "restore", tmp_path)]
    assert first["step"] == second["step"] == 1 and first["first"] == second["first"] == 1.0
    assert "Another process could not read step 2" in first["warnings"][0] and "is damaged" in second["warnings"][0]
