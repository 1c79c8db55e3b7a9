"""`pad`: arrays extended at their ends, with all of NumPy's modes.

Widths are static, values may be traced. The reflecting modes and `wrap` repeat a period: the array, followed by its
mirror image if the mode reflects. Odd mirror images are 2 edge - x, so period k is higher by 2 k (last - first).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.core.axes import check_axis
from atled.core.errors import ConcretizationTypeError
from atled.core.trace import Tracer
from atled.core.types import ArrayType
from atled.numpy.creation import _checked_number, asarray
from atled.numpy.promotion import broadcast_shapes, broadcast_to, cast
from atled.numpy.reductions import max as _max
from atled.numpy.reductions import mean as _mean
from atled.numpy.reductions import min as _min
from atled.numpy.vectorization import apply_along_axis
from atled.ops import conversion, elementary, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["pad"]

Widths = tuple[tuple[int, int], ...]
_OPTIONS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[int] | Sequence[Sequence[int]] | Mapping[int, Any],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """An array with elements added before and after, on each axis.

    `pad_width` is a number, a pair (before, after), a pair for each axis, or a dict from axis to number or pair. The
    modes and their options are NumPy's. A function `mode` gets each row along an axis, padded with zeros, and returns
    the new row; in NumPy it changes the row in place.

    >>> import atled.numpy as jnp
    >>> jnp.pad(jnp.arange(3), (1, 2), mode="edge")
    Array([0, 0, 1, 2, 2, 2], dtype=int32)
    """
    x = asarray(array)
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        return _pad_by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise ValueError(f"pad: the mode is a function or one of {', '.join(_OPTIONS)}; got {mode!r}.")
    unknown = set(kwargs) - set(_OPTIONS[mode])
    if unknown:
        raise ValueError(f"pad: mode {mode!r} has no option {', '.join(sorted(unknown))}.")
    if mode in ("constant", "empty"):
        return _pad_constant(x, _values("constant_values", kwargs.get("constant_values", 0), x.type, x.dtype), widths)
    for axis, (n, width) in enumerate(zip(x.shape, widths, strict=True)):
        if n == 0 and any(width):
            raise ValueError(
                f"pad: axis {axis} of {x.type} is empty, and can be padded in mode 'constant' or 'empty' only."
            )
    if mode == "linear_ramp":
        return _pad_ramp(x, _values("end_values", kwargs.get("end_values", 0), x.type, None), widths)
    if mode in ("maximum", "minimum", "mean", "median"):
        return _pad_statistic(x, widths, _lengths(kwargs.get("stat_length"), x.type), mode)
    kind = kwargs.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type is 'even' or 'odd'; got {kind!r}.")
    if kind == "odd" and x.type.kind == "b":
        raise TypeError(f"pad: reflect_type='odd' subtracts, so bools are not supported; got {x.type}.")
    return _pad_continued(x, widths, mode, kind == "odd")


# -- arguments --------------------------------------------------------------------------------------------------------


def _pairs(name: str, value: Any, ndim: int) -> Widths:
    """A pair of integers for each axis, from the forms that NumPy takes."""
    if isinstance(value, Tracer):
        raise ConcretizationTypeError(
            value._explained(
                f"pad: {name} must be known, because the shape of the result depends on it; got a traced {value.type}.",
                "jit(f, static_argnames=...) for the argument that it comes from.",
            )
        )
    try:
        host = np.asarray(value)
    except ValueError:
        host = np.asarray(None)
    if host.dtype.kind not in "iu":
        raise TypeError(f"pad: {name} is an integer, a pair, or a pair for each axis; got {describe(value)}.")
    try:
        full = np.broadcast_to(host, (ndim, 2))
    except ValueError:
        raise ValueError(
            f"pad: {name} must broadcast to shape ({ndim}, 2), a pair for each axis; got shape {host.shape}."
        ) from None
    if host.size and host.min() < 0:
        raise ValueError(f"pad: {name} must not be negative; got {host.min()}.")
    return tuple([(int(a), int(b)) for a, b in full])


def _widths(value: Any, ndim: int) -> Widths:
    if type(value) is int and value >= 0:
        return ((value, value),) * ndim
    if not isinstance(value, dict):
        return _pairs("pad_width", value, ndim)
    out = [(0, 0)] * ndim
    seen = set()
    for axis, width in value.items():
        at = check_axis("pad", axis, ndim)
        if at in seen:
            raise ValueError(f"pad: pad_width names axis {at} twice.")
        seen.add(at)
        (out[at],) = _pairs("pad_width", width, 1)
    return tuple(out)


def _lengths(value: Any, t: ArrayType) -> Widths:
    """The number of elements at each end that a statistic uses."""
    if value is None:
        return tuple([(n, n) for n in t.shape])
    pairs = _pairs("stat_length", value, t.ndim)
    if any(0 in pair for pair in pairs):
        raise ValueError("pad: stat_length must be positive, because a statistic needs at least one element; got 0.")
    return tuple([(min(a, n), min(b, n)) for (a, b), n in zip(pairs, t.shape, strict=True)])


def _values(name: str, value: Any, t: ArrayType, dtype: Any) -> Any:
    """Values to pad with: one, or an array that broadcasts to a pair for each axis."""
    if isinstance(value, (bool, int, float, complex)):  # as a Python number, it is cached on the device
        return _checked_number(value, type_of(value).dtype if dtype is None else dtype)
    values = asarray(value, dtype)
    try:
        fits = broadcast_shapes(values.shape, (t.ndim, 2)) == (t.ndim, 2)
    except ValueError:
        fits = False
    if not fits and values.ndim:
        raise ValueError(f"pad: {name} must broadcast to shape ({t.ndim}, 2), a pair for each axis; got {values.type}.")
    return values


# -- the modes --------------------------------------------------------------------------------------------------------


@library_function(static=("widths",))
def _pad_constant(x: Any, values: Any, widths: Widths) -> Any:
    values = cast(values, type_of(x).dtype)
    if type_of(values).size == 1:
        return shape.pad(x, shape.reshape(values, ()), [(low, high, 0) for low, high in widths])
    for axis, width in enumerate(widths):  # later axes fill the corners, as in NumPy
        for side, value in enumerate(_ends(values, axis, len(widths))):
            padding = [(0, 0, 0)] * len(widths)
            padding[axis] = (width[0], 0, 0) if side == 0 else (0, width[1], 0)
            x = shape.pad(x, value, padding)
    return x


def _ends(values: Any, axis: int, ndim: int) -> list[Any]:
    """The values before and after an axis, as scalars."""
    if type_of(values).size == 1:
        return [shape.reshape(values, ())] * 2
    pairs = broadcast_to(values, (ndim, 2))
    return [shape.reshape(shape.slice(pairs, (axis, i), (axis + 1, i + 1)), ()) for i in (0, 1)]


def _stretched(x: Any, axis: int, length: int) -> Any:
    """x with an axis of length one broadcast to a length."""
    dims = type_of(x).shape
    return shape.broadcast(x, (*dims[:axis], length, *dims[axis + 1 :]), range(len(dims)))


def _joined(before: Any, x: Any, after: Any, axis: int) -> Any:
    return shape.concatenate([v for v in (before, x, after) if v is not None and type_of(v).shape[axis]], axis)


@library_function(static=("widths", "mode", "is_odd"))
def _pad_continued(x: Any, widths: Widths, mode: str, is_odd: bool) -> Any:
    """The modes that repeat elements of the array: edge, wrap, reflect and symmetric."""
    for axis, (low, high) in enumerate(widths):
        n = type_of(x).shape[axis]
        if not (low or high):
            continue
        if mode == "edge" or n == 1:
            first, last = (shape.index_in_axis(x, i, axis, keep=True) for i in (0, n - 1))
            x = _joined(_stretched(first, axis, low), x, _stretched(last, axis, high), axis)
        else:
            x = _continued(x, axis, mode, is_odd, -low, n + high)
    return x


def _continued(x: Any, axis: int, mode: str, is_odd: bool, start: int, stop: int) -> Any:
    """Elements start to stop of an array repeated in both directions, alternating with mirror images if reflected."""
    n = type_of(x).shape[axis]
    image = shape.reverse(x if mode == "symmetric" else shape.slice_in_axis(x, 1, n - 1, axis), (axis,))
    length = n if mode == "wrap" else n + type_of(image).shape[axis]  # the length of a period
    first, last = (shape.index_in_axis(x, i, axis, keep=True) for i in (0, n - 1))
    pieces = []

    def add(part: Any, at: int, periods: int) -> None:
        """Append the elements between start and stop of a part that begins at `at`, raised by `periods` periods."""
        size = type_of(part).shape[axis]
        low, high = max(start - at, 0), min(stop - at, size)
        if low >= high:
            return
        piece = shape.slice_in_axis(part, low, high, axis)
        if is_odd and periods:
            count = np.asarray(2 * periods).astype(type_of(x).dtype)  # wraps around for unsigned integers
            rise = ew.mul(ew.sub(last, first), count)
            piece = ew.add(piece, _stretched(rise, axis, high - low))
        pieces.append(piece)

    for k in range(start // length, (stop - 1) // length + 1):
        add(x, k * length, k)
        if mode == "wrap":
            continue
        turned, edge = image, last if k >= 0 else first  # odd images next to the array use the end they touch
        if is_odd:
            turned = ew.sub(_stretched(ew.mul(edge, 2), axis, type_of(image).shape[axis]), image)
        add(turned, k * length + n, k if k >= 0 else k + 1)
    return shape.concatenate(pieces, axis)


def _floor_quotient(x: Any, divisor: float) -> Any:
    """floor(x / divisor), exact even if the compiler multiplies by a rounded reciprocal instead of dividing."""
    quotient = elementary.floor(ew.div(x, divisor))
    rest = ew.sub(x, ew.mul(quotient, divisor))
    quotient = ew.select(ew.ge(rest, divisor), ew.add(quotient, 1), quotient)
    return ew.select(ew.lt(rest, 0), ew.sub(quotient, 1), quotient)


def _ramp(x: Any, axis: int, edge_at: int, end: Any, width: int) -> Any:
    """A linear ramp from `end` to just before an edge of x; rounded down for integers."""
    t = type_of(x)
    work = type_of(end).dtype
    edge = _stretched(conversion.convert(shape.index_in_axis(x, edge_at, axis, keep=True), work), axis, width)
    count = shape.iota(work, type_of(edge).shape, axis)
    if t.kind in "biu":
        total = ew.add(ew.mul(ew.sub(float(width), count), end), ew.mul(edge, count))
        return conversion.convert(_floor_quotient(total, float(width)), t.dtype)
    weight = ew.div(count, width)
    return ew.add(ew.mul(ew.sub(1, weight), end), ew.mul(edge, weight))


@library_function(static=("widths",))
def _pad_ramp(x: Any, ends: Any, widths: Widths) -> Any:
    t = type_of(x)
    if t.kind != "c" and type_of(ends).kind == "c":
        raise TypeError(f"pad: complex end_values are not supported for {t}.")
    ends = cast(ends, dtypes.float64 if t.kind in "biu" else t.dtype)
    for axis, (low, high) in enumerate(widths):
        before, after = _ends(ends, axis, len(widths))
        left = _ramp(x, axis, 0, before, low) if low else None
        right = shape.reverse(_ramp(x, axis, t.shape[axis] - 1, after, high), (axis,)) if high else None
        x = _joined(left, x, right, axis)
    return x


@library_function(static=("widths", "lengths", "mode"))
def _pad_statistic(x: Any, widths: Widths, lengths: Widths, mode: str) -> Any:
    for axis, ((low, high), (head, tail)) in enumerate(zip(widths, lengths, strict=True)):
        if not (low or high):
            continue
        n = type_of(x).shape[axis]
        before = _statistic(shape.slice_in_axis(x, 0, head, axis), axis, mode)
        after = before if head == tail == n else _statistic(shape.slice_in_axis(x, n - tail, n, axis), axis, mode)
        x = _joined(_stretched(before, axis, low), x, _stretched(after, axis, high), axis)
    return x


def _statistic(x: Any, axis: int, mode: str) -> Any:
    """A statistic along an axis, which is kept with length one."""
    t = type_of(x)
    if mode in ("maximum", "minimum"):
        return (_max if mode == "maximum" else _min)(x, axis=axis, keepdims=True)
    if t.kind in "biu":  # a mean of integers is rounded to an integer
        statistic = _middle(conversion.convert(x, dtypes.float64), axis, mode)
        return conversion.convert(statistic if t.kind == "b" else elementary.round_even(statistic), t.dtype)
    return _middle(x, axis, mode)


def _middle(x: Any, axis: int, mode: str) -> Any:
    if mode == "mean":
        return _mean(x, axis=axis, keepdims=True)
    t = type_of(x)
    n = t.shape[axis]
    (ordered,) = sorting.sort((x,), axis)
    low, high, last = (shape.index_in_axis(ordered, i, axis, keep=True) for i in ((n - 1) // 2, n // 2, n - 1))
    median = low if n % 2 else ew.mul(ew.add(low, high), 0.5)
    return ew.select(ew.ne(last, last), last, median)  # NaN sorts last, and makes the median NaN


def _pad_by_function(x: Any, widths: Widths, function: Callable[..., Any], options: dict[str, Any]) -> Any:
    out: Array = _pad_constant(x, np.zeros((), x.dtype), widths)
    for axis, width in enumerate(widths):
        out = apply_along_axis(function, axis, out, width, axis, options)
    return out
