"""Arrays split along an axis: NumPy's `split`, `array_split`, `unstack`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axis
from atled.numpy.creation import asarray
from atled.ops import shape
from atled.staging.jit import library_function


@library_function(static=("bounds", "axis"))
def _split(ary: Any, bounds: tuple[int, ...], axis: int) -> list[Any]:
    edges = [0, *bounds, type_of(ary).shape[axis]]
    if edges == sorted(edges):
        return list(shape.split(ary, np.diff(edges).tolist(), axis))
    return [shape.slice_in_axis(ary, min(a, b), b, axis) for a, b in itertools.pairwise(edges)]


def _bounds(name: str, length: int, sections: Any, is_exact: bool) -> tuple[int, ...]:
    if isinstance(sections, (int, np.integer)):
        n = int(sections)
        if n <= 0 or (is_exact and length % n):
            raise ValueError(
                errors.explained(
                    f"{name}: {length} elements cannot be split into {n} equal parts.",
                    "array_split, whose parts may differ in length by one, or a list of positions to split at.",
                )
            )
        sizes = [length // n + (i < length % n) for i in range(n)]
        return tuple(np.cumsum(sizes)[:-1].tolist())
    points = [int(i) for i in np.asarray(sections)]
    return tuple([min(max(p + length if p < 0 else p, 0), length) for p in points])


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """The parts of an array, split along an axis into equal parts or at positions.

    >>> split(asarray([1, 2, 3, 4]), 2)
    [Array([1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    x = asarray(ary)
    at = check_axis("split", axis, x.ndim)
    return _split(x, _bounds("split", x.shape[at], indices_or_sections, True), at)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """The parts of an array, split along an axis into parts whose lengths differ by at most one, or at positions.

    >>> array_split(asarray([1, 2, 3]), 2)
    [Array([1, 2], dtype=int32), Array([3], dtype=int32)]
    """
    x = asarray(ary)
    at = check_axis("array_split", axis, x.ndim)
    return _split(x, _bounds("array_split", x.shape[at], indices_or_sections, False), at)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """The parts of an array, split along its first axis as by `split`.

    >>> [x.shape for x in vsplit(np.ones((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """The parts of an array, split along its second axis as by `split`, or its first if it has only one.

    >>> hsplit(asarray([1, 2, 3, 4]), [1])
    [Array([1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    return split(ary, indices_or_sections, 0 if asarray(ary).ndim == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """The parts of an array, split along its third axis as by `split`.

    >>> [x.shape for x in dsplit(np.ones((2, 2, 6)), 3)]
    [(2, 2, 2), (2, 2, 2), (2, 2, 2)]
    """
    return split(ary, indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    >>> unstack(asarray([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    array = asarray(x)
    at = check_axis("unstack", axis, array.ndim)
    return tuple(_unstack(array, at))


@library_function(static=("axis",))
def _unstack(x: Any, axis: int) -> list[Any]:
    return [shape.index_in_axis(x, i, axis) for i in range(type_of(x).shape[axis])]
