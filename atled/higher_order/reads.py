"""Finds what the code of a function reads from outside: globals, closure cells, and their attributes.

A chain such as `("config", "rate")` is a name followed by attributes. Code that looks up values in other ways, or
modifies them, cannot be analyzed from its bytecode; such code is not `is_closed`.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import Any, NamedTuple

from atled.core.exact import IdentityKey

Chain = tuple[str, ...]

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_CELL = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_CHANGES = {
    "STORE_GLOBAL", "DELETE_GLOBAL", "DELETE_ATTR", "IMPORT_NAME", "IMPORT_FROM", "LOAD_BUILD_CLASS", "STORE_NAME",
    "DELETE_NAME", "DELETE_DEREF", "LOAD_LOCALS",
}  # fmt: skip


class Reads(NamedTuple):
    """What code reads from outside."""

    names: tuple[Chain, ...]  # chains from globals and builtins
    cells: tuple[Chain, ...]  # chains from variables of enclosing functions
    first: tuple[Chain, ...] | None  # attributes of the first parameter; None if it is used in other ways, too
    changes_first: bool  # assigns attributes of its first parameter
    is_closed: bool  # the chains are complete, and the code modifies nothing outside


def reads_of(code: CodeType) -> Reads:
    """What code, and functions nested in it, read from outside."""
    return _reads_of(IdentityKey(code))  # by identity: equal code may be at different locations


@functools.lru_cache(maxsize=4096)
def _reads_of(key: IdentityKey) -> Reads:
    code: CodeType = key.value
    first = code.co_varnames[0] if code.co_argcount else None
    chains: dict[str, dict[Chain, None]] = {"names": {}, "cells": {}, "first": {}}
    is_bare = changes_first = False  # whether the first parameter is used as a whole
    is_closed = True
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("CACHE", "EXTENDED_ARG")]
    for n, step in enumerate(steps):
        name, value = step.opname, step.argval
        if name in _CHANGES or (name.startswith("STORE_DEREF") and value in code.co_freevars):
            is_closed = False
        elif name == "STORE_ATTR":
            owner = steps[n - 1]
            loaded = owner.argval if isinstance(owner.argval, tuple) else (owner.argval,)
            if first is not None and loaded[-1] == first and owner.opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
                changes_first = True
            else:
                is_closed = False
        elif name in _GLOBAL:
            chains["names"][value, *_attributes(steps, n)] = None
        elif name in _CELL and value in code.co_freevars:
            chains["cells"][value, *_attributes(steps, n)] = None
        elif first is not None and (name.startswith(("LOAD_FAST", "STORE_FAST")) or name in _CELL):
            loaded = value if isinstance(value, tuple) else (value,)
            if first in loaded and not _is_owner_of_store(steps, n):
                chain = (
                    _attributes(steps, n) if loaded[-1] == first and name.endswith(("FAST", "DEREF", "BORROW")) else ()
                )
                is_bare = is_bare or not chain or "STORE" in name or loaded.count(first) > 1
                chains["first"][chain] = None
        elif first is not None and name in ("STORE_DEREF", "DELETE_FAST") and value == first:
            is_bare = True
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reads_of(constant)
            is_closed = is_closed and inner.is_closed and not inner.changes_first
            chains["names"].update(dict.fromkeys(inner.names))
            for chain in inner.cells:
                if chain[0] in code.co_freevars:
                    chains["cells"][chain] = None
                elif chain[0] == first:
                    chains["first"][chain[1:]] = None
                    is_bare = is_bare or len(chain) == 1
    return Reads(
        tuple(chains["names"]),
        tuple(chains["cells"]),
        None if is_bare else tuple(chains["first"]),
        changes_first,
        is_closed,
    )


def _attributes(steps: list[Any], n: int) -> Chain:
    """The chain of attributes that are loaded from the result of instruction n."""
    taken = []
    while n + 1 < len(steps) and steps[n + 1].opname in _ATTRIBUTE:
        n += 1
        taken.append(steps[n].argval)
    return tuple(taken)


def _is_owner_of_store(steps: list[Any], n: int) -> bool:
    return n + 1 < len(steps) and steps[n + 1].opname == "STORE_ATTR"
