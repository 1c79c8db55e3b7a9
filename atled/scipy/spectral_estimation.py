"""Spectra of segments of a signal: their averages (`welch`, `csd`), all of them (`stft`), and the inverse (`istft`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axis
from atled.numpy.promotion import broadcast_shapes, cast, operand_type, promote_inexact
from atled.ops import conversion, shape
from atled.staging.jit import library_function

# -- windows ----------------------------------------------------------------------------------------------------------

# Coefficients of cosines, with alternating signs: F. J. Harris, On the use of windows for harmonic analysis (1978); A.
# H. Nuttall, Some windows with very good sidelobe behavior (1981); the flat-top window of D'Antona and Ferrero (2006)
_COSINES = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}
_OTHERS: dict[str, Callable[..., Any]] = {  # functions of n and positions r from -1 to 1
    "bartlett": lambda n, r: 1 - np.abs(r),
    "triang": lambda n, r: 1 - np.abs(r) * (n - 1) / (n + n % 2),
    "cosine": lambda n, r: np.cos(np.pi / 2 * r * (n - 1) / n),
    "tukey": lambda n, r, share=0.5: (
        0.5 * (1 + np.cos(np.pi * np.maximum(np.abs(r) - 1 + share, 0) / max(share, 1e-300)))
    ),
    "kaiser": lambda n, r, beta: np.i0(beta * np.sqrt(np.maximum(1 - r**2, 0))) / np.i0(beta),
    "gaussian": lambda n, r, deviation: np.exp(-0.5 * (r * (n - 1) / 2 / deviation) ** 2),
}
_ALSO = {"hanning": "hann", "rectangular": "boxcar", "rect": "boxcar", "ones": "boxcar", "triangle": "triang"}


def _named_window(name: str, window: Any, n: int) -> Any:
    """The periodic window of n points with a name, or a tuple of a name and parameters."""
    kind, *parameters = window if isinstance(window, tuple) else (window,)
    kind = _ALSO.get(kind, kind)
    if kind not in _COSINES and kind not in _OTHERS:
        raise ValueError(f"{name}: the window is an array or one of {(*_COSINES, *_OTHERS)}; got {window!r}.")
    if n == 1:
        return np.ones(1)
    if kind in _COSINES:
        angle = 2 * np.pi * np.arange(n) / n
        return sum((-1) ** k * a * np.cos(k * angle) for k, a in enumerate(_COSINES[kind]))
    try:
        return _OTHERS[kind](n + 1, np.linspace(-1, 1, n + 1), *parameters)[:-1]
    except TypeError:
        raise ValueError(
            f"{name}: the window {kind!r} needs its parameters, as ({kind!r}, x); got {window!r}."
        ) from None


def _window(name: str, window: Any, nperseg: int | None, length: int, dtype: Any) -> tuple[Any, int]:
    """The window as an array, and its length, which is that of the segments."""
    if nperseg is not None and int(nperseg) < 1:
        raise ValueError(f"{name}: segments have at least one element; got nperseg={nperseg}.")
    if isinstance(window, (str, tuple)):
        n = min(256, length) if nperseg is None else int(nperseg)
        if n > length:
            warnings.warn(f"{name}: nperseg={n} is longer than the signal; using {length}.", stacklevel=4)
            n = length
        return np.asarray(_named_window(name, window, max(n, 1)), np.float64).astype(dtype), n
    t = operand_type(name, window)
    if t.ndim != 1 or t.size > length or (nperseg is not None and int(nperseg) != t.size):
        raise ValueError(
            f"{name}: a window has one axis, no longer than the signal, {length}, and as long as the segments "
            f"(nperseg={nperseg}); got {t}."
        )
    return cast(window, dtype), t.size


# -- pieces -----------------------------------------------------------------------------------------------------------


def _extended(name: str, x: Any, n: int, boundary: str) -> Any:
    """x extended by n elements at both ends of its last axis, as `boundary` says."""
    length = type_of(x).shape[-1]
    if n == 0:
        return x
    if boundary in ("even", "odd") and n > length - 1:
        raise ValueError(f"{name}: the boundary {boundary!r} needs more than {n} elements; got {length}.")
    width = [(0, 0)] * (type_of(x).ndim - 1) + [(n, n)]
    if boundary == "odd":
        turned = jnp.pad(x, width, "reflect")
        first, last = 2 * x[..., :1] - turned[..., :n], 2 * x[..., -1:] - turned[..., n + length :]
        return jnp.concatenate([first, x, last], axis=-1)
    return jnp.pad(x, width, {"even": "reflect", "constant": "edge", "zeros": "constant"}[boundary])


def _transforms(x: Any, window: Any, n: int, step: int, nfft: int, detrend: Any, is_onesided: bool) -> Any:
    """Fourier transforms of the segments of x: [..., segment, frequency]."""
    count = (type_of(x).shape[-1] - n) // step + 1
    pieces = x[..., np.arange(count)[:, None] * step + np.arange(n)]
    if callable(detrend):
        pieces = detrend(pieces)
    elif detrend:
        pieces = without_trend(pieces, detrend)
    pieces = pieces * window
    return jnp.fft.rfft(pieces, nfft) if is_onesided else jnp.fft.fft(pieces, nfft)


def without_trend(x: Any, kind: str) -> Any:
    """x minus its mean ("constant") or its least-squares line ("linear") along the last axis."""
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    n = type_of(x).shape[-1]
    if kind == "constant" or n < 2:
        return x
    # times with mean zero and norm one: the slope is their dot product with x
    times = np.arange(n) - (n - 1) / 2
    times = cast(times / np.sqrt(np.sum(times**2)), type_of(x).dtype)
    return x - times * jnp.sum(x * times, axis=-1, keepdims=True)


def _prepared(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """Signals of equal length on the last axis, in a common dtype."""
    (x,) = promote_inexact(name, x) if y is None else (x,)
    if y is not None:
        x, y = promote_inexact(name, x, y)
        s, t = type_of(x), type_of(y)
        if s.ndim != t.ndim:
            raise ValueError(f"{name}: both signals must have the same number of axes; got {s} and {t}.")
        x, y = jnp.moveaxis(x, axis, -1), jnp.moveaxis(y, axis, -1)
        m, n = type_of(x).shape[-1], type_of(y).shape[-1]
        lead = broadcast_shapes(type_of(x).shape[:-1], type_of(y).shape[:-1])
        fill = lambda v, k: jnp.pad(jnp.broadcast_to(v, (*lead, k)), [(0, 0)] * len(lead) + [(0, max(m, n) - k)])  # noqa: E731
        x, y = fill(x, m), fill(y, n)
        work = dtypes.float32 if dtypes.bits(type_of(x).dtype) < 32 else type_of(x).dtype
        return cast(x, work), cast(y, work)
    x = jnp.moveaxis(x, axis, -1)
    return cast(x, dtypes.float32) if dtypes.bits(type_of(x).dtype) < 32 else x, None


_STATIC = ("name", "settings", "detrend")


@library_function(static=_STATIC)
def _spectrum(x: Any, y: Any, fs: Any, window: Any, name: str, settings: Any, detrend: Any) -> tuple[Any, Any, Any]:
    """Frequencies, times, and transforms (for `stft`) or products of two, with frequency at `axis` and segment last."""
    n, step, nfft, is_onesided, scaling, axis, boundary, is_padded = settings
    x, y = _prepared(name, x, y, axis)
    if boundary is not None:
        x = _extended(name, x, n // 2, boundary)
    if is_padded:
        missing = (-(type_of(x).shape[-1] - n) % step) % n
        x = jnp.pad(x, [(0, 0)] * (type_of(x).ndim - 1) + [(0, missing)])
    real = dtypes.real_part(type_of(x).dtype)
    fs = cast(fs, real)
    size = {"density": lambda: 1 / (fs * jnp.sum(window**2)), "spectrum": lambda: 1 / jnp.sum(window) ** 2}[scaling]()
    out = _transforms(x, window, n, step, nfft, detrend, is_onesided)
    if name == "stft":
        out = out * jnp.sqrt(size)
    else:
        other = out if y is None else _transforms(y, window, n, step, nfft, detrend, is_onesided)
        out = (jnp.real(out) ** 2 + jnp.imag(out) ** 2 if y is None else jnp.conj(out) * other) * size
        if is_onesided:  # most frequencies also count for their negatives
            twice = np.full(nfft // 2 + 1, 2.0)
            twice[[0] if nfft % 2 else [0, -1]] = 1.0
            out = out * cast(twice, real)
    frequency = (jnp.fft.rfftfreq if is_onesided else jnp.fft.fftfreq)(nfft, 1 / fs, dtype=real)
    count = type_of(out).shape[-2]
    start = 0.0 if boundary is not None else n / 2
    time = cast(np.arange(count) * step + start, real) / fs
    return frequency, time, jnp.moveaxis(out, -1, axis)


def _call(
    name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
    return_onesided: bool, scaling: str, axis: int, boundary: str | None = None, padded: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """`_spectrum` for the arguments of a public function, after checks."""
    types = [operand_type(name, v) for v in ((x,) if y is None else (x, y))]
    axis = check_axis(name, axis, types[0].ndim)
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: the scaling is 'density' or 'spectrum'; got {scaling!r}.")
    if boundary not in (None, "even", "odd", "constant", "zeros"):
        raise ValueError(f"{name}: the boundary is 'even', 'odd', 'constant', 'zeros' or None; got {boundary!r}.")
    if not callable(detrend) and detrend not in (False, None, "constant", "linear"):
        raise ValueError(f"{name}: detrend is 'constant', 'linear', False or a function; got {detrend!r}.")
    dtype = type_of(promote_inexact(name, *([x] if y is None else [x, y]))[0]).dtype
    work = dtypes.float32 if dtypes.bits(dtype) < 32 else dtype
    is_complex = dtypes.kind(work) == "c"
    if any([t.size == 0 for t in types]):
        empty = jnp.zeros(types[0].shape, dtypes.real_part(work))
        return empty, empty, empty if name == "welch" else empty.astype(dtypes.complex_of(work))
    values, n = _window(
        name, window, nperseg, max([t.shape[axis] for t in types if t.ndim > axis]), dtypes.real_part(work)
    )
    if is_complex and return_onesided:
        warnings.warn(f"{name}: the signal is complex, so the spectrum is two-sided.", stacklevel=3)
    overlap, nfft = n // 2 if noverlap is None else int(noverlap), n if nfft is None else int(nfft)
    if nfft < n or overlap >= n:
        raise ValueError(
            f"{name}: a segment must fit into a transform and be longer than the overlap; got nperseg={n}, "
            f"nfft={nfft}, "
            f"noverlap={overlap}."
        )
    is_onesided = bool(return_onesided) and not is_complex
    settings = (n, n - overlap, nfft, is_onesided, scaling, axis, boundary, bool(padded))
    run = _spectrum.__wrapped__ if callable(detrend) else _spectrum
    return run(x, y, fs, values, name, settings, detrend or None)


def stft(
    x: ArrayLike, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = "hann", nperseg: int = 256,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = False, return_onesided: bool = True,
    boundary: str | None = "zeros", padded: bool = True, axis: int = -1,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Frequencies, times, and the Fourier transforms of overlapping segments of a signal, with times on the last axis.

    `window` is an array, a name such as "hann", or a tuple of a name and parameters.

    >>> import atled.numpy as jnp
    >>> f, t, z = stft(jnp.ones(64), nperseg=16)
    >>> z.shape, float(abs(z[0, 4]))
    ((9, 9), 1.0)
    """
    return _call(
        "stft", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, "spectrum", axis, boundary,
        padded,
    )  # fmt: skip


def csd(
    x: ArrayLike, y: ArrayLike | None, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = "hann",
    nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Frequencies, and the cross spectral density of two signals: the mean of conj(X) Y over segments.

    >>> x = jnp.array([1.0, -1.0] * 8)
    >>> frequencies, density = csd(x, x, nperseg=8)
    >>> float(frequencies[density.real.argmax()])
    0.5
    """
    name = "welch" if y is None else "csd"
    if average not in ("mean", "median"):
        raise ValueError(f"{name}: the average is 'mean' or 'median'; got {average!r}.")
    frequency, _, out = _call(
        name, x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    )  # fmt: skip
    return frequency, _averaged(out, average) if type_of(out).size else out


@library_function(static=("average",))
def _averaged(x: Any, average: str) -> Any:
    if average == "mean":
        return jnp.mean(x, axis=-1)
    n = type_of(x).shape[-1]
    # the expected median of n exponentially distributed numbers divided by their mean: B. Allen et al. (2012)
    even = np.arange(2.0, n, 2)
    bias = 1 + np.sum(1 / (even + 1) - 1 / even)
    if type_of(x).kind != "c":
        return jnp.median(x, axis=-1) / bias
    return conversion.complex(*[jnp.median(v, axis=-1) / bias for v in (jnp.real(x), jnp.imag(x))])


def welch(
    x: ArrayLike, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True,
    scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Frequencies, and the power spectral density of a signal by Welch's method: a mean over overlapping segments.

    By default, segments have min(256, length of the signal) elements.

    >>> frequencies, density = welch(jnp.array([1.0, -1.0] * 8), nperseg=8)
    >>> float(frequencies[density.argmax()])
    0.5
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


# -- back -------------------------------------------------------------------------------------------------------------


def _overlapped(pieces: Any, step: int) -> Any:
    """Overlap-add: the sum of segments [..., segment, element], each shifted by `step` from the one before."""
    *lead, count, n = type_of(pieces).shape
    rounds = -(-n // step)
    edge = [(0, 0)] * len(lead)
    blocks = jnp.pad(pieces, [*edge, (0, 0), (0, rounds * step - n)]).reshape(*lead, count, rounds, step)
    total = 0
    for k in range(rounds):
        total = total + jnp.pad(blocks[..., k, :], [*edge, (k, rounds - 1 - k), (0, 0)])
    return jnp.reshape(total, (*lead, -1))[..., : (count - 1) * step + n]


@library_function(static=("settings",))
def _istft(z: Any, fs: Any, window: Any, settings: Any) -> tuple[Any, Any]:
    n, step, nfft, is_onesided, is_bounded, time_axis, frequency_axis = settings
    x = jnp.moveaxis(cast(z, dtypes.complex_of(type_of(z).dtype)), (time_axis, frequency_axis), (-2, -1))
    pieces = (jnp.fft.irfft if is_onesided else jnp.fft.ifft)(x, nfft)[..., :n]
    real = dtypes.real_part(type_of(pieces).dtype)
    count = type_of(pieces).shape[-2]
    out = _overlapped(pieces * (window * jnp.sum(window)), step)
    weight = _overlapped(jnp.broadcast_to(window**2, (count, n)), step)
    if is_bounded:
        length = type_of(out).shape[-1]
        out, weight = (shape.slice_in_axis(v, n // 2, length - n // 2, type_of(v).ndim - 1) for v in (out, weight))
    out = out / jnp.where(weight > 1e-10, weight, 1)
    time = cast(np.arange(type_of(out).shape[-1]), real) / cast(fs, real)
    return time, jnp.moveaxis(out, -1, time_axis - (frequency_axis < time_axis))


def istft(
    Zxx: ArrayLike, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = "hann",  # noqa: N803
    nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
    boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
) -> tuple[Array, Array]:  # fmt: skip
    """Times, and the signal whose `stft` with the same arguments is Zxx.

    There is one time for each element of the signal along its time axis, also if it has other axes.

    >>> _, _, z = stft(jnp.arange(16.0), nperseg=8)
    >>> istft(z, nperseg=8)[1][:4].round() + 0.0
    Array([0., 1., 2., 3.], dtype=float32)
    """
    t = operand_type("istft", Zxx)
    if t.ndim < 2:
        raise ValueError(f"istft: at least two axes are needed, frequencies and times; got {t}.")
    time, frequency = check_axis("istft", time_axis, t.ndim), check_axis("istft", freq_axis, t.ndim)
    if time == frequency:
        raise ValueError(f"istft: times and frequencies must be on different axes; got {time_axis} and {freq_axis}.")
    default = 2 * (t.shape[frequency] - 1) if input_onesided else t.shape[frequency]
    n = int(nperseg or default)
    nfft = int(nfft) if nfft is not None else default + int(bool(input_onesided) and n == default + 1)
    overlap = n // 2 if noverlap is None else int(noverlap)
    if n < 1 or nfft < n or overlap >= n:
        raise ValueError(
            f"istft: a segment must fit into a transform and be longer than the overlap; got nperseg={n}, nfft={nfft}, "
            f"noverlap={overlap}."
        )
    real = dtypes.real_part(dtypes.complex_of(type_of(promote_inexact("istft", Zxx)[0]).dtype))
    values, _ = _window("istft", window, n, n, real)
    return _istft(Zxx, fs, values, (n, n - overlap, nfft, bool(input_onesided), bool(boundary), time, frequency))
