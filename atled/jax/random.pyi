# Written by scripts/stubs.
from atled.random import *
from atled.random import __all__ as __all__
