"""NumPy's rounding: `floor`, `ceil`, `trunc`, `rint`, `round`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np  # noqa: F401, for the examples

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.elementwise_family import Unary, finish, float_function
from atled.numpy.promotion import operand_type
from atled.ops import conversion, elementary
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

rint = float_function(
    "rint", lambda x: _round_parts(x),
    "The nearest integer; halves go to the even one.\n\n>>> print(rint(np.array([0.5, 1.5])))\n[0. 2.]",
)  # fmt: skip


def _of_parts(f: Callable[[Any], Any], x: Any) -> Any:
    """f(x), or f of the real and of the imaginary part."""
    return conversion.complex(f(conversion.real(x)), f(conversion.imag(x))) if type_of(x).kind == "c" else f(x)


def _round_parts(x: Any) -> Any:
    return _of_parts(elementary.round_even, x)


def _rounding(name: str, op: Callable[[Any], Any], doc: str) -> Unary:
    def f(x: ArrayLike, /) -> Array:
        return x if operand_type(name, x).kind in "biu" else op(x)  # pyright: ignore[reportReturnType]

    return finish(f, name, doc)


floor = _rounding(
    "floor", elementary.floor, "The largest integer not above x.\n\n>>> print(floor(np.array([-1.5, 1.5])))\n[-2.  1.]"
)
ceil = _rounding(
    "ceil", elementary.ceil, "The smallest integer not below x.\n\n>>> print(ceil(np.array([-1.5, 1.5])))\n[-1.  2.]"
)


@library_function(is_thin=True)
def trunc(x: ArrayLike) -> Array:
    """x without its fractional part: rounded towards zero.

    >>> trunc(np.asarray([-1.5, 1.5], "float32"))
    Array([-1.,  1.], dtype=float32)
    """
    return x if operand_type("trunc", x).kind in "biu" else elementary.truncate(x)  # pyright: ignore[reportReturnType]


@library_function(is_thin=True)
def fix(x: ArrayLike, out: None = None) -> Array:
    """x without its fractional part: rounded towards zero.

    >>> fix(np.asarray([-1.5, 1.5], "float32"))
    Array([-1.,  1.], dtype=float32)
    """
    return trunc(x)


@library_function(static=("decimals",))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """a rounded to a number of decimals; halves go to the even neighbour.

    >>> round(np.asarray([0.25, 1.35]), 1)
    Array([0.2, 1.4], dtype=float64)
    """
    t = operand_type("round", a)
    if t.kind in "biu":
        if decimals >= 0:
            return a  # pyright: ignore[reportReturnType]
        scale = 10**-decimals
        half = conversion.convert(ew.div(conversion.convert(a, dtypes.float64), float(scale)), dtypes.float64)
        return conversion.convert(ew.mul(elementary.round_even(half), float(scale)), t.dtype)
    if decimals == 0:
        return _round_parts(a)
    scale = 10.0**decimals
    scaled = lambda x: ew.div(elementary.round_even(ew.mul(x, scale)), scale)  # noqa: E731
    return _of_parts(scaled, a)


around = round
