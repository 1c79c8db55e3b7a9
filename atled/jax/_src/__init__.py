"""Names that libraries import from JAX's private modules, `jax._src`."""

from atled.core import lazy_imports

_MODULES = """
    api checkify compiler core dispatch distributed dtypes flatten_util interpreters lax lib state traceback_util
    tree_util util xla_bridge
"""
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, _MODULES)
