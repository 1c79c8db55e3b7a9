"""Describes where two trees differ: the path to the first different node, and what each tree has there.

Used in messages about loops whose carry changes, branches with different results, and recompilations.
"""

from __future__ import annotations

import reprlib
from typing import Any

from atled.core import tree_registry
from atled.core.tree import TreeDef


def difference(before: TreeDef, now: TreeDef) -> tuple[str, str, str] | None:
    """The path to the first difference, and descriptions of both nodes there, or None for equal trees.

    >>> from atled.core import tree
    >>> difference(tree.structure({"a": [1, 2]}), tree.structure({"a": (1, 2)}))
    ("['a']", 'a list', 'a tuple')
    """
    waiting: list[tuple[TreeDef, TreeDef, str]] = [(before, now, "")]
    while waiting:
        a, b, path = waiting.pop()
        if a is b or a == b:
            continue
        mismatch = _here(a, b)
        if mismatch is not None:
            return path + mismatch[0], mismatch[1], mismatch[2]
        steps = [str(k) for k in keys_of(a)]
        waiting.extend([*zip(a.children, b.children, [path + s for s in steps], strict=True)][::-1])
    return None


def _here(a: TreeDef, b: TreeDef) -> tuple[str, str, str] | None:
    """How two nodes differ, apart from their children: the path within the node, and both values, as text."""
    if a.kind is not b.kind:
        return "", _noun(a), _noun(b)
    if a.key != b.key:
        own = tree_registry.nodes[a.kind].code
        if own is not None:
            return own.difference(a, b)
        if a.kind is dict:
            odd = [k for k in (*a.meta, *b.meta) if (k in a.meta) != (k in b.meta)]
            return "", f"a dict with {_keys(a, odd)}", f"one with {_keys(b, odd)}"
        return "", f"{_noun(a)} with {reprlib.repr(a.meta)}", f"one with {reprlib.repr(b.meta)}"
    if len(a.children) != len(b.children):
        return "", f"{_noun(a)} of {len(a.children)}", f"one of {len(b.children)}"
    return None


def _keys(s: TreeDef, odd: list[Any]) -> str:
    """The keys in `odd` that this dict has, as text."""
    return ", ".join([repr(k) for k in s.meta if k in odd][:3]) or "fewer keys" if odd else "keys of other types"


def _noun(s: TreeDef) -> str:
    if s.kind is None:
        return "an array"
    if s.kind is type(None):
        return "None"
    name = s.kind.__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def keys_of(structure: TreeDef) -> list[Any]:
    """The path keys from a node to its children."""
    count = len(structure.children)
    node = tree_registry.nodes[structure.kind]
    try:
        return list(node.keys(node.unflatten(structure.data(), [0] * count), count))
    except Exception:  # the class's `unflatten` may reject these children
        return [tree_registry.FlattenedIndexKey(i) for i in range(count)]
