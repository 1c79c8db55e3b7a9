# Written by scripts/stubs.
from atled.scipy.ndimage import *
from atled.scipy.ndimage import __all__ as __all__
