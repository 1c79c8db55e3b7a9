"""Names of `jax._src.state.types`."""

from atled.jax.ref import AbstractRef

__all__ = ["AbstractRef"]
