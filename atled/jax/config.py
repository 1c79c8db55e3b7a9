"""JAX's settings, with the API of `jax.config`, and the `with` blocks of the same names.

A setting is one of atled's under JAX's name (`OURS`), or read when the first device is used (`AT_START`), or has no
counterpart. Of those, one that promises a check or another program raises where it would have to do something
(`REFUSED`); any other warns once and says what happens instead (`IGNORED`).

>>> from atled.jax import config
>>> config.jax_enable_x64, config.read("jax_debug_nans")
(False, False)
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from atled.core import settings
from atled.core.settings import (  # noqa: F401
    debug_infs,
    debug_nans,
    default_device,
    default_matmul_precision,
    disable_jit,
    enable_x64,
    numpy_dtype_promotion,
    override,
    scope,
)
from atled.engine import client

Convert = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _not(value: Any) -> bool:
    return not value


# Settings of atled under JAX's names, and how values are converted from and to JAX's.
OURS: dict[str, tuple[str, Convert, Convert]] = {
    "jax_enable_x64": ("x64", bool, _same),
    "jax_numpy_dtype_promotion": ("promotion", _same, _same),
    "jax_numpy_rank_promotion": ("rank_promotion", _same, _same),
    "jax_default_matmul_precision": ("matmul_precision", _same, _same),
    "jax_compilation_cache_dir": ("cache_dir", _same, _same),
    "jax_enable_compilation_cache": ("cache", bool, _same),
    "jax_debug_nans": ("debug_nans", bool, _same),
    "jax_debug_infs": ("debug_infs", bool, _same),
    "jax_debug_key_reuse": ("key_reuse", lambda on: "raise" if on else "warn", lambda how: how == "raise"),
    "jax_explain_cache_misses": ("explain_compiles", bool, _same),
    "jax_default_device": ("default_device", _same, _same),
    "jax_enable_checks": ("check_programs", bool, _same),
    "jax_disable_jit": ("jit", _not, _not),
    "jax_traceback_filtering": ("hide_frames", lambda how: how != "off", lambda on: "auto" if on else "off"),
}
AT_START = {  # their environment variables
    "jax_platforms": "ATLED_PLATFORMS",
    "jax_platform_name": "ATLED_PLATFORMS",
    "jax_num_cpu_devices": "ATLED_NUM_CPU_DEVICES",
}
# By name: the values that describe what happens here, the first of which is read; and what that is. Others raise.
_TRANSFERS = (("allow", None), "transfers between host and devices are not watched")
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "jax_array_garbage_collection_guard": (("allow", None), "arrays in reference cycles are not looked for"),
    "jax_auto_pcast": ((True,), "shard_map makes values varying where they meet"),
    "jax_check_tracer_leaks": ((False,), "use atled.debug.checking_leaks() around the code instead"),
    "jax_cpu_collectives_implementation": (("gloo",), "collectives between CPU processes are Gloo's"),
    "jax_default_prng_impl": (("threefry2x32",), "keys are threefry2x32 unless random.key names another kind"),
    "jax_enable_custom_prng": ((False,), "random.PRNGKey makes keys of two words, random.key typed ones"),
    "jax_legacy_prng_key": (("allow",), "keys of two words are always taken"),
    "jax_mock_gpu_topology": (("",), "atled.topologies describes hardware that is not attached"),
    "jax_no_execution": ((False,), "programs are run"),
    "jax_no_tracing": ((False,), "functions are traced"),
    "jax_thread_guard": ((False,), "any thread may launch programs"),
    "jax_threefry_partitionable": ((True,), "random bits do not depend on how arrays are split"),
    "jax_transfer_guard": _TRANSFERS,
    "jax_transfer_guard_device_to_device": _TRANSFERS,
    "jax_transfer_guard_device_to_host": _TRANSFERS,
    "jax_transfer_guard_host_to_device": _TRANSFERS,
}
# By name: JAX's default, and what happens here, whatever the value is.
IGNORED: dict[str, tuple[Any, str]] = {
    "jax2tf_associative_scan_reductions": (False, "there is no conversion to TensorFlow"),
    "jax_allow_f16_reductions": (False, "float16 is summed in float32"),
    "jax_captured_constants_warn_bytes": (2_000_000_000, "captured arrays are inputs of programs, never constants"),
    "jax_cpu_enable_async_dispatch": (True, "programs on the CPU run asynchronously"),
    "jax_debug_log_modules": ("", "what is compiled is logged by explain_compiles"),
    "jax_dump_ir_to": ("", "jit(f).lower(...).as_text() is the text of a program"),
    "jax_include_full_tracebacks_in_locations": (False, "locations in programs are the user's lines"),
    "jax_log_compiles": (False, "what is compiled again is logged, with the reason, by explain_compiles"),
    "jax_logging_level": (None, "use Python's logging, with the logger 'atled'"),
    "jax_mutable_array_checks": (True, "references are always checked"),
    "jax_optimization_level": ("UNKNOWN", "use jit(f, compiler_options=...)"),
    "jax_persistent_cache_enable_xla_caches": ("", "the engine keeps no caches of its own on disk"),
    "jax_persistent_cache_min_compile_time_secs": (1.0, "every program is kept, however fast it was compiled"),
    "jax_persistent_cache_min_entry_size_bytes": (0, "every program is kept, however small it is"),
    "jax_pprint_use_color": (False, "programs are printed without colours"),
    "jax_raise_persistent_cache_errors": (False, "an entry that cannot be read is compiled again"),
    "jax_remove_size_one_mesh_axis_from_type": (False, "types do not contain shardings"),
    "jax_softmax_custom_jvp": (True, "softmax has one derivative rule"),
    "jax_use_shardy_partitioner": (True, "programs are partitioned by Shardy"),
    "jax_vjp3": (True, "there is one implementation of vjp"),
}
_values: dict[str, Any] = {  # of settings without a counterpart
    **{name: allowed[0] for name, (allowed, _) in REFUSED.items()},
    **{name: default for name, (default, _) in IGNORED.items()},
}
_blocks: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("blocks", default=())  # the same, in `with` blocks
_warned: set[str] = set()  # names


class IgnoredSettingWarning(UserWarning):
    """A setting of JAX was changed that changes nothing here.

    >>> issubclass(IgnoredSettingWarning, UserWarning)
    True
    """


def _taken(name: str, value: Any, depth: int) -> Any:
    """The value, if a setting without a counterpart may have it; the user's call is `depth` frames up."""
    if name in REFUSED:
        allowed, instead = REFUSED[name]
        if value not in allowed:
            raise NotImplementedError(f"config: {name} cannot be {value!r} here, only {allowed[0]!r}: {instead}.")
    elif value != IGNORED[name][0] and name not in _warned:
        _warned.add(name)
        warnings.warn(f"config: {name} changes nothing here: {IGNORED[name][1]}.", IgnoredSettingWarning, depth)
    return value


def update(name: str, value: Any) -> None:
    """Change a setting for the whole process.

    >>> update("jax_enable_checks", False)
    """
    if name in AT_START:
        variable, text = AT_START[name], "" if value is None else str(value)
        if client.is_used() and os.environ.get(variable, "") != text:
            raise RuntimeError(f"config: {name} must be set before the first use of a device.")
        os.environ[variable] = text
    elif name in _values:
        _values[name] = _taken(name, value, 3)
    elif name in OURS:
        settings.update(OURS[name][0], OURS[name][1](value))
    else:
        raise AttributeError(_unknown(name))


def read(name: str) -> Any:
    """The value of a setting in this context.

    >>> read("jax_disable_jit")
    False
    """
    if name in AT_START:
        return os.environ.get(AT_START[name]) or None
    if name in _values:
        return dict(_blocks.get()).get(name, _values[name])
    if name in OURS:
        return OURS[name][2](settings.read(OURS[name][0]))
    raise AttributeError(_unknown(name))


def _unknown(name: str) -> str:
    return f"config: there is no setting {name!r}; the settings are {', '.join(sorted([*OURS, *AT_START, *_values]))}."


def parse_flags_with_absl() -> None:
    """Does nothing: settings are not command-line flags here.

    >>> parse_flags_with_absl()
    """


def __getattr__(name: str) -> Any:
    """`config.jax_enable_x64` and similar attributes."""
    if name == "x64_enabled":
        return read("jax_enable_x64")
    if name.startswith("__") or not name.startswith(("jax", "check")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return read(name)


# -- `with` blocks ----------------------------------------------------------------------------------------------------


class _Block(contextlib.ContextDecorator):
    """A `with` block with another value of a setting without a counterpart."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, _taken(name, value, 4)

    def __enter__(self) -> None:
        self.token = _blocks.set((*_blocks.get(), (self.name, self.value)))

    def __exit__(self, *_: Any) -> None:
        _blocks.reset(self.token)

    def _recreate_cm(self) -> _Block:
        return _Block(self.name, self.value)


def _block(name: str) -> Callable[..., _Block]:
    short, value = name.removeprefix("jax_"), _values[name]
    what = REFUSED[name][1] if name in REFUSED else IGNORED[name][1]

    def block(new_val: Any = True) -> _Block:
        return _Block(name, new_val)

    block.__name__ = block.__qualname__ = short
    how = f"Has one value here, {value!r}, and raises for others" if name in REFUSED else "Changes nothing here"
    block.__doc__ = f"{how}: {what}.\n\n    >>> with {short}({value!r}):\n    ...     pass\n    "
    return block


allow_f16_reductions = _block("jax_allow_f16_reductions")
array_garbage_collection_guard = _block("jax_array_garbage_collection_guard")
auto_pcast = _block("jax_auto_pcast")
default_prng_impl = _block("jax_default_prng_impl")
enable_custom_prng = _block("jax_enable_custom_prng")
jax2tf_associative_scan_reductions = _block("jax2tf_associative_scan_reductions")
legacy_prng_key = _block("jax_legacy_prng_key")
log_compiles = _block("jax_log_compiles")
no_execution = _block("jax_no_execution")
no_tracing = _block("jax_no_tracing")
remove_size_one_mesh_axis_from_type = _block("jax_remove_size_one_mesh_axis_from_type")
softmax_custom_jvp = _block("jax_softmax_custom_jvp")
thread_guard = _block("jax_thread_guard")
threefry_partitionable = _block("jax_threefry_partitionable")
transfer_guard = _block("jax_transfer_guard")
transfer_guard_device_to_device = _block("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = _block("jax_transfer_guard_device_to_host")
transfer_guard_host_to_device = _block("jax_transfer_guard_host_to_device")


def debug_key_reuse(new_val: bool = True) -> override:
    """Raise a `KeyReuseError` if a random key is used twice inside a `with` block; otherwise that is a warning.

    Only concrete keys are checked, not those inside compiled code.

    >>> import atled
    >>> key = atled.random.key(0)
    >>> with debug_key_reuse():
    ...     x, y = atled.random.uniform(key), atled.random.uniform(key)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    atled.core.errors.KeyReuseError: random.uniform: this key was used before, ...
    """
    return override(key_reuse="raise" if new_val else "warn")


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
    ...     read("jax_explain_cache_misses")
    False
    """
    return override(explain_compiles=bool(new_val))


def numpy_rank_promotion(new_val: str) -> override:
    """`"raise"` refuses to broadcast arrays of different ranks inside a `with` block, `"warn"` warns of it.

    >>> import atled.numpy as jnp
    >>> with numpy_rank_promotion("raise"):
    ...     jnp.ones((2, 3)) + jnp.ones(3)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ValueError: add: ranks differ, and rank_promotion is 'raise'; got shapes (2, 3) and (3,).
    """
    return override(rank_promotion=new_val)


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


__all__ = ["IgnoredSettingWarning", "parse_flags_with_absl", "read", "update"]
__dir__ = [*__all__, *OURS, *AT_START, *_values].copy
