"""The version of JAX whose API is emulated."""

from atled import jax

__version__ = jax.__version__
__version_info__ = jax.__version_info__
