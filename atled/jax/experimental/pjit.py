"""`pjit`, JAX's former name of `jit` with shardings."""

from atled.staging.jit import jit as pjit

__all__ = ["pjit"]
__dir__ = __all__.copy
