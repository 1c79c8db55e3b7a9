# Written by scripts/stubs.
from atled.sharding import *
from atled.sharding import __all__ as __all__
