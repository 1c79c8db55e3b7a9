"""All settings. A `Scope` holds their values in one context, and the current mesh.

A setting has a process-wide value, and may be overridden in a `with` block. Overrides are in a `contextvars` variable,
so other threads and asyncio tasks do not see them. Scopes with equal overrides are one object, which is part of every
launch key, so a cached launch is reused only under the settings it was compiled for. The scope is `off` while a program
is traced, every op is checked for NaN, or jit is disabled; calls then bypass the launch caches.
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

    x64: bool = False  # make the default dtypes 64 bits wide
    narrow: bool = False  # convert 64-bit dtypes to 32 bits unless `x64` is set, as JAX does
    promotion: str = "standard"  # "strict" refuses to mix dtypes
    matmul_precision: str | None = None  # default precision of dot products and convolutions
    jit: bool = True  # False: jit runs its function as plain Python
    default_device: Any = None  # where new arrays go: a device, or the name of a platform
    hide_frames: bool = True  # leave the library's own frames out of tracebacks
    cache: bool = True  # keep compiled programs on disk
    cache_dir: str | None = None  # the directory of these files; None: the user's cache directory
    cache_bytes: int = 2 << 30  # the maximum size; the least recently used files are deleted first
    debug_nans: bool = False  # raise when a NaN is read or returned by a jitted function
    debug_infs: bool = False  # raise when an infinity is read or returned by a jitted function
    explain_compiles: bool = True  # log why a function is compiled again
    divergent_collectives: bool = False  # allow collectives in branches that devices may not all take
    check_programs: bool = False  # check every program that is traced or transformed
    key_reuse: str = "warn"  # "warn" or "raise": when a random key is used twice
    rank_promotion: str = "allow"  # or "warn", "raise": when operands of different ranks are broadcast

    # internal, not settings that users change
    mesh = None  # the current mesh, used where no mesh is given
    watches = False  # ops record their enclosing loops and vmaps, to locate NaNs
    contexts = ()  # parts of the trace cache key that users define

    def __init__(self, overrides: dict[str, Any], recording: Scope | None = None) -> None:
        self.__dict__.update(overrides)
        self.overrides = overrides
        self.scalars: dict[Any, Any] = {}  # cached arrays of Python numbers under these settings
        self.is_recording = recording is None
        self.recording = recording or self  # the scope with these settings while a program is traced
        self.ordinary = self  # the scope with these settings outside of tracing
        self.refresh()

    def refresh(self) -> None:
        """Compute attributes derived from the settings."""
        self.is_watched = bool(self.watches or self.debug_nans or self.debug_infs)
        self.off = self.is_recording or self.is_watched or not self.jit


NAMES = dict(Scope.__annotations__)
_INTERNAL = ("mesh", "watches", "contexts")
CHOICES: dict[str, tuple[str | None, ...]] = {  # the values of settings that are strings
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
_UNTRACED = {  # settings that do not affect programs
    "hide_frames", "cache", "cache_dir", "cache_bytes", "debug_nans", "debug_infs", "explain_compiles",
    "check_programs", "key_reuse",
}  # fmt: skip
TRACED = tuple([name for name in NAMES if name not in _UNTRACED])

_lock = threading.RLock()
_scopes: weakref.WeakValueDictionary[Any, Scope] = weakref.WeakValueDictionary()  # overrides -> live scope


def _scope_of(overrides: dict[str, Any]) -> Scope:
    key = tuple([(name, exact(overrides[name])) for name in sorted(overrides)])
    with _lock:
        interned = _scopes.get(key)
        if interned is None:
            interned = _scopes[key] = Scope(overrides, Scope(overrides))
            interned.recording.ordinary = interned
    return interned


_current: ContextVar[Scope] = ContextVar("atled", default=_scope_of({}))  # noqa: B039
scope = _current.get  # returns the scope of the current context


def trace_key() -> tuple[Any, ...]:
    """The settings that a trace depends on: the values of `TRACED`, and the contexts that users define."""
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
        if not mine:  # the block was entered in another context
            return
        at, outer, here = mine[-1], blocks[mine[-1]][2], scope()
        is_inside = any([here is block[1] for block in blocks[at:]])
        left = blocks[:at]
        for owner, entered, _, values in blocks[at + 1 :]:  # a generator closed this block late: keep the inner blocks
            inner = _scope_of({**outer.overrides, **values})
            left = (*left, (owner, inner.recording if entered.is_recording else inner, outer, values))
            outer = left[-1][1]
        restored = outer if is_inside else here  # else a trace that ended has already restored the scope
        try:
            _restore(restored, left)
        except BaseException:
            _restore(restored, left)
            raise

    def __del__(self) -> None:
        """Restore the settings if Ctrl-C prevented the call of `__exit__`."""
        if any([block[0] == id(self) for block in _blocks.get()]):
            self.__exit__()

    def _recreate_cm(self) -> override:
        return override(**self._values)  # a separate block for each call of a decorated function


def _restore(wanted: Scope, blocks: tuple[Any, ...]) -> None:
    _current.set(wanted)
    _blocks.set(blocks)


class recording:  # noqa: N801
    """A `with` block for tracing, in which calls bypass the launch caches."""

    __slots__ = ("token",)

    def __enter__(self) -> None:
        self.token = _current.set(scope().recording)

    def __exit__(self, *_: Any) -> None:
        _current.reset(self.token)


def ordinary() -> Any:
    """Leave the current trace, if any; `restore` returns to it."""
    return _current.set(scope().ordinary)


def restore(token: Any) -> None:
    """Return to the scope before `ordinary`, which returned `token`."""
    _current.reset(token)


def _check(name: str, *value: Any) -> None:
    """Raise if a setting does not exist, or if a value given for it is invalid."""
    if name not in NAMES:
        raise AttributeError(f"settings: there is no setting {name!r}; the settings are {', '.join(sorted(NAMES))}.")
    for given in value:
        if name in CHOICES and given not in CHOICES[name]:
            raise ValueError(f"settings: {name} must be {' or '.join(map(repr, CHOICES[name]))}; got {given!r}.")
        if NAMES[name] == "bool" and type(given) is not bool:
            raise TypeError(f"settings: {name} must be True or False; got {given!r}.")
        if NAMES[name] == "int" and (type(given) is not int or given < 0):
            raise ValueError(f"settings: {name} must be a non-negative integer; got {given!r}.")
        if name == "cache_dir" and not isinstance(given, (str, type(None))):
            raise TypeError(f"settings: cache_dir must be the path of a directory as a string, or None; got {given!r}.")
        if name == "default_device" and not (given is None or isinstance(given, str) or hasattr(given, "platform")):
            raise TypeError(
                f"settings: default_device must be a device, the name of a platform or None; got {given!r}."
                "\n  try: atled.devices()[0]."
            )


on_global_change: list[Callable[[], None]] = []  # called after a process-wide change, to drop cached launches
changes = [0]  # number of process-wide changes: a trace or compilation that began before a change is not cached


def update(name: str, value: Any) -> None:
    """Change a setting for the whole process.

    >>> update("explain_compiles", True)
    >>> update("promotion", "loose")
    Traceback (most recent call last):
    ValueError: settings: promotion must be 'standard' or 'strict'; got 'loose'.
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

    Only the dtypes of Python numbers and of calls without a dtype change.

    >>> import atled, atled.numpy as jnp
    >>> with atled.enable_x64():
    ...     print(jnp.asarray(1.0).dtype, jnp.arange(3).dtype)
    float64 int64
    """
    return override(x64=bool(new_val))


def numpy_dtype_promotion(new_val: str) -> override:
    """Set dtype promotion inside a `with` block: `"strict"` raises if dtypes are mixed, `"standard"` promotes them.

    >>> import atled.numpy as jnp
    >>> with numpy_dtype_promotion("strict"):
    ...     jnp.array([1.0]) + jnp.array([1])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    PromotionError: promotion: numpy_dtype_promotion is 'strict', and the operands are float32 and int32.
    """
    return override(promotion=new_val)


def default_matmul_precision(new_val: str | None) -> override:
    """Set the precision of dot products and convolutions without a `precision` argument, inside a `with` block.

    >>> import atled.numpy as jnp
    >>> with default_matmul_precision("highest"):
    ...     print(jnp.ones((2, 2)) @ jnp.ones(2))
    [2. 2.]
    """
    return override(matmul_precision=new_val)


def default_device(new_val: Any) -> override:
    """Set the device of new arrays inside a `with` block.

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
    """Raise `FloatingPointError` when a NaN is read or returned by a jitted function; names the op that produced it.

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
    """Read each setting except `default_device` from its environment variable: `ATLED_X64`, `ATLED_CACHE` and so on."""
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
malformed: dict[str, str] = {}  # invalid variables: a warning at import, an error at the first use of a device
from_environment()
if malformed:
    warnings.warn(f"settings: {' '.join(malformed.values())}", RuntimeWarning, stacklevel=2)
