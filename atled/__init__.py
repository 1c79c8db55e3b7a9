"""atled: composable transforms of NumPy functions.

`grad` differentiates a function, `vmap` batches it, `jit` compiles it with XLA, and all of these compose.

>>> import atled, atled.numpy as jnp
>>> slope = atled.jit(atled.grad(lambda x: jnp.sin(x) ** 2))
>>> round(float(slope(0.5)), 6)
0.841471
"""

from atled.core import lazy_imports, trace
from atled.engine.eager import Evaluate

__version__ = "0.1.0"
_AT_ONCE = {
    "numpy": "",  # importing it adds the methods of arrays
    "core.array": "Array",
    "core.dtypes": "float0",
    "core.settings": """
        debug_infs debug_nans default_device default_matmul_precision disable_jit enable_x64 numpy_dtype_promotion""",
    "core.sharding": "make_mesh set_mesh",
    "core.types": "ShapeDtypeStruct",
    "engine.client": """
        default_backend device_count devices local_device_count local_devices process_count process_index""",
    "staging.jit_calls": "clear_caches",
    "staging.jit": "eval_shape jit make_program",
    "staging.device_put": "block_until_ready device_get device_put",
    "transforms.grad": "grad hessian jacfwd jacobian jacrev jvp linear_transpose linearize value_and_grad vjp",
    "transforms.vmap": "vmap",
}
_NAMES = {
    "core.sharding": "NamedSharding",
    "core.source": "named_scope",
    "engine.array": "Shard",
    "engine.client": "Device",
    "engine.global_arrays": """
        make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays""",
    "higher_order.callbacks": "effects_barrier io_callback pure_callback",
    "higher_order.custom_derivatives": "custom_jvp custom_vjp",
    "higher_order.remat": "checkpoint_policies remat",
    "higher_order.shard_map": "shard_map",
    "sharding": "P reshard",
    "staging.find_nans": "find_nans",
    "staging.pmap": "pmap",
    "staging.compile_time_eval": "ensure_compile_time_eval",
}
_MODULES = """
    checkpoints data debug distributed errors export ffi generate image inspect jax lax metrics models nn numpy ops
    optim profiler random scipy settings sharding test_util text topologies train tree typing
"""
trace.install(Evaluate())
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, _MODULES, _AT_ONCE)
