"""Names of `jax.interpreters.ad`."""

from atled.core.op import instantiate as instantiate_zeros
from atled.core.types import Linear as UndefinedPrimal
from atled.core.types import Zero

__all__ = ["UndefinedPrimal", "Zero", "instantiate_zeros", "is_undefined_primal"]


def is_undefined_primal(x: object) -> bool:
    """Whether a value stands for a linear operand."""
    return isinstance(x, UndefinedPrimal)
