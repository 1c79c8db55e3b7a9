"""Splits lists by flags, such as which operands are known or linear, and merges the parts again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from typing import Any

from atled.core.types import ArrayType, Zero


def kept(flags: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The values whose flag is set.

    >>> kept([True, False, True], "abc")
    ['a', 'c']
    """
    _same_length(flags, values)
    return list(compress(values, flags))


def left_out(flags: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The values whose flag is not set.

    >>> left_out([True, False, True], "abc")
    ['b']
    """
    _same_length(flags, values)
    return [x for x, flag in zip(values, flags) if not flag]


def merged(flags: Sequence[Any], chosen: Iterable[Any], others: Iterable[Any] | None = None) -> list[Any]:
    """The inverse of `kept` and `left_out`: `chosen` where the flag is set; elsewhere `others`, or None without them.

    >>> merged([True, False, True], "ac", "b"), merged([True, False], "a")
    (['a', 'b', 'c'], ['a', None])
    """
    first = iter(chosen)
    second = repeat(None) if others is None else iter(others)
    end: list[Any] = []
    out = [next(first if flag else second, end) for flag in flags]
    rest = [next(first, end), end if others is None else next(second, end)]
    if any([x is end for x in out]) or any([x is not end for x in rest]):
        raise ValueError(f"merged: {len(flags)} flags, but a different number of values.")
    return out


def with_zeros(flags: Sequence[Any], tangents: Iterable[Any], types: Sequence[ArrayType]) -> tuple[Any, ...]:
    """A tangent for each type: one of `tangents` where the flag is set, else a symbolic zero."""
    return tuple(merged(flags, tangents, [Zero(t.tangent()) for t in left_out(flags, types)]))


def _same_length(flags: Sequence[Any], values: Sequence[Any]) -> None:
    if len(flags) != len(values):
        raise ValueError(f"flags: {len(flags)} flags for {len(values)} values.")
