"""Finds the list, attribute, global or closure in which a side effect stored a leaked tracer."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

from atled.core.source import is_library_file

_DEPTH = 6


def holder(x: Any) -> str:
    """The variable or attribute that refers to an object, as source text; empty if none is found."""
    seen, local = {id(x)}, _locals()
    paths = [(x, "")]
    for _ in range(_DEPTH):
        longer: list[tuple[Any, str]] = []
        for target, rest in paths:
            if rest and id(target) in local:
                return local[id(target)] + rest
            for owner in gc.get_referrers(target):
                if id(owner) in seen or owner is paths or owner is longer or isinstance(owner, types.FrameType):
                    continue
                seen.add(id(owner))
                name = _named(owner, target)
                if name:
                    return name + rest
                longer += [(owner, step + rest) for step in _steps(owner, target)]
        paths = longer
    return local.get(id(x), "")


def _locals() -> dict[int, str]:
    """The names of the objects in local variables of the user's functions on the stack, by `id`."""
    names: dict[int, str] = {}
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not is_library_file(code.co_filename) and code.co_name != "<module>":
            names.update({id(v): f"{k} in {code.co_qualname}" for k, v in frame.f_locals.items()})
        frame = frame.f_back
    return names


def _named(owner: Any, target: Any) -> str:
    """An expression for `target`, if its owner is a module, class, closure or object; else an empty string."""
    if isinstance(owner, dict):
        key = next((k for k, v in owner.items() if v is target), None)
        if isinstance(key, str) and "__builtins__" in owner and "__name__" in owner:
            module = owner["__name__"]
            return key if module == "__main__" else f"{module}.{key}"
        for o in gc.get_referrers(owner) if isinstance(key, str) else ():
            if (isinstance(o, type) or getattr(o, "__dict__", None) is owner) and not _is_own(o):
                return f"{_title(o)}.{key}"
        return ""
    if isinstance(owner, tuple) and isinstance(target, types.CellType):
        for f in gc.get_referrers(owner):
            if isinstance(f, types.FunctionType) and f.__closure__ is owner:
                names = zip(owner, f.__code__.co_freevars, strict=True)
                return next(name for cell, name in names if cell is target) + f" in {f.__qualname__}"
        return ""
    if type(owner).__module__ not in ("builtins", "types") and not _is_own(owner):
        for key, value in getattr(owner, "__dict__", {}).items():
            if value is target:
                return f"{_title(owner)}.{key}"
    return ""


def _steps(owner: Any, target: Any) -> Iterator[str]:
    """The index or key of `target` in a container, as source text."""
    if isinstance(owner, (list, tuple)):
        yield from [f"[{i}]" for i, v in enumerate(owner) if v is target][:1]
    elif isinstance(owner, dict):
        yield from [f"[{k!r}]" for k, v in owner.items() if v is target][:1]
    elif isinstance(owner, (set, frozenset, types.CellType)):
        yield ""


def _title(x: Any) -> str:
    return x.__name__ if isinstance(x, (type, types.ModuleType, types.FunctionType)) else f"{type(x).__name__}()"


def _is_own(x: Any) -> bool:
    """Whether an object's class or function is defined in the library."""
    module = getattr(x if isinstance(x, (type, types.FunctionType)) else type(x), "__module__", "") or ""
    return module.split(".")[0] == __name__.split(".")[0]
