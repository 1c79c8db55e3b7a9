"""What special functions do with their operands first."""

from __future__ import annotations

from typing import Any

from atled.core import dtypes
from atled.core.array import type_of
from atled.numpy.promotion import broadcast, promote_inexact


def real_operands(name: str, *operands: Any) -> list[Any]:
    """Operands in one floating dtype and one shape; scalars stay scalars."""
    found = promote_inexact(name, *operands)
    if dtypes.kind(type_of(found[0]).dtype) == "c":
        raise TypeError(f"{name}: real numbers are needed; got {' and '.join(str(type_of(x)) for x in operands)}.")
    return broadcast(name, found)
