# Written by scripts/stubs.
from atled.nn import *
from atled.nn import __all__ as __all__
