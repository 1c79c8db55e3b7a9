"""Every setting, in one list. A `Scope` is the context: the values of all settings, and the current mesh.

A setting has a process-wide value, and may be overridden in a `with` block. Overrides live in a `contextvars`
variable: other threads and asyncio tasks do not see them. Scopes with equal overrides are one object, which is part of
every launch key, so a cached launch is reused only under the settings it was compiled for. While a program is traced,
and while every op is checked for NaN, the scope is `off`: launch caches are bypassed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from atled.core.cache_keys import exact


class Scope:
    """The settings in a context. Class attributes are the process-wide values, instance attributes the overrides."""

    x64: bool = False  # the default dtypes are 64 bits wide
    narrow: bool = False  # without x64, dtypes of 64 bits become 32 bits wide, as programs written for JAX expect
    promotion: str = "standard"  # "strict" refuses to mix dtypes
    matmul_precision: str | None = None  # default precision of dot products and convolutions
    jit: bool = True  # False: jit runs its function as plain Python
    default_device: Any = None  # where new arrays go: a device, or the name of a platform
    hide_frames: bool = True  # leave the library's own frames out of tracebacks
    cache: bool = True  # keep compiled programs on disk
    cache_dir: str | None = None  # where; None is the user's cache directory
    cache_bytes: int = 2 << 30  # oldest entries are dropped beyond this size
    debug_nans: bool = False  # stop where a NaN arises
    debug_infs: bool = False  # stop where an infinity arises
    explain_compiles: bool = True  # say why a function is compiled again
    divergent_collectives: bool = False  # allow collectives in branches that not all devices are known to take
    check_programs: bool = False  # run the checker on every program that a transform makes
    key_reuse: str = "warn"  # or "raise": when a random key is used twice
    rank_promotion: str = "allow"  # or "warn", "raise": when operands of different ranks are broadcast

    # not settings of users
    mesh = None  # the mesh that PartitionSpecs mean when no mesh is given
    watches = False  # ops record the loops and vmaps they are in, so that NaNs can be located
    contexts = ()  # parts of the trace cache key that users define

    def __init__(self, overrides: dict[str, Any], recording: Scope | None = None) -> None:
        self.__dict__.update(overrides)
        self.overrides = overrides
        self.scalars: dict[Any, Any] = {}  # cached arrays of Python numbers under these settings
        self.is_recording = recording is None
        self.recording = recording or self  # the same scope while a program is traced
        self.ordinary = self  # the same scope outside of tracing; a scope lives as long as one that refers to it
        self.refresh()

    def refresh(self) -> None:
        """Compute attributes derived from the settings."""
        self.is_watched = bool(self.watches or self.debug_nans or self.debug_infs)
        self.off = self.is_recording or self.is_watched or not self.jit


NAMES = dict(Scope.__annotations__)
_INTERNAL = ("mesh", "watches", "contexts")
CHOICES: dict[str, tuple[str | None, ...]] = {  # of settings that are texts
    "promotion": ("standard", "strict"),
    "rank_promotion": ("allow", "warn", "raise"),
    "key_reuse": ("warn", "raise"),
    "matmul_precision": (
        None, "default", "fastest", "high", "highest", "float32", "bfloat16", "tensorfloat32",
        "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
        "DEFAULT", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3",
        "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
    ),
}  # fmt: skip
_UNTRACED = {  # settings that change no program
    "hide_frames", "cache", "cache_dir", "cache_bytes", "debug_nans", "debug_infs", "explain_compiles",
    "check_programs", "key_reuse",
}  # fmt: skip
TRACED = tuple([name for name in NAMES if name not in _UNTRACED])

_lock = threading.RLock()
_scopes: weakref.WeakValueDictionary[Any, Scope] = weakref.WeakValueDictionary()  # live scopes, by their overrides


def _scope_of(overrides: dict[str, Any]) -> Scope:
    key = tuple([(name, exact(overrides[name])) for name in sorted(overrides)])
    with _lock:
        interned = _scopes.get(key)
        if interned is None:
            interned = _scopes[key] = Scope(overrides, Scope(overrides))
            interned.recording.ordinary = interned
    return interned


_current: ContextVar[Scope] = ContextVar("atled", default=_scope_of({}))  # noqa: B039
scope = _current.get  # the scope of the context


def trace_key() -> tuple[Any, ...]:
    """The settings that a trace depends on: the values of `TRACED`, and what users define."""
    s = scope()
    return (*[getattr(s, name) for name in TRACED], exact(s.contexts))


# open blocks: the owner, the scope inside, the scope outside, the values
_blocks: ContextVar[tuple[Any, ...]] = ContextVar("blocks", default=())


class override(contextlib.ContextDecorator):  # noqa: N801
    """Change settings for this context inside a `with` block.

    >>> with override(explain_compiles=False):
    ...     read("explain_compiles")
    False
    """

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            if name not in _INTERNAL:
                _check(name, value)
        self._values = values

    def __enter__(self) -> None:
        before, blocks = scope(), _blocks.get()
        entered = _scope_of({**before.overrides, **self._values})
        entered = entered.recording if before.is_recording else entered
        try:
            _blocks.set((*blocks, (id(self), entered, before, self._values)))
            _current.set(entered)
        except BaseException:  # interrupted by Ctrl-C after the change
            _restore(before, blocks)
            raise

    def __exit__(self, *_: Any) -> None:
        blocks = _blocks.get()
        mine = [n for n, block in enumerate(blocks) if block[0] == id(self)]
        if not mine:  # it was entered in another context
            return
        at, outer, here = mine[-1], blocks[mine[-1]][2], scope()
        is_inside = any([here is block[1] for block in blocks[at:]])
        left = blocks[:at]
        for owner, entered, _, values in blocks[at + 1 :]:  # a generator that is closed late: inner blocks stay
            inner = _scope_of({**outer.overrides, **values})
            left = (*left, (owner, inner.recording if entered.is_recording else inner, outer, values))
            outer = left[-1][1]
        restored = outer if is_inside else here  # a trace that ended meanwhile has restored it already
        try:
            _restore(restored, left)
        except BaseException:
            _restore(restored, left)
            raise

    def __del__(self) -> None:
        """Restore the settings if Ctrl-C kept the block from being closed."""
        if any([block[0] == id(self) for block in _blocks.get()]):
            self.__exit__()

    def _recreate_cm(self) -> override:
        return override(**self._values)  # each call of a decorated function has a block of its own


def _restore(wanted: Scope, blocks: tuple[Any, ...]) -> None:
    _current.set(wanted)
    _blocks.set(blocks)


class recording:  # noqa: N801
    """A `with` block in which launch caches are bypassed."""

    __slots__ = ("token",)

    def __enter__(self) -> None:
        self.token = _current.set(scope().recording)

    def __exit__(self, *_: Any) -> None:
        _current.reset(self.token)


def ordinary() -> Any:
    """Leave the current trace, if any; `restore` returns to it."""
    return _current.set(scope().ordinary)


def restore(token: Any) -> None:
    """Go back to the scope before `ordinary`."""
    _current.reset(token)


def _check(name: str, *value: Any) -> None:
    """Raise for a setting that does not exist, or a value that it cannot have."""
    if name not in NAMES:
        raise AttributeError(f"settings: there is no setting {name!r}; the settings are {', '.join(sorted(NAMES))}.")
    for given in value:
        if name in CHOICES and given not in CHOICES[name]:
            raise ValueError(f"settings: {name} is {' or '.join(map(repr, CHOICES[name]))}; got {given!r}.")
        if NAMES[name] == "bool" and type(given) is not bool:
            raise TypeError(f"settings: {name} is True or False; got {given!r}.")
        if NAMES[name] == "int" and (type(given) is not int or given < 0):
            raise ValueError(f"settings: {name} is a whole number; got {given!r}.")
        if name == "cache_dir" and not isinstance(given, (str, type(None))):
            raise TypeError(f"settings: cache_dir is the path of a directory, as text, or None; got {given!r}.")
        if name == "default_device" and not (given is None or isinstance(given, str) or hasattr(given, "platform")):
            raise TypeError(
                f"settings: default_device is a device, the name of a platform or None; got {given!r}."
                "\n  try: atled.devices()[0]."
            )


on_global_change: list[Callable[[], None]] = []  # called when a process-wide value changes: drop cached launches
changes = [0]  # number of process-wide changes: a trace or compilation that began before a change is not cached


def update(name: str, value: Any) -> None:
    """Change a setting for the whole process.

    >>> update("explain_compiles", True)
    >>> update("promotion", "loose")
    Traceback (most recent call last):
    ValueError: settings: promotion is 'standard' or 'strict'; got 'loose'.
    """
    _check(name, value)
    change(name, value)


def change(name: str, value: Any) -> None:
    """Change a setting for the whole process, without checks."""
    with _lock:
        changes[0] += 1
        setattr(Scope, name, value)
        for one in list(_scopes.values()):
            one.refresh()
            one.recording.refresh()
    forget_scalars()
    for forget in on_global_change:
        forget()


def forget_scalars() -> None:
    """Drop the cached arrays of Python numbers in all scopes."""
    with _lock:
        for one in list(_scopes.values()):
            one.scalars = {}
            one.recording.scalars = {}


def read(name: str) -> Any:
    """The value of a setting in this context.

    >>> read("jit")
    True
    """
    _check(name)
    return getattr(scope(), name)


def enable_x64(new_val: bool = True) -> override:
    """Make the default dtypes 64 bits wide inside a `with` block.

    Explicit dtypes are always honoured; this changes only the dtype of Python numbers and of calls without a dtype.

    >>> import atled, atled.numpy as jnp
    >>> with atled.enable_x64():
    ...     print(jnp.asarray(1.0).dtype, jnp.arange(3).dtype)
    float64 int64
    """
    return override(x64=bool(new_val))


def numpy_dtype_promotion(new_val: str) -> override:
    """`"strict"` refuses to mix dtypes inside a `with` block; `"standard"` promotes them.

    >>> import atled.numpy as jnp
    >>> with numpy_dtype_promotion("strict"):
    ...     jnp.array([1.0]) + jnp.array([1])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    PromotionError: promotion: numpy_dtype_promotion is 'strict', and float32 meets int32.
    """
    return override(promotion=new_val)


def default_matmul_precision(new_val: str | None) -> override:
    """The precision of dot products and convolutions that do not name one, inside a `with` block.

    >>> import atled.numpy as jnp
    >>> with default_matmul_precision("highest"):
    ...     print(jnp.ones((2, 2)) @ jnp.ones(2))
    [2. 2.]
    """
    return override(matmul_precision=new_val)


def default_device(new_val: Any) -> override:
    """The device of new arrays inside a `with` block.

    >>> import atled, atled.numpy as jnp
    >>> with default_device(atled.devices()[0]):
    ...     print(jnp.ones(2).device == atled.devices()[0])
    True
    """
    return override(default_device=new_val)


def disable_jit(disable: bool = True) -> override:
    """Run functions under `jit` as plain Python inside a `with` block, to step through them with a debugger.

    >>> import atled, atled.numpy as jnp
    >>> with disable_jit():
    ...     atled.jit(lambda x: print(x))(jnp.array([1, 2]))
    [1 2]
    """
    return override(jit=not disable)


def debug_nans(new_val: bool = True) -> override:
    """Raise `FloatingPointError` where a NaN arises inside a `with` block, with the op, line, loop step and lane.

    >>> import atled, atled.numpy as jnp
    >>> with debug_nans():
    ...     atled.jit(jnp.log)(jnp.array([1.0, -1.0]))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FloatingPointError: log: the result has a nan that its operands do not have.
    """
    return override(debug_nans=bool(new_val))


def debug_infs(new_val: bool = True) -> override:
    """Like `debug_nans`, for infinities.

    >>> import atled, atled.numpy as jnp
    >>> with debug_infs():
    ...     atled.jit(lambda x: 1 / x)(jnp.zeros(2))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FloatingPointError: div: the result has an inf that its operands do not have.
    """
    return override(debug_infs=bool(new_val))


def from_environment() -> None:
    """Read `ATLED_X64`, `ATLED_CACHE`, `ATLED_CACHE_DIR`, `ATLED_CACHE_BYTES`, `ATLED_DEBUG_NANS` and so on."""
    for name, kind in NAMES.items():
        text = os.environ.get("ATLED_" + name.upper())
        if not text or name == "default_device":
            continue
        value: Any = text
        if kind == "bool":
            value = _WORDS.get(text.lower())
        elif kind == "int":
            value = int(text) if text.isdecimal() else None
        if value is not None and value in CHOICES.get(name, (value,)):
            update(name, value)
        else:
            choices = " or ".join([c for c in CHOICES.get(name, ("a whole number",)) if c])
            expected = "0 or 1" if kind == "bool" else choices
            malformed["ATLED_" + name.upper()] = f"ATLED_{name.upper()} must be {expected}; got {text!r}."


_WORDS = {**dict.fromkeys(("0", "false", "off", "no"), False), **dict.fromkeys(("1", "true", "on", "yes"), True)}
malformed: dict[str, str] = {}  # variables that cannot be parsed: a warning now, an error at the first use of a device
from_environment()
if malformed:
    warnings.warn(f"settings: {' '.join(malformed.values())}", RuntimeWarning, stacklevel=2)
