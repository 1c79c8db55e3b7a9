"""Names of `jax._src.lib.mlir`."""

from atled.engine.mlir import ir

__all__ = ["ir"]
