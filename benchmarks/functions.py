"""Eager calls of NumPy's functions on small arrays, each against the same call of jax.numpy.

The calls are text, evaluated once for each library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CALLS = """
abs(x) add(x, y) all(mask) allclose(x, y) any(mask) append(x, y) arange(10) arccos(u) arcsin(u) arctan(x)
arctan2(x, y) argmax(x) argmin(x) argsort(x) around(x, 2) array_equal(x, y) asarray(h) atleast_2d(x) average(x)
bincount(k, length=10) broadcast_to(u, (4, 16)) cbrt(x) ceil(x) clip(x, 0.0, 1.0) column_stack([x, y])
concatenate([x, y]) conj(z) convolve(x, u) copysign(x, y) corrcoef(m) cos(x) cosh(u) cov(m) cross(v, w) cumprod(u)
cumsum(x) deg2rad(x) diag(u) diagonal(m) diff(x) digitize(x, u) divide(x, y) divmod(x, y) dot(m, u)
einsum('ij,jk->ik', m, m) equal(x, y) exp(x) exp2(u) expand_dims(x, 0) expm1(u) eye(4) fft.fft(u) fft.rfft(x) flip(x)
floor(x) floor_divide(x, y) fmod(x, y) full((3,), 2.0) gcd(k, 6) gradient(x) heaviside(x, 0.5) histogram(x, 10)
hypot(x, y) imag(z) inner(x, y) interp(x, u, u) isclose(x, y) isfinite(x) isnan(x) kron(v, w) less(x, y) linalg.det(s)
linalg.inv(s) linalg.norm(x) linalg.solve(s, v) linspace(0.0, 1.0, 5) log(x) log1p(x) logaddexp(x, y)
logical_and(mask, mask) matmul(m, m) max(x) maximum(x, 0.0) mean(x) median(x) meshgrid(v, w) min(m, axis=1) mod(x, y)
moveaxis(m, 0, 1) multiply(x, y) nan_to_num(x) nanmean(x) nansum(x) negative(x) ones((3,)) outer(u, u) pad(u, 2)
percentile(x, 30.0) polyfit(u, u, 2) polyval(v, x) power(x, 2) prod(u) ptp(x) quantile(x, 0.3) ravel(m) real(z)
reciprocal(y) repeat(u, 2) reshape(x, (8, 16)) roll(x, 3) round(x) searchsorted(u, x) sign(x) sin(x) sinc(x) sinh(u)
sort(x) split(x, 4) sqrt(x) square(x) squeeze(q) stack([x, y]) std(x) subtract(x, y) sum(x) swapaxes(m, 0, 1)
take(x, k) tan(x) tanh(x) tensordot(m, m, 1) tile(u, 2) trace(m) transpose(m) tri(4) tril(m) triu(m) trunc(x)
unwrap(x) vander(v) var(x) vdot(x, y) vstack([x, y]) where(mask, x, y) zeros((3,)) zeros_like(x)
"""


def calls(jnp: Any) -> dict[str, Callable[[], Any]]:
    """The calls for one library, by their text."""
    names = {
        "jnp": jnp,
        "h": np.ones(8, "f4"),
        "x": jnp.arange(128.0),
        "y": jnp.ones(128),
        "u": jnp.linspace(0.1, 0.9, 16),
        "v": jnp.array([1.0, 2.0, 3.0]),
        "w": jnp.array([3.0, 1.0, 2.0]),
        "m": jnp.ones((16, 16)) + jnp.eye(16),
        "s": jnp.eye(3) * 2,
        "z": jnp.ones(16) * (1 + 2j),
        "q": jnp.ones((1, 8)),
        "k": jnp.arange(10),
        "mask": jnp.arange(128) > 5,
    }
    return {call: eval(f"lambda: jnp.{call}", names) for call in _split(CALLS)}


def _split(text: str) -> list[str]:
    """Split a text into calls: at whitespace outside of brackets."""
    found, depth, now = [], 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c.isspace() and depth == 0:
            found, now = ([*found, now], "") if now else (found, "")
        else:
            now += c
    return found
