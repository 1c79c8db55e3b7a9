"""The index in the brackets of `x[...]`, parsed into entries and operands; `index_reads.py` reads elements with them.

An index is parsed into a hashable `spec` (what each entry is) and operands (values that may be traced).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes, error_hints, errors
from atled.core.array import Array, describe, type_of
from atled.core.cache_keys import Plain
from atled.core.trace import Tracer
from atled.core.types import ArrayType
from atled.ops import conversion, shape
from atled.ops import elementwise as ew

# Kinds of index entries. Those marked * take the next operand.
NEW, FIXED, POINT, WINDOW, SLICE, ARRAY = "new", "fixed", "point*", "window*", "slice", "array*"


class Entry(NamedTuple):
    """One entry of a parsed index."""

    kind: str
    a: int = 0  # FIXED: the integer; WINDOW: the length; SLICE: start
    b: int = 0  # SLICE: stop
    c: int = 1  # SLICE: step


class Slice:
    """A slice of static length whose start may be traced: see `ds`."""

    def __init__(self, start: Any, size: int, stride: int = 1) -> None:
        self.start, self.size, self.stride = start, size, stride

    def __repr__(self) -> str:
        return f"Slice(start={self.start}, size={self.size}, stride={self.stride})"


def ds(start: Any, size: int | None = None, stride: int | None = None) -> Any:
    """An index: `size` elements from a `start` that may be traced; `ds(n)` is the first n, `ds(None)` all.

    A start that is too large is clamped, and a negative one counts from the end. With a stride, the start must be
    static.

    >>> import atled, atled.numpy as jnp
    >>> atled.jit(lambda x, i: x[ds(i, 2)])(jnp.arange(10), 4)
    Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    return Slice(0, start, stride or 1) if size is None else Slice(start, size, stride or 1)


def _window_entry(e: Slice, n: int, is_eager: bool, operands: list[Any]) -> Entry:
    is_known = isinstance(e.start, (int, np.integer))
    if not 0 <= (e.size - 1) * e.stride < max(n, 1) or e.size > n:
        raise IndexError(f"ds: an axis of length {n} has no {e.size} elements at steps of {e.stride}.")
    if is_known:
        first = min(max(int(e.start) + (n if e.start < 0 else 0), 0), n - (e.size - 1) * e.stride - 1)
        if e.start == first or e.start == first - n:  # not clamped
            return _slice_entry(slice(first, first + (e.size - 1) * e.stride + 1, e.stride), n, is_eager, operands)
    if e.stride != 1:
        raise NotImplementedError("ds: with a stride, the start must be static and in bounds.")
    dtype = index_dtype(n)
    start = (
        conversion.convert(e.start, dtype) if isinstance(e.start, Array) else shape.full(ArrayType((), dtype), e.start)
    )
    operands.append(ew.select(ew.lt(start, 0), ew.add(start, np.asarray(n, dtype)), start))
    return Entry(WINDOW, int(e.size))


def parse(index: Any, dims: Sequence[int], is_eager: bool) -> tuple[Plain, list[Any]]:
    """An index as entries and operands. Outside of traces, integers and starts of slices are operands too."""
    entries = list(index) if isinstance(index, tuple) else [index]
    if has_masks(entries):
        entries = _expand_masks(entries, dims)
    used = sum([e is not None and e is not Ellipsis for e in entries])
    if used > len(dims):
        raise IndexError(
            f"index: an array of shape {tuple(dims)} takes {_count(len(dims), 'index', 'indices')} at most; got {used}."
            f"\n  try: {'one index for each axis' if dims else 'x itself, a single element'}, or None for a new axis."
        )
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("index: an index can have at most one ellipsis ('...').")
    fill = [slice(None)] * (len(dims) - used)
    at = dots[0] if dots else len(entries)
    entries = entries[:at] + fill + entries[at + len(dots) :]
    spec, operands, axis = [], [], 0
    for e in entries:
        if e is None:
            spec.append(Entry(NEW))
            continue
        n = dims[axis]
        if e.__class__ is slice:
            spec.append(_slice_entry(e, n, is_eager, operands))
        elif isinstance(e, Slice):
            spec.append(_window_entry(e, n, is_eager, operands))
        else:
            spec.append(_position_entry(e, n, axis, is_eager, operands))
        axis += 1
    return Plain(spec), operands


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def axes_used(e: Any) -> int:
    """How many axes of the array an entry consumes."""
    if e is None or e is Ellipsis:
        return 0
    return type_of(e).ndim if is_mask(e) else 1


def _first_axis(entries: Sequence[Any], i: int, ndim: int) -> int:
    """The axis at which an entry of an index begins."""
    if any([e is Ellipsis for e in entries[:i]]):
        return ndim - sum([axes_used(e) for e in entries[i:]])
    return sum([axes_used(e) for e in entries[:i]])


def _expand_masks(entries: list[Any], dims: Sequence[int]) -> list[Any]:
    """Boolean arrays as the integer arrays of their true positions."""
    out: list[Any] = []
    for at, e in enumerate(entries):
        if isinstance(e, list):
            e = np.asarray(e) if e else np.zeros(0, np.int32)
        if isinstance(e, (bool, np.bool_)) or (is_mask(e) and not type_of(e).shape):
            raise IndexError("index: a plain bool as index is not supported; use None, or an array of bools.")
        if is_mask(e):
            axis, mask = _first_axis(entries, at, len(dims)), type_of(e)
            lengths = tuple(dims[axis : axis + mask.ndim])
            if len(lengths) != mask.ndim or any([m not in (n, 0) for m, n in zip(mask.shape, lengths, strict=True)]):
                raise IndexError(
                    f"index: a mask must have the lengths of the axes that it indexes; got {mask} at axis {axis} of an "
                    f"array of shape {tuple(dims)}."
                )
            out.extend([np.asarray(i, np.int32) for i in np.nonzero(_known_mask(e))])
        else:
            out.append(e)
    return out


def _known_mask(mask: Any) -> np.ndarray:
    """The values of a mask; raises if it is traced."""
    host = mask.known() if isinstance(mask, Tracer) else mask
    if host is None:
        raise errors.NonConcreteBooleanIndexError(
            mask._explained(
                f"index: a traced mask {type_of(mask)} selects an unknown number of elements.",
                f"{error_hints.masked() or 'numpy.where(mask, x, fill)'}, "
                "or numpy.nonzero(mask, size=n) for the positions.",
            )
        )
    return np.asarray(host)


def without_flags(x: Any, index: Any) -> tuple[Any, Any]:
    """Convert 0-d masks to index arrays of length one or zero on a new axis: x[mask] has one row or none."""
    entries = list(index) if isinstance(index, tuple) else [index]
    for at, e in enumerate(entries):
        if is_mask(e) and type_of(e).ndim == 0:
            dims = type_of(x).shape
            axis = _first_axis(entries, at, len(dims))
            x = shape.reshape(x, (*dims[:axis], 1, *dims[axis:]))
            entries[at] = np.zeros(int(_known_mask(e)), np.int32)
    return x, tuple(entries)


def index_dtype(n: int) -> Any:
    """The integers from 0 to n - 1, in a dtype that holds n."""
    return dtypes.int32 if n <= 2**31 - 1 else dtypes.int64


def _slice_entry(e: slice, n: int, is_eager: bool, operands: list[Any]) -> Entry:
    try:
        start, stop, step = e.indices(n)
    except TypeError:
        given = [v for v in (e.start, e.stop, e.step) if v is not None and not isinstance(v, (int, np.integer))]
        bad = next((v for v in given if isinstance(v, Tracer)), given[0])
        if isinstance(bad, Tracer):
            raise errors.TracerIntegerConversionError(
                bad._explained(
                    "index: the bounds of a slice must be known, because its length depends on them; got a traced "
                    f"{bad.type}.",
                    "numpy.where(numpy.arange(len(x)) < n, x, 0), lax.dynamic_slice for a known length, or a "
                    "static argument.",
                )
            ) from None
        raise TypeError(
            f"index: slice bounds must be integers; got {describe(bad)}.\n  try: n // 2 instead of n / 2, or int(n)."
        ) from None
    length = len(range(start, stop, step))
    if length == n and step == 1:
        return Entry(SLICE, 0, n, 1)
    if is_eager and step == 1 and length > 0:
        operands.append(start)
        return Entry(WINDOW, length)
    return Entry(SLICE, start, start + length * step, step)


def _position_entry(e: Any, n: int, axis: int, is_eager: bool, operands: list[Any]) -> Entry:
    if isinstance(e, (int, np.integer)):
        i = int(e)
        if not -n <= i < n:
            near = f"an index from {-n} to {n - 1}, or " if n else ""
            raise IndexError(
                errors.explained(
                    f"index: {i} is out of bounds for axis {axis} with length {n}.",
                    f"{near}x.at[i].get(mode='clip') or (mode='fill') if that is intended.",
                )
            )
        i = i + n if i < 0 else i
        if is_eager:
            operands.append(i)
            return Entry(POINT, 1)
        return Entry(FIXED, i)
    if not isinstance(e, (Array, np.ndarray)):
        if hasattr(e, "__index__"):
            return _position_entry(e.__index__(), n, axis, is_eager, operands)
        way_out = {
            float: "n // 2 instead of n / 2, or int(i).",
            str: "a dict of arrays, {'name': x}, to look up by name.",
        }
        raise TypeError(
            f"index: indices are integers, slices, None, '...' and integer or bool arrays; got {describe(e)}."
            + (f"\n  try: {way_out[type(e)]}" if type(e) in way_out else "")
        )
    t = type_of(e)
    if t.kind not in "iu":
        raise TypeError(
            f"index: index arrays must be of integers or bools; got {t}."
            "\n  try: i // 2 instead of i / 2, or i.astype(int)."
        )
    if isinstance(e, np.ndarray):
        if e.size and not (e.min() >= -n and e.max() < n):
            worst = e.max() if e.max() >= n else e.min()
            raise IndexError(errors.explained(f"index: {worst} is out of bounds for axis {axis} with length {n}."))
        e = np.where(e < 0, e.astype(np.int64) + n, e).astype(index_dtype(n))  # n may overflow e's dtype
    operands.append(e)
    return Entry(POINT if t.ndim == 0 else ARRAY)


def known_index(x: Any) -> Any:
    """The values of an index as a NumPy array; None for a tracer without known values."""
    value = x.known() if isinstance(x, Tracer) else x
    return None if value is None else np.asarray(value)


_PLAIN = frozenset([int, slice, type(None), type(Ellipsis)])


def has_masks(entries: Sequence[Any]) -> bool:
    """Whether some entries are, or may convert to, arrays of bools: masks, lists and single bools."""
    return any([e.__class__ not in _PLAIN and (is_mask(e) or isinstance(e, (list, bool, np.bool_))) for e in entries])


def is_mask(index: Any) -> bool:
    """Whether an entry is an array of bools."""
    return isinstance(index, (Array, np.ndarray)) and type_of(index).kind == "b"
