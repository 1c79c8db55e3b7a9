"""When two functions are the same function, for the trace cache.

A lambda, partial or bound method that is made anew in a loop should hit the cache. Functions are compared by their code
and by what they refer to, in closures and globals: plain values by value; modules, classes and functions by identity.
A function that refers to anything else (arrays, dicts, objects) is only ever equal to itself, so that nothing large
is kept alive and nothing that may change is compared; bound methods are equal as long as their object lives.
`remembered` keeps what loops and branches are recorded as by such keys.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import config
from atled.core.config import settings
from atled.core.trace import state

_BY_VALUE = (int, float, complex, bool, str, bytes, type(None), np.dtype, np.generic)
_BY_IDENTITY = (types.ModuleType, type, types.BuiltinFunctionType, np.ufunc)
_DEEPEST = 4  # closures in closures, before a function is taken to be equal to itself alone


class Heavy(Exception):  # noqa: N818
    """A function refers to something that cannot be part of a key."""


class Same:
    """Equal to itself alone, and keeps what it stands for alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def function_key(f: Any) -> Any:
    """A hashable key that is equal for functions that do the same; raises `Heavy` if there is none."""
    return _function(f, ())


def _function(f: Any, seen: tuple[Any, ...]) -> Any:
    if any([f is s for s in seen]):
        return "itself"
    if len(seen) > _DEEPEST:
        raise Heavy
    seen = (*seen, f)
    if isinstance(f, _BY_IDENTITY) or (type(f) is types.FunctionType and f.__code__.co_filename == "<atled>"):
        return Same(f)  # the latter are compiled functions, whose code and globals change
    if type(f) is types.FunctionType:
        cells = tuple([_value(c.cell_contents, seen) if _is_filled(c) else None for c in f.__closure__ or ()])
        defaults = _value(f.__defaults__, seen) if f.__defaults__ else None
        named = tuple([(k, _value(v, seen)) for k, v in f.__kwdefaults__.items()]) if f.__kwdefaults__ else None
        found = f.__globals__
        outside = tuple([(n, _global(found[n])) for n in _names(f.__code__) if n in found])
        return Same(f.__code__), cells, defaults, named, outside
    if type(f) is functools.partial:
        named = tuple([(k, _value(v, seen)) for k, v in f.keywords.items()])
        return "partial", _function(f.func, seen), _value(f.args, seen), named
    raise Heavy


def _value(x: Any, seen: tuple[Any, ...]) -> Any:
    kind = type(x)
    if isinstance(x, _BY_VALUE):
        return kind, x, repr(x) if isinstance(x, (float, complex)) else None  # 0.0 and -0.0 differ
    if kind is tuple or kind is frozenset:
        return kind, tuple([_value(v, seen) for v in x])
    if isinstance(x, (types.FunctionType, functools.partial)):
        return _function(x, seen)
    if isinstance(x, _BY_IDENTITY):
        return Same(x)
    raise Heavy


def _global(x: Any) -> Any:
    if isinstance(x, (types.FunctionType, *_BY_IDENTITY)):
        return Same(x)
    return _value(x, ())


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # not assigned yet
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _names_of(code: Same) -> tuple[str, ...]:
    found = dict.fromkeys(code.value.co_names)
    for constant in code.value.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(_names_of(Same(constant))))
    return tuple(found)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names that code, and code inside it, may look up in globals."""
    return _names_of(Same(code))


class WeakIdentityDict:
    """A dict by identity of objects, whose entries go when the object does."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}

    def get(self, anchor: Any) -> Any:
        """What is kept for an object, or None."""
        found = self._entries.get(id(anchor))
        return found[1] if found is not None and found[0]() is anchor else None

    def set(self, anchor: Any, value: Any) -> None:
        """Keep something for as long as an object lives; objects that cannot be watched keep nothing."""
        key = id(anchor)
        try:
            watch = weakref.ref(anchor, lambda _: self._entries.pop(key, None))
        except TypeError:
            return
        self._entries[key] = (watch, value)


recordings: dict[Any, Any] = {}  # what loops and branches were recorded as, where nothing is being traced
_RECORDINGS_LIMIT = 1024


def remembered(functions: Sequence[Callable[..., Any]], key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make()` gives, kept for functions that do the same: called outside of `jit`, a loop is recorded once."""
    if state.level or state.base.is_watching:
        return make()
    try:
        key = (tuple([function_key(f) for f in functions]), *key, config.trace_key(), settings.check_programs)
    except Heavy:
        return make()
    found = recordings.get(key)
    if found is None:
        found = make()
        while len(recordings) >= _RECORDINGS_LIMIT:
            recordings.pop(next(iter(recordings)))
        recordings[key] = found
    return found
