# Written by scripts/stubs.
from atled.scipy.spatial import *
from atled.scipy.spatial import __all__ as __all__
