"""NumPy's `take` and `take_along_axis`: elements at given positions along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import error_hints, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.numpy.arithmetic import remainder
from atled.numpy.creation import asarray
from atled.numpy.index_parsing import index_dtype
from atled.numpy.index_reads import default_fill, read_nothing
from atled.numpy.promotion import broadcast_shapes, broadcast_to
from atled.ops import conversion, indexing, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function
from atled.staging.jit_signature import refuse_out


@library_function(static=("axis", "mode", "fill_value"))
def _take(a: Any, indices: Any, axis: int | None, mode: str, fill_value: Any) -> Any:
    x = a
    if axis is None:
        x, axis = shape.reshape(a, (type_of(a).size,)), 0
    t = type_of(x)
    axis %= t.ndim
    dtype = index_dtype(t.shape[axis])
    i = conversion.convert(indices, dtype)
    n = t.shape[axis]
    if 0 in t.shape:
        return read_nothing(x, (*t.shape[:axis], *type_of(i).shape, *t.shape[axis + 1 :]), mode, fill_value)
    if mode == "wrap":
        i, mode = remainder(i, np.asarray(n, dtype)), "clip"
    elif mode != "clip" and type_of(indices).kind == "i":  # in mode clip, negative positions become 0
        i = ew.select(ew.lt(i, 0), ew.add(i, np.asarray(n, dtype)), i)
    at = type_of(i)
    vectors = shape.reshape(i, (*at.shape, 1))
    offset = tuple([k for k in range(t.ndim - 1 + at.ndim) if not axis <= k < axis + at.ndim])
    sizes = tuple([1 if k == axis else d for k, d in enumerate(t.shape)])
    fill = default_fill(t.dtype) if fill_value is None else fill_value
    op = indexing.Gather(indexing.GatherAxes(offset, (axis,), (axis,)), sizes, mode, fill if mode == "fill" else 0)
    return bind(op, x, vectors)


def take(
    a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Elements along an axis at indices. Indices out of bounds read `fill_value`, by default NaN or the largest or
    smallest integer, unless `mode` is 'clip' or 'wrap'.

    >>> import atled.numpy as jnp
    >>> jnp.take(jnp.arange(4.0), jnp.array([0, 3]))
    Array([0., 3.], dtype=float32)
    """
    refuse_out("take", out)
    x, i = asarray(a), asarray(indices)
    if i.type.kind not in "iu":
        raise TypeError(f"take: indices must be integers; got {i.type}.")
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"take: axis {axis} is out of bounds for {x.type}.")
    if mode is None and 0 in x.shape:
        mode = "clip"  # raises if an empty axis is read
    chosen = "fill" if mode in (None, "raise") else "promise" if mode == "promise_in_bounds" else mode
    return _take(x, i, axis, chosen, fill_value)


@library_function(static=("axis", "mode", "fill_value", "is_wrapped"))
def _take_along_axis(
    arr: Any, indices: Any, axis: int, mode: str, fill_value: Any = None, is_wrapped: bool = True
) -> Any:
    t, i = type_of(arr), type_of(indices)
    axis %= t.ndim
    others = [k for k in range(t.ndim) if k != axis]
    dims = broadcast_shapes(*[tuple([s[k] for k in others]) for s in (t.shape, i.shape)])
    grow = lambda x, s: broadcast_to(x, tuple(s))  # noqa: E731
    full = list(dims)
    x = grow(arr, [*full[:axis], t.shape[axis], *full[axis:]])
    index = grow(indices, [*full[:axis], i.shape[axis], *full[axis:]])
    if 0 in type_of(x).shape:
        return read_nothing(x, type_of(index).shape, mode, fill_value)
    dtype = index_dtype(t.shape[axis])
    index = conversion.convert(index, dtype)
    if i.kind == "i" and is_wrapped:
        index = ew.select(ew.lt(index, 0), ew.add(index, np.asarray(t.shape[axis], dtype)), index)
    axes = indexing.GatherAxes((), (axis,), (axis,), tuple(others), tuple(others))
    vectors = shape.reshape(index, (*type_of(index).shape, 1))
    fill = (default_fill(t.dtype) if fill_value is None else fill_value) if mode == "fill" else 0
    return bind(indexing.Gather(axes, (1,) * t.ndim, mode, fill), x, vectors)


def take_along_axis(
    arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: str | None = None,
    fill_value: ArrayLike | None = None, *, wrap_negative_indices: bool | None = None,
) -> Array:  # fmt: skip
    """Elements along an axis at per-element indices, such as those returned by `argsort`.

    Indices out of bounds read `fill_value`, by default NaN, or the largest or smallest integer. Negative indices count
    from the end, unless `wrap_negative_indices` is False.

    >>> x = asarray([[3, 1], [2, 4]])
    >>> take_along_axis(x, x.argsort(axis=1), axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x, i = asarray(arr), asarray(indices)
    if axis is None:
        x, axis = shape.reshape(x, (x.size,)), 0
    if x.ndim != i.ndim:
        raise ValueError(
            errors.explained(
                f"take_along_axis: array and indices must have the same number of axes; got {x.type} and {i.type}.",
                _with_axis(x.type, i.type, axis)
                or "numpy.expand_dims(indices, axis) for the missing axis, or numpy.take.",
            )
        )
    chosen = "fill" if mode is None else "promise" if mode == "promise_in_bounds" else mode
    return _take_along_axis(x, i, axis, chosen, fill_value, wrap_negative_indices is not False)


def _with_axis(x: ArrayType, i: ArrayType, axis: int) -> str:
    """The hint for indices that lack the axis to take along: the user's line with that axis added."""
    at = axis % x.ndim
    if i.shape != (*x.shape[:at], *x.shape[at + 1 :]):
        return ""
    index = ", ".join([":"] * at + ["None"] + [":"] * (x.ndim - 1 - at))
    return error_hints.with_operand(1, f"{{}}[{index}]", "take_along_axis")
