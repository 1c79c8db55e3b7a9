# Written by scripts/stubs.
from atled.scipy.interpolate import *
from atled.scipy.interpolate import __all__ as __all__
