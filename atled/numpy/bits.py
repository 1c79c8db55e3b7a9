"""NumPy's functions of bits: of integers, and packed into bytes."""

from __future__ import annotations

from typing import Any

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.edits import _flat_or_axis
from atled.numpy.elementwise import to_bool
from atled.ops import conversion, reduction, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["packbits", "unpackbits"]


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
    """Eight truth values along an axis in each byte; zeros fill the last one.

    >>> import atled.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    Array([131, 128], dtype=uint8)
    """
    _bit_order("packbits", bitorder)
    x, at = _flat_or_axis("packbits", a, axis)
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
    wanted = count if count >= 0 else max(length + count, 0)
    return shape.pad(out, 0, [(0, wanted - length if k == axis else 0, 0) for k in range(t.ndim)])


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along an axis, as zeros and ones; `count` says how many, or if negative how many to leave off.

    >>> import atled.numpy as jnp
    >>> jnp.unpackbits(jnp.array([5], dtype="uint8"))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    _bit_order("unpackbits", bitorder)
    x, at = _flat_or_axis("unpackbits", a, axis)
    if x.dtype is not dtypes.uint8:
        raise TypeError(f"unpackbits: bytes (uint8) are needed; got {x.type}.")
    return _unpackbits(x, at, None if count is None else count.__index__(), bitorder)
