# Written by scripts/stubs.
from atled.jax.extend import backend as backend
from atled.jax.extend import core as core
from atled.jax.extend import ifrt_programs as ifrt_programs
from atled.jax.extend import linear_util as linear_util
from atled.jax.extend import lowering as lowering
from atled.jax.extend import mlir as mlir
from atled.jax.extend import random as random
from atled.jax.extend import sharding as sharding
from atled.jax.extend import source_info_util as source_info_util
from atled.jax.extend import xla as xla

__all__ = [
    "backend",
    "core",
    "ifrt_programs",
    "linear_util",
    "lowering",
    "mlir",
    "random",
    "sharding",
    "source_info_util",
    "xla",
]
