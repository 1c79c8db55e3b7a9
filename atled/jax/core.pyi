# Written by scripts/stubs.
from atled.jax.extend.core import *
from atled.jax.extend.core import __all__ as __all__
