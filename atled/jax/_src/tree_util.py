"""Names of `jax._src.tree_util`."""

from typing import Any

from atled.core import tree
from atled.jax.tree_util import *  # noqa: F403

__all__ = ["BuiltInKeyEntry"]
BuiltInKeyEntry = Any


class _Registry:
    """The pytree registry: `kind in registry` says whether a class is a pytree node."""

    def __contains__(self, kind: type) -> bool:
        return tree.is_node(kind)


_registry = _Registry()
