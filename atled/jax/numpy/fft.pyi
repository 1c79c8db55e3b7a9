# Written by scripts/stubs.
from atled.numpy.fft import *
from atled.numpy.fft import __all__ as __all__
