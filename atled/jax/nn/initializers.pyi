# Written by scripts/stubs.
from atled.nn.initializers import *
from atled.nn.initializers import __all__ as __all__
