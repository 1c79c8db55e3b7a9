# Written by scripts/stubs.
from atled.scipy.sparse import *
from atled.scipy.sparse import __all__ as __all__
