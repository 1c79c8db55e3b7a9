"""Real processes: each feeds its rows, all have the whole batch, and other numbers of them go on where some stopped."""

import json
import sys
from pathlib import Path

import numpy as np

from atled import data

sys.path.insert(0, str(Path(__file__).parents[1] / "distributed"))
from worlds import run

FILE = str(Path(__file__).with_name("feeding_processes.py"))


def test_two_processes_then_one():
    two = [said[0] for said in run(FILE, 2, 3, "null", ATLED_NUM_CPU_DEVICES="4")]
    assert two[0] == two[1]
    one = run(FILE, 1, 20, json.dumps(two[0]["state"]), ATLED_NUM_CPU_DEVICES="8")[0][0]
    want = [b["y"].tolist() for b in data.arrays(y=np.arange(480)).shuffle(5).batch(48)]
    assert two[0]["seen"] + one["seen"] == want
