"""The settings: read one, change it for the process, or override it in a `with` block.

Each is also read from the environment, `ATLED_X64=1`. They are listed in the guide, with what they do.

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
