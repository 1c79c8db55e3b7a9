"""Two small libraries that JAX's examples use: networks built from functions (`stax`), and optimizers.

New programs should use `atled.nn` and `atled.optim`.
"""

from atled.core import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "optimizers stax")
