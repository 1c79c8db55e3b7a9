# Written by scripts/stubs.
from atled.jax.example_libraries import optimizers as optimizers
from atled.jax.example_libraries import stax as stax

__all__ = [
    "optimizers",
    "stax",
]
