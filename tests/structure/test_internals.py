"""The documents for maintainers name classes and functions of the source, and of JAX's: all of them exist."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs" / "internals").glob("*.md"))]
JAX = ROOT / "docs" / "internals" / "jax-source.md"
VERSION = "0.10.2"  # of the table in that page
known = runpy.run_path(str(pathlib.Path(__file__).with_name("test_docstring_names.py")))["known"]


def cells(line: str) -> list[str]:
    """The cells of a row of a table; another line is one cell."""
    return [c.strip() for c in line.strip("|").split("|")] if line.startswith("|") else [line]


def names(text: str) -> list[str]:
    """Names in backticks: of classes, functions and attributes, not of files."""
    found = re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", text)
    return [name for name in found if not name.endswith((".py", ".pyi", ".md"))]


@pytest.mark.parametrize("file", PAGES, ids=[f.stem for f in PAGES])
def test_names_exist(file: pathlib.Path):
    text = re.sub(r"^```.*?^```$", "", file.read_text(), flags=re.M | re.S)
    gone = []
    for line in text.splitlines():
        row = cells(line)
        ours = [row[0], *row[2:]] if file == JAX and len(row) > 1 else row
        gone += [name for name in names(" ".join(ours)) if name.rpartition(".")[2] not in known()]
    assert gone == []


def test_names_of_jax_exist():
    found = importlib.util.find_spec("jax")
    if found is None or found.origin is None or importlib.metadata.version("jax") != VERSION:
        pytest.skip(f"the source of JAX {VERSION} is not installed")
    source = pathlib.Path(found.origin).parent / "_src"
    gone = []
    for line in JAX.read_text().splitlines():
        for name in names(cells(line)[1]) if line.startswith("|") else ():
            parts = name.split(".")
            count = next(
                (k for k in range(len(parts) - 1, 0, -1) if source.joinpath(*parts[:k]).with_suffix(".py").exists()), 0
            )
            text = source.joinpath(*parts[:count]).with_suffix(".py").read_text() if count else ""
            gone += [name for part in parts[count:] if not re.search(rf"\b{part}\b", text)]
    assert gone == []


@pytest.mark.parametrize("file", PAGES, ids=[f.stem for f in PAGES])
def test_pages_are_short(file: pathlib.Path):
    count = len(file.read_text().split())
    assert count <= (2000 if file.parent == ROOT else 1300), f"{file.name} has {count} words"
