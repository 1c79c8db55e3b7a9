"""Polynomials and window functions against NumPy, with derivatives against central differences."""

from __future__ import annotations

import doctest
import warnings
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.numpy import polynomial, window_functions
from atled.numpy.polynomial import (
    poly,
    polyadd,
    polyder,
    polydiv,
    polyfit,
    polyint,
    polymul,
    polysub,
    polyval,
    roots,
    vander,
)
from atled.numpy.window_functions import bartlett, blackman, hamming, hanning, kaiser

R = np.random.RandomState(0)


def same(got: Any, want: Any, tolerance: float = 1e-9) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def check_gradient(f: Any, x: np.ndarray, tolerance: float = 1e-6) -> None:
    """The gradient of a weighted sum of f equals central differences, and the second derivative those of the first."""
    with atled.enable_x64():
        weights = np.random.RandomState(1).randn(*f(jnp.asarray(x)).shape)
        loss = lambda x: jnp.sum(f(x) * weights)
        found = np.asarray(atled.grad(loss)(jnp.asarray(x)))
        h, want = 1e-6, np.zeros_like(x)
        v = np.random.RandomState(2).randn(*x.shape)
        for i in np.ndindex(*x.shape):
            step = np.zeros_like(x)
            step[i] = h
            want[i] = (float(loss(jnp.asarray(x + step))) - float(loss(jnp.asarray(x - step)))) / (2 * h)
        scale = max(1.0, np.abs(want).max(initial=0.0))
        np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance * scale)
        slope = atled.grad(loss)
        _, second = atled.jvp(slope, (jnp.asarray(x),), (jnp.asarray(v),))
        h = 1e-5
        want = (np.asarray(slope(jnp.asarray(x + h * v))) - np.asarray(slope(jnp.asarray(x - h * v)))) / (2 * h)
        scale = max(1.0, np.abs(want).max(initial=0.0))
        np.testing.assert_allclose(np.asarray(second), want, rtol=1e-4, atol=1e-4 * scale)


def check_batch(f: Any, *xs: np.ndarray) -> None:
    """vmap equals a loop, and jit changes nothing."""
    with atled.enable_x64():
        want = np.stack([np.asarray(f(*[jnp.asarray(x[i]) for x in xs])) for i in range(len(xs[0]))])
        same(atled.vmap(f)(*xs), want)
        same(atled.jit(atled.vmap(f))(*xs), want)
        same(atled.jit(f)(*[x[0] for x in xs]), want[0])


# -- arithmetic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("n, m", [(1, 1), (4, 2), (2, 5), (3, 3), (1, 6)])
def test_arithmetic(n, m, dtype):
    a, b = (R.randint(1, 9, k).astype(dtype) for k in (n, m))
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    for ours, theirs in ((polyadd, np.polyadd), (polysub, np.polysub), (polymul, np.polymul)):
        same(ours(a, b), theirs(a, b), tolerance)
    with atled.enable_x64():
        q, r = polydiv(a, b, trim_leading_zeros=True)
        want_q, want_r = np.polydiv(a, b)
        padded = [
            np.concatenate([np.zeros(n + m - len(v)), v]) for v in (np.asarray(r), want_r)
        ]  # NumPy keeps rounding errors
        np.testing.assert_allclose(*padded, atol=1e-4 if dtype == "float32" else 1e-9)
        np.testing.assert_allclose(np.asarray(q), want_q, rtol=1e-4 if dtype == "float32" else 1e-9)
        full = np.asarray(polydiv(a, b)[1])
        assert full.shape == (n,)
        again = np.asarray(polyadd(polymul(q, b), full))
        assert not again[: len(again) - n].any()
        np.testing.assert_allclose(again[len(again) - n :], a, rtol=1e-5, atol=1e-3 if dtype == "float32" else 1e-9)


def test_arithmetic_of_scalars_and_zeros():
    same(polyadd(2.0, np.asarray([1.0, 2.0])), np.asarray([1.0, 4.0]))
    assert polyadd(np.ones(2, "float32"), 1).dtype == "float32"
    same(polymul(np.asarray([0, 1, 2]), np.asarray([1, 2])), np.asarray([0, 1, 4, 4]))
    same(polymul(np.asarray([0, 1, 2]), np.asarray([1, 2]), trim_leading_zeros=True), np.asarray([1, 4, 4]))
    same(polymul(np.asarray([0, 0]), np.asarray([0]), trim_leading_zeros=True), np.asarray([0]))
    q, r = polydiv(np.asarray([1.0, 2.0]), np.asarray([1.0, 2.0, 3.0]))
    same(q, np.zeros(1)), same(r, np.asarray([1.0, 2.0]))
    assert polymul(np.ones(2, "float16"), np.ones(2, "float16")).dtype == "float16"
    assert [x.dtype for x in polydiv(np.ones(3, "float16"), np.ones(2, "float16"))] == ["float16"] * 2
    assert polymul(np.asarray([True, True]), np.asarray([True, True])).tolist() == [1, 2, 1]


def test_long_division_is_stable():
    u, v = R.randn(60), np.concatenate([[4.0], R.randn(7) / 4])
    q, r = polydiv(u, v)
    want_q, want_r = np.polydiv(u, v)
    same(q, want_q, 1e-10)
    np.testing.assert_allclose(np.asarray(r)[-7:], want_r[-7:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
def test_derivative(m, dtype):
    p = R.randint(-9, 9, 5).astype(dtype)
    same(polyder(p, m), np.polyder(p, m) if m < 5 else np.zeros(0, dtype))


@pytest.mark.parametrize(
    "m, k", [(0, None), (1, None), (1, 3.0), (2, 3.0), (3, (1.0, 2.0, 3.0)), (2, np.asarray([5.0])), (2, None)]
)
def test_integral(m, k):
    p = R.randn(4)
    same(polyint(p, m, k), np.polyint(p, m, k))
    same(polyder(polyint(p, m, k), m), p)
    with atled.enable_x64():
        same(polyint(np.asarray([1, 2, 3]), m), np.polyint(np.asarray([1.0, 2, 3]), m))
        same(polyint(p + 1j, m), np.polyint(p + 1j, m))


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 5, 32, 33, 64, 101])
def test_values(n):
    p, x = R.randn(n), R.uniform(-1, 1, (2, 3))
    same(polyval(p, x), np.polyval(p, x) + np.zeros_like(x), 1e-10)
    same(polyval(p + 1j * p, x), np.polyval(p + 1j * p, x) + np.zeros(x.shape, complex), 1e-10)
    same(polyval(p, np.asarray(0.5)), np.asarray(np.polyval(p, 0.5), float), 1e-10)


def test_values_of_integers_and_several_polynomials():
    assert (
        polyval(np.asarray([1, 2], "int32"), 2).dtype == "int32" and int(polyval(np.asarray([1, 2], "int32"), 2)) == 4
    )
    for n in (3, 40):
        p, x = R.uniform(-1, 1, (n, 2, 1)), R.uniform(-1, 1, 3)
        same(polyval(p, x, unroll=4), np.polyval(p, x), 1e-10)
        i = R.randint(-3, 3, n)
        same(polyval(i, np.asarray([1, -1, 2])), np.polyval(i, np.asarray([1, -1, 2])))


@pytest.mark.parametrize("n", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("increasing", [False, True])
def test_vander(n, increasing):
    for x in (R.randn(4), R.randint(-3, 3, 4), R.randn(3) + 1j, np.zeros(0)):
        with atled.enable_x64():
            same(vander(x, n, increasing), np.vander(x, n, increasing))
    same(vander(np.asarray([0.0, 1.0])), np.vander(np.asarray([0.0, 1.0])))


# -- fitting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deg", [0, 1, 2, 4])
@pytest.mark.parametrize("shape", [(7,), (7, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit(deg, shape, weighted):
    x, y = R.randn(7), R.randn(*shape)
    w = R.rand(7) + 0.5 if weighted else None
    same(polyfit(x, y, deg, w=w), np.polyfit(x, y, deg, w=w), 1e-8)
    for got, want in zip(polyfit(x, y, deg, full=True, w=w), np.polyfit(x, y, deg, full=True, w=w), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-8)
        assert np.shape(got) == np.shape(want)
    for cov in (True, "unscaled"):
        for got, want in zip(polyfit(x, y, deg, w=w, cov=cov), np.polyfit(x, y, deg, w=w, cov=cov), strict=True):
            same(got, want, 1e-7)


def test_fit_of_few_points_and_other_dtypes():
    x, y = R.randn(3), R.randn(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy says that the rank is too small
        same(polyfit(x, y, 4), np.polyfit(x, y, 4), 1e-8)
        same(polyfit(np.asarray([1.0, 1.0, 1.0]), y, 1), np.polyfit(np.asarray([1.0, 1.0, 1.0]), y, 1), 1e-8)
        same(polyfit(x, y, 2, rcond=0.3), np.polyfit(x, y, 2, rcond=0.3), 1e-8)
    assert polyfit(x, y, 2, full=True)[1].shape == (0,)
    assert polyfit(np.arange(5, dtype="int32"), np.arange(5, dtype="int32"), 1).dtype == "float32"
    assert polyfit(np.arange(5, dtype="float16"), np.arange(5, dtype="float16"), 1).dtype == "float16"
    z = R.randn(6) + 1j * R.randn(6)
    np.testing.assert_allclose(np.asarray(polyval(polyfit(z, 2 * z**2 + 1j, 2), z)), 2 * z**2 + 1j, rtol=1e-9)
    assert np.isfinite(np.asarray(polyfit(np.zeros(3), y, 1))).all()  # columns of zeros


# -- roots ------------------------------------------------------------------------------------------------------------


def in_order(z: Any) -> np.ndarray:
    return np.sort_complex(np.round(np.asarray(z), 8))


@pytest.mark.parametrize(
    "p",
    [
        [1.0, 2.0, 3.0],
        [0.0, 1.0, 2.0],
        [1.0, 2.0, 0.0, 0.0],
        [0.0, 0.0, 3.0, 1.0, 0.0],
        [5.0],
        [0.0, 0.0],
        [2.0, 0.0, 0.0],
        [],
        [1, -6, 11, -6],
    ],
)
def test_roots(p):
    with atled.enable_x64():
        p = np.asarray(p)
        got, want = roots(p), np.roots(p).astype(complex)
        assert got.dtype == complex
        np.testing.assert_allclose(in_order(got), in_order(want), atol=1e-7)
        fixed = np.asarray(roots(p, strip_zeros=False))
        assert len(fixed) == max(len(p) - 1, 0)
        found, lost = fixed[: len(want)], fixed[len(want) :]
        np.testing.assert_allclose(in_order(found), in_order(want), atol=1e-7)
        assert np.isnan(lost).all()
        np.testing.assert_array_equal(np.asarray(atled.jit(lambda p: roots(p, strip_zeros=False))(p)), fixed)
    same(roots(np.asarray([1.0, -3.0, 2.0], "float32")), np.asarray([2, 1], "complex64"), 1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_poly(n):
    z = R.randn(n)
    same(poly(z), np.poly(z))
    with atled.enable_x64():
        same(poly(np.arange(n)), np.poly(np.arange(n)).astype(float))
    c = R.randn(n) + 1j * R.randn(n)
    same(poly(c), np.poly(c))
    same(roots_sorted(poly(z)), np.sort(z), 1e-6)


def roots_sorted(p: Any) -> np.ndarray:
    return np.sort(np.asarray(roots(p)).real)


def test_poly_of_nothing_and_of_matrices():
    assert poly(np.zeros(0)).shape == () and float(poly(np.zeros(0))) == 1.0
    a = R.randn(4, 4)
    got = np.asarray(poly(a))
    assert got.dtype == complex
    np.testing.assert_allclose(got, np.poly(a), atol=1e-9)


# -- transformations --------------------------------------------------------------------------------------------------

X5 = R.randn(5)
GRADIENTS = {
    "polyval of p": (lambda p: polyval(p, np.asarray([0.3, -0.7, 0.0])), R.randn(4)),
    "polyval of x": (lambda x: polyval(np.asarray([1.0, -2.0, 0.5, 3.0]), x), np.asarray([0.3, -0.7, 0.0])),
    "polyval, long": (lambda x: polyval(np.linspace(-1, 1, 40), x), np.asarray([0.3, -0.7, 0.0])),
    "polyadd": (lambda p: polyadd(p, np.asarray([1.0, 2.0])), R.randn(3)),
    "polymul": (lambda p: polymul(p, p), R.randn(3)),
    "quotient": (lambda p: polydiv(p, np.asarray([2.0, 1.0, 0.5]))[0], R.randn(5)),
    "remainder": (lambda p: polydiv(np.asarray([2.0, 1.0, 0.5, 3.0]), p)[1], np.asarray([2.0, 0.7])),
    "polyder": (polyder, R.randn(4)),
    "polyint": (lambda p: polyint(p, 2, p[:2]), R.randn(4)),
    "vander": (lambda x: vander(x, 4), np.asarray([0.0, 0.5, -1.5])),
    "poly": (poly, np.asarray([0.0, 0.5, -1.5])),
    "polyfit of y": (lambda y: polyfit(X5, y, 2), R.randn(5)),
    "polyfit of x": (
        lambda x: polyfit(x, np.asarray([1.0, -1.0, 2.0, 0.5, 0.3]), 2),
        np.asarray([-1.0, -0.4, 0.1, 0.8, 1.5]),
    ),
    "polyfit of w": (lambda w: polyfit(X5, np.asarray([1.0, -1.0, 2.0, 0.5, 0.3]), 1, w=w), R.rand(5) + 0.5),
    "polyfit, covariance": (lambda y: polyfit(X5, y, 1, cov=True)[1], R.randn(5)),
    "roots": (lambda p: jnp.real(roots(p)), np.asarray([1.0, -6.0, 11.0, -5.9])),
    "roots, fixed": (lambda p: jnp.imag(roots(p, strip_zeros=False)), np.asarray([1.0, 1.0, 5.0])),
    "kaiser": (lambda beta: kaiser(6, beta), np.asarray(2.5)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    check_gradient(*GRADIENTS[name])


def test_batches():
    check_batch(polyval, R.randn(3, 4), R.randn(3, 2))
    check_batch(lambda p: polyval(p, np.asarray([0.5, 2.0])), R.randn(3, 40))
    check_batch(polymul, R.randn(3, 4), R.randn(3, 2))
    check_batch(lambda a, b: polydiv(a, b)[0], R.randn(3, 4), R.randn(3, 2) + 3)
    check_batch(lambda a, b: polydiv(a, b)[1], R.randn(3, 4), R.randn(3, 2) + 3)
    check_batch(lambda x, y: polyfit(x, y, 2), R.randn(3, 6), R.randn(3, 6))
    check_batch(poly, R.randn(3, 5))
    check_batch(vander, R.randn(3, 5))
    check_batch(lambda p: polyint(p, 2, 3.0), R.randn(3, 5))
    check_batch(lambda p: jnp.abs(roots(p, strip_zeros=False)), R.randn(3, 4))
    check_batch(lambda beta: kaiser(5, beta), R.rand(3) * 5)


# -- windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [-1, 0, 1, 2, 3, 6, 51])
def test_windows(m):
    with atled.enable_x64():
        for ours, theirs in (
            (bartlett, np.bartlett),
            (blackman, np.blackman),
            (hamming, np.hamming),
            (hanning, np.hanning),
        ):
            same(ours(m), theirs(m), 1e-13)
        for beta in (0.0, 2.0, 14.0):
            same(kaiser(m, beta), np.kaiser(max(m, 0), beta), 1e-10)
    for ours, theirs in (
        (bartlett, np.bartlett),
        (blackman, np.blackman),
        (hamming, np.hamming),
        (hanning, np.hanning),
    ):
        same(ours(m), theirs(m).astype("float32"), 1e-7)
    assert kaiser(3, np.asarray(2.0, "float64")).dtype == "float64" and kaiser(3, 2).dtype == "float32"
    same(atled.jit(lambda: hanning(5))(), np.hanning(5).astype("float32"), 1e-7)


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: polyadd(np.ones((2, 2)), 1.0),
            ValueError,
            r"polyadd: coefficients are a 1-d array, .*; got f64\[2,2\]",
        ),
        (lambda: polyadd([1.0], np.ones(2)), TypeError, "polyadd: expected an array or a number; got list"),
        (
            lambda: polymul(np.zeros(0), np.ones(2)),
            ValueError,
            "polymul: polynomials must have at least one coefficient",
        ),
        (
            lambda: polydiv(np.ones(2), np.zeros(0)),
            ValueError,
            "polydiv: polynomials must have at least one coefficient",
        ),
        (
            lambda: polyder(np.ones(2), -1),
            ValueError,
            "polyder: the order of a derivative must not be negative; got -1",
        ),
        (lambda: polyint(np.ones(2), -1), ValueError, "polyint: the order of an integral must not be negative"),
        (lambda: polyint(np.ones(2), 3, np.ones(2)), ValueError, "polyint: k is a scalar or 3 constants"),
        (lambda: polyval(np.asarray(1.0), 2.0), ValueError, "polyval: coefficients are an array"),
        (lambda: vander(np.ones((2, 2))), ValueError, "vander: points are a 1-d array"),
        (lambda: vander(np.ones(2), -1), ValueError, "vander: the number of columns must not be negative"),
        (lambda: poly(np.ones((2, 3))), ValueError, "poly: a 1-d array of roots or a square matrix"),
        (lambda: roots(np.ones((2, 2))), ValueError, "roots: coefficients are a 1-d array"),
        (lambda: polyfit(np.ones((2, 2)), np.ones(2), 1), TypeError, "polyfit: x must be a 1-d array"),
        (
            lambda: polyfit(np.ones(0), np.ones(0), 1),
            TypeError,
            "polyfit: x must be a 1-d array with at least one point",
        ),
        (lambda: polyfit(np.ones(2), np.ones(3), 1), TypeError, "polyfit: y must have a value"),
        (lambda: polyfit(np.ones(2), np.ones(2), 1, w=np.ones(3)), TypeError, "polyfit: w must have a weight"),
        (lambda: polyfit(np.ones(2), np.ones(2), -1), ValueError, "polyfit: the degree must not be negative"),
        (lambda: polyfit(np.ones(2), np.ones(2), 1, cov=True), ValueError, "polyfit: more than 2 points are needed"),
        (lambda: hanning(2.5), TypeError, "hanning: the number of points must be an integer; got float"),
        (lambda: kaiser(3, np.ones(2)), ValueError, r"kaiser: beta must be a real scalar; got f64\[2\]"),
        (
            lambda: atled.jit(roots)(np.ones(3)),
            atled.errors.ConcretizationTypeError,
            r"(?s)roots: .*try: roots\(p, strip_zeros=False\)",
        ),
        (
            lambda: atled.jit(lambda a: polymul(a, a, trim_leading_zeros=True))(np.ones(3)),
            atled.errors.ConcretizationTypeError,
            "(?s)polymul: .*try: trim_leading_zeros=False",
        ),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("module", [polynomial, window_functions])
def test_examples(module, monkeypatch):
    for name in module.__all__:
        monkeypatch.setattr(jnp, name, getattr(module, name), raising=False)
    for name in module.__all__:
        for example in doctest.DocTestFinder().find(
            getattr(module, name), name, module=False, globs=dict(vars(module))
        ):
            assert doctest.DocTestRunner().run(example).failed == 0
