"""NumPy's reductions that ignore NaN: `nansum`, `nanmax`, `nanmean`, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.numpy.elementwise_family import to_bool
from atled.numpy.promotion import broadcast_to, operand_type
from atled.numpy.reductions import all, any, argmax, argmin, max, mean, min, prod, std, sum, var
from atled.numpy.special_values import isnan
from atled.ops import elementwise as ew
from atled.ops import reduction
from atled.staging.jit import library_function


def _total_without_nan(name: str, plain: Any, identity: int, doc: str):
    """A sum or product that ignores NaN."""

    def f(
        a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        t = operand_type(name, a)
        x = ew.select(isnan(a), np.asarray(identity, t.dtype), a) if t.kind in "fc" else a
        return plain(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "dtype", "keepdims"))


nansum = _total_without_nan(
    "nansum",
    sum,
    0,
    """Like `sum`, leaving NaN out.

    >>> import atled.numpy as jnp
    >>> nansum(jnp.array([2.0, jnp.nan, 4.0]))
    Array(6., dtype=float32)
    """,
)
nanprod = _total_without_nan(
    "nanprod",
    prod,
    1,
    """Like `prod`, leaving NaN out.

    >>> import atled.numpy as jnp
    >>> nanprod(jnp.array([2.0, jnp.nan, 4.0]))
    Array(8., dtype=float32)
    """,
)


def _is_missing(a: Any, axis: Any, where: Any = None) -> Any:
    """A mask of the NaNs to leave out: none where all are NaN, so that the result and its derivative are NaN."""
    is_nan = isnan(a)
    return ew.logical_and(
        is_nan, broadcast_to(any(ew.logical_not(is_nan), axis, keepdims=True, where=where), is_nan.shape)
    )


def _extremum_without_nan(name: str, plain: Any, fill: Callable[[Any], Any], doc: str):
    """An extremum that ignores NaN."""

    def f(
        a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        t = operand_type(name, a)
        x = a
        if t.kind in "fc":
            is_missing = isnan(a) if initial is not None else _is_missing(a, axis)
            x = ew.select(is_missing, np.asarray(fill(t.dtype), t.dtype), a)
        return plain(x, axis=axis, keepdims=keepdims, initial=initial, where=where)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "keepdims"))


_lowest = lambda d: complex(-np.inf, -np.inf) if dtypes.kind(d) == "c" else reduction.lowest(d)  # noqa: E731
_highest = lambda d: complex(np.inf, np.inf) if dtypes.kind(d) == "c" else reduction.highest(d)  # noqa: E731
nanmax = _extremum_without_nan(
    "nanmax",
    max,
    _lowest,
    """Like `max`, leaving NaN out; NaN if all elements are NaN.

    >>> import atled.numpy as jnp
    >>> nanmax(jnp.array([2.0, jnp.nan, 4.0]))
    Array(4., dtype=float32)
    """,
)
nanmin = _extremum_without_nan(
    "nanmin",
    min,
    _highest,
    """Like `min`, leaving NaN out; NaN if all elements are NaN.

    >>> import atled.numpy as jnp
    >>> nanmin(jnp.array([2.0, jnp.nan, 4.0]))
    Array(2., dtype=float32)
    """,
)


def _nan_position(name: str, plain: Any, fill: Callable[[Any], Any], doc: str):
    def f(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        t = operand_type(name, a)
        if t.kind not in "fc":
            return plain(a, axis=axis, keepdims=keepdims)
        is_nan = isnan(a)
        value = plain(ew.select(is_nan, np.asarray(fill(t.dtype), t.dtype), a), axis=axis, keepdims=keepdims)
        empty = all(is_nan, axis=axis, keepdims=bool(keepdims))
        return ew.select(empty, np.asarray(-1, type_of(value).dtype), value)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "keepdims"))


nanargmax = _nan_position(
    "nanargmax",
    argmax,
    _lowest,
    """Like `argmax`, leaving NaN out; -1 if all elements are NaN.

    >>> import atled.numpy as jnp
    >>> nanargmax(jnp.array([2.0, jnp.nan, 4.0]))
    Array(2, dtype=int32)
    """,
)
nanargmin = _nan_position(
    "nanargmin",
    argmin,
    _highest,
    """Like `argmin`, leaving NaN out; -1 if all elements are NaN.

    >>> import atled.numpy as jnp
    >>> nanargmin(jnp.array([2.0, jnp.nan, 4.0]))
    Array(0, dtype=int32)
    """,
)


def _counted(name: str, a: Any, axis: Any, where: Any) -> Any:
    mask = ew.logical_not(_is_missing(a, axis, where))
    return mask if where is None else ew.logical_and(mask, broadcast_to(to_bool(name, where), type_of(mask).shape))


@library_function(static=("axis", "dtype", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements that are not NaN.

    >>> import atled.numpy as jnp
    >>> nanmean(jnp.array([1.0, jnp.nan, 4.0]))
    Array(2.5, dtype=float32)
    """
    mask = _counted("nanmean", a, axis, where)
    return mean(a, axis=axis, dtype=dtype, keepdims=keepdims, where=mask)


@library_function(static=("axis", "dtype", "ddof", "keepdims"))
def nanvar(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of the elements that are not NaN.

    >>> import atled.numpy as jnp
    >>> nanvar(jnp.array([1.0, jnp.nan, 4.0]))
    Array(2.25, dtype=float32)
    """
    mask = _counted("nanvar", a, axis, where)
    return var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=mask, mean=mean)


@library_function(static=("axis", "dtype", "ddof", "keepdims"))
def nanstd(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation of the elements that are not NaN.

    >>> import atled.numpy as jnp
    >>> nanstd(jnp.array([1.0, jnp.nan, 4.0]))
    Array(1.5, dtype=float32)
    """
    mask = _counted("nanstd", a, axis, where)
    return std(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=mask, mean=mean)
