"""The public names of a package: a table says which file has each, and the first use of a name imports its file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

on_missing: list[Callable[[str], None]] = []  # called with the full name of an attribute that no package has


def public(
    package: str, names: Mapping[str, str], modules: str = "", at_once: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    `names` maps a file, such as `"layers"` in the package or `"atled.core.tree"` elsewhere, to its public names,
    separated by blanks; `new=old` renames. The files in `at_once` are imported immediately. For type checkers,
    `scripts/stubs` writes the same table to `__init__.pyi`.

    >>> get, names, everything = public("atled.core", {"types": "ArrayType Type=ArrayType"}, "tree")
    >>> names(), get("Type").__name__, get("tree").__name__
    (['ArrayType', 'Type', 'tree'], 'ArrayType', 'atled.core.tree')
    """
    here = vars(sys.modules[package])
    files: dict[str, tuple[str, str]] = {}  # public name -> its module, and its name there
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
            now = importlib.import_module("atled.core.former_names").FORMER.get(package, {}).get(name)
            hint = f": it was renamed to {now!r} in 0.1" if now else ""
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules[package]
            )
        here[name] = value
        return value

    for file, given in (at_once or {}).items():
        importlib.import_module(file if file.startswith("atled.") else f"{package}.{file}")
        for entry in given.split():
            get(entry.partition("=")[0])
    return get, everything.copy, everything
