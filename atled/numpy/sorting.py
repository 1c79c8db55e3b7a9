"""NumPy's sorting, searching and choosing: sort, searchsorted, nonzero, where, select, and indices as positions.

NaN comes last, and sorts are stable. Functions whose result has as many elements as a condition has true ones read the
condition; where its values are not known yet, `size` fixes the number. What `sets.py` and `statistics.py` are made of
is here too: `count_before`, `first_true`, `concrete` and `cut`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, overload

import numpy as np

from atled.core import dtypes, errors, rewriting
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray, static_shape
from atled.numpy.elementwise import isnan, to_bool
from atled.numpy.elementwise import where_both as _where
from atled.numpy.indexing import take
from atled.numpy.promotion import (
    broadcast,
    broadcast_shapes,
    broadcast_to,
    cast,
    inexact_dtype,
    operand_type,
    promote_dtypes,
)
from atled.numpy.shapes import ravel
from atled.ops import conversion, cumulative, indexing, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function, refuse_out

__all__ = [
    "argpartition", "argsort", "argwhere", "choose", "compress", "digitize", "extract", "flatnonzero", "lexsort",
    "nonzero", "partition", "piecewise", "ravel_multi_index", "searchsorted", "select", "sort", "sort_complex",
    "trim_zeros", "unravel_index", "where",
]  # fmt: skip


# -- order ------------------------------------------------------------------------------------------------------------


def keys_of(x: Any) -> list[Any]:
    """The sort keys of x. Complex numbers with a NaN part come last, as in NumPy."""
    if type_of(x).kind != "c":
        return [x]
    rank = [conversion.convert(isnan(part), dtypes.int32) for part in (conversion.imag(x), conversion.real(x))]
    return [ew.add(rank[0], ew.mul(rank[1], 2)), x]


def _before(x: Any, y: Any) -> Any:
    """Whether x stands before y in a sorted array."""
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
    """An array and the axis to sort along: the flat array if there is none."""
    t = operand_type(name, a)
    x = cast(a, t.dtype)
    if axis is None:
        return shape.reshape(x, (t.size,)), 0
    return x, check_axis(name, axis, t.ndim)


def _check_options(name: str, kind: Any, order: Any) -> None:
    if order is not None:
        raise ValueError(f"{name}: arrays have no fields to be ordered by; got order={order!r}.")
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
    descending: bool = False, dtype: Any = None,
) -> Array:  # fmt: skip
    """The positions that put the elements in order along an axis; equal ones keep their order, also if descending.

    >>> import atled.numpy as jnp
    >>> argsort(jnp.array([3.0, 1.0, 2.0]))
    Array([1, 2, 0], dtype=int32)
    """
    _check_options("argsort", kind, order)
    x, at = _along("argsort", a, axis)
    wanted = dtypes.default("i") if dtype is None else dtypes.canonical(dtype)
    if not descending:
        return sorted_with_order(x, at, wanted, bool(stable))[1]
    # sort the reversed array and reverse the result: equal elements keep their order
    _, found = sorted_with_order(shape.reverse(x, (at,)), at, wanted, bool(stable))
    last = np.asarray(type_of(x).shape[at] - 1).astype(wanted)
    return shape.reverse(ew.sub(last, found), (at,))


@library_function(static=("axis",))
def lexsort(keys: Any, axis: int = -1) -> Array:
    """The positions that sort by several keys: by the last one first, then the one before it, and so on.

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
    """The elements along the last axis as complex numbers, in order of real, then imaginary parts.

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


def partition(a: ArrayLike, kth: Any, axis: int | None = -1) -> Array:
    """The elements rearranged so that the one at `kth` is where sorting would put it; here they are all sorted.

    >>> partition(asarray([3, 1, 2]), 1)
    Array([1, 2, 3], dtype=int32)
    """
    _check_kth("partition", a, kth, axis)
    return sort(a, axis)


def argpartition(a: ArrayLike, kth: Any, axis: int | None = -1) -> Array:
    """The positions of the elements as `partition` arranges them; here those that sort.

    >>> argpartition(asarray([3, 1, 2]), 1)
    Array([1, 2, 0], dtype=int32)
    """
    _check_kth("argpartition", a, kth, axis)
    return argsort(a, axis)


# -- searching --------------------------------------------------------------------------------------------------------


def count_before(table: Any, values: Any, before: Callable[[Any, Any], Any]) -> Any:
    """How many elements of a table's last axis stand before each value, by bisection.

    `before(element, value)` is true up to some position and false from there on. The table is [*lead, n], the values
    are [*lead, m]; each of the log2(n) rounds reads one element for each value.
    """
    t, v = type_of(table), type_of(values)
    n, last = t.shape[-1], t.ndim - 1
    dtype = dtypes.int32 if n < 2**31 else dtypes.int64
    found = shape.zeros(ArrayType(v.shape, dtype))
    step = 1 << n.bit_length() >> 1
    while step:
        probe = ew.add(found, step)
        element = indexing.take_along(table, ew.sub(ew.minimum(probe, n), 1), last)
        found = ew.select(ew.logical_and(ew.le(probe, n), before(element, values)), probe, found)
        step >>= 1
    return found


def fixed(x: Any) -> Any:
    """x as a constant for derivatives, where only comparisons follow."""
    return bind(ew.StopGradient(), x) if isinstance(x, Array) else x


def search(table: Any, values: Any, side: str) -> Any:
    """Where values would be inserted into a sorted 1-d table of the same dtype, before or after what is equal."""
    dims = type_of(values).shape
    flat = shape.reshape(fixed(values), (prod(dims),))
    before = _before if side == "left" else lambda element, value: ew.logical_not(_before(value, element))
    return shape.reshape(count_before(fixed(table), flat, before), dims)


_METHODS = ("scan", "scan_unrolled", "sort", "compare_all", "default")


@library_function(static=("side", "method"))
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """The positions in sorted `a` where `v` would be inserted: before equal elements, or after them (side 'right').

    All methods give the same result, and are the same bisection here.

    >>> import atled.numpy as jnp
    >>> searchsorted(jnp.array([1.0, 2.0, 3.0]), jnp.array([2.0, 9.0]))
    Array([1, 3], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: the side is 'left' or 'right'; got {side!r}.")
    if method not in _METHODS:
        raise ValueError(f"searchsorted: the method is one of {_METHODS}; got {method!r}.")
    if operand_type("searchsorted", a).ndim != 1:
        raise ValueError(f"searchsorted: a must have one axis; got {type_of(a)}.")
    table, values = promote_dtypes("searchsorted", a, v)
    if sorter is not None:
        table = indexing.take_along(table, conversion.convert(sorter, dtypes.default("i")), 0)
    return conversion.convert(search(table, values, side), dtypes.default("i"))


@library_function(static=("right", "method"))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin that each element falls into; bins go up or down, and own their right edge if `right`.

    >>> import atled.numpy as jnp
    >>> digitize(jnp.array([0.5, 1.0, 7.0]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 2, 3], dtype=int32)
    """
    t = operand_type("digitize", bins)
    if t.ndim != 1:
        raise ValueError(f"digitize: the bins must have one axis; got {t}.")
    n, side = t.shape[0], "left" if right else "right"
    edges, values = promote_dtypes("digitize", bins, x)
    if n == 0:
        return shape.zeros(ArrayType(type_of(values).shape, dtypes.default("i")))
    goes_down = ew.logical_not(_rises(edges))
    up = shape.broadcast(goes_down, (n,), ())
    found = search(ew.select(up, shape.reverse(edges, (0,)), edges), values, side)
    return conversion.convert(ew.select(goes_down, ew.sub(n, found), found), dtypes.default("i"))


def _rises(edges: Any) -> Any:
    first, last = (shape.index_in_axis(edges, i, 0) for i in (0, type_of(edges).shape[0] - 1))
    return ew.logical_not(_before(last, first))


# -- results whose shape depends on values ----------------------------------------------------------------------------


def concrete(name: str, x: Any, way_out: str = "") -> np.ndarray:
    """The values of x; raises if they are not known while a program is being recorded."""
    if isinstance(x, Tracer):
        value = x.known()
        if value is None:
            raise errors.ConcretizationTypeError(
                f"{name}: the shape of the result depends on values, which are not known here; got a traced {x.type}."
                + x._where()
                + f"\n  try: {way_out or rewriting.called_also_with('size=n', name) or 'size=n, to fix the shape.'}"
            )
        x = value
    return np.asarray(x)


def cut(x: Any, count: int, axis: int = 0) -> Any:
    """The first elements of x along an axis; for concrete arrays, without compiling a program for each count."""
    if isinstance(x, Tracer):
        return shape.slice_in_axis(x, 0, count, axis)
    return asarray(np.asarray(x)[(slice(None),) * axis + (slice(count),)])


def first_true(mask: Any, size: int) -> tuple[Any, Any]:
    """The positions of the first `size` true elements of a 1-d mask, and which of them there are.

    Where there are no more, the position is the length of the mask.
    """
    n = type_of(mask).shape[0]
    wanted = shape.iota(np.int32, (size,), 0)
    if n == 0:
        return ew.mul(wanted, 0), ew.lt(wanted, 0)
    counts = cumulative.cumsum(conversion.convert(mask, dtypes.int32), 0)
    found = count_before(counts, wanted, ew.le)
    return found, ew.lt(found, np.asarray(n, type_of(found).dtype))


def as_size(name: str, size: Any) -> int:
    """A size as a Python number."""
    try:
        out = size.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: size must be an integer that is known; got {size!r}.") from None
    if out < 0:
        raise ValueError(f"{name}: size must not be negative; got {out}.")
    return out


@library_function(static=("size",))
def _nonzero(a: Any, fill_value: Any, size: int) -> tuple[Any, ...]:
    t = operand_type("nonzero", a)
    fills = fill_value if isinstance(fill_value, (tuple, list)) else (0 if fill_value is None else fill_value,) * t.ndim
    if len(fills) != t.ndim:
        raise ValueError(f"nonzero: one fill value is needed for each axis of {t}; got {len(fills)}.")
    found, is_real = first_true(shape.reshape(to_bool("nonzero", a), (t.size,)), size)
    dtype = dtypes.default("i")
    found = conversion.convert(found, dtype)
    out = []
    for i, n in enumerate(t.shape):
        stride = prod(t.shape[i + 1 :])
        whole = ew.div(found, max(stride, 1))
        inside = ew.sub(whole, ew.mul(ew.div(whole, max(n, 1)), n))
        out.append(ew.select(is_real, inside, broadcast_to(cast(fills[i], dtype), (size,))))
    return tuple(out)


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, one array for each axis.

    With `size` the result has that length: truncated, or filled with `fill_value`, 0 by default.

    >>> import atled.numpy as jnp
    >>> nonzero(jnp.array([0, 7, 0, 8]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
    """
    t = operand_type("nonzero", a)
    if t.ndim == 0:
        raise ValueError("nonzero: a 0-d array has no indices; use atleast_1d(x) first.")
    if size is not None:
        return _nonzero(a, fill_value, as_size("nonzero", size))
    return tuple([_positions(i) for i in np.nonzero(concrete("nonzero", a))])


def _positions(i: np.ndarray) -> Any:
    return asarray(i.astype(dtypes.default("i")))


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The positions in the flat array of the elements that are not zero; `size` fixes how many.

    >>> flatnonzero(asarray([[0, 5], [6, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


@library_function
def _columns(parts: Sequence[Any]) -> Any:
    return shape.concatenate([shape.reshape(p, (*type_of(p).shape, 1)) for p in parts], 1)


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The indices of the elements that are not zero, one row for each; `size` fixes how many rows.

    >>> import atled.numpy as jnp
    >>> argwhere(jnp.array([[0, 1], [2, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    if operand_type("argwhere", a).ndim:
        return _columns(list(nonzero(a, size=size, fill_value=fill_value)))
    rows = int(concrete("argwhere", a) != 0) if size is None else as_size("argwhere", size)
    return asarray(np.zeros((rows, 0), dtypes.default("i")))


@overload
def where(condition: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> Array: ...
def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """x where the condition holds, else y; with the condition alone, the indices where it holds, as `nonzero`.

    >>> import atled.numpy as jnp
    >>> where(jnp.array([True, False]), 1.0, jnp.zeros(2))
    Array([1., 0.], dtype=float32)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError(
            errors.explained(
                "where: x and y must both be given, or neither; got one of them.",
                rewriting.called_with("{0}", "{1}", "0.0", function="where") or "where(condition, x, 0.0).",
            )
        )
    if size is not None or fill_value is not None:
        raise ValueError("where: `size` and `fill_value` are for the form with the condition alone.")
    return _where(condition, x, y)


@library_function(static=("size", "axis"))
def _compress(condition: Any, a: Any, fill_value: Any, size: int, axis: int) -> Any:
    t = type_of(a)
    dims = (*t.shape[:axis], size, *t.shape[axis + 1 :])
    if t.shape[axis] == 0:
        return broadcast_to(cast(fill_value, t.dtype), dims)
    mask = to_bool("compress", condition)
    found, is_real = first_true(shape.slice_in_axis(mask, 0, min(type_of(mask).size, t.shape[axis]), 0), size)
    kept = shape.broadcast(is_real, dims, (axis,))
    return ew.select(kept, take(a, found, axis=axis, mode="clip"), cast(fill_value, t.dtype))


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices along an axis for which a 1-d condition holds; `size` fixes how many, filled up with `fill_value`.

    >>> import atled.numpy as jnp
    >>> compress(jnp.array([True, False, True]), jnp.arange(3.0))
    Array([0., 2.], dtype=float32)
    """
    refuse_out("compress", out)
    c, t = operand_type("compress", condition), operand_type("compress", a)
    if c.ndim != 1:
        raise ValueError(f"compress: the condition must have one axis; got {c}.")
    x, at = (ravel(a), 0) if axis is None else (asarray(a), check_axis("compress", axis, t.ndim))
    if size is None:
        m = type_of(x).shape[at]
        found = np.flatnonzero(concrete("compress", condition))
        if found.size and found[-1] >= m:
            raise ValueError(
                f"compress: the condition holds at {found[-1]}, past the end of axis {at} of {type_of(x)}."
            )
        return take(x, _positions(found), axis=at, mode="clip")
    return _compress(condition, x, fill_value, as_size("compress", size), at)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of the flat array for which a condition holds; `size` fixes how many.

    >>> extract(asarray([True, False, True]), asarray([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


# -- choosing between arrays ------------------------------------------------------------------------------------------


def _in_mode(name: str, index: Any, n: int, mode: str) -> Any:
    """Positions brought inside 0 to n - 1."""
    t = type_of(index)
    if mode == "wrap":
        return remainder(index, np.asarray(n).astype(t.dtype))
    top = np.asarray(min(n - 1, int(dtypes.iinfo(t.dtype).max)), t.dtype)
    return ew.clamp(np.zeros((), t.dtype), index, top)


def _check_positions(name: str, index: Any, n: int, mode: str) -> None:
    """Raise an error for a mode, or in mode 'raise' about positions out of bounds."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"{name}: the mode is 'raise', 'wrap' or 'clip'; got {mode!r}.")
    t = operand_type(name, index)
    if t.kind not in "biu":
        raise TypeError(f"{name}: positions must be integers; got {t}.")
    if mode == "raise":
        host = concrete(name, index, "mode='clip' or mode='wrap', which need not look at the values.")
        if host.size and not (host.min() >= 0 and host.max() < n):
            raise ValueError(f"{name}: positions must be between 0 and {n - 1}; try mode='clip' or mode='wrap'.")


@library_function(static=("mode",))
def _choose(a: Any, choices: list[Any], mode: str) -> Any:
    values = promote_dtypes("choose", *choices)
    index = cast(a, type_of(a).dtype) if type_of(a).kind != "b" else conversion.convert(a, dtypes.int8)
    dims = broadcast_shapes(*[type_of(v).shape for v in (index, *values)])
    index = broadcast_to(_in_mode("choose", index, len(values), mode), dims)
    out = broadcast_to(values[0], dims)
    for i, v in enumerate(values[1:], 1):
        out = ew.select(ew.eq(index, i), broadcast_to(v, dims), out)
    return out


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """For each place, the element of the array among the choices that an index names.

    In mode 'raise' the index is read to be checked; 'wrap' and 'clip' bring it inside.

    >>> import atled.numpy as jnp
    >>> choose(jnp.array([0, 1]), [jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])])
    Array([ 1., 20.], dtype=float32)
    """
    refuse_out("choose", out)
    if isinstance(choices, (list, tuple)):
        arrays = list(choices)
    else:
        arrays = [choices[i] for i in range(operand_type("choose", choices).shape[0])]
    if not arrays:
        raise ValueError("choose: at least one choice is needed.")
    _check_positions("choose", a, len(arrays), mode)
    return _choose(a, arrays, "clip" if mode == "raise" else mode)


@library_function
def _select(conditions: list[Any], choices: list[Any], default: Any) -> Any:
    *values, out = promote_dtypes("select", *choices, default)
    for c, v in zip(reversed(conditions), reversed(values), strict=True):
        out = ew.select(*broadcast("select", [to_bool("select", c), v, out]))
    return out


def select(condlist: Any, choicelist: Any, default: ArrayLike = 0) -> Array:
    """For each place, the element of the choice that belongs to the first condition that holds, else the default.

    >>> import atled.numpy as jnp
    >>> x = jnp.arange(4.0)
    >>> select([x < 1, x < 3], [-x, 10 * x], 7.0)
    Array([-0., 10., 20.,  7.], dtype=float32)
    """
    conditions, choices = list(condlist), list(choicelist)
    if not conditions or len(conditions) != len(choices):
        raise ValueError(f"select: as many conditions as choices are needed; got {len(conditions)} and {len(choices)}.")
    types = [operand_type("select", c) for c in conditions]
    if any(t.kind != "b" for t in types):
        raise TypeError(f"select: conditions must be of bools; got {', '.join(map(str, types))}.")
    return _select(conditions, choices, default)


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """A function in pieces: where a condition holds, the value of its function or number; the last that holds counts.

    One more function than conditions is for where none holds; else it is 0. Functions get all of x.

    >>> import atled.numpy as jnp
    >>> piecewise(jnp.array([-2.0, 3.0]), [jnp.array([True, False])], [lambda x: -x, lambda x: x * x])
    Array([2., 9.], dtype=float32)
    """
    array: Any = asarray(x)
    if isinstance(condlist, (list, tuple)):
        is_single = bool(array.ndim) and np.ndim(condlist[0]) == 0
    else:
        is_single = operand_type("piecewise", condlist).ndim < (2 if array.ndim else 1)
    conditions = [asarray(c) for c in ([condlist] if is_single else condlist)]
    pieces: list[Any] = list(funclist)
    if len(pieces) not in (len(conditions), len(conditions) + 1):
        count = len(conditions)
        raise ValueError(f"piecewise: {count} conditions need {count} or {count + 1} functions; got {len(pieces)}.")
    rest = pieces.pop() if len(pieces) > len(conditions) else 0
    value = lambda f: f(array, *args, **kw) if callable(f) else f  # noqa: E731
    return _pieces(array, conditions, [value(f) for f in pieces], value(rest))


@library_function
def _pieces(x: Any, conditions: list[Any], values: list[Any], rest: Any) -> Any:
    t = type_of(x)
    out = broadcast_to(cast(rest, t.dtype), t.shape)
    for c, v in zip(conditions, values, strict=True):
        out = ew.select(broadcast_to(to_bool("piecewise", c), t.shape), broadcast_to(cast(v, t.dtype), t.shape), out)
    return out


# -- indices ----------------------------------------------------------------------------------------------------------


@library_function(static=("shape",))
def _unravel(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    t = operand_type("unravel_index", indices)
    if t.kind not in "iu":
        raise TypeError(f"unravel_index: indices must be integers; got {t}.")
    total = prod(shape)
    left = cast(indices, t.dtype)
    if t.kind == "i":
        left = ew.select(ew.lt(left, 0), ew.add(left, total), left)
    left = _in_mode("unravel_index", left, total, "clip")
    out = []
    for n in reversed(shape):
        whole = ew.div(left, max(n, 1))
        out.append(ew.sub(left, ew.mul(whole, n)))
        left = whole
    return tuple(reversed(out))


def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """The index on each axis of a shape for positions in the flat array; positions out of bounds are moved inside.

    >>> import atled.numpy as jnp
    >>> unravel_index(jnp.array([5, 1]), (2, 3))
    (Array([1, 0], dtype=int32), Array([2, 1], dtype=int32))
    """
    return _unravel(indices, static_shape("unravel_index", shape))


@library_function(static=("dims", "modes", "order", "dtype"))
def _ravel(multi_index: list[Any], dims: tuple[int, ...], modes: tuple[str, ...], order: str, dtype: Any) -> Any:
    parts = broadcast("ravel_multi_index", [conversion.convert(i, dtype) for i in multi_index])
    pairs = list(zip(parts, dims, modes, strict=True))
    out = None
    for i, n, mode in pairs if order == "C" else reversed(pairs):
        i = _in_mode("ravel_multi_index", i, n, mode)
        out = i if out is None else ew.add(ew.mul(out, n), i)
    return out


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C", *, dtype: Any = None
) -> Array:
    """The positions in the flat array for an index on each axis of a shape.

    In mode 'raise' the indices are read to be checked; 'wrap' and 'clip' bring them inside.

    >>> import atled.numpy as jnp
    >>> ravel_multi_index((jnp.array([1, 0]), jnp.array([2, 1])), (2, 3))
    Array([5, 1], dtype=int32)
    """
    parts, lengths = list(multi_index), tuple([d.__index__() for d in dims])
    modes = tuple(mode) if isinstance(mode, (tuple, list)) else (mode,) * len(lengths)
    if len(parts) != len(lengths) or len(modes) != len(lengths) or order not in ("C", "F"):
        raise ValueError(
            f"ravel_multi_index: one index and mode for each of {len(lengths)} axes, and order 'C' or 'F', are needed; "
            f"got {len(parts)}, {len(modes)} and {order!r}."
        )
    for i, n, m in zip(parts, lengths, modes, strict=True):
        _check_positions("ravel_multi_index", i, n, m)
    wanted = dtypes.default("i") if dtype is None else dtypes.canonical(dtype)
    modes = tuple(["clip" if m == "raise" else m for m in modes])
    return _ravel(parts, lengths, modes, order, wanted)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Array:
    """The array without the zeros at the front ('f') and at the back ('b') of its axes.

    >>> import atled.numpy as jnp
    >>> trim_zeros(jnp.array([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    if set(trim.lower()) - set("fb"):
        raise ValueError(f"trim_zeros: trim is made of 'f' and 'b'; got {trim!r}.")
    x = asarray(filt)
    axes = check_axes("trim_zeros", axis, x.ndim)
    found = np.nonzero(concrete("trim_zeros", x, "keep the zeros, or trim outside of jit."))
    start, stop = [0] * x.ndim, list(x.shape)
    for i in axes:
        if not found[i].size:
            stop[i] = 0
            continue
        start[i] = int(found[i].min()) if "f" in trim.lower() else 0
        stop[i] = int(found[i].max()) + 1 if "b" in trim.lower() else x.shape[i]
    return x[tuple([slice(a, b) for a, b in zip(start, stop, strict=True)])] if x.ndim else x
