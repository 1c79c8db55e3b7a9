"""Pytrees, which are nested containers of leaves: the functions of `atled.core.tree`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled.core import errors
from atled.core.tree import (
    Partial,
    TreeDef,
    all,
    broadcast,
    flatten,
    flatten_with_path,
    leaves,
    leaves_with_path,
    map,
    map_with_path,
    reduce,
    structure,
    transpose,
    unflatten,
)
from atled.core.tree_registry import register_dataclass, register_node, register_static, static, struct


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = ...,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """Reduce the leaves with an associative function, pairwise in a balanced tree rather than one after the other.

    `identity` is the result for a pytree without leaves.

    >>> reduce_associative(lambda a, b: f"({a}{b})", ["a", "b", ["c", "d"]])
    '((ab)(cd))'
    """
    leaf_list = leaves(tree, is_leaf)
    if not leaf_list:
        if identity is ...:
            raise TypeError(
                errors.explained("tree.reduce_associative: a tree without leaves needs `identity`.", "identity=0.")
            )
        return identity

    def combined(items: list[Any]) -> Any:
        middle = len(items) // 2
        return operation(combined(items[:middle]), combined(items[middle:])) if middle else items[0]

    return combined(leaf_list)


__all__ = [
    "Partial", "TreeDef", "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "register_dataclass", "register_node", "register_static", "static",
    "struct", "structure", "transpose", "unflatten",
]  # fmt: skip
__dir__ = __all__.copy
