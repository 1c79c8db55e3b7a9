"""Every public name has a signature, a summary and an example in the API reference."""

from __future__ import annotations

import doctest
import importlib.util
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def _reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module  # where its dataclass looks for its annotations
    spec.loader.exec_module(module)
    return module


REFERENCE = _reference()
ENTRIES = {name: REFERENCE.entries(name) for name in REFERENCE.namespaces()}


@pytest.mark.parametrize("namespace", ENTRIES)
def test_signature_and_summary(namespace):
    missing = [e.name for e in ENTRIES[namespace] if not e.signature.strip() or not e.summary.strip()]
    assert not missing, f"no signature or summary: {', '.join(missing)}"
    places = [e.name for e in ENTRIES[namespace] if " at 0x" in e.signature]
    assert not places, f"a signature that is another one in each run: {', '.join(places)}"


@pytest.mark.parametrize("namespace", ENTRIES)
def test_every_name_is_on_its_page(namespace):
    page = REFERENCE.pages()[f"{namespace}.md"] if namespace == "atled" else REFERENCE._page(namespace)
    every = REFERENCE.namespaces()
    for last in every[namespace]:
        name = f"{namespace}.{last}"
        assert f"({name}.md)" in page if name in every else f"#{name} }}" in page


def test_every_name_has_an_example():
    without = [e.name for some in ENTRIES.values() for e in some if not e.example]
    assert not without, f"no example: {', '.join(without)}"


def test_what_is_said_of_a_value_is_of_one_that_is_there():
    lasts = {last for some in REFERENCE.namespaces().values() for last in some}
    assert sorted(set(REFERENCE.WORDS) - lasts) == []


@pytest.mark.parametrize("name", REFERENCE.written_examples())
def test_examples_in_the_file(name):
    module, _, last = name.rpartition(".")
    assert last in REFERENCE.namespaces()[module], f"{name} is not public"
    text = REFERENCE.written_examples()[name]
    assert text in [e.example for e in ENTRIES[module] if e.name == name], "its docstring has an example, too"
    failures: list[str] = []
    example = doctest.DocTestParser().get_doctest(text + "\n", {}, name, str(REFERENCE.EXAMPLES), 0)
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)


def test_arguments_become_a_list():
    text = REFERENCE._markdown("Args:\n    x: a *number*\n        of two lines\n\nThen <this>.")
    assert "- `x`: a \\*number\\*\n    of two lines" in text and "Then \\<this>." in text
    assert re.search(r"^\*\*Args\*\*$", text, re.M)
