# Written by scripts/stubs.
from atled.jax.extend.backend import *
from atled.jax.extend.backend import __all__ as __all__
