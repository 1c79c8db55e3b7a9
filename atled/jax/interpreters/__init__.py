"""The modules of `jax.interpreters`, in which rules of user-defined primitives are registered."""

from atled.core import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "ad batching mlir partial_eval pxla xla")
