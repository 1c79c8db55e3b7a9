"""atled: composable transforms of NumPy functions.

`grad` differentiates a function, `vmap` batches it, `jit` compiles it with XLA, and all of these compose.

>>> import atled, atled.numpy as jnp
>>> slope = atled.jit(atled.grad(lambda x: jnp.sin(x) ** 2))
>>> round(float(slope(0.5)), 6)
0.841471
"""

import importlib
from typing import TYPE_CHECKING, Any

from atled import numpy, ops, tree
from atled.core import config, trace
from atled.core.array import Array
from atled.core.config import (
    debug_infs,
    debug_nans,
    default_device,
    default_matmul_precision,
    disable_jit,
    enable_x64,
    numpy_dtype_promotion,
)  # fmt: skip
from atled.core.dtypes import float0
from atled.core.sharding import make_mesh, set_mesh
from atled.core.types import ShapeDtypeStruct
from atled.engine.client import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)  # fmt: skip
from atled.engine.eager import Evaluate
from atled.staging.calls import clear_caches
from atled.staging.jit import eval_shape, jit, make_program
from atled.transfer import block_until_ready, device_get, device_put
from atled.transforms.grad import (
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)  # fmt: skip
from atled.transforms.vmap import vmap
from atled.version import __version__

if TYPE_CHECKING:
    from atled import (
        ad_checkpoint,
        checkpoints,
        custom_batching,
        custom_derivatives,
        data,
        debug,
        distributed,
        dlpack,
        dtypes,
        errors,
        experimental,
        export,
        ffi,
        flatten_util,
        image,
        inspect,
        lax,
        memory,
        metrics,
        monitoring,
        nn,
        optim,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        stages,
        test_util,
        topologies,
        train,
        tree_util,
        typing,
    )
    from atled.core.config import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        debug_key_reuse,
        default_prng_impl,
        enable_checks,
        enable_custom_prng,
        explain_cache_misses,
        jax2tf_associative_scan_reductions,
        legacy_prng_key,
        log_compiles,
        make_user_context,
        no_execution,
        no_tracing,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from atled.core.sharding import NamedSharding
    from atled.core.source import named_scope
    from atled.custom_derivatives import closure_convert, custom_gradient
    from atled.debug import check_tracer_leaks, checking_leaks
    from atled.engine.array import Shard
    from atled.engine.client import Device
    from atled.engine.parts import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from atled.environment import copy_to_host_async, live_arrays, print_environment_info, process_indices
    from atled.higher_order.callbacks import effects_barrier, io_callback, pure_callback
    from atled.higher_order.custom import custom_jvp, custom_vjp
    from atled.higher_order.remat import checkpoint, checkpoint_policies, remat
    from atled.higher_order.shard_map import shard_map
    from atled.numpy.index_parsing import ds
    from atled.ref import Ref, empty_ref, free_ref, freeze, new_ref, typeof
    from atled.sharding import P, reshard, smap
    from atled.staging.nans import find_nans
    from atled.staging.pmap import pmap
    from atled.staging.scopes import ensure_compile_time_eval, fwd_and_bwd, named_call

trace.install(Evaluate())
make_jaxpr = make_program  # the names that JAX programs use
# Imported lazily: folders and files, and names from files.
_MODULES = (
    "ad_checkpoint", "checkpoints", "custom_batching", "custom_derivatives", "data", "debug", "distributed",
    "dlpack", "dtypes", "errors", "experimental", "export", "ffi", "flatten_util", "image", "inspect", "lax",
    "memory", "metrics", "monitoring", "nn", "optim", "profiler", "random", "ref", "scipy", "sharding", "stages",
    "test_util", "topologies", "train", "tree_util", "typing",
)  # fmt: skip
_NAMES = {
    "engine.parts": (
        "make_array_from_callback",
        "make_array_from_process_local_data",
        "make_array_from_single_device_arrays",
    ),
    "core.config": (
        "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "debug_key_reuse",
        "default_prng_impl", "enable_checks", "enable_custom_prng", "explain_cache_misses",
        "jax2tf_associative_scan_reductions", "legacy_prng_key", "log_compiles", "make_user_context",
        "no_execution", "no_tracing", "numpy_rank_promotion", "remove_size_one_mesh_axis_from_type",
        "softmax_custom_jvp", "thread_guard", "threefry_partitionable", "transfer_guard",
        "transfer_guard_device_to_device", "transfer_guard_device_to_host", "transfer_guard_host_to_device",
    ),
    "core.sharding": ("NamedSharding",),
    "engine.array": ("Shard",),
    "engine.client": ("Device",),
    "core.source": ("named_scope",),
    "custom_derivatives": ("closure_convert", "custom_gradient"),
    "debug": ("check_tracer_leaks", "checking_leaks"),
    "environment": ("copy_to_host_async", "live_arrays", "print_environment_info", "process_indices"),
    "numpy.index_parsing": ("ds",),
    "ref": ("Ref", "empty_ref", "free_ref", "freeze", "new_ref", "typeof"),
    "sharding": ("P", "reshard", "smap"),
    "higher_order.callbacks": ("effects_barrier", "io_callback", "pure_callback"),
    "higher_order.custom": ("custom_jvp", "custom_vjp"),
    "staging.nans": ("find_nans",),
    "staging.pmap": ("pmap",),
    "higher_order.remat": ("checkpoint", "checkpoint_policies", "remat"),
    "staging.scopes": ("ensure_compile_time_eval", "fwd_and_bwd", "named_call"),
    "higher_order.shard_map": ("shard_map",),
}  # fmt: skip
_FILES = {name: file for file, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"atled.{name}")
    if name in _FILES:
        value = globals()[name] = getattr(importlib.import_module(f"atled.{_FILES[name]}"), name)
        return value
    raise AttributeError(f"module 'atled' has no attribute {name!r}")


__all__ = [
    "Array", "Device", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard", "__version__", "ad_checkpoint",
    "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "block_until_ready",
    "check_tracer_leaks", "checking_leaks", "checkpoint", "checkpoint_policies", "checkpoints", "clear_caches",
    "closure_convert", "config", "copy_to_host_async", "custom_batching", "custom_derivatives", "custom_gradient",
    "custom_jvp", "custom_vjp", "data", "debug", "debug_infs", "debug_key_reuse", "debug_nans", "default_backend",
    "default_device", "default_matmul_precision", "default_prng_impl", "device_count", "device_get", "device_put",
    "devices", "disable_jit", "distributed", "dlpack", "ds", "dtypes", "effects_barrier", "empty_ref",
    "enable_checks", "enable_custom_prng", "enable_x64", "ensure_compile_time_eval", "errors", "eval_shape",
    "experimental", "explain_cache_misses", "export", "ffi", "find_nans", "flatten_util", "float0", "free_ref",
    "freeze", "fwd_and_bwd", "grad", "hessian", "image", "inspect", "io_callback", "jacfwd", "jacobian", "jacrev",
    "jax2tf_associative_scan_reductions", "jit", "jvp", "lax", "legacy_prng_key", "linear_transpose", "linearize",
    "live_arrays", "local_device_count", "local_devices", "log_compiles", "make_array_from_callback",
    "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh",
    "make_program", "make_user_context", "memory", "metrics", "monitoring", "named_call", "named_scope", "new_ref",
    "nn", "no_execution", "no_tracing", "numpy", "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "optim",
    "pmap", "print_environment_info", "process_count", "process_index", "process_indices", "profiler",
    "pure_callback", "random", "ref", "remat", "remove_size_one_mesh_axis_from_type", "reshard", "scipy",
    "set_mesh", "shard_map", "sharding", "smap", "softmax_custom_jvp", "stages", "test_util", "thread_guard",
    "threefry_partitionable", "topologies", "train", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree", "tree_util", "typeof", "typing",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip
