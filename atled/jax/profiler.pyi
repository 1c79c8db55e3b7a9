# Written by scripts/stubs.
from atled.profiler import *
from atled.profiler import __all__ as __all__
