"""What `scripts/seeded-bugs` replaces is still in the package."""

from __future__ import annotations

import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CASES = runpy.run_path(str(ROOT / "scripts" / "seeded-bugs"))["cases"](None)


@pytest.mark.parametrize("file, old", [case[:2] for case in CASES], ids=[case[-1] for case in CASES])
def test_the_text_of_a_bug_is_there(file, old):
    assert old in (ROOT / "atled" / file).read_text()
