"""Shared `masked` rules: how ops propagate the masks of tangents and cotangents (`core/tangent_mask.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core.array import type_of
from atled.core.basic_ops import arithmetic
from atled.core.op import LinearOp, Op
from atled.core.tangent_mask import ALL, PRODUCTS, SUMS, Mask, joint_reach
from atled.core.trace import bind
from atled.ops.elementwise_family import is_finite_number, is_static_scalar


class Moving(LinearOp):
    """Base class of ops that only move elements; they apply the same op to masks."""

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return moved(self, values, masks)


def moved(op: Op, values: Sequence[Any], masks: Sequence[Any], reach: int = SUMS) -> tuple[Any, Any]:
    """The result of an op that only moves elements, and its mask: the op applied to the masks of the operands."""
    out = bind(op, *values)
    groups = op.linear_groups(len(values))
    if len(groups) != 1 or all([masks[i] is ALL for i in groups[0]]):
        return out, ALL
    (group,) = groups
    given = [masks[i] for i in group]
    reach = joint_reach(given, reach if None in given else None)  # zeros that the op adds count as discarded

    def make() -> Any:
        return bind(op, *[as_array(masks[i], x) if i in group else x for i, x in enumerate(values)])

    if type(out) is not tuple:
        return out, Mask(make, reach)
    every = Mask(make, reach)
    return out, tuple([Mask(lambda i=i: every.get()[i], reach) for i in range(len(out))])


def product(op: Any, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
    """A tangent times or divided by a factor, and its mask; where the tangent was discarded, the factor is replaced by
    1.

    A mask that guards only slopes leaves the factor of other products unchanged.
    """
    i = 0 if masks[0] is not None else 1
    mask = masks[i]
    if masks[1 - i] is not None or mask is ALL or (i,) not in op.linear_in:
        return bind(op, *values), ALL
    factor = values[1 - i]
    divides = len(op.linear_in) == 1
    is_harmless = is_finite_number(factor) and not (divides and not getattr(factor, "value", factor))
    if not is_harmless and (op.is_slope or mask.reach >= PRODUCTS):
        factor = arithmetic.select(mask.get(), factor, np.ones((), type_of(factor).dtype))
    out = bind(op, values[0], factor) if i == 0 else bind(op, factor, values[1])
    return out, spread(mask, type_of(values[i]).shape, type_of(out).shape)


def total(op: Op, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
    """The sum of tangents, and its mask: discarded where all operands are discarded."""
    out, masks = bind(op, *values), only_zeros(values, masks)
    pairs = [(m, x) for m, x in zip(masks, values, strict=True) if m is not None]
    if any([m is ALL for m, _ in pairs]):
        return out, ALL
    dims = type_of(out).shape
    mask, *more = [spread(m, type_of(x).shape, dims) for m, x in pairs]
    return out, either(mask, *more) if more else mask


def spread(mask: Mask, dims: tuple[int, ...], wanted: tuple[int, ...]) -> Mask:
    """The mask of a scalar that an elementwise op broadcast to a shape."""
    return mask if mask is ALL or dims == wanted else Mask(lambda: filled(mask.get(), wanted), mask.reach)


def either(a: Mask, b: Mask) -> Mask:
    """The union of two masks."""
    if a is b:
        return a
    return Mask(lambda: arithmetic.logical_or(a.get(), b.get()), min(a.reach, b.reach))


def only_zeros(values: Sequence[Any], masks: Sequence[Any]) -> list[Any]:
    """The masks, with None replaced by `ALL` for operands other than literal zeros, such as values of a user's rule."""
    is_zero = lambda x: is_static_scalar(x) and not getattr(x, "value", x)  # noqa: E731
    return [ALL if m is None and not is_zero(x) else m for x, m in zip(values, masks, strict=True)]


def as_array(mask: Mask | None, x: Any) -> Any:
    """A mask as an array in the shape of its operand x; for None, the mask of a zero, all elements are discarded."""
    if mask is not None and mask is not ALL:
        return mask.get()
    return filled(np.bool_(mask is ALL), type_of(x).shape)


def filled(flag: Any, dims: tuple[int, ...]) -> Any:
    """A mask or a scalar boolean, broadcast to a shape."""
    return flag if type_of(flag).shape == dims else arithmetic.broadcast(flag, dims, ())
