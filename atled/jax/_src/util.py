"""Names of `jax._src.util`."""

from collections.abc import Iterable
from typing import Any

from atled.jax.api_util import safe_map

__all__ = ["safe_map", "safe_zip", "unzip2", "unzip3"]


def safe_zip(*args: Iterable[Any]) -> list[Any]:
    """`zip` as a list, for arguments of equal length."""
    return list(zip(*args, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Two tuples: the first elements of the pairs, and the second elements."""
    firsts, seconds = [], []
    for x, y in pairs:
        firsts.append(x)
        seconds.append(y)
    return tuple(firsts), tuple(seconds)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Three tuples: the first, the second and the third elements of the triples."""
    parts: tuple[list[Any], ...] = [], [], []
    for triple in triples:
        for part, x in zip(parts, triple, strict=True):
            part.append(x)
    return tuple([tuple(part) for part in parts])
