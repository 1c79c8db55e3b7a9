# Written by scripts/stubs.
from atled.jax.interpreters import ad as ad
from atled.jax.interpreters import batching as batching
from atled.jax.interpreters import mlir as mlir
from atled.jax.interpreters import partial_eval as partial_eval
from atled.jax.interpreters import pxla as pxla
from atled.jax.interpreters import xla as xla

__all__ = [
    "ad",
    "batching",
    "mlir",
    "partial_eval",
    "pxla",
    "xla",
]
