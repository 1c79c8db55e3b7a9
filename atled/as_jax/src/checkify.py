"""Names of `jax._src.checkify`."""

from typing import Any

from atled.experimental.checkify import *  # noqa: F403
from atled.higher_order.checks import CheckError as JaxException

__all__ = ["JaxException", "Out"]
Out = Any
