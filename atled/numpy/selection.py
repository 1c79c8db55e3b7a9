"""Elements chosen by conditions and indices: NumPy's `where`, `select`, `choose`, `piecewise`, `compress`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from atled.core import dtypes, error_hints, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axis
from atled.numpy.creation import asarray
from atled.numpy.elementwise import where_both as _where
from atled.numpy.elementwise_family import to_bool
from atled.numpy.promotion import broadcast, broadcast_shapes, broadcast_to, cast, operand_type, promote_dtypes
from atled.numpy.searching import as_size, check_positions, concrete, first_true, in_mode, nonzero, positions_of
from atled.numpy.shapes import ravel
from atled.numpy.take_along import take
from atled.ops import conversion, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function
from atled.staging.jit_signature import refuse_out

__all__ = ["choose", "compress", "extract", "piecewise", "select", "where"]


@overload
def where(condition: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> Array: ...
def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """x where the condition holds, else y; with the condition alone, the indices where it holds, like `nonzero`.

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
                error_hints.called_with("{0}", "{1}", "0.0", function="where") or "where(condition, x, 0.0).",
            )
        )
    if size is not None or fill_value is not None:
        raise ValueError("where: `size` and `fill_value` are only for the form with a single argument.")
    return _where(condition, x, y)


@library_function(static=("size", "axis"))
def _compress(condition: Any, a: Any, fill_value: Any, size: int, axis: int) -> Any:
    t = type_of(a)
    dims = (*t.shape[:axis], size, *t.shape[axis + 1 :])
    if t.shape[axis] == 0:
        return broadcast_to(cast(fill_value, t.dtype), dims)
    mask = to_bool("compress", condition)
    indices, is_real = first_true(shape.slice_in_axis(mask, 0, min(type_of(mask).size, t.shape[axis]), 0), size)
    is_taken = shape.broadcast(is_real, dims, (axis,))
    return ew.select(is_taken, take(a, indices, axis=axis, mode="clip"), cast(fill_value, t.dtype))


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices along an axis for which a 1-d condition holds; `size` fixes their number; `fill_value` pads.

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
        indices = np.flatnonzero(concrete("compress", condition))
        if indices.size and indices[-1] >= m:
            raise ValueError(
                f"compress: the condition holds at {indices[-1]}, past the end of axis {at} of {type_of(x)}."
            )
        return take(x, positions_of(indices), axis=at, mode="clip")
    return _compress(condition, x, fill_value, as_size("compress", size), at)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of the flattened array for which a condition holds; `size` fixes their number.

    >>> extract(asarray([True, False, True]), asarray([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


@library_function(static=("mode",))
def _choose(a: Any, choices: list[Any], mode: str) -> Any:
    values = promote_dtypes("choose", *choices)
    index = cast(a, type_of(a).dtype) if type_of(a).kind != "b" else conversion.convert(a, dtypes.int8)
    dims = broadcast_shapes(*[type_of(v).shape for v in (index, *values)])
    index = broadcast_to(in_mode("choose", index, len(values), mode), dims)
    out = broadcast_to(values[0], dims)
    for i, v in enumerate(values[1:], 1):
        out = ew.select(ew.eq(index, i), broadcast_to(v, dims), out)
    return out


def choose(
    a: ArrayLike, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Select each element from one of the arrays `choices`, by an index array.

    For indices out of bounds, mode 'raise' raises (it needs concrete indices), 'wrap' wraps around and 'clip' clips.

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
    check_positions("choose", a, len(arrays), mode)
    return _choose(a, arrays, "clip" if mode == "raise" else mode)


@library_function
def _select(conditions: list[Any], choices: list[Any], default: Any) -> Any:
    *values, out = promote_dtypes("select", *choices, default)
    for c, v in zip(reversed(conditions), reversed(values), strict=True):
        out = ew.select(*broadcast("select", [to_bool("select", c), v, out]))
    return out


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """Select each element from the choice of the first condition that is true, else the default.

    >>> import atled.numpy as jnp
    >>> x = jnp.arange(4.0)
    >>> select([x < 1, x < 3], [-x, 10 * x], 7.0)
    Array([-0., 10., 20.,  7.], dtype=float32)
    """
    conditions, choices = list(condlist), list(choicelist)
    if not conditions or len(conditions) != len(choices):
        raise ValueError(
            f"select: conditions and choices must have the same length; got {len(conditions)} and {len(choices)}."
        )
    types = [operand_type("select", c) for c in conditions]
    if any(t.kind != "b" for t in types):
        raise TypeError(f"select: conditions must be arrays of bools; got {', '.join(map(str, types))}.")
    return _select(conditions, choices, default)


def piecewise(
    x: ArrayLike, condlist: Array | np.ndarray | Sequence[ArrayLike], funclist: Sequence[Any], *args: Any, **kw: Any
) -> Array:
    """A piecewise function: where a condition holds, the value of its function or number; the last true one wins.

    An extra function applies where no condition holds; without it, the result there is 0. Each function is called once,
    with all of x.

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
