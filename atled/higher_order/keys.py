"""When two functions are the same function, for the trace cache.

A lambda, partial or bound method that is made anew in a loop should hit the cache. Functions are compared by their code
and by what they close over: plain values by value, everything else by identity.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

_BY_VALUE = (int, float, complex, bool, str, bytes, type(None), np.dtype, np.generic, type)


class Same:
    """Equal to itself alone, and keeps what it stands for alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def value_key(x: Any, seen: tuple[Any, ...] = ()) -> Any:
    """A hashable stand-in for a value that a function closes over."""
    kind = type(x)
    if isinstance(x, _BY_VALUE):
        return kind, x, repr(x) if kind in (float, complex) else None
    if kind is tuple or kind is frozenset:
        return kind, tuple([value_key(v, seen) for v in x])
    if isinstance(x, (types.FunctionType, types.MethodType, functools.partial)):
        return function_key(x, seen)
    return Same(x)


def function_key(f: Any, seen: tuple[Any, ...] = ()) -> Any:
    """A hashable key that is equal for functions that do the same."""
    if len(seen) > 4 or any([f is s for s in seen]):  # deep closures, and functions that refer to themselves
        return Same(f)
    seen = (*seen, f)
    if type(f) is types.FunctionType:
        cells = tuple([_cell_key(c, seen) for c in f.__closure__ or ()])
        defaults = value_key(f.__defaults__, seen) if f.__defaults__ else None
        named = tuple([(k, value_key(v, seen)) for k, v in f.__kwdefaults__.items()]) if f.__kwdefaults__ else None
        return Same(f.__code__), Same(f.__globals__), cells, defaults, named
    if type(f) is types.MethodType:
        return "method", function_key(f.__func__, seen), Same(f.__self__)
    if type(f) is functools.partial:
        named = tuple([(k, value_key(v, seen)) for k, v in f.keywords.items()])
        return "partial", function_key(f.func, seen), value_key(f.args, seen), named
    return Same(f)


def _cell_key(cell: Any, seen: tuple[Any, ...]) -> Any:
    try:
        return value_key(cell.cell_contents, seen)
    except ValueError:  # not assigned yet
        return Same(cell)
