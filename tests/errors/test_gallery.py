"""Errors that teach: every mistake of the gallery is met with its message, its line, and a way out that works."""

from __future__ import annotations

import linecache
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
from gallery import GALLERY, IMPORTS, Mistake
from pages import FOLDER, page

from atled.core.source import is_library_file
from atled.staging.launch_codegen import donors


def run(code: str, file: str = "train.py") -> tuple[BaseException | None, str]:
    """Run code as a file of a user; returns what it raised, and the text."""
    text = IMPORTS + textwrap.dedent(code)
    donors.clear()  # messages name the functions that took arguments over lately
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec", dont_inherit=True), {"__name__": "train"})
    except BaseException as error:
        return error, text
    return None, text


def test_there_are_sixty():
    assert len({m.name for m in GALLERY}) == len(GALLERY) >= 60


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mistake", GALLERY, ids=[m.name for m in GALLERY])
def test_the_message(mistake: Mistake):
    error, text = run(mistake.bad)
    assert error is not None, "the mistake was not noticed"
    assert type(error).__name__ == mistake.error, error
    lines = str(error).splitlines()
    assert re.search(mistake.says, lines[0]), lines[0]
    assert re.search(mistake.suggests, "\n".join(lines[1:]), re.DOTALL), str(error)
    assert len(lines) <= 12
    marked = [n for n, line in enumerate(text.splitlines(), 1) if "# here" in line]
    assert len(marked) == 1 and f"train.py:{marked[0]}" in str(error), str(error)
    assert text.splitlines()[marked[0] - 1].strip() in str(error), "the line itself is not shown"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mistake", GALLERY, ids=[m.name for m in GALLERY])
def test_the_way_out(mistake: Mistake):
    error, _ = run(mistake.good)
    assert error is None, error


@pytest.mark.parametrize("mistake", GALLERY, ids=[m.name for m in GALLERY])
def test_the_page(mistake: Mistake):
    assert (FOLDER / f"{mistake.name}.md").read_text() == page(mistake), "python tests/errors/pages.py writes it anew"


@pytest.mark.parametrize("mistake", GALLERY[::10], ids=[m.name for m in GALLERY[::10]])
def test_an_uncaught_error_shows_no_frame_of_the_library(mistake: Mistake, tmp_path: pathlib.Path):
    script = tmp_path / "train.py"
    script.write_text(IMPORTS + textwrap.dedent(mistake.bad))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    files = re.findall(r'File "([^"]+)"', done.stderr)
    assert files and not [f for f in files if is_library_file(f)], done.stderr


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        ("y = (x @ x,\n     1)", "y = (x @ x.T,"),
        ("y = [\n    jnp.matmul(x, 2 * x) + 1]", "jnp.matmul(x, (2 * x).T) + 1]"),
        ("if x is None:\n    pass\nelif (x @ x).sum() > 0:\n    pass", "elif (x @ x.T).sum() > 0:"),
        ("y = jnp.sum(x @ x)  # a comment", "y = jnp.sum(x @ x.T)"),
    ],
)
def test_one_line_of_a_statement_is_written_anew(code: str, way_out: str):
    error, _ = run(f"x = jnp.ones((2, 3))\n{code}")
    assert str(error).splitlines()[-1] == f"  try: {way_out}"
