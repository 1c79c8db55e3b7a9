# Written by scripts/stubs.
from atled.scipy.cluster import *
from atled.scipy.cluster import __all__ as __all__
