"""Ranges and evenly spaced numbers: NumPy's `arange`, `linspace`, `logspace`, `geomspace`."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axis
from atled.core.errors import ConcretizationTypeError
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.trace import Tracer
from atled.core.types import ArrayType
from atled.numpy.creation import asarray, located
from atled.numpy.promotion import broadcast, broadcast_shapes, broadcast_to, common_dtype, operand_type, promote_inexact
from atled.ops import conversion, elementary, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = ["arange", "geomspace", "linspace", "logspace"]


def _concrete(name: str, x: Any) -> Any:
    """A bound of arange as a Python number."""
    if isinstance(x, Tracer) and x.known() is None:
        raise ConcretizationTypeError(
            x._explained(
                f"{name}: the bounds must be known, because the length depends on them; got a traced {x.type}.",
                "jit(f, static_argnames=...), or numpy.linspace, whose length is fixed.",
            )
        )
    if isinstance(x, Tracer):
        x = x.known()
    return x.item() if isinstance(x, (Array, np.ndarray, np.generic)) else x


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers from start up to, but not including, stop, at intervals of `step`.

    >>> arange(3), arange(1.0, 2.0, 0.5)
    (Array([0, 1, 2], dtype=int32), Array([1. , 1.5], dtype=float32))
    """
    given = [x for x in (start, stop, step) if x is not None]
    if dtype is None:
        dtype, _ = common_dtype([operand_type("arange", x) for x in given])
    dtype = dtypes.canonical(dtype)
    values: list[Any] = [None if x is None else _concrete("arange", x) for x in (start, stop, step)]
    if values[1] is None:
        values[0], values[1] = 0, values[0]
    first, last, by = values[0], values[1], 1 if values[2] is None else values[2]
    if by == 0:
        raise ValueError("arange: the step must not be zero.")
    count = max(0, math.ceil((last - first) / by))
    if dtypes.kind(dtype) == "b":
        return asarray(np.arange(first, last, by, dtype=bool), device=device, out_sharding=out_sharding)
    return located(_counted(count, first, by, dtype), device, out_sharding, "arange")


@library_function(static=("count", "first", "by", "dtype"))
def _counted(count: int, first: Any, by: Any, dtype: Any) -> Any:
    if dtypes.kind(dtype) in "iu":
        out = shape.iota(dtype, (count,), 0)
        first, by = int(first), int(by)
    else:
        wide = dtypes.float64 if dtypes.bits(dtype) >= 32 and (first != 0 or by != 1) else dtype
        out = shape.iota(wide, (count,), 0)
    if by != 1:
        out = ew.mul(out, by)
    if first != 0:
        out = ew.add(out, first)
    return conversion.convert(out, dtype)


@library_function(static=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int) -> Any:
    if num < 0:
        raise ValueError(f"linspace: the number of samples must not be negative; got {num}.")
    a, b = broadcast("linspace", promote_inexact("linspace", start, stop))
    dims = max((type_of(a).shape, type_of(b).shape), key=len)
    a, b = broadcast_to(a, dims), broadcast_to(b, dims)
    t = type_of(a)
    at = check_axis("linspace", axis, len(dims) + 1)
    full = (*dims[:at], num, *dims[at:])
    other_axes = tuple([i for i in range(len(full)) if i != at])
    parts = num - 1 if endpoint else num
    span = ew.sub(b, a)
    step = ew.div(span, parts) if parts > 0 else ew.mul(span, np.asarray(np.nan, t.dtype))
    if num == 0:
        out = conversion.convert(shape.zeros(ArrayType(full, t.dtype)), dtype or t.dtype)
        return (out, step) if retstep else out
    count = shape.iota(t.dtype, full, at)
    low, high = shape.broadcast(a, full, other_axes), shape.broadcast(b, full, other_axes)
    weight = ew.div(count, max(parts, 1))
    out = ew.add(ew.mul(low, ew.sub(1, weight)), ew.mul(high, weight))
    if endpoint and num > 1:  # the last number is exactly `stop`
        out = ew.select(ew.eq(count, parts), high, out)
    if dtype is not None and dtypes.kind(dtype) in "iu":
        out = elementary.floor(out)
    out = conversion.convert(out, dtype or t.dtype)
    return (out, step) if retstep else out


def _number(x: Any, dtype: Any) -> Any:
    """A number in a floating dtype, or if it is complex, in the complex dtype with parts of that dtype."""
    return np.asarray(x, dtypes.complex_of(dtype) if isinstance(x, complex) else dtype)


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: Literal[False] = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Array: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: Literal[True], dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *, retstep: Literal[True],
    dtype: Any = None, axis: int = 0, device: Any = None,
) -> tuple[Array, Array]: ...  # fmt: skip
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Evenly spaced numbers from start to stop.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    target_dtype = None
    if dtype is not None:
        target_dtype = dtypes.canonical(dtype)
        is_plain = not any([isinstance(x, (Array, np.ndarray, list, tuple)) for x in (start, stop)])
        if is_plain and dtypes.is_inexact(target_dtype):  # Python numbers get the requested dtype
            start, stop = _number(start, target_dtype), _number(stop, target_dtype)
    out = _linspace(start, stop, num.__index__(), bool(endpoint), bool(retstep), target_dtype, axis)
    return out if device is None or retstep else located(out, device)


@library_function(static=("num", "endpoint", "dtype", "axis"))
def _logspace(start: Any, stop: Any, base: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    exponents, base = promote_inexact("logspace", linspace(start, stop, num, endpoint, axis=axis), base)
    if type_of(base).ndim:  # an array of bases: one for each sequence
        dims = (
            broadcast_shapes(type_of(shape.index_in_axis(exponents, 0, axis)).shape, type_of(base).shape)
            if num
            else None
        )
        if dims is None or len(dims) + 1 != type_of(exponents).ndim:
            raise ValueError(f"logspace: base {type_of(base)} does not broadcast with start and stop.")
        full = (*dims[:axis], num, *dims[axis:])
        grown = shape.reshape(broadcast_to(base, dims), (*dims[:axis], 1, *dims[axis:]))
        exponents, base = broadcast_to(exponents, full), broadcast_to(grown, full)
    out = elementary.pow(*broadcast("logspace", [base, exponents]))
    return conversion.convert(out, dtype or type_of(out).dtype)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """Powers of a base, with evenly spaced exponents from start to stop.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    ndim = len(broadcast_shapes(operand_type("logspace", start).shape, operand_type("logspace", stop).shape))
    at = check_axis("logspace", axis, ndim + 1)
    return _logspace(
        start, stop, base, num.__index__(), bool(endpoint), None if dtype is None else dtypes.canonical(dtype), at
    )


@library_function(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    a, b = promote_inexact("geomspace", start, stop)
    dims = broadcast_shapes(type_of(a).shape, type_of(b).shape)
    a, b = broadcast_to(a, dims), broadcast_to(b, dims)
    t = type_of(a)
    full = (*dims[:axis], num, *dims[axis:])
    other_axes = tuple([k for k in range(len(full)) if k != axis])
    if num == 0:
        return shape.zeros(ArrayType(full, dtype or t.dtype))
    sign = elementary.sign(a)  # for complex a, its phase: a / sign is positive
    low, high = (elementary.log(ew.div(v, sign)) for v in (a, b))
    parts = num - 1 if endpoint else num
    count = shape.iota(t.dtype, full, axis)
    weight = ew.div(count, max(parts, 1))
    spread = lambda v: shape.broadcast(v, full, other_axes)  # noqa: E731
    exponent = ew.add(ew.mul(spread(low), ew.sub(1, weight)), ew.mul(spread(high), weight))
    out = ew.mul(elementary.exp(exponent), spread(sign))
    out = ew.select(ew.eq(count, 0), spread(a), out)
    if endpoint and num > 1:
        out = ew.select(ew.eq(count, parts), spread(b), out)
    return conversion.convert(out, dtype or t.dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """Numbers from start to stop with a constant ratio; NaN if one is zero or, for real bounds, their signs differ.

    >>> geomspace(1, 1000, 4).round()
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    ndim = len(broadcast_shapes(operand_type("geomspace", start).shape, operand_type("geomspace", stop).shape))
    at = check_axis("geomspace", axis, ndim + 1)
    return _geomspace(
        start, stop, num.__index__(), bool(endpoint), None if dtype is None else dtypes.canonical(dtype), at
    )
