"""Elementary functions of complex numbers, written with real functions of their two parts.

The functions are accurate over the whole plane, do not overflow before their result does, are continuous on the side of
a branch cut that the sign of zero selects, and have the special values of C99 (annex G) and of the array API standard.
The formulas for inverse functions are Kahan's ("Branch cuts for complex elementary functions", 1987). The ops define
the derivatives; these functions are not differentiated.
"""

from __future__ import annotations

import math
from typing import Any

from atled.core import dtypes
from atled.core.array import type_of
from atled.ops import conversion, elementary
from atled.ops import elementwise as ew
from atled.ops.elementwise_family import Elementwise
from atled.ops.real_functions import flipped, top_half, two_sum, value, with_sign


def _parts(z: Any) -> tuple[Any, Any]:
    return conversion.real(z), conversion.imag(z)


def _infinity(like: Any) -> Any:
    return value(like, math.inf)


def _is_infinite(x: Any) -> Any:
    return ew.eq(elementary.absolute(x), _infinity(x))


def _is_nan(x: Any) -> Any:
    return ew.ne(x, x)


def _is_lost(x: Any) -> Any:
    """Whether an angle is infinite or NaN, so that its sine and cosine are undefined."""
    return ew.logical_not(elementary.is_finite(x))


def _both(*conditions: Any) -> Any:
    out = conditions[0]
    for c in conditions[1:]:
        out = ew.logical_and(out, c)
    return out


# -- magnitudes near one, where the logarithm needs exact products ----------------------------------------------------


def _sum_of_squares(x: Any, y: Any, other: Any) -> Any:
    """x*x + y*y + other, in twice the precision because large terms cancel."""
    a, c = top_half(x), top_half(y)  # the squares of a and c are exact
    b, d = ew.sub(x, a), ew.sub(y, c)
    total, left = ew.mul(a, a), value(x, 0.0)
    # `other` is not the first term, because the compiler would fold it with another constant
    for term in (ew.mul(c, c), other, ew.mul(ew.mul(a, b), 2), ew.mul(ew.mul(c, d), 2), ew.mul(b, b), ew.mul(d, d)):
        total, rest = two_sum(total, term)
        left = ew.add(left, rest)
    return ew.add(total, left)


def _log_of_size(x: Any, y: Any) -> Any:
    """log(hypot(x, y)), for a hypot that is not near one."""
    a, b = elementary.absolute(x), elementary.absolute(y)
    top, low = ew.maximum(a, b), ew.minimum(a, b)
    is_plain = ew.logical_or(ew.eq(low, 0), ew.eq(top, _infinity(top)))
    ratio = ew.select(is_plain, value(x, 0.0), ew.div(low, top))
    out = ew.add(elementary.log(top), ew.mul(elementary.log1p(ew.mul(ratio, ratio)), 0.5))
    return ew.select(ew.logical_or(_is_infinite(x), _is_infinite(y)), _infinity(x), out)


def _is_near_one(x: Any, y: Any) -> Any:
    top = ew.maximum(elementary.absolute(x), elementary.absolute(y))
    return ew.logical_and(ew.gt(top, 0.5), ew.lt(top, 2))


# -- logarithms, exponentials, roots ---------------------------------------------------------------------------------


def log(z: Any) -> Any:
    """log(hypot(x, y)) + i atan2(y, x)."""
    x, y = _parts(z)
    near = ew.mul(elementary.log1p(_sum_of_squares(x, y, value(x, -1.0))), 0.5)
    return conversion.complex(ew.select(_is_near_one(x, y), near, _log_of_size(x, y)), elementary.atan2(y, x))


def log1p(z: Any) -> Any:
    """log(1 + z); where abs(1 + z) is near one, its logarithm is log1p(2x + x*x + y*y) / 2."""
    x, y = _parts(z)
    moved = ew.add(x, 1)
    square = _sum_of_squares(x, y, ew.mul(x, 2))
    near = ew.mul(elementary.log1p(square), 0.5)
    out = ew.select(_is_near_one(moved, y), near, _log_of_size(moved, y))
    out = ew.select(_both(ew.eq(x, 0), ew.eq(y, 0)), x, out)
    return conversion.complex(out, elementary.atan2(y, moved))


def _scaled_exp(x: Any) -> tuple[Any, Any]:
    """Two factors whose product is exp(x): the second is 1 unless exp(x) overflows."""
    is_large = ew.gt(x, 88.0 if type_of(x).dtype is dtypes.float32 else 709.0)
    size = elementary.exp(ew.select(is_large, ew.mul(x, 0.5), x))
    return size, ew.select(is_large, size, value(x, 1.0))


def _exp_parts(x: Any, y: Any) -> tuple[Any, Any]:
    size, more = _scaled_exp(x)
    zero, is_lost = value(x, 0.0), _is_lost(y)
    re, im = (ew.mul(ew.mul(size, f(y)), more) for f in (elementary.cos, elementary.sin))
    im = ew.select(ew.eq(y, 0), y, im)
    # if x is infinite and y is not finite, the real part is x or zero
    is_down = _both(ew.eq(x, ew.neg(_infinity(x))), is_lost)
    re, im = (ew.select(is_down, zero, v) for v in (re, im))
    return ew.select(_both(ew.eq(x, _infinity(x)), is_lost), x, re), im


def exp(z: Any) -> Any:
    """exp(x) * (cos(y) + i sin(y))."""
    return conversion.complex(*_exp_parts(*_parts(z)))


def expm1(z: Any) -> Any:
    """exp(z) - 1; for abs(x) < 1, the real part is expm1(x) cos(y) - 2 sin(y/2)**2."""
    x, y = _parts(z)
    re, im = _exp_parts(x, y)
    half = elementary.sin(ew.mul(y, 0.5))
    near = ew.sub(ew.mul(elementary.expm1(x), elementary.cos(y)), ew.mul(ew.mul(half, half), 2))
    near = ew.select(ew.eq(near, 0), value(x, 0.0), near)  # +0 for zeros of both signs, as the standard requires
    return conversion.complex(ew.select(ew.lt(elementary.absolute(x), 1), near, ew.sub(re, 1)), im)


def _hypot(a: Any, b: Any) -> Any:
    """sqrt(a*a + b*b) for a and b that are not negative, infinite, or near overflow."""
    top, low = ew.maximum(a, b), ew.minimum(a, b)
    ratio = ew.div(low, ew.select(ew.eq(top, 0), value(a, 1.0), top))
    return ew.mul(top, elementary.sqrt(ew.add(ew.mul(ratio, ratio), 1)))


def _sqrt_parts(x: Any, y: Any) -> tuple[Any, Any]:
    a, b = elementary.absolute(x), elementary.absolute(y)
    top = ew.maximum(a, b)
    info = dtypes.finfo(type_of(x).dtype)
    is_large, is_small = ew.gt(top, info.max / 8), ew.lt(top, info.tiny / info.eps)
    up = 2.0 ** (2 * info.nmant)  # powers of four, whose roots are exact
    one = value(x, 1.0)
    scale = ew.select(is_large, value(x, 1 / 16), ew.select(is_small, value(x, up), one))
    back = ew.select(is_large, value(x, 4.0), ew.select(is_small, value(x, 2.0**-info.nmant), one))
    a, b = ew.mul(a, scale), ew.mul(b, scale)
    root = elementary.sqrt(ew.mul(ew.add(a, _hypot(a, b)), 0.5))
    other = ew.mul(ew.div(b, ew.select(ew.eq(root, 0), one, ew.mul(root, 2))), back)
    root = ew.mul(root, back)
    is_left = ew.lt(x, 0)
    re, im = ew.select(is_left, other, root), ew.select(is_left, root, other)
    infinity, zero = _infinity(x), value(x, 0.0)
    # the limits for infinite x, and for infinite y, which override those for x
    is_far, is_up = _is_infinite(x), _is_infinite(y)
    flat = ew.select(_is_nan(y), y, zero)
    re = ew.select(is_far, ew.select(is_left, flat, infinity), re)
    im = ew.select(is_far, ew.select(is_left, infinity, flat), im)
    re, im = (ew.select(is_up, infinity, v) for v in (re, im))
    return re, with_sign(elementary.absolute(im), y)


def sqrt(z: Any) -> Any:
    """The square root with a nonnegative real part; for negative z, its imaginary part has the sign of y."""
    return conversion.complex(*_sqrt_parts(*_parts(z)))


# -- circular and hyperbolic functions --------------------------------------------------------------------------------


def _hyperbolic(x: Any) -> tuple[Any, Any, Any]:
    """sinh(x), cosh(x), and a factor for both, which is 1 unless they overflow."""
    size = elementary.absolute(x)
    is_large = ew.gt(size, 88.0 if type_of(x).dtype is dtypes.float32 else 709.0)
    root = elementary.exp(ew.mul(size, 0.5))
    half = ew.mul(root, 0.5)
    sinh = ew.select(is_large, flipped(half, x), elementary.sinh(x))
    cosh = ew.select(is_large, half, elementary.cosh(x))
    return sinh, cosh, ew.select(is_large, root, value(x, 1.0))


def _sinh_parts(x: Any, y: Any) -> tuple[Any, Any]:
    s, c, more = _hyperbolic(x)
    re, im = ew.mul(ew.mul(s, elementary.cos(y)), more), ew.mul(ew.mul(c, elementary.sin(y)), more)
    is_kept = _both(ew.logical_or(ew.eq(x, 0), _is_infinite(x)), _is_lost(y))
    return ew.select(is_kept, x, re), ew.select(ew.eq(y, 0), y, im)


def _cosh_parts(x: Any, y: Any) -> tuple[Any, Any]:
    s, c, more = _hyperbolic(x)
    re, im = ew.mul(ew.mul(c, elementary.cos(y)), more), ew.mul(ew.mul(s, elementary.sin(y)), more)
    is_lost = _is_lost(y)
    re = ew.select(_both(_is_infinite(x), is_lost), _infinity(x), re)
    im = ew.select(ew.eq(y, 0), flipped(y, x), im)
    return re, ew.select(_both(ew.eq(x, 0), is_lost), x, im)


def _tanh_parts(x: Any, y: Any) -> tuple[Any, Any]:
    """sinh(x) cosh(x) and sin(y) cos(y), both divided by sinh(x)**2 + cos(y)**2, a sum without cancellation."""
    size = elementary.absolute(x)
    is_large = ew.gt(size, 10.0 if type_of(x).dtype is dtypes.float32 else 20.0)  # where tanh(x) rounds to 1
    inner = ew.select(is_large, value(x, 1.0), x)
    s, c = elementary.sinh(inner), elementary.cosh(inner)
    sin, cos = elementary.sin(y), elementary.cos(y)
    under = ew.add(ew.mul(s, s), ew.mul(cos, cos))
    product = ew.mul(sin, cos)
    decay = elementary.exp(ew.mul(size, -1.0))
    re = ew.select(is_large, with_sign(value(x, 1.0), x), ew.div(ew.mul(s, c), under))
    im = ew.select(is_large, ew.mul(ew.mul(ew.mul(product, 4), decay), decay), ew.div(product, under))
    lost = ew.select(ew.eq(x, 0), x, value(x, math.nan))
    re = ew.select(_both(_is_lost(y), ew.logical_not(_is_infinite(x))), lost, re)
    im = ew.select(ew.logical_or(ew.eq(y, 0), _is_infinite(x)), with_sign(value(y, 0.0), y), im)
    return re, im


def sinh(z: Any) -> Any:
    """sinh(x) cos(y) + i cosh(x) sin(y)."""
    return conversion.complex(*_sinh_parts(*_parts(z)))


def cosh(z: Any) -> Any:
    """cosh(x) cos(y) + i sinh(x) sin(y)."""
    return conversion.complex(*_cosh_parts(*_parts(z)))


def tanh(z: Any) -> Any:
    """sinh(z) / cosh(z)."""
    return conversion.complex(*_tanh_parts(*_parts(z)))


def sin(z: Any) -> Any:
    """-i sinh(iz)."""
    x, y = _parts(z)
    im, re = _sinh_parts(y, x)
    return conversion.complex(re, im)


def cos(z: Any) -> Any:
    """cosh(iz)."""
    x, y = _parts(z)
    return conversion.complex(*_cosh_parts(ew.neg(y), x))


def tan(z: Any) -> Any:
    """-i tanh(iz)."""
    x, y = _parts(z)
    im, re = _tanh_parts(y, x)
    return conversion.complex(re, im)


# -- inverse functions ------------------------------------------------------------------------------------------------


def _is_far(x: Any, y: Any) -> Any:
    """Whether z*z + 1 and z*z - 1 round to z*z, so the inverse functions are logarithms of 2z."""
    limit = 2 / dtypes.finfo(type_of(x).dtype).eps
    return ew.logical_or(ew.gt(elementary.absolute(x), limit), ew.gt(elementary.absolute(y), limit))


def _log_of_double(x: Any, y: Any) -> Any:
    return ew.add(_log_of_size(x, y), math.log(2.0))


def _asinh_parts(x: Any, y: Any) -> tuple[Any, Any]:
    """The parts of asinh(z), from the roots of 1 + iz and 1 - iz for abs(x) and abs(y); the signs are restored."""
    width, height = elementary.absolute(x), elementary.absolute(y)
    a, b = _sqrt_parts(ew.sub(1, height), width)
    c, d = _sqrt_parts(ew.add(height, 1), width)
    is_far = _is_far(width, height)
    re = elementary.asinh(ew.add(ew.mul(c, b), ew.mul(d, a)))
    re = ew.select(is_far, _log_of_double(width, height), re)
    under = ew.select(is_far, width, ew.add(ew.mul(a, c), ew.mul(b, d)))
    im = elementary.atan2(height, under)
    # for small z, z itself: 1 + iz would lose its digits
    info = dtypes.finfo(type_of(x).dtype)
    is_small = ew.lt(ew.maximum(width, height), math.sqrt(info.eps) / 4)
    re, im = ew.select(is_small, width, re), ew.select(is_small, height, im)
    im = ew.select(_both(_is_nan(x), ew.eq(y, 0)), height, im)
    return with_sign(elementary.absolute(re), x), with_sign(elementary.absolute(im), y)


def asinh(z: Any) -> Any:
    """The inverse of sinh, with cuts along the imaginary axis outside of [-i, i]."""
    return conversion.complex(*_asinh_parts(*_parts(z)))


def asin(z: Any) -> Any:
    """-i asinh(iz), with cuts along the real axis outside of [-1, 1]."""
    x, y = _parts(z)
    im, re = _asinh_parts(y, x)
    return conversion.complex(re, im)


def acos(z: Any) -> Any:
    """The inverse of cos, with cuts along the real axis outside of [-1, 1]."""
    x, y = _parts(z)
    a, b = _sqrt_parts(ew.sub(1, x), ew.neg(y))
    c, d = _sqrt_parts(ew.add(x, 1), y)
    is_far = _is_far(x, y)
    re = ew.select(is_far, elementary.atan2(elementary.absolute(y), x), ew.mul(elementary.atan2(a, c), 2))
    near = elementary.asinh(ew.sub(ew.mul(c, b), ew.mul(d, a)))
    far = ew.neg(with_sign(elementary.absolute(_log_of_double(x, y)), y))
    re = ew.select(_both(ew.eq(x, 0), _is_nan(y)), value(x, math.pi / 2), re)
    return conversion.complex(re, ew.select(is_far, far, near))


def acosh(z: Any) -> Any:
    """The inverse of cosh, with a cut along the real axis below 1."""
    x, y = _parts(z)
    a, b = _sqrt_parts(ew.sub(x, 1), y)
    c, d = _sqrt_parts(ew.add(x, 1), y)
    is_far = _is_far(x, y)
    near = elementary.asinh(ew.add(ew.mul(a, c), ew.mul(b, d)))
    re = ew.select(is_far, _log_of_double(x, y), near)
    im = ew.select(is_far, elementary.atan2(y, x), ew.mul(elementary.atan2(b, c), 2))
    return conversion.complex(re, ew.select(_both(ew.eq(x, 0), _is_nan(y)), value(x, math.pi / 2), im))


def _atanh_parts(x: Any, y: Any) -> tuple[Any, Any]:
    """log1p(4x / ((1 - x)**2 + y**2)) / 4 for x >= 0, and half the angle of (1 - x)(1 + x) - y**2 + 2iy."""
    a, b = elementary.absolute(x), elementary.absolute(y)
    one, zero = value(x, 1.0), value(x, 0.0)
    top, low = ew.maximum(a, b), ew.minimum(a, b)
    is_far = ew.gt(top, 2 / math.sqrt(dtypes.finfo(type_of(x).dtype).eps))
    inner, side = ew.select(is_far, zero, a), ew.select(is_far, zero, b)
    rest = ew.sub(1, inner)
    under = ew.add(ew.mul(rest, rest), ew.mul(side, side))
    near = ew.mul(elementary.log1p(ew.div(ew.mul(inner, 4), under)), 0.25)
    # at x = 1 and small y, where y**2 may underflow
    at_one = ew.mul(ew.sub(math.log(2.0), elementary.log(side)), 0.5)
    near = ew.select(_both(ew.eq(a, one), ew.lt(b, math.sqrt(dtypes.finfo(type_of(x).dtype).eps))), at_one, near)
    # for large z, 1 / z, with both sides of the fraction divided by the larger part
    scale = ew.select(is_far, top, one)
    size = ew.add(top, ew.mul(low, ew.div(low, scale)))
    far = ew.div(ew.div(a, scale), size)
    is_endless = ew.logical_or(_is_infinite(x), _is_infinite(y))
    re = ew.select(is_endless, zero, ew.select(is_far, far, near))
    height = ew.select(is_far, ew.div(y, scale), y)
    width = ew.select(is_far, ew.neg(size), ew.sub(ew.mul(rest, ew.add(inner, 1)), ew.mul(side, side)))
    im = ew.mul(elementary.atan2(ew.mul(height, 2), width), 0.5)
    im = ew.select(is_endless, ew.select(_is_nan(y), y, with_sign(value(x, math.pi / 2), y)), im)
    return ew.select(ew.eq(x, 0), x, with_sign(elementary.absolute(re), x)), im


def atanh(z: Any) -> Any:
    """The inverse of tanh, with cuts along the real axis outside of [-1, 1]."""
    return conversion.complex(*_atanh_parts(*_parts(z)))


def atan(z: Any) -> Any:
    """-i atanh(iz), with cuts along the imaginary axis outside of [-i, i]."""
    x, y = _parts(z)
    im, re = _atanh_parts(y, x)
    return conversion.complex(re, im)


# -- absolute value and functions of it -------------------------------------------------------------------------------


def absolute(z: Any, size: Any) -> Any:
    """The magnitude of z, which is infinite if either part is infinite."""
    x, y = _parts(z)
    return ew.select(ew.logical_or(_is_infinite(x), _is_infinite(y)), _infinity(x), size)


def sign(z: Any) -> Any:
    """z / abs(z), and 0 at 0; z is first divided by its larger part, so abs(z) neither over- nor underflows."""
    x, y = _parts(z)
    top = ew.maximum(elementary.absolute(x), elementary.absolute(y))
    one, zero = value(x, 1.0), value(x, 0.0)
    is_far, is_zero = ew.eq(top, _infinity(top)), ew.eq(top, 0)
    # one infinite part gives its sign, and the other part 0; two infinite parts give NaN
    scale = ew.select(is_zero, one, top)
    a, b = (
        ew.select(is_far, ew.select(_is_infinite(v), with_sign(one, v), ew.mul(v, 0)), ew.div(v, scale)) for v in (x, y)
    )
    size = ew.select(is_zero, one, elementary.sqrt(ew.add(ew.mul(a, a), ew.mul(b, b))))
    size = ew.select(_both(_is_infinite(x), _is_infinite(y)), value(x, math.nan), size)
    return conversion.complex(*[ew.select(is_zero, zero, ew.div(v, size)) for v in (a, b)])


def square(z: Any) -> Any:
    """(x - y)(x + y) + 2ixy: the difference of two squares, without cancellation."""
    x, y = _parts(z)
    product = ew.mul(x, y)
    return conversion.complex(ew.mul(ew.sub(x, y), ew.add(x, y)), ew.add(product, product))


# -- ops that lower to these functions --------------------------------------------------------------------------------

_OPS: list[tuple[type[Elementwise], Any]] = [
    (elementary.Sign, sign), (elementary.Abs, absolute), (ew.IntegerPow, square), (elementary.Sqrt, sqrt),
    (elementary.Exp, exp), (elementary.Expm1, expm1), (elementary.Log, log), (elementary.Log1p, log1p),
    (elementary.Sin, sin), (elementary.Cos, cos), (elementary.Tan, tan), (elementary.Asin, asin),
    (elementary.Acos, acos), (elementary.Atan, atan), (elementary.Sinh, sinh), (elementary.Cosh, cosh),
    (elementary.Tanh, tanh), (elementary.Asinh, asinh), (elementary.Acosh, acosh), (elementary.Atanh, atanh),
]  # fmt: skip
for _op, _function in _OPS:
    _op.computed = {**_op.computed, "c": _function}
