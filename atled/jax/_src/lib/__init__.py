"""Names of `jax._src.lib`: the names that JAX imports from jaxlib."""

from atled.engine.mlir import xla_client

__all__ = ["xla_client"]
