"""Conversions of dtypes and bits, rounding, and selection."""

from __future__ import annotations

import enum
from typing import Any

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.lax.arithmetic import ge, select
from atled.lax.convolution import rounding
from atled.numpy.promotion import converted
from atled.ops import conversion


class RoundingMethod(enum.IntEnum):
    """How `round` rounds halves: away from zero, or to the nearest even integer.

    >>> [float(round(2.5, method)) for method in RoundingMethod]
    [3.0, 2.0]
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """x rounded to the nearest integer.

    >>> from atled import lax
    >>> round(lax.full((2,), 0.5)), round(lax.full((2,), 0.5), RoundingMethod.TO_NEAREST_EVEN)
    (Array([1., 1.], dtype=float32), Array([0., 0.], dtype=float32))
    """
    return rounding[int(rounding_method)](x)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of x reinterpreted as another dtype.

    >>> from atled import lax
    >>> bitcast_convert_type(lax.full((2,), -1, "int32"), "uint32")
    Array([4294967295, 4294967295], dtype=uint32)
    >>> bitcast_convert_type(lax.full((2,), 1, "int32"), "int16").shape  # narrower: a new last axis
    (2, 2)
    """
    return conversion.bitcast_convert(operand, new_dtype)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """x rounded to fewer bits of exponent and mantissa.

    >>> from atled import lax
    >>> reduce_precision(lax.full((), 1.0 + 2**-10), 8, 7)
    Array(1., dtype=float32)
    """
    return conversion.reduce_precision(operand, exponent_bits, mantissa_bits)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """x in another dtype.

    >>> from atled import lax
    >>> convert_element_type(lax.full((2,), 1.5), "int32")
    Array([1, 1], dtype=int32)
    """
    return converted(operand, dtypes.canonical(new_dtype))


def bitcast(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of x reinterpreted as another dtype.

    >>> from atled import lax
    >>> bitcast(lax.full((), 1.0), "uint32") == 0x3F800000
    Array(True, dtype=bool)
    """
    return bitcast_convert_type(operand, new_dtype)


def select_n(which: ArrayLike, *cases: Any) -> Array:
    """Select elementwise from the cases: `which` holds bools for two cases, or the integer index of the case.

    >>> from atled import lax
    >>> select_n(lax.iota("int32", 3), lax.full((3,), 10), lax.full((3,), 20), lax.full((3,), 30))
    Array([10, 20, 30], dtype=int32)
    """
    if type_of(which).kind == "b":
        if len(cases) != 2:
            raise ValueError(f"select_n: a bool chooses between two cases; got {len(cases)}.")
        return select(which, cases[1], cases[0])
    out = cases[0]
    for i, case in enumerate(cases[1:], 1):
        out = select(ge(which, i), case, out)
    return out
