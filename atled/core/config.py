"""Every setting, in one list. A setting has a process-wide value and may be overridden per thread in a `with` block.

Settings that change what a program computes are part of every trace-cache key (`trace_key`). While any thread has
an override, or is recording a program, `fast.off` is positive: the generated fast paths of compiled functions look
at it once and step aside, so the common case pays one attribute read and the rare case stays right.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any


class _Fast:
    """How many threads are doing something for which cached launches are not valid."""

    __slots__ = ("_lock", "off")

    def __init__(self) -> None:
        self.off = 0
        self._lock = threading.Lock()

    def pause(self) -> None:
        with self._lock:
            self.off += 1

    def resume(self) -> None:
        with self._lock:
            self.off -= 1


class _Watch:
    """How many blocks are open in which ops say what loops and vmaps they are in, so that bad values can be found."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = 0


fast = _Fast()
watch = _Watch()
on_global_change: list[Callable[[], None]] = []  # called when a process-wide value changes: drop cached launches


class _Settings(threading.local):
    """Class attributes are the process-wide values; an override sets an instance attribute of one thread."""

    x64: bool = False  # the default dtypes are 64 bits wide
    promotion: str = "standard"  # "strict" refuses to mix dtypes
    matmul_precision: str | None = None  # default precision of dot products and convolutions
    jit: bool = True  # False: jit runs its function as it is
    default_device: Any = None  # where new arrays go
    hide_frames: bool = True  # leave the library's own frames out of tracebacks
    cache: bool = True  # keep compiled programs on disk
    cache_dir: str | None = None  # where; None is the user's cache directory
    cache_bytes: int = 2 << 30  # oldest entries are dropped beyond this size
    debug_nans: bool = False  # stop where a NaN arises
    debug_infs: bool = False  # stop where an infinity arises
    explain_compiles: bool = True  # say why a function is compiled again
    check_programs: bool = False  # run the checker on every program that a transform makes


settings = _Settings()
_CHANGES_TRACES = ("x64", "promotion", "matmul_precision", "jit", "default_device", "check_programs")
_JAX_NAMES = {
    "jax_enable_x64": "x64",
    "jax_numpy_dtype_promotion": "promotion",
    "jax_default_matmul_precision": "matmul_precision",
    "jax_compilation_cache_dir": "cache_dir",
    "jax_enable_compilation_cache": "cache",
    "jax_debug_nans": "debug_nans",
    "jax_debug_infs": "debug_infs",
    "jax_explain_cache_misses": "explain_compiles",
}


def trace_key() -> tuple[Any, ...]:
    """The settings that a trace depends on."""
    s = settings
    return (s.x64, s.promotion, s.matmul_precision, s.jit, s.default_device)


@contextlib.contextmanager
def override(**values: Any) -> Iterator[None]:
    """Change settings for this thread inside a `with` block."""
    for name in values:
        _check(name)
    before = {name: settings.__dict__.get(name, _UNSET) for name in values}
    is_debugging = any([values.get(name) for name in _DEBUGGING])
    fast.pause()
    watch.on += is_debugging
    settings.__dict__.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _UNSET:
                del settings.__dict__[name]
            else:
                settings.__dict__[name] = value
        watch.on -= is_debugging
        fast.resume()


_UNSET = object()


def _check(name: str) -> None:
    if name not in _Settings.__annotations__:
        known = ", ".join(sorted(_Settings.__annotations__))
        raise AttributeError(f"config: there is no setting {name!r}; the settings are {known}.")


def update(name: str, value: Any) -> None:
    """Change a setting for the whole process."""
    name = _JAX_NAMES.get(name, name)
    _check(name)
    setattr(_Settings, name, value)
    for forget in on_global_change:
        forget()
    if name in _DEBUGGING and bool(value) != (name in _debugging):  # there are no cached launches then
        (fast.pause if value else fast.resume)()
        (_debugging.add if value else _debugging.discard)(name)
        watch.on += 1 if value else -1


_DEBUGGING = ("debug_nans", "debug_infs")
_debugging: set[str] = set()


def read(name: str) -> Any:
    """The value of a setting in this thread."""
    _check(name)
    return getattr(settings, name)


def enable_x64(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """Make the default dtypes 64 bits wide inside a `with` block.

    Dtypes that are asked for are always honoured; this changes only what Python numbers and dtype-less
    calls become.

    >>> import atled, atled.numpy as jnp
    >>> with atled.enable_x64():
    ...     print(jnp.asarray(1.0).dtype, jnp.arange(3).dtype)
    float64 int64
    """
    return override(x64=bool(on))


def numpy_dtype_promotion(mode: str) -> contextlib.AbstractContextManager[None]:
    """`"strict"` refuses to mix dtypes inside a `with` block; `"standard"` promotes them."""
    if mode not in ("standard", "strict"):
        raise ValueError(f"numpy_dtype_promotion: the mode is 'standard' or 'strict'; got {mode!r}.")
    return override(promotion=mode)


def default_matmul_precision(precision: str | None) -> contextlib.AbstractContextManager[None]:
    """The precision of dot products and convolutions that do not name one, inside a `with` block."""
    return override(matmul_precision=precision)


def default_device(device: Any) -> contextlib.AbstractContextManager[None]:
    """Where new arrays go inside a `with` block."""
    return override(default_device=device)


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """Run functions under `jit` as plain Python inside a `with` block, to step through them with a debugger."""
    return override(jit=not disable)


def debug_nans(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """Raise `FloatingPointError` where a NaN arises inside a `with` block: the op, the line, the step, the lane."""
    return override(debug_nans=bool(on))


def debug_infs(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """As `debug_nans`, for infinities."""
    return override(debug_infs=bool(on))


def from_environment() -> None:
    """Read `ATLED_X64`, `ATLED_CACHE`, `ATLED_CACHE_DIR`, `ATLED_CACHE_BYTES`, `ATLED_DEBUG_NANS` and so on."""
    for name, kind in _Settings.__annotations__.items():
        text = os.environ.get("ATLED_" + name.upper())
        if text is None or name == "default_device":
            continue
        value: Any = text
        if kind == "bool":
            value = text.lower() not in ("0", "false", "off", "no", "")
        elif kind == "int":
            value = int(text)
        update(name, value)


from_environment()
