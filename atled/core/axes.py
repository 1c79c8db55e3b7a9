"""Checks axis arguments, and makes negative ones non-negative."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.exceptions import AxisError  # is both a ValueError and an IndexError

from atled.core import errors


def check_axis(name: str, axis: int, ndim: int) -> int:
    """The axis as a non-negative integer; raises if it is out of bounds."""
    if not isinstance(axis, (int, np.integer)):
        axis = axis.__index__()
    if not -ndim <= axis < ndim:
        axes = f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis; a 0-d array has none"
        has = f"{ndim} {'axis' if ndim == 1 else 'axes'}"
        raise AxisError(errors.explained(f"{name}: axis {axis} is out of bounds for an array with {has}.", f"{axes}."))
    return int(axis) % ndim


def check_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """A tuple of non-negative axes from None (all axes), an int, or a tuple; raises for duplicates."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple([check_axis(name, a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))])
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: axis {axis} names an axis twice.")
    return axes
