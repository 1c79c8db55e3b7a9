# Written by scripts/stubs.
from atled.scipy.fft import *
from atled.scipy.fft import __all__ as __all__
