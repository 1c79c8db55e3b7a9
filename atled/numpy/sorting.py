"""NumPy's sorting: `sort`, `argsort`, `lexsort`, `partition`. NaN comes last, and sorts are stable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axis
from atled.core.types import ArrayType
from atled.numpy.promotion import cast, inexact_dtype, operand_type
from atled.numpy.special_values import isnan
from atled.ops import conversion, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex"]


def keys_of(x: Any) -> list[Any]:
    """The arrays by which x is sorted. Complex numbers with a NaN part come last, as in NumPy."""
    if type_of(x).kind != "c":
        return [x]
    rank = [conversion.convert(isnan(part), dtypes.int32) for part in (conversion.imag(x), conversion.real(x))]
    return [ew.add(rank[0], ew.mul(rank[1], 2)), x]


def sorts_before(x: Any, y: Any) -> Any:
    """Whether x comes before y in a sorted array."""
    if type_of(x).kind == "c":
        pairs = list(zip(_real_keys(x), _real_keys(y), strict=True))
    else:
        pairs = [(x, y)]
    out = None
    for a, b in reversed(pairs):
        less, same = ew.lt(a, b), ew.eq(a, b)
        if type_of(a).kind == "f":
            a_nan, b_nan = ew.ne(a, a), ew.ne(b, b)
            less = ew.logical_or(less, ew.logical_and(b_nan, ew.logical_not(a_nan)))
            same = ew.logical_or(same, ew.logical_and(a_nan, b_nan))
        out = less if out is None else ew.logical_or(less, ew.logical_and(same, out))
    return out


def _real_keys(x: Any) -> list[Any]:
    return [keys_of(x)[0], conversion.real(x), conversion.imag(x)]


def sorted_with_order(x: Any, axis: int, dtype: Any = np.int32, is_stable: bool = True) -> tuple[Any, Any]:
    """x sorted along an axis, and the positions that its elements came from."""
    keys = keys_of(x)
    *_, ordered, order = sorting.sort((*keys, shape.iota(dtype, type_of(x).shape, axis)), axis, len(keys), is_stable)
    return ordered, order


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """An array and the axis to sort along; without an axis, the flattened array and 0."""
    t = operand_type(name, a)
    x = cast(a, t.dtype)
    if axis is None:
        return shape.reshape(x, (t.size,)), 0
    return x, check_axis(name, axis, t.ndim)


def _check_options(name: str, kind: Any, order: Any) -> None:
    if order is not None:
        raise ValueError(f"{name}: arrays have no fields to order by; got order={order!r}.")
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"{name}: the kind is None or the name of a sorting algorithm; got {kind!r}.")


@library_function(static=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: Any = None,
    order: Any = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in order along an axis, or of the flat array; NaN comes last, or first if descending.

    >>> import atled.numpy as jnp
    >>> sort(jnp.array([3.0, 1.0, 2.0]))
    Array([1., 2., 3.], dtype=float32)
    """
    _check_options("sort", kind, order)
    x, at = _along("sort", a, axis)
    keys = keys_of(x)
    ordered = sorting.sort(keys, at, len(keys), bool(stable))[-1]
    return shape.reverse(ordered, (at,)) if descending else ordered


@library_function(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: Any = None, order: Any = None, stable: bool = True,
    descending: bool = False, dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """The indices that sort the elements along an axis; equal elements keep their order, also if descending.

    >>> import atled.numpy as jnp
    >>> argsort(jnp.array([3.0, 1.0, 2.0]))
    Array([1, 2, 0], dtype=int32)
    """
    _check_options("argsort", kind, order)
    x, at = _along("argsort", a, axis)
    index_dtype = dtypes.default("i") if dtype is None else dtypes.canonical(dtype)
    if not descending:
        return sorted_with_order(x, at, index_dtype, bool(stable))[1]
    # sort the reversed array and reverse the result: equal elements keep their order
    _, indices = sorted_with_order(shape.reverse(x, (at,)), at, index_dtype, bool(stable))
    last = np.asarray(type_of(x).shape[at] - 1).astype(index_dtype)
    return shape.reverse(ew.sub(last, indices), (at,))


@library_function(static=("axis",))
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The indices that sort by several keys: the last key is the primary one, the first key the least significant.

    >>> import atled.numpy as jnp
    >>> lexsort((jnp.array([1, 0, 2]), jnp.array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    if isinstance(keys, (tuple, list)):
        rows = list(keys)
    else:
        rows = [shape.index_in_axis(keys, i, 0) for i in range(operand_type("lexsort", keys).shape[0])]
    if not rows:
        raise TypeError("lexsort: at least one key is needed.")
    types = [operand_type("lexsort", k) for k in rows]
    if any(t.shape != types[0].shape for t in types):
        raise ValueError(f"lexsort: keys must have the same shape; got {', '.join(map(str, types))}.")
    if types[0].ndim == 0:
        return shape.zeros(ArrayType((), dtypes.default("i")))
    at = check_axis("lexsort", axis, types[0].ndim)
    full = [part for k in reversed(rows) for part in keys_of(k)]
    return sorting.sort((*full, shape.iota(dtypes.default("i"), types[0].shape, at)), at, len(full))[-1]


@library_function
def sort_complex(a: ArrayLike) -> Array:
    """The array as complex numbers, sorted along the last axis by real, then imaginary part.

    >>> from atled.numpy import asarray
    >>> sort_complex(asarray([2 + 1j, 1 + 2j, 2 - 1j]))
    Array([1.+2.j, 2.-1.j, 2.+1.j], dtype=complex64)
    """
    t = operand_type("sort_complex", a)
    if t.ndim == 0:
        raise ValueError(f"sort_complex: at least one axis is needed; got {t}.")
    return sort(conversion.convert(a, dtypes.complex_of(inexact_dtype(t.dtype))))


def _check_kth(name: str, a: Any, kth: Any, axis: int | None) -> None:
    t = operand_type(name, a)
    n = t.size if axis is None else t.shape[check_axis(name, axis, t.ndim)]
    for k in kth if isinstance(kth, (tuple, list)) else (kth,):
        if not -n <= k.__index__() < n:
            raise ValueError(f"{name}: position {k} is out of bounds for {n} elements.")


def partition(a: ArrayLike, kth: int, axis: int | None = -1) -> Array:
    """The elements, with the smaller ones before position `kth` and the larger ones after it; all are sorted here.

    >>> from atled.numpy import asarray
    >>> partition(asarray([3, 1, 2]), 1)
    Array([1, 2, 3], dtype=int32)
    """
    _check_kth("partition", a, kth, axis)
    return sort(a, axis)


def argpartition(a: ArrayLike, kth: int, axis: int | None = -1) -> Array:
    """The indices that arrange the elements like `partition`; here they are the indices that sort.

    >>> from atled.numpy import asarray
    >>> argpartition(asarray([3, 1, 2]), 1)
    Array([1, 2, 0], dtype=int32)
    """
    _check_kth("argpartition", a, kth, axis)
    return argsort(a, axis)
