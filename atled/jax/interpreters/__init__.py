"""The modules of `jax.interpreters`, which register the rules of user-defined primitives."""

from atled.core import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "ad batching mlir partial_eval pxla xla")
