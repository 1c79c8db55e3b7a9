"""MLIR's dialects, with the API of `jax.extend.mlir.dialects`."""

from atled.engine.mlir import chlo, func, sdy, stablehlo

__all__ = ["chlo", "func", "sdy", "stablehlo"]
