"""Arrays joined into one: NumPy's `concatenate`, `stack`, `block`, `append`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, error_hints, errors
from atled.core.array import Array, ArrayLike, DTypeLike, describe, type_of
from atled.core.axes import check_axis
from atled.numpy.creation import asarray
from atled.numpy.promotion import promote_dtypes
from atled.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, ravel, reshape
from atled.ops import conversion, shape
from atled.staging.jit import library_function
from atled.staging.jit_signature import refuse_out


def _sequence(name: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, Array):
        return [arrays[i] for i in range(len(arrays))]
    if isinstance(arrays, np.ndarray):
        return list(arrays)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            errors.explained(
                f"{name}: a list or tuple of arrays is needed; got {describe(arrays)}.", f"{name}([x, y])."
            )
        )
    if not arrays:
        raise ValueError(f"{name}: at least one array is needed.")
    return list(arrays)


@library_function(static=("axis", "dtype"))
def _concatenate(arrays: list[Any], axis: int | None, dtype: Any) -> Any:
    xs = _common("concatenate", arrays, dtype)
    if axis is None:
        return shape.concatenate([shape.reshape(x, (type_of(x).size,)) for x in xs], 0)
    first = type_of(xs[0])
    if first.ndim == 0:
        raise ValueError(
            f"concatenate: arrays must have an axis to be joined along; got {first}."
            "\n  try: stack, which makes a new axis."
        )
    return shape.concatenate(xs, check_axis("concatenate", axis, first.ndim))


def _common(name: str, arrays: Sequence[Any], dtype: Any = None) -> list[Any]:
    xs = promote_dtypes(name, *arrays)
    return [conversion.convert(x, dtypes.canonical(dtype)) for x in xs] if dtype is not None else xs


def concatenate(arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays concatenated along an axis.

    >>> concatenate([np.zeros(2, "float32"), np.ones(1, "float32")])
    Array([0., 0., 1.], dtype=float32)
    """
    if isinstance(axis, (Array, np.ndarray)) and type_of(axis).ndim:
        raise TypeError(
            errors.explained(
                f"concatenate: the arrays must be in one list, followed by the axis; got {type_of(axis)} as the axis.",
                error_hints.called_with("[{0}, {1}]", function="concatenate") or "concatenate([x, y]).",
            )
        )
    return _concatenate(_sequence("concatenate", arrays), axis, dtype)


concat = concatenate


@library_function(static=("axis", "dtype"))
def _stack(arrays: list[Any], axis: int, dtype: Any) -> Any:
    xs = _common("stack", arrays, dtype)
    first = type_of(xs[0])
    if any(type_of(x).shape != first.shape for x in xs):
        raise ValueError(
            f"stack: arrays must have the same shape; got {', '.join(str(type_of(x)) for x in xs)}."
            "\n  try: concatenate to join them along an existing axis, or pad the shorter ones."
        )
    at = check_axis("stack", axis, first.ndim + 1)
    dims = (*first.shape[:at], 1, *first.shape[at:])
    return shape.concatenate([shape.reshape(x, dims) for x in xs], at)


def stack(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Stack arrays of the same shape along a new axis.

    >>> stack([asarray([1, 2]), asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    return _stack(_sequence("stack", arrays), axis, dtype)


@library_function(static=("axis", "dtype"))
def _joined(arrays: Any, axis: int, dtype: Any = None) -> Any:
    """Concatenate arrays along an axis, after adding leading axes if needed; `hstack` joins 1-d arrays unchanged."""
    xs = [(atleast_2d, atleast_1d, atleast_3d)[axis](x) for x in arrays]
    return concatenate(xs, 0 if axis == 1 and xs[0].ndim == 1 else axis, dtype)


def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Stack arrays vertically, along the first axis.

    >>> vstack((asarray([1, 2]), asarray([3, 4])))
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return _joined(_sequence("vstack", tup), 0, dtype)


def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined horizontally.

    >>> hstack((asarray([1, 2]), asarray([3])))
    Array([1, 2, 3], dtype=int32)
    """
    return _joined(_sequence("hstack", tup), 1, dtype)


def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Stack arrays along the third axis.

    >>> dstack((asarray([1, 2]), asarray([3, 4])))
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return _joined(_sequence("dstack", tup), 2, dtype)


@library_function
def _column_stack(arrays: Any) -> Any:
    return concatenate([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in map(asarray, arrays)], 1)


def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """1-d arrays as columns of a matrix.

    >>> column_stack((asarray([1, 2]), asarray([3, 4])))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _column_stack(_sequence("column_stack", tup))


def block(arrays: ArrayLike | Sequence[ArrayLike]) -> Array:
    """An array assembled from nested lists of blocks.

    >>> block([[np.eye(2, dtype="int32"), np.zeros((2, 1), "int32")]])
    Array([[1, 0, 0],
           [0, 1, 0]], dtype=int32)
    """

    def depth(x: Any) -> int:
        return 1 + max(map(depth, x)) if isinstance(x, list) else 0

    levels = depth(arrays)

    def leaves(x: Any) -> list[Any]:
        return [v for item in x for v in leaves(item)] if isinstance(x, list) else [x]

    ndim = max(levels, *[asarray(x).ndim for x in leaves(arrays)])

    def build(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            leaf = asarray(x)
            return reshape(leaf, (1,) * (ndim - leaf.ndim) + leaf.shape)
        return concatenate([build(v, level - 1) for v in x], -level)

    return build(arrays, levels)


@library_function(static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append values to an array; both are flattened if no axis is given.

    >>> append(asarray([1, 2]), asarray([3]))
    Array([1, 2, 3], dtype=int32)
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)
