"""Source locations and scope names of traced code, with the API of `jax.extend.source_info_util`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from atled.core import source
from atled.core.source import Source as SourceInfo
from atled.core.trace import state

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack", "summarize",
    "transform_name_stack", "user_context",
]  # fmt: skip
__dir__ = __all__.copy


def current() -> Any:
    """The line of user code that is running.

    >>> current() is None or current().line > 0
    True
    """
    return source.here()


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """A source location as one line of text.

    >>> summarize(None)
    'unknown'
    """
    if source_info is None or source_info is source.NOWHERE:
        return "unknown"
    return f"{source_info.file}:{source_info.line} ({source_info.function})"


def new_source_info() -> SourceInfo:
    """An unknown source location, without scopes.

    >>> summarize(new_source_info())
    'unknown'
    """
    return source.NOWHERE


@contextlib.contextmanager
def user_context(traceback: SourceInfo | None, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """A `with` block in which recorded equations get the given source location and scope names.

    Intended for custom interpreters that transform equations.

    >>> import atled, atled.numpy as jnp
    >>> (equation,) = atled.jax.make_jaxpr(jnp.sin)(1.0).eqns
    >>> def f(x):
    ...     with user_context(equation.source_info.traceback, name_stack=new_name_stack("again")):
    ...         return jnp.cos(x)
    >>> found = atled.jax.make_jaxpr(f)(1.0).eqns[0].source_info
    >>> found.line == equation.source_info.line, found.name_stack
    (True, 'again')
    """
    names = "" if name_stack is None else "".join([f"{n}/" for n in name_stack.stack])
    place = traceback if traceback is None or not names else source.scoped(traceback, names)
    before = state.source
    with source.in_scopes(names):
        state.source = before if place is None else place
        try:
            yield
        finally:
            state.source = before


def register_exclusion(path: str) -> None:
    """Treat the files under a path as library code: messages name no lines in them.

    >>> register_exclusion("/nowhere/my_library")
    """
    source.exclude(path)


class NameStack(NamedTuple):
    """The names of scopes and transformations, the outermost first; names of transformations end with `(`.

    >>> str(NameStack().extend("model").extend("layer")), str(NameStack().transform("vmap").extend("layer"))
    ('model/layer', 'vmap(layer)')
    """

    stack: tuple[str, ...] = ()

    def extend(self, name: str) -> NameStack:
        """The name stack with one more name."""
        return NameStack((*self.stack, name))

    def transform(self, name: str) -> NameStack:
        """The name stack with a transformation, which is printed with the names after it in parentheses."""
        return self.extend(f"{name}(")

    def __add__(self, other: Any) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __len__(self) -> int:
        return len(self.stack)

    def __getitem__(self, idx: Any) -> Any:
        return NameStack(self.stack[idx]) if isinstance(idx, slice) else self.stack[idx]

    def __str__(self) -> str:
        return source.shown("".join([f"{n}/" for n in self.stack])).rstrip("/")


def new_name_stack(name: str = "") -> NameStack:
    """An empty name stack, or a name stack with one name.

    >>> len(new_name_stack()), len(new_name_stack("model"))
    (0, 1)
    """
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    """The names of the active `named_scope`s.

    >>> import atled
    >>> with atled.named_scope("model"):
    ...     str(current_name_stack())
    'model'
    """
    return NameStack(tuple([n for n in source.current_scopes().split("/") if n]))


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """A `with` block in which only these scope names are active.

    >>> with set_name_stack(new_name_stack("model")):
    ...     str(current_name_stack())
    'model'
    """
    with source.in_scopes("".join([f"{n}/" for n in name_stack.stack])):
        yield


@contextlib.contextmanager
def extend_name_stack(name: str) -> Iterator[NameStack]:
    """A `with` block with one more scope name.

    >>> with extend_name_stack("model"), extend_name_stack("layer") as names:
    ...     str(names)
    'model/layer'
    """
    names = current_name_stack().extend(name)
    with set_name_stack(names):
        yield names


@contextlib.contextmanager
def transform_name_stack(name: str) -> Iterator[NameStack]:
    """A `with` block with one more transformation name, which prints inner scopes in parentheses.

    >>> with extend_name_stack("model"), transform_name_stack("mine"), extend_name_stack("layer") as names:
    ...     str(names)
    'model/mine(layer)'
    """
    names = current_name_stack().transform(name)
    with set_name_stack(names):
        yield names


@contextlib.contextmanager
def reset_name_stack() -> Iterator[None]:
    """A `with` block without scope names.

    >>> with extend_name_stack("model"), reset_name_stack():
    ...     len(current_name_stack())
    0
    """
    with set_name_stack(NameStack()):
        yield
