"""Names of `jax._src.lax`."""

from atled import lax

__all__ = ["lax"]
