# Written by scripts/stubs.
__version__: str
from atled import __version__ as __version__
from atled import checkpoints as checkpoints
from atled import data as data
from atled import debug as debug
from atled import distributed as distributed
from atled import errors as errors
from atled import export as export
from atled import ffi as ffi
from atled import generate as generate
from atled import image as image
from atled import inspect as inspect
from atled import jax as jax
from atled import lax as lax
from atled import metrics as metrics
from atled import models as models
from atled import nn as nn
from atled import numpy as numpy
from atled import ops as ops
from atled import optim as optim
from atled import profiler as profiler
from atled import random as random
from atled import scipy as scipy
from atled import settings as settings
from atled import sharding as sharding
from atled import test_util as test_util
from atled import text as text
from atled import topologies as topologies
from atled import train as train
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
from atled.higher_order.callbacks import io_callback as io_callback
from atled.higher_order.callbacks import pure_callback as pure_callback
from atled.higher_order.custom_derivatives import custom_jvp as custom_jvp
from atled.higher_order.custom_derivatives import custom_vjp as custom_vjp
from atled.higher_order.remat import checkpoint_policies as checkpoint_policies
from atled.higher_order.remat import remat as remat
from atled.higher_order.shard_map import shard_map as shard_map
from atled.sharding import P as P
from atled.sharding import reshard as reshard
from atled.staging.compile_time_eval import ensure_compile_time_eval as ensure_compile_time_eval
from atled.staging.device_put import block_until_ready as block_until_ready
from atled.staging.device_put import device_get as device_get
from atled.staging.device_put import device_put as device_put
from atled.staging.find_nans import find_nans as find_nans
from atled.staging.jit import eval_shape as eval_shape
from atled.staging.jit import jit as jit
from atled.staging.jit import make_program as make_program
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
    "ShapeDtypeStruct",
    "Shard",
    "__version__",
    "block_until_ready",
    "checkpoint_policies",
    "checkpoints",
    "clear_caches",
    "custom_jvp",
    "custom_vjp",
    "data",
    "debug",
    "debug_infs",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "effects_barrier",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "export",
    "ffi",
    "find_nans",
    "float0",
    "generate",
    "grad",
    "hessian",
    "image",
    "inspect",
    "io_callback",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "make_program",
    "metrics",
    "models",
    "named_scope",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "ops",
    "optim",
    "pmap",
    "process_count",
    "process_index",
    "profiler",
    "pure_callback",
    "random",
    "remat",
    "reshard",
    "scipy",
    "set_mesh",
    "settings",
    "shard_map",
    "sharding",
    "test_util",
    "text",
    "topologies",
    "train",
    "tree",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]
