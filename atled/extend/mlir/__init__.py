"""MLIR's bindings, under the names of `jax.extend.mlir`."""

from atled.engine.mlir import ir
from atled.extend.mlir import dialects

__all__ = ["dialects", "ir"]
