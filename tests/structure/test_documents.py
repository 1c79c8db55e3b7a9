"""The Python in documents runs, and gives what is written there; what links point to is there."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from atled.data import sets

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("file", DOCUMENTS, ids=[str(f.relative_to(ROOT)) for f in DOCUMENTS])
def test_python_blocks_run(file: pathlib.Path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for what they write
    if file.name == "README.md":  # fewer images, and always there
        monkeypatch.setattr(sets, "mnist", lambda: {part: _images() for part in ("train", "test")})
    text = file.read_text()
    names: dict = {"__name__": "__document__"}
    for match in re.finditer(r"^```python\n(.*?)^```$(?:\n\n```\n(.*?)^```$)?", text, re.M | re.S):
        line = text[: match.start()].count("\n") + 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + match[1], str(file), "exec", dont_inherit=True), names)
        if match[2] and "print" in match[1]:  # what is shown below is what it prints, unless marked as `text`
            assert _plain(printed.getvalue()) == _plain(match[2]), f"{file.name}:{line}"


def _images() -> dict:
    labels = np.arange(200) % 10
    return {"image": np.eye(10, dtype="uint8")[labels].repeat(79, 1)[:, :784].reshape(-1, 28, 28), "label": labels}


def _plain(text: str) -> list[str]:
    """Lines without what changes from run to run: places in the source and the spaces before them."""
    return [re.sub(r" +# \S+:\d+.*", "", line).rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("file", DOCUMENTS, ids=[str(f.relative_to(ROOT)) for f in DOCUMENTS])
def test_links_lead_somewhere(file: pathlib.Path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", file.read_text()):
        if (file.parent / target).resolve().parent == ROOT / "docs" / "api":
            continue  # written by scripts/site, which looks at these
        if not target.startswith(("http:", "https:")):
            assert (file.parent / target).exists(), f"{file.name} links to {target}"


def test_the_chart_shows_the_tables():
    script = ROOT / "scripts" / "readme-pictures"
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0


def test_files_that_are_named_exist():
    """`core/op.py` in a document is a file of the repository; `op.py` in a file of the package is one beside it."""
    files = [f for f in ROOT.rglob("*.py") if not {".venv", "build", "site"} & set(f.relative_to(ROOT).parts)]
    known = {str(f.relative_to(root)) for f in files for root in (ROOT, ROOT / "atled") if f.is_relative_to(root)}
    bare = {f.name for f in files} | {"train.py", "script.py", "sum.py"}  # and the user's own
    gone = []
    for file in (*DOCUMENTS, *(ROOT / "atled").rglob("*.py")):
        for name in re.findall(r"`((?:[\w-]+/)*\w+\.py)`", file.read_text()):
            is_beside = (file.parent / name).exists() or (file in DOCUMENTS and name in bare)
            if name not in known and not is_beside:
                gone.append(f"{file.relative_to(ROOT)}: {name}")
    assert gone == []
