"""The library's exception classes, and the removal of its own frames from tracebacks.

Most mistakes raise built-in exceptions. A class here is one whose explanation is longer than a line: its docstring is
the help page, and the message says what to do.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

from atled.core.settings import scope
from atled.core.source import Source, describe, here, is_library_file


class TracingTypeError(TypeError):
    """Base class of the type errors in this file. Never raised itself.

    >>> issubclass(TracerBoolConversionError, TracingTypeError)
    True
    """


class TracingIndexError(IndexError):
    """Base class of the index errors in this file. Never raised itself.

    >>> issubclass(NonConcreteBooleanIndexError, TracingIndexError)
    True
    """


class ConcretizationTypeError(TracingTypeError):
    """A Python value of a traced array was requested, but it has no value while the function is being traced.

    Under `jit` a function runs once on tracers, which records its ops. `float(x)`, `x.item()`, shapes and
    sizes that depend on `x` need a number at that moment, and there is none yet. Keep the computation in arrays, or
    make the argument static: `jit(f, static_argnames="n")`.

    >>> import atled
    >>> atled.jit(float)(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ConcretizationTypeError: float: a Python value was asked of a traced ~f32[], whose value is not known here.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `not` or `bool()` was used on a traced array, whose value is not known yet.

    Under `jit` both outcomes must be in the program: use `numpy.where(c, a, b)` to choose between values, `lax.cond`
    to choose what to compute, `&`, `|` and `~` on arrays, or make the argument static.

    >>> import atled
    >>> atled.jit(lambda x: 1 if x > 0 else 0)(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerBoolConversionError: bool: the truth value of a traced bool[] is not known here.
    """


class TracerArrayConversionError(TracingTypeError):
    """A NumPy function, or `numpy.asarray`, was called with a traced array, whose value is not known yet.

    Use the function of the same name in `atled.numpy`, or compute with NumPy outside of `jit`.

    >>> import atled, numpy
    >>> atled.jit(numpy.asarray)(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerArrayConversionError: numpy.asarray: a NumPy array was asked of a traced ~f32[].
    """


class TracerIntegerConversionError(TracingTypeError):
    """A traced array, whose value is not known yet, was used as a list index, in `range` or as another Python integer.

    Index an array instead of a list (`atled.numpy.asarray(items)[i]`), use `lax.fori_loop` instead of `range`, or make
    the argument static.

    >>> import atled
    >>> atled.jit(lambda i: [10, 20][i])(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerIntegerConversionError: index: a Python integer was asked of a traced ~i32[], whose value is not known here.
    """


class NonConcreteBooleanIndexError(TracingIndexError):
    """A traced boolean mask was used as an index, so the size of the result is unknown.

    Use `numpy.where(mask, x, fill)` to keep the shape, `numpy.nonzero(mask, size=n)` to bound it, or
    `x.at[mask].set(v)` to write through the mask.

    >>> import atled, atled.numpy as jnp
    >>> atled.jit(lambda x: x[x > 0])(jnp.ones(3))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NonConcreteBooleanIndexError: index: a traced mask bool[3] selects an unknown number of elements.
    """


class KeyReuseError(TracingTypeError):
    """A random key was used twice while the setting `key_reuse` is "raise", which would repeat the same random numbers.

    Split it first, `key, sub = random.split(key)`, and use every part once; use `random.clone(key)` if the repetition
    is intended.

    >>> import atled
    >>> key = atled.random.key(0)
    >>> with atled.settings.override(key_reuse="raise"):
    ...     atled.random.normal(key) + atled.random.normal(key)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    KeyReuseError: random.normal: this key was used before, in <module>, train.py:2.
    """


class ShapeError(ValueError, TypeError):
    """Operands with incompatible shapes were multiplied.

    NumPy raises a ValueError here, JAX a TypeError; this class is both.

    >>> import atled.numpy as jnp
    >>> jnp.ones((2, 3)) @ jnp.ones((2, 3))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ShapeError: matmul: the last axis of f32[2,3] and the second to last axis of f32[2,3] must have the same length.
    """


class UnexpectedTracerError(TracingTypeError, RuntimeError):
    """A leaked tracer: it was used after the transformation that created it had ended.

    A function under `jit`, `grad` or `vmap` stored one of its intermediate values somewhere outside (a list, an
    attribute, a global) by side effect, and the value was used later. Return the value from the function instead.

    >>> import atled
    >>> kept = []
    >>> atled.jit(lambda x: kept.append(x))(1.0)
    >>> kept[0] + 1  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    UnexpectedTracerError: leaked value: a ~f32[] made inside jit escaped by a side effect and was used later.
    """


_kept: dict[int, BaseException] = {}  # raised in callbacks of compiled code; the newest last
_KEPT = re.compile(r"callback raised an exception, number (\d+)")


def keep(error: BaseException) -> str:
    """Store an exception until the result of the computation is read; the returned text identifies it."""
    number = max(_kept, default=0) + 1
    _kept[number] = error
    while len(_kept) > 64:
        _kept.pop(next(iter(_kept)), None)
    return f"callback raised an exception, number {number}"


def kept(text: str) -> BaseException | None:
    """The stored exception that an engine's error message refers to."""
    match = _KEPT.search(text)
    return _kept.get(int(match[1])) if match else None


E_ = TypeVar("E_", bound=BaseException)


def for_user(error: E_) -> E_:
    """An error that leaves the library, as users see it.

    The library's frames are cut out of its traceback, and if the library raised it, the message says where in the
    user's code: function, file, line, and the line itself.
    """
    if not scope().hide_frames:
        return error
    frames, is_own = _user_frames(error.__traceback__)
    error.__traceback__ = _chain(frames)
    if is_own:
        _say_where(error, Source(frames[-1].tb_frame.f_code, frames[-1].tb_lasti) if frames else here())
    _hide_frames(error)
    return error


def explained(says: str, instead: str = "", more: str = "") -> str:
    """The message of an error: what is wrong, the user's line, further lines, and what to write instead."""
    _hide_frames()
    return says + describe(here()) + more + (f"\n  try: {instead}" if instead else "")


def warn(says: str, category: type[Warning] = UserWarning, instead: str = "") -> None:
    """Warn at the user's line: what is wrong, and what to write instead. Python shows it once for each line."""
    where = here()
    file, line = (where.file, where.line) if where is not None else ("<unknown>", 0)
    text = says + describe(where) + (f"\n  try: {instead}" if instead else "")
    warnings.warn_explicit(text, category, file, line, registry=_shown.setdefault(file, {}))


_shown: dict[str, dict[Any, Any]] = {}  # by file, what Python has shown; without it, a loop would warn in every step


def _hide_frames(error: Any = None) -> None:
    """Remove the library's frames when an uncaught error of the library is printed."""
    if error is not None:
        with contextlib.suppress(AttributeError):  # instances of a few classes have no attributes
            error._passed_atled = True
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _user_frames(entry: Any) -> tuple[list[Any], bool]:
    """The entries of a traceback that belong to the user, and whether the innermost one is the library's."""
    frames, is_own = [], False
    while entry is not None:
        is_own = is_library_file(entry.tb_frame.f_code.co_filename)
        if not is_own:
            frames.append(entry)
        entry = entry.tb_next
    return frames, is_own


def _chain(entries: Sequence[Any]) -> Any:
    chain: Any = None
    for entry in reversed(entries):
        chain = types.TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain


def _show(kind: Any, error: BaseException, traceback: Any) -> None:
    """Print an uncaught error; for the library's errors, without the library frames that propagated it."""
    frames, is_own = _user_frames(traceback)
    if frames and scope().hide_frames and (is_own or getattr(error, "_passed_atled", False)):
        error.__traceback__ = traceback = _chain(frames)
    sys.__excepthook__(kind, error, traceback)


def _say_where(error: BaseException, place: Source | None) -> None:
    """Put the user's line into the message, before the `try:` line."""
    if place is None or len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    text = error.args[0]
    if "\n  in " in text or "\n  launched in " in text:
        return
    says, tries, rest = text.partition("\n  try:")
    error.args = (says + describe(place) + tries + rest,)
