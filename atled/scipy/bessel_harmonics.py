"""Bessel functions of integer order, spherical harmonics and Bernoulli numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import Tracer
from atled.higher_order.custom_derivatives import custom_jvp
from atled.higher_order.scan import repeat
from atled.ops import conversion
from atled.scipy.operand_promotion import real_operands
from atled.staging.jit import library_function

_DOUBLE = np.dtype(float)


@functools.cache
def _bernoulli_numbers(n: int) -> tuple[float, ...]:
    """The Bernoulli numbers up to n, from tangent numbers, which are integers (R. P. Brent and D. Harvey, 2013)."""
    count = n // 2 + 1
    tangents = [0, 1, *[math.factorial(k) for k in range(1, count)]]
    for k in range(2, count + 1):
        for j in range(k, count + 1):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    out = [1.0, -0.5]
    for k in range(1, count):
        try:
            size = 2 * k * tangents[k] / (4**k * (4**k - 1))
        except OverflowError:
            size = math.inf
        out += [size if k % 2 else -size, 0.0]
    return tuple(out[: n + 1])


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B[0] to B[n].

    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    try:
        count = n.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"bernoulli: n must be a whole number; got {n!r}.") from None
    if count < 0:
        raise ValueError(f"bernoulli: n must be a non-negative whole number; got {count}.")
    with np.errstate(over="ignore"):
        return jnp.asarray(np.array(_bernoulli_numbers(count)).astype(dtypes.default("f")))


# -- Bessel functions -------------------------------------------------------------------------------------------------


def _bessel_down(z: Any, v: int, start: int) -> Any:
    """J of orders 0 to v, by downward recurrence from an order where J is negligible; J0 + 2 (J2 + J4 + ...) is 1."""

    def step(i: Any, state: Any) -> Any:
        above, here, total, by_order = state
        order = start - i  # of `here`
        below = 2 * order / z * here - above
        is_even = jnp.floor(order / 2) * 2 == order
        total = total + jnp.where(is_even, 2 * here, 0)
        index = np.arange(v + 1, dtype=float).reshape(-1, *[1] * z.ndim)
        by_order = jnp.where(index == order, here, by_order)
        scale = jnp.where(jnp.abs(below) > 1e150, np.asarray(1e-150), 1)
        return here * scale, below * scale, total * scale, by_order * scale

    zero = jnp.zeros_like(z)
    values = jnp.zeros((v + 1, *z.shape), _DOUBLE)
    _, here, total, values = repeat(step, start, (zero, zero + 1e-150, zero, values), 0, _DOUBLE)
    index = np.arange(v + 1).reshape(-1, *[1] * z.ndim)
    return jnp.where(index == 0, here, values) / (total + here)


def _bessel_up(z: Any, v: int) -> Any:
    """J of orders 0 to v, for z larger than v: orders 0 and 1 by Hankel's asymptotic series, then upward recurrence."""
    first = []
    for order in (0, 1):
        p, q, term = jnp.ones_like(z), jnp.zeros_like(z), jnp.ones_like(z)
        for k in range(1, 30):
            term = term * ((4 * order * order - (2 * k - 1) ** 2) / (8 * k)) / z
            sign = (-1) ** (k // 2)
            p, q = (p + sign * term, q) if k % 2 == 0 else (p, q + sign * term)
        sine, cosine = jnp.sin(z), jnp.cos(z)
        # sqrt(2) times the cosine and sine of z - order pi / 2 - pi / 4
        c = (cosine + sine) if order == 0 else (sine - cosine)
        s = (sine - cosine) if order == 0 else -(sine + cosine)
        first.append((p * c - q * s) / jnp.sqrt(math.pi * z))
    for k in range(1, v):
        first.append(2 * k / z * first[k] - first[k - 1])
    return jnp.stack(first[: v + 1])


@functools.cache
def _bessel(v: int) -> Any:
    """A function of z that returns J of orders 0 to v, with a custom derivative."""

    @custom_jvp
    def bessel(z: Any) -> Any:
        border = max(30, v)
        size = jnp.abs(z)
        is_small, is_far = size < 1e-30, size > border
        near = _bessel_down(jnp.where(is_small | is_far, 1, size), v, 2 * int(0.7 * border + 45))
        far = _bessel_up(jnp.where(is_far & (size < np.inf), size, border + 1), v)
        index = np.arange(v + 1).reshape(-1, *[1] * z.ndim)
        tiny = jnp.where(index == 0, 1.0, jnp.where(index == 1, size / 2, 0.0))
        out = jnp.where(is_small, tiny, jnp.where(is_far, jnp.where(size < np.inf, far, 0), near))
        out = jnp.where((z < 0) & (index % 2 == 1), -out, out)
        return jnp.where(z != z, np.nan, out)

    @bessel.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (z,), (t,) = primals, tangents
        more = _bessel(v + 1)(z)
        before = jnp.concatenate([-more[1:2], more[: v + 1]])[: v + 1]
        return more[: v + 1], (before - more[1:]) / 2 * t

    return bessel


@library_function(static=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0 to v, stacked along a new first axis.

    The number of steps depends on v; `n_iter` has no effect and is accepted for compatibility.

    >>> [round(float(x), 3) for x in bessel_jn(jnp.array([1.0]), v=2).ravel()]
    [0.765, 0.44, 0.115]
    """
    try:
        order = v.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"bessel_jn: the order must be a whole number; got {v!r}.") from None
    if order < 0:
        raise ValueError(f"bessel_jn: the order must not be negative; got {order}.")
    (z,) = real_operands("bessel_jn", z)
    dtype = type_of(z).dtype
    return conversion.convert(_bessel(order)(conversion.convert(z, dtypes.float64)), dtype)


# -- spherical harmonics ----------------------------------------------------------------------------------------------


@library_function(static=("top",))
def _sph_harm(n: Any, m: Any, theta: Any, phi: Any, top: int) -> Any:
    theta, phi = real_operands("sph_harm_y", theta, phi)
    dtype = dtypes.promote((type_of(theta).dtype, False), (dtypes.complex64, False))[0]
    theta, phi = (conversion.convert(v, dtypes.float64) for v in (theta, phi))
    n, m = (conversion.convert(jnp.asarray(v), dtypes.float64) for v in (n, m))
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    n, order = jnp.minimum(n, top), jnp.abs(m)
    x, side = jnp.cos(theta), jnp.sin(theta)

    def step(k: Any, state: Any) -> Any:  # raises degree and order up to m, then the degree alone
        before, here = state
        is_diagonal = k <= order
        diagonal = -here * side * jnp.sqrt((2 * k + 1) / (2 * k))
        safe = jnp.where(is_diagonal, 0, order)
        scale = jnp.sqrt((4 * k * k - 1) / (k * k - safe * safe))
        last = jnp.sqrt(jnp.maximum((k - 1) * (k - 1) - safe * safe, 0) / (4 * (k - 1) * (k - 1) - 1))
        up = scale * (x * here - last * before)
        new = jnp.where(is_diagonal, diagonal, up)
        goes_on = k <= n
        return jnp.where(goes_on, jnp.where(is_diagonal, 0, here), before), jnp.where(goes_on, new, here)

    start = (jnp.zeros_like(x), jnp.full_like(x, math.sqrt(0.25 / math.pi)))
    _, size = repeat(step, top, start, 1, _DOUBLE)
    sign = jnp.where((m < 0) & (jnp.floor(m / 2) * 2 != m), -1.0, 1.0)
    out = jnp.where(order <= n, sign * size, 0)
    return conversion.convert(out * (jnp.cos(m * phi) + 1j * jnp.sin(m * phi)), dtype)


def sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """The spherical harmonic of degree n and order m at polar angle theta and azimuth phi.

    Operands broadcast. `n_max`, the largest degree, is required if n is traced; larger degrees are clipped to it.

    >>> zero = jnp.array([0])
    >>> sph_harm_y(zero, zero, jnp.array([0.5]), jnp.array([0.5])).real.round(3)
    Array([0.282], dtype=float32)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: derivatives are taken with grad and jvp; diff_n is not supported.")
    for name, v in (("n", n), ("m", m)):
        if type_of(v).kind not in "iu":
            raise ValueError(f"sph_harm_y: {name} must be whole numbers; got {type_of(v)}.")
    if n_max is None:
        if isinstance(n, Tracer):
            raise ValueError(errors.explained("sph_harm_y: n_max is required if n is traced.", "n_max=..., a number."))
        n_max = int(np.max(np.asarray(n), initial=0))
    return _sph_harm(n, m, theta, phi, n_max.__index__())
