"""SciPy's signal processing: convolution in any number of dimensions, detrending, and spectral estimation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.trace import bind
from atled.lax.precision import PrecisionLike
from atled.numpy.promotion import broadcast_shapes, cast, operand_type, promote_inexact
from atled.ops import contraction, conversion, convolution, shape
from atled.ops import elementwise as ew
from atled.scipy.spectral_estimation import csd, istft, stft, welch, without_trend
from atled.staging.jit import library_function

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]  # fmt: skip
__dir__ = __all__.copy

_MODES = ("full", "same", "valid")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _check_mode(name: str, mode: Any) -> None:
    if mode not in _MODES:
        raise ValueError(f"{name}: the mode is 'full', 'same' or 'valid'; got {mode!r}.")


def _signals(name: str, in1: Any, in2: Any) -> tuple[Any, Any]:
    s, t = operand_type(name, in1), operand_type(name, in2)
    if s.ndim != t.ndim:
        raise ValueError(f"{name}: both signals must have the same number of axes; got {s} and {t}.")
    if s.size == 0 or t.size == 0:
        raise ValueError(f"{name}: signals must not be empty; got {s} and {t}.")
    x, y = promote_inexact(name, in1, in2)
    return jnp.asarray(x), jnp.asarray(y)


def _is_swapped(name: str, mode: str, first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether the second signal is the larger one in mode "valid"; raises if neither fits into the other."""
    if mode != "valid" or all([m >= n for m, n in zip(first, second, strict=True)]):
        return False
    if any([m > n for m, n in zip(first, second, strict=True)]):
        raise ValueError(
            f"{name}: for the mode 'valid', one signal must be at least as long as the other along every axis; "
            f"got lengths {tuple(first)} and {tuple(second)}."
        )
    return True


def _conjugated(x: Any) -> Any:
    return conversion.conj(x) if type_of(x).kind == "c" else x


def _reversed(x: Any) -> Any:
    return shape.reverse(x, tuple(range(type_of(x).ndim)))


def _slide(x: Any, kernel: Any, padding: Sequence[tuple[int, int]], precision: Any) -> Any:
    """Sums of x times a kernel, at every position where the kernel fits into the padded x."""
    n = type_of(x).ndim
    if n == 0:
        return ew.mul(x, kernel)
    same = tuple(range(n + 2))
    ones = (1,) * n
    op = convolution.Convolution(
        convolution.ConvAxes(same, same, same), ones, tuple(padding), ones, ones,
        precision=contraction.precision_name(precision),
    )  # fmt: skip
    out = bind(op, *[shape.reshape(v, (1, 1, *type_of(v).shape)) for v in (x, kernel)])
    return shape.reshape(out, type_of(out).shape[2:])


def _padding(mode: str, dims: Sequence[int]) -> list[tuple[int, int]]:
    """The (low, high) padding of each axis of a signal, for a kernel of shape `dims`."""
    return [{"full": (n - 1, n - 1), "same": (n // 2, (n - 1) // 2), "valid": (0, 0)}[mode] for n in dims]


@library_function(static=("mode", "precision", "is_correlation"))
def _convolve(in1: Any, in2: Any, mode: str, precision: Any, is_correlation: bool) -> Any:
    name = "correlate" if is_correlation else "convolve"
    x, y = _signals(name, in1, in2)
    y = _reversed(_conjugated(y)) if is_correlation else y
    dims = type_of(x).shape, type_of(y).shape
    if _is_swapped(name, mode, *dims) or (mode == "full" and type_of(x).size < type_of(y).size):
        x, y = y, x
    return _slide(x, _reversed(y), _padding(mode, type_of(y).shape), precision)


def _by_method(name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any) -> Any:
    _check_mode(name, mode)
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{name}: the method is 'auto', 'direct' or 'fft'; got {method!r}.")
    is_correlation = name == "correlate"
    if method == "fft":
        return _fftconvolve(in1, in2, mode, None, is_correlation)
    return _convolve(in1, in2, mode, precision, is_correlation)


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """The convolution of two signals over all their axes; the result is floating point.

    The mode is "full", "same" (its center, with the shape of in1) or "valid" (only where one signal lies fully within
    the other). The method "fft" is faster for two large signals, and less accurate.

    >>> import atled.numpy as jnp
    >>> convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
    Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    return _by_method("convolve", in1, in2, mode, method, precision)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """The cross-correlation of two signals over all their axes, with in2 conjugated; modes as in `convolve`.

    >>> correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]), mode="valid")
    Array([21., 32.], dtype=float32)
    """
    return _by_method("correlate", in1, in2, mode, method, precision)


@library_function(static=("mode", "boundary", "precision", "is_correlation"))
def _convolve2d(
    in1: Any, in2: Any, fillvalue: Any, mode: str, boundary: str, precision: Any, is_correlation: bool
) -> Any:
    name = "correlate2d" if is_correlation else "convolve2d"
    x, y = _signals(name, in1, in2)
    if type_of(x).ndim != 2:
        raise ValueError(f"{name}: signals with two axes are needed; got {type_of(in1)} and {type_of(in2)}.")
    is_swapped = _is_swapped(name, mode, type_of(x).shape, type_of(y).shape)
    if is_swapped:
        x, y = y, x
    kernel = _conjugated(y) if is_correlation else _reversed(y)
    padding = _padding(mode, type_of(y).shape)
    if is_correlation and mode == "same":
        padding = [(high, low) for low, high in padding]
    if mode != "valid":
        options = {"constant_values": cast(fillvalue, type_of(x).dtype)} if boundary == "fill" else {}
        x = jnp.pad(x, padding, _BOUNDARIES[boundary], **options)
    out = _slide(x, kernel, [(0, 0), (0, 0)], precision)
    return _reversed(out) if is_swapped and is_correlation else out


def _in_two(name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, precision: Any) -> Any:
    _check_mode(name, mode)
    if boundary not in _BOUNDARIES:
        raise ValueError(f"{name}: the boundary is 'fill', 'wrap' or 'symm'; got {boundary!r}.")
    return _convolve2d(in1, in2, fillvalue, mode, boundary, precision, name == "correlate2d")


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """The convolution of two signals with two axes.

    Outside of its bounds, in1 has the value `fillvalue` ("fill"), is repeated ("wrap") or is mirrored ("symm").

    >>> convolve2d(jnp.array([[1.0, 2.0]]), jnp.array([[1.0], [10.0]]))
    Array([[ 1.,  2.],
           [10., 20.]], dtype=float32)
    """
    return _in_two("convolve2d", in1, in2, mode, boundary, fillvalue, precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """The cross-correlation of two signals with two axes, with in2 conjugated; boundaries as in `convolve2d`.

    In mode "same" with even lengths, the center is one element further than that of `correlate`. If in2 is larger than
    in1 in mode "valid", in1 is conjugated instead, as in SciPy.

    >>> correlate2d(jnp.array([[1.0, 2.0]]), jnp.array([[1.0], [10.0]]))
    Array([[10., 20.],
           [ 1.,  2.]], dtype=float32)
    """
    return _in_two("correlate2d", in1, in2, mode, boundary, fillvalue, precision)


def _fast_length(n: int) -> int:
    """The smallest integer >= n whose only prime factors are 2, 3 and 5, for which FFTs are fast."""
    while True:
        rest = n
        for p in (2, 3, 5):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return n
        n += 1


@library_function(static=("mode", "axes", "is_correlation"))
def _fftconvolve(in1: Any, in2: Any, mode: str, axes: tuple[int, ...] | None, is_correlation: bool) -> Any:
    name = "correlate" if is_correlation else "fftconvolve"
    x, y = _signals(name, in1, in2)
    if is_correlation:
        y = _reversed(_conjugated(y))
    s, t = type_of(x), type_of(y)
    along = check_axes(name, axes, s.ndim)
    others = [i for i in range(s.ndim) if i not in along]
    try:
        broadcast_shapes(tuple([s.shape[i] for i in others]), tuple([t.shape[i] for i in others]))
    except ValueError:
        raise ValueError(
            f"{name}: axes that are not convolved must have equal lengths; got {s} and {t} for axes {along}."
        ) from None
    first, second = ([u.shape[i] for i in along] for u in (s, t))
    if _is_swapped(name, mode, first, second):
        first, second = second, first
    full = [m + n - 1 for m, n in zip(first, second, strict=True)]
    result_dims = {"full": full, "same": first, "valid": [m - n + 1 for m, n in zip(first, second, strict=True)]}[mode]
    if all([m == 1 or n == 1 for m, n in zip(first, second, strict=True)]):
        out = x * y
    else:
        lengths = [_fast_length(n) for n in full]
        is_complex = s.kind == "c"
        there, back = (jnp.fft.fftn, jnp.fft.ifftn) if is_complex else (jnp.fft.rfftn, jnp.fft.irfftn)
        out = back(there(x, lengths, along) * there(y, lengths, along), lengths, along)
    for i, whole, size in zip(along, full, result_dims, strict=True):
        start = (whole - size) // 2
        out = shape.slice_in_axis(out, start, start + size, i)
    return cast(out, s.dtype)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | int | None = None) -> Array:
    """The convolution of two signals over `axes`, by default all, using FFTs; modes as in `convolve`.

    >>> fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])).round()
    Array([ 1., 12., 23., 30.], dtype=float32)
    """
    _check_mode("fftconvolve", mode)
    axes = (int(axes),) if isinstance(axes, (int, np.integer)) else None if axes is None else tuple(map(int, axes))
    return _fftconvolve(in1, in2, mode, axes, False)


@library_function(static=("axis", "type", "breaks"))
def _detrend(data: Any, axis: int, type: str, breaks: tuple[int, ...]) -> Any:
    (x,) = promote_inexact("detrend", data)
    t = type_of(x)
    at = check_axis("detrend", axis, t.ndim)
    n = t.shape[at]
    if any([not 0 <= k <= n for k in breaks]):
        raise ValueError(f"detrend: breaks must lie between 0 and the length, {n}; got {breaks}.")
    ends, x = sorted({0, *breaks, n}), jnp.moveaxis(x, at, -1)
    parts = [without_trend(x[..., start:stop], type) for start, stop in itertools.pairwise(ends)]
    return jnp.moveaxis(jnp.concatenate(parts, axis=-1) if parts else x, -1, at)


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: ArrayLike | Sequence[int] = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtract the mean (type "constant") or the least-squares line along an axis.

    Each segment between two break points `bp` has its own line.

    >>> import atled.numpy as jnp
    >>> detrend(jnp.array([1.0, 2.0, 6.0]), type="constant")
    Array([-2., -1.,  3.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: arrays cannot be overwritten; leave out overwrite_data.")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: the type is 'linear' or 'constant'; got {type!r}.")
    breaks = () if type == "constant" else tuple([int(k) for k in np.ravel(bp)])
    return _detrend(data, int(axis), type, breaks)
