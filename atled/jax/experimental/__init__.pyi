# Written by scripts/stubs.
from atled.higher_order.callbacks import io_callback as io_callback
from atled.jax.experimental import array_serialization as array_serialization
from atled.jax.experimental import buffer_callback as buffer_callback
from atled.jax.experimental import checkify as checkify
from atled.jax.experimental import colocated_python as colocated_python
from atled.jax.experimental import compilation_cache as compilation_cache
from atled.jax.experimental import compute_on as compute_on
from atled.jax.experimental import control_deps as control_deps
from atled.jax.experimental import hijax as hijax
from atled.jax.experimental import jet as jet
from atled.jax.experimental import layout as layout
from atled.jax.experimental import mesh_utils as mesh_utils
from atled.jax.experimental import multihost_utils as multihost_utils
from atled.jax.experimental import ode as ode
from atled.jax.experimental import pjit as pjit
from atled.jax.experimental import profiler as profiler
from atled.jax.experimental import random as random
from atled.jax.experimental import rnn as rnn
from atled.jax.experimental import roofline as roofline
from atled.jax.experimental import scheduling_groups as scheduling_groups
from atled.jax.experimental import serialize_executable as serialize_executable
from atled.jax.experimental import shard_alike as shard_alike
from atled.jax.experimental import shard_map as shard_map
from atled.jax.experimental import source_mapper as source_mapper
from atled.jax.experimental import sparse as sparse
from atled.jax.experimental import topologies as topologies
from atled.jax.experimental import xla_metadata as xla_metadata

__all__ = [
    "array_serialization",
    "buffer_callback",
    "checkify",
    "colocated_python",
    "compilation_cache",
    "compute_on",
    "control_deps",
    "hijax",
    "io_callback",
    "jet",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "pjit",
    "profiler",
    "random",
    "rnn",
    "roofline",
    "scheduling_groups",
    "serialize_executable",
    "shard_alike",
    "shard_map",
    "source_mapper",
    "sparse",
    "topologies",
    "xla_metadata",
]
