"""Names of `jax._src.flatten_util`."""

from atled.jax.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]
