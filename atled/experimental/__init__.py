"""The modules of `jax.experimental`."""

import importlib
from typing import Any

from atled.higher_order.callbacks import io_callback

__all__ = ["io_callback"]
_MODULES = (
    "buffer_callback", "checkify", "compute_on", "control_deps", "jet", "layout", "mesh_utils", "multihost_utils",
    "ode", "pjit", "profiler", "random", "rnn", "roofline", "scheduling_groups", "serialize_executable", "shard_alike",
    "shard_map", "source_mapper", "sparse", "topologies", "xla_metadata",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"atled.experimental.{name}")
    raise AttributeError(f"module 'atled.experimental' has no attribute {name!r}")
