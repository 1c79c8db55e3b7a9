"""Names of `jax._src.flatten_util`."""

from atled.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]
