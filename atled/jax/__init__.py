"""JAX's public API, built from atled's own objects: a program for JAX runs after `import atled.jax as jax`.

>>> import atled
>>> import atled.jax as jax, atled.jax.numpy as jnp
>>> jax.grad is atled.grad, jnp is atled.numpy
(True, True)

This package defines only the names that JAX has and `atled` lacks; shared modules are the same objects, such as
`atled.jax.numpy` and `atled.numpy`. `atled.jax.as_jax` installs this package as `jax`.
"""

import os as _os

from atled.core import lazy_imports
from atled.jax import attributes as _attributes
from atled.jax import finder as _finder

__version__ = "0.10.2"  # the version of JAX whose API this package has
__version_info__ = (0, 10, 2)
_MODULES = """
    _src ad_checkpoint api_util config custom_batching custom_derivatives dlpack dtypes errors example_libraries
    experimental extend ffi flatten_util interpreters lax memory monitoring ref stages tree_util version
"""
_NAMES = {
    "atled.core.array": "Array",
    "atled.core.dtypes": "float0",
    "atled.core.settings": """
        debug_infs debug_nans default_device default_matmul_precision disable_jit enable_x64 numpy_dtype_promotion""",
    "atled.core.sharding": "NamedSharding make_mesh set_mesh",
    "atled.core.source": "named_scope",
    "atled.core.types": "ShapeDtypeStruct",
    "atled.debug": "check_tracer_leaks checking_leaks",
    "atled.engine.array": "Shard",
    "atled.engine.client": """
        Device default_backend device_count devices local_device_count local_devices process_count process_index""",
    "atled.engine.global_arrays": """
        make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays""",
    "atled.higher_order.callbacks": "effects_barrier pure_callback",
    "atled.higher_order.custom_derivatives": "custom_jvp custom_vjp",
    "atled.higher_order.remat": "checkpoint=remat checkpoint_policies remat",
    "atled.higher_order.shard_map": "shard_map",
    "atled.numpy.index_parsing": "ds",
    "atled.sharding": "P reshard smap",
    "atled.staging.jit_calls": "clear_caches",
    "atled.staging.jit": "eval_shape jit make_jaxpr=make_program",
    "atled.staging.pmap": "pmap",
    "atled.jax.named_calls": "fwd_and_bwd named_call",
    "atled.staging.compile_time_eval": "ensure_compile_time_eval",
    "atled.staging.device_put": "block_until_ready device_get device_put",
    "atled.transforms.grad": """
        grad hessian jacfwd jacobian jacrev jvp linear_transpose linearize value_and_grad vjp""",
    "atled.transforms.vmap": "vmap",
    "config": """
        allow_f16_reductions array_garbage_collection_guard auto_pcast debug_key_reuse default_prng_impl
        enable_checks enable_custom_prng explain_cache_misses jax2tf_associative_scan_reductions legacy_prng_key
        log_compiles make_user_context no_execution no_tracing numpy_rank_promotion
        remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard threefry_partitionable transfer_guard
        transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device""",
    "custom_derivatives": "closure_convert custom_gradient",
    "environment": "copy_to_host_async live_arrays print_environment_info process_indices",
    "ref": "Ref empty_ref free_ref freeze new_ref typeof",
}
_attributes.install()
_finder.install()
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, f"{_MODULES} {' '.join(_finder.SHARED)} core lib")
if any([name.startswith(("JAX_", "CHECK_VMA")) for name in _os.environ]):
    from atled.jax import config as _config

    _config.from_environment()
