"""`owned`: examples that wait for others, of a batch or a worker, must not change meanwhile.

A source, an iterable or a map may return the same array each time, filled anew. So arrays that somebody else holds are
copied, which reference counts tell; others are taken as they are.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_ALONE = 2  # references to an object in a container: the container's, and the argument's


def owned(box: list[Any]) -> Any:
    """The example in a list of one, with copies of arrays that user code may write to later.

    It comes in a list so that no variable refers to it.
    """
    return _owned(box, 0)


def _owned(inside: Any, key: Any) -> Any:
    kind = type(inside[key])
    if kind is np.ndarray:
        is_ours = sys.getrefcount(inside[key]) <= _ALONE and _has_memory(inside[key].base)
        x = inside[key]
        return x if is_ours or not x.flags.writeable else x.copy()
    if kind is dict:
        return {k: _owned(inside[key], k) for k in inside[key]}
    if kind is list or issubclass(kind, tuple):
        parts = [_owned(inside[key], i) for i in range(len(inside[key]))]
        return parts if kind is list else tuple(parts) if kind is tuple else _remade(inside[key], parts)
    return inside[key]


def _has_memory(base: Any) -> bool:
    """Whether nobody else holds the memory of a view, for which `base` comes as the attribute of an array."""
    if base is None or isinstance(base, bytes):
        return True
    return type(base) is np.ndarray and base.base is None and sys.getrefcount(base) <= _ALONE + 1


def _remade(x: Any, parts: list[Any]) -> Any:
    """A named tuple with other elements; other subclasses of tuple unchanged."""
    return x._make(parts) if hasattr(x, "_make") else x
