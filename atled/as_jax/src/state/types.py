"""Names of `jax._src.state.types`."""

from atled.ref import AbstractRef

__all__ = ["AbstractRef"]
