"""NumPy's elementwise functions: thin functions over ops, with promotion and broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.numpy.promotion import (
    broadcast,
    cast,
    inexact_dtype,
    operand_type,
    promote_compared,
    promote_dtypes,
    promote_inexact,
)  # fmt: skip
from atled.ops import conversion, elementary, reduction, shape, special
from atled.ops import elementwise as ew
from atled.ops.random import unwrap_key
from atled.staging.jit import LibraryFunction, library_function

_P = ParamSpec("_P")
Unary = LibraryFunction[[ArrayLike], Array]
Binary = LibraryFunction[[ArrayLike, ArrayLike], Array]


def _finish(f: Callable[_P, Any], name: str, doc: str) -> LibraryFunction[_P, Array]:
    f.__name__ = f.__qualname__ = name  # type: ignore[attr-defined]
    f.__module__ = "atled.numpy"
    f.__doc__ = doc
    return library_function(f, is_thin=True)


def _float_function(name: str, op: Callable[[Any], Any], doc: str) -> Unary:
    """A function of one operand with floating or complex results."""

    def f(x: ArrayLike, /) -> Array:
        return op(promote_inexact(name, x)[0])

    return _finish(f, name, doc)


def _binary(
    name: str,
    op: Callable[[Any, Any], Any],
    doc: str,
    promote: Callable[..., Any] = promote_dtypes,
    on_bools: Any = None,
    on_mask: Any = None,
) -> Binary:
    """A function of two operands that are promoted and broadcast; `on_mask` is for a boolean and an inexact array."""

    def f(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        if isinstance(x1, Array) and isinstance(x2, Array) and x1.type is x2.type and x1.type.kind == "f":
            return op(x1, x2)  # fast path
        if on_mask is not None:
            for mask, x in ((x1, x2), (x2, x1)):
                if isinstance(x, Array) and x.type.kind in "fc" and getattr(mask, "dtype", None) == np.bool_:
                    return on_mask(*broadcast(name, [mask, x]))
        x, y = broadcast(name, promote(name, x1, x2))
        if on_bools is not None and type_of(x).kind == "b":
            return on_bools(x, y)
        return op(x, y)

    return _finish(f, name, doc)


sin = _float_function("sin", elementary.sin, "Sine of x in radians.\n\n>>> print(sin(np.pi / 2))\n1.0")
cos = _float_function("cos", elementary.cos, "Cosine of x in radians.\n\n>>> print(cos(np.pi).round(2))\n-1.0")
tan = _float_function("tan", elementary.tan, "Tangent of x in radians.\n\n>>> print(tan(np.pi / 4).round(2))\n1.0")
arcsin = asin = _float_function(
    "arcsin", elementary.asin, "The angle whose sine is x.\n\n>>> print(sin(arcsin(0.5)).round(2))\n0.5"
)
arccos = acos = _float_function(
    "arccos", elementary.acos, "The angle whose cosine is x.\n\n>>> print(cos(arccos(0.5)).round(2))\n0.5"
)
arctan = atan = _float_function(
    "arctan", elementary.atan, "The angle whose tangent is x.\n\n>>> print(tan(arctan(0.5)).round(2))\n0.5"
)
sinh = _float_function("sinh", elementary.sinh, "Hyperbolic sine.\n\n>>> print(sinh(1.0).round(2))\n1.18")
cosh = _float_function("cosh", elementary.cosh, "Hyperbolic cosine.\n\n>>> print(cosh(1.0).round(2))\n1.54")
tanh = _float_function("tanh", elementary.tanh, "Hyperbolic tangent.\n\n>>> print(tanh(1.0).round(2))\n0.76")
arcsinh = asinh = _float_function(
    "arcsinh", elementary.asinh, "The inverse of sinh.\n\n>>> print(sinh(arcsinh(2.0)).round(2))\n2.0"
)
arccosh = acosh = _float_function(
    "arccosh", elementary.acosh, "The inverse of cosh.\n\n>>> print(cosh(arccosh(2.0)).round(2))\n2.0"
)
arctanh = atanh = _float_function(
    "arctanh", elementary.atanh, "The inverse of tanh.\n\n>>> print(tanh(arctanh(0.5)).round(2))\n0.5"
)
exp = _float_function("exp", elementary.exp, "The exponential function.\n\n>>> print(exp(1.0).round(2))\n2.72")
exp2 = _float_function(
    "exp2",
    lambda x: elementary.exp(ew.mul(x, math.log(2))) if type_of(x).kind == "c" else elementary.exp2(x),
    "2 ** x.\n\n>>> print(exp2(3.0).round())\n8.0",
)
expm1 = _float_function(
    "expm1", elementary.expm1, "exp(x) - 1, exact for small x.\n\n>>> print(expm1(1e-10) > 0)\nTrue"
)
log = _float_function("log", elementary.log, "The natural logarithm.\n\n>>> print(log(10.0).round(2))\n2.3")
log1p = _float_function(
    "log1p", elementary.log1p, "log(1 + x), exact for small x.\n\n>>> print(log1p(1e-10) > 0)\nTrue"
)
log2 = _float_function(
    "log2", lambda x: _over(elementary.log(x), math.log(2)),
    "The logarithm to base 2.\n\n>>> print(log2(8.0).round(2))\n3.0",
)  # fmt: skip
log10 = _float_function(
    "log10", lambda x: _over(elementary.log(x), math.log(10)),
    "The logarithm to base 10.\n\n>>> print(log10(1000.0).round(2))\n3.0",
)  # fmt: skip
sqrt = _float_function("sqrt", elementary.sqrt, "The square root.\n\n>>> print(sqrt(np.array([4.0, 9.0])))\n[2. 3.]")
cbrt = _float_function("cbrt", elementary.cbrt, "The cube root.\n\n>>> print(cbrt(27.0).round())\n3.0")
reciprocal = _float_function("reciprocal", ew.reciprocal, "1 / x.\n\n>>> print(reciprocal(4.0))\n0.25")
rint = _float_function(
    "rint", lambda x: _round_parts(x),
    "The nearest integer; halves go to the even one.\n\n>>> print(rint(np.array([0.5, 1.5])))\n[0. 2.]",
)  # fmt: skip
deg2rad = radians = _float_function(
    "deg2rad", lambda x: ew.mul(x, math.pi / 180), "Degrees as radians.\n\n>>> print(sin(deg2rad(90.0)))\n1.0"
)
rad2deg = degrees = _float_function(
    "rad2deg", lambda x: ew.mul(x, 180 / math.pi), "Radians as degrees.\n\n>>> print(rad2deg(np.pi).round())\n180.0"
)


def _where_true(mask: Any, x: Array) -> Array:
    zero = 0.0 if x.type.kind == "f" else 0j
    return bind(ew.Select(), mask, x, zero if x.type.weak else x.dtype.type(0))


@library_function
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0.

    >>> i0(np.asarray([0.0, 1.0], "float32")).round(3)
    Array([1.   , 1.266], dtype=float32)
    """
    (x,) = promote_inexact("i0", x)
    return ew.mul(elementary.exp(elementary.absolute(x)), special.bessel_i0e(x))


subtract = _binary("subtract", ew.sub, "x1 - x2.\n\n>>> print(subtract(np.array([5, 7]), 2))\n[3 5]")
multiply = _binary(
    "multiply", ew.mul,
    "x1 * x2; booleans select, so that False times infinity is zero.\n\n>>> print(multiply(np.arange(3), 2))\n[0 2 4]",
    on_bools=ew.logical_and, on_mask=lambda mask, x: _where_true(mask, x),
)  # fmt: skip
add = _binary("add", ew.add, "x1 + x2.\n\n>>> print(add(np.array([5, 7]), 2))\n[7 9]", on_bools=ew.logical_or)
divide = true_divide = _binary(
    "divide", ew.div,
    "x1 / x2, as floating numbers also for integers.\n\n>>> print(divide(np.array([5, 8]), 2))\n[2.5 4. ]",
    promote_inexact,
)  # fmt: skip
maximum = _binary(
    "maximum", lambda x, y: _extreme(x, y, ew.maximum, ew.ge),
    "The larger of x1 and x2; NaN if either is.\n\n>>> print(maximum(np.array([1, 5]), 3))\n[3 5]",
)  # fmt: skip
minimum = _binary(
    "minimum", lambda x, y: _extreme(x, y, ew.minimum, ew.le),
    "The smaller of x1 and x2; NaN if either is.\n\n>>> print(minimum(np.array([1, 5]), 3))\n[1 3]",
)  # fmt: skip
arctan2 = atan2 = _binary(
    "arctan2", elementary.atan2,
    "The angle of the point (x2, x1).\n\n>>> print(rad2deg(arctan2(1.0, 0.0)).round())\n90.0", promote_inexact,
)  # fmt: skip
nextafter = _binary(
    "nextafter", elementary.nextafter,
    "The next number after x1 towards x2.\n\n>>> print(nextafter(1.0, 2.0) > 1)\nTrue", promote_inexact,
)  # fmt: skip
bitwise_and = _binary("bitwise_and", ew.logical_and, "x1 & x2.\n\n>>> print(bitwise_and(np.array([6, 5]), 3))\n[2 1]")
bitwise_or = _binary("bitwise_or", ew.logical_or, "x1 | x2.\n\n>>> print(bitwise_or(np.array([6, 5]), 3))\n[7 7]")
bitwise_xor = _binary("bitwise_xor", ew.logical_xor, "x1 ^ x2.\n\n>>> print(bitwise_xor(np.array([6, 5]), 3))\n[5 6]")
equal = _binary(
    "equal", lambda x, y: _same(x, y),
    "x1 == x2; random keys by their words.\n\n>>> print(equal(np.arange(3), 1))\n[False  True False]", promote_compared,
)  # fmt: skip
not_equal = _binary(
    "not_equal", lambda x, y: ew.logical_not(_same(x, y)) if type_of(x).kind == "k" else ew.ne(x, y),
    "x1 != x2; random keys by their words.\n\n>>> print(not_equal(np.arange(3), 1))\n[ True False  True]",
    promote_compared,
)  # fmt: skip
less = _binary(
    "less", lambda x, y: _order(x, y, ew.lt),
    "x1 < x2; complex numbers by real, then imaginary part.\n\n>>> print(less(np.arange(3), 1))\n[ True False False]",
    promote_compared,
)  # fmt: skip
less_equal = _binary(
    "less_equal", lambda x, y: _order(x, y, ew.le),
    "x1 <= x2.\n\n>>> print(less_equal(np.arange(3), 1))\n[ True  True False]", promote_compared,
)  # fmt: skip
greater = _binary(
    "greater", lambda x, y: _order(x, y, ew.gt),
    "x1 > x2.\n\n>>> print(greater(np.arange(3), 1))\n[False False  True]", promote_compared,
)  # fmt: skip
greater_equal = _binary(
    "greater_equal", lambda x, y: _order(x, y, ew.ge),
    "x1 >= x2.\n\n>>> print(greater_equal(np.arange(3), 1))\n[False  True  True]", promote_compared,
)  # fmt: skip


def _same(x: Any, y: Any) -> Any:
    if type_of(x).kind != "k":
        return ew.eq(x, y)
    words = ew.eq(*broadcast("equal", [unwrap_key(x), unwrap_key(y)]))
    return reduction.reduce_and(words, (type_of(words).ndim - 1,))


def _over(x: Any, number: float) -> Any:
    """x over a real number, also part by part: an infinite part leaves the other one alone."""
    if type_of(x).kind != "c":
        return ew.div(x, number)
    return conversion.complex(ew.div(conversion.real(x), number), ew.div(conversion.imag(x), number))


def _order(x: Any, y: Any, compare: Callable[[Any, Any], Any]) -> Any:
    """A comparison; complex numbers in lexicographic order."""
    if type_of(x).kind != "c":
        return compare(x, y)
    (a, b), (c, d) = ((conversion.real(v), conversion.imag(v)) for v in (x, y))
    strict = {ew.le: ew.lt, ew.ge: ew.gt}.get(compare, compare)
    return ew.logical_or(strict(a, c), ew.logical_and(ew.eq(a, c), compare(b, d)))


def _extreme(x: Any, y: Any, op: Callable[[Any, Any], Any], wins: Callable[[Any, Any], Any]) -> Any:
    if type_of(x).kind != "c":
        return op(x, y)
    chosen = ew.logical_or(_order(x, y, wins), ew.ne(x, x))
    return ew.select(chosen, x, y)


def _shift(x: Any, y: Any, op: Callable[[Any, Any], Any]) -> Any:
    """A shift that gives zero, as NumPy does, when the distance is the width or more."""
    dtype = type_of(x).dtype
    width = dtypes.bits(dtype)
    if dtypes.is_integer(dtype) and not dtypes.holds(dtype, width):  # then no distance is that long
        return op(x, y)
    return ew.select(ew.ge(y, width), np.zeros((), dtype), op(x, y))


def numbers(name: str, x1: Any, x2: Any) -> list[Any]:
    """Operands of one dtype and shape, where bools count as integers."""
    x, y = broadcast(name, promote_dtypes(name, x1, x2))
    return [conversion.convert(v, dtypes.default("i")) for v in (x, y)] if type_of(x).kind == "b" else [x, y]


def check_real(name: str, *operands: Any) -> None:
    """Complex operands raise where they do in NumPy."""
    for t in [operand_type(name, x) for x in operands]:
        if t.kind == "c":
            raise TypeError(f"{name}: operands must be real; got {t}.")


@library_function(is_thin=True)
def left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 << x2.

    >>> left_shift(np.asarray([1, 5], "int32"), 2)
    Array([ 4, 20], dtype=int32)
    """
    x, y = numbers("left_shift", x1, x2)
    return _shift(x, y, ew.shift_left)


bitwise_left_shift = left_shift


@library_function(is_thin=True)
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2; the sign is kept.

    >>> right_shift(np.asarray([20, -20], "int32"), 2)
    Array([ 5, -5], dtype=int32)
    """
    x, y = numbers("right_shift", x1, x2)
    width = dtypes.bits(type_of(x).dtype)
    if type_of(x).kind == "u":
        return _shift(x, y, ew.shift_right_logical)
    return ew.shift_right_arithmetic(x, ew.minimum(y, width - 1))


bitwise_right_shift = right_shift


@library_function(is_thin=True)
def negative(x: ArrayLike, /) -> Array:
    """-x.

    >>> negative(np.asarray([-1, 2], "int32"))
    Array([ 1, -2], dtype=int32)
    """
    t = operand_type("negative", x)
    if t.kind == "b":
        raise TypeError("negative: a bool has no negative; use ~x or logical_not(x).")
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
    """The magnitude of x, as a floating number.

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
    return ew.select(ew.eq(out, zero), zero, out)  # the sign of -0.0 is 0, and not -0


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


@library_function(is_thin=True)
def invert(x: ArrayLike, /) -> Array:
    """~x: bits flipped, or logical not for bools.

    >>> invert(np.asarray([0, 1], "int32")), invert(np.asarray([True, False]))
    (Array([-1, -2], dtype=int32), Array([False,  True], dtype=bool))
    """
    operand_type("invert", x)
    return ew.logical_not(x)


bitwise_not = bitwise_invert = invert


@library_function(is_thin=True)
def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits of the magnitude of x are set.

    >>> bitwise_count(np.asarray([7, 8], "int32"))
    Array([3, 1], dtype=uint8)
    """
    t = operand_type("bitwise_count", x)
    if t.kind == "b":
        return conversion.convert(x, dtypes.uint8)
    size = elementary.absolute(x) if t.kind == "i" else x
    return conversion.convert(ew.population_count(size), dtypes.uint8)


def to_bool(name: str, x: Any) -> Any:
    """x as truth values."""
    t = operand_type(name, x)
    return (
        x
        if t.kind == "b" and isinstance(x, Array)
        else ew.ne(x, np.zeros((), t.dtype))
        if t.kind != "b"
        else cast(x, dtypes.bool_)
    )


def _logical(name: str, op: Callable[[Any, Any], Any], doc: str) -> Binary:
    def f(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return op(*broadcast(name, [to_bool(name, x1), to_bool(name, x2)]))

    return _finish(f, name, doc)


logical_and = _logical(
    "logical_and", ew.logical_and,
    "Whether both are true.\n\n>>> print(logical_and(np.arange(3), True))\n[False  True  True]",
)  # fmt: skip
logical_or = _logical(
    "logical_or", ew.logical_or,
    "Whether either is true.\n\n>>> print(logical_or(np.arange(3), False))\n[False  True  True]",
)  # fmt: skip
logical_xor = _logical(
    "logical_xor", ew.logical_xor,
    "Whether exactly one is true.\n\n>>> print(logical_xor(np.arange(3), True))\n[ True False False]",
)  # fmt: skip


@library_function(is_thin=True)
def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is false.

    >>> logical_not(np.asarray([0, 1, 2], "int32"))
    Array([ True, False, False], dtype=bool)
    """
    return ew.logical_not(to_bool("logical_not", x))


# -- rounding ---------------------------------------------------------------------------------------------------------


def _round_parts(x: Any) -> Any:
    if type_of(x).kind == "c":
        return conversion.complex(elementary.round_even(conversion.real(x)), elementary.round_even(conversion.imag(x)))
    return elementary.round_even(x)


def _rounding(name: str, op: Callable[[Any], Any], doc: str) -> Unary:
    def f(x: ArrayLike, /) -> Array:
        return x if operand_type(name, x).kind in "biu" else op(x)  # pyright: ignore[reportReturnType]

    return _finish(f, name, doc)


floor = _rounding(
    "floor", elementary.floor, "The largest integer not above x.\n\n>>> print(floor(np.array([-1.5, 1.5])))\n[-2.  1.]"
)
ceil = _rounding(
    "ceil", elementary.ceil, "The smallest integer not below x.\n\n>>> print(ceil(np.array([-1.5, 1.5])))\n[-1.  2.]"
)


@library_function(is_thin=True)
def trunc(x: ArrayLike) -> Array:
    """x without its fraction.

    >>> trunc(np.asarray([-1.5, 1.5], "float32"))
    Array([-1.,  1.], dtype=float32)
    """
    return x if operand_type("trunc", x).kind in "biu" else elementary.truncate(x)  # pyright: ignore[reportReturnType]


@library_function(is_thin=True)
def fix(x: ArrayLike, out: None = None) -> Array:
    """x without its fraction.

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
    return ew.div(_round_parts(ew.mul(a, scale)), scale)


around = round


# -- tests for special values -----------------------------------------------------------------------------------------


def _parts(op: Callable[[Any], Any], join: Callable[[Any, Any], Any], default: bool) -> Callable[[Any], Any]:
    """A test of floating numbers, extended to complex ones by parts and to others by a constant."""

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

    return _finish(f, name, doc)


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

    return _finish(f, name, doc)


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
    """sin(pi x) / (pi x), and 1 at 0; derivatives of every order are right at 0.

    >>> sinc(np.asarray([0.0, 0.5], "float32")).round(3)
    Array([1.   , 0.637], dtype=float32)
    """
    (x,) = promote_inexact("sinc", x)
    is_zero = ew.eq(x, 0)
    angle = ew.mul(ew.select(is_zero, np.ones((), type_of(x).dtype), x), math.pi)
    out = ew.div(elementary.sin(angle), angle)
    square = ew.mul(ew.mul(x, x), math.pi**2)
    series = ew.sub(1, ew.mul(square, ew.sub(1 / 6, ew.mul(square, ew.sub(1 / 120, ew.div(square, 5040.0))))))
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
    "fmax", ew.maximum,
    "The larger of x1 and x2; a NaN gives way.\n\n>>> print(fmax(np.array([1.0, np.nan]), 2))\n[2. 2.]",
)  # fmt: skip
fmin = _skipping_nan(
    "fmin", ew.minimum,
    "The smaller of x1 and x2; a NaN gives way.\n\n>>> print(fmin(np.array([1.0, np.nan]), 2))\n[1. 2.]",
)  # fmt: skip


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
    """arr kept between min and max; either may be left out.

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
