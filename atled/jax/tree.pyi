# Written by scripts/stubs.
from atled.tree import *
from atled.tree import __all__ as __all__
