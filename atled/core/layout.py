"""`Layout` and `Format`: the order of an array's axes in memory.

Arrays are always row-major here; these classes describe that. Any other order raises.
"""

from __future__ import annotations

import dataclasses
from typing import Any


class _Automatic:
    """The compiler decides."""

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
        """Whether this is row-major, the only layout here."""
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
