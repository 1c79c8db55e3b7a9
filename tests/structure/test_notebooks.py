"""Notebooks hold the code of their chapters, all of it and in its order, and run."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "notebooks"))
NOTEBOOKS = {name: json.loads(text) for name, text in SCRIPT["notebooks"]().items()}


def _text(lines: list[str]) -> str:
    return "".join(lines)


def test_every_chapter_has_one():
    assert len(NOTEBOOKS) == 8


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_is_that_of_the_chapter(name):
    chapter = (ROOT / "docs" / "tutorial" / name.replace(".ipynb", ".md")).read_text()
    cells = [cell for cell in NOTEBOOKS[name]["cells"] if cell["cell_type"] == "code"]
    assert [_text(cell["source"]) + "\n" for cell in cells] == re.findall(
        r"^```python\n(.*?)^```$", chapter, re.M | re.S
    )
    for cell in cells:
        compile(_text(cell["source"]), name, "exec", dont_inherit=True)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_text_is_whole(name):
    words = [cell for cell in NOTEBOOKS[name]["cells"] if cell["cell_type"] == "markdown"]
    text = "\n".join([_text(cell["source"]) for cell in words])
    for cell in words:  # nothing goes on in the next cell
        assert _text(cell["source"]).count("<details>") == _text(cell["source"]).count("</details>")
        assert _text(cell["source"]).count("```") % 2 == 0
    assert text.count("**Answer**") + text.count("<summary>Answer</summary>") >= 3 and "markdown=" not in text
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if link.endswith(".md")] == []
    pictures = {picture for cell in words for picture in cell.get("attachments", {})}
    assert pictures == set(re.findall(r"\(attachment:([^)]+)\)", text)) != set()
    for link in re.findall(r"\]\(([^):]+)\)", text):
        assert link in NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_form(name):
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(NOTEBOOKS[name])


@pytest.mark.parametrize("name", ["1-arrays.ipynb", "2-grad.ipynb"])  # test_documents.py runs all chapters
def test_cells_run_and_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__notebook__"}
    for cell in NOTEBOOKS[name]["cells"]:
        if cell["cell_type"] == "code":
            file = tmp_path / f"{cell['id']}.py"  # a file each, as Jupyter has it: messages show lines
            file.write_text(_text(cell["source"]))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(file.read_text(), str(file), "exec", dont_inherit=True), names)
            for output in cell["outputs"]:
                assert printed.getvalue() == _text(output["text"])
