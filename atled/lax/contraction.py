"""`dot`, `dot_general` and `batch_matmul`: products summed over axes."""

from __future__ import annotations

from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.lax.precision import DotDimensionNumbers, PrecisionLike
from atled.ops import contraction
from atled.ops.placement import placed


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Products summed over the contracting axes, for each index of the batch axes.

    >>> from atled import lax
    >>> dot_general(lax.full((5, 2, 3), 1.0), lax.full((5, 3, 4), 1.0), (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    contracting, batch = dimension_numbers
    result = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    out = contraction.dot_general(lhs, rhs, contracting, batch, contraction.precision_name(precision), result)
    return placed(out, out_sharding, "dot_general")


def dot(
    lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:  # fmt: skip
    """Vector and matrix products, or the contraction given by `dimension_numbers`.

    >>> from atled import lax
    >>> dot(lax.full((2, 3), 1.0), lax.full((3,), 2.0))
    Array([6., 6.], dtype=float32)
    """
    options = {"preferred_element_type": preferred_element_type, "out_sharding": out_sharding}
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, **options)
    a, b = type_of(lhs), type_of(rhs)
    if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2) or a.shape[-1] != b.shape[0]:
        raise TypeError(
            errors.explained(
                "dot: lhs and rhs must have one or two axes, and the last axis of lhs must match the first of rhs; "
                f"got {a} and {b}.",
                "a transpose, x.T; or numpy.matmul for more axes.",
            )
        )
    return dot_general(lhs, rhs, (((a.ndim - 1,), (0,)), ((), ())), precision, **options)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products for each index of the leading axes.

    >>> from atled import lax
    >>> batch_matmul(lax.full((5, 2, 3), 1.0), lax.full((5, 3, 4), 1.0)).shape
    (5, 2, 4)
    """
    n = type_of(lhs).ndim
    lead = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (lead, lead)), precision)
