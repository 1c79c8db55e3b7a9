"""The library's exception classes, and the removal of its own frames from tracebacks.

Most mistakes raise built-in exceptions. A class is defined here if its explanation takes more than one line: the
docstring is the help page, and the message says what to do.
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
    """Base class of the type errors about tracing. Only its subclasses are raised.

    >>> issubclass(TracerBoolConversionError, TracingTypeError)
    True
    """


class TracingIndexError(IndexError):
    """Base class of the index errors about tracing. Only its subclasses are raised.

    >>> issubclass(NonConcreteBooleanIndexError, TracingIndexError)
    True
    """


class ConcretizationTypeError(TracingTypeError):
    """A Python value was requested from a traced array, which has no value while the function is being traced.

    `jit` runs the function once on tracers to record its ops. `float(x)`, `x.item()`, and shapes or sizes that depend
    on `x` need a number during this run, but `x` gets its value only when the compiled program runs. Compute
    with arrays instead, or make the argument static, as in `jit(f, static_argnames="n")`.

    >>> import atled
    >>> atled.jit(float)(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ConcretizationTypeError: float: a Python value was requested from a traced ~f32[], whose value is not known here.
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
    TracerArrayConversionError: numpy.asarray: a NumPy array was requested from a traced ~f32[].
    """


class TracerIntegerConversionError(TracingTypeError):
    """A traced array, whose value is not known yet, was used as a Python integer, such as a list index or in `range`.

    Index an array instead of a list (`atled.numpy.asarray(items)[i]`), use `lax.fori_loop` instead of `range`, or make
    the argument static.

    >>> import atled
    >>> atled.jit(lambda i: [10, 20][i])(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerIntegerConversionError: index: a Python integer was requested from a traced ~i32[].
    """


class NonConcreteBooleanIndexError(TracingIndexError):
    """A traced boolean mask was used as an index, so the size of the result is unknown.

    Use `numpy.where(mask, x, fill)` to keep the shape, `numpy.nonzero(mask, size=n)` to fix the size, or
    `x.at[mask].set(v)` to write through the mask.

    >>> import atled, atled.numpy as jnp
    >>> atled.jit(lambda x: x[x > 0])(jnp.ones(3))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NonConcreteBooleanIndexError: index: a traced mask bool[3] selects an unknown number of elements.
    """


class KeyReuseError(TracingTypeError):
    """A random key was used twice, which repeats its random numbers, while the setting `key_reuse` is "raise".

    Split the key first, `key, sub = random.split(key)`, and use each part once; if the repetition is intended, use
    `random.clone(key)`.

    >>> import atled
    >>> key = atled.random.key(0)
    >>> with atled.settings.override(key_reuse="raise"):
    ...     atled.random.normal(key) + atled.random.normal(key)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    KeyReuseError: random.normal: this key was used before, in <module>, train.py:2.
    """


class ShapeError(ValueError, TypeError):
    """The shapes of the operands of a matrix product are incompatible.

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
    """The stored exception that the text of an engine's error refers to, or None."""
    match = _KEPT.search(text)
    return _kept.get(int(match[1])) if match else None


E_ = TypeVar("E_", bound=BaseException)


def for_user(error: E_) -> E_:
    """Prepare an error that leaves the library for the user, and return it.

    The library's frames are removed from the traceback. If the library raised the error, its message gets the location
    in the user's code: function, file, line number, and the line itself.
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
    """Warn at the user's line: what is wrong, and what to write instead. Python shows a warning once per line."""
    where = here()
    file, line = (where.file, where.line) if where is not None else ("<unknown>", 0)
    text = says + describe(where) + (f"\n  try: {instead}" if instead else "")
    warnings.warn_explicit(text, category, file, line, registry=_shown.setdefault(file, {}))


_shown: dict[str, dict[Any, Any]] = {}  # file -> warnings shown so far; without it, a loop would warn in every step


def _hide_frames(error: Any = None) -> None:
    """Remove the library's frames when an uncaught error of the library is printed."""
    if error is not None:
        with contextlib.suppress(AttributeError):  # a few exception classes allow no new attributes
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
    """Insert the user's location into the error's message, before the `try:` line."""
    if place is None or len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    text = error.args[0]
    if "\n  in " in text or "\n  launched in " in text:
        return
    says, tries, rest = text.partition("\n  try:")
    error.args = (says + describe(place) + tries + rest,)
