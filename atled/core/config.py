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

from atled.core.exact import exact


class Scope:
    """The settings in a context. Class attributes are the process-wide values, instance attributes the overrides."""

    x64: bool = False  # the default dtypes are 64 bits wide
    narrow: bool = False  # without x64, dtypes of 64 bits become 32 bits wide, as programs written for JAX expect
    promotion: str = "standard"  # "strict" refuses to mix dtypes
    matmul_precision: str | None = None  # default precision of dot products and convolutions
    jit: bool = True  # False: jit runs its function as plain Python
    default_device: Any = None  # where new arrays go
    hide_frames: bool = True  # leave the library's own frames out of tracebacks
    cache: bool = True  # keep compiled programs on disk
    cache_dir: str | None = None  # where; None is the user's cache directory
    cache_bytes: int = 2 << 30  # oldest entries are dropped beyond this size
    debug_nans: bool = False  # stop where a NaN arises
    debug_infs: bool = False  # stop where an infinity arises
    explain_compiles: bool = True  # say why a function is compiled again
    divergent_collectives: bool = False  # allow collectives in branches that not all devices are known to take
    check_programs: bool = False  # run the checker on every program that a transform makes

    # not settings of users
    mesh = None  # the mesh that PartitionSpecs mean when no mesh is given
    watches = False  # ops record the loops and vmaps they are in, so that NaNs can be located
    ranks = "allow"  # "warn" or "raise" when operands of different ranks are broadcast
    contexts = ()  # user-defined parts of the trace cache key, see `make_user_context`; not annotated, see NAMES

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
_ALL = {*NAMES, "mesh", "watches", "contexts", "ranks"}
_JAX_NAMES = {
    "jax_enable_x64": "x64",
    "jax_numpy_dtype_promotion": "promotion",
    "jax_numpy_rank_promotion": "ranks",
    "jax_default_matmul_precision": "matmul_precision",
    "jax_compilation_cache_dir": "cache_dir",
    "jax_enable_compilation_cache": "cache",
    "jax_debug_nans": "debug_nans",
    "jax_debug_infs": "debug_infs",
    "jax_explain_cache_misses": "explain_compiles",
    "jax_default_device": "default_device",
    "jax_enable_checks": "check_programs",
    "jax_disable_jit": "jit",
    "jax_traceback_filtering": "hide_frames",
}
# Settings whose values differ from JAX's: how to convert from and to JAX's values.
_JAX_VALUES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "jax_disable_jit": (lambda on: not on, lambda off: not off),
    "jax_traceback_filtering": (lambda on: "auto" if on else "off", lambda how: how != "off"),
}
# Settings that are fixed at the first use of a device, and their environment variables.
_AT_START = {
    "jax_platforms": "ATLED_PLATFORMS",
    "jax_platform_name": "ATLED_PLATFORMS",
    "jax_num_cpu_devices": "ATLED_NUM_CPU_DEVICES",
}
# JAX settings without effect here, with their values; those in `_ONLY` accept no other value.
_INERT: dict[str, Any] = {
    "jax_threefry_partitionable": True, "jax_default_prng_impl": "threefry2x32", "jax_enable_custom_prng": False,
    "jax_legacy_prng_key": "allow", "jax_debug_key_reuse": False, "jax_check_tracer_leaks": False,
    "jax_log_compiles": False, "jax_transfer_guard": "allow",
    "jax_transfer_guard_host_to_device": "allow", "jax_transfer_guard_device_to_device": "allow",
    "jax_transfer_guard_device_to_host": "allow", "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0, "jax_cpu_collectives_implementation": "gloo",
    "jax_cpu_enable_async_dispatch": True, "jax_use_shardy_partitioner": True, "jax_pprint_use_color": False,
    "jax_debug_log_modules": "", "jax_raise_persistent_cache_errors": False, "jax_no_tracing": False,
    "jax_include_full_tracebacks_in_locations": False, "jax_dump_ir_to": "", "jax_logging_level": None,
    "jax_array_garbage_collection_guard": "allow", "jax_mock_gpu_topology": "",
    "jax_persistent_cache_enable_xla_caches": "",
    "jax_remove_size_one_mesh_axis_from_type": False, "jax_vjp3": True, "jax_mutable_array_checks": True,
    "jax_allow_f16_reductions": False, "jax_auto_pcast": True, "jax_no_execution": False,
    "jax_softmax_custom_jvp": True, "jax_thread_guard": False, "jax2tf_associative_scan_reductions": False,
}  # fmt: skip
_ONLY = {"jax_threefry_partitionable", "jax_default_prng_impl", "jax_no_tracing", "jax_no_execution"}
_said: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("said", default=())  # overrides of those in `with` blocks
is_started: list[Callable[[], bool]] = [lambda: False]  # whether a device was used; the engine replaces this function

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
    """The settings that a trace depends on."""
    s = scope()
    return (s.x64, s.promotion, s.matmul_precision, s.jit, s.default_device, s.ranks, exact(s.contexts))


_blocks: ContextVar[tuple[Any, ...]] = ContextVar("blocks", default=())  # open blocks: owner, scope, outer scope


class override(contextlib.ContextDecorator):  # noqa: N801
    """Change settings for this context inside a `with` block."""

    def __init__(self, **values: Any) -> None:
        for name in values:
            _check(name)
        self._values = values

    def __enter__(self) -> None:
        before, blocks = scope(), _blocks.get()
        entered = _scope_of({**before.overrides, **self._values})
        entered = entered.recording if before.is_recording else entered
        try:
            _blocks.set((*blocks, (id(self), entered, before)))
            _current.set(entered)
        except BaseException:  # interrupted by Ctrl-C after the change
            _restore(before, blocks)
            raise

    def __exit__(self, *_: Any) -> None:
        blocks = _blocks.get()
        mine = [n for n, block in enumerate(blocks) if block[0] == id(self)]
        if not mine:  # it was entered in another context
            return
        before, here = blocks[mine[-1]][2], scope()
        is_inside = any([here is entered for _, entered, _ in blocks[mine[-1] :]])
        restored = before if is_inside else here  # a trace that ended meanwhile has restored it already
        try:
            _restore(restored, blocks[: mine[-1]])
        except BaseException:
            _restore(restored, blocks[: mine[-1]])
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


def _check(name: str) -> None:
    if name not in _ALL:
        known = ", ".join(sorted(NAMES))
        raise AttributeError(f"config: there is no setting {name!r}; the settings are {known}.")


on_global_change: list[Callable[[], None]] = []  # called when a process-wide value changes: drop cached launches
changes = [0]  # number of process-wide changes: a trace or compilation that began before a change is not cached


def update(name: str, value: Any) -> None:
    """Change a setting for the whole process. JAX's names of settings are accepted, too."""
    if name in _AT_START:
        return _at_start(name, value)
    if name in _INERT:
        _INERT[name] = _checked_only(name, value)
        return None
    if name in _JAX_VALUES:
        value = _JAX_VALUES[name][1](value)
    name = _JAX_NAMES.get(name, name)
    _check(name)
    with _lock:
        changes[0] += 1
        setattr(Scope, name, value)
        for one in list(_scopes.values()):
            one.refresh()
            one.recording.refresh()
    forget_scalars()
    for forget in on_global_change:
        forget()
    return None


def _checked_only(name: str, value: Any) -> Any:
    if name in _ONLY and value != _INERT[name]:
        raise NotImplementedError(f"config: {name} is always {_INERT[name]!r} here; got {value!r}.")
    return value


def _at_start(name: str, value: Any) -> None:
    """Store a setting that is read at the first use of a device."""
    variable, text = _AT_START[name], "" if value is None else str(value)
    if is_started[0]() and os.environ.get(variable, "") != text:
        raise RuntimeError(f"config: {name} must be set before the first use of a device.")
    os.environ[variable] = text


def forget_scalars() -> None:
    """Drop the cached arrays of Python numbers in all scopes."""
    with _lock:
        for one in list(_scopes.values()):
            one.scalars = {}
            one.recording.scalars = {}


def read(name: str) -> Any:
    """The value of a setting in this context."""
    if name in _AT_START:
        return os.environ.get(_AT_START[name]) or None
    if name in _INERT:
        return dict(_said.get()).get(name, _INERT[name])
    ours = _JAX_NAMES.get(name, name)
    _check(ours)
    value = getattr(scope(), ours)
    return _JAX_VALUES[name][0](value) if name in _JAX_VALUES else value


def parse_flags_with_absl() -> None:
    """Does nothing: settings are not command-line flags here. Programs for JAX call it."""


def __getattr__(name: str) -> Any:
    """`config.jax_enable_x64` and similar attributes, for programs written for JAX."""
    if name in _JAX_NAMES or name in _INERT or name in _AT_START:
        return read(name)
    if name == "x64_enabled":
        return read("jax_enable_x64")
    raise AttributeError(f"config: there is no setting {name!r}; the settings are {', '.join(sorted(NAMES))}.")


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
    if new_val not in ("standard", "strict"):
        raise ValueError(f"numpy_dtype_promotion: the mode is 'standard' or 'strict'; got {new_val!r}.")
    return override(promotion=new_val)


def numpy_rank_promotion(new_val: str) -> override:
    """`"raise"` refuses to broadcast arrays of different ranks inside a `with` block, `"warn"` warns of it.

    >>> import atled.numpy as jnp
    >>> with numpy_rank_promotion("raise"):
    ...     jnp.ones((2, 3)) + jnp.ones(3)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ValueError: add: ranks differ, and numpy_rank_promotion is 'raise'; got shapes (2, 3) and (3,).
    """
    if new_val not in ("allow", "warn", "raise"):
        raise ValueError(f"numpy_rank_promotion: the mode is 'allow', 'warn' or 'raise'; got {new_val!r}.")
    return override(ranks=new_val)


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


class _Inert(contextlib.ContextDecorator):
    """A `with` block that overrides a JAX setting without effect here."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, _checked_only(name, value)

    def __enter__(self) -> None:
        self.token = _said.set((*_said.get(), (self.name, self.value)))

    def __exit__(self, *_: Any) -> None:
        _said.reset(self.token)

    def _recreate_cm(self) -> _Inert:
        return _Inert(self.name, self.value)


def _inert(name: str, what: str) -> Callable[..., _Inert]:
    def block(new_val: Any = True) -> _Inert:
        return _Inert(name, new_val)

    block.__name__ = block.__qualname__ = name.removeprefix("jax_")
    block.__doc__ = f"{what}\n\n    >>> with {block.__name__}({_INERT[name]!r}):\n    ...     pass\n    "
    return block


_GUARD = "A setting of JAX that is taken and changes nothing here: no transfer {} is logged or refused."
_TAKEN = "A setting of JAX that is taken and changes nothing here: {}."
_SINGLE = "A setting of JAX that has one value here, and refuses others: {}."
allow_f16_reductions = _inert("jax_allow_f16_reductions", _TAKEN.format("how float16 is summed is settled"))
array_garbage_collection_guard = _inert(
    "jax_array_garbage_collection_guard", _TAKEN.format("cycles are not looked for")
)
auto_pcast = _inert("jax_auto_pcast", _TAKEN.format("shard_map makes values varying where they meet"))
default_prng_impl = _inert("jax_default_prng_impl", _SINGLE.format("keys are threefry2x32"))
enable_custom_prng = _inert("jax_enable_custom_prng", _TAKEN.format("keys are what random.key and PRNGKey say"))
jax2tf_associative_scan_reductions = _inert(
    "jax2tf_associative_scan_reductions", _TAKEN.format("there is no conversion to TensorFlow")
)
legacy_prng_key = _inert("jax_legacy_prng_key", _TAKEN.format("keys of two words are always taken"))
log_compiles = _inert("jax_log_compiles", _TAKEN.format("see explain_cache_misses"))
no_execution = _inert("jax_no_execution", _SINGLE.format("programs are run"))
no_tracing = _inert("jax_no_tracing", _SINGLE.format("functions are traced"))
remove_size_one_mesh_axis_from_type = _inert(
    "jax_remove_size_one_mesh_axis_from_type", _TAKEN.format("types do not name axes of a mesh")
)
softmax_custom_jvp = _inert("jax_softmax_custom_jvp", _TAKEN.format("softmax has one rule"))
thread_guard = _inert("jax_thread_guard", _TAKEN.format("threads are not watched"))
threefry_partitionable = _inert("jax_threefry_partitionable", _SINGLE.format("it is so"))
transfer_guard = _inert("jax_transfer_guard", _GUARD.format("of any kind"))
transfer_guard_device_to_device = _inert("jax_transfer_guard_device_to_device", _GUARD.format("between devices"))
transfer_guard_device_to_host = _inert("jax_transfer_guard_device_to_host", _GUARD.format("to the host"))
transfer_guard_host_to_device = _inert("jax_transfer_guard_host_to_device", _GUARD.format("to a device"))


def debug_key_reuse(new_val: bool = True) -> Any:
    """Raise a `KeyReuseError` if a random key is used twice inside a `with` block; otherwise that is a warning.

    Only concrete keys are checked, not those inside compiled code.

    >>> import atled
    >>> key = atled.random.key(0)
    >>> with debug_key_reuse():
    ...     x, y = atled.random.uniform(key), atled.random.uniform(key)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    atled.core.errors.KeyReuseError: random.uniform: this key was used before, ...
    """
    return _Inert("jax_debug_key_reuse", bool(new_val))


def enable_checks(new_val: bool = True) -> override:
    """Run the checker on every program that a transformation makes, inside a `with` block.

    >>> import atled
    >>> with enable_checks():
    ...     float(atled.grad(lambda x: x * x)(3.0))
    6.0
    """
    return override(check_programs=bool(new_val))


def explain_cache_misses(new_val: bool = True) -> override:
    """Log why a function is recompiled, inside a `with` block. This is on by default.

    >>> with explain_cache_misses(False):
    ...     read("explain_compiles")
    False
    """
    return override(explain_compiles=bool(new_val))


def _contexts() -> tuple[Any, ...]:
    return scope().contexts


class UserContext:
    """A user-defined part of the trace cache key: see `make_user_context`."""

    def __init__(self, default_value: Any = None) -> None:
        self.default_value = default_value

    @property
    def value(self) -> Any:
        """The value in this context."""
        return next((v for key, v in _contexts() if key is self), self.default_value)

    def __call__(self, new_value: Any) -> override:
        """A `with` block with another value."""
        others = [(key, v) for key, v in _contexts() if key is not self]
        return override(contexts=(*others, (self, new_value)))


def make_user_context(default_value: Any = None) -> UserContext:
    """A user-defined part of `jit`'s cache key: functions are retraced and recompiled for each value.

    >>> import atled
    >>> scale = make_user_context(1)
    >>> f = atled.jit(lambda x: x * scale.value)
    >>> int(f(3))
    3
    >>> with scale(10):
    ...     int(f(3))
    30
    """
    return UserContext(default_value)


def from_environment() -> None:
    """Read `ATLED_X64`, `ATLED_CACHE`, `ATLED_CACHE_DIR`, `ATLED_CACHE_BYTES`, `ATLED_DEBUG_NANS` and so on."""
    for name, kind in NAMES.items():
        text = os.environ.get("ATLED_" + name.upper())
        if text is None or name == "default_device":
            continue
        value: Any = text
        if kind == "bool":
            value = _WORDS.get(text.lower())
        elif kind == "int":
            value = int(text) if text.isdecimal() else None
        if value is not None:
            update(name, value)
        else:
            expected = "0 or 1" if kind == "bool" else "a whole number"
            malformed["ATLED_" + name.upper()] = f"ATLED_{name.upper()} must be {expected}; got {text!r}."


_WORDS = {**dict.fromkeys(("0", "false", "off", "no", ""), False), **dict.fromkeys(("1", "true", "on", "yes"), True)}
malformed: dict[str, str] = {}  # variables that cannot be parsed: a warning now, an error at the first use of a device
from_environment()
if malformed:
    warnings.warn(f"config: {' '.join(malformed.values())}", RuntimeWarning, stacklevel=2)
