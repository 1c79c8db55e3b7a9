"""Functions fit on a screen, and few files are long."""

from __future__ import annotations

import ast
import pathlib

import pytest

import atled

PACKAGE = pathlib.Path(atled.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LINES_OF_A_FUNCTION = 60  # docstring not counted
LINES_OF_A_FILE, LONG_FILES = 600, 5
# "file:function" -> why it is longer
EXCEPTIONS: dict[str, str] = {}


def lengths(file: pathlib.Path) -> dict[str, int]:
    """How many lines each function of a file has, without its docstring."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                first = node.body[0]
                assert first.end_lineno is not None
                lines -= first.end_lineno - first.lineno + 1
            found[node.name] = max(lines, found.get(node.name, 0))
    return found


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(PACKAGE)) for f in FILES])
def test_functions_fit_on_a_screen(file: pathlib.Path):
    place = file.relative_to(PACKAGE).as_posix()
    long = {n: k for n, k in lengths(file).items() if k > LINES_OF_A_FUNCTION and f"{place}:{n}" not in EXCEPTIONS}
    assert not long, f"{place} has functions of more than {LINES_OF_A_FUNCTION} lines, without docstring: {long}"


def test_exceptions_are_needed():
    for name, reason in EXCEPTIONS.items():
        place, _, function = name.partition(":")
        assert reason and lengths(PACKAGE / place).get(function, 0) > LINES_OF_A_FUNCTION, name


def test_few_files_are_long():
    counts = {f.relative_to(PACKAGE).as_posix(): f.read_text().count("\n") for f in FILES}
    long = {name: n for name, n in counts.items() if n > LINES_OF_A_FILE}
    assert len(long) <= LONG_FILES, f"more than {LONG_FILES} files have more than {LINES_OF_A_FILE} lines: {long}"
