"""Argument checks, masks and reductions of all losses, by the rules stated in `__init__.py`."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

import atled.numpy as jnp
from atled.core import errors
from atled.core.array import Array, is_array_like, shown, type_of
from atled.core.trace import Tracer
from atled.nn.index_checks import expected


def numbers(name: str, what: str, x: Any) -> Array:
    """x as an array to compute a loss from: 16-bit floats become float32; raises unless x is floating-point."""
    if not is_array_like(x) or type_of(x).kind != "f":
        raise TypeError(
            errors.explained(
                f"losses.{name}: the {what} must be floating-point numbers; got {shown(x)}.",
                f"{what}.astype('float32')." if is_array_like(x) else "an array.",
            )
        )
    return jnp.asarray(x, "float32") if type_of(x).dtype.itemsize < 4 else jnp.asarray(x)


def alike(name: str, what: str, x: Any, like: Any, than: str) -> Array:
    """Targets, converted to the dtype of the predictions; both must have the same shape."""
    check_shape(name, what, x, type_of(like).shape, than)
    if type_of(x).kind not in "fiub":
        raise TypeError(errors.explained(f"losses.{name}: the {what} must be real numbers; got {shown(x)}."))
    return jnp.asarray(x).astype(like.dtype)


def check_shape(name: str, what: str, x: Any, shape: tuple[int, ...], than: str) -> None:
    """Raise unless an array has the given shape."""
    if not is_array_like(x) or type_of(x).shape != shape:
        raise ValueError(
            errors.explained(
                f"losses.{name}: the {what} must have the shape of {than}, {shape}; got {shown(x)}.",
                "reshape one of them; losses do not broadcast.",
            )
        )


def integers(name: str, what: str, x: Any, shape: tuple[int, ...], than: str) -> Array:
    """Integers of a given shape, as int32 or wider."""
    if not is_array_like(x) or type_of(x).kind not in "iu":
        raise TypeError(
            errors.explained(f"losses.{name}: the {what} must be integers; got {shown(x)}.", f"{what}.astype('int32').")
        )
    check_shape(name, what, x, shape, than)
    return jnp.asarray(x, "int32") if type_of(x).dtype.itemsize < 4 else jnp.asarray(x)


def within(name: str, what: str, x: Any, low: int, high: int, dtype: Any) -> tuple[Array, Array]:
    """Integers that must lie in a range, and a factor: 1, or NaN for integers out of range, which become `low`."""
    x = expected(x, low, high, f"losses.{name}: {what}")
    is_good = (x >= low) & (x < high)
    return jnp.where(is_good, x, low), jnp.where(is_good, 1, jnp.nan).astype(dtype)


def between(name: str, what: str, x: Any, low: float, high: float = math.inf) -> Any:
    """The setting x; raises unless it is from `low` to `high`."""
    if not isinstance(x, Tracer) and not low <= x <= high:
        limits = f"{low:g} or more" if high == math.inf else f"between {low:g} and {high:g}"
        raise ValueError(errors.explained(f"losses.{name}: {what} must be {limits}; got {x}."))
    return x


def selection(name: str, where: Any, shape: tuple[int, ...]) -> Any:
    """The mask of selected losses, in their shape; None if all are selected."""
    if where is None:
        return None
    if not is_array_like(where) or type_of(where).kind != "b":
        raise TypeError(
            errors.explained(
                f"losses.{name}: where must be booleans; got {shown(where)}.",
                "where=mask > 0, or weights=…, which may be any numbers.",
            )
        )
    return _spread(name, "where", where, shape)


def _spread(name: str, what: str, x: Any, shape: tuple[int, ...]) -> Any:
    """An array broadcast to the shape of the losses along axes of length 1."""
    dims = type_of(x).shape
    if len(dims) not in (0, len(shape)) or any([d not in (1, n) for d, n in zip(dims, shape)]):
        raise ValueError(
            errors.explained(
                f"losses.{name}: {what} must have the shape of the losses, {shape}, or length 1 along some axes; got "
                f"{type_of(x)}.",
                f"{what}[:, None], or reduction=None to see the shape of the losses.",
            )
        )
    return jnp.broadcast_to(jnp.asarray(x), shape)


@overload
def chosen(mask: Any, array: Array, /, *, more: int = 0) -> Array: ...
@overload
def chosen(mask: Any, first: Array, second: Array, /, *, more: int = 0) -> tuple[Array, Array]: ...
@overload
def chosen(mask: Any, *arrays: Array, more: int = 0) -> Any: ...
def chosen(mask: Any, *arrays: Any, more: int = 0) -> Any:
    """The arrays with zeros where the mask is False, so no NaN comes from there; `more` axes follow those of the mask.

    A single array is returned without a tuple.
    """
    if mask is not None:
        mask = mask.reshape(mask.shape + (1,) * more)
        arrays = tuple([jnp.where(mask, x, np.zeros((), x.dtype)) for x in arrays])
    return arrays if len(arrays) > 1 else arrays[0]  # pyright: ignore[reportGeneralTypeIssues]


def factors(name: str, mask: Any, weights: Any, like: Any) -> Any:
    """The weight of each loss: 0 for unselected ones; None if all are 1."""
    if weights is None:
        return None if mask is None else mask.astype(like.dtype)
    if not is_array_like(weights) or type_of(weights).kind not in "fiu":
        raise TypeError(
            errors.explained(f"losses.{name}: weights must be numbers; got {shown(weights)}.", "where=… for booleans.")
        )
    return chosen(mask, _spread(name, "weights", weights, like.shape).astype(like.dtype))


def check_reduction(name: str, reduction: Any) -> None:
    """Raise an error for an unknown reduction."""
    if reduction not in ("mean", "sum", None):
        raise ValueError(
            errors.explained(f"losses.{name}: reduction must be 'mean', 'sum' or None; got {reduction!r}.")
        )


def mean(total: Any, mask: Any, weights: Any, count: int) -> Any:
    """A sum divided by the total weight; 0 for an empty sum."""
    if weights is None:
        size = count if mask is None else jnp.sum(mask, dtype="int32")
    else:
        size = jnp.sum(weights)
    size = jnp.asarray(size, total.dtype)
    return total / jnp.where((size == 0) & (total == 0), 1, size)


def reduced(name: str, losses: Any, mask: Any, weights: Any, reduction: Any) -> Any:
    """Reduce losses; `mask` has their shape, or is None if all are selected."""
    check_reduction(name, reduction)
    counts = factors(name, mask, weights, losses)
    losses = chosen(mask, losses) if weights is None else chosen(mask, losses) * counts
    if reduction is None:
        return losses
    total = jnp.sum(losses)
    return total if reduction == "sum" else mean(total, mask, counts if weights is not None else None, losses.size)
