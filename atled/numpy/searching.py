"""Positions of elements: NumPy's `searchsorted`, `digitize`, `nonzero`, `argwhere` and `unravel_index`.

Functions whose result length depends on a condition read its values; a traced condition needs `size`, the length.
Helpers of `set_operations.py` and `statistics.py` are here, too: `count_before`, `first_true`, `concrete` and `cut`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, SupportsIndex

import numpy as np

from atled.core import dtypes, error_hints, errors
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axes
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray, static_shape
from atled.numpy.elementwise_family import to_bool
from atled.numpy.promotion import broadcast, broadcast_to, cast, operand_type, promote_dtypes
from atled.numpy.shapes import ravel
from atled.numpy.sorting import sorts_before
from atled.ops import conversion, cumulative, indexing, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = [
    "argwhere", "digitize", "flatnonzero", "nonzero", "ravel_multi_index", "searchsorted", "trim_zeros",
    "unravel_index",
]  # fmt: skip


def count_before(table: Any, values: Any, before: Callable[[Any, Any], Any]) -> Any:
    """How many elements of a table's last axis precede each value, by bisection.

    `before(element, value)` is true up to some position and false from there on. The table is [*lead, n], the values
    are [*lead, m]; each of the log2(n) rounds reads one element for each value.
    """
    t, v = type_of(table), type_of(values)
    n, last = t.shape[-1], t.ndim - 1
    dtype = dtypes.int32 if n < 2**31 else dtypes.int64
    counts = shape.zeros(ArrayType(v.shape, dtype))
    step = 1 << n.bit_length() >> 1
    while step:
        probe = ew.add(counts, step)
        element = indexing.take_along(table, ew.sub(ew.minimum(probe, n), 1), last)
        counts = ew.select(ew.logical_and(ew.le(probe, n), before(element, values)), probe, counts)
        step >>= 1
    return counts


def fixed(x: Any) -> Any:
    """x with a zero derivative, for arrays that are only compared."""
    return bind(ew.StopGradient(), x) if isinstance(x, Array) else x


def search(table: Any, values: Any, side: str) -> Any:
    """The positions at which values would be inserted into a sorted 1-d table, before or after equal elements."""
    dims = type_of(values).shape
    flat = shape.reshape(fixed(values), (prod(dims),))
    before = sorts_before if side == "left" else lambda element, value: ew.logical_not(sorts_before(value, element))
    return shape.reshape(count_before(fixed(table), flat, before), dims)


_METHODS = ("scan", "scan_unrolled", "sort", "compare_all", "default")


@library_function(static=("side", "method"))
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """The positions in sorted `a` where `v` would be inserted: before equal elements, or after them (side 'right').

    `method` has no effect: every method is the same bisection.

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
    """The index of the bin of each element; bins increase or decrease, and include their right edge if `right`.

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
    indices = search(ew.select(up, shape.reverse(edges, (0,)), edges), values, side)
    return conversion.convert(ew.select(goes_down, ew.sub(n, indices), indices), dtypes.default("i"))


def _rises(edges: Any) -> Any:
    first, last = (shape.index_in_axis(edges, i, 0) for i in (0, type_of(edges).shape[0] - 1))
    return ew.logical_not(sorts_before(last, first))


def concrete(name: str, x: Any, way_out: str = "") -> np.ndarray:
    """The values of x as a NumPy array; raises for a tracer without known values."""
    if isinstance(x, Tracer):
        value = x.known()
        if value is None:
            raise errors.ConcretizationTypeError(
                x._explained(
                    f"{name}: the shape of the result depends on values, which are not known here; got a traced "
                    f"{x.type}.",
                    f"{way_out or error_hints.called_also_with('size=n', name) or 'size=n, to fix the shape.'}",
                )
            )
        x = value
    return np.asarray(x)


def cut(x: Any, count: int, axis: int = 0) -> Any:
    """The first `count` elements of x along an axis; concrete arrays need no program compiled for each count."""
    if isinstance(x, Tracer):
        return shape.slice_in_axis(x, 0, count, axis)
    return asarray(np.asarray(x)[(slice(None),) * axis + (slice(count),)])


def first_true(mask: Any, size: int) -> tuple[Any, Any]:
    """The positions of the first `size` true elements of a 1-d mask, and which of these exist.

    If there are fewer true elements, the remaining positions are the length of the mask.
    """
    n = type_of(mask).shape[0]
    ranks = shape.iota(np.int32, (size,), 0)
    if n == 0:
        return ew.mul(ranks, 0), ew.lt(ranks, 0)
    counts = cumulative.cumsum(conversion.convert(mask, dtypes.int32), 0)
    indices = count_before(counts, ranks, ew.le)
    return indices, ew.lt(indices, np.asarray(n, type_of(indices).dtype))


def as_size(name: str, size: Any) -> int:
    """The argument `size` as a Python integer; raises if it is traced or negative."""
    try:
        out = size.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: size must be a static integer; got {size!r}.") from None
    if out < 0:
        raise ValueError(f"{name}: size must not be negative; got {out}.")
    return out


@library_function(static=("size",))
def _nonzero(a: Any, fill_value: Any, size: int) -> tuple[Any, ...]:
    t = operand_type("nonzero", a)
    fills = fill_value if isinstance(fill_value, (tuple, list)) else (0 if fill_value is None else fill_value,) * t.ndim
    if len(fills) != t.ndim:
        raise ValueError(f"nonzero: one fill value is needed for each axis of {t}; got {len(fills)}.")
    flat_indices, is_real = first_true(shape.reshape(to_bool("nonzero", a), (t.size,)), size)
    dtype = dtypes.default("i")
    flat_indices = conversion.convert(flat_indices, dtype)
    out = []
    for i, n in enumerate(t.shape):
        stride = prod(t.shape[i + 1 :])
        whole = ew.div(flat_indices, max(stride, 1))
        inside = ew.sub(whole, ew.mul(ew.div(whole, max(n, 1)), n))
        out.append(ew.select(is_real, inside, broadcast_to(cast(fills[i], dtype), (size,))))
    return tuple(out)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | Sequence[ArrayLike] | None = None
) -> tuple[Array, ...]:
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
    return tuple([positions_of(i) for i in np.nonzero(concrete("nonzero", a))])


def positions_of(i: np.ndarray) -> Any:
    """Positions in a NumPy array, as an array of the default integer dtype."""
    return asarray(i.astype(dtypes.default("i")))


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | Sequence[ArrayLike] | None = None
) -> Array:
    """The positions in the flattened array of the elements that are not zero; `size` fixes their number.

    >>> flatnonzero(asarray([[0, 5], [6, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


@library_function
def _columns(parts: Sequence[Any]) -> Any:
    return shape.concatenate([shape.reshape(p, (*type_of(p).shape, 1)) for p in parts], 1)


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The indices of the elements that are not zero, one row for each; `size` fixes the number of rows.

    >>> import atled.numpy as jnp
    >>> argwhere(jnp.array([[0, 1], [2, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    if operand_type("argwhere", a).ndim:
        return _columns(list(nonzero(a, size=size, fill_value=fill_value)))
    rows = int(concrete("argwhere", a) != 0) if size is None else as_size("argwhere", size)
    return asarray(np.zeros((rows, 0), dtypes.default("i")))


def in_mode(name: str, index: Any, n: int, mode: str) -> Any:
    """Positions wrapped around or clipped to the range 0 to n - 1."""
    t = type_of(index)
    if mode == "wrap":
        return remainder(index, np.asarray(n).astype(t.dtype))
    top = np.asarray(min(n - 1, int(dtypes.iinfo(t.dtype).max)), t.dtype)
    return ew.clamp(np.zeros((), t.dtype), index, top)


def check_positions(name: str, index: Any, n: int, mode: str) -> None:
    """Raise an error for an unknown mode, or in mode 'raise' for positions out of bounds."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"{name}: the mode is 'raise', 'wrap' or 'clip'; got {mode!r}.")
    t = operand_type(name, index)
    if t.kind not in "biu":
        raise TypeError(f"{name}: positions must be integers; got {t}.")
    if mode == "raise":
        host = concrete(name, index, "mode='clip' or mode='wrap', which need no values.")
        if host.size and not (host.min() >= 0 and host.max() < n):
            raise ValueError(f"{name}: positions must be between 0 and {n - 1}; try mode='clip' or mode='wrap'.")


@library_function(static=("shape",))
def _unravel(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    t = operand_type("unravel_index", indices)
    if t.kind not in "iu":
        raise TypeError(f"unravel_index: indices must be integers; got {t}.")
    total = prod(shape)
    left = cast(indices, t.dtype)
    if t.kind == "i":
        left = ew.select(ew.lt(left, 0), ew.add(left, total), left)
    left = in_mode("unravel_index", left, total, "clip")
    out = []
    for n in reversed(shape):
        whole = ew.div(left, max(n, 1))
        out.append(ew.sub(left, ew.mul(whole, n)))
        left = whole
    return tuple(reversed(out))


def unravel_index(indices: ArrayLike, shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[Array, ...]:
    """The index on each axis of a shape for positions in the flattened array; positions out of bounds are clipped.

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
        i = in_mode("ravel_multi_index", i, n, mode)
        out = i if out is None else ew.add(ew.mul(out, n), i)
    return out


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: Any = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions in the flattened array for an index on each axis of a shape.

    For indices out of bounds, mode 'raise' raises (it needs concrete indices), 'wrap' wraps around and 'clip' clips.

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
        check_positions("ravel_multi_index", i, n, m)
    target_dtype = dtypes.default("i") if dtype is None else dtypes.canonical(dtype)
    modes = tuple(["clip" if m == "raise" else m for m in modes])
    return _ravel(parts, lengths, modes, order, target_dtype)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """The array without the zeros at the front ('f') and back ('b') of its axes.

    >>> import atled.numpy as jnp
    >>> trim_zeros(jnp.array([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    if set(trim.lower()) - set("fb"):
        raise ValueError(f"trim_zeros: trim must consist of 'f' and 'b'; got {trim!r}.")
    x = asarray(filt)
    axes = check_axes("trim_zeros", axis, x.ndim)
    nonzero_indices = np.nonzero(concrete("trim_zeros", x, "keep the zeros, or trim outside of jit."))
    start, stop = [0] * x.ndim, list(x.shape)
    for i in axes:
        if not nonzero_indices[i].size:
            stop[i] = 0
            continue
        start[i] = int(nonzero_indices[i].min()) if "f" in trim.lower() else 0
        stop[i] = int(nonzero_indices[i].max()) + 1 if "b" in trim.lower() else x.shape[i]
    return x[tuple([slice(a, b) for a, b in zip(start, stop, strict=True)])] if x.ndim else x
