"""NumPy's cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike
from atled.core.axes import check_axis
from atled.numpy.promotion import cast, operand_type
from atled.numpy.reductions import sum_dtype
from atled.numpy.special_values import isnan
from atled.ops import cumulative, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function


def _cumulative(name: str, op: Any, doc: str, fill: Any = None):
    def f(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        t = operand_type(name, a)
        result_dtype = dtypes.canonical(dtype) if dtype is not None else sum_dtype(t.dtype)
        x = cast(a, result_dtype)
        if fill is not None and t.kind in "fc":
            x = ew.select(isnan(x), np.asarray(fill, result_dtype), x)
        if axis is None:
            return op(shape.reshape(x, (t.size,)), 0)
        return op(x, check_axis(name, axis, t.ndim))

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "dtype"))


cumsum = _cumulative(
    "cumsum",
    cumulative.cumsum,
    """Cumulative sums of the flattened array, or along an axis.

    >>> import atled.numpy as jnp
    >>> cumsum(jnp.array([3, 1, 2]))
    Array([3, 4, 6], dtype=int32)
    """,
)
cumprod = _cumulative(
    "cumprod",
    cumulative.cumprod,
    """Cumulative products of the flattened array, or along an axis.

    >>> import atled.numpy as jnp
    >>> cumprod(jnp.array([3, 1, 2]))
    Array([3, 3, 6], dtype=int32)
    """,
)
nancumsum = _cumulative(
    "nancumsum",
    cumulative.cumsum,
    """Like `cumsum`, with NaN treated as zero.

    >>> import atled.numpy as jnp
    >>> nancumsum(jnp.array([2.0, jnp.nan, 4.0]))
    Array([2., 2., 6.], dtype=float32)
    """,
    0,
)
nancumprod = _cumulative(
    "nancumprod",
    cumulative.cumprod,
    """Like `cumprod`, with NaN treated as one.

    >>> import atled.numpy as jnp
    >>> nancumprod(jnp.array([2.0, jnp.nan, 4.0]))
    Array([2., 2., 8.], dtype=float32)
    """,
    1,
)


@library_function(static=("axis", "dtype", "include_initial"))
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The cumulative sum; with `include_initial`, it starts with a zero.

    >>> import atled.numpy as jnp
    >>> cumulative_sum(jnp.array([2, 3, 4]), include_initial=True)
    Array([0, 2, 5, 9], dtype=int32)
    """
    return _cumulative_with_start("cumulative_sum", cumsum, x, axis, dtype, include_initial, 0)


@library_function(static=("axis", "dtype", "include_initial"))
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The cumulative product; with `include_initial`, it starts with a one.

    >>> import atled.numpy as jnp
    >>> cumulative_prod(jnp.array([2, 3, 4]), include_initial=True)
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _cumulative_with_start("cumulative_prod", cumprod, x, axis, dtype, include_initial, 1)


def _cumulative_with_start(
    name: str, f: Any, x: Any, axis: int | None, dtype: Any, include_initial: bool, start: int
) -> Any:
    t = operand_type(name, x)
    if axis is None:
        if t.ndim != 1:
            raise ValueError(f"{name}: an axis is needed for arrays that are not 1-d; got {t}.")
        axis = 0
    at = check_axis(name, axis, t.ndim)
    out = f(x, axis=at, dtype=dtype)
    if include_initial:
        out = shape.pad(out, start, [(int(i == at), 0, 0) for i in range(t.ndim)])
    return out
