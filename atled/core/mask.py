"""Masks of tangents and cotangents: True for elements that no selection (`where`, indexing) has discarded.

A discarded element is exactly zero and stays so, even if it is multiplied by infinity or NaN. An op's `masked` rule
computes the mask of its result from those of its operands; `transforms/masks.py` propagates them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Mask:
    """True for elements that were not discarded; computed lazily."""

    __slots__ = ("_found", "_make", "is_cheap")

    def __init__(self, make: Callable[[], Any], is_cheap: bool = True) -> None:
        self._make: Callable[[], Any] | None = make
        self._found: Any = None
        self.is_cheap = is_cheap  # as cheap as a selection; other masks are dropped at sums

    def get(self) -> Any:
        """The array of truth values."""
        if self._make is not None:
            self._found, self._make = self._make(), None
        return self._found


ALL = Mask(lambda: True)  # the mask of tangents without discarded elements
