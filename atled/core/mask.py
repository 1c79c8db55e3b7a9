"""Masks of tangents and cotangents: which elements a selection has not left out.

What was left out is exactly zero and stays so, whatever it meets. An op's `masked` rule says what becomes of the masks
of its operands; `transforms/masks.py` carries them along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Mask:
    """True where an element was not left out; computed when it is first asked for."""

    __slots__ = ("_found", "_make", "is_cheap")

    def __init__(self, make: Callable[[], Any], is_cheap: bool = True) -> None:
        self._make: Callable[[], Any] | None = make
        self._found: Any = None
        self.is_cheap = is_cheap  # costs no more than a selection; others are not kept through sums

    def get(self) -> Any:
        """The array of truth values."""
        if self._make is not None:
            self._found, self._make = self._make(), None
        return self._found


ALL = Mask(lambda: True)  # of tangents of which nothing was left out
