"""Grouped (ragged) matrix products, and products of block-scaled operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import atled.numpy as jnp
from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.types import ArrayType
from atled.higher_order.scan import scan
from atled.lax.precision import DotDimensionNumbers, PrecisionLike
from atled.numpy.promotion import promote_dtypes
from atled.ops import contraction, conversion, elementwise, shape
from atled.ops.placement import placed
from atled.staging.jit import library_function


def _tuples(numbers: Any) -> Any:
    (xc, yc), (xb, yb) = numbers
    return ((tuple(xc), tuple(yc)), (tuple(xb), tuple(yb)))


class RaggedDotDimensionNumbers:
    """Dimension numbers of `ragged_dot_general`: contracted, batch, ragged (split) and group axes.

    >>> rows = RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
    >>> ragged_dot_general(jnp.ones((1, 3)), jnp.ones((3, 1)), jnp.array([1, 2]), rows).shape
    (2, 1, 1)
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(
        self, dot_dimension_numbers: DotDimensionNumbers, lhs_ragged_dimensions: Sequence[int],
        rhs_group_dimensions: Sequence[int],
    ) -> None:  # fmt: skip
        self.dot_dimension_numbers = _tuples(dot_dimension_numbers)
        self.lhs_ragged_dimensions = tuple(lhs_ragged_dimensions)
        self.rhs_group_dimensions = tuple(rhs_group_dimensions)

    def _fields(self) -> tuple[Any, ...]:
        return self.dot_dimension_numbers, self.lhs_ragged_dimensions, self.rhs_group_dimensions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedDotDimensionNumbers) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        fields = ", ".join([f"{n}={v}" for n, v in zip(self.__slots__, self._fields(), strict=True)])
        return f"RaggedDotDimensionNumbers({fields})"


def _complain(says: str) -> None:
    raise TypeError(errors.explained(f"ragged_dot_general: {says}"))


def _kind(x: ArrayType, y: ArrayType, g: ArrayType, numbers: RaggedDotDimensionNumbers) -> str:
    """The kind of the ragged axis: "rows" (free), "summed" or "batched"; raises if operands or axes do not fit."""
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        _complain(f"lhs_ragged_dimensions must be one axis of {x}; got {numbers.lhs_ragged_dimensions}.")
    (axis,) = numbers.lhs_ragged_dimensions
    if not 0 <= axis < x.ndim:
        _complain(f"lhs_ragged_dimensions: axis {axis} is out of bounds for {x}.")
    kind = "summed" if axis in xc else "batched" if axis in xb else "rows"
    count = 1 if kind == "rows" else 0
    if len(numbers.rhs_group_dimensions) != count:
        _complain(
            f"rhs_group_dimensions must have length {count}, because axis {axis} of {x} is {kind}; "
            f"got {numbers.rhs_group_dimensions}."
        )
    if g.kind not in "iu" or g.ndim == 0:
        _complain(f"group_sizes must be integers with at least one axis; got {g}.")
    for a in numbers.rhs_group_dimensions:
        if not 0 <= a < y.ndim or a in yc or a in yb:
            _complain(f"the group axis of {y} must be neither contracted nor a batch axis; got {a}.")
        if y.shape[a] != g.shape[-1]:
            _complain(f"axis {a} of {y} must have one matrix for each of {g.shape[-1]} groups; got {y.shape[a]}.")
    return kind


def _outer(x: ArrayType, numbers: RaggedDotDimensionNumbers, kind: str) -> list[int]:
    """The axes of the left operand on which group sizes may depend: batch axes, then free or contracted ones."""
    (xc, _), (xb, _) = numbers.dot_dimension_numbers
    (axis,) = numbers.lhs_ragged_dimensions
    if kind == "batched":
        return list(xb[: xb.index(axis)])
    own = xc if kind == "summed" else [a for a in range(x.ndim) if a not in xc and a not in xb]
    return [*xb, *list(own)[: list(own).index(axis)]]


@library_function(static=("numbers", "kind", "precision", "result"))
def _by_groups(
    x: Any, y: Any, sizes: Any, numbers: RaggedDotDimensionNumbers, kind: str, precision: Any, result: Any
) -> Any:
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    (axis,) = numbers.lhs_ragged_dimensions
    t, outer = type_of(x), _outer(type_of(x), numbers, kind)
    dims = (*[t.shape[a] for a in outer], type_of(sizes).shape[-1])
    sizes = jnp.broadcast_to(sizes, dims)
    ends = jnp.moveaxis(jnp.cumsum(sizes, -1), -1, 0)
    starts = ends - jnp.moveaxis(sizes, -1, 0)
    place = shape.iota(type_of(ends).dtype, t.shape, axis)

    def only(start: Any, end: Any) -> Any:
        """The left operand with zeros outside of a group."""
        low, high = (shape.broadcast(v, t.shape, tuple(outer)) for v in (start, end))
        return jnp.where((place >= low) & (place < high), x, jnp.zeros((), t.dtype))

    if kind == "summed":
        one = lambda part: contraction.dot_general(part, y, (xc, yc), (xb, yb), precision, result)  # noqa: E731
        return scan(lambda _, ends: (None, one(only(*ends))), None, (starts, ends))[1]
    (group,) = numbers.rhs_group_dimensions
    down = lambda axes: tuple([a - (a > group) for a in axes])  # noqa: E731
    matrices = jnp.moveaxis(y, group, 0)
    one = lambda part, m: contraction.dot_general(part, m, (xc, down(yc)), (xb, down(yb)), precision, result)  # noqa: E731

    def step(total: Any, given: Any) -> tuple[Any, None]:
        matrix, *ends = given
        return total + one(only(*ends), matrix), None

    return scan(step, jnp.zeros_like(one(x, matrices[0])), (matrices, starts, ends))[0]


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Grouped products: one axis of `lhs` is split into groups of given sizes.

    If the axis is a row axis, each group is multiplied by its own matrix of `rhs`, and rows beyond the last group
    give zeros. If the axis is contracted, each group is summed separately, on a new leading axis. If the axis is a
    batch axis, groups have no effect.

    >>> import atled.numpy as jnp
    >>> rows = RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
    >>> ragged_dot_general(jnp.ones((1, 3)), jnp.ones((3, 1)), jnp.array([1, 2]), rows).ravel()
    Array([1., 2.], dtype=float32)
    """
    if group_offset is not None:
        raise NotImplementedError("ragged_dot_general: group_offset is not supported; slice rhs and group_sizes.")
    numbers = ragged_dot_dimension_numbers
    lhs, rhs = promote_dtypes("ragged_dot_general", lhs, rhs)
    x, g = type_of(lhs), type_of(group_sizes)
    kind = _kind(x, type_of(rhs), g, numbers)
    outer = _outer(x, numbers, kind)
    full_shape = (*[x.shape[a] for a in outer], g.shape[-1])
    if g.ndim > 1 and g.shape != full_shape:
        _complain(f"group_sizes must have the shape {g.shape[-1:]} or {full_shape}; got {g}.")
    result = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    name = contraction.precision_name(precision)
    if kind == "batched":
        contracting, batch = numbers.dot_dimension_numbers
        out = contraction.dot_general(lhs, rhs, contracting, batch, name, result)
    else:
        out = _by_groups(lhs, rhs, group_sizes, numbers, kind, name, result)
    return placed(out, out_sharding, "ragged_dot_general")


# -- operands with scales ---------------------------------------------------------------------------------------------


def _scaled(side: str, x: Any, scale: Any, contracting: Sequence[int]) -> Any:
    """An operand times its scales, one for each block along the contracted axes."""
    wide = dtypes.bfloat16
    x = conversion.convert(x, wide)
    if scale is None:
        return x
    t, s = type_of(x), type_of(scale)
    if s.ndim != t.ndim:
        raise TypeError(
            errors.explained(f"scaled_dot: {side}_scale must have the number of axes of {side}, {t.ndim}; got {s}.")
        )
    for a, (n, k) in enumerate(zip(t.shape, s.shape, strict=True)):
        if a not in contracting and n != k:
            raise TypeError(
                errors.explained(
                    f"scaled_dot: axis {a} of {side} and its scale must have the same length; got {n} and {k}."
                )
            )
        if a in contracting and (k == 0 or n % k or n // k < 2):
            raise TypeError(
                errors.explained(
                    f"scaled_dot: a scale must cover 2 or more elements of axis {a} of {side}; got {k} for {n}."
                )
            )
    scale = conversion.convert(scale, wide)
    for a in contracting:
        scale = jnp.repeat(scale, t.shape[a] // s.shape[a], a)
    return elementwise.mul(x, scale)


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Products of operands in narrow dtypes, with a scale for each block along the contracted axis.

    Operands are scaled in bfloat16, which is also the default dtype of the result.

    >>> import atled.numpy as jnp
    >>> scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=jnp.array([[2.0, 3.0]]))
    Array([[10]], dtype=bfloat16)
    """
    a, b = type_of(lhs), type_of(rhs)
    if dimension_numbers is None:
        if a.ndim != b.ndim or a.ndim < 2:
            raise TypeError(errors.explained(f"scaled_dot: matrices of the same rank are needed; got {a} and {b}."))
        lead = tuple(range(a.ndim - 2))
        dimension_numbers = (((a.ndim - 1,), (a.ndim - 2,)), (lead, lead))
    contracting, batch = _tuples(dimension_numbers)
    result_dtype = dtypes.canonical(preferred_element_type or dtypes.bfloat16)
    left, right = _scaled("lhs", lhs, lhs_scale, contracting[0]), _scaled("rhs", rhs, rhs_scale, contracting[1])
    return contraction.dot_general(left, right, contracting, batch, None, result_dtype)
