"""MLIR's bindings, for those who write rules for primitives of their own. Nothing else here needs the dialects."""

from jaxlib import _jax as xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo

__all__ = ["chlo", "func", "ir", "sdy", "stablehlo", "xla_client"]
