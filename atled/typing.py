"""Types for annotations: array arguments, and objects that specify a dtype."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from atled.core.array import ArrayLike


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype, such as an array or one of the scalar types of `numpy`."""

    @property
    def dtype(self) -> np.dtype: ...


DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
"""What stands for a dtype: its name, a Python or NumPy type, or what has one."""

__all__ = ["ArrayLike", "DTypeLike"]
