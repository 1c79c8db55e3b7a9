# Written by scripts/stubs.
from atled.scipy.special import *
from atled.scipy.special import __all__ as __all__
