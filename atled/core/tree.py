"""Pytrees: nested containers of leaves, with `flatten` and `unflatten`.

Nodes are tuples, lists, dicts (by sorted key), `None` (a node without children), named tuples, OrderedDict,
defaultdict and registered classes (`tree_registry.py`). `flatten` returns the leaves and a `TreeDef`, a hashable
description of the tree without them. `tree_codegen.py` compiles frequently used structures to straight-line Python.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from atled.core import errors, tree_codegen
from atled.core.cache_keys import exact
from atled.core.tree_registry import FieldKey, GetAttrKey, node_of, nodes, register_node


class TreeDef:
    """The structure of a tree, without its leaves. Compared and hashed by exact value: the keys 1 and True differ.

    >>> structure({"a": [1, 2]}) == structure({"a": [3, 4]})
    True
    """

    __slots__ = (
        "__weakref__", "_hash", "_kinds", "build", "changes", "children", "is_one", "is_plain",
        "key", "kind", "meta", "num_leaves", "take", "uses",
    )  # fmt: skip

    def __init__(self, kind: Any, meta: Any, key: Any, children: tuple[TreeDef, ...], changes: bool = False) -> None:
        self.kind = kind  # the node's class; None for a leaf
        self.meta = meta
        self.key = key  # the exact cache key of `meta`, used in comparisons
        self.changes = changes  # whether `meta` is mutable, such as a dict or list
        self.is_one = False  # whether it is interned: no other object is equal to it
        self.is_plain = False  # whether it is interned and its data are numbers and strings
        self.children = children
        self.num_leaves = sum([c.num_leaves for c in children]) if kind is not None else 1
        self._hash: int | None = None
        self._kinds: tuple[Any, ...] | None = None
        self.uses = 0  # the number of uses before it was compiled
        self.take: Any = None  # the compiled `flatten_up_to`
        self.build: Any = None  # the compiled `unflatten`

    def used(self) -> None:
        """Count a use, and compile the structure at the 32nd."""
        self.uses = uses = self.uses + 1
        if uses == _MANY and self.num_leaves <= _COMPILED:
            self.take, self.build = tree_codegen.flattener(self), tree_codegen.unflattener(self)

    def data(self) -> Any:
        """The data to rebuild the node from: a copy if they are mutable, because a structure must not change."""
        return _copied(self.meta) if self.changes else self.meta

    def has_data(self, meta: Any) -> bool:
        """Whether a node's data equal those of this structure."""
        mine = self.meta
        if self.is_one:  # the data of interned structures are immutable
            if meta is mine:
                return True
            is_alike = type(meta) is type(mine) is tuple and len(meta) == len(mine)
            if is_alike and builtins.all(builtins.map(operator.is_, meta, mine)):
                return True
        return (meta if meta is None else exact(meta)) == self.key

    def __hash__(self) -> int:
        if self._hash is None:
            waiting: list[TreeDef] = [self]  # an explicit stack: trees may be deeper than Python's recursion limit
            while waiting:
                rest = [c for c in waiting[-1].children if c._hash is None]
                waiting.extend(rest)
                if not rest:
                    done = waiting.pop()
                    done._hash = hash((done.kind, done.key, done.children))
        return self._hash  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        waiting: list[tuple[Any, Any]] = [(self, other)]
        while waiting:
            a, b = waiting.pop()
            if a is b:
                continue
            if not isinstance(b, TreeDef) or a.kind is not b.kind or a.num_leaves != b.num_leaves:
                return False
            if a._hash != b._hash and a._hash is not None and b._hash is not None:
                return False
            if len(a.children) != len(b.children) or not a.key == b.key:
                return False
            waiting.extend(zip(a.children, b.children))
        return True

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The declared kind of each leaf, from the outermost `FieldKey` of its path, or None."""
        if self._kinds is None:
            if self._declares():
                paths = [p for p, _ in leaves_with_path(self.unflatten([_Star()] * self.num_leaves))]
                self._kinds = tuple([declared(p) for p in paths])
            else:
                self._kinds = (None,) * self.num_leaves
        return self._kinds

    def _declares(self) -> bool:
        waiting: list[TreeDef] = [self]
        while waiting:
            s = waiting.pop()
            if s.kind is not None and nodes[s.kind].code is not None:
                return True
            waiting.extend(s.children)
        return False

    @property
    def num_nodes(self) -> int:
        return 1 + sum(c.num_nodes for c in self.children)

    def node_data(self) -> tuple[Any, Any] | None:
        """The class of the node and its data, or None for a leaf."""
        return None if self.kind is None else (self.kind, self.data())

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at the positions of this structure's leaves."""
        if self.take is not None:
            with contextlib.suppress(*tree_codegen.MISMATCHES):
                return self.take(tree)
        self.used()
        subtrees: list[Any] = []
        try:
            if _take(self, tree, subtrees):
                return subtrees
        except RecursionError:
            pass
        subtrees.clear()  # walk again with paths, to report where the trees differ
        waiting: list[Any] = [(self, tree, ())]  # an explicit stack: trees may be deeper than Python's recursion limit
        while waiting:
            structure, part, path = waiting.pop()
            if structure.kind is None:
                subtrees.append(part)
            else:
                waiting.extend(_match(structure, part, path)[::-1])
        return subtrees

    def compose(self, inner: TreeDef) -> TreeDef:
        """This structure with `inner` in place of each leaf."""
        if self.kind is None:
            return inner
        return _structure(self.kind, self.meta, tuple([c.compose(inner) for c in self.children]))

    def __repr__(self) -> str:
        return f"TreeDef({unflatten(self, [_Star()] * self.num_leaves)!r})"

    def __reduce__(self) -> Any:
        return (_leaf, ()) if self.kind is None else (_structure, (self.kind, self.meta, self.children))


class _Star:
    def __repr__(self) -> str:
        return "*"


LEAF = TreeDef(None, None, None, ())
LEAF.is_one = LEAF.is_plain = True


def _leaf() -> TreeDef:
    return LEAF


_interned: dict[Any, TreeDef] = {}
_interned_while_used: weakref.WeakValueDictionary[Any, TreeDef] = weakref.WeakValueDictionary()
# A faster index of the same structures, by the identities of their data and children. Identities are valid keys because
# the structures keep these objects alive, and only immutable data are interned.
_by_identity: dict[Any, TreeDef] = {}
_by_identity_while_used: weakref.WeakValueDictionary[Any, TreeDef] = weakref.WeakValueDictionary()


def _structure(kind: Any, meta: Any, children: tuple[TreeDef, ...]) -> TreeDef:
    """The structure of a node. Equal structures are one object if their data are interchangeable."""
    if type(meta) is tuple:
        identity = (kind, len(children), *builtins.map(id, meta), *builtins.map(id, children))
    else:
        identity = (kind, id(meta), None, *builtins.map(id, children))
    interned = _by_identity.get(identity) or _by_identity_while_used.get(identity)
    if interned is not None:
        return interned
    key = meta if meta is None else exact(meta)
    table: Any = _interned if key is meta else _table(meta)
    if table is not None:
        name = (kind, key, *builtins.map(id, children))  # unique if its children are interned, too
        interned = table.get(name)
        if interned is not None:
            return interned
        if table is _interned and not builtins.all([c.is_plain for c in children]):
            table = _interned_while_used
            interned = table.get(name)
            if interned is not None:
                return interned
        new = TreeDef(kind, meta, key, children)
        if builtins.all([c.is_one for c in children]):
            if len(_interned) > 20_000:
                _interned.clear()
                _by_identity.clear()
            new.is_one = True
            new.is_plain = table is _interned
            new = table.setdefault(name, new)
            if new.meta is meta:  # `new` keeps alive the objects whose ids are in `identity`
                by_identity: Any = _by_identity if new.is_plain else _by_identity_while_used
                by_identity[identity] = new
        return new
    try:
        hash(meta)
    except TypeError:  # mutable data, such as a dict or list: the structure holds a copy
        return TreeDef(kind, _copied(meta), key, children, True)
    return TreeDef(kind, meta, key, children)  # equal structures may have data that are not interchangeable


_PLAIN = {int, float, complex, bool, str, bytes, type(None)}


def _table(meta: Any) -> Any:
    """The intern table for a node's data: strong for plain values, weak for objects without `__eq__`, else None."""
    if type(meta) is not tuple:
        return _interned if type(meta) in _PLAIN else _interned_while_used if _is_itself(meta) else None
    table: Any = _interned
    for v in meta:
        if type(v) not in _PLAIN:
            inner = _table(v)
            if inner is None:
                return None
            if inner is not _interned:
                table = inner
    return table


def _is_itself(x: Any) -> bool:
    return type(x).__eq__ is object.__eq__ and type(x).__hash__ is not None


def _copied(meta: Any) -> Any:
    """A copy of a node's data, with its own dicts, lists, sets and arrays."""
    if isinstance(meta, (dict, np.ndarray, set, bytearray)):
        copied: Any = meta.copy()
        if isinstance(meta, dict):
            for k, v in meta.items():
                copied[k] = _copied(v)
        return copied
    if type(meta) in (builtins.list, tuple):
        return type(meta)([_copied(v) for v in meta])
    if hasattr(type(meta), "__dataclass_fields__") and type(meta).__hash__ is None:
        copied = copy.copy(meta)
        for name in type(meta).__dataclass_fields__:
            if hasattr(meta, name):
                object.__setattr__(copied, name, _copied(getattr(meta, name)))
        return copied
    return meta


def _walk(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeDef:
    """The structure of a tree; its leaves are appended to `leaves`. `is_leaf` is not called on the tree itself."""
    kind = type(tree)
    node = nodes.get(kind) or node_of(kind)
    if node is None:
        leaves.append(tree)
        return LEAF
    children, meta = node.flatten(tree)
    parts = []
    for c in children:
        if (is_leaf is None or not is_leaf(c)) and (type(c) in nodes or isinstance(c, tuple)):
            parts.append(_walk(c, leaves, is_leaf))
        else:  # most children are leaves and need no call
            leaves.append(c)
            parts.append(LEAF)
    return _structure(kind, meta, tuple(parts))


def _walk_deep(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeDef:
    """Like `_walk`, for trees deeper than Python's recursion limit."""
    stack: list[tuple[Any, Any, Any, list[TreeDef]]] = [(tuple, None, iter((tree,)), [])]
    while True:
        kind, meta, rest, done = stack[-1]
        for x in rest:
            node = None if is_leaf is not None and is_leaf(x) else node_of(type(x))
            if node is not None:
                children, inner = node.flatten(x)
                stack.append((type(x), inner, iter(children), []))
                break
            leaves.append(x)
            done.append(LEAF)
        else:
            stack.pop()
            if not stack:
                return done[0]
            stack[-1][3].append(_structure(kind, meta, tuple(done)))


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, and its structure.

    >>> flatten({"b": [1, 2], "a": None})
    ([1, 2], TreeDef({'a': None, 'b': [*, *]}))
    """
    if is_leaf is not None:
        return ([tree], LEAF) if is_leaf(tree) else _flattened(tree, is_leaf)
    kind = type(tree)
    name = (kind, *tree) if kind is dict else (kind, len(tree)) if kind is tuple or kind is builtins.list else kind
    recent = _recent.get(name)
    guess = None if recent is None else recent()
    if guess is not None and guess.take is not None:
        try:
            flat = guess.take(tree)
        except tree_codegen.MISMATCHES:
            pass
        else:
            for kind in builtins.set(builtins.map(type, flat)):
                if kind in nodes or issubclass(kind, tuple):  # a node where the structure has a leaf
                    break
            else:
                return flat, guess
    flat, structure = _flattened(tree, None)
    if structure is guess:
        structure.used()
    elif structure.is_one and structure is not LEAF and (structure.is_plain or type(tree) is not dict):
        if len(_recent) > 4000:
            _recent.clear()
        _recent[name] = weakref.ref(structure)
    return flat, structure


# Recent structures, by properties of a tree that are cheap to read: its class, and its length or its keys. Trees with
# keys other than numbers and strings are left out.
_recent: dict[Any, weakref.ref[TreeDef]] = {}
_MANY = 32  # a structure is compiled when it is used this often
_COMPILED = 10_000  # structures with more leaves are not compiled


def _flattened(tree: Any, is_leaf: Callable[[Any], bool] | None) -> tuple[builtins.list[Any], TreeDef]:
    flat: list[Any] = []
    try:
        return flat, _walk(tree, flat, is_leaf)
    except RecursionError:
        flat.clear()
        return flat, _walk_deep(tree, flat, is_leaf)


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves: the inverse of `flatten`.

    >>> unflatten(structure({"a": [0, 0]}), [1, 2])
    {'a': [1, 2]}
    """
    structure = treedef
    leaves = leaves if isinstance(leaves, builtins.list) else builtins.list(leaves)
    if len(leaves) != structure.num_leaves:
        raise ValueError(
            f"tree: the structure has {structure.num_leaves} leaves; got {len(leaves)}, for {structure!r}."
            if structure.num_leaves < 50
            else f"tree: the structure has {structure.num_leaves} leaves; got {len(leaves)}."
        )
    if structure.build is not None:
        return structure.build(leaves)
    structure.used()
    try:
        return _build(structure, iter(leaves))
    except RecursionError:
        return _build_deep(structure, iter(leaves))


def _build_deep(structure: TreeDef, leaves: Any) -> Any:
    """Like `_build`, for trees deeper than Python's recursion limit."""
    stack: list[tuple[TreeDef, list[Any]]] = [(structure, [])]
    while True:
        s, done = stack[-1]
        if s.kind is not None and len(done) < len(s.children):
            stack.append((s.children[len(done)], []))
            continue
        subtree = next(leaves) if s.kind is None else nodes[s.kind].unflatten(s.data(), done)
        stack.pop()
        if not stack:
            return subtree
        stack[-1][1].append(subtree)


def _build(structure: TreeDef, leaves: Any) -> Any:
    if structure.kind is None:
        return next(leaves)
    children = [next(leaves) if c.kind is None else _build(c, leaves) for c in structure.children]
    meta = _copied(structure.meta) if structure.changes else structure.meta
    return nodes[structure.kind].unflatten(meta, children)


class TreeError(ValueError):
    """Two trees have different structures; the message names the path where they differ.

    >>> from atled import tree
    >>> try:
    ...     tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 1})
    ... except TreeError as error:
    ...     print(str(error).splitlines()[0])
    tree: structures differ at the root: expected ('a', 'b'), got ('a',).
    """


def _take(structure: TreeDef, tree: Any, found: list[Any]) -> bool:
    """Append the subtrees at the positions of the structure's leaves to `found`; returns whether the tree matches."""
    if structure.kind is None:
        found.append(tree)
        return True
    if type(tree) is not structure.kind:
        return False
    children, meta = nodes[structure.kind].flatten(tree)
    children = tuple(children)
    if len(children) != len(structure.children) or not structure.has_data(meta):
        return False
    for s, child in zip(structure.children, children):
        if s.kind is None:
            found.append(child)
        elif not _take(s, child, found):
            return False
    return True


def _match(structure: TreeDef, tree: Any, path: tuple[Any, ...]) -> list[tuple[TreeDef, Any, tuple[Any, ...]]]:
    """The children of a node, each with its structure and path; raises if the node does not match."""
    if type(tree) is not structure.kind:
        where = keystr(path) or "the root"
        raise TreeError(
            f"tree: structures differ at {where}: expected {structure.kind.__name__}, got {type(tree).__name__}."
        )
    node = nodes[structure.kind]
    children, meta = node.flatten(tree)
    children = builtins.list(children)
    if not structure.has_data(meta):
        where = keystr(path) or "the root"
        if node.code is not None:
            step, want, got = node.code.difference(structure, TreeDef(structure.kind, meta, None, ()))
            raise TreeError(f"tree: structures differ at {keystr(path)}{step}: expected {want}, got {got}.")
        raise TreeError(f"tree: structures differ at {where}: expected {structure.meta!r}, got {meta!r}.")
    if len(children) != len(structure.children):
        where = keystr(path) or "the root"
        raise TreeError(
            f"tree: structures differ at {where}: expected {len(structure.children)} children, got {len(children)}."
        )
    keys = node.keys(tree, len(children))
    return [(s, t, (*path, key)) for key, s, t in zip(keys, structure.children, children, strict=False)]


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree, in order.

    >>> leaves({"b": [1, 2], "a": 3})
    [3, 1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """The structure of a tree.

    >>> structure({"a": [1, 2]})
    TreeDef({'a': [*, *]})
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Apply `f` to the leaves of a tree, and to the corresponding subtrees of the other trees.

    >>> map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    flat, shape = flatten(tree, is_leaf)
    try:
        others = [shape.flatten_up_to(r) for r in rest]
    except TreeError as error:
        way_out = "trees with the same keys, lengths and classes; tree.structure(x) shows them."
        raise TreeError(errors.explained(str(error), way_out)) from None
    return unflatten(shape, [f(*xs) for xs in zip(flat, *others, strict=True)])


def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = ..., is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Fold the leaves of a tree with a function of two arguments.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    flat = leaves(tree, is_leaf)
    return functools.reduce(function, flat) if initializer is ... else functools.reduce(function, flat, initializer)


def all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every leaf is true.

    >>> all({"a": True, "b": [1, 0]})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: Any) -> Any:
    """Transpose a tree of trees: an outer tree of inner trees becomes an inner tree of outer trees.

    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    outer, inner = outer_treedef, inner_treedef
    subtrees = outer.flatten_up_to(pytree_to_transpose)
    if inner is None:
        inner = structure(subtrees[0])
    columns = [inner.flatten_up_to(t) for t in subtrees]
    return inner.unflatten([outer.unflatten(row) for row in zip(*columns, strict=True)])


def _walk_path(
    tree: Any, path: tuple[Any, ...], found: list[Any], is_leaf: Callable[[tuple[Any, ...], Any], bool] | None
) -> TreeDef:
    node = None if is_leaf is not None and is_leaf(path, tree) else node_of(type(tree))
    if node is None:
        found.append((path, tree))
        return LEAF
    children, meta = node.flatten(tree)
    children = builtins.list(children)
    parts = []
    for key, child in zip(node.keys(tree, len(children)), children, strict=True):  # one Python frame per tree level
        parts.append(_walk_path(child, (*path, key), found, is_leaf))
    return _structure(type(tree), meta, tuple(parts))


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Pairs of a path and a leaf. With `is_leaf_takes_path`, `is_leaf` is called as `is_leaf(path, node)`.

    >>> [(keystr(p), x) for p, x in leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[Any], TreeDef]:
    """A list of pairs (path, leaf), and the structure.

    >>> [(keystr(path), x) for path, x in flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    pairs: list[Any] = []
    test = is_leaf if is_leaf_takes_path or is_leaf is None else lambda path, x: is_leaf(x)
    return pairs, _walk_path(tree, (), pairs, test)


def map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:  # fmt: skip
    """Like `map`, with the path of each leaf as the first argument.

    >>> map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": [1, 2]})
    {'a': ["['a'][0]=1", "['a'][1]=2"]}
    """
    pairs, shape = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [shape.flatten_up_to(r) for r in rest]
    return shape.unflatten([f(p, x, *xs) for (p, x), *xs in zip(pairs, *others, strict=True)])


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text, such as `['layers'][0].weight`.

    >>> from atled.core.tree_registry import DictKey, GetAttrKey, SequenceKey
    >>> keystr((DictKey("layers"), SequenceKey(0), GetAttrKey("weight")))
    "['layers'][0].weight"
    """
    if simple:
        return separator.join([str(k[0]) if isinstance(k, tuple) else str(k) for k in keys])
    return separator.join([str(k) for k in keys])


def declared(path: Iterable[Any]) -> Any:
    """The kind that the outermost `FieldKey` of a path declares, or None."""
    return next((key.kind for key in path if type(key) is FieldKey), None)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every item is a leaf.

    >>> all_leaves([1, 2]), all_leaves([1, [2]])
    (True, False)
    """
    return builtins.all([node_of(type(x)) is None or (is_leaf is not None and is_leaf(x)) for x in iterable])


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree with the structure of `full_tree` and the repeated leaves of `prefix_tree`, to which `is_leaf` applies.

    >>> broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
    {'a': [1, 1], 'b': 2}
    """
    return structure(full_tree).unflatten(spread(prefix_tree, full_tree, is_leaf))


def spread(
    prefix: Any, target: Any, is_leaf: Callable[[Any], bool] | None = None, what: str = "", way_out: str = ""
) -> builtins.list[Any]:
    """The leaves of a prefix tree, one for each leaf of `target`. If `target` is a tuple, the prefix may be a list.

    If `prefix` is not a prefix of `target`, the error message begins with `what` and ends with `way_out`.

    >>> spread((1, {"a": 2}), (["x", "y"], {"a": 0}))
    [1, 1, 2]
    """
    if is_leaf is not None and is_leaf(prefix):
        return [prefix] * len(leaves(target))
    if isinstance(prefix, builtins.list) and isinstance(target, tuple):
        prefix = tuple(prefix)
    values, shape = flatten(prefix, is_leaf)
    try:
        parts = shape.flatten_up_to(target)
    except ValueError as error:
        if not what:
            raise
        raise ValueError(f"{what} must be a prefix of the tree it describes. {error}\n  try: {way_out}") from None
    return [value for value, part in zip(values, parts, strict=True) for _ in leaves(part)]


def flatten_one_level(tree: Any) -> tuple[Sequence[Any], Any, Sequence[Any]] | None:
    """The children of a node, its data, and a key for each child, or None for a leaf."""
    node = node_of(type(tree))
    if node is None:
        return None
    children, meta = node.flatten(tree)
    children = children if isinstance(children, (builtins.list, tuple)) else builtins.list(children)
    return children, meta, node.keys(tree, len(children))


def is_node(cls: type) -> bool:
    """Whether instances of a class are nodes."""
    return isinstance(cls, type) and node_of(cls) is not None


def structure_of(kind: type, meta: Any, children: Iterable[TreeDef]) -> TreeDef:
    """The structure of a node with this class, these data and the structures of its children."""
    return _structure(kind, meta, tuple(children))


class Partial(functools.partial):
    """A `functools.partial` that is a pytree: its arguments are leaves, its function is compared by value.

    >>> len(leaves(Partial(lambda a, b: a * b, 3.0)))
    1
    """


register_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, xs: Partial(func, *xs[0], **xs[1]),
    lambda p: [GetAttrKey("args"), GetAttrKey("keywords")],
)
