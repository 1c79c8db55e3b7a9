"""`atled.debug`, and the classes of effects."""

from atled.debug import *  # noqa: F403
from atled.debug import __all__ as _ours
from atled.jax.effects import DebugEffect, OrderedDebugEffect

__all__ = [*_ours, "DebugEffect", "OrderedDebugEffect"]  # pyright: ignore[reportUnsupportedDunderAll]
__dir__ = __all__.copy
