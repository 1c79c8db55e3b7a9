"""The source location of an equation in the user's code.

A `Source` holds a code object and an instruction offset, which are cheap to take while tracing; file, line and text
are computed on demand. The library's own frames are skipped.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from types import CodeType
from typing import Any, ClassVar

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_GENERATED = "<atled "  # the prefix of generated functions' file names
_places = (_PACKAGE, _GENERATED, "<frozen runpy>")  # runpy executes `-m atled`
# Cached properties and context managers pass through these files.
_is_library: dict[str, bool] = {functools.__file__: True, contextlib.__file__: True}


def compiled(text: str) -> CodeType:
    """Compile the text of a generated function; tracebacks and debuggers can show its lines."""
    filename = f"{_GENERATED}{hash(text) & 0xFFFFFFFF:08x}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return compile(text, filename, "exec")


def is_library_file(filename: str) -> bool:
    """Whether a frame with this file name belongs to the library, not to the user."""
    known = _is_library.get(filename)
    if known is None:
        known = _is_library[filename] = filename.startswith(_places)
    return known


def exclude(path: str) -> None:
    """Treat the files under a path as library code."""
    global _places
    _places = (*_places, path)
    for name in [name for name in _is_library if name.startswith(path)]:
        del _is_library[name]


@functools.lru_cache(maxsize=256)
def _positions(code: CodeType) -> list[Any]:
    return list(code.co_positions())


class Source:
    """A location in the user's code.

    >>> import atled
    >>> atled.make_program(lambda x: x + 1)(1.0).equations[0].source.line
    1
    """

    __slots__ = ("code", "lasti")
    is_backward: ClassVar[bool] = False  # marks ops of the backward pass for that location

    def __init__(self, code: CodeType, lasti: int) -> None:
        self.code = code
        self.lasti = lasti

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def position(self) -> tuple[int, int]:
        """Line and column, both counted from one; zero if unknown."""
        line, _, column, _ = self.span
        return line or self.code.co_firstlineno, (column or 0) + 1

    @property
    def span(self) -> tuple[Any, Any, Any, Any]:
        """First and last line, first and last column of the expression that was running; columns from zero."""
        positions, at = _positions(self.code), self.lasti // 2
        return positions[at] if at < len(positions) else (None, None, None, None)

    @property
    def line(self) -> int:
        return self.position[0]

    @property
    def text(self) -> str:
        """The source line itself, or an empty string if the file is not available."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"

    def __repr__(self) -> str:
        return f"Source({self} in {self.function})"

    @property
    def scopes(self) -> str:
        """The `named_scope` names at this location, each with a trailing slash."""
        return ""


NOWHERE = Source(compile("", "<unknown>", "exec"), 0)


class _Backward(Source):
    __slots__ = ()
    is_backward = True


class _Scoped(Source):
    __slots__ = ("names",)

    def __init__(self, code: CodeType, lasti: int, names: str) -> None:
        super().__init__(code, lasti)
        self.names = names

    @property
    def scopes(self) -> str:
        return self.names


class _ScopedBackward(_Scoped):
    __slots__ = ()
    is_backward = True


def shown(names: str) -> str:
    """Scope names as compiled programs show them: `t(/a/b/`, for a transformation t, becomes `t(a/b)/`."""
    if "(/" not in names:
        return names
    outside, *inside = names.split("(/")
    out = outside
    for part in inside:  # the scopes in one transformation, and the name of the next
        scopes, _, last = part.rpartition("/")
        out += f"({scopes})/{last}"
    return out


def scoped(source: Source, names: str) -> Source:
    """The same location with these scope names, each with a trailing slash."""
    return _Scoped(source.code, source.lasti, names)


def backward(source: Any) -> Any:
    """The same location, in the backward pass."""
    if type(source) is _Scoped:
        return _ScopedBackward(source.code, source.lasti, source.names)
    return _Backward(source.code, source.lasti) if type(source) is Source else source


_scopes: ContextVar[str] = ContextVar("scopes", default="")
_open_scopes = [0]  # active scopes in all threads; if zero, `here` skips the lookup
_lock = threading.Lock()


class named_scope(contextlib.ContextDecorator):  # noqa: N801
    """A `with` block, or a decorator, that names the ops in it, in compiled programs and in profiles.

    >>> import atled
    >>> @atled.jit
    ... def f(x):
    ...     with atled.named_scope("encoder"):
    ...         return atled.numpy.sin(x)
    >>> "encoder/sin" in f.lower(1.0).as_text(debug_info=True)
    True
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"named_scope: the name must be a non-empty string; got {name!r}.")
        self._name = name
        self._tokens: list[Any] = []

    def _recreate_cm(self) -> named_scope:
        return named_scope(self._name)

    def __enter__(self) -> None:
        with _lock:
            _open_scopes[0] += 1
        self._tokens.append(_scopes.set(f"{_scopes.get()}{self._name}/"))

    def __exit__(self, *_: Any) -> None:
        _scopes.reset(self._tokens.pop())
        with _lock:
            _open_scopes[0] -= 1


@contextlib.contextmanager
def in_scopes(names: str) -> Iterator[None]:
    """A `with` block with exactly these scope names, each with a trailing slash."""
    with _lock:
        _open_scopes[0] += 1
    token = _scopes.set(names)
    try:
        yield
    finally:
        _scopes.reset(token)
        with _lock:
            _open_scopes[0] -= 1


def current_scopes() -> str:
    """The current scope names, each with a trailing slash."""
    return _scopes.get()


def here() -> Source | None:
    """The location in the user's code that led to this call: that of the innermost frame outside the library."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        known = _is_library.get(code.co_filename)
        if known is None:
            known = is_library_file(code.co_filename)
        if not known and not (code.co_filename == "<string>" and code.co_qualname.startswith("__create_fn__")):
            if _open_scopes[0] and (names := _scopes.get()):
                return _Scoped(code, frame.f_lasti, names)
            return Source(code, frame.f_lasti)
        frame = frame.f_back
    return None


def opens_block(frame: Any) -> bool:
    """Whether a `with` statement uses the result of the frame's current call as its context manager."""
    return _opens_block(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=256)
def _opens_block(code: CodeType, at: int) -> bool:
    steps = {step.offset: step for step in dis.get_instructions(code)}
    order = sorted(steps)
    while True:
        at = next((n for n in order if n > at), -1)
        if at < 0 or steps[at].opname in ("BEFORE_WITH", "BEFORE_ASYNC_WITH", "LOAD_SPECIAL"):
            return at >= 0
        if steps[at].opname.startswith("JUMP_FORWARD"):  # `with a if b else c:`
            at = steps[at].argval - 1
        elif steps[at].opname not in ("NOP", "COPY", "CACHE"):
            return False


def describe(source: Source | None) -> str:
    """An indented line for error messages: function, file and line, and the line's text."""
    if source is None:
        return ""
    text = source.text
    return f"\n  in {source.function}, {source}" + (f"\n    {text}" if text else "")
