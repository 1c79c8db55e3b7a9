# Written by scripts/stubs.
from atled.ops import *
from atled.ops import __all__ as __all__
