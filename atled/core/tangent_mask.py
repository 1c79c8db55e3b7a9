"""Masks of tangents and cotangents: True for elements that no selection (`where`, indexing, `max`) has discarded.

A discarded element is exactly zero and stays so, even if it is multiplied by infinity or NaN. An op's `masked` rule
computes the mask of its result from those of its operands; `transforms/masked_tangents.py` propagates them.

The `reach` of a mask says which factors of products it guards. `where` may discard NaN, so its masks guard every factor
and survive sums. Masks of indexing guard every factor but end at sums, where they would cost a pass over an array that
indexing leaves untouched. An element that loses a comparison (`max`, `clip`, `relu`) is a number, never NaN. In reverse
mode, masks of comparisons guard only slopes, which may be infinite at a number (those of `sqrt`, `log`, division); the
other factors are finite unless the element itself is infinite.
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
        """The mask as a boolean array."""
        if self._make is not None:
            self._found, self._make = self._make(), None
        return self._found


ALL = Mask(lambda: True)  # the mask of tangents without discarded elements


def joint_reach(masks: Sequence[Mask | None], own: int | None = None) -> int:
    """The smallest reach of these masks and of an op's own selection; `SLOPES` only if there is no other."""
    found = {m.reach for m in masks if m is not None and m is not ALL} | {own or SLOPES}
    return min(found - {SLOPES}, default=SLOPES)
