"""`Layout` and `Format`: the order of an array's axes in memory.

In atled, arrays are always row-major: a `Format` with any other layout raises where it is used.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from atled.core.sharding import Sharding


class _Automatic:
    """`Layout.AUTO`: the compiler chooses the layout."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The order of an array's axes in memory, from the slowest-varying to the fastest.

    >>> Layout((1, 0)).major_to_minor
    (1, 0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: Any = dataclasses.field(default=_Automatic(), init=False, repr=False, compare=False)

    @property
    def is_row_by_row(self) -> bool:
        """Whether the layout is row-major, the only one that is supported."""
        return tuple(self.major_to_minor) == tuple(range(len(self.major_to_minor))) and not self.tiling


Layout.AUTO = _Automatic()


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout together with a sharding.

    >>> Format(Layout((0, 1))).layout.is_row_by_row
    True
    """

    layout: Any = None
    sharding: Any = None

    def sharding_for(self, shape: tuple[int, ...], what: str) -> Sharding | None:
        """The sharding for an array of this shape; raises if the layout is not row-major."""
        layout, sharding = self.layout, self.sharding
        if isinstance(layout, Layout) and len(layout.major_to_minor) != len(shape):
            raise ValueError(
                f"{what}: a layout must have as many axes as the array; {layout.major_to_minor} has "
                f"{len(layout.major_to_minor)}, and an array of shape {list(shape)} has {len(shape)}."
            )
        if isinstance(layout, Layout) and not layout.is_row_by_row:
            raise NotImplementedError(f"{what}: only row-major arrays are supported; got {layout}.")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError(f"{what}: the sharding of a Format must be a Sharding; got {type(sharding).__name__}.")
        return sharding
