"""`jit` over a mesh, under its former name."""

from atled.higher_order.jit import jit as pjit

__all__ = ["pjit"]
