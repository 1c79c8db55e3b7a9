"""SciPy's functions on arrays that can be differentiated, batched and compiled; submodules are loaded when used."""

from atled.core import lazy

__getattr__, __dir__, __all__ = lazy.public(
    __name__, {}, "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
)
