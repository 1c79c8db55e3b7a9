"""What rules for compilation are told, under the name of `jax.extend.lowering`."""

from atled.extend.primitive import Lowering as LoweringRuleContext

__all__ = ["LoweringRuleContext"]
