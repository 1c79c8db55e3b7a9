"""NumPy's reductions: sums, products, extrema, means, variances, logic. `nan_reductions.py` ignores NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as _product
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.numpy.elementwise import maximum, minimum
from atled.numpy.elementwise_family import to_bool
from atled.numpy.promotion import broadcast_to, cast, inexact_dtype, operand_type, promote_dtypes
from atled.numpy.special_values import isnan
from atled.ops import conversion, elementary, reduction, shape, sorting
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

_STATIC = ("axis", "dtype", "keepdims", "promote_integers")


def _kept(out: Any, axes: tuple[int, ...], dims: tuple[int, ...], keepdims: bool) -> Any:
    """The result of a reduction; with `keepdims`, the reduced axes are restored with length one."""
    return shape.reshape(out, [1 if i in axes else n for i, n in enumerate(dims)]) if keepdims else out


def _work_dtype(dtype: Any) -> Any:
    """The dtype to accumulate in: float32 for 16-bit floats, else the dtype itself."""
    return dtypes.float32 if dtypes.kind(dtype) == "f" and dtypes.bits(dtype) < 32 else dtype


def sum_dtype(dtype: Any, promote_integers: bool = True) -> Any:
    """The dtype of sums: small integers widen to the default width."""
    kind = dtypes.kind(dtype)
    if not promote_integers or kind in "fc":
        return dtype
    wide = dtypes.default("u" if kind == "u" else "i")
    return wide if dtypes.bits(dtype) < dtypes.bits(wide) or kind == "b" else dtype


def _reduce(
    op: Callable[[Any, tuple[int, ...]], Any], name: str, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any,
    where: Any, identity: Any, combine: Callable[[Any, Any], Any],
) -> Any:  # fmt: skip
    t = operand_type(name, a)
    axes = check_axes(name, axis, t.ndim)
    x = cast(a, _work_dtype(dtype))
    if where is not None:
        mask = broadcast_to(to_bool(name, where), t.shape)
        x = ew.select(mask, x, np.asarray(identity(type_of(x).dtype), type_of(x).dtype))
    out = op(x, axes)
    if initial is not None:
        out = combine(out, cast(initial, type_of(out).dtype))
    return _kept(conversion.convert(out, dtype) if type_of(out).dtype is not dtype else out, axes, t.shape, keepdims)


@library_function(static=_STATIC)
def sum(
    a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:  # fmt: skip
    """The sum of elements over axes. Small integers accumulate in the default width, half precision in float32.

    >>> sum(np.ones((2, 3), "float32"), axis=0)
    Array([2., 2., 2.], dtype=float32)
    """
    t = operand_type("sum", a)
    result_dtype = dtypes.canonical(dtype) if dtype is not None else sum_dtype(t.dtype, promote_integers)
    return _reduce(reduction.reduce_sum, "sum", a, axis, result_dtype, keepdims, initial, where, lambda d: 0, ew.add)


@library_function(static=_STATIC)
def prod(
    a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:  # fmt: skip
    """The product of elements over axes.

    >>> prod(np.arange(1, 5))
    Array(24, dtype=int64)
    """
    t = operand_type("prod", a)
    result_dtype = dtypes.canonical(dtype) if dtype is not None else sum_dtype(t.dtype, promote_integers)
    return _reduce(reduction.reduce_prod, "prod", a, axis, result_dtype, keepdims, initial, where, lambda d: 1, ew.mul)


def _extremum(name: str, op: Any, identity: Any, combine: Any, doc: str):
    def f(
        a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        t = operand_type(name, a)
        axes = check_axes(name, axis, t.ndim)
        if where is not None and initial is None:
            raise ValueError(f"{name}: `where` needs `initial`, because nothing may be selected.")
        if initial is None and 0 in [t.shape[i] for i in axes]:
            raise ValueError(
                f"{name}: an empty axis has no extremum; got {t} over axes {axes}."
                "\n  try: initial=..., the result for no elements."
            )
        if t.kind == "c":
            return _complex_extremum(a, axes, name, keepdims, initial, where)
        return _reduce(op, name, a, axis, t.dtype, keepdims, initial, where, identity, combine)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "keepdims"))


def _complex_extremum(a: Any, axes: tuple[int, ...], name: str, keepdims: bool, initial: Any, where: Any) -> Any:
    """Extrema of complex numbers in lexicographic order, by sorting; NaN comes last."""
    t = type_of(a)
    if where is not None:
        a = ew.select(broadcast_to(to_bool(name, where), t.shape), a, cast(initial, t.dtype))
    rows = reduction.merge_axes(a, axes)
    last = type_of(rows).ndim - 1
    (ordered,) = sorting.sort((rows,), last)
    n = type_of(rows).shape[last]
    out = shape.index_in_axis(ordered, n - 1, last)
    if name == "min":
        out = ew.select(isnan(out), out, shape.index_in_axis(ordered, 0, last))
    if initial is not None:
        out = (maximum if name == "max" else minimum)(out, cast(initial, t.dtype))
    return _kept(out, axes, t.shape, keepdims)


max = amax = _extremum(
    "max",
    reduction.reduce_max,
    reduction.lowest,
    ew.maximum,
    """The largest element over axes; NaN if any of them is NaN.

    >>> import atled.numpy as jnp
    >>> max(jnp.array([[1, 5], [7, 3]]), axis=1)
    Array([5, 7], dtype=int32)
    """,
)
min = amin = _extremum(
    "min",
    reduction.reduce_min,
    reduction.highest,
    ew.minimum,
    """The smallest element over axes; NaN if any of them is NaN.

    >>> import atled.numpy as jnp
    >>> min(jnp.array([[1, 5], [7, 3]]), axis=1)
    Array([1, 3], dtype=int32)
    """,
)


@library_function(static=("axis", "keepdims"))
def all(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements over axes are true.

    >>> import atled.numpy as jnp
    >>> all(jnp.array([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    x = to_bool("all", a)
    return _reduce(
        reduction.reduce_and, "all", x, axis, dtypes.bool_, keepdims, None, where, lambda d: True, ew.logical_and
    )


@library_function(static=("axis", "keepdims"))
def any(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether any element over axes is true.

    >>> import atled.numpy as jnp
    >>> any(jnp.array([[True, False], [False, False]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    x = to_bool("any", a)
    return _reduce(
        reduction.reduce_or, "any", x, axis, dtypes.bool_, keepdims, None, where, lambda d: False, ew.logical_or
    )


def _count(t: Any, axes: tuple[int, ...], where: Any, dtype: Any, name: str) -> Any:
    """The number of elements over which a mean is taken; with `where`, of those selected."""
    if where is None:
        return np.asarray(_product([t.shape[i] for i in axes]), dtype)
    mask = broadcast_to(to_bool(name, where), t.shape)
    return reduction.reduce_sum(conversion.convert(mask, dtype), axes)


@library_function(static=("axis", "dtype", "keepdims"))
def mean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of elements over axes.

    >>> mean(np.arange(4.0))
    Array(1.5, dtype=float64)
    """
    t = operand_type("mean", a)
    result_dtype = dtypes.canonical(dtype) if dtype is not None else inexact_dtype(t.dtype)
    work = _work_dtype(result_dtype)
    axes = check_axes("mean", axis, t.ndim)
    total = _reduce(reduction.reduce_sum, "mean", a, axis, work, False, None, where, lambda d: 0, ew.add)
    out = conversion.convert(ew.div(total, _count(t, axes, where, work, "mean")), result_dtype)
    return _kept(out, axes, t.shape, keepdims)


@library_function(static=("axis", "dtype", "ddof", "keepdims", "correction"))
def var(
    a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None,
    ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:  # fmt: skip
    """The variance of elements over axes; `ddof` is subtracted from the count.

    >>> var(np.arange(4.0))
    Array(1.25, dtype=float64)
    """
    t = operand_type("var", a)
    ddof = ddof if correction is None else correction
    result_dtype = dtypes.canonical(dtype) if dtype is not None else inexact_dtype(t.dtype)
    work = _work_dtype(result_dtype)
    axes = check_axes("var", axis, t.ndim)
    x = cast(a, work)
    real = dtypes.real_part(work)
    count = _count(t, axes, where, real, "var")
    keep = [1 if i in axes else n for i, n in enumerate(t.shape)]
    if mean is None:
        picked = x if where is None else ew.select(broadcast_to(to_bool("var", where), t.shape), x, np.zeros((), work))
        middle = shape.reshape(ew.div(reduction.reduce_sum(picked, axes), cast(count, work)), keep)
    else:
        middle = cast(mean, work)
    off = ew.sub(x, broadcast_to(middle, t.shape))
    square = ew.mul(off, off) if type_of(off).kind != "c" else conversion.real(ew.mul(off, conversion.conj(off)))
    if where is not None:
        square = ew.select(broadcast_to(to_bool("var", where), t.shape), square, np.zeros((), real))
    out = ew.div(reduction.reduce_sum(square, axes), ew.maximum(ew.sub(count, ddof), 0))
    return _kept(conversion.convert(out, dtypes.real_part(result_dtype)), axes, t.shape, keepdims)


@library_function(static=("axis", "dtype", "ddof", "keepdims", "correction"))
def std(
    a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None,
    ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:  # fmt: skip
    """The standard deviation of elements over axes; its gradient is zero where all elements are equal.

    >>> import atled.numpy as jnp
    >>> std(jnp.array([1.0, 4.0])), std(jnp.array([1.0, 5.0, 9.0]), ddof=1)
    (Array(1.5, dtype=float32), Array(4., dtype=float32))
    """
    variance = var(
        a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean, correction=correction
    )
    is_zero = ew.eq(variance, 0)
    safe = ew.select(is_zero, np.ones((), type_of(variance).dtype), variance)
    return ew.select(is_zero, np.zeros((), type_of(variance).dtype), elementary.sqrt(safe))


@library_function(static=("axis", "keepdims"))
def ptp(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest minus the smallest element over axes.

    >>> import atled.numpy as jnp
    >>> ptp(jnp.array([[1, 5], [2, 9]]), axis=1)
    Array([4, 7], dtype=int32)
    """
    return ew.sub(max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


@library_function(static=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The number of nonzero elements over axes.

    >>> import atled.numpy as jnp
    >>> count_nonzero(jnp.array([[0, 1], [2, 3]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    return sum(to_bool("count_nonzero", a), axis=axis, keepdims=keepdims, dtype=dtypes.default("i"))


def _position(name: str, op: Any, doc: str):
    def f(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        t = operand_type(name, a)
        x, dims = a, t.shape
        if axis is None:
            x, at = shape.reshape(cast(a, t.dtype), (t.size,)), 0
        else:
            at = check_axis(name, axis, t.ndim)
            x = cast(a, t.dtype)
        if type_of(x).shape[at] == 0:
            raise ValueError(f"{name}: an empty axis has no extremum; got {t}.")
        if t.kind == "c":  # in lexicographic order; the first NaN, if there is one
            top = (max if name == "argmax" else min)(x, axis=at, keepdims=True)
            x = ew.logical_or(ew.eq(x, broadcast_to(top, type_of(x).shape)), isnan(x))
        indices = (reduction.argmax if t.kind == "c" else op)(x, at, dtypes.default("i"))
        if not keepdims:
            return indices
        return shape.reshape(
            indices, (1,) * len(dims) if axis is None else [1 if i == at else n for i, n in enumerate(dims)]
        )

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "keepdims"))


argmax = _position(
    "argmax",
    reduction.argmax,
    """The index of the first largest element, of the flattened array or along an axis; NaN counts as the largest.

    >>> import atled.numpy as jnp
    >>> argmax(jnp.array([[1, 5], [7, 3]]), axis=1)
    Array([1, 0], dtype=int32)
    """,
)
argmin = _position(
    "argmin",
    reduction.argmin,
    """The index of the first smallest element, of the flattened array or along an axis; NaN counts as the smallest.

    >>> import atled.numpy as jnp
    >>> argmin(jnp.array([[1, 5], [7, 3]]), axis=1)
    Array([0, 1], dtype=int32)
    """,
)


@library_function(static=("axis", "keepdims", "returned"))
def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean of elements over axes.

    >>> import atled.numpy as jnp
    >>> average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.25, dtype=float32)
    """
    t = operand_type("average", a)
    axes = check_axes("average", axis, t.ndim)
    if weights is None:
        out = mean(a, axis=axis, keepdims=keepdims)
        total = np.asarray(_product([t.shape[i] for i in axes]), type_of(out).dtype)
    else:
        x, w = promote_dtypes("average", a, weights)
        dtype = inexact_dtype(type_of(x).dtype)
        x, w = cast(x, dtype), cast(w, dtype)
        if type_of(w).shape != t.shape:
            if len(axes) != 1 or type_of(w).shape != (t.shape[axes[0]],):
                raise ValueError(f"average: weights {type_of(w)} match neither the shape of {t} nor its axis {axis}.")
            w = shape.broadcast(w, t.shape, axes)
        total = sum(w, axis=axis, keepdims=keepdims)
        out = ew.div(sum(ew.mul(x, w), axis=axis, keepdims=keepdims), total)
    return (out, broadcast_to(total, type_of(out).shape)) if returned else out
