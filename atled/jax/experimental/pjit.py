"""`jit` over a mesh, under its former name."""

from atled.staging.jit import jit as pjit

__all__ = ["pjit"]
__dir__ = __all__.copy
