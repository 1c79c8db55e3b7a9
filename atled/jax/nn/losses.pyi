# Written by scripts/stubs.
from atled.nn.losses import *
from atled.nn.losses import __all__ as __all__
