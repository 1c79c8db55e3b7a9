"""NumPy's Fourier transforms, over any number of axes.

The compiler transforms up to three axes at a time; more are transformed in several steps. Results are complex64 or
complex128 (float32 or float64 where they are real); 16-bit floats are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axes
from atled.numpy.creation import located
from atled.numpy.promotion import cast, operand_type, promote_inexact
from atled.ops import conversion, shape
from atled.ops import elementwise as ew
from atled.ops import fft as ops
from atled.staging.jit import library_function

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = __all__.copy

_AT_ONCE = 3  # XLA's FFT takes at most three axes
_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _groups(count: int) -> list[tuple[int, int]]:
    """Indices 0 to count - 1, divided from the end into groups of at most three, the last group first."""
    return [(max(stop - _AT_ONCE, 0), stop) for stop in range(count, 0, -_AT_ONCE)]


def _fitted(x: Any, lengths: Sequence[int]) -> Any:
    """x with its last axes truncated or zero-padded to the given lengths."""
    lead = [(0, 0, 0)] * (type_of(x).ndim - len(lengths))
    dims = type_of(x).shape[len(lead) :]
    return shape.pad(x, 0, [*lead, *[(0, n - d, 0) for n, d in zip(lengths, dims, strict=True)]])


def _complex_turns(x: Any, kind: str, lengths: Sequence[int]) -> Any:
    """A complex transform of the last axes, a few at a time."""
    n, count = type_of(x).ndim, len(lengths)
    for start, stop in _groups(count):
        front = [i for i in range(n) if not n - count + start <= i < n - count + stop]
        order = front + [i for i in range(n) if i not in front]
        turned = ops.fft(shape.transpose(x, order), kind, tuple(lengths[start:stop]))
        x = shape.transpose(turned, np.argsort(order).tolist())
    return x


def _scale(norm: str | None, is_inverse: bool, count: int) -> float:
    """The factor to apply to XLA's result, which XLA scales by 1 (forward) or by 1 / count (inverse)."""
    if norm in (None, "backward"):
        return 1.0
    if norm == "ortho":
        return count**0.5 if is_inverse else count**-0.5
    return float(count) if is_inverse else 1.0 / count


@library_function(static=("kind", "lengths", "axes", "norm"))
def _transform(a: Any, kind: str, lengths: tuple[int, ...] | None, axes: tuple[int, ...], norm: str | None) -> Any:
    """The transform `kind` (FFT, IFFT, RFFT or IRFFT) over axes, truncated or zero-padded to `lengths` if given."""
    name = kind.lower()
    t = operand_type(name, a)
    if kind == "RFFT" and t.kind == "c":
        raise ValueError(f"{name}: real numbers are needed; got {t}. Use fft for complex numbers.")
    (x,) = promote_inexact(name, a)
    if kind == "RFFT":
        x = cast(x, dtypes.float32) if dtypes.bits(type_of(x).dtype) < 32 else x
    else:
        x = cast(x, dtypes.complex_of(type_of(x).dtype))
    if not axes:
        return x
    n, count = t.ndim, len(axes)
    dims = [t.shape[i] for i in axes]
    if lengths is None:
        lengths = (*dims[:-1], 2 * (dims[-1] - 1)) if kind == "IRFFT" else tuple(dims)
    else:
        lengths = tuple([d if m == -1 else m for m, d in zip(lengths, dims, strict=True)])
    if any(m < 1 for m in lengths) and t.size:
        raise ValueError(f"{name}: a transform needs at least one element; got lengths {lengths} for {t}.")
    lengths = tuple([max(m, 0) for m in lengths])
    order = [i for i in range(n) if i not in axes] + list(axes)
    x = shape.transpose(x, order)
    tail = min(count, _AT_ONCE)
    if kind == "IRFFT":
        x = _fitted(x, (*lengths[:-1], lengths[-1] // 2 + 1))
        x = _rest(x, "IFFT", lengths, count - tail, count)
        x = ops.fft(x, kind, lengths[count - tail :])
    else:
        x = _fitted(x, lengths)
        if kind == "RFFT":
            x = ops.fft(x, kind, lengths[count - tail :])
            x = _rest(x, "FFT", lengths, count - tail, count)
        else:
            x = _complex_turns(x, kind, lengths)
    factor = _scale(norm, kind.startswith("I"), max(prod(lengths), 1))
    x = ew.mul(x, factor) if factor != 1.0 else x
    return shape.transpose(x, np.argsort(order).tolist())


def _rest(x: Any, kind: str, lengths: Sequence[int], more: int, count: int) -> Any:
    """A complex transform of the first `more` of the last `count` axes, which the real transform does not cover."""
    n = type_of(x).ndim
    if more == 0:
        return x
    first = n - count
    order = [*range(first), *range(first + more, n), *range(first, first + more)]
    turned = _complex_turns(shape.transpose(x, order), kind, lengths[:more])
    return shape.transpose(turned, np.argsort(order).tolist())


def _call(name: str, kind: str, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    """`_transform` for the arguments of a public function, after checks."""
    if norm not in _OPPOSITE:
        raise ValueError(f"{name}: norm is None, 'backward', 'ortho' or 'forward'; got {norm!r}.")
    t = operand_type(name, a)
    if s is not None:
        s = tuple([int(n) for n in s])
        if any(n < 1 and n != -1 for n in s):
            raise ValueError(f"{name}: lengths must be positive; got {s}.")
    if axes is None:
        axes = tuple(range(t.ndim)) if s is None else tuple(range(t.ndim - len(s), t.ndim))
    checked_axes = check_axes(name, tuple(axes), t.ndim)
    if s is not None and len(s) != len(checked_axes):
        raise ValueError(f"{name}: one length for each axis is needed; got {s} for axes {tuple(axes)}.")
    if kind in ("RFFT", "IRFFT") and not checked_axes:
        raise ValueError(f"{name}: at least one axis is needed; got {t}.")
    return _transform(a, kind, s, checked_axes, norm)


def _one(name: str, kind: str, a: Any, n: int | None, axis: int, norm: str | None) -> Any:
    if n is not None and n < 1:
        raise ValueError(f"{name}: the length must be positive; got {n}.")
    return _call(name, kind, a, None if n is None else (n,), (axis,), norm)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform along an axis, which is truncated or zero-padded to length n.

    >>> import atled.numpy as jnp
    >>> fft(jnp.array([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _one("fft", "FFT", a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse Fourier transform along an axis.

    >>> import atled.numpy as jnp
    >>> ifft(jnp.array([4.0, 0.0, 0.0, 0.0])).real
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one("ifft", "IFFT", a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of real numbers along an axis: only the non-negative frequencies.

    >>> import atled.numpy as jnp
    >>> rfft(jnp.ones(4)).real
    Array([4., 0., 0.], dtype=float32)
    """
    return _one("rfft", "RFFT", a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`: n real numbers whose `rfft` is a; by default n is even.

    >>> import atled.numpy as jnp
    >>> irfft(jnp.array([4.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one("irfft", "IRFFT", a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real Fourier transform of a signal with Hermitian symmetry, given its non-negative half.

    >>> import atled.numpy as jnp
    >>> hfft(jnp.array([1.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    _check_norm("hfft", norm)
    return _one("hfft", "IRFFT", _conjugate(a), n, axis, _OPPOSITE[norm])


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the non-negative half of the Hermitian signal whose Fourier transform is a.

    >>> import atled.numpy as jnp
    >>> ihfft(jnp.array([4.0, 0.0, 0.0, 0.0])).real
    Array([1., 1., 1.], dtype=float32)
    """
    _check_norm("ihfft", norm)
    return _conjugate(_one("ihfft", "RFFT", a, n, axis, _OPPOSITE[norm]))


def _check_norm(name: str, norm: Any) -> None:
    if norm not in _OPPOSITE:
        raise ValueError(f"{name}: norm is None, 'backward', 'ortho' or 'forward'; got {norm!r}.")


@library_function(is_thin=True)
def _conjugate(a: Any) -> Any:
    return conversion.conj(a) if operand_type("hfft", a).kind == "c" else a


def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform over two axes.

    >>> import atled.numpy as jnp
    >>> fft2(jnp.ones((2, 2))).real
    Array([[4., 0.],
           [0., 0.]], dtype=float32)
    """
    return _call("fft2", "FFT", a, s, axes, norm)


def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse Fourier transform over two axes.

    >>> import atled.numpy as jnp
    >>> ifft2(jnp.array([[4.0, 0.0], [0.0, 0.0]])).real
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _call("ifft2", "IFFT", a, s, axes, norm)


def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform of real numbers over two axes; only non-negative frequencies of the last axis.

    >>> import atled.numpy as jnp
    >>> rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _call("rfft2", "RFFT", a, s, axes, norm)


def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Array:
    """The real numbers whose `rfft2` is a.

    >>> import atled.numpy as jnp
    >>> irfft2(rfft2(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _call("irfft2", "IRFFT", a, s, axes, norm)


def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform over axes, by default all. Axes must be distinct.

    >>> import atled.numpy as jnp
    >>> fftn(jnp.ones((2, 2, 2))).real.ravel()
    Array([8., 0., 0., 0., 0., 0., 0., 0.], dtype=float32)
    """
    return _call("fftn", "FFT", a, s, axes, norm)


def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse Fourier transform over axes, by default all.

    >>> import atled.numpy as jnp
    >>> ifftn(jnp.array([[4.0, 0.0], [0.0, 0.0]])).real
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _call("ifftn", "IFFT", a, s, axes, norm)


def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform of real numbers over axes; only non-negative frequencies of the last axis.

    >>> import atled.numpy as jnp
    >>> rfftn(jnp.ones((2, 2, 4))).shape
    (2, 2, 3)
    """
    return _call("rfftn", "RFFT", a, s, axes, norm)


def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The real numbers whose `rfftn` is a.

    >>> import atled.numpy as jnp
    >>> irfftn(rfftn(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _call("irfftn", "IRFFT", a, s, axes, norm)


# -- frequencies and their order --------------------------------------------------------------------------------------


@library_function(static=("n", "start", "count", "dtype"))
def _frequencies(d: Any, n: int, start: int, count: int, dtype: Any) -> Any:
    """The integers 0, 1, ..., then those from a negative `start` to -1 if given, divided by n d."""
    position = shape.iota(dtypes.int32, (count,), 0)
    if start:
        position = ew.select(ew.ge(position, n + start), ew.sub(position, n), position)
    spacing = cast(d, dtype)
    return ew.div(conversion.convert(position, dtype), ew.mul(spacing, np.asarray(n, dtype)))


def _check_count(name: str, n: Any) -> int:
    n = n.__index__()
    if n < 1:
        raise ValueError(f"{name}: at least one sample is needed; got {n}.")
    return n


def _frequency_dtype(name: str, d: Any, dtype: Any) -> Any:
    t = operand_type(name, d)
    if t.ndim:
        raise ValueError(f"{name}: the sample spacing must be a scalar; got {t}.")
    return dtypes.canonical(dtype) if dtype is not None else type_of(promote_inexact(name, d)[0]).dtype


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the results of `fft`, for n samples with spacing d.

    >>> fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = _check_count("fftfreq", n)
    return located(_frequencies(d, n, -(n // 2), n, _frequency_dtype("fftfreq", d, dtype)), device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the results of `rfft`, for n samples with spacing d.

    >>> rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = _check_count("rfftfreq", n)
    return located(_frequencies(d, n, 0, n // 2 + 1, _frequency_dtype("rfftfreq", d, dtype)), device)


@library_function(static=("axes", "is_inverse"))
def _shifted(x: Any, axes: tuple[int, ...] | None, is_inverse: bool) -> Any:
    t = operand_type("ifftshift" if is_inverse else "fftshift", x)
    for axis in check_axes("ifftshift" if is_inverse else "fftshift", axes, t.ndim):
        n = t.shape[axis]
        cut = n // 2 if is_inverse else n - n // 2
        if 0 < cut < n:
            x = shape.concatenate([shape.slice_in_axis(x, cut, n, axis), shape.slice_in_axis(x, 0, cut, axis)], axis)
    return x


def _plain_axes(axes: Any) -> tuple[int, ...] | None:
    return None if axes is None else tuple([int(i) for i in axes]) if isinstance(axes, (tuple, list)) else (int(axes),)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency to the center of the axes.

    >>> fftshift(fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    return _shifted(x, _plain_axes(axes), False)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`.

    >>> ifftshift(fftshift(fftfreq(4)))
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    return _shifted(x, _plain_axes(axes), True)
