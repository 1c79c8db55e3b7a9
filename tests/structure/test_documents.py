"""The Python in documents and docstrings runs, and gives what is written there; what links point to is there."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import pathlib
import re

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
        if not target.startswith(("http:", "https:")):
            assert (file.parent / target).exists(), f"{file.name} links to {target}"


def examples() -> list[tuple[str, str, str, int]]:
    """Module, name, docstring and line of every docstring with examples, from the source: decorators hide some."""
    found = []
    for file in sorted((ROOT / "atled").rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                text = ast.get_docstring(node)
                if text and ">>>" in text:
                    found.append((module, getattr(node, "name", "module"), text, getattr(node, "lineno", 0)))
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("module, name, text, line", EXAMPLES, ids=[f"{m}.{n}" for m, n, _, _ in EXAMPLES])
def test_examples_in_docstrings(module, name, text, line):
    names = dict(vars(importlib.import_module(module)))
    example = doctest.DocTestParser().get_doctest(text, names, f"{module}.{name}", module, line)
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)
