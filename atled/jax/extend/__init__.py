"""The modules of `jax.extend`."""

from atled.core import lazy_imports

_MODULES = "backend core ifrt_programs linear_util lowering mlir random sharding source_info_util xla"
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, _MODULES)
