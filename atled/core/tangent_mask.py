"""Masks of tangents and cotangents: True for elements that no selection (`where`, indexing, `max`) has discarded.

A discarded element is exactly zero and stays so, even if it is multiplied by infinity or NaN. An op's `masked` rule
computes the mask of its result from those of its operands; `transforms/masked_tangents.py` propagates them.

A mask has a reach. `where` may discard anything, so its masks guard every factor, and survive sums. Masks of indices
guard every factor, but end at sums, where they would cost a pass over an array that indexing leaves untouched. What
loses a comparison (`max`, `clip`, `relu`) is a number, never NaN. In reverse mode its mask guards only slopes, which
may be infinite at a number (those of `sqrt`, `log`, division): the factors of its products are finite unless it is
infinite itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

SLOPES = 1  # guards factors that are derivatives
PRODUCTS = 2  # guards every factor
SUMS = 3  # guards every factor, and survives sums


class Mask:
    """True for elements that were not discarded; computed lazily."""

    __slots__ = ("_found", "_make", "reach")

    def __init__(self, make: Callable[[], Any], reach: int = SUMS) -> None:
        self._make: Callable[[], Any] | None = make
        self._found: Any = None
        self.reach = reach

    def get(self) -> Any:
        """The array of truth values."""
        if self._make is not None:
            self._found, self._make = self._make(), None
        return self._found


ALL = Mask(lambda: True)  # the mask of tangents without discarded elements


def joint_reach(masks: Sequence[Mask | None], own: int | None = None) -> int:
    """The reach of a mask made of several, and of what an op itself discards: comparisons yield to other selections."""
    found = {m.reach for m in masks if m is not None and m is not ALL} | {own or SLOPES}
    return min(found - {SLOPES}, default=SLOPES)
