"""Comparisons of whole arrays: `array_equal`, `array_equiv`, `allclose`."""

from __future__ import annotations

from typing import Any

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.types import ArrayType
from atled.numpy.elementwise import isclose
from atled.numpy.logic import equal
from atled.numpy.promotion import broadcast, operand_type, promote_dtypes
from atled.numpy.special_values import isnan
from atled.ops import elementwise as ew
from atled.ops import reduction, shape
from atled.staging.jit import library_function


def _all(x: Any) -> Any:
    return reduction.reduce_and(x, tuple(range(type_of(x).ndim)))


@library_function(static=("equal_nan",))
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements; with `equal_nan`, NaN equals NaN.

    >>> import atled.numpy as jnp
    >>> array_equal(jnp.array([1, 2]), jnp.array([1, 2])), array_equal(jnp.zeros(2), jnp.zeros((1, 2)))
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    s, t = (operand_type("array_equal", v) for v in (a1, a2))
    if s.shape != t.shape:
        return shape.zeros(ArrayType((), dtypes.bool_))
    x, y = promote_dtypes("array_equal", a1, a2)
    same = equal(x, y)
    has_nan = equal_nan and type_of(x).kind != "k"
    return _all(ew.logical_or(same, ew.logical_and(isnan(x), isnan(y))) if has_nan else same)


@library_function
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays have the same elements after broadcasting.

    >>> import atled.numpy as jnp
    >>> array_equiv(jnp.array([1, 2]), jnp.array([[1, 2], [1, 2]]))
    Array(True, dtype=bool)
    """
    x, y = promote_dtypes("array_equiv", a1, a2)
    try:
        x, y = broadcast("array_equiv", [x, y])
    except ValueError:
        return shape.zeros(ArrayType((), dtypes.bool_))
    return _all(ew.eq(x, y))


@library_function(static=("equal_nan",))
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether all elements are equal within a tolerance, as defined by `isclose`.

    >>> import atled.numpy as jnp
    >>> allclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.0]))
    Array(True, dtype=bool)
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))
