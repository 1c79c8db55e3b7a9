"""What rules for compilation are told, and MLIR's contexts, under the names of `jax.extend.lowering`."""

from typing import Any

from atled.engine import attributes
from atled.engine.mlir import ir
from atled.extend.primitive import Lowering as LoweringRuleContext

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]
upstream_dialects = attributes.upstream()


class JaxIrContext(ir.Context):
    """A context of MLIR that knows the dialects of programs.

    >>> with JaxIrContext():
    ...     print(ir.Type.parse("!stablehlo.token"))
    !stablehlo.token
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        attributes.prepare(self)
