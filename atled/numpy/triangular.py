"""NumPy's triangles and diagonals, of matrices and as index arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.errors import ConcretizationTypeError
from atled.numpy.creation import asarray, ones, static_shape
from atled.numpy.elementwise_family import to_bool
from atled.numpy.index_parsing import known_index
from atled.numpy.promotion import operand_type
from atled.numpy.ranges import arange
from atled.ops import conversion, elementary, reduction, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = [
    "diag_indices", "diag_indices_from", "mask_indices", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from",
]  # fmt: skip


@library_function(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangle of the last two axes; zero above the k-th diagonal.

    >>> tril(asarray([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle(m, k, True)


@library_function(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangle of the last two axes; zero below the k-th diagonal.

    >>> triu(asarray([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle(m, k, False)


def _triangle(m: Any, k: int, lower: bool) -> Any:
    t = operand_type("tril" if lower else "triu", m)
    if t.ndim < 2:
        raise ValueError(f"{'tril' if lower else 'triu'}: at least two axes are needed; got {t}.")
    rows, columns = (shape.iota(dtypes.int32, t.shape[-2:], i) for i in (0, 1))
    edge = ew.add(rows, k)
    keep = ew.ge(edge, columns) if lower else ew.le(edge, columns)
    keep = shape.broadcast(keep, t.shape, (t.ndim - 2, t.ndim - 1))
    return ew.select(keep, m, np.zeros((), t.dtype))


@library_function(static=("n", "m", "k", "dtype"))
def _tri(n: int, m: int, k: int, dtype: Any) -> Any:
    rows, columns = (shape.iota(dtypes.int32, (n, m), i) for i in (0, 1))
    return conversion.convert(ew.ge(ew.add(rows, k), columns), dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:  # noqa: N803
    """An (N, M) matrix of ones on and below the k-th diagonal and zeros above.

    >>> tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    n, m = static_shape("tri", (N, N if M is None else M))
    return _tri(n, m, int(k), dtypes.canonical(float if dtype is None else dtype))


def _mask_positions(mask: np.ndarray) -> tuple[Any, Any]:
    rows, columns = np.nonzero(mask)
    dtype = dtypes.default("i")
    return asarray(rows.astype(dtype)), asarray(columns.astype(dtype))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the lower triangle of an (n, m) matrix.

    >>> tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = static_shape("tril_indices", (n, n if m is None else m))
    return _mask_positions(np.tri(rows, columns, int(k), bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle of an (n, m) matrix.

    >>> triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = static_shape("triu_indices", (n, n if m is None else m))
    return _mask_positions(~np.tri(rows, columns, int(k) - 1, bool))


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    dims = tuple(arr.shape) if hasattr(arr, "shape") else asarray(arr).shape
    if len(dims) != 2:
        raise ValueError(f"{name}: a matrix is needed; got shape {dims}.")
    return dims


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Rows and columns of the lower triangle of a matrix.

    >>> tril_indices_from(np.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle of a matrix.

    >>> triu_indices_from(np.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array with equally long axes.

    >>> diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    (length, count) = static_shape("diag_indices", (n, ndim))
    return (arange(length, dtype=int),) * count


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array.

    >>> diag_indices_from(np.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = asarray(arr)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ValueError(f"diag_indices_from: at least two axes, all equally long, are needed; got {x.type}.")
    return diag_indices(x.shape[0], x.ndim)


@library_function(static=("size",))
def _first_positions(mask: Any, size: int) -> tuple[Any, Any]:
    """Rows and columns of the first `size` true elements, in order; zeros if there are fewer."""
    t = type_of(mask)
    dtype = dtypes.default("i")
    flat = shape.reshape(to_bool("mask_indices", mask), (t.size,))
    order = sorting.sort((ew.logical_not(flat), shape.iota(dtype, (t.size,), 0)), 0)[1]
    order = shape.pad(order, np.zeros((), dtype), [(0, size - t.size, 0)])
    count = reduction.reduce_sum(conversion.convert(flat, dtype), (0,))
    order = ew.select(ew.lt(shape.iota(dtype, (size,), 0), count), order, np.zeros((), dtype))
    width = np.asarray(max(t.shape[1], 1), dtype)
    return ew.div(order, width), elementary.rem(order, width)


def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Rows and columns of the elements that a function such as `triu` keeps of an (n, n) matrix of ones.

    Under `jit`, `size` fixes their number; if there are fewer, the rest are zeros.

    >>> mask_indices(2, np.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    mask = asarray(mask_func(ones((n, n)), k))
    if mask.ndim != 2:
        raise ValueError(f"mask_indices: the function must return a matrix; got {mask.type}.")
    if size is not None:
        return _first_positions(mask, size.__index__())
    known = known_index(mask)
    if known is None:
        raise ConcretizationTypeError(
            mask._explained(f"mask_indices: a traced {mask.type} has an unknown number of nonzero elements.", "size=n.")
        )
    return _mask_positions(known != 0)
