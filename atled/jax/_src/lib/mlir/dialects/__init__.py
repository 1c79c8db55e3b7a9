"""Names of `jax._src.lib.mlir.dialects`."""

from atled.engine.mlir import chlo, func
from atled.engine.mlir import stablehlo as hlo

__all__ = ["chlo", "func", "hlo"]
