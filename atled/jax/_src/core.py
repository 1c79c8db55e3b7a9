"""Names of `jax._src.core`."""

from atled.jax.extend.core import *  # noqa: F403
from atled.jax.extend.core import eval_jaxpr, trace_state_clean

__all__ = ["eval_jaxpr", "trace_state_clean"]
