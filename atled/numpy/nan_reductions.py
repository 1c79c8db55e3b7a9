"""NumPy's reductions that ignore NaN: `nansum`, `nanmax`, `nanmean`, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.numpy.family import to_bool
from atled.numpy.promotion import broadcast_to, operand_type
from atled.numpy.reductions import all, argmax, argmin, max, mean, min, prod, std, sum, var
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


def _without_nan(name: str, plain: Any, fill: Callable[[Any], Any], static: tuple[str, ...]):
    """A reduction that ignores NaN, by replacing it with the identity element."""

    def f(a: Any, axis: Any = None, **kwargs: Any) -> Any:
        t = operand_type(name, a)
        if t.kind not in "fc":
            return plain(a, axis=axis, **kwargs)
        return plain(ew.select(isnan(a), np.asarray(fill(t.dtype), t.dtype), a), axis=axis, **kwargs)

    f.__name__ = f.__qualname__ = name
    f.__module__ = "atled.numpy"
    f.__doc__ = f"As `{plain.__name__}`, leaving NaN out."
    return library_function(f, static=static)


_lowest = lambda d: complex(-np.inf, -np.inf) if dtypes.kind(d) == "c" else reduction.lowest(d)  # noqa: E731
_highest = lambda d: complex(np.inf, np.inf) if dtypes.kind(d) == "c" else reduction.highest(d)  # noqa: E731
_nanmax = _without_nan("nanmax", max, _lowest, ("axis", "keepdims"))
_nanmin = _without_nan("nanmin", min, _highest, ("axis", "keepdims"))
_nanargmax = _without_nan("nanargmax", argmax, _lowest, ("axis", "keepdims"))
_nanargmin = _without_nan("nanargmin", argmin, _highest, ("axis", "keepdims"))


def _or_nan(name: str, found: Any, doc: str):
    def f(
        a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        t = operand_type(name, a)
        value = found.__wrapped__(a, axis=axis, keepdims=keepdims, initial=initial, where=where)
        if t.kind not in "fc" or initial is not None:
            return value
        empty = all(isnan(a), axis=axis, keepdims=keepdims)
        return ew.select(empty, np.asarray(np.nan, t.dtype), value)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "keepdims"))


nanmax = _or_nan(
    "nanmax",
    _nanmax,
    """Like `max`, leaving NaN out; NaN if nothing is left.

    >>> import atled.numpy as jnp
    >>> nanmax(jnp.array([2.0, jnp.nan, 4.0]))
    Array(4., dtype=float32)
    """,
)
nanmin = _or_nan(
    "nanmin",
    _nanmin,
    """Like `min`, leaving NaN out; NaN if nothing is left.

    >>> import atled.numpy as jnp
    >>> nanmin(jnp.array([2.0, jnp.nan, 4.0]))
    Array(2., dtype=float32)
    """,
)


def _nan_position(name: str, found: Any, doc: str):
    def f(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        value = found.__wrapped__(a, axis=axis, keepdims=keepdims)
        if operand_type(name, a).kind not in "fc":
            return value
        empty = all(isnan(a), axis=axis, keepdims=bool(keepdims))
        return ew.select(empty, np.asarray(-1, type_of(value).dtype), value)

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f, static=("axis", "keepdims"))


nanargmax = _nan_position(
    "nanargmax",
    _nanargmax,
    """Like `argmax`, leaving NaN out; -1 if nothing is left.

    >>> import atled.numpy as jnp
    >>> nanargmax(jnp.array([2.0, jnp.nan, 4.0]))
    Array(2, dtype=int32)
    """,
)
nanargmin = _nan_position(
    "nanargmin",
    _nanargmin,
    """Like `argmin`, leaving NaN out; -1 if nothing is left.

    >>> import atled.numpy as jnp
    >>> nanargmin(jnp.array([2.0, jnp.nan, 4.0]))
    Array(0, dtype=int32)
    """,
)


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
    mask = ew.logical_not(isnan(a))
    if where is not None:
        mask = ew.logical_and(mask, broadcast_to(to_bool("nanmean", where), type_of(mask).shape))
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
    mask = ew.logical_not(isnan(a))
    if where is not None:
        mask = ew.logical_and(mask, broadcast_to(to_bool("nanvar", where), type_of(mask).shape))
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
    mask = ew.logical_not(isnan(a))
    if where is not None:
        mask = ew.logical_and(mask, broadcast_to(to_bool("nanstd", where), type_of(mask).shape))
    return std(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=mask, mean=mean)
