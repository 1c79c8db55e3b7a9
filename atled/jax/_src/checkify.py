"""Names of `jax._src.checkify`."""

from typing import Any

from atled.jax.experimental.checkify import *  # noqa: F403
from atled.jax.experimental.checkify.checks import CheckError as JaxException

__all__ = ["JaxException", "Out"]
Out = Any
