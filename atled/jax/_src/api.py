"""Names of `jax._src.api`, which are those of `jax`."""

from atled.staging.jit import jit
from atled.staging.jit import make_program as make_jaxpr
from atled.transforms.grad import grad, jvp, linearize, vjp
from atled.transforms.vmap import vmap

__all__ = ["grad", "jit", "jvp", "linearize", "make_jaxpr", "vjp", "vmap"]
