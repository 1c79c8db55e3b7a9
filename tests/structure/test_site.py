"""The site builds, with every link and anchor, and chapters have notebooks. A step of its own in scripts/check."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None,
    reason="the site was not built: mkdocs-material is not installed; try: pip install -e '.[docs]'",
)
def test_site_builds():
    done = subprocess.run([sys.executable, "scripts/site"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    for chapter in sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md")):
        made = ROOT / "site" / "tutorial" / f"{chapter.stem}.ipynb"
        assert json.loads(made.read_text())["nbformat"] == 4
        assert f'href="{made.name}"' in made.with_suffix(".html").read_text()
