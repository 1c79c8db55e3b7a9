"""Settings: read one, change it for the process, or override it in a `with` block.

The environment sets initial values, such as `ATLED_X64=1`. The guide lists all settings.

>>> import atled
>>> atled.settings.read("x64")
False
>>> with atled.settings.override(x64=True):
...     print(atled.numpy.ones(2).dtype)
float64
"""

from atled.core.settings import override, read, update

__all__ = ["override", "read", "update"]
__dir__ = __all__.copy
