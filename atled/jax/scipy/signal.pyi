# Written by scripts/stubs.
from atled.scipy.signal import *
from atled.scipy.signal import __all__ as __all__
