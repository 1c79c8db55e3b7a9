"""atled: NumPy functions, transformed.

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
from atled.core.array import Array, type_of
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
from atled.higher_order.jit import clear_caches, eval_shape, jit, make_program
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
        flatten_util,
        image,
        inspect,
        lax,
        metrics,
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
    from atled.core.sharding import NamedSharding
    from atled.core.source import named_scope
    from atled.custom_derivatives import closure_convert, custom_gradient
    from atled.debug import checking_leaks
    from atled.engine.client import Device
    from atled.engine.parts import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from atled.environment import copy_to_host_async, live_arrays, print_environment_info, process_indices
    from atled.higher_order.callbacks import effects_barrier, io_callback, pure_callback
    from atled.higher_order.custom import custom_jvp, custom_vjp
    from atled.higher_order.nans import find_nans
    from atled.higher_order.pmap import pmap
    from atled.higher_order.remat import checkpoint, checkpoint_policies, remat
    from atled.higher_order.scopes import ensure_compile_time_eval, fwd_and_bwd, named_call
    from atled.higher_order.shard_map import shard_map
    from atled.ref import Ref, empty_ref, free_ref, freeze, new_ref
    from atled.sharding import P, reshard

trace.install(Evaluate())
make_jaxpr = make_program  # the names that JAX programs use
typeof = type_of
# What is loaded when it is first asked for: folders and files, and names out of files.
_MODULES = (
    "ad_checkpoint", "checkpoints", "custom_batching", "custom_derivatives", "data", "debug", "distributed",
    "dlpack", "dtypes", "errors", "experimental", "export", "flatten_util", "image", "inspect", "lax", "metrics",
    "nn", "optim", "profiler", "random", "ref", "scipy", "sharding", "stages", "test_util", "topologies", "train",
    "tree_util", "typing",
)  # fmt: skip
_NAMES = {
    "engine.parts": (
        "make_array_from_callback",
        "make_array_from_process_local_data",
        "make_array_from_single_device_arrays",
    ),
    "core.sharding": ("NamedSharding",),
    "engine.client": ("Device",),
    "core.source": ("named_scope",),
    "custom_derivatives": ("closure_convert", "custom_gradient"),
    "debug": ("checking_leaks",),
    "environment": ("copy_to_host_async", "live_arrays", "print_environment_info", "process_indices"),
    "ref": ("Ref", "empty_ref", "free_ref", "freeze", "new_ref"),
    "sharding": ("P", "reshard"),
    "higher_order.callbacks": ("effects_barrier", "io_callback", "pure_callback"),
    "higher_order.custom": ("custom_jvp", "custom_vjp"),
    "higher_order.nans": ("find_nans",),
    "higher_order.pmap": ("pmap",),
    "higher_order.remat": ("checkpoint", "checkpoint_policies", "remat"),
    "higher_order.scopes": ("ensure_compile_time_eval", "fwd_and_bwd", "named_call"),
    "higher_order.shard_map": ("shard_map",),
}
_FILES = {name: file for file, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"atled.{name}")
    if name in _FILES:
        found = globals()[name] = getattr(importlib.import_module(f"atled.{_FILES[name]}"), name)
        return found
    raise AttributeError(f"module 'atled' has no attribute {name!r}")


__all__ = [
    "Array", "Device", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "__version__", "ad_checkpoint",
    "block_until_ready", "checking_leaks", "checkpoint", "checkpoint_policies", "checkpoints", "clear_caches",
    "closure_convert", "config", "copy_to_host_async", "custom_batching", "custom_derivatives", "custom_gradient",
    "custom_jvp", "custom_vjp", "data", "debug", "debug_infs", "debug_nans", "default_backend", "default_device",
    "default_matmul_precision", "device_count", "device_get", "device_put", "devices", "disable_jit", "distributed",
    "dlpack", "dtypes", "effects_barrier", "empty_ref", "enable_x64", "ensure_compile_time_eval", "errors",
    "eval_shape", "experimental", "export", "find_nans", "flatten_util", "float0", "free_ref", "freeze",
    "fwd_and_bwd", "grad", "hessian", "image", "inspect", "io_callback", "jacfwd", "jacobian", "jacrev", "jit",
    "jvp", "lax", "linear_transpose", "linearize", "live_arrays", "local_device_count", "local_devices",
    "make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays",
    "make_jaxpr", "make_mesh", "make_program", "metrics", "named_call", "named_scope", "new_ref", "nn", "numpy",
    "numpy_dtype_promotion", "ops", "optim", "pmap", "print_environment_info", "process_count", "process_index",
    "process_indices", "profiler", "pure_callback", "random", "ref", "remat", "reshard", "scipy", "set_mesh",
    "shard_map", "sharding", "stages", "test_util", "topologies", "train", "tree", "tree_util", "typeof", "typing",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip
