# Written by scripts/stubs.
from atled.export import *
from atled.export import __all__ as __all__
