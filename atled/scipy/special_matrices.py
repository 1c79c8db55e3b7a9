"""SciPy's structured matrices, built from vectors or from a size. Leading axes of vectors are batch axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.types import ArrayType
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes, broadcast_to, operand_type, promote_dtypes, promote_inexact
from atled.ops import conversion, elementary, indexing, shape
from atled.ops import elementwise as ew
from atled.ops import matrix_ops as matrices_ops
from atled.ops.matrix_ops import scale_columns
from atled.staging.jit import library_function

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
    "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]  # fmt: skip

_INT = dtypes.int32

# -- from vectors -----------------------------------------------------------------------------------------------------


@library_function
def _block_diag(arrays: list[Any]) -> Any:
    xs = promote_dtypes("block_diag", *arrays)
    if any(type_of(x).ndim > 2 for x in xs):
        raise ValueError(f"block_diag: at most two axes are allowed; got {', '.join(str(type_of(x)) for x in xs)}.")
    blocks = [shape.reshape(x, (1,) * (2 - type_of(x).ndim) + type_of(x).shape) for x in xs]
    width, before, rows = sum([type_of(x).shape[1] for x in blocks]), 0, []
    for x in blocks:
        n = type_of(x).shape[1]
        rows.append(shape.pad(x, 0, [(0, 0, 0), (before, width - before - n, 0)]))
        before += n
    return shape.concatenate(rows, 0)


def block_diag(*arrs: ArrayLike) -> Array:
    """The block-diagonal matrix of several matrices; vectors are rows.

    >>> block_diag(asarray([[1, 2]]), asarray([[3], [4]]))
    Array([[1, 2, 0],
           [0, 0, 3],
           [0, 0, 4]], dtype=int32)
    """
    return _block_diag([asarray(x) for x in arrs] if arrs else [asarray(np.zeros((1, 0), dtypes.default("f")))])


def _along_diagonals(strip: Any, rows: int, columns: int, is_anti: bool = False) -> Any:
    """Matrices with element (i, j) = strip[rows - 1 - i + j] (Toeplitz), or strip[i + j] (Hankel)."""
    lead = type_of(strip).shape[:-1]
    i, j = (shape.iota(_INT, (rows, columns), k) for k in (0, 1))
    position = ew.add(i, j) if is_anti else ew.add(ew.sub(j, i), rows - 1)
    flat = shape.broadcast(shape.reshape(position, (rows * columns,)), (*lead, rows * columns), (len(lead),))
    return shape.reshape(indexing.take_along(strip, flat, len(lead)), (*lead, rows, columns))


def _vectors(name: str, *operands: Any) -> list[Any]:
    """Operands as vectors on the last axis, in a common dtype, with broadcast leading axes."""
    xs = [shape.reshape(x, (1,)) if type_of(x).ndim == 0 else x for x in promote_dtypes(name, *operands)]
    lead = broadcast_shapes(*[type_of(x).shape[:-1] for x in xs])
    return [broadcast_to(x, (*lead, type_of(x).shape[-1])) for x in xs]


@library_function
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The Toeplitz matrix, constant along diagonals: c is its first column, and r its first row.

    By default r is conj(c). Unlike in SciPy before 1.17, leading axes are batch axes.

    >>> toeplitz(asarray([1, 2, 3]), asarray([1, 8, 9]))
    Array([[1, 8, 9],
           [2, 1, 8],
           [3, 2, 1]], dtype=int32)
    """
    if r is None:
        r = conversion.conj(c) if operand_type("toeplitz", c).kind == "c" else c
    x, y = _vectors("toeplitz", c, r)
    last, m, n = type_of(x).ndim - 1, type_of(x).shape[-1], type_of(y).shape[-1]
    strip = shape.concatenate([shape.reverse(x, (last,)), shape.slice_in_axis(y, min(1, n), n, last)], last)
    return _along_diagonals(strip, m, n)


@library_function
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The Hankel matrix, constant along antidiagonals: c is its first column, and r, by default 0, its last row.

    >>> hankel(asarray([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    operand_type("hankel", c)
    x, y = _vectors("hankel", c, ew.mul(c, np.zeros((), type_of(c).dtype)) if r is None else r)
    last, m, n = type_of(x).ndim - 1, type_of(x).shape[-1], type_of(y).shape[-1]
    return _along_diagonals(shape.concatenate([x, shape.slice_in_axis(y, min(1, n), n, last)], last), m, n, True)


@library_function
def circulant(c: ArrayLike) -> Array:
    """The circulant matrix: its first column is c, and each column is the previous one rolled down by one.

    >>> circulant(asarray([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    (x,) = _vectors("circulant", c)
    last, n = type_of(x).ndim - 1, type_of(x).shape[-1]
    turned = shape.reverse(x, (last,))
    strip = shape.concatenate([turned, shape.slice_in_axis(turned, 0, max(n - 1, 0), last)], last)
    return _along_diagonals(strip, n, n)


def _with_subdiagonal(row: Any, below: Any) -> Any:
    """Square matrices with `row` as first row and `below` on the first subdiagonal, zero elsewhere."""
    lead, n = type_of(row).shape[:-1], type_of(row).shape[-1]
    d = len(lead)
    first = shape.pad(shape.reshape(row, (*lead, 1, n)), 0, [(0, 0, 0)] * d + [(0, n - 1, 0), (0, 0, 0)])
    under = scale_columns(matrices_ops.identity(ArrayType((*lead, n - 1, n - 1), type_of(row).dtype), n - 1), below)
    return ew.add(first, shape.pad(under, 0, [(0, 0, 0)] * d + [(1, 0, 0), (0, 1, 0)]))


@library_function
def companion(a: ArrayLike) -> Array:
    """The companion matrix of a polynomial with coefficients a, the highest power first; its eigenvalues are the roots.

    >>> companion(asarray([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (x,) = promote_inexact("companion", a)
    t = type_of(x)
    n = t.shape[-1] if t.ndim else 0
    if n < 2:
        raise ValueError(f"companion: at least two coefficients are needed; got {t}.")
    last = t.ndim - 1
    leading = shape.broadcast(shape.index_in_axis(x, 0, last), (*t.shape[:-1], n - 1), tuple(range(last)))
    row = ew.neg(ew.div(shape.slice_in_axis(x, 1, n, last), leading))
    return _with_subdiagonal(row, shape.full(ArrayType((*t.shape[:-1], n - 2), t.dtype), 1))


@library_function
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """The Leslie matrix, with f as its first row and s on its first subdiagonal.

    >>> leslie(asarray([0.0, 2.0]), asarray([0.5]))
    Array([[0. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    x, y = _vectors("leslie", f, s)
    if type_of(y).shape[-1] != type_of(x).shape[-1] - 1:
        raise ValueError(f"leslie: s must have one element fewer than f; got {type_of(f)} and {type_of(s)}.")
    return _with_subdiagonal(x, y)


@library_function
def fiedler(a: ArrayLike) -> Array:
    """The Fiedler matrix, whose element (i, j) is abs(a[i] - a[j]).

    >>> fiedler(asarray([1, 4, 9]))
    Array([[0, 3, 8],
           [3, 0, 5],
           [8, 5, 0]], dtype=int32)
    """
    (x,) = _vectors("fiedler", a)
    d, n = type_of(x).ndim - 1, type_of(x).shape[-1]
    dims, lead = (*type_of(x).shape, n), tuple(range(d))
    return elementary.absolute(ew.sub(shape.broadcast(x, dims, (*lead, d)), shape.broadcast(x, dims, (*lead, d + 1))))


@library_function
def fiedler_companion(a: ArrayLike) -> Array:
    """A pentadiagonal matrix with the eigenvalues of `companion(a)`: the roots of the polynomial.

    >>> import atled.numpy as jnp
    >>> fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (x,) = promote_inexact("fiedler_companion", a)
    (x,) = _vectors("fiedler_companion", x)
    *lead, m = type_of(x).shape
    if m == 0:
        raise ValueError(f"fiedler_companion: at least one coefficient is needed; got {type_of(a)}.")
    n, d, dtype = m - 1, len(lead), type_of(x).dtype
    leading = shape.broadcast(shape.index_in_axis(x, 0, d), (*lead, m), tuple(range(d)))
    ratios = ew.neg(ew.div(x, leading))
    # each row holds at most one coefficient and one 1, at positions that depend on whether the row is even or odd
    chosen, is_chosen, is_one = np.zeros((n, n), np.int32), np.zeros((n, n), bool), np.zeros((n, n), bool)
    for i in range(n):
        spots = [(i + 1, i + 2), (i - 1, i + 1)] if i % 2 == 0 else []
        for j, k in [(0, 1), (1, 2)] if i == 0 else spots:
            if 0 <= j < n:
                chosen[i, j], is_chosen[i, j] = k, True
        one = i + 2 if i % 2 == 0 else max(i - 2, 0)
        if one < n:
            is_one[i, one] = True
    flat = shape.broadcast(asarray(chosen.reshape(n * n)), (*lead, n * n), (d,))
    values = shape.reshape(indexing.take_along(ratios, flat, d), (*lead, n, n))
    spread = lambda v: shape.broadcast(asarray(v), (*lead, n, n), (d, d + 1))  # noqa: E731
    ones = conversion.convert(spread(is_one), dtype)
    return ew.select(spread(is_chosen), values, ones)


@library_function(static=("n", "mode"))
def _convolution_matrix(a: Any, n: int, mode: str) -> Any:
    t = operand_type("convolution_matrix", a)
    if t.ndim == 0 or t.shape[-1] == 0:
        raise ValueError(f"convolution_matrix: a must have one element or more on its last axis; got {t}.")
    m, last = t.shape[-1], t.ndim - 1
    cut = {"full": 0, "same": min(n, m) - 1, "valid": 2 * (min(n, m) - 1)}[mode]
    first = cut // 2
    # element (i, j) of the matrix for mode "full" is a[i - j]
    strip = shape.pad(shape.reverse(a, (last,)), 0, [(0, 0, 0)] * last + [(n - 1, n - 1, 0)])
    size = n + m - 1 - cut
    start = m + n - 1 - first - size
    return _along_diagonals(shape.slice_in_axis(strip, start, start + size + n - 1, last), size, n)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix M with M @ v = convolve(a, v, mode) for vectors v of n elements.

    >>> import atled.numpy as jnp
    >>> convolution_matrix(jnp.array([1.0, 2.0]), 2)
    Array([[1., 0.],
           [2., 1.],
           [0., 2.]], dtype=float32)
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolution_matrix: the mode is 'full', 'valid' or 'same'; got {mode!r}.")
    n = n.__index__()
    if n < 1:
        raise ValueError(f"convolution_matrix: vectors have at least one element; got n={n}.")
    return _convolution_matrix(asarray(a), n, mode)


# -- from sizes -------------------------------------------------------------------------------------------------------


def _exact(n: int, entry: Callable[[int, int], int]) -> Any:
    """The n x n matrix of integers entry(i, j), computed exactly and rounded to the default float dtype."""
    rows = [[float(entry(i, j)) for j in range(n)] for i in range(n)]
    with np.errstate(over="ignore"):
        return asarray(np.array(rows, np.float64).reshape(n, n).astype(dtypes.default("f")))


@library_function(static=("n", "dtype"))
def _hilbert(n: int, dtype: Any) -> Any:
    i, j = (shape.iota(dtype, (n, n), k) for k in (0, 1))
    return ew.div(1, ew.add(ew.add(i, j), 1))


def hilbert(n: int) -> Array:
    """The matrix with elements 1 / (i + j + 1).

    >>> hilbert(2).round(3)
    Array([[1.   , 0.5  ],
           [0.5  , 0.333]], dtype=float32)
    """
    return _hilbert(int(n), dtypes.default("f"))


@library_function(static=("n", "dtype"))
def _hadamard(n: int, dtype: Any) -> Any:
    i, j = (shape.iota(_INT, (n, n), k) for k in (0, 1))
    is_odd = ew.eq(ew.logical_and(ew.population_count(ew.logical_and(i, j)), 1), 1)
    return ew.select(is_odd, np.asarray(-1, dtype), np.asarray(1, dtype))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """The Hadamard matrix by Sylvester's construction: elements 1 and -1, orthogonal rows; n is a power of two.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = int(n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: the size must be a power of two; got {n}.")
    return _hadamard(n, dtypes.canonical(dtype))


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a "lower" or "upper" triangular matrix, or their product, "symmetric", by default.

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"pascal: the kind is 'symmetric', 'lower' or 'upper'; got {kind!r}.")
    choose = {"lower": lambda i, j: math.comb(i, j), "upper": lambda i, j: math.comb(j, i)}
    return _exact(int(n), choose.get(kind or "symmetric", lambda i, j: math.comb(i + j, j)))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal(n, kind)`.

    >>> invpascal(3)
    Array([[ 3., -3.,  1.],
           [-3.,  5., -2.],
           [ 1., -2.,  1.]], dtype=float32)
    """
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"invpascal: the kind is 'symmetric', 'lower' or 'upper'; got {kind!r}.")
    n = int(n)
    sign = lambda i, j: -1 if (i + j) % 2 else 1  # noqa: E731
    choose = {
        "lower": lambda i, j: sign(i, j) * math.comb(i, j),
        "upper": lambda i, j: sign(i, j) * math.comb(j, i),
    }
    both = lambda i, j: sign(i, j) * sum(math.comb(k, i) * math.comb(k, j) for k in range(n))  # noqa: E731
    return _exact(n, choose.get(kind or "symmetric", both))


def invhilbert(n: int) -> Array:
    """The inverse of `hilbert(n)`, whose elements are integers; in float32 they are exact up to n = 7.

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = int(n)

    def entry(i: int, j: int) -> int:
        size = (i + j + 1) * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2
        return -size if (i + j) % 2 else size

    return _exact(n, entry)


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix: orthonormal rows that contrast an element with all before it; `full` prepends a constant row.

    >>> helmert(2).round(3)
    Array([[ 0.707, -0.707]], dtype=float32)
    """
    n = int(n)
    if n < 1:
        raise ValueError(f"helmert: the size must be positive; got {n}.")
    k = np.arange(n, dtype=np.float64)[:, None]
    column = np.arange(n)[None, :]
    rows = np.where(column < k, 1.0, np.where(column == k, -k, 0.0)) / np.sqrt(np.maximum(k * (k + 1), 1))
    rows[0] = n**-0.5
    return asarray((rows if full else rows[1:]).astype(dtypes.default("f")))


@library_function(static=("n", "scale", "dtype"))
def _dft(n: int, scale: str | None, dtype: Any) -> Any:
    i, j = (shape.iota(dtypes.int64, (n, n), k) for k in (0, 1))
    turns = elementary.rem(ew.mul(i, j), max(n, 1))  # i j modulo n, in integers
    angle = ew.mul(conversion.convert(turns, dtypes.real_part(dtype)), -2 * math.pi / max(n, 1))
    factor = {None: 1.0, "n": 1.0 / max(n, 1), "sqrtn": max(n, 1) ** -0.5}[scale]
    return conversion.complex(ew.mul(elementary.cos(angle), factor), ew.mul(elementary.sin(angle), factor))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the DFT of n elements, divided by n if `scale` is "n", or by sqrt(n) if it is "sqrtn".

    >>> dft(2).real.round()
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    if scale not in (None, "n", "sqrtn"):
        raise ValueError(f"dft: the scale is None, 'n' or 'sqrtn'; got {scale!r}.")
    target_dtype = dtypes.canonical(complex if dtype is None else dtype)
    if dtypes.kind(target_dtype) != "c":
        raise ValueError(f"dft: a complex dtype is needed; got {target_dtype.name}.")
    return _dft(int(n), scale, target_dtype)
