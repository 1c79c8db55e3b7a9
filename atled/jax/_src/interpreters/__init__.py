"""Names of `jax._src.interpreters`, which are those of `jax.interpreters`."""

from atled.jax.interpreters import ad, batching, mlir, partial_eval, xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "xla"]
