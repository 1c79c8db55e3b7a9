"""Data that several processes hold copies of: where it differs, both are told before a value is read."""

from __future__ import annotations

import pathlib

import pytest
from worlds import started

SCENARIO = str(pathlib.Path(__file__).with_name("copies.py"))


def outcome(kind):
    with started(SCENARIO, 2, kind, ATLED_NUM_CPU_DEVICES="2") as workers:
        codes = [w.child.wait(60) for w in workers]
        return codes, [w.heard() for w in workers], ["".join(w.errors) for w in workers]


@pytest.mark.parametrize("kind", ["host", "device", "part", "nan", "key", "eager", "threads"])
def test_the_same_data(kind):
    codes, said, errors = outcome(kind)
    assert codes == [0, 0], errors
    assert said[0] == said[1] and [list(line) for line in said[0]] == [["read"], ["again"]]


@pytest.mark.parametrize("kind", ["host", "device", "part", "nan", "key", "eager"])
def test_other_data(kind):
    codes, said, errors = outcome(f"other {kind}")
    assert all(codes), (said, errors)
    for lines in said:
        assert [list(line) for line in lines] == [["told"]], lines
        assert "rank 0 put " in lines[0]["told"] and "rank 1 put " in lines[0]["told"]
        assert "copies.py:" in lines[0]["told"] and "try: " in lines[0]["told"]
