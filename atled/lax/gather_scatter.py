"""Slices, gather and scatter with the arguments of JAX's `lax`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.core.axes import check_axis
from atled.core.trace import bind
from atled.higher_order.while_loop import fori_loop
from atled.numpy.creation import asarray
from atled.numpy.index_reads import default_fill
from atled.ops import conversion, elementwise, indexing, reduction, shape
from atled.transforms.vmap import vmap


class GatherDimensionNumbers(NamedTuple):
    """Dimension numbers of `gather`: how the axes of operand, indices and result correspond.

    >>> rows = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> gather(asarray([[1, 2], [3, 4], [5, 6]]), asarray([[2], [0]]), rows, (1, 2))
    Array([[5, 6],
           [1, 2]], dtype=int32)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Dimension numbers of `scatter`: how the axes of operand, indices and updates correspond.

    >>> rows = ScatterDimensionNumbers((1,), (0,), (0,))
    >>> scatter(np.zeros((2, 2), "int32"), asarray([[1]]), asarray([[7, 8]]), rows)
    Array([[0, 0],
           [7, 8]], dtype=int32)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """How `gather` and `scatter` treat indices out of bounds.

    >>> GatherScatterMode.from_any("clip")
    <GatherScatterMode.CLIP: 'clip'>
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise"
    ONE_HOT = "one_hot"

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """The mode with a name, such as "clip"; None is `FILL_OR_DROP`."""
        if isinstance(mode, GatherScatterMode):
            return mode
        names = {None: "fill", "clip": "clip", "fill": "fill", "drop": "fill", "promise_in_bounds": "promise"}
        if mode not in names:
            raise ValueError(f"mode: expected 'clip', 'fill', 'drop' or 'promise_in_bounds'; got {mode!r}.")
        return GatherScatterMode(names[mode])


def gather(
    operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int],
    *, unique_indices: bool = False, indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Slices of an array at given start indices.

    >>> windows = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    >>> gather(asarray([0, 1, 2, 3]), asarray([[2], [0]]), windows, (2,))
    Array([[2, 3],
           [0, 1]], dtype=int32)
    """
    kind = GatherScatterMode.from_any(mode).value
    fill = default_fill(type_of(operand).dtype) if fill_value is None else fill_value
    axes = indexing.GatherAxes(*[tuple(v) for v in dimension_numbers])
    op = indexing.Gather(
        axes, tuple(slice_sizes), kind, fill if kind == "fill" else 0, unique_indices, indices_are_sorted
    )
    return bind(op, operand, start_indices)


def _scatter(combine: str):
    def f(
        operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:  # fmt: skip
        kind = {"fill": "drop"}.get(GatherScatterMode.from_any(mode).value, GatherScatterMode.from_any(mode).value)
        axes = indexing.ScatterAxes(*[tuple(v) for v in dimension_numbers])
        return bind(
            indexing.Scatter(axes, combine, kind, unique_indices, indices_are_sorted), operand, scatter_indices, updates
        )

    f.__name__ = f.__qualname__ = "scatter" if combine == "set" else f"scatter_{combine}"
    f.__doc__ = f"An array with updates combined ({combine}) into the windows at given indices."
    return f


scatter, scatter_add, scatter_mul, scatter_min, scatter_max = map(_scatter, ("set", "add", "mul", "min", "max"))


def scatter_sub(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
) -> Array:  # fmt: skip
    """An array with updates subtracted from windows at given indices.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_sub(asarray([5, 5, 5]), asarray([[0], [2], [2]]), asarray([1, 1, 1]), numbers)
    Array([4, 5, 3], dtype=int32)
    """
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
    return scatter_add(operand, scatter_indices, elementwise.neg(updates), dimension_numbers, **options)


def scatter_apply(
    operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Array], ArrayLike],
    dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (), indices_are_sorted: bool = False,
    unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
) -> Array:  # fmt: skip
    """An array with a scalar function applied in the windows at given indices, once for each occurrence of an index.

    `update_shape` is the shape that `updates` would have in `scatter`.

    >>> import atled.numpy as jnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(jnp.ones(3), jnp.array([[0], [2], [2]]), lambda x: 2 * x, numbers, update_shape=(3,))
    Array([2., 1., 4.], dtype=float32)
    """
    t = type_of(operand)
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
    hits = np.ones(tuple(update_shape), np.int32)
    zeros = shape.broadcast(np.int32(0), t.shape, ())
    times = scatter_add(zeros, scatter_indices, hits, dimension_numbers, **options)
    one = vmap(func)

    def applied(x: Any) -> Any:
        out = one(shape.reshape(x, (t.size,)))
        if not hasattr(out, "dtype") or type_of(out).shape != (t.size,) or type_of(out).dtype is not t.dtype:
            raise TypeError(
                errors.explained(
                    f"scatter_apply: the function must return a scalar of {t.dtype.name}; got {describe(out)}."
                )
            )
        return shape.reshape(out, t.shape)

    operand = asarray(operand)
    if not t.size:
        return operand
    if unique_indices:
        return elementwise.select(elementwise.gt(times, 0), applied(operand), operand)
    most = reduction.reduce_max(times, tuple(range(t.ndim)))
    step = lambda i, x: elementwise.select(elementwise.gt(times, i), applied(x), x)  # noqa: E731
    return fori_loop(0, most, step, operand)


def _starts(operand: Any, starts: Any, negative: bool | Sequence[bool]) -> list[Any]:
    """Start indices; on the axes where `negative` is true, negative ones count from the end."""
    dims = type_of(operand).shape
    wraps = [negative] * len(dims) if isinstance(negative, bool) else list(negative)
    if len(wraps) != len(dims):
        raise ValueError(f"allow_negative_indices: one value for each of {len(dims)} axes is needed; got {negative}.")
    if hasattr(starts, "ndim") and getattr(starts, "ndim", 0) == 1:
        starts = [shape.index_in_axis(starts, i, 0) for i in range(type_of(starts).shape[0])]
    out = []
    for s, n, is_wrapped in zip(starts, dims, wraps, strict=True):
        if isinstance(s, (int, np.integer)):
            if s < 0 and not is_wrapped:
                raise ValueError(f"allow_negative_indices=False: indices must not be negative; got {s}.")
            out.append(np.asarray(s + n if s < 0 else s, np.int32 if n < 2**31 else np.int64))
        elif type_of(s).kind == "u" or not is_wrapped:
            out.append(s)
        else:
            out.append(elementwise.select(elementwise.lt(s, 0), elementwise.add(s, np.asarray(n, type_of(s).dtype)), s))
    return out


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A slice of fixed size at a position that may be traced; clamped so that it stays in bounds.

    >>> import atled.numpy as jnp
    >>> dynamic_slice(jnp.arange(5.0), (3,), (3,))
    Array([2., 3., 4.], dtype=float32)
    """
    return indexing.dynamic_slice(operand, _starts(operand, start_indices, allow_negative_indices), slice_sizes)


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """An array with a slice overwritten at a position that may be traced.

    >>> dynamic_update_slice(asarray([0, 1, 2, 3]), asarray([7, 8]), (1,))
    Array([0, 7, 8, 3], dtype=int32)
    """
    t = type_of(operand)
    update = conversion.convert(update, t.dtype) if type_of(update).weak else update
    starts = (
        [start_indices]
        if not isinstance(start_indices, (tuple, list)) and type_of(start_indices).ndim == 0
        else start_indices
    )
    return indexing.dynamic_update_slice(operand, update, _starts(operand, starts, allow_negative_indices))


def _one_start(operand: Any, start: Any, axis: int) -> list[Any]:
    zero = np.zeros((), type_of(start).dtype if hasattr(start, "dtype") else np.int32)
    return [start if i == axis else zero for i in range(type_of(operand).ndim)]


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """A slice along one axis at a position that may be traced.

    >>> dynamic_slice_in_dim(asarray([0, 1, 2, 3]), 1, 2)
    Array([1, 2], dtype=int32)
    """
    dims = list(type_of(operand).shape)
    axis = check_axis("dynamic_slice_in_dim", axis, len(dims))
    dims[axis] = slice_size
    starts = _one_start(operand, start_index, axis)
    return dynamic_slice(operand, starts, dims, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """One element along an axis at a position that may be traced.

    >>> dynamic_index_in_dim(asarray([[1, 2], [3, 4]]), 1, keepdims=False)
    Array([3, 4], dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    dims = type_of(out).shape
    axis = check_axis("dynamic_index_in_dim", axis, len(dims))
    return out if keepdims else shape.reshape(out, (*dims[:axis], *dims[axis + 1 :]))


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """An array with a slice along one axis overwritten, at a position that may be traced.

    >>> dynamic_update_slice_in_dim(asarray([0, 1, 2, 3]), asarray([7, 8]), 1, 0)
    Array([0, 7, 8, 3], dtype=int32)
    """
    starts = _one_start(operand, start_index, check_axis("dynamic_update_slice_in_dim", axis, type_of(operand).ndim))
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """An array with one element along an axis overwritten, at a position that may be traced.

    >>> dynamic_update_index_in_dim(asarray([0, 1, 2, 3]), 9, 2, 0)
    Array([0, 1, 9, 3], dtype=int32)
    """
    axis = check_axis("dynamic_update_index_in_dim", axis, type_of(operand).ndim)
    dims = type_of(update).shape
    if len(dims) != type_of(operand).ndim:
        update = shape.reshape(update, (*dims[:axis], 1, *dims[axis:]))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Elements from start up to limit along one axis.

    >>> slice_in_dim(asarray([0, 1, 2, 3]), 1, None, stride=2)
    Array([1, 3], dtype=int32)
    """
    axis = check_axis("slice_in_dim", axis, type_of(operand).ndim)
    n = type_of(operand).shape[axis]
    start, limit, _ = slice(start_index, limit_index).indices(n)
    return shape.slice_in_axis(operand, start, max(start, limit), axis, stride)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The element at an index of an axis.

    >>> index_in_dim(asarray([[1, 2], [3, 4]]), 1, axis=1, keepdims=False)
    Array([2, 4], dtype=int32)
    """
    axis = check_axis("index_in_dim", axis, type_of(operand).ndim)
    n = type_of(operand).shape[axis]
    if not -n <= index < n:
        raise IndexError(f"index_in_dim: {index} is out of bounds for axis {axis} with length {n}.")
    return shape.index_in_axis(operand, index % n, axis, keepdims)


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The slices at the indices idxs[0], idxs[1], ... along axes[0], axes[1], ..., stacked on a new first axis.

    >>> index_take(asarray([[1, 2], [3, 4]]), (asarray([0, 1]), asarray([1, 0])), (0, 1))
    Array([2, 3], dtype=int32)
    """
    vectors = shape.concatenate(
        [shape.reshape(conversion.convert(i, dtypes.int32), (*type_of(i).shape, 1)) for i in idxs], 1
    )
    t = type_of(src)
    sizes = tuple([1 if a in axes else n for a, n in enumerate(t.shape)])
    offset = tuple(range(1, t.ndim - len(axes) + 1))
    return bind(indexing.Gather(indexing.GatherAxes(offset, tuple(axes), tuple(axes)), sizes, "clip"), src, vectors)
