"""Two small libraries that JAX's examples use: networks built from functions (`stax`), and optimizers.

New programs should use `atled.nn` and `atled.optim`.
"""

from atled.core import lazy

__getattr__, __dir__, __all__ = lazy.public(__name__, {}, "optimizers stax")
