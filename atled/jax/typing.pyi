# Written by scripts/stubs.
from atled.typing import *
from atled.typing import __all__ as __all__
