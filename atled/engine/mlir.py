"""MLIR's bindings, for lowering rules of user-defined primitives. Nothing else in atled uses these dialect classes."""

import jaxlib._hlo as hlo
import jaxlib._jax as xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo

__all__ = ["chlo", "func", "hlo", "ir", "sdy", "stablehlo", "xla_client"]
