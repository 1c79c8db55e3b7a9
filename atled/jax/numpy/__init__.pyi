# Written by scripts/stubs.
from atled.numpy import *
from atled.numpy import __all__ as __all__
