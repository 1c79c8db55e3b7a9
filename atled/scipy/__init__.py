"""SciPy's functions on arrays that can be differentiated, batched and compiled; submodules are loaded when used."""

from atled.core import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports.public(
    __name__, {}, "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
)
