"""Intermediate values of a model: `capture` runs it and also returns the outputs of some of its modules."""

from __future__ import annotations

import contextlib
import functools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

from atled.core import errors, tree, tree_registry
from atled.core.trace import Tracer
from atled.nn.module import Module, changed, holds_children, retyped
from atled.nn.module_filters import modules, names


class Seen:
    """Outputs of modules, by path: one value for each call."""

    def __init__(self, values: dict[str, list[Any]]) -> None:
        self.values = values

    def add(self, path: str, value: Any) -> None:
        """Record a value."""
        self.values.setdefault(path, []).append(value)

    def hand_on(self) -> None:
        """Add all values to the enclosing collection; after a scan or `vmap` over layers, they have a layer axis."""
        for path, values in self.values.items():
            for value in values:
                _collected.now.add(path, value)


tree_registry.register_node(Seen, lambda s: ((s.values,), None), lambda _, children: Seen(*children))


class _Collected(threading.local):
    now: Any = None


_collected = _Collected()


@contextlib.contextmanager
def collecting() -> Iterator[Seen]:
    """A context manager that collects the outputs of modules called in it."""
    before, _collected.now = _collected.now, Seen({})
    try:
        yield _collected.now
    finally:
        _collected.now = before


@functools.cache
def _tapped(cls: Any) -> Any:
    """A subclass of `cls` that records the outputs of its calls."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        out = cls.__call__(self, *args, **kwargs)
        _collected.now.add(self._tap, out)
        return out

    return type(cls.__name__, (cls,), {"__call__": __call__, "__module__": cls.__module__})


def _attributes(module: Any) -> dict[str, Any]:
    """By name, the value of each attribute of a module, and the leaves of the value, where modules count as leaves."""
    own = {n: v for n, v in module.__getstate__().items() if n not in ("_kinds", "_tap")}
    return {n: (v, tree.leaves(v, is_leaf=_is_module) if holds_children(v) else []) for n, v in own.items()}


def _assign(module: Any, copy: Any, before: dict[str, Any]) -> None:
    """Assign to a module the attributes that a call changed in its copy, such as the statistics of a `BatchNorm`."""
    for name, (value, parts) in _attributes(copy).items():
        old, old_parts = before.get(name, (None, None))
        is_same = name in before and value is old and len(parts) == len(old_parts)
        if not is_same or not all(map(operator.is_, parts, old_parts)):
            setattr(module, name, changed(value, lambda _, m: _untapped(m)) if holds_children(value) else value)


def _untapped(module: Any) -> Any:
    """The module as an instance of its original class, if it is an instance of a recording subclass."""
    if "_tap" not in module.__dict__:
        return module
    plain = object.__new__(type(module).__mro__[1])
    plain.__dict__.update({n: v for n, v in module.__getstate__().items() if n != "_tap"})
    return plain


def _is_module(x: Any) -> bool:
    return isinstance(x, Module)


def capture(model: Any, pattern: str) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """A function that calls a model, and returns its result and the outputs of modules that match a pattern, by path.

    A module that is called several times has a tuple of values. In a `Stack`, values have a leading layer axis.
    Attributes that the call assigns, such as the statistics of a `BatchNorm`, are assigned to the model.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> attention = nn.MultiHeadAttention(8, 2, key=random.key(0))
    >>> out, seen = nn.capture(attention, "query_proj")(jnp.ones((1, 5, 8)))
    >>> {path: value.shape for path, value in seen.items()}
    {'query_proj': (1, 5, 8)}
    """
    paths = [p for p, _ in modules(model)]
    if not any([names(pattern, p) for p in paths]):
        raise ValueError(
            errors.explained(
                f"nn.capture: a pattern must match a module; {pattern!r} matches none.",
                "one of " + ", ".join([p for p in paths if p][:6]),
            )
        )

    def tap(path: str, m: Any) -> Any:
        return retyped(m, _tapped(type(m)), "_tap", path) if names(pattern, path) else m

    def call(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        marked = changed(model, tap)
        both = zip(modules(model), modules(marked), strict=True)
        pairs = [(m, copy, _attributes(copy)) for (_, m), (_, copy) in both]
        with collecting() as seen:
            out = marked(*args, **kwargs)
        for path, values in seen.values.items():
            for x in tree.leaves(values):
                if isinstance(x, Tracer) and not x.interpreter.is_open:
                    raise errors.UnexpectedTracerError(
                        errors.explained(
                            f"nn.capture: {path} was called inside of {x.interpreter.transform}, so its "
                            f"values are not available outside.",
                            "a Stack for identical layers, or capture inside of that function, and return the values.",
                        )
                    )
        for module, copy, before in pairs:
            _assign(module, copy, before)
        return out, {p: v[0] if len(v) == 1 else tuple(v) for p, v in seen.values.items()}

    return call
