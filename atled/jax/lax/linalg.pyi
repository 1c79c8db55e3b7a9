# Written by scripts/stubs.
from atled.lax.linalg import *
from atled.lax.linalg import __all__ as __all__
