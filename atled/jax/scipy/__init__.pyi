# Written by scripts/stubs.
from atled.scipy import *
from atled.scipy import __all__ as __all__
