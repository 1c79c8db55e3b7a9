"""The module of `jax.experimental.compilation_cache`."""

from atled.core import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "compilation_cache")
