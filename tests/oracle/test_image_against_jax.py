"""`image`: resized and moved images, their derivatives and batches, as JAX computes them."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import image

jax = pytest.importorskip("jax")

R = np.random.RandomState(0)
KERNELS = ("linear", "lanczos3", "lanczos5", "cubic", "cubic-pytorch", "area")
SHAPES = [((5,), (8,)), ((9, 4), (4, 9)), ((2, 6, 7, 3), (2, 3, 11, 3)), ((1, 5), (4, 1)), ((4, 3), (4, 3))]
MOVES = [(1.3, 0.4), (0.6, 2.1), (2.0, -1.0), (1.0, 0.5)]


def close(ours, theirs, tolerance=2e-5):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    ours, theirs = (np.asarray(x).astype("c16" if x.dtype.kind == "c" else "f8") for x in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


def both(f, *args, tolerance=2e-5):
    ours, theirs = f(image, *args), f(jax.image, *args)
    close(ours, theirs, tolerance)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", ("nearest", *KERNELS))
def test_resize(method, antialias):
    for old, new in SHAPES:
        both(lambda m, x, dims=new: m.resize(x, dims, method, antialias), R.randn(*old).astype("f4"))


def test_nearest_where_two_are_equally_near():
    pairs = [(10, 55), (14, 49), (38, 41), (30, 25), (20, 47), (56, 49), (3, 6), (6, 3), (1, 7)]
    for m, n in pairs:
        ours, theirs = (k.resize(np.arange(m), (n,), "nearest") for k in (image, jax.image))
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "i4", "i1", "u1", "?", "c8"])
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_dtypes(method, dtype):
    x = (R.rand(5, 4) * 100).astype("f4").astype(dtype if dtype != "bfloat16" else jnp.bfloat16)
    tolerance = {"f2": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)
    for dims in ((3, 7), (5, 4)):
        both(lambda m, x, dims=dims: m.resize(x, dims, method), x, tolerance=tolerance)
    one = np.ones(1, "f4")
    move = lambda m, x: m.scale_and_translate(x, (3, 4), (0,), one, one, "linear")
    both(move, x, tolerance=tolerance)


def test_wide_numbers():
    x = R.randn(6, 5)
    with jax.enable_x64(True):
        theirs = {m: jax.image.resize(x, (9, 3), m) for m in KERNELS}
    for method, want in theirs.items():
        got = image.resize(x, (9, 3), method)
        assert got.dtype == "float64"
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 if "lanczos" not in method else 1e-5)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", KERNELS)
def test_scale_and_translate(method, antialias):
    x = R.randn(4, 7, 2).astype("f4")
    for (a, s), (b, t) in itertools.product(MOVES, MOVES):
        scale, shift = np.array([a, b], "f4"), np.array([s, t], "f4")
        both(lambda m, x, *p: m.scale_and_translate(x, (6, 5, 2), (0, 1), *p, method, antialias), x, scale, shift)
        both(lambda m, x, *p: m.scale_and_translate(x, (4, 5, 6), (-1, 1), *p, method, antialias), x, scale, shift)
    none = np.zeros(0, "f4")
    both(lambda m, x: m.scale_and_translate(x, (4, 7, 2), (), none, none, method, antialias), x)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", KERNELS)
def test_derivatives(method, antialias):
    x, target = R.randn(5, 6).astype("f4"), R.randn(7, 4).astype("f4")
    scale, shift = np.array([1.3, 0.6], "f4"), np.array([0.3, 0.21], "f4")

    def resized(m):
        return lambda x: ((m.resize(x, (7, 4), method, antialias) - target) ** 2).sum()

    def moved(m):
        return lambda x, *p: ((m.scale_and_translate(x, (7, 4), (0, 1), *p, method, antialias) - target) ** 2).sum()

    close(atled.grad(resized(image))(x), jax.grad(resized(jax.image))(x), 1e-4)
    ours = atled.jit(atled.grad(moved(image), (0, 1, 2)))(x, scale, shift)
    theirs = jax.jit(jax.grad(moved(jax.image), (0, 1, 2)))(x, scale, shift)
    for a, b in zip(ours, theirs):
        close(a, b, 1e-3)
    shifts = np.stack([shift, shift + 0.07])
    close(
        atled.vmap(moved(image), (None, None, 0))(x, scale, shifts),
        jax.vmap(moved(jax.image), (None, None, 0))(x, scale, shifts),
        1e-4,
    )


def test_batches():
    x = R.randn(3, 5, 4).astype("f4")
    for method in ("nearest", "linear", "area"):
        got = atled.vmap(lambda x, m=method: image.resize(x, (2, 6), m), 1)(x)
        close(got, jax.vmap(lambda x, m=method: jax.image.resize(x, (2, 6), m), 1)(x))


def test_names_and_signatures():
    ours, theirs = image.ResizeMethod, jax.image.ResizeMethod
    assert {k: v.value for k, v in ours.__members__.items()} == {k: v.value for k, v in theirs.__members__.items()}
    for name in ("nearest", "linear", "bilinear", "trilinear", "triangle", "lanczos3", "lanczos5", "cubic", "bicubic",
                 "tricubic", "cubic-pytorch", "bicubic-pytorch", "area"):  # fmt: skip
        assert ours.from_string(name).name == theirs.from_string(name).name
    for name in ("resize", "scale_and_translate"):
        a, b = (inspect.signature(getattr(m, name)).parameters for m in (image, jax.image))
        assert [*a] == [*b]
        assert [p.default for p in a.values() if p.name != "precision"] == [
            p.default for p in b.values() if p.name != "precision"
        ]
    both(lambda m, x: m.resize(x, (3, 9), m.ResizeMethod.CUBIC), R.randn(5, 4).astype("f4"))


def test_empty_images():
    assert image.resize(np.ones((4, 2), "f4"), (0, 3), "linear").shape == (0, 3)
    assert image.resize(np.ones((0, 2), "f4"), (0, 3), "cubic").shape == (0, 3)
    assert image.resize(np.ones((4, 2), "f4"), (0, 3), "nearest").shape == (0, 3)


X, ONE = np.ones((4, 4), "f4"), np.ones(1, "f4")
MISTAKES = {
    "length for each axis": (ValueError, lambda: image.resize(X, (3,), "linear")),
    "unknown method 'sharp'": (ValueError, lambda: image.resize(X, (3, 3), "sharp")),
    "a name or a ResizeMethod": (TypeError, lambda: image.resize(X, (3, 3), 7)),
    "no negative lengths": (ValueError, lambda: image.resize(X, (3, -1), "linear")),
    "an empty axis": (ValueError, lambda: image.resize(X[:0], (3, 4), "nearest")),
    "expected an array": (TypeError, lambda: image.resize([[1.0]], (1, 1), "linear")),
    "not available here": (ValueError, lambda: image.scale_and_translate(X, (4, 4), (0,), ONE, ONE, "nearest")),
    "out of bounds": (ValueError, lambda: image.scale_and_translate(X, (4, 4), (2,), ONE, ONE, "linear")),
    "an axis twice": (ValueError, lambda: image.scale_and_translate(X, (4, 4), (0, 0), X[0, :2], X[0, :2], "linear")),
    "scale must have a number": (ValueError, lambda: image.scale_and_translate(X, (4, 4), (0,), X[0], ONE, "cubic")),
    "translation must have": (ValueError, lambda: image.scale_and_translate(X, (4, 4), (0,), ONE, X[0], "cubic")),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_mistakes(says):
    error, call = MISTAKES[says]
    with pytest.raises(error, match=says):
        call()
