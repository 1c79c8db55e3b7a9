"""NaN, infinities and signs: NumPy's `isnan`, `isfinite`, `nan_to_num`, `signbit`, `copysign`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.types import ArrayType
from atled.numpy.elementwise_family import Unary, check_real, finish
from atled.numpy.promotion import broadcast, operand_type, promote_inexact
from atled.ops import conversion, elementary, shape
from atled.ops import elementwise as ew
from atled.staging.jit import library_function


def _parts(op: Callable[[Any], Any], join: Callable[[Any, Any], Any], default: bool) -> Callable[[Any], Any]:
    """op(x) for floats, join(op(real), op(imag)) for complex numbers, and `default` for other dtypes."""

    def f(x: Any) -> Any:
        kind = type_of(x).kind
        if kind == "c":
            return join(op(conversion.real(x)), op(conversion.imag(x)))
        if kind == "f":
            return op(x)
        if kind == "k":
            return shape.full(ArrayType(type_of(x).shape, np.dtype(bool)), default)
        same = ew.eq(x, x)
        return same if default else ew.logical_not(same)

    return f


def _test(name: str, op: Callable[[Any], Any], doc: str) -> Unary:
    def f(x: ArrayLike, /) -> Array:
        operand_type(name, x)
        return op(x)

    return finish(f, name, doc)


isnan = _test(
    "isnan", _parts(lambda x: ew.ne(x, x), ew.logical_or, False),
    "Whether x is NaN.\n\n>>> print(isnan(np.array([1.0, np.nan])))\n[False  True]",
)  # fmt: skip
isfinite = _test(
    "isfinite", _parts(elementary.is_finite, ew.logical_and, True),
    "Whether x is neither infinite nor NaN.\n\n>>> print(isfinite(np.array([1.0, np.inf])))\n[ True False]",
)  # fmt: skip
isinf = _test(
    "isinf",
    _parts(lambda x: ew.eq(elementary.absolute(x), np.asarray(np.inf, type_of(x).dtype)), ew.logical_or, False),
    "Whether x is infinite.\n\n>>> print(isinf(np.array([1.0, -np.inf])))\n[False  True]",
)


def _is_infinite(name: str, limit: float, doc: str):
    test = _parts(lambda x: ew.eq(x, np.asarray(limit, type_of(x).dtype)), ew.logical_or, False)

    def f(x: ArrayLike, /, out: None = None) -> Array:
        check_real(name, x)
        return test(x)

    return finish(f, name, doc)


isposinf = _is_infinite(
    "isposinf", np.inf, "Whether x is +inf.\n\n>>> print(isposinf(np.array([np.inf, -np.inf])))\n[ True False]"
)
isneginf = _is_infinite(
    "isneginf", -np.inf, "Whether x is -inf.\n\n>>> print(isneginf(np.array([np.inf, -np.inf])))\n[False  True]"
)


@library_function
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set, also of -0.0 and NaN.

    >>> signbit(np.asarray([-1.0, -0.0, 0.0], "float32"))
    Array([ True,  True, False], dtype=bool)
    """
    check_real("signbit", x)
    t = type_of(x)
    if t.kind != "f":
        return ew.lt(x, np.zeros((), t.dtype)) if t.kind == "i" else ew.ne(x, x)
    integer = np.dtype(f"int{dtypes.bits(t.dtype)}")
    return ew.lt(conversion.bitcast_convert(conversion.convert(x, t.dtype), integer), 0)


@library_function
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of x1 with the sign of x2.

    >>> copysign(np.asarray([1.0, 2.0], "float32"), np.asarray([-1.0, 0.0], "float32"))
    Array([-1.,  2.], dtype=float32)
    """
    check_real("copysign", x1, x2)
    x, y = broadcast("copysign", promote_inexact("copysign", x1, x2))
    size = elementary.absolute(x)
    return ew.select(signbit.__wrapped__(y), ew.neg(size), size)


@library_function(static=("copy", "nan", "posinf", "neginf"))
def nan_to_num(
    x: ArrayLike, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """NaN and infinities replaced by numbers.

    >>> nan_to_num(np.asarray([np.nan, 1.0, np.inf], "float32"), posinf=9.0)
    Array([0., 1., 9.], dtype=float32)
    """
    t = operand_type("nan_to_num", x)
    if t.kind not in "fc":
        return x  # pyright: ignore[reportReturnType]
    if t.kind == "c":
        parts = [nan_to_num.__wrapped__(p, copy, nan, posinf, neginf) for p in (conversion.real(x), conversion.imag(x))]
        return conversion.complex(*parts)
    info = dtypes.finfo(t.dtype)
    value = lambda v, default: np.asarray(default if v is None else v, t.dtype)  # noqa: E731
    inf = np.asarray(np.inf, t.dtype)
    x = ew.select(ew.ne(x, x), value(nan, 0.0), x)
    x = ew.select(ew.eq(x, inf), value(posinf, info.max), x)
    return ew.select(ew.eq(x, np.asarray(-np.inf, t.dtype)), value(neginf, info.min), x)
