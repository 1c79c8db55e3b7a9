"""Conversion of the operands of special functions to a common dtype and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled.core import dtypes
from atled.core.array import type_of
from atled.numpy.promotion import broadcast, cast, promote_inexact
from atled.ops import conversion
from atled.ops import elementwise as ew


def real_operands(name: str, *operands: Any) -> list[Any]:
    """Operands converted to a common floating dtype and shape; scalars stay scalars."""
    promoted = promote_inexact(name, *operands)
    if dtypes.kind(type_of(promoted[0]).dtype) == "c":
        raise TypeError(f"{name}: real numbers are needed; got {' and '.join(str(type_of(x)) for x in operands)}.")
    return broadcast(name, promoted)


def wide_operands(name: str, *operands: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """Real operands broadcast to a common shape, in float32 or wider, and a function that converts results back to the
    operands' own dtype.
    """
    promoted = real_operands(name, *operands)
    dtype = type_of(promoted[0]).dtype
    if dtypes.bits(dtype) >= 32:
        return promoted, lambda x: x
    return [cast(x, dtypes.float32) for x in promoted], lambda x: conversion.convert(x, dtype)


def all_of(*conditions: Any) -> Any:
    """Whether all conditions hold, elementwise."""
    out = conditions[0]
    for c in conditions[1:]:
        out = ew.logical_and(out, c)
    return out
