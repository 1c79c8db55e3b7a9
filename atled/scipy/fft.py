"""SciPy's cosine transforms, of types 1 to 4, over any number of axes; each is one FFT and phase factors.

The real and imaginary parts of complex numbers are transformed separately. 16-bit floats are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.numpy.promotion import cast, operand_type, promote_inexact
from atled.ops import conversion, elementary, shape
from atled.staging.jit import library_function

__all__ = ["dct", "dctn", "idct", "idctn"]
__dir__ = __all__.copy

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _turn(count: int, offset: float, step: float, dtype: Any) -> Any:
    """exp(-i (offset + step k)) for k below count, from angles in double precision."""
    angle = offset + step * jnp.arange(count, dtype=dtypes.float64)
    return conversion.complex(cast(elementary.cos(angle), dtype), cast(-elementary.sin(angle), dtype))


def _first(x: Any) -> Any:
    folded = jnp.concatenate([x, jnp.flip(x[..., 1:-1], axis=-1)], axis=-1)
    return jnp.real(jnp.fft.rfft(folded))


def _second(x: Any) -> Any:
    # one FFT of the even elements followed by the odd ones in reverse: J. Makhoul, A fast cosine transform in one and
    # two dimensions (1980); the imaginary parts give the second half of the frequencies
    n = type_of(x).shape[-1]
    mixed = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], axis=-1)], axis=-1)
    z = 2 * jnp.fft.rfft(mixed) * _turn(n // 2 + 1, 0.0, math.pi / (2 * n), type_of(x).dtype)
    return jnp.concatenate([jnp.real(z), jnp.flip(-jnp.imag(z)[..., 1 : (n + 1) // 2], axis=-1)], axis=-1)


def _third(x: Any) -> Any:
    n = type_of(x).shape[-1]
    half = n // 2 + 1
    before = jnp.concatenate([jnp.zeros_like(x[..., :1]), jnp.flip(x, axis=-1)], axis=-1)[..., :half]
    z = conversion.complex(x[..., :half], -before) * jnp.conj(_turn(half, 0.0, math.pi / (2 * n), type_of(x).dtype))
    mixed = n * jnp.fft.irfft(z, n)
    even, odd = mixed[..., : (n + 1) // 2], jnp.flip(mixed[..., (n + 1) // 2 :], axis=-1)
    if n % 2:
        odd = jnp.concatenate([odd, jnp.zeros_like(even[..., :1])], axis=-1)
    return jnp.reshape(jnp.stack([even, odd], axis=-1), (*type_of(x).shape[:-1], -1))[..., :n]


def _fourth(x: Any) -> Any:
    n, dtype = type_of(x).shape[-1], type_of(x).dtype
    z = jnp.fft.fft(x * _turn(n, 0.0, math.pi / (2 * n), dtype), 2 * n)[..., :n]
    return 2 * jnp.real(z * _turn(n, math.pi / (4 * n), math.pi / (2 * n), dtype))


_KINDS = {1: _first, 2: _second, 3: _third, 4: _fourth}


def _ends(n: int, first: float, last: float, dtype: Any) -> Any:
    """A vector of n ones, with its first element multiplied by `first` and its last by `last`."""
    out = np.ones(n)
    out[0] *= first
    out[-1] *= last
    return out.astype(dtype)


def _scaled(x: Any, kind: int, norm: str | None) -> Any:
    """The cosine transform `kind` of the last axis, scaled as `norm` says."""
    n, dtype = type_of(x).shape[-1], type_of(x).dtype
    count = 2 * (n - 1) if kind == 1 else 2 * n
    root = math.sqrt(2)
    if norm != "ortho":
        out = _KINDS[kind](x)
        return out / count if norm == "forward" else out
    if kind in (1, 3):
        x = x * _ends(n, root, root if kind == 1 else 1.0, dtype)
    out = _KINDS[kind](x) / math.sqrt(count)
    return out * _ends(n, 1 / root, 1 / root if kind == 1 else 1.0, dtype) if kind in (1, 2) else out


@library_function(static=("name", "kind", "lengths", "axes", "norm"))
def _transform(
    x: Any, name: str, kind: int, lengths: tuple[int, ...] | None, axes: tuple[int, ...], norm: str | None
) -> Any:
    (x,) = promote_inexact(name, x)
    result_dtype = type_of(x).dtype
    if type_of(x).kind == "c":
        parts = [_transform(v, name, kind, lengths, axes, norm) for v in (conversion.real(x), conversion.imag(x))]
        return conversion.complex(*parts)
    x = cast(x, dtypes.float32) if dtypes.bits(result_dtype) < 32 else x
    for i, axis in enumerate(axes):
        if lengths is not None:
            more = lengths[i] - type_of(x).shape[axis]
            x = shape.pad(x, 0, [(0, more if a == axis else 0, 0) for a in range(type_of(x).ndim)])
        n = type_of(x).shape[axis]
        if n < (2 if kind == 1 else 1):
            raise ValueError(
                f"{name}: type {kind} needs {2 if kind == 1 else 1} elements or more along an axis; got {n}."
            )
        x = jnp.moveaxis(_scaled(jnp.moveaxis(x, axis, -1), kind, norm), -1, axis)
    return cast(x, result_dtype)


def _call(name: str, x: Any, type: int, s: Any, axes: Any, norm: Any) -> Any:
    """`_transform` for the arguments of a public function, after checks."""
    if type not in _KINDS:
        raise ValueError(f"{name}: the type is 1, 2, 3 or 4; got {type!r}.")
    if norm not in _OPPOSITE:
        raise ValueError(f"{name}: norm is None, 'backward', 'ortho' or 'forward'; got {norm!r}.")
    t = operand_type(name, x)
    if s is not None:
        s = tuple([int(n) for n in (s if isinstance(s, (tuple, list)) else [s])])
        axes = tuple(range(t.ndim - len(s), t.ndim)) if axes is None else axes
    axes = check_axes(name, tuple(axes) if isinstance(axes, Sequence) else axes, t.ndim)
    if s is not None and (len(s) != len(axes) or any([n < 1 for n in s])):
        raise ValueError(f"{name}: one positive length for each of axes {axes} is needed; got {s}.")
    if name.startswith("i"):
        type, norm = _INVERSE[type], _OPPOSITE[norm]
    return _transform(x, name, int(type), s, axes, norm)


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The cosine transform along an axis, which is truncated or zero-padded to length n.

    >>> import atled.numpy as jnp
    >>> dct(jnp.array([1.0, 2.0, 3.0]), type=1)
    Array([ 8., -2.,  0.], dtype=float32)
    """
    axis = check_axis("dct", axis, operand_type("dct", x).ndim)
    return _call("dct", x, type, None if n is None else (n,), (axis,), norm)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct` with the same arguments.

    >>> idct(dct(jnp.array([1.0, 2.0, 3.0]))).round()
    Array([1., 2., 3.], dtype=float32)
    """
    axis = check_axis("idct", axis, operand_type("idct", x).ndim)
    return _call("idct", x, type, None if n is None else (n,), (axis,), norm)


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The cosine transform over `axes`; by default all, or the last `len(s)` if `s` is given.

    >>> dctn(jnp.ones((2, 2))).round() + 0.0
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _call("dctn", x, type, s, axes, norm)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn` with the same arguments.

    >>> idctn(dctn(jnp.array([[1.0, 2.0], [3.0, 4.0]]))).round()
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _call("idctn", x, type, s, axes, norm)
