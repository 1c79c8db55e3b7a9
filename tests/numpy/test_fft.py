"""Fourier transforms against NumPy; derivatives against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.numpy import fft

R = np.random.RandomState(0)
NORMS = (None, "backward", "ortho", "forward")
SHAPES = ((5,), (4, 6), (3, 4, 5), (2, 3, 4, 5), (2, 3, 2, 3, 4), (2, 3, 2, 3, 2, 2, 4))
TAKES_REAL = ("rfft", "ihfft", "rfft2", "rfftn")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
MANY = ("fftn", "ifftn", "rfftn", "irfftn")


def signal(name, shape, seed=0):
    r = np.random.RandomState(seed)
    return r.randn(*shape) if name in TAKES_REAL else r.randn(*shape) + 1j * r.randn(*shape)


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ONE + TWO + MANY)
def test_transforms_are_those_of_numpy(name):
    """All shapes, of up to seven axes, and all norms."""
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    with atled.enable_x64():
        for dims in SHAPES:
            if name in TWO and len(dims) < 2:
                continue
            x = signal(name, dims)
            for norm in NORMS:
                same(ours(x, norm=norm), theirs(x, norm=norm))
        with pytest.raises(ValueError, match=f"{name}: norm is None"):
            ours(signal(name, (4, 4)), norm="unitary")


@pytest.mark.parametrize("name", ONE)
def test_lengths_along_an_axis(name):
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    x = signal(name, (4, 6))
    with atled.enable_x64():
        for axis in (0, 1, -1, -2):
            for n in (None, 1, 2, 3, 6, 9):
                same(ours(x, n, axis, "ortho"), theirs(x, n, axis, "ortho"))
    for n in (0, -3):
        with pytest.raises(ValueError, match=f"{name}: the length must be positive"):
            ours(x, n)
    with pytest.raises(ValueError, match=f"{name}: axis 7 is out of bounds"):
        ours(x, axis=7)


@pytest.mark.parametrize("name", MANY)
def test_lengths_along_axes(name):
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    x = signal(name, (4, 6, 5, 2))
    with atled.enable_x64():
        for s, axes in (
            ((3, 7), (0, 2)),
            ((5, 4), (2, 0)),
            ((4,), (1,)),
            ((-1, 3), (0, 1)),
            ((2, 9, 6), (-1, 0, 1)),
            ((2, 3, 4, 5), (3, 1, 0, 2)),
        ):
            same(ours(x, s, axes), theirs(x, s, axes))
        for axes in ((0,), (3, 0), (1, 2, 0), [0, 1, 2, 3], (3, 2, 1, 0)):
            same(ours(x, axes=axes), theirs(x, axes=axes))
        same(ours(x, s=(3, 2)), theirs(x, (3, 2), (-2, -1)))
    with pytest.raises(ValueError, match=f"{name}: one length for each axis"):
        ours(x, (2, 2, 2), (0, 1))
    with pytest.raises(ValueError, match="names an axis twice"):
        ours(x, axes=(0, 0))
    with pytest.raises(ValueError, match=f"{name}: lengths must be positive"):
        ours(x, (0, 2))


def test_inverses():
    with atled.enable_x64():
        x, z = R.randn(3, 4, 2, 5, 6), signal("fft", (3, 4, 2, 5, 7))
        for norm in NORMS:
            np.testing.assert_allclose(fft.ifftn(fft.fftn(z, norm=norm), norm=norm), z, atol=1e-12)
            np.testing.assert_allclose(fft.irfftn(fft.rfftn(x, norm=norm), norm=norm), x, atol=1e-12)
            np.testing.assert_allclose(fft.hfft(fft.ihfft(x, norm=norm), norm=norm), x, atol=1e-12)


def test_dtypes():
    assert fft.fft(jnp.arange(3)).dtype == np.complex64
    assert fft.fft(jnp.ones(3, bool)).dtype == np.complex64
    for dtype in ("float16", "bfloat16", "float32"):
        assert fft.fft(jnp.ones(4, dtype)).dtype == fft.rfft(jnp.ones(4, dtype)).dtype == np.complex64
        assert fft.irfft(jnp.ones(4, dtype)).dtype == np.float32
    assert fft.fft(jnp.ones(4, "float64")).dtype == np.complex128
    assert fft.irfft(jnp.ones(4, "complex128")).dtype == np.float64
    with pytest.raises(ValueError, match=r"rfft: real numbers are needed; got c64\[4\]"):
        fft.rfft(jnp.ones(4, "complex64"))
    with pytest.raises(ValueError, match="rfftn: at least one axis"):
        fft.rfftn(jnp.float32(1.0))
    with pytest.raises(TypeError, match="fft: expected an array"):
        fft.fft([1.0, 2.0])


def test_scalars_and_empty_arrays():
    assert complex(fft.fftn(jnp.float32(2.0))) == 2.0
    assert fft.fft(jnp.zeros((0, 3))).shape == (0, 3)
    assert fft.rfft(jnp.zeros((0, 4))).shape == (0, 3)
    assert fft.irfft(jnp.zeros((0, 3))).shape == (0, 4)
    with pytest.raises(ValueError, match="irfft: a transform needs at least one element"):
        fft.irfft(jnp.zeros((2, 1)))


def test_frequencies():
    with atled.enable_x64():
        for n in (1, 2, 5, 6):
            for d in (1.0, 0.1, 3):
                same(fft.fftfreq(n, d), np.fft.fftfreq(n, d))
                same(fft.rfftfreq(n, d), np.fft.rfftfreq(n, d))
    assert fft.fftfreq(4).dtype == np.float32 and fft.fftfreq(4, dtype="float16").dtype == np.float16
    slope = atled.grad(lambda d: fft.fftfreq(4, d)[1])(2.0)
    np.testing.assert_allclose(slope, -1 / 16)
    with pytest.raises(ValueError, match="fftfreq: at least one sample"):
        fft.fftfreq(0)
    with pytest.raises(ValueError, match="rfftfreq: the sample spacing must be a scalar"):
        fft.rfftfreq(3, jnp.ones(2))


def test_shifts():
    for dims in ((5,), (4, 5), (3, 1, 6), (0, 2)):
        x = np.arange(np.prod(dims)).reshape(dims).astype("int32")
        for axes in (None, 0, -1, tuple(range(len(dims))), [0]):
            same(fft.fftshift(x, axes), np.fft.fftshift(x, axes))
            same(fft.ifftshift(x, axes), np.fft.ifftshift(x, axes))


def real_inner(x, y):
    return float(np.real(np.sum(np.asarray(x) * np.asarray(y))))


@pytest.mark.parametrize("name", ONE + TWO + MANY)
def test_derivatives(name):
    """Transforms are linear: the tangent is the transform, the cotangent its transpose. Squares have second ones."""
    f = getattr(fft, name)
    options = {"s": (5, 3)} if name in TWO else {"n": 7, "axis": 0} if name in ONE else {"axes": (2, 0, 3, 1)}
    with atled.enable_x64():
        x, v = (jnp.asarray(signal(name, (4, 3, 2, 3), seed)) for seed in (1, 2))
        g = lambda y: f(y, **options)
        out, tangent = atled.jvp(g, (x,), (v,))
        same(tangent, g(v))
        u = jnp.asarray(
            np.asarray(signal("fft", out.shape, 3), out.dtype) if out.dtype.kind == "c" else R.randn(*out.shape)
        )
        (c,) = atled.vjp(g, x)[1](u)
        assert c.dtype == x.dtype
        np.testing.assert_allclose(real_inner(c, v), real_inner(u, tangent), rtol=1e-10)
        power = lambda y: jnp.sum(jnp.abs(g(y)) ** 4)
        h = 1e-5
        slope = atled.grad(power)
        want = (np.asarray(slope(x + h * v)) - np.asarray(slope(x - h * v))) / (2 * h)
        np.testing.assert_allclose(
            np.asarray(atled.jvp(slope, (x,), (v,))[1]), want, rtol=1e-5, atol=1e-5 * np.abs(want).max()
        )
        np.testing.assert_allclose(
            real_inner(slope(x), v), float((power(x + h * v) - power(x - h * v)) / (2 * h)), rtol=1e-6
        )


@pytest.mark.parametrize("name", ONE + TWO + MANY)
def test_vmap_is_a_loop_and_jit_changes_nothing(name):
    f = getattr(fft, name)
    with atled.enable_x64():
        x = jnp.asarray(signal(name, (3, 4, 2, 5)))
        rows = np.stack([np.asarray(f(x[i])) for i in range(3)])
        same(atled.vmap(f)(x), rows)
        same(atled.vmap(f, in_axes=2, out_axes=1)(jnp.moveaxis(x, 0, 2)), np.moveaxis(rows, 0, 1))
        same(atled.jit(f)(x), f(x))
    shifted = atled.vmap(fft.fftshift)(x)
    same(shifted, np.stack([np.fft.fftshift(np.asarray(x[i])) for i in range(3)]))


def test_everything_is_public():
    assert set(fft.__all__) == {n for n in dir(np.fft) if not n.startswith("_") and n not in ("helper", "test")}
    assert all(getattr(fft, name).__doc__ for name in fft.__all__)
