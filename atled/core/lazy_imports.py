"""The public names of a package: a table says which file has each, and the first use of a name imports its file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

on_missing: list[Callable[[str], None]] = []  # called with the full name of an attribute that no package has


def public(
    package: str,
    names: Mapping[str, str],
    modules: str = "",
    at_once: Mapping[str, str] | None = None,
    former: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    Names are separated by blanks, by the file that has them: `"layers"` is a file of the package, `"atled.core.tree"`
    another one; `new=old` renames. The files of `at_once` are imported now. `former` has names that are called
    otherwise since 0.1, for the message. `__init__.pyi` says the same to type checkers, see `scripts/stubs`.

    >>> get, names, everything = public("atled.core", {"types": "ArrayType Type=ArrayType"}, "tree")
    >>> names(), get("Type").__name__, get("tree").__name__
    (['ArrayType', 'Type', 'tree'], 'ArrayType', 'atled.core.tree')
    """
    here = vars(sys.modules[package])
    files: dict[str, tuple[str, str]] = {}  # by public name: where it is, and under which name
    for table in (names, at_once or {}):
        for file, given in table.items():
            for entry in given.split():
                new, _, old = entry.partition("=")
                files[new] = (file if file.startswith("atled.") else f"{package}.{file}", old or new)
    folders = modules.split()
    hidden = {name for name in folders if name[0] == "_"}
    everything = sorted({*files, *folders, *({"__version__"} & set(here))} - hidden)

    def get(name: str) -> Any:
        if name in files:
            file, old = files[name]
            value = getattr(importlib.import_module(file), old)
        elif name in folders:
            value = importlib.import_module(f"{package}.{name}")
        else:
            for note in on_missing:
                note(f"{package}.{name}")
            says = f"module {package!r} has no attribute {name!r}"
            if former and name in former:
                says += f": it is called {former[name]!r} since 0.1"
            raise AttributeError(says, name=name, obj=sys.modules[package])
        here[name] = value
        return value

    for file, given in (at_once or {}).items():
        importlib.import_module(file if file.startswith("atled.") else f"{package}.{file}")
        for entry in given.split():
            get(entry.partition("=")[0])
    return get, everything.copy, everything
