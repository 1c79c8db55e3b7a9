"""`atled.tree`, with the API of `jax.tree_util`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from atled.core import errors
from atled.core import tree as _tree
from atled.core import tree_registry as _nodes
from atled.core.array import describe
from atled.core.tree import Partial, all_leaves, keystr
from atled.core.tree import TreeDef as PyTreeDef
from atled.core.tree import all as tree_all
from atled.core.tree import broadcast as tree_broadcast
from atled.core.tree import flatten as tree_flatten
from atled.core.tree import flatten_with_path as tree_flatten_with_path
from atled.core.tree import leaves as tree_leaves
from atled.core.tree import leaves_with_path as tree_leaves_with_path
from atled.core.tree import map as tree_map
from atled.core.tree import map_with_path as tree_map_with_path
from atled.core.tree import reduce as tree_reduce
from atled.core.tree import structure as tree_structure
from atled.core.tree import transpose as tree_transpose
from atled.core.tree import unflatten as tree_unflatten
from atled.core.tree_registry import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    register_dataclass,
    register_static,
)
from atled.tree import reduce_associative as tree_reduce_associative

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]
_Class = TypeVar("_Class", bound=type)


# -- registration of node classes -------------------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Register a class as a pytree node; `flatten_with_keys_func` returns (key, child) pairs and the node's data.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, xs: Pair(*xs))
    >>> tree_leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    keys = flatten_with_keys_func and (lambda x: [key for key, _ in flatten_with_keys_func(x)[0]])
    _nodes.register_node(nodetype, flatten_func, unflatten_func, keys)


def register_pytree_node_class(cls: _Class) -> _Class:
    """Register a class that has `tree_flatten` and `tree_unflatten` methods as a pytree node.

    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x): self.x = x
    ...     def tree_flatten(self): return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children): return cls(*children)
    >>> tree_map(lambda x: -x, Box(1)).x
    -1
    """
    named: Any = cls
    register_pytree_node(named, lambda x: x.tree_flatten(), lambda data, children: named.tree_unflatten(data, children))
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Register a class as a pytree node, with a flatten function that returns (key, child) pairs.

    >>> class Cell:
    ...     def __init__(self, x): self.x = x
    >>> register_pytree_with_keys(Cell, lambda c: ([(GetAttrKey("x"), c.x)], None), lambda _, xs: Cell(*xs))
    >>> [keystr(path) for path, _ in tree_leaves_with_path([Cell(1)])]
    ['[0].x']
    """

    def flatten(x: Any) -> tuple[Any, Any]:
        pairs, data = flatten_with_keys(x)
        return [child for _, child in pairs], data

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Register a class with the methods `tree_flatten_with_keys` and `tree_unflatten`; `tree_flatten` is optional.

    >>> @register_pytree_with_keys_class
    ... class Cell:
    ...     def __init__(self, x): self.x = x
    ...     def tree_flatten_with_keys(self): return ((GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children): return cls(*children)
    >>> [(keystr(path), x) for path, x in tree_leaves_with_path(Cell(3))]
    [('.x', 3)]
    """
    named: Any = cls
    plain = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    unflatten = lambda data, children: named.tree_unflatten(data, children)  # noqa: E731
    register_pytree_with_keys(named, lambda x: x.tree_flatten_with_keys(), unflatten, plain)
    return cls


def is_tree_node(typ: Any) -> bool:
    """Whether instances of a class are pytree nodes.

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    return _tree.is_node(typ)


# -- flattening by one level ------------------------------------------------------------------------------------------


def _one_level(tree: Any) -> tuple[Any, Any, Any] | None:
    node = _tree.flatten_one_level(tree)
    if node is None:
        return None
    children, data, keys = node
    return children, type(tree) if isinstance(tree, tuple) and hasattr(tree, "_fields") else data, keys


def _node(name: str, tree: Any) -> tuple[Any, Any, Any]:
    node = _one_level(tree)
    if node is None:
        raise ValueError(errors.explained(f"{name}: a node is needed, such as a list or dict; got {describe(tree)}."))
    return node


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The children and the static data of a pytree node.

    >>> flatten_one_level({"b": 1, "a": [2]})
    ([[2], 1], ('a', 'b'))
    """
    children, data, _ = _node("flatten_one_level", tree)
    return children, data


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[Any], Any]:
    """The (key, child) pairs and the static data of a pytree node.

    >>> flatten_one_level_with_keys([5])
    ([(SequenceKey(idx=0), 5)], None)
    """
    children, data, keys = _node("flatten_one_level_with_keys", tree)
    return list(zip(keys, children, strict=False)), data


# -- structures -------------------------------------------------------------------------------------------------------


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The tree structures of the children of a node.

    >>> treedef_children(tree_structure([(1, 2), 3]))
    [TreeDef((*, *)), TreeDef(*)]
    """
    return list(treedef.children)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a tree structure has no children: a leaf, or a node without children.

    >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure([1]))
    (True, False)
    """
    return not treedef.children


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The tree structure of a tuple whose children have these structures.

    >>> treedef_tuple([tree_structure(1), tree_structure([2])])
    TreeDef((*, [*]))
    """
    return _tree.structure_of(tuple, None, treedefs)


class _Registry:
    """The global pytree registry, with the methods of JAX's class."""

    def flatten(self, tree: Any, leaf_predicate: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
        return tree_flatten(tree, leaf_predicate)

    def flatten_one_level(self, tree: Any) -> tuple[Any, Any] | None:
        node = _one_level(tree)
        return None if node is None else node[:2]

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Any, Any] | None:
        return None if _one_level(tree) is None else flatten_one_level_with_keys(tree)

    def flatten_with_path(
        self, tree: Any, leaf_predicate: Callable[..., bool] | None = None
    ) -> tuple[list[Any], PyTreeDef]:
        return tree_flatten_with_path(tree, leaf_predicate, is_leaf_takes_path=True)

    def is_node(self, typ: Any) -> bool:
        return is_tree_node(typ)

    def register_node(self, type: Any, to_iterable: Any, from_iterable: Any, to_iterable_with_keys: Any = None) -> None:
        register_pytree_node(type, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(self, type: Any, data_fields: Any, meta_fields: Any) -> None:
        register_dataclass(type, data_fields, meta_fields)


default_registry = _Registry()

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "default_registry", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
    "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip
__dir__ = __all__.copy
