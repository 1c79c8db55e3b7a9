"""The types that users' programs get from a checker: one run of pyright over the programs of this folder."""

from __future__ import annotations

import inspect
import json
import pathlib
import runpy
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = sorted((pathlib.Path(__file__).parent / "programs").glob("*.py"))


@pytest.fixture(scope="module")
def found() -> dict[str, dict[int, str]]:
    """The errors by program and line."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *map(str, PROGRAMS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        pytest.skip(f"pyright is not here: {done.stderr[-200:]}")
    out: dict[str, dict[int, str]] = {p.name: {} for p in PROGRAMS}
    for row in report["generalDiagnostics"]:
        if row["severity"] == "error":
            out[pathlib.Path(row["file"]).name][row["range"]["start"]["line"] + 1] = row["message"]
    return out


@pytest.mark.parametrize("program", [p.name for p in PROGRAMS if p.stem != "wrong"])
def test_programs_have_the_types_that_they_say(program, found):
    assert found[program] == {}


def test_what_is_wrong_is_found(found):
    lines = (PROGRAMS[0].parent / "wrong.py").read_text().splitlines()
    assert sorted(found["wrong.py"]) == [i for i, line in enumerate(lines, 1) if "# error" in line]


def test_the_programs_of_users_run():
    users = runpy.run_path(str(PROGRAMS[0].parent / "users.py"))
    snippets = [f for n, f in users.items() if inspect.isfunction(f) and f.__module__ == "<run_path>" and n != "loss"]
    assert len(snippets) >= 60
    for snippet in snippets:
        snippet()
