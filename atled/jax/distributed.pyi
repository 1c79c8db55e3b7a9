# Written by scripts/stubs.
from atled.distributed import *
from atled.distributed import __all__ as __all__
