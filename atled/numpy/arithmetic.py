"""NumPy's functions for division, powers, common divisors, and the parts of a number (`modf`, `frexp`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.numpy.elementwise_family import check_real, numbers
from atled.numpy.promotion import (
    broadcast,
    broadcast_shapes,
    broadcast_to,
    common_dtype,
    operand_type,
    promote_dtypes,
    promote_inexact,
)
from atled.ops import conversion, elementary, reduction
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

# -- division ---------------------------------------------------------------------------------------------------------


@library_function
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer not above x1 / x2; integers divided by zero are 0.

    >>> import atled.numpy as jnp
    >>> floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    x, y = numbers("floor_divide", x1, x2)
    t = type_of(x)
    if t.kind == "f":
        return _float_floor_divide(x, y)
    quotient = ew.select(ew.eq(y, 0), 0, ew.div(x, _not_zero(y)))
    if t.kind == "u":
        return quotient
    is_off = ew.logical_and(ew.ne(elementary.sign(x), elementary.sign(y)), ew.ne(_rem(x, y), 0))
    return ew.select(is_off, ew.sub(quotient, 1), quotient)


def _not_zero(y: Any) -> Any:
    return ew.select(ew.eq(y, 0), 1, y)


def _rem(x: Any, y: Any) -> Any:
    """The remainder with the sign of x; 0 for integers divided by zero, as in NumPy."""
    return elementary.rem(x, y if type_of(x).kind == "f" else _not_zero(y))


def _float_floor_divide(x: Any, y: Any) -> Any:
    """Floor division as Python and NumPy define it: from the remainder, so that x == y * (x // y) + x % y."""
    left = elementary.rem(x, y)
    quotient = ew.div(ew.sub(x, left), y)
    is_off = ew.logical_and(ew.ne(left, 0), ew.ne(ew.lt(left, 0), ew.lt(y, 0)))
    quotient = ew.select(is_off, ew.sub(quotient, 1), quotient)
    nearest = elementary.floor(quotient)
    nearest = ew.select(ew.gt(ew.sub(quotient, nearest), 0.5), ew.add(nearest, 1), nearest)
    plain = ew.div(x, y)
    nearest = ew.select(ew.eq(quotient, 0), ew.mul(plain, 0), nearest)  # a zero quotient keeps its sign
    is_plain = ew.logical_or(ew.eq(y, 0), ew.logical_not(elementary.is_finite(x)))
    nearest = ew.select(is_plain, plain, nearest)
    # finite / infinite is a signed zero, as the array API standard says; Python gives -1
    is_endless = ew.eq(elementary.absolute(y), np.asarray(np.inf, type_of(y).dtype))
    return ew.select(ew.logical_and(elementary.is_finite(x), is_endless), plain, nearest)


@library_function
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 - x2 * floor(x1 / x2), with the sign of x2; integers divided by zero have remainder 0.

    >>> import atled.numpy as jnp
    >>> remainder(jnp.array([7, -7]), 2)
    Array([1, 1], dtype=int32)
    """
    x, y = numbers("remainder", x1, x2)
    left = _rem(x, y)
    if type_of(x).kind == "u":
        return left
    is_off = ew.logical_and(ew.ne(left, 0), ew.ne(ew.lt(left, 0), ew.lt(y, 0)))
    out = ew.select(is_off, ew.add(left, y), left)
    if type_of(x).kind == "f":  # a zero result takes the sign of the divisor
        held = bind(ew.StopGradient(), out)  # out - held is zero, but its derivative is that of out
        zero = ew.select(ew.lt(y, 0), ew.neg(ew.sub(held, out)), ew.sub(out, held))
        out = ew.select(ew.eq(out, 0), zero, out)
    return out


mod = remainder


@library_function
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 / x2 with the sign of x1; integers divided by zero have remainder 0.

    >>> import atled.numpy as jnp
    >>> fmod(jnp.array([7, -7]), 2)
    Array([ 1, -1], dtype=int32)
    """
    return _rem(*numbers("fmod", x1, x2))


@library_function
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """x1 // x2 and x1 % x2.

    >>> import atled.numpy as jnp
    >>> divmod(jnp.array([7, -7]), 2)
    (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@library_function
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integer part of x.

    >>> import atled.numpy as jnp
    >>> modf(jnp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    (x,) = promote_inexact("modf", x)
    whole = elementary.truncate(x)
    is_infinite = ew.eq(elementary.absolute(x), np.asarray(np.inf, type_of(x).dtype))
    return ew.select(is_infinite, ew.mul(elementary.sign(x), 0), ew.sub(x, whole)), whole


# -- powers -----------------------------------------------------------------------------------------------------------


@library_function(static=("n",), is_thin=True)
def _integer_power(x: Any, n: int) -> Any:
    t = operand_type("power", x)
    if t.kind == "b":
        x = conversion.convert(x, dtypes.default("i"))
    return ew.integer_pow(x, n)


@library_function
def _power(x1: Any, x2: Any) -> Any:
    types = [operand_type("power", x) for x in (x1, x2)]
    if types[1].kind in "biu" and types[0].kind in "fc":  # an integer exponent does not widen x1
        x, y = broadcast("power", [x1, x2])
        return (
            elementary.pow(x, conversion.convert(y, type_of(x).dtype))
            if not isinstance(x1, (int, float))
            else _float_power(x1, x2)
        )
    dtype, _ = common_dtype(types)
    if dtypes.kind(dtype) in "biu":
        return _power_of_integers(*numbers("power", x1, x2))
    return _float_power(x1, x2)


def _float_power(x1: Any, x2: Any) -> Any:
    return elementary.pow(*broadcast("power", promote_inexact("power", x1, x2)))


def _power_of_integers(x: Any, y: Any) -> Any:
    """x ** y for integers, by repeated squaring; a negative exponent gives zero except for bases 1 and -1."""
    t = type_of(x)
    dtype = t.dtype
    one, zero = np.ones((), dtype), np.zeros((), dtype)
    result, base, left = one, x, y
    for _ in range(dtypes.bits(dtype)):
        is_odd = ew.eq(ew.logical_and(left, one), one)
        result = ew.select(
            is_odd,
            ew.mul(result, base) if isinstance(result, Array) else base,
            result if isinstance(result, Array) else one,
        )
        base, left = (
            ew.mul(base, base),
            ew.shift_right_logical(left, one) if t.kind == "u" else ew.shift_right_arithmetic(left, one),
        )
    if t.kind == "i":
        minus = np.asarray(-1, dtype)
        is_odd = ew.ne(ew.logical_and(y, one), 0)
        unit = ew.select(ew.eq(x, one), one, ew.select(ew.eq(x, minus), ew.select(is_odd, minus, one), zero))
        result = ew.select(ew.lt(y, 0), unit, result)
    return result


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2. If the exponent is a Python integer, the power is computed by repeated multiplication.

    >>> power(np.float32(3.0), 2)
    Array(9., dtype=float32)
    """
    if type(x2) is int and isinstance(x1, Array):
        if x2 < 0 and x1.type.kind in "biu":
            raise TypeError(
                errors.explained(
                    f"power: integers cannot be raised to negative powers; got {x1.type} and {x2}.",
                    "a floating base, x.astype('float32') ** n, or numpy.float_power.",
                )
            )
        if -64 <= x2 <= 64:
            return _integer_power(x1, x2)
    return _power(x1, x2)


pow = power


@library_function
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2, computed in floating point also for integers.

    >>> import atled.numpy as jnp
    >>> float_power(jnp.array([2, 4]), -1).round(2)
    Array([0.5 , 0.25], dtype=float32)
    """
    return _float_power(*promote_inexact("float_power", x1, x2))


@library_function
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1**2 + x2**2), without overflow; the gradient at the origin is zero.

    >>> import atled.numpy as jnp
    >>> hypot(jnp.array([3.0, 6.0]), jnp.array([4.0, 8.0]))
    Array([ 5., 10.], dtype=float32)
    """
    check_real("hypot", x1, x2)
    return elementary.hypot(*broadcast("hypot", promote_inexact("hypot", x1, x2)))


# -- parts of floating numbers, and divisors of integers ---------------------------------------------------------------


@library_function
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2.

    >>> import atled.numpy as jnp
    >>> ldexp(jnp.array([1.0, 0.75]), 4).round()
    Array([16., 12.], dtype=float32)
    """
    (x,) = promote_inexact("ldexp", x1)
    x, n = broadcast("ldexp", [x, x2])
    dtype = type_of(x).dtype
    wide = dtype if dtypes.bits(dtype) >= 32 else dtypes.float32
    x, y = conversion.convert(x, wide), conversion.convert(n, wide)
    reach = 3.0 * {32: 100, 64: 733}[dtypes.bits(wide)]  # with a larger exponent, every x overflows or underflows
    y = ew.clamp(np.asarray(-reach, wide), y, np.asarray(reach, wide))
    third = elementary.floor(ew.div(y, 3.0))
    rest = ew.sub(y, ew.add(third, third))
    for exponent in (third, third, rest):  # no 2**exponent overflows
        x = ew.mul(x, elementary.power_of_two(exponent))
    return conversion.convert(x, dtype)


@library_function
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """A mantissa between 0.5 and 1, and the corresponding exponent of 2.

    >>> import atled.numpy as jnp
    >>> frexp(jnp.array([1.0, 12.0]))
    (Array([0.5 , 0.75], dtype=float32), Array([1, 4], dtype=int32))
    """
    (x,) = promote_inexact("frexp", x)
    t = type_of(x)
    bits = dtypes.bits(t.dtype)
    if bits < 32:
        m, e = frexp.__wrapped__(conversion.convert(x, dtypes.float32))
        return conversion.convert(m, t.dtype), e
    integer = np.dtype(f"int{bits}")
    mantissa, bias = (23, 126) if bits == 32 else (52, 1022)
    raw = conversion.bitcast_convert(x, integer)
    field = (1 << (bits - 1 - mantissa)) - 1
    exponent = ew.sub(ew.logical_and(ew.shift_right_logical(raw, mantissa), field), bias)
    sign_and_fraction = ew.logical_and(raw, np.asarray(~(field << mantissa), integer))
    fraction = conversion.bitcast_convert(
        ew.logical_or(sign_and_fraction, np.asarray(bias << mantissa, integer)), t.dtype
    )
    is_special = ew.logical_or(ew.eq(x, 0), ew.logical_not(elementary.is_finite(x)))
    zero = np.zeros((), integer)
    return ew.select(is_special, x, fraction), conversion.convert(ew.select(is_special, zero, exponent), dtypes.int32)


@library_function
def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next number away from zero.

    >>> import atled.numpy as jnp
    >>> spacing(jnp.float32(2.0**23))
    Array(1., dtype=float32)
    """
    (x,) = promote_inexact("spacing", x)
    inf = np.asarray(np.inf, type_of(x).dtype)
    away = ew.select(ew.lt(x, 0), ew.neg(inf), inf)
    return ew.sub(elementary.nextafter(x, away), x)


@library_function
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor.

    >>> import atled.numpy as jnp
    >>> gcd(jnp.array([12, 7]), 18)
    Array([6, 1], dtype=int32)
    """
    x, y = broadcast("gcd", promote_dtypes("gcd", x1, x2))
    t = type_of(x)
    if t.kind not in "iu":
        raise TypeError(f"gcd: integers are needed; got {t}.")
    if t.kind == "i":  # abs(the lowest integer) fits only into the unsigned dtype
        x, y = (conversion.convert(elementary.absolute(v), f"u{t.dtype.name}") for v in (x, y))
    dims = broadcast_shapes(type_of(x).shape, type_of(y).shape)
    from atled.higher_order.while_loop import while_loop

    x, _ = while_loop(_goes_on, _euclid, (broadcast_to(x, dims), broadcast_to(y, dims)))
    return conversion.convert(x, t.dtype)


def _goes_on(pair: Any) -> Any:
    return reduction.reduce_or(ew.ne(pair[1], 0), tuple(range(type_of(pair[1]).ndim)))


def _euclid(pair: Any) -> Any:
    """One step of Euclid's algorithm; pairs whose remainder is already zero stay unchanged."""
    x, y = pair
    is_done = ew.eq(y, 0)
    return ew.select(is_done, x, y), ew.select(is_done, 0, elementary.rem(x, _not_zero(y)))


@library_function
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple.

    >>> import atled.numpy as jnp
    >>> lcm(jnp.array([4, 7]), 6)
    Array([12, 42], dtype=int32)
    """
    x, y = broadcast("lcm", promote_dtypes("lcm", x1, x2))
    t = type_of(x)
    divisor = gcd(x, y)
    if t.kind == "i":
        x, y = elementary.absolute(x), elementary.absolute(y)
    return ew.mul(ew.select(ew.eq(divisor, 0), 0, ew.div(x, _not_zero(divisor))), y)
