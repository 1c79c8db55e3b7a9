"""What JAX calls experimental, under the names that programs written for it use."""

import importlib
from typing import Any

from atled.higher_order.callbacks import io_callback

__all__ = ["io_callback"]
_MODULES = ("checkify", "layout", "mesh_utils", "multihost_utils", "ode", "pjit", "sparse")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"atled.experimental.{name}")
    raise AttributeError(f"module 'atled.experimental' has no attribute {name!r}")
