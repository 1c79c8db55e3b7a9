# Written by scripts/stubs.
from atled.scipy.integrate import *
from atled.scipy.integrate import __all__ as __all__
