"""The examples in docstrings run, and give what is written there."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CHANGES_DEVICES = re.compile(r"^>>> (initialize|clear_backends)\(", re.M)  # and so is for a process of its own
SKIPPED = 3  # lines with packages that tests do not need: of Parquet and ArrayRecord files; may only fall
ALONE = """
import doctest, importlib, sys
module, name, text = sys.argv[1:]
example = doctest.DocTestParser().get_doctest(text, dict(vars(importlib.import_module(module))), name, module, 0)
sys.exit(doctest.DocTestRunner(verbose=False).run(example).failed)
"""


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
            elif isinstance(node, ast.Call):  # of what makes a function, with its docstring, and mostly its name
                texts = [x.value for x in node.args if isinstance(x, ast.Constant) and isinstance(x.value, str)]
                name = texts[0].split("\n")[0] if texts else ""
                found += [(module, name, inspect.cleandoc(x), node.lineno) for x in texts if ">>>" in x]
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("module, name, text, line", EXAMPLES, ids=[f"{m}.{n}" for m, n, _, _ in EXAMPLES])
def test_examples_in_docstrings(module, name, text, line):
    if CHANGES_DEVICES.search(text):
        done = subprocess.run([sys.executable, "-c", ALONE, module, name, text], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    names = dict(vars(importlib.import_module(module)))
    example = doctest.DocTestParser().get_doctest(text, names, f"{module}.{name}", module, line)
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)


def test_few_lines_are_skipped():
    assert sum([text.count("doctest: +SKIP") for _, _, text, _ in EXAMPLES]) == SKIPPED
