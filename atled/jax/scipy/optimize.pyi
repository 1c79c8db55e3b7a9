# Written by scripts/stubs.
from atled.scipy.optimize import *
from atled.scipy.optimize import __all__ as __all__
