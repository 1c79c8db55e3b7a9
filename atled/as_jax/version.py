"""The version of JAX whose API is emulated."""

from atled import as_jax

__version__ = as_jax.VERSION
__version_info__ = as_jax.VERSION_INFO
