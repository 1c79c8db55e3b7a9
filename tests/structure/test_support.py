"""The table of what is supported says what is found when it is tried, and what was noted."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[2]


def test_table_is_up_to_date():
    command = [sys.executable, "scripts/support-table", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_tested_is_what_is_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tested = json.loads((ROOT / "scripts" / "support.json").read_text())["wheels"]
    named = [c.split(" :: ")[-1] for c in project["classifiers"] if ":: Python :: 3." in c]
    assert [python for python, *_ in tested[::2]] == named == [python for python, *_ in tested[1::2]]
    (wanted,) = [d for d in project["dependencies"] if d.startswith("jaxlib")]
    assert f">={tested[0][1]}," in wanted  # the oldest one
