"""`owned`: copies arrays that user code could overwrite while an example waits for the rest of its batch.

A source, an iterable or a map may return the same array each time, with new contents. So an array is copied if its
reference count shows that somebody else holds it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_ALONE = 2  # references to an object in a container: from the container and from the argument


def owned(box: list[Any]) -> Any:
    """The example in a list of one element, with copies of arrays that user code may write to later.

    The list avoids a variable that refers to the example, which would add to its reference count.
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
    """Whether `base`, the attribute of an array, is None or memory that nobody else holds."""
    if base is None or isinstance(base, bytes):
        return True
    return type(base) is np.ndarray and base.base is None and sys.getrefcount(base) <= _ALONE + 1


def _remade(x: Any, parts: list[Any]) -> Any:
    """A named tuple with the elements `parts`; other subclasses of tuple are returned unchanged."""
    return x._make(parts) if hasattr(x, "_make") else x
