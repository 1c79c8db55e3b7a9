"""Names that were chosen again before 0.1: the old ones raise, and say the new ones. This file goes with 0.2."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from atled.core import errors

T = TypeVar("T")


def formerly(**names: str) -> Callable[[T], T]:
    """Decorates a function or a class whose keywords, or a class whose attributes, had other names: old="new".

    >>> @formerly(rate="learning_rate")
    ... def step(learning_rate): return learning_rate
    >>> step(learning_rate=1.0)
    1.0
    >>> step(rate=1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TypeError: step: 'rate' is called 'learning_rate' since 0.1.
    """

    def decorate(thing: Any) -> Any:
        return _class(thing, names) if isinstance(thing, type) else _function(thing, names)

    return decorate


def former_of(cls: type) -> Mapping[str, str]:
    """The names of today by the former ones, of a class and its bases."""
    return getattr(cls, "_former", {})


def _refuse(who: str, names: Mapping[str, str], given: Iterable[str]) -> None:
    for old, new in [(name, names[name]) for name in given if name in names]:
        if new.isidentifier():
            raise TypeError(errors.explained(f"{who}: {old!r} is called {new!r} since 0.1.", f"{new}=…."))
        raise TypeError(errors.explained(f"{who}: {old!r} is said in another way since 0.1.", f"{new}."))


def _function(f: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not names.keys().isdisjoint(kwargs):
            _refuse(f.__qualname__, names, kwargs)
        return f(*args, **kwargs)

    return call


def _parameters(f: Any) -> tuple[str, ...]:
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    code = f.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _class(cls: Any, names: Mapping[str, str]) -> Any:
    init, make, found = cls.__init__, cls.__new__, getattr(cls, "__getattr__", None)

    @functools.wraps(init)
    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs and kind.__init__ is init and not names.keys().isdisjoint(kwargs):
            now = _parameters(init)  # a field may have had the name of a parameter
            _refuse(kind.__name__, names, [name for name in kwargs if name not in now])
        return make(kind) if make is object.__new__ else make(kind, *args, **kwargs)

    def missing(self: Any, name: str) -> Any:
        if name in names:
            raise AttributeError(f"{type(self).__name__}.{name} is called {names[name]} since 0.1.")
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found(self, name)

    cls._former = {**getattr(cls, "_former", {}), **names}
    cls.__new__ = new
    cls.__getattr__ = missing
    return cls
