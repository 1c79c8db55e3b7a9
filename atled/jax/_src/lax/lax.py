"""Names of `jax._src.lax.lax`, which are those of `jax.lax`."""

from atled.lax import *  # noqa: F403
