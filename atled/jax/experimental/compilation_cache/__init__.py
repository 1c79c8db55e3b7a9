"""The module of `jax.experimental.compilation_cache`."""

from atled.core import lazy

__getattr__, __dir__, __all__ = lazy.public(__name__, {}, "compilation_cache")
