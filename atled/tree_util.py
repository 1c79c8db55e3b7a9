"""Trees under the names that JAX programs use."""

from atled.core.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    all_leaves,
    keystr,
    register_dataclass,
    register_static,
)
from atled.core.tree import Structure as PyTreeDef
from atled.core.tree import all as tree_all
from atled.core.tree import flatten as tree_flatten
from atled.core.tree import flatten_with_path as tree_flatten_with_path
from atled.core.tree import leaves as tree_leaves
from atled.core.tree import leaves_with_path as tree_leaves_with_path
from atled.core.tree import map as tree_map
from atled.core.tree import map_with_path as tree_map_with_path
from atled.core.tree import reduce as tree_reduce
from atled.core.tree import register_node as register_pytree_node
from atled.core.tree import structure as tree_structure
from atled.core.tree import transpose as tree_transpose
from atled.core.tree import unflatten as tree_unflatten


def register_pytree_node_class(cls: type) -> type:
    """Register a class with `tree_flatten` and `tree_unflatten` methods."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), lambda data, children: cls.tree_unflatten(data, children))  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(cls, flatten_with_keys, unflatten_func, flatten_func=None) -> None:
    """Register a class whose flatten function gives (key, child) pairs."""

    def flatten(x):
        if flatten_func is not None:
            return flatten_func(x)
        pairs, data = flatten_with_keys(x)
        return [child for _, child in pairs], data

    register_pytree_node(cls, flatten, unflatten_func, lambda x: [key for key, _ in flatten_with_keys(x)[0]])


__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "PyTreeDef", "SequenceKey", "all_leaves", "keystr",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_static", "tree_all", "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path",
    "tree_map", "tree_map_with_path", "tree_reduce", "tree_structure", "tree_transpose", "tree_unflatten",
]  # fmt: skip
