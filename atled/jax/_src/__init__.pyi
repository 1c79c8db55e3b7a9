# Written by scripts/stubs.
from atled.jax._src import api as api
from atled.jax._src import checkify as checkify
from atled.jax._src import compiler as compiler
from atled.jax._src import core as core
from atled.jax._src import dispatch as dispatch
from atled.jax._src import distributed as distributed
from atled.jax._src import dtypes as dtypes
from atled.jax._src import flatten_util as flatten_util
from atled.jax._src import interpreters as interpreters
from atled.jax._src import lax as lax
from atled.jax._src import lib as lib
from atled.jax._src import state as state
from atled.jax._src import traceback_util as traceback_util
from atled.jax._src import tree_util as tree_util
from atled.jax._src import util as util
from atled.jax._src import xla_bridge as xla_bridge

__all__ = [
    "api",
    "checkify",
    "compiler",
    "core",
    "dispatch",
    "distributed",
    "dtypes",
    "flatten_util",
    "interpreters",
    "lax",
    "lib",
    "state",
    "traceback_util",
    "tree_util",
    "util",
    "xla_bridge",
]
