"""Contexts of lowering rules, and MLIR contexts, with the API of `jax.extend.lowering`."""

from typing import Any

from atled.engine import mlir_attributes
from atled.engine.mlir import ir
from atled.jax.extend.primitive import Lowering as LoweringRuleContext

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]
__dir__ = __all__.copy
upstream_dialects = mlir_attributes.upstream()


class JaxIrContext(ir.Context):
    """An MLIR context with the dialects that programs use.

    >>> with JaxIrContext():
    ...     print(ir.Type.parse("!stablehlo.token"))
    !stablehlo.token
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mlir_attributes.prepare(self)
