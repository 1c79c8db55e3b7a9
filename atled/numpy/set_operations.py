"""NumPy's functions on sets of values: unique elements, membership, unions and differences, counts.

All functions sort, which makes equal elements neighbours. With `size`, a call is a single program; without it, the same
program runs with a size that holds every element, and its result is truncated.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axis
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_to, cast, operand_type, promote_dtypes
from atled.numpy.searching import as_size, concrete, cut, first_true, fixed, search
from atled.numpy.sorting import keys_of, sorted_with_order
from atled.numpy.special_values import isnan
from atled.ops import conversion, cumulative, indexing, reduction, segments, shape, sorting
from atled.ops import elementwise as ew
from atled.ops.placement import placed
from atled.staging.jit import library_function

__all__ = [
    "bincount", "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


def _rows(x: Any, at: Any) -> Any:
    """Rows of x at positions along its first axis."""
    t = type_of(x)
    vectors = shape.reshape(at, (*type_of(at).shape, 1))
    axes = indexing.GatherAxes(tuple(range(type_of(at).ndim, type_of(at).ndim + t.ndim - 1)), (0,), (0,))
    return bind(indexing.Gather(axes, (1, *t.shape[1:]), "clip"), x, vectors)


def _flat(x: Any) -> Any:
    return shape.reshape(x, (type_of(x).size,))


def _is_new(columns: list[Any], equal_nan: bool) -> Any:
    """A mask of the rows of sorted columns that differ from the previous row; the first is always true."""
    n = type_of(columns[0]).shape[0]
    differs = None
    for c in columns:
        a, b = shape.slice_in_axis(c, 1, n, 0), shape.slice_in_axis(c, 0, n - 1, 0)
        other = ew.ne(a, b)
        if equal_nan and type_of(c).kind in "fc":
            other = ew.logical_and(other, ew.logical_not(ew.logical_and(isnan(a), isnan(b))))
        differs = other if differs is None else ew.logical_or(differs, other)
    return shape.pad(differs, True, [(1, 0, 0)])


def _grouped(x: Any, equal_nan: bool) -> tuple[Any, Any]:
    """The permutation that sorts rows along the first axis, and a mask of the sorted rows that differ from the last."""
    t = type_of(x)
    n, width = t.shape[0], prod(t.shape[1:])
    table = shape.reshape(fixed(x), (n, width))
    if equal_nan and t.kind == "c":  # all NaNs count as equal
        nan = np.asarray(complex(np.nan, np.nan), t.dtype)
        table = ew.select(isnan(table), nan, table)
    columns = [shape.index_in_axis(table, i, 1) for i in range(width)] or [shape.iota(np.int8, (n, 1), 1)]
    columns = [shape.reshape(c, (n,)) for c in columns]
    keys = [k for c in columns for k in keys_of(c)]
    *ordered, order = sorting.sort((*keys, shape.iota(np.int32, (n,), 0)), 0, len(keys))
    return order, _is_new(ordered, equal_nan)


class _Groups(NamedTuple):
    values: Any
    index: Any
    inverse: Any
    counts: Any
    number: Any


@library_function(static=("size", "axis", "equal_nan"))
def _unique(ar: Any, fill_value: Any, size: int, axis: int | None, equal_nan: bool) -> _Groups:
    """The first `size` distinct rows along an axis; if there are fewer, the first row or a fill value pads them."""
    t = type_of(ar)
    x = _flat(ar) if axis is None else shape.move_axis(ar, axis, 0)
    n, integer = type_of(x).shape[0], dtypes.default("i")
    if n == 0:
        blank = shape.zeros(ArrayType((size,), integer))
        filled = broadcast_to(cast(0 if fill_value is None else fill_value, t.dtype), (size, *type_of(x).shape[1:]))
        inverse = shape.zeros(ArrayType(t.shape if axis is None else (0,), integer))
        return _Groups(_moved_back(filled, axis), blank, inverse, blank, np.zeros((), integer))
    order, is_new = _grouped(x, equal_nan)
    starts, is_real = first_true(is_new, size + 1)
    is_real = shape.slice_in_axis(is_real, 0, size, 0)
    begin, end = shape.slice_in_axis(starts, 0, size, 0), shape.slice_in_axis(starts, 1, size + 1, 0)
    index = _rows(order, ew.select(is_real, begin, np.zeros((), type_of(begin).dtype)))
    values = _rows(x, index)
    if fill_value is not None:
        mask = shape.broadcast(is_real, type_of(values).shape, (0,))
        values = ew.select(mask, values, broadcast_to(cast(fill_value, t.dtype), type_of(values).shape))
    group = cumulative.cumsum(conversion.convert(is_new, integer), 0)
    number = shape.index_in_axis(group, n - 1, 0)
    board = shape.zeros(ArrayType((n,), integer))
    scatter = indexing.Scatter(indexing.ScatterAxes((), (0,), (0,)), "set", "promise", True)
    inverse = bind(scatter, board, shape.reshape(order, (n, 1)), ew.sub(group, 1))
    inverse = shape.reshape(inverse, t.shape) if axis is None else inverse
    counts = conversion.convert(ew.sub(end, begin), integer)
    return _Groups(_moved_back(values, axis), conversion.convert(index, integer), inverse, counts, number)


def _moved_back(values: Any, axis: int | None) -> Any:
    return values if axis is None else shape.move_axis(values, 0, axis)


def _groups(name: str, ar: Any, axis: int | None, equal_nan: bool, size: Any, fill_value: Any) -> _Groups:
    """The distinct elements with their groups: `size` of them, or all."""
    t = operand_type(name, ar)
    at = None if axis is None else check_axis(name, axis, t.ndim)
    n = t.size if at is None else t.shape[at]
    if size is not None:
        size = as_size(name, size)
        if n == 0 and size and fill_value is None:
            raise ValueError(f"{name}: `fill_value` is needed for {size} elements, because there are none; got {t}.")
        return _unique(ar, fill_value, size, at, equal_nan)
    if isinstance(ar, Tracer):
        concrete(name, ar)
    groups = _unique(ar, fill_value, n, at, equal_nan)
    count = int(concrete(name, groups.number))
    values = cut(groups.values, count, at or 0)
    return _Groups(values, cut(groups.index, count), groups.inverse, cut(groups.counts, count), count)


@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = False, return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True,
) -> Array: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any: ...  # fmt: skip
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct elements in order, or the distinct slices along an axis.

    With `size` the result has that length: it is truncated, or filled with `fill_value`, by default the smallest
    element. Optionally also returns first positions, inverse indices and counts.

    >>> import atled.numpy as jnp
    >>> unique(jnp.array([3, 1, 3]), size=3, fill_value=0)
    Array([1, 3, 0], dtype=int32)
    """
    groups = _groups("unique", ar, axis, bool(equal_nan), size, fill_value)
    extras = ((return_index, groups.index), (return_inverse, groups.inverse), (return_counts, groups.counts))
    more = [part for is_wanted, part in extras if is_wanted]
    return (groups.values, *more) if more else groups.values


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements with first positions, inverse indices and counts; every NaN is distinct.

    >>> values, first, inverse, counts = unique_all(asarray([5, 3, 5]))
    >>> values, first, counts
    (Array([3, 5], dtype=int32), Array([1, 0], dtype=int32), Array([1, 2], dtype=int32))
    """
    return UniqueAll(*_groups("unique_all", x, None, False, size, fill_value)[:4])


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The distinct elements and how often each occurs; every NaN is distinct.

    >>> values, counts = unique_counts(asarray([5, 3, 5]))
    >>> values, counts
    (Array([3, 5], dtype=int32), Array([1, 2], dtype=int32))
    """
    groups = _groups("unique_counts", x, None, False, size, fill_value)
    return UniqueCounts(groups.values, groups.counts)


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The distinct elements and, for each element, its position among them; every NaN is distinct.

    >>> values, inverse = unique_inverse(asarray([5, 3, 5]))
    >>> values[inverse]
    Array([5, 3, 5], dtype=int32)
    """
    groups = _groups("unique_inverse", x, None, False, size, fill_value)
    return UniqueInverse(groups.values, groups.inverse)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements; every NaN is distinct.

    >>> unique_values(asarray([5, 3, 5]))
    Array([3, 5], dtype=int32)
    """
    return _groups("unique_values", x, None, False, size, fill_value).values


# -- two sets ---------------------------------------------------------------------------------------------------------

_COMPARE_ALL = 8  # up to this many elements, pairwise comparison is faster than sorting


def _found(x: Any, table: Any) -> tuple[Any, Any]:
    """Whether elements are in a sorted, nonempty 1-d table, and the position of the first equal element."""
    at = search(table, x, "left")
    return ew.eq(_rows(table, ew.minimum(at, type_of(table).shape[0] - 1)), x), at


@library_function(static=("is_inverted",))
def _isin(element: Any, test_elements: Any, is_inverted: bool) -> Any:
    x, table = promote_dtypes("isin", element, test_elements)
    x, table = fixed(x), _flat(fixed(table))
    n, dims = type_of(table).shape[0], type_of(x).shape
    if n <= _COMPARE_ALL:
        out = broadcast_to(np.False_, dims)
        for i in range(n):
            out = ew.logical_or(out, ew.eq(x, shape.index_in_axis(table, i, 0)))
    else:
        out, _ = _found(x, sorted_with_order(table, 0)[0])
    return ew.logical_not(out) if is_inverted else out


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among the test elements, or with `invert` is not. NaN equals no element.

    >>> import atled.numpy as jnp
    >>> isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"isin: the method is 'auto', 'compare_all', 'binary_search' or 'sort'; got {method!r}.")
    return _isin(element, test_elements, bool(invert))


def _take_kept(values: Any, kept: Any, size: int, fill: Any, default: Any) -> tuple[Any, Any, Any]:
    """The first `size` values where `kept` is true, padded; their positions; and the number of true elements."""
    n, dtype = type_of(values).shape[0], type_of(values).dtype
    at, is_real = first_true(kept, size)
    number = reduction.reduce_sum(conversion.convert(kept, dtypes.default("i")), (0,))
    if n == 0 or size == 0:
        return broadcast_to(cast(0 if fill is None else fill, dtype), (size,)), at, number
    out = _rows(values, at)
    if fill is None and default == "smallest":
        is_empty = ew.eq(number, 0)
        fill = ew.select(is_empty, np.zeros((), dtype), shape.index_in_axis(out, 0, 0))
        fill = shape.broadcast(fill, (size,), ())
    else:
        fill = cast(0 if fill is None else fill, dtype)
    return ew.select(is_real, out, broadcast_to(fill, (size,))), at, number


def _membership(x: Any, table: Any) -> tuple[Any, Any]:
    """Like `_found`, for a table that may be empty."""
    if type_of(table).shape[0] == 0:
        dims = type_of(x).shape
        return broadcast_to(np.False_, dims), broadcast_to(np.zeros((), np.int32), dims)
    return _found(x, table)


def _distinct(x: Any) -> tuple[Any, Any, Any]:
    """A sorted 1-d array, the sorting permutation, and a mask of the elements that are the first of their value."""
    ordered, order = sorted_with_order(x, 0)
    if type_of(x).shape[0] == 0:
        return ordered, order, broadcast_to(np.False_, (0,))
    return ordered, order, _is_new([ordered], True)


@library_function(static=("size",))
def _intersect(ar1: Any, ar2: Any, fill_value: Any, size: int) -> tuple[Any, ...]:
    x, y = (_flat(v) for v in promote_dtypes("intersect1d", ar1, ar2))
    (a, a_order, is_first), (b, b_order, _) = _distinct(x), _distinct(y)
    is_shared, partner = _membership(fixed(a), fixed(b))
    values, at, number = _take_kept(a, ew.logical_and(is_first, is_shared), size, fill_value, "smallest")
    integer = dtypes.default("i")
    positions = []
    for order, place in ((a_order, at), (b_order, _rows(partner, at) if type_of(a).shape[0] else at)):
        n = type_of(order).shape[0]
        indices = _rows(order, place) if n else place
        is_real = ew.lt(shape.iota(np.int32, (size,), 0), conversion.convert(number, dtypes.int32))
        positions.append(
            conversion.convert(ew.select(is_real, indices, np.asarray(n, type_of(indices).dtype)), integer)
        )
    return values, *positions, number


@library_function(static=("size", "keeps_all"))
def _difference(ar1: Any, ar2: Any, fill_value: Any, size: int, keeps_all: bool) -> tuple[Any, Any]:
    x, y = (_flat(v) for v in promote_dtypes("setdiff1d", ar1, ar2))
    table = sorted_with_order(y, 0)[0]
    if keeps_all:
        ordered, mask = x, ew.logical_not(_membership(fixed(x), fixed(table))[0])
    else:
        ordered, _, is_first = _distinct(x)
        mask = ew.logical_and(is_first, ew.logical_not(_membership(fixed(ordered), fixed(table))[0]))
    values, _, number = _take_kept(ordered, mask, size, fill_value, "zero")
    return values, number


@library_function(static=("size",))
def _exclusive(ar1: Any, ar2: Any, fill_value: Any, size: int) -> tuple[Any, Any]:
    x, y = (_flat(v) for v in promote_dtypes("setxor1d", ar1, ar2))
    (a, _, is_first_a), (b, _, is_first_b) = _distinct(x), _distinct(y)
    only_a = ew.logical_and(is_first_a, ew.logical_not(_membership(fixed(a), fixed(b))[0]))
    only_b = ew.logical_and(is_first_b, ew.logical_not(_membership(fixed(b), fixed(a))[0]))
    both, mask = shape.concatenate([a, b], 0), shape.concatenate([only_a, only_b], 0)
    keys = keys_of(both)
    *_, ordered, mask = sorting.sort((*keys, mask), 0, len(keys))
    values, _, number = _take_kept(ordered, mask, size, fill_value, "smallest")
    return values, number


def _cut_all(name: str, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """All results but the last, truncated to the number of elements found, which is the last result."""
    count = int(concrete(name, found[-1]))
    return tuple([cut(x, count) for x in found[:-1]])


def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """The distinct elements that two arrays share, in order; with `return_indices`, also their first positions in both.

    With `size` the result has that length: it is padded with `fill_value`, by default its smallest element, and
    positions are padded with the lengths of `ar1` and `ar2`.

    >>> import atled.numpy as jnp
    >>> intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 7]))
    Array([2, 3], dtype=int32)
    """
    n, m = (operand_type("intersect1d", v).size for v in (ar1, ar2))
    results = _intersect(ar1, ar2, fill_value, min(n, m) if size is None else as_size("intersect1d", size))
    results = _cut_all("intersect1d", results) if size is None else results[:-1]
    return results if return_indices else results[0]


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of the first array that are not in the second, in order; `size` fixes their number.

    >>> import atled.numpy as jnp
    >>> setdiff1d(jnp.array([3, 1, 2, 3]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    n = operand_type("setdiff1d", ar1).size
    results = _difference(ar1, ar2, fill_value, n if size is None else as_size("setdiff1d", size), bool(assume_unique))
    return results[0] if size is not None else _cut_all("setdiff1d", results)[0]


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements that are in exactly one of two arrays, in order; `size` fixes their number.

    >>> setxor1d(asarray([1, 2, 3]), asarray([2, 3, 4]))
    Array([1, 4], dtype=int32)
    """
    n, m = (operand_type("setxor1d", v).size for v in (ar1, ar2))
    results = _exclusive(ar1, ar2, fill_value, n + m if size is None else as_size("setxor1d", size))
    return results[0] if size is not None else _cut_all("setxor1d", results)[0]


@library_function
def _joined(ar1: Any, ar2: Any) -> Any:
    return shape.concatenate([_flat(v) for v in promote_dtypes("union1d", ar1, ar2)], 0)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of two arrays, in order; `size` fixes their number.

    >>> import atled.numpy as jnp
    >>> union1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    return _groups("union1d", _joined(ar1, ar2), None, True, size, fill_value).values


# -- counting ---------------------------------------------------------------------------------------------------------


@library_function(static=("length",))
def _bincount(x: Any, weights: Any, length: int) -> Any:
    t = type_of(x)
    if weights is None:
        weights = broadcast_to(np.ones((), dtypes.default("i")), t.shape)
    elif type_of(weights).kind == "b":
        weights = conversion.convert(weights, dtypes.default("i"))
    # clipped to 0 ... length first: the conversion to int32 could wrap around
    top = np.asarray(min(length, int(dtypes.iinfo(t.dtype).max)), t.dtype)
    bins = conversion.convert(ew.clamp(np.zeros((), t.dtype), x, top), dtypes.int32)
    return segments.segment_sum(weights, bins, length)


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """How often each number 0, 1, 2, ... occurs in a 1-d array of integers, or the sum of the weights of its elements.

    `length` fixes the length of the result: larger numbers are dropped, and negative numbers count as 0. Without it,
    negative numbers raise an error. Sums have the dtype of the weights.

    >>> import atled.numpy as jnp
    >>> bincount(jnp.array([0, 2, 2]), length=4)
    Array([1, 0, 2, 0], dtype=int32)
    """
    t = operand_type("bincount", x)
    if t.kind not in "biu" or t.ndim != 1:
        raise TypeError(f"bincount: integers with one axis are needed; got {t}.")
    if weights is not None and operand_type("bincount", weights).shape != t.shape:
        raise ValueError(f"bincount: one weight is needed for each element of {t}; got {type_of(weights)}.")
    x = asarray(x, dtypes.default("i")) if t.kind == "b" else x
    if length is None:
        host = concrete("bincount", x, "length=n, which fixes the shape of the result.")
        if host.size and host.min() < 0:
            raise ValueError("bincount: the numbers must not be negative.")
        length = max(minlength, int(host.max()) + 1 if host.size else 0)
    return placed(_bincount(x, weights, as_size("bincount", length)), out_sharding, "bincount")
