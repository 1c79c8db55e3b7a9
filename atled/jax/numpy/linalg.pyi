# Written by scripts/stubs.
from atled.numpy.linalg import *
from atled.numpy.linalg import __all__ as __all__
