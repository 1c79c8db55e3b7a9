"""Names of `jax._src.lib`: what JAX takes from jaxlib."""

from atled.engine.mlir import xla_client

__all__ = ["xla_client"]
