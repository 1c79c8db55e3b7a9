# Written by scripts/stubs.
from atled.scipy.linalg import *
from atled.scipy.linalg import __all__ as __all__
