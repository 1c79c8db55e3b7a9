"""JAX's settings, with the API of `jax.config`, and context managers with the same names.

A setting of JAX maps to one of atled's (`OURS`), is read when the first device is used (`AT_START`), or has no
counterpart. Settings without a counterpart raise for values that would add a check or change results (`REFUSED`), or
warn once and name what atled does instead (`IGNORED`).

>>> from atled.jax import config
>>> config.jax_enable_x64, config.read("jax_debug_nans")
(False, False)
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
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
    "jax_compilation_cache_max_size": ("cache_bytes", lambda n: n if n >= 0 else 1 << 62, _same),
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
# By name: the accepted values, of which the first is the default, and what atled does. Other values raise.
_TRANSFERS = (("allow", None), "transfers between host and devices are not guarded")
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "check_vma": ((False,), "use shard_map(check_vma=True), which checks out_specs"),
    "jax_array_garbage_collection_guard": (("allow", None), "arrays in reference cycles are not detected"),
    "jax_auto_pcast": ((True,), "shard_map infers the mesh axes over which values vary"),
    "jax_backend_target": (("",), "remote backends are not supported"),
    "jax_check_static_indices": ((False,), "static indices are always checked"),
    "jax_check_tracer_leaks": ((False,), "use atled.debug.checking_leaks() around the code instead"),
    "jax_compilation_cache_check_contents": ((False,), "cache entries have checksums"),
    "jax_compilation_cache_include_metadata_in_key": ((False,), "cache keys do not contain source lines"),
    "jax_cpu_collectives_implementation": (("gloo",), "collectives between CPU processes use Gloo"),
    "jax_cuda_visible_devices": (("all",), "set CUDA_VISIBLE_DEVICES"),
    "jax_default_prng_impl": (("threefry2x32",), "keys are threefry2x32 unless random.key names another kind"),
    "jax_enable_custom_prng": ((False,), "random.PRNGKey returns uint32[2] keys, random.key typed keys"),
    "jax_enable_recoverability": (
        (False,),
        "when a process dies, the run ends or restarts with fewer processes",
    ),
    "jax_error_checking_behavior_divide": (("ignore",), "use checkify"),
    "jax_error_checking_behavior_nan": (("ignore",), "use jax_debug_nans, or checkify"),
    "jax_error_checking_behavior_oob": (("ignore",), "use checkify"),
    "jax_explicit_x64_dtypes": (("warn",), "explicit 64-bit dtypes are always honoured"),
    "jax_high_dynamic_range_gumbel": ((False,), "use random.gumbel(mode='high') for a finer upper tail"),
    "jax_legacy_prng_key": (("allow",), "uint32[2] keys are always accepted"),
    "jax_mock_gpu_topology": (("",), "atled.topologies describes hardware that is not attached"),
    "jax_no_execution": ((False,), "programs are always executed"),
    "jax_no_tracing": ((False,), "tracing cannot be forbidden"),
    "jax_oneapi_visible_devices": (("all",), "use the platform's own environment variable"),
    "jax_pjrt_client_create_options": ((None,), "clients are created with default options"),
    "jax_random_seed_offset": ((0,), "seeds are used unchanged"),
    "jax_rocm_visible_devices": (("all",), "set ROCR_VISIBLE_DEVICES"),
    "jax_thread_guard": ((False,), "any thread may launch programs"),
    "jax_threefry_partitionable": ((True,), "random bits do not depend on shardings"),
    "jax_transfer_guard": _TRANSFERS,
    "jax_transfer_guard_device_to_device": _TRANSFERS,
    "jax_transfer_guard_device_to_host": _TRANSFERS,
    "jax_transfer_guard_host_to_device": _TRANSFERS,
    "jax_xla_backend": (("",), "remote backends are not supported"),
    "mock_num_gpu_processes": ((0,), "atled.topologies describes hardware that is not attached"),
}
# By name: JAX's default, and what atled does for every value.
IGNORED: dict[str, tuple[Any, str]] = {
    "eager_constant_folding": (False, "eager ops run one by one"),
    "jax2tf_associative_scan_reductions": (False, "there is no conversion to TensorFlow"),
    "jax2tf_default_native_serialization": (True, "there is no conversion to TensorFlow"),
    "jax_allow_f16_reductions": (False, "float16 is summed in float32"),
    "jax_bcoo_cusparse_lowering": (False, "sparse products are gathers and sums"),
    "jax_captured_constants_report_frames": (0, "captured arrays are inputs of programs, never constants"),
    "jax_captured_constants_warn_bytes": (2_000_000_000, "captured arrays are inputs of programs, never constants"),
    "jax_check_proxy_envs": (True, "proxy variables are not checked"),
    "jax_compilation_cache_expect_pgle": (False, "there is no profile-guided latency estimate"),
    "jax_compiler_detailed_logging_min_ops": (10, "the setting explain_compiles logs recompilations"),
    "jax_compiler_enable_remat_pass": (True, "use jit(f, compiler_options=...)"),
    "jax_cpu_enable_async_dispatch": (True, "programs on the CPU run asynchronously"),
    "jax_cpu_get_global_topology_timeout_minutes": (5, "use distributed.initialize(timeout=...)"),
    "jax_cpu_get_local_topology_timeout_minutes": (2, "use distributed.initialize(timeout=...)"),
    "jax_cross_host_transfer_socket_address": ("", "arrays move between hosts through collectives"),
    "jax_cross_host_transfer_timeout_seconds": (None, "arrays move between hosts through collectives"),
    "jax_cross_host_transfer_transfer_size": (None, "arrays move between hosts through collectives"),
    "jax_cross_host_transport_addresses": ("", "arrays move between hosts through collectives"),
    "jax_custom_vjp3": (False, "there is one implementation of custom_vjp"),
    "jax_debug_leaked_clients_on_clear_backends": (False, "leaked clients are not detected"),
    "jax_debug_log_modules": ("", "the setting explain_compiles logs recompilations"),
    "jax_disable_bwd_checks": (False, "the results of backward rules are always checked"),
    "jax_disable_most_optimizations": (False, "use jit(f, compiler_options=...)"),
    "jax_disable_vmap_shmap_error": (False, "vmap of shard_map works"),
    "jax_disallow_mesh_context_manager": (False, "a mesh can always be a context manager"),
    "jax_distributed_debug": (False, "errors always name a lost process"),
    "jax_dump_ir_modes": ("stablehlo", "use jit(f).lower(...).as_text()"),
    "jax_dump_ir_to": ("", "use jit(f).lower(...).as_text()"),
    "jax_embedded_constants_max_bytes": (32, "captured arrays are inputs of programs, never constants"),
    "jax_enable_pgle": (False, "there is no profile-guided latency estimate"),
    "jax_enable_preemption_service": (True, "train.fit saves a checkpoint at SIGTERM"),
    "jax_exec_time_optimization_effort": (0.0, "use jit(f, compiler_options=...)"),
    "jax_experimental_unsafe_xla_runtime_errors": (False, "errors are raised when results are read"),
    "jax_export_calling_convention_version": (10, "exported functions have atled's own format"),
    "jax_export_ignore_forward_compatibility": (False, "exported functions have atled's own format"),
    "jax_force_dcn_cross_host_transfers": (False, "arrays move between hosts through collectives"),
    "jax_hlo_source_file_canonicalization_regex": (None, "cache keys do not contain source lines"),
    "jax_include_debug_info_in_dumps": (True, "as_text(debug_info=True) contains source lines"),
    "jax_include_full_tracebacks_in_locations": (False, "locations in programs are lines of user code"),
    "jax_log_checkpoint_residuals": (False, "print_saved_residuals lists them"),
    "jax_log_compiles": (False, "the setting explain_compiles logs recompilations and their reasons"),
    "jax_logging_level": (None, "use Python's logging, with the logger 'atled'"),
    "jax_memory_fitting_effort": (0.0, "use jit(f, compiler_options=...)"),
    "jax_memory_fitting_level": ("O2", "use jit(f, compiler_options=...)"),
    "jax_mosaic_allow_hlo": (False, "there is no Mosaic"),
    "jax_mutable_array_checks": (True, "references are always checked"),
    "jax_optimization_level": ("UNKNOWN", "use jit(f, compiler_options=...)"),
    "jax_pallas_enable_debug_checks": (False, "there is no Pallas"),
    "jax_pallas_poison_buffers": (False, "there is no Pallas"),
    "jax_pallas_use_mosaic_gpu": (True, "there is no Pallas"),
    "jax_pallas_verbose_errors": (False, "there is no Pallas"),
    "jax_persistent_cache_enable_xla_caches": ("", "the engine keeps no caches of its own on disk"),
    "jax_persistent_cache_min_compile_time_secs": (1.0, "every program is kept, however fast it was compiled"),
    "jax_persistent_cache_min_entry_size_bytes": (0, "every program is kept, however small it is"),
    "jax_pgle_aggregation_percentile": (90, "there is no profile-guided latency estimate"),
    "jax_pgle_profiling_runs": (3, "there is no profile-guided latency estimate"),
    "jax_pprint_use_color": (False, "programs are printed without colours"),
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": (False, "there is no Pallas"),
    "jax_ragged_dot_use_ragged_dot_instruction": (True, "there is one lowering of ragged products"),
    "jax_raise_persistent_cache_errors": (False, "a program is recompiled if its cache entry cannot be read"),
    "jax_refs_to_pins": (False, "references are values"),
    "jax_remat3": (False, "there is one implementation of remat"),
    "jax_remove_custom_partitioning_ptr_from_cache_key": (False, "cache keys contain no addresses"),
    "jax_remove_size_one_mesh_axis_from_type": (False, "types do not contain shardings"),
    "jax_scan3": (False, "there is one implementation of scan"),
    "jax_send_traceback_to_runtime": ("off", "launch errors name the line of user code"),
    "jax_serialization_version": (0, "exported functions have atled's own format"),
    "jax_share_binary_between_hosts": (False, "programs are compiled once for all processes"),
    "jax_share_binary_between_hosts_timeout_ms": (1200000, "programs are compiled once for all processes"),
    "jax_softmax_custom_jvp": (True, "softmax has one derivative rule"),
    "jax_sort_devices_by_process_index": (True, "devices are always sorted by process index"),
    "jax_source_url_schema": (None, "locations in programs are lines of user code"),
    "jax_threefry_gpu_kernel_lowering": (False, "there is one lowering of random bits"),
    "jax_traceback_in_locations_limit": (100, "locations in programs are lines of user code"),
    "jax_tracer_error_num_traceback_frames": (5, "errors name the line of user code"),
    "jax_use_direct_linearize": (True, "there is one implementation of linearize"),
    "jax_use_emit_pipeline_primitive": (False, "there is no Pallas"),
    "jax_use_magma": ("auto", "MAGMA is not used"),
    "jax_use_shardy_partitioner": (True, "programs are partitioned by Shardy"),
    "jax_use_simplified_jaxpr_constants": (False, "captured arrays are inputs of programs, never constants"),
    "jax_xla_profile_version": (0, "there is no profile-guided latency estimate"),
}
_values: dict[str, Any] = {  # the values of settings without a counterpart
    **{name: allowed[0] for name, (allowed, _) in REFUSED.items()},
    **{name: default for name, (default, _) in IGNORED.items()},
}
_blocks: ContextVar[tuple[tuple[str, Any, int], ...]] = ContextVar("blocks", default=())  # open blocks: name, value, id
_warned: set[str] = set()  # names


class IgnoredSettingWarning(UserWarning):
    """The warning for a change of a setting of JAX that has no effect in atled.

    >>> issubclass(IgnoredSettingWarning, UserWarning)
    True
    """


def _taken(name: str, value: Any, depth: int) -> Any:
    """`value`, if the setting accepts it; else raises, or warns once about an ignored setting, `depth` frames up."""
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
        if client.is_used() and os.environ.get(variable, "") != text and text not in ("", client.default_backend()):
            raise RuntimeError(f"config: {name} must be set before the first use of a device.")
        os.environ[variable] = text
    elif name in _values:
        _values[name] = _taken(name, value, 3)
    elif name in OURS:
        settings.update(OURS[name][0], OURS[name][1](value))
    else:
        raise AttributeError(_unknown(name))


def read(name: str) -> Any:
    """The value of a setting in the current context.

    >>> read("jax_disable_jit")
    False
    """
    if name in AT_START:
        text = os.environ.get(AT_START[name]) or None
        return int(text) if text and text.isdecimal() else text
    if name in _values:
        return {block[0]: block[1] for block in _blocks.get()}.get(name, _values[name])
    if name in OURS:
        return OURS[name][2](settings.read(OURS[name][0]))
    raise AttributeError(_unknown(name))


def _unknown(name: str) -> str:
    return f"config: there is no setting {name!r}; the settings are {', '.join(sorted([*OURS, *AT_START, *_values]))}."


def parse_flags_with_absl() -> None:
    """Does nothing: settings are not command-line flags here.

    >>> parse_flags_with_absl()
    """


def from_environment() -> None:
    """Apply settings from environment variables such as `JAX_ENABLE_X64`; `import atled.jax` calls it if any are set.

    >>> from_environment()
    """
    for name in (*OURS, *AT_START, *_values):
        text = os.environ.get(name.upper())
        if not text or (name in AT_START and (os.environ.get(AT_START[name]) or client.is_used())):
            continue
        update(name, _parsed(name, text))


def _parsed(name: str, text: str) -> Any:
    """The text of an environment variable, converted to the type of the setting's current value."""
    now = read(name)
    if isinstance(now, bool):
        if text.lower() not in _TRUE + _FALSE:
            raise ValueError(f"config: {name.upper()} must be true or false; got {text!r}.")
        return text.lower() in _TRUE
    return type(now)(text) if isinstance(now, (int, float)) else text


_TRUE, _FALSE = ("y", "yes", "t", "true", "on", "1"), ("n", "no", "f", "false", "off", "0")


class _Config(types.ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        if name in OURS or name in AT_START or name in _values:
            raise AttributeError(f"config: {name} cannot be assigned.\n  try: config.update({name!r}, {value!r}).")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Config


def __getattr__(name: str) -> Any:
    """`config.jax_enable_x64` and similar attributes."""
    if name == "x64_enabled":
        return read("jax_enable_x64")
    if not name.startswith(("jax", "check_", "eager_", "mock_")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return read(name)


# -- `with` blocks ----------------------------------------------------------------------------------------------------


class _Block(contextlib.ContextDecorator):
    """A `with` block that sets a setting without a counterpart."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, _taken(name, value, 4)

    def __enter__(self) -> None:
        _blocks.set((*_blocks.get(), (self.name, self.value, id(self))))

    def __exit__(self, *_: Any) -> None:
        blocks = _blocks.get()
        mine = [n for n, block in enumerate(blocks) if block[2] == id(self)]
        if mine:  # else it was entered in another context
            _blocks.set((*blocks[: mine[-1]], *blocks[mine[-1] + 1 :]))

    def _recreate_cm(self) -> _Block:
        return _Block(self.name, self.value)


def _block(name: str) -> Callable[..., _Block]:
    short, value = name.removeprefix("jax_"), _values[name]
    what = REFUSED[name][1] if name in REFUSED else IGNORED[name][1]

    def block(new_val: Any = True) -> _Block:
        return _Block(name, new_val)

    block.__name__ = block.__qualname__ = short
    how = f"Accepts {value!r}, its default, and raises otherwise" if name in REFUSED else "Changes nothing here"
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
    """Raise a `KeyReuseError` if a random key is used twice inside a `with` block; the default is a warning.

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
    """Log why a function is recompiled, inside a `with` block. Logging is on by default.

    >>> with explain_cache_misses(False):
    ...     read("jax_explain_cache_misses")
    False
    """
    return override(explain_compiles=bool(new_val))


def numpy_rank_promotion(new_val: str) -> override:
    """Inside a `with` block, broadcasting arrays of different ranks raises (`"raise"`) or warns (`"warn"`).

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
        """The value in the current context."""
        return next((v for key, v in _contexts() if key is self), self.default_value)

    def __call__(self, new_value: Any) -> override:
        """A `with` block in which the value is `new_value`."""
        others = [(key, v) for key, v in _contexts() if key is not self]
        return override(contexts=(*others, (self, new_value)))


def make_user_context(default_value: Any = None) -> UserContext:
    """A user-defined part of `jit`'s cache key: a function is retraced and recompiled for each value.

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
