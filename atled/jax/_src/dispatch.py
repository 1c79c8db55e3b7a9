"""Names of `jax._src.dispatch`."""

from atled.higher_order.callbacks import effects_barrier as wait_for_tokens
from atled.jax.interpreters.xla import apply_primitive

__all__ = ["apply_primitive", "wait_for_tokens"]
