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
        data,
        debug,
        distributed,
        dtypes,
        errors,
        export,
        inspect,
        lax,
        metrics,
        nn,
        optim,
        random,
        scipy,
        sharding,
        topologies,
        train,
        tree_util,
    )
    from atled.debug import checking_leaks
    from atled.engine.parts import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from atled.higher_order.callbacks import effects_barrier, io_callback, pure_callback
    from atled.higher_order.custom import custom_jvp, custom_vjp
    from atled.higher_order.nans import find_nans
    from atled.higher_order.pmap import pmap
    from atled.higher_order.remat import checkpoint, checkpoint_policies, remat
    from atled.higher_order.shard_map import shard_map

trace.install(Evaluate())
make_jaxpr = make_program  # the name that JAX programs use
# What is loaded when it is first asked for: folders and files, and names out of files.
_MODULES = (
    "ad_checkpoint", "checkpoints", "custom_batching", "data", "debug", "distributed", "dtypes", "errors", "export",
    "inspect", "lax", "metrics", "nn", "optim", "random", "scipy", "sharding", "topologies", "train", "tree_util",
)  # fmt: skip
_NAMES = {
    "engine.parts": (
        "make_array_from_callback",
        "make_array_from_process_local_data",
        "make_array_from_single_device_arrays",
    ),
    "debug": ("checking_leaks",),
    "higher_order.callbacks": ("effects_barrier", "io_callback", "pure_callback"),
    "higher_order.custom": ("custom_jvp", "custom_vjp"),
    "higher_order.nans": ("find_nans",),
    "higher_order.pmap": ("pmap",),
    "higher_order.remat": ("checkpoint", "checkpoint_policies", "remat"),
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
    "Array", "ShapeDtypeStruct", "__version__", "ad_checkpoint", "block_until_ready", "checking_leaks", "checkpoint",
    "checkpoint_policies", "checkpoints", "clear_caches", "config", "custom_batching", "custom_jvp", "custom_vjp",
    "data", "debug", "debug_infs", "debug_nans", "default_backend", "default_device", "default_matmul_precision",
    "device_count", "device_get", "device_put", "devices", "disable_jit", "distributed", "dtypes", "effects_barrier",
    "enable_x64", "errors", "eval_shape", "export", "find_nans", "float0", "grad", "hessian", "inspect", "io_callback",
    "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax", "linear_transpose", "linearize", "local_device_count",
    "local_devices", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_program", "metrics", "nn", "numpy",
    "numpy_dtype_promotion", "ops", "optim", "pmap", "process_count", "process_index", "pure_callback", "random",
    "remat", "scipy", "set_mesh", "shard_map", "sharding", "topologies", "train", "tree", "tree_util", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip
