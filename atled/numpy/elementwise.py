"""NumPy's elementwise arithmetic and elementary functions: ops with NumPy's promotion and broadcasting.

`bitwise.py`, `logic.py`, `special_values.py` and `rounding.py` contain the other elementwise functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.program import Literal
from atled.core.types import ArrayType
from atled.numpy.elementwise_family import binary, check_real, float_function, to_bool
from atled.numpy.logic import less_equal, logical_and, logical_or, order
from atled.numpy.promotion import broadcast, cast, inexact_dtype, operand_type, promote_dtypes, promote_inexact
from atled.numpy.special_values import isfinite, isnan
from atled.ops import conversion, elementary, shape, special
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

sin = float_function("sin", elementary.sin, "Sine of x in radians.\n\n>>> print(sin(np.pi / 2))\n1.0")
cos = float_function("cos", elementary.cos, "Cosine of x in radians.\n\n>>> print(cos(np.pi).round(2))\n-1.0")
tan = float_function("tan", elementary.tan, "Tangent of x in radians.\n\n>>> print(tan(np.pi / 4).round(2))\n1.0")
arcsin = asin = float_function(
    "arcsin", elementary.asin, "The angle whose sine is x.\n\n>>> print(sin(arcsin(0.5)).round(2))\n0.5"
)
arccos = acos = float_function(
    "arccos", elementary.acos, "The angle whose cosine is x.\n\n>>> print(cos(arccos(0.5)).round(2))\n0.5"
)
arctan = atan = float_function(
    "arctan", elementary.atan, "The angle whose tangent is x.\n\n>>> print(tan(arctan(0.5)).round(2))\n0.5"
)
sinh = float_function("sinh", elementary.sinh, "Hyperbolic sine.\n\n>>> print(sinh(1.0).round(2))\n1.18")
cosh = float_function("cosh", elementary.cosh, "Hyperbolic cosine.\n\n>>> print(cosh(1.0).round(2))\n1.54")
tanh = float_function("tanh", elementary.tanh, "Hyperbolic tangent.\n\n>>> print(tanh(1.0).round(2))\n0.76")
arcsinh = asinh = float_function(
    "arcsinh", elementary.asinh, "The inverse of sinh.\n\n>>> print(sinh(arcsinh(2.0)).round(2))\n2.0"
)
arccosh = acosh = float_function(
    "arccosh", elementary.acosh, "The inverse of cosh.\n\n>>> print(cosh(arccosh(2.0)).round(2))\n2.0"
)
arctanh = atanh = float_function(
    "arctanh", elementary.atanh, "The inverse of tanh.\n\n>>> print(tanh(arctanh(0.5)).round(2))\n0.5"
)
exp = float_function("exp", elementary.exp, "The exponential function.\n\n>>> print(exp(1.0).round(2))\n2.72")
exp2 = float_function(
    "exp2",
    lambda x: elementary.exp(ew.mul(x, math.log(2))) if type_of(x).kind == "c" else elementary.exp2(x),
    "2 ** x.\n\n>>> print(exp2(3.0).round())\n8.0",
)
expm1 = float_function(
    "expm1", elementary.expm1, "exp(x) - 1, accurate for small x.\n\n>>> print(expm1(1e-10) > 0)\nTrue"
)
log = float_function("log", elementary.log, "The natural logarithm.\n\n>>> print(log(10.0).round(2))\n2.3")
log1p = float_function(
    "log1p", elementary.log1p, "log(1 + x), accurate for small x.\n\n>>> print(log1p(1e-10) > 0)\nTrue"
)
log2 = float_function(
    "log2", lambda x: _over(elementary.log(x), math.log(2)),
    "The logarithm to base 2.\n\n>>> print(log2(8.0).round(2))\n3.0",
)  # fmt: skip
log10 = float_function(
    "log10", lambda x: _over(elementary.log(x), math.log(10)),
    "The logarithm to base 10.\n\n>>> print(log10(1000.0).round(2))\n3.0",
)  # fmt: skip
sqrt = float_function("sqrt", elementary.sqrt, "The square root.\n\n>>> print(sqrt(np.array([4.0, 9.0])))\n[2. 3.]")
cbrt = float_function("cbrt", elementary.cbrt, "The cube root.\n\n>>> print(cbrt(27.0).round())\n3.0")
reciprocal = float_function("reciprocal", ew.reciprocal, "1 / x.\n\n>>> print(reciprocal(4.0))\n0.25")
deg2rad = radians = float_function(
    "deg2rad", lambda x: ew.mul(x, math.pi / 180), "Degrees converted to radians.\n\n>>> print(sin(deg2rad(90.0)))\n1.0"
)
rad2deg = degrees = float_function(
    "rad2deg",
    lambda x: ew.mul(x, 180 / math.pi),
    "Radians converted to degrees.\n\n>>> print(rad2deg(np.pi).round())\n180.0",
)


def _where_true(mask: Any, x: Array) -> Array:
    return ew.select(mask, x, Literal(0, x.type.with_shape(())) if x.type.weak else np.zeros((), x.dtype))


@library_function
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0.

    >>> i0(np.asarray([0.0, 1.0], "float32")).round(3)
    Array([1.   , 1.266], dtype=float32)
    """
    (x,) = promote_inexact("i0", x)
    return ew.mul(elementary.exp(elementary.absolute(x)), special.bessel_i0e(x))


subtract = binary("subtract", ew.sub, "x1 - x2.\n\n>>> print(subtract(np.array([5, 7]), 2))\n[3 5]")
multiply = binary(
    "multiply", ew.mul,
    "x1 * x2; False times infinity or NaN is zero.\n\n>>> print(multiply(np.arange(3), 2))\n[0 2 4]",
    on_bools=ew.logical_and, on_mask=lambda mask, x: _where_true(mask, x),
)  # fmt: skip
add = binary("add", ew.add, "x1 + x2.\n\n>>> print(add(np.array([5, 7]), 2))\n[7 9]", on_bools=ew.logical_or)
divide = true_divide = binary(
    "divide", ew.div,
    "x1 / x2, in floating point also for integers.\n\n>>> print(divide(np.array([5, 8]), 2))\n[2.5 4. ]",
    promote_inexact,
)  # fmt: skip
maximum = binary(
    "maximum", lambda x, y: _extreme(x, y, ew.maximum, ew.ge),
    "The larger of x1 and x2; NaN if either is NaN.\n\n>>> print(maximum(np.array([1, 5]), 3))\n[3 5]",
)  # fmt: skip
minimum = binary(
    "minimum", lambda x, y: _extreme(x, y, ew.minimum, ew.le),
    "The smaller of x1 and x2; NaN if either is NaN.\n\n>>> print(minimum(np.array([1, 5]), 3))\n[1 3]",
)  # fmt: skip
arctan2 = atan2 = binary(
    "arctan2", elementary.atan2,
    "The angle of the point (x2, x1).\n\n>>> print(rad2deg(arctan2(1.0, 0.0)).round())\n90.0", promote_inexact,
)  # fmt: skip
nextafter = binary(
    "nextafter", elementary.nextafter,
    "The next number after x1 towards x2.\n\n>>> print(nextafter(1.0, 2.0) > 1)\nTrue", promote_inexact,
)  # fmt: skip


def _over(x: Any, number: float) -> Any:
    """x divided by a real number, with real and imaginary part apart: an infinite part does not affect the other."""
    if type_of(x).kind != "c":
        return ew.div(x, number)
    return conversion.complex(ew.div(conversion.real(x), number), ew.div(conversion.imag(x), number))


def _extreme(x: Any, y: Any, op: Callable[[Any, Any], Any], wins: Callable[[Any, Any], Any]) -> Any:
    if type_of(x).kind != "c":
        return op(x, y)
    chosen = ew.logical_or(order(x, y, wins), ew.ne(x, x))
    return ew.select(chosen, x, y)


@library_function(is_thin=True)
def negative(x: ArrayLike, /) -> Array:
    """-x.

    >>> negative(np.asarray([-1, 2], "int32"))
    Array([ 1, -2], dtype=int32)
    """
    t = operand_type("negative", x)
    if t.kind == "b":
        raise TypeError("negative: bools cannot be negated; use ~x or logical_not(x).")
    return ew.neg(x)


@library_function(is_thin=True)
def positive(x: ArrayLike, /) -> Array:
    """+x.

    >>> positive(np.asarray([-1, 2], "int32"))
    Array([-1,  2], dtype=int32)
    """
    operand_type("positive", x)
    return x if isinstance(x, Array) else cast(x, type_of(x).dtype, type_of(x).weak)


@library_function(is_thin=True)
def absolute(x: ArrayLike, /) -> Array:
    """The magnitude of x.

    >>> absolute(np.asarray([-2, 3], "int32"))
    Array([2, 3], dtype=int32)
    """
    return x if operand_type("absolute", x).kind in "bu" else elementary.absolute(x)  # pyright: ignore[reportReturnType]


abs = absolute


@library_function(is_thin=True)
def fabs(x: ArrayLike, /) -> Array:
    """The magnitude of x, in floating point.

    >>> fabs(np.asarray([-2, 3], "int32"))
    Array([2., 3.], dtype=float32)
    """
    check_real("fabs", x)
    return elementary.absolute(promote_inexact("fabs", x)[0])


@library_function(is_thin=True)
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 by the sign of x; x / abs(x) for complex x.

    >>> sign(np.asarray([-2.5, 0.0, 7.0], "float32"))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    out = elementary.sign(x if isinstance(x, Array) else cast(x, operand_type("sign", x).dtype))
    if type_of(out).kind != "f":
        return out
    zero = np.zeros((), type_of(out).dtype)
    return ew.select(ew.eq(out, zero), zero, out)  # the sign of -0.0 is 0, not -0


@library_function(is_thin=True)
def square(x: ArrayLike, /) -> Array:
    """x * x; bools count as integers.

    >>> square(np.asarray([-2, 3], "int32"))
    Array([4, 9], dtype=int32)
    """
    t = operand_type("square", x)
    return conversion.convert(x, dtypes.default("i")) if t.kind == "b" else ew.square(x)


@library_function(is_thin=True)
def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate.

    >>> conjugate(np.asarray([1 + 2j, 3.0], "complex64"))
    Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    return conversion.conj(x) if operand_type("conjugate", x).kind == "c" else x  # pyright: ignore[reportReturnType]


conj = conjugate


@library_function(is_thin=True)
def real(x: ArrayLike, /) -> Array:
    """The real part.

    >>> real(np.asarray([1 + 2j, 3.0], "complex64"))
    Array([1., 3.], dtype=float32)
    """
    return conversion.real(x) if operand_type("real", x).kind == "c" else x  # pyright: ignore[reportReturnType]


@library_function(is_thin=True)
def imag(x: ArrayLike, /) -> Array:
    """The imaginary part; zero for real x.

    >>> imag(np.asarray([1 + 2j, 3.0], "complex64"))
    Array([2., 0.], dtype=float32)
    """
    t = operand_type("imag", x)
    return conversion.imag(x) if t.kind == "c" else shape.zeros(ArrayType(t.shape, t.dtype))


@library_function(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of a complex number.

    >>> angle(np.asarray([1.0, 1j, -1.0], "complex64"), deg=True).round()
    Array([  0.,  90., 180.], dtype=float32)
    """
    (z,) = promote_inexact("angle", z)
    t = type_of(z)
    re = conversion.real(z) if t.kind == "c" else z
    im = conversion.imag(z) if t.kind == "c" else cast(0, t.dtype, t.weak)
    out = elementary.atan2(im, re)
    return ew.mul(out, 180 / math.pi) if deg else out


@library_function
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)), without overflow; derivatives of every order are finite, also at ties and infinities.

    >>> logaddexp(np.float32(1000.0), 1000.0).round(1)
    Array(1000.7, dtype=float32)
    """
    x, y = broadcast("logaddexp", promote_inexact("logaddexp", x1, x2))
    if type_of(x).kind == "c":
        return elementary.log(ew.add(elementary.exp(x), elementary.exp(y)))
    return special.logaddexp(x, y)


@library_function
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2), without overflow.

    >>> logaddexp2(np.float32(1000.0), 1000.0).round(1)
    Array(1001., dtype=float32)
    """
    x, y = broadcast("logaddexp2", promote_inexact("logaddexp2", x1, x2))
    ln2 = math.log(2)
    return ew.div(logaddexp(ew.mul(x, ln2), ew.mul(y, ln2)), ln2)


@library_function
def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), and 1 at 0; derivatives of every order are correct at 0.

    >>> sinc(np.asarray([0.0, 0.5], "float32")).round(3)
    Array([1.   , 0.637], dtype=float32)
    """
    (x,) = promote_inexact("sinc", x)
    is_zero = ew.eq(x, 0)
    angle = ew.mul(ew.select(is_zero, np.ones((), type_of(x).dtype), x), math.pi)
    out = ew.div(elementary.sin(angle), angle)
    square = ew.mul(ew.mul(x, x), math.pi**2)
    series = ew.sub(1, ew.mul(square, ew.sub(1 / 6, ew.mul(square, ew.sub(1 / 120, ew.mul(square, 1 / 5040))))))
    return ew.select(is_zero, series, out)


@library_function
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where x1 < 0, x2 where it is 0, else 1.

    >>> heaviside(np.asarray([-2.0, 0.0, 2.0], "float32"), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = broadcast("heaviside", promote_inexact("heaviside", x1, x2))
    one, zero = (np.asarray(v, type_of(x).dtype) for v in (1, 0))
    step = ew.select(ew.lt(x, 0), zero, ew.select(ew.gt(x, 0), one, y))
    return ew.select(ew.ne(x, x), x, step)


def _skipping_nan(name: str, op: Callable[[Any, Any], Any], doc: str):
    def f(x1: ArrayLike, x2: ArrayLike) -> Array:
        x, y = broadcast(name, promote_dtypes(name, x1, x2))
        out = op(x, y)
        return ew.select(ew.ne(x, x), y, ew.select(ew.ne(y, y), x, out)) if type_of(x).kind in "fc" else out

    f.__name__ = f.__qualname__ = name
    f.__module__, f.__doc__ = "atled.numpy", doc
    return library_function(f)


fmax = _skipping_nan(
    "fmax", maximum,
    "The larger of x1 and x2; if one is NaN, the other.\n\n>>> print(fmax(np.array([1.0, np.nan]), 2))\n[2. 2.]",
)  # fmt: skip
fmin = _skipping_nan(
    "fmin", minimum,
    "The smaller of x1 and x2; if one is NaN, the other.\n\n>>> print(fmin(np.array([1.0, np.nan]), 2))\n[1. 2.]",
)  # fmt: skip


@library_function(static=("equal_nan",))
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether a and b are equal within a tolerance: `abs(a - b) <= atol + rtol * abs(b)`.

    >>> isclose(np.asarray([1.0, 2.0], "float32"), np.asarray([1.000001, 2.1], "float32"))
    Array([ True, False], dtype=bool)
    """
    x, y = broadcast("isclose", promote_dtypes("isclose", a, b))
    if type_of(x).kind in "biu":
        dtype = inexact_dtype(type_of(x).dtype)
        x, y = (conversion.convert(v, dtype) for v in (x, y))
    limit = add(multiply(elementary.absolute(y), rtol), atol)
    near = less_equal(elementary.absolute(ew.sub(x, y)), limit)
    is_usual = ew.logical_and(isfinite(x), isfinite(y))
    out = logical_or(ew.eq(x, y), logical_and(is_usual, near))
    return logical_or(out, ew.logical_and(isnan(x), isnan(y))) if equal_nan else out


@library_function
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """arr clipped to the range from min to max; either may be None.

    >>> clip(np.asarray([-2.0, 0.5, 3.0], "float32"), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    if arr is None:
        raise TypeError("clip: an array is needed.")
    out = arr if isinstance(arr, Array) else cast(arr, operand_type("clip", arr).dtype, operand_type("clip", arr).weak)
    if min is not None:
        out = maximum(min, out)
    if max is not None:
        out = minimum(max, out)
    return out


@library_function
def where_both(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    chosen = to_bool("where", condition)
    types = [operand_type("where", v) for v in (x, y)]
    if any(t.kind == "k" for t in types):
        values = [x, y]
    else:
        values = promote_dtypes("where", x, y)
    c, a, b = broadcast("where", [chosen, *values])
    return ew.select(c, a, b)
