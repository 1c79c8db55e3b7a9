# Written by scripts/stubs.
from atled.test_util import *
from atled.test_util import __all__ as __all__
