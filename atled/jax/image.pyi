# Written by scripts/stubs.
from atled.image import *
from atled.image import __all__ as __all__
