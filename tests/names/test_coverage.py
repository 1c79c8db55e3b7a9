"""The page of names is up to date, and what it says is so."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import explained
import offered
import peers

KEPT = peers.kept()


def test_the_page_is_up_to_date():
    assert offered.PAGE.read_text() == offered.page(), "names changed; run python tests/names/offered.py"


@pytest.mark.parametrize("namespace", KEPT)
def test_each_name_is_said_once(namespace):
    found = offered.sorted_out(namespace, KEPT[namespace])
    said = [name for names in found.values() for name in names]
    assert sorted(said) == sorted(KEPT[namespace]) and len(set(said)) == len(said)


@pytest.mark.parametrize("namespace", {**explained.LEFT_OUT, **explained.DIFFERENT})
def test_explanations_are_of_names(namespace):
    """What is left out is not there, what differs is, and both are names of the peer; no name has two reasons."""
    left_out, different = explained.reasons(namespace), explained.DIFFERENT.get(namespace, {})
    assert sorted({*left_out, *different} - set(KEPT[namespace])) == []
    assert [n for n in left_out if offered.is_there(namespace, n)] == [], "they are there now; delete their rows"
    assert [n for n in different if not offered.is_there(namespace, n)] == []
    given = [n for names in explained.LEFT_OUT.get(namespace, {}).values() for n in names.split()]
    assert len(given) == len(left_out)


def test_a_name_that_is_nowhere_is_not_there():
    assert not offered.is_there("numpy", "no_such_name") and not offered.is_there("jax.no_such_module", "sin")
    assert not offered.is_there("array_api", "array.no_such_method") and offered.is_there("array_api", "array.T")


@functools.cache
def _mentioned() -> dict[str, set[str]]:
    """By the last part of a module's name: the names that tests which speak of it use.

    As attributes, imported names and keys of tables, which is short of saying that they are called, but a static check.
    """
    found: dict[str, set[str]] = {}
    for file in sorted(pathlib.Path(__file__).parents[1].rglob("test_*.py")):
        if file == pathlib.Path(__file__):
            continue
        names: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names.update([part for a in node.names for part in a.name.split(".")])
                names.update((getattr(node, "module", None) or "").split("."))
            elif isinstance(node, ast.Constant) and _is_code(node.value):
                names.update(re.findall(r"\w+", node.value))
        for name in names:
            found.setdefault(name, set()).update(names)
    return found


def _is_code(value: object) -> bool:
    """Whether a constant is the key of a table, or a program for another process; no docstring."""
    return isinstance(value, str) and (len(value) < 200 or "import " in value)


@pytest.mark.parametrize("namespace", peers.MODULES)
def test_names_that_are_there_are_tested(namespace):
    found = offered.sorted_out(namespace, KEPT[namespace])
    used = _mentioned().get(offered.ours(namespace).rpartition(".")[2], set())
    assert [n for n in (*found["there"], *found["different"]) if n not in used] == [], "no test names them"


@pytest.mark.parametrize("namespace", peers.NUMPY)
def test_the_names_of_numpy(namespace):
    if not importlib.metadata.version("numpy").startswith("2.4."):
        pytest.skip("the list is NumPy 2.4's")
    machine = {"float96", "float128", "complex192", "complex256"}  # there on some machines only
    assert set(KEPT[namespace]) - machine == set(peers.installed(namespace)) - machine
