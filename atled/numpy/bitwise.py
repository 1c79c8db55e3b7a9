"""NumPy's bitwise functions of integers, and bits packed into bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.elementwise_family import binary, numbers, to_bool
from atled.numpy.promotion import operand_type
from atled.numpy.shapes import flat_or_axis
from atled.ops import conversion, elementary, reduction, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = [
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "invert", "left_shift", "packbits", "right_shift", "unpackbits",
]  # fmt: skip


bitwise_and = binary("bitwise_and", ew.logical_and, "x1 & x2.\n\n>>> print(bitwise_and(np.array([6, 5]), 3))\n[2 1]")
bitwise_or = binary("bitwise_or", ew.logical_or, "x1 | x2.\n\n>>> print(bitwise_or(np.array([6, 5]), 3))\n[7 7]")
bitwise_xor = binary("bitwise_xor", ew.logical_xor, "x1 ^ x2.\n\n>>> print(bitwise_xor(np.array([6, 5]), 3))\n[5 6]")


def _shift(x: Any, y: Any, op: Callable[[Any, Any], Any]) -> Any:
    """A shift that gives zero, as in NumPy, if the distance is at least the bit width."""
    dtype = type_of(x).dtype
    width = dtypes.bits(dtype)
    if dtypes.is_integer(dtype) and not dtypes.holds(dtype, width):  # width exceeds every value of dtype
        return op(x, y)
    return ew.select(ew.ge(y, width), np.zeros((), dtype), op(x, y))


@library_function(is_thin=True)
def left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 << x2.

    >>> left_shift(np.asarray([1, 5], "int32"), 2)
    Array([ 4, 20], dtype=int32)
    """
    x, y = numbers("left_shift", x1, x2)
    return _shift(x, y, ew.shift_left)


bitwise_left_shift = left_shift


@library_function(is_thin=True)
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2; the sign is kept.

    >>> right_shift(np.asarray([20, -20], "int32"), 2)
    Array([ 5, -5], dtype=int32)
    """
    x, y = numbers("right_shift", x1, x2)
    width = dtypes.bits(type_of(x).dtype)
    if type_of(x).kind == "u":
        return _shift(x, y, ew.shift_right_logical)
    return ew.shift_right_arithmetic(x, ew.minimum(y, width - 1))


bitwise_right_shift = right_shift


@library_function(is_thin=True)
def invert(x: ArrayLike, /) -> Array:
    """~x: bits flipped, or logical not for bools.

    >>> invert(np.asarray([0, 1], "int32")), invert(np.asarray([True, False]))
    (Array([-1, -2], dtype=int32), Array([False,  True], dtype=bool))
    """
    operand_type("invert", x)
    return ew.logical_not(x)


bitwise_not = bitwise_invert = invert


@library_function(is_thin=True)
def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits of the magnitude of x are set.

    >>> bitwise_count(np.asarray([7, 8], "int32"))
    Array([3, 1], dtype=uint8)
    """
    t = operand_type("bitwise_count", x)
    if t.kind == "b":
        return conversion.convert(x, dtypes.uint8)
    size = elementary.absolute(x) if t.kind == "i" else x
    return conversion.convert(ew.population_count(size), dtypes.uint8)


# -- packed into bytes ------------------------------------------------------------------------------------------------


def _bit_order(name: str, bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder is 'big' or 'little'; got {bitorder!r}.")


@library_function(static=("axis", "bitorder"))
def _packbits(x: Any, axis: int, bitorder: str) -> Any:
    t = type_of(x)
    count = -(-t.shape[axis] // 8)
    bits = conversion.convert(to_bool("packbits", x), dtypes.uint8)
    bits = shape.pad(bits, 0, [(0, count * 8 - n if k == axis else 0, 0) for k, n in enumerate(t.shape)])
    bits = shape.reshape(bits, (*t.shape[:axis], count, 8, *t.shape[axis + 1 :]))
    place = shape.iota(dtypes.uint8, type_of(bits).shape, axis + 1)
    place = ew.sub(7, place) if bitorder == "big" else place
    return reduction.reduce_sum(ew.shift_left(bits, place), (axis + 1,))


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack bools along an axis into bytes, eight in each; the last byte is padded with zeros.

    >>> import atled.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    Array([131, 128], dtype=uint8)
    """
    _bit_order("packbits", bitorder)
    x, at = flat_or_axis("packbits", a, axis)
    if x.type.kind not in "biu":
        raise TypeError(f"packbits: bools or integers are needed; got {x.type}.")
    return _packbits(x, at, bitorder)


@library_function(static=("axis", "count", "bitorder"))
def _unpackbits(x: Any, axis: int, count: int | None, bitorder: str) -> Any:
    t = type_of(x)
    dims = (*t.shape[: axis + 1], 8, *t.shape[axis + 1 :])
    place = shape.iota(dtypes.uint8, dims, axis + 1)
    place = ew.sub(7, place) if bitorder == "big" else place
    wide = shape.broadcast(x, dims, [k for k in range(len(dims)) if k != axis + 1])
    bits = ew.logical_and(ew.shift_right_logical(wide, place), 1)
    length = 8 * t.shape[axis]
    out = shape.reshape(bits, (*t.shape[:axis], length, *t.shape[axis + 1 :]))
    if count is None:
        return out
    target_length = count if count >= 0 else max(length + count, 0)
    return shape.pad(out, 0, [(0, target_length - length if k == axis else 0, 0) for k in range(t.ndim)])


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along an axis, as zeros and ones: the first `count`, or all but the last -count if negative.

    >>> import atled.numpy as jnp
    >>> jnp.unpackbits(jnp.array([5], dtype="uint8"))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    _bit_order("unpackbits", bitorder)
    x, at = flat_or_axis("unpackbits", a, axis)
    if x.dtype is not dtypes.uint8:
        raise TypeError(f"unpackbits: bytes (uint8) are needed; got {x.type}.")
    return _unpackbits(x, at, None if count is None else count.__index__(), bitorder)
