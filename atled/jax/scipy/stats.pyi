# Written by scripts/stubs.
from atled.scipy.stats import *
from atled.scipy.stats import __all__ as __all__
