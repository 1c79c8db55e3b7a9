"""Convolutions, trends and spectra against SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy_checks import check_derivatives, check_transforms, same

import atled
import atled.numpy as jnp
from atled.scipy import signal

scipy_signal = pytest.importorskip("scipy.signal")
R = np.random.RandomState(0)
X, K = R.randn(9), R.randn(4)
C = R.randn(9) + 1j * R.randn(9)
P, Q = R.randn(5, 6), R.randn(2, 3)
D = P + 1j * R.randn(5, 6)
V = R.randn(3, 4, 5)
LONG, TWO = R.randn(100), R.randn(2, 60)


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


def test_convolve_and_correlate():
    for name in ("convolve", "correlate"):
        ours, scipys = getattr(signal, name), getattr(scipy_signal, name)
        for x, y in ((X, K), (K, X), (C, K), (D, Q), (V, V[:2, :2, :2])):
            for mode in ("full", "same", "valid"):
                same(ours(x, y, mode), scipys(x, y, mode, method="direct"))
        same(ours(K, C, "same", method="fft"), scipys(K, C, "same", method="direct"))
        same(ours(P, Q, "valid", method="fft"), scipys(P, Q, "valid", method="direct"))
    same(signal.convolve(P, R.randn(2, 9)[:, :8]).shape, np.array((6, 13)))  # neither is the larger one
    same(signal.convolve(2.0, np.float64(3.0)), np.float64(6.0))
    assert signal.convolve(np.arange(3), np.arange(2)).dtype == np.float64
    assert signal.convolve(jnp.ones(3, "float16"), jnp.ones(2, "float16"), method="fft").dtype == np.float16


def test_two_axes():
    for name in ("convolve2d", "correlate2d"):
        ours, scipys = getattr(signal, name), getattr(scipy_signal, name)
        for x, y in ((P, Q), (Q, D), (D, R.randn(2, 2))):
            for mode in ("full", "same", "valid"):
                same(ours(x, y, mode), scipys(x, y, mode))
        for boundary in ("wrap", "symm"):
            for mode in ("full", "same", "valid"):
                same(ours(P, Q, mode, boundary), scipys(P, Q, mode, boundary))
        same(ours(P, Q, "same", "fill", 2.5), scipys(P, Q, "same", "fill", 2.5))


def test_fftconvolve():
    for x, y, axes in ((X, K, None), (P, Q, None), (P, P[:, :2], 1), (P, P[:2], (0,)), (V, V[:2], [0]), (D, Q, None)):
        for mode in ("full", "same", "valid"):
            same(signal.fftconvolve(x, y, mode, axes), scipy_signal.fftconvolve(x, y, mode, axes))
    same(signal.fftconvolve(P, Q[:1], axes=1), scipy_signal.fftconvolve(P, Q[:1], axes=1))
    same(signal.fftconvolve(P, P[:1, :1]), scipy_signal.fftconvolve(P, P[:1, :1]))


def test_detrend():
    for kind in ("linear", "constant"):
        for axis in (0, 1, -1):
            same(signal.detrend(P, axis, kind), scipy_signal.detrend(P, axis, kind))
        same(signal.detrend(C, type=kind), scipy_signal.detrend(C, type=kind))
        same(signal.detrend(X[:1], type=kind), np.zeros(1))
    same(signal.detrend(LONG, bp=[20, 21, 60]), scipy_signal.detrend(LONG, bp=[20, 21, 60]))
    assert signal.detrend(jnp.ones(3, "float16")).dtype == np.float16
    same(signal.detrend(np.arange(4)), np.zeros(4))


WINDOWS = (
    "hann", "hamming", "boxcar", "blackman", "nuttall", "blackmanharris", "flattop", "bartlett", "triang", "cosine",
    ("tukey", 0.3), ("kaiser", 4.0), ("gaussian", 5.0),
)  # fmt: skip


@pytest.mark.parametrize("n", [7, 8])
def test_windows(n):
    for window in WINDOWS:
        _, got = signal.welch(LONG, window=window, nperseg=n)
        same(got, scipy_signal.welch(LONG, window=window, nperseg=n)[1])


SPECTRA = [
    {},
    {"nperseg": 16},
    {"nperseg": 15, "noverlap": 3, "nfft": 20, "fs": 10.0},
    {"nperseg": 16, "noverlap": 0, "detrend": "linear"},
    {"nperseg": 16, "detrend": False, "return_onesided": False},
    {"window": np.arange(1.0, 13.0), "detrend": lambda x: x - x[..., :1]},
]
AVERAGES = [{"scaling": "spectrum"}, {"average": "median", "nperseg": 16}, {"average": "median", "nperseg": 20}]


@pytest.mark.filterwarnings("ignore:nperseg")
def test_welch_and_csd():
    for options in SPECTRA + AVERAGES:
        for got, want in zip(signal.welch(LONG, **options), scipy_signal.welch(LONG, **options), strict=True):
            same(got, want)
        other = TWO[::-1] ** 2
        for got, want in zip(signal.csd(TWO, other, **options), scipy_signal.csd(TWO, other, **options), strict=True):
            same(got, want)
    for got, want in zip(signal.welch(TWO, axis=0), scipy_signal.welch(TWO, axis=0), strict=True):
        same(got, want)
    same(signal.csd(LONG, LONG[:80], nperseg=16)[1], scipy_signal.csd(LONG, LONG[:80], nperseg=16)[1])
    same(signal.welch(np.tile(LONG, 5))[1], scipy_signal.welch(np.tile(LONG, 5))[1])  # pieces of 256
    with pytest.warns(UserWarning, match="welch: the signal is complex"):
        got = signal.welch(C, nperseg=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for g, w in zip(got, scipy_signal.welch(C, nperseg=4), strict=True):
            same(g, w)
    assert signal.welch(np.ones(0))[1].shape == (0,)


@pytest.mark.filterwarnings("ignore:nperseg")
def test_stft_and_back():
    for options in [*SPECTRA, {"boundary": None, "nperseg": 16}, {"padded": False, "nperseg": 14}]:
        options = {"nperseg": 12, **options}
        for got, want in zip(signal.stft(TWO, **options), scipy_signal.stft(TWO, **options), strict=True):
            same(got, want)
    for boundary in ("even", "odd", "constant", "zeros"):
        same(
            signal.stft(LONG, nperseg=16, boundary=boundary)[2],
            scipy_signal.stft(LONG, nperseg=16, boundary=boundary)[2],
        )
    for n, overlap, axis in ((16, None, -1), (15, 10, -1), (16, 12, 1), (15, None, 1)):
        x = LONG if axis == -1 else np.stack([LONG, 2 * LONG])
        z = scipy_signal.stft(x, nperseg=n, noverlap=overlap, axis=axis)[2]
        time, got = signal.istft(z, nperseg=n, noverlap=overlap)
        same(got, scipy_signal.istft(z, nperseg=n, noverlap=overlap)[1])
        same(time, np.arange(got.shape[-1], dtype=float))
    z = scipy_signal.stft(LONG, nperseg=16, return_onesided=False)[2]
    same(signal.istft(z, input_onesided=False)[1], scipy_signal.istft(z, input_onesided=False)[1])
    z = R.randn(4, 9, 2) + 1j * R.randn(4, 9, 2)
    options = {"time_axis": 0, "freq_axis": 1, "noverlap": 12, "boundary": False, "window": ("kaiser", 3.0)}
    same(signal.istft(z, **options)[1], scipy_signal.istft(z, **options)[1])
    with pytest.warns(UserWarning, match="stft: nperseg=256 is longer than the signal; using 100"):
        signal.stft(LONG)
    assert signal.stft(jnp.asarray(LONG, "float32"), nperseg=8)[2].dtype == np.complex64


DERIVATIVES = {
    "convolve": (lambda x, y: signal.convolve(x, y, "same"), (X, K)),
    "correlate2d": (lambda x, y: signal.correlate2d(x, y, "full", "symm"), (P, Q)),
    "fftconvolve": (lambda x, y: signal.fftconvolve(x, y, "valid"), (X, K)),
    "detrend": (lambda x: signal.detrend(x, bp=3) ** 2, (X,)),
    "welch": (lambda x: signal.welch(x, nperseg=16)[1], (LONG,)),
    "stft": (lambda x: jnp.abs(signal.stft(x, nperseg=8)[2]) ** 2, (LONG[:30],)),
    "istft": (lambda x: signal.istft(jnp.reshape(x[:40] + 1j * x[40:80], (5, 8)))[1] ** 2, (LONG,)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    f, xs = DERIVATIVES[name]
    check_derivatives(f, *xs, order=1)


def test_vmap_is_a_loop_and_jit_changes_nothing():
    xs = R.randn(3, 24)
    check_transforms(lambda x: signal.convolve(x, K, "same"), xs)
    check_transforms(lambda x: signal.convolve2d(jnp.reshape(x, (4, 6)), Q, boundary="wrap"), xs)
    check_transforms(lambda x: signal.fftconvolve(x, x), xs)
    check_transforms(lambda x: signal.welch(x, nperseg=8, average="median"), xs)
    check_transforms(lambda x: signal.istft(signal.stft(x, nperseg=8)[2]), xs)


COMPLAINTS = [
    (
        lambda: signal.convolve(X, P),
        r"convolve: both signals must have the same number of axes; got f64\[9\] and f64\[5,6\]",
    ),
    (lambda: signal.convolve(X, X[:0]), "convolve: signals must not be empty"),
    (lambda: signal.convolve(X, X, "half"), "convolve: the mode is"),
    (lambda: signal.correlate(X, X, method="no"), "correlate: the method is"),
    (lambda: signal.convolve(P, P.T, "valid"), "convolve: for the mode 'valid'"),
    (lambda: signal.convolve2d(X, K), "convolve2d: signals with two axes are needed"),
    (lambda: signal.correlate2d(P, Q, boundary="no"), "correlate2d: the boundary is"),
    (lambda: signal.fftconvolve(P, P[:2], axes=1), "fftconvolve: axes that are not convolved must have equal lengths"),
    (lambda: signal.detrend(X, type="square"), "detrend: the type is"),
    (lambda: signal.detrend(X, bp=20), "detrend: breaks must lie between"),
    (lambda: signal.welch(X, window="no"), "welch: the window is an array or one of"),
    (lambda: signal.welch(X, window="kaiser"), "welch: the window 'kaiser' needs its parameters"),
    (lambda: signal.welch(X, window=np.ones(20)), "welch: a window has one axis"),
    (lambda: signal.welch(X, nperseg=0), "welch: segments have at least one element"),
    (lambda: signal.welch(X, scaling="no"), "welch: the scaling is"),
    (lambda: signal.welch(X, average="no"), "welch: the average is"),
    (lambda: signal.welch(X, detrend="no"), "welch: detrend is"),
    (lambda: signal.csd(X, X, nperseg=4, noverlap=4), "csd: a segment must fit into a transform"),
    (lambda: signal.csd(X, P), "csd: both signals must have as many axes"),
    (lambda: signal.stft(X, nperseg=4, boundary="no"), "stft: the boundary is"),
    (lambda: signal.istft(X), "istft: at least two axes are needed"),
    (lambda: signal.istft(P, time_axis=0, freq_axis=0), "istft: times and frequencies must be on different axes"),
    (lambda: signal.istft(P, nperseg=20), "istft: a segment must fit into a transform"),
]


@pytest.mark.parametrize("call, message", COMPLAINTS)
def test_complaints(call, message):
    with pytest.raises(ValueError, match=message):
        call()
