# Written by scripts/stubs.
__version__: str
__version_info__: tuple
from atled import distributed as distributed
from atled import export as export
from atled import image as image
from atled import nn as nn
from atled import numpy as numpy
from atled import ops as ops
from atled import profiler as profiler
from atled import random as random
from atled import scipy as scipy
from atled import sharding as sharding
from atled import test_util as test_util
from atled import tree as tree
from atled import typing as typing
from atled.core.array import Array as Array
from atled.core.dtypes import float0 as float0
from atled.core.settings import debug_infs as debug_infs
from atled.core.settings import debug_nans as debug_nans
from atled.core.settings import default_device as default_device
from atled.core.settings import default_matmul_precision as default_matmul_precision
from atled.core.settings import disable_jit as disable_jit
from atled.core.settings import enable_x64 as enable_x64
from atled.core.settings import numpy_dtype_promotion as numpy_dtype_promotion
from atled.core.sharding import NamedSharding as NamedSharding
from atled.core.sharding import make_mesh as make_mesh
from atled.core.sharding import set_mesh as set_mesh
from atled.core.source import named_scope as named_scope
from atled.core.types import ShapeDtypeStruct as ShapeDtypeStruct
from atled.debug import check_tracer_leaks as check_tracer_leaks
from atled.debug import checking_leaks as checking_leaks
from atled.engine.array import Shard as Shard
from atled.engine.client import Device as Device
from atled.engine.client import default_backend as default_backend
from atled.engine.client import device_count as device_count
from atled.engine.client import devices as devices
from atled.engine.client import local_device_count as local_device_count
from atled.engine.client import local_devices as local_devices
from atled.engine.client import process_count as process_count
from atled.engine.client import process_index as process_index
from atled.engine.global_arrays import make_array_from_callback as make_array_from_callback
from atled.engine.global_arrays import make_array_from_process_local_data as make_array_from_process_local_data
from atled.engine.global_arrays import make_array_from_single_device_arrays as make_array_from_single_device_arrays
from atled.higher_order.callbacks import effects_barrier as effects_barrier
from atled.higher_order.callbacks import pure_callback as pure_callback
from atled.higher_order.custom_derivatives import custom_jvp as custom_jvp
from atled.higher_order.custom_derivatives import custom_vjp as custom_vjp
from atled.higher_order.remat import checkpoint_policies as checkpoint_policies
from atled.higher_order.remat import remat as checkpoint
from atled.higher_order.remat import remat as remat
from atled.higher_order.shard_map import shard_map as shard_map
from atled.jax import __version__ as __version__
from atled.jax import ad_checkpoint as ad_checkpoint
from atled.jax import api_util as api_util
from atled.jax import config as config
from atled.jax import custom_batching as custom_batching
from atled.jax import custom_derivatives as custom_derivatives
from atled.jax import debug as debug
from atled.jax import dlpack as dlpack
from atled.jax import dtypes as dtypes
from atled.jax import errors as errors
from atled.jax import example_libraries as example_libraries
from atled.jax import experimental as experimental
from atled.jax import extend as extend
from atled.jax import ffi as ffi
from atled.jax import flatten_util as flatten_util
from atled.jax import interpreters as interpreters
from atled.jax import lax as lax
from atled.jax import memory as memory
from atled.jax import monitoring as monitoring
from atled.jax import ref as ref
from atled.jax import stages as stages
from atled.jax import tree_util as tree_util
from atled.jax import version as version
from atled.jax.config import allow_f16_reductions as allow_f16_reductions
from atled.jax.config import array_garbage_collection_guard as array_garbage_collection_guard
from atled.jax.config import auto_pcast as auto_pcast
from atled.jax.config import debug_key_reuse as debug_key_reuse
from atled.jax.config import default_prng_impl as default_prng_impl
from atled.jax.config import enable_checks as enable_checks
from atled.jax.config import enable_custom_prng as enable_custom_prng
from atled.jax.config import explain_cache_misses as explain_cache_misses
from atled.jax.config import jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions
from atled.jax.config import legacy_prng_key as legacy_prng_key
from atled.jax.config import log_compiles as log_compiles
from atled.jax.config import make_user_context as make_user_context
from atled.jax.config import no_execution as no_execution
from atled.jax.config import no_tracing as no_tracing
from atled.jax.config import numpy_rank_promotion as numpy_rank_promotion
from atled.jax.config import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type
from atled.jax.config import softmax_custom_jvp as softmax_custom_jvp
from atled.jax.config import thread_guard as thread_guard
from atled.jax.config import threefry_partitionable as threefry_partitionable
from atled.jax.config import transfer_guard as transfer_guard
from atled.jax.config import transfer_guard_device_to_device as transfer_guard_device_to_device
from atled.jax.config import transfer_guard_device_to_host as transfer_guard_device_to_host
from atled.jax.config import transfer_guard_host_to_device as transfer_guard_host_to_device
from atled.jax.custom_derivatives import closure_convert as closure_convert
from atled.jax.custom_derivatives import custom_gradient as custom_gradient
from atled.jax.environment import copy_to_host_async as copy_to_host_async
from atled.jax.environment import live_arrays as live_arrays
from atled.jax.environment import print_environment_info as print_environment_info
from atled.jax.environment import process_indices as process_indices
from atled.jax.extend import backend as lib
from atled.jax.extend import core as core
from atled.jax.named_calls import fwd_and_bwd as fwd_and_bwd
from atled.jax.named_calls import named_call as named_call
from atled.jax.ref import Ref as Ref
from atled.jax.ref import empty_ref as empty_ref
from atled.jax.ref import free_ref as free_ref
from atled.jax.ref import freeze as freeze
from atled.jax.ref import new_ref as new_ref
from atled.jax.ref import typeof as typeof
from atled.numpy.index_parsing import ds as ds
from atled.sharding import P as P
from atled.sharding import reshard as reshard
from atled.sharding import smap as smap
from atled.staging.compile_time_eval import ensure_compile_time_eval as ensure_compile_time_eval
from atled.staging.device_put import block_until_ready as block_until_ready
from atled.staging.device_put import device_get as device_get
from atled.staging.device_put import device_put as device_put
from atled.staging.jit import eval_shape as eval_shape
from atled.staging.jit import jit as jit
from atled.staging.jit import make_program as make_jaxpr
from atled.staging.jit_calls import clear_caches as clear_caches
from atled.staging.pmap import pmap as pmap
from atled.transforms.grad import grad as grad
from atled.transforms.grad import hessian as hessian
from atled.transforms.grad import jacfwd as jacfwd
from atled.transforms.grad import jacobian as jacobian
from atled.transforms.grad import jacrev as jacrev
from atled.transforms.grad import jvp as jvp
from atled.transforms.grad import linear_transpose as linear_transpose
from atled.transforms.grad import linearize as linearize
from atled.transforms.grad import value_and_grad as value_and_grad
from atled.transforms.grad import vjp as vjp
from atled.transforms.vmap import vmap as vmap

__all__ = [
    "Array",
    "Device",
    "NamedSharding",
    "P",
    "Ref",
    "ShapeDtypeStruct",
    "Shard",
    "__version__",
    "ad_checkpoint",
    "allow_f16_reductions",
    "api_util",
    "array_garbage_collection_guard",
    "auto_pcast",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "dlpack",
    "ds",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "explain_cache_misses",
    "export",
    "extend",
    "ffi",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "image",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax2tf_associative_scan_reductions",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "lib",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "make_user_context",
    "memory",
    "monitoring",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "pmap",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "remove_size_one_mesh_axis_from_type",
    "reshard",
    "scipy",
    "set_mesh",
    "shard_map",
    "sharding",
    "smap",
    "softmax_custom_jvp",
    "stages",
    "test_util",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "version",
    "vjp",
    "vmap",
]
