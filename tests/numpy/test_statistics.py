"""Statistics and sampled signals, against NumPy: values, jit, vmap, derivatives, NaN, edge cases, messages."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import errors

S = importlib.import_module("atled.numpy")
METHODS = importlib.import_module("atled.numpy.statistics")
R = np.random.RandomState(0)
NAN, INF = np.nan, np.inf
A, B, P = R.randn(3, 4), R.randn(3, 4), R.rand(3, 4) + 0.5
T = R.randn(2, 3, 5)
N = np.where(R.rand(3, 4) > 0.7, NAN, A)
N[1] = NAN
K = R.randint(0, 9, (3, 4))
C, D = (R.randn(6) + 1j * R.randn(6) for _ in range(2))
M = R.rand(3, 4) > 0.5
GRID = np.sort(R.rand(7) * 4)
Q = np.array([0.0, 0.1, 0.25, 0.5, 0.77, 1.0])


def leaves(x: Any) -> list[Any]:
    return [v for item in x for v in leaves(item)] if isinstance(x, (tuple, list)) else [x]


def same(got: Any, want: Any, rtol: float = 1e-9) -> None:
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape and g.dtype.kind == w.dtype.kind, (g.shape, w.shape, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


def check(f: Any, *arrays: Any) -> None:
    """f(module, *arrays) with ours is as with NumPy; under jit too; and vmap is a loop."""
    with atled.enable_x64(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = f(np, *arrays)
        on_device = [jnp.asarray(x) for x in arrays]
        same(f(S, *on_device), want)
        same(f(S, *arrays), want)
        same(atled.jit(lambda *xs: f(S, *xs))(*on_device), want)
        batches = [np.stack([x, np.flip(x, 0), np.roll(x, 1, -1)]) if np.ndim(x) else np.stack([x] * 3) for x in arrays]
        rows = [leaves(f(S, *[jnp.asarray(b[k]) for b in batches])) for k in range(3)]
        got = atled.jit(atled.vmap(lambda *xs: leaves(f(S, *xs))))(*batches)
        same(got, [np.stack([np.asarray(row[i]) for row in rows]) for i in range(len(rows[0]))])


def check_derivative(f: Any, *xs: Any, tolerance: float = 1e-6) -> None:
    """jvp against central differences, and vjp against jvp, in float64."""
    r, h = np.random.RandomState(1), 1e-6
    with atled.enable_x64():
        xs = [np.asarray(x, np.float64) for x in xs]
        ts = [r.randn(*x.shape) for x in xs]
        out, tangent = atled.jvp(f, tuple(jnp.asarray(x) for x in xs), tuple(jnp.asarray(t) for t in ts))
        up, down = (np.asarray(f(*[jnp.asarray(x + s * h * t) for x, t in zip(xs, ts, strict=True)])) for s in (1, -1))
        np.testing.assert_allclose(np.asarray(tangent), (up - down) / (2 * h), rtol=tolerance, atol=tolerance)
        u = r.randn(*out.shape)
        back = atled.vjp(f, *[jnp.asarray(x) for x in xs])[1](jnp.asarray(u))
        total = sum(float(np.sum(np.asarray(c) * t)) for c, t in zip(back, ts, strict=True))
        np.testing.assert_allclose(total, np.sum(u * np.asarray(tangent)), rtol=1e-9)


CASES = {
    "median": (lambda xp, x: xp.median(x), A),
    "median axis": (lambda xp, x: xp.median(x, axis=0), A),
    "median axes": (lambda xp, x: xp.median(x, axis=(0, -1), keepdims=True), T),
    "median ints": (lambda xp, x: xp.median(x, axis=1), K),
    "median nan": (lambda xp, x: xp.median(x, axis=0), N),
    "median infinite": (lambda xp, x: xp.median(x), np.array([INF, 1.0, INF, INF])),
    "median 0-d": (lambda xp, x: xp.median(x), np.asarray(3.0)),
    "nanmedian": (lambda xp, x: xp.nanmedian(x), N),
    "nanmedian axis": (lambda xp, x: xp.nanmedian(x, axis=1, keepdims=True), N),
    "quantile": (lambda xp, x: xp.quantile(x, 0.3, axis=1), A),
    "quantile many": (lambda xp, x, q: xp.quantile(x, q, axis=0), A, Q),
    "quantile matrix": (lambda xp, x, q: xp.quantile(x, q.reshape(2, 3), axis=(0, 2), keepdims=True), T, Q),
    "quantile nan": (lambda xp, x, q: xp.quantile(x, q, axis=0), N, Q),
    "percentile": (lambda xp, x: xp.percentile(x, 30, axis=-1), A),
    "percentile ints": (lambda xp, x, q: xp.percentile(x, q), K, np.array([10, 50])),
    "nanquantile": (lambda xp, x, q: xp.nanquantile(x, q, axis=1), N, Q),
    "nanpercentile": (lambda xp, x: xp.nanpercentile(x, 20.0, axis=0), N),
    "quantile weights": (lambda xp, x, w, q: xp.quantile(x, q, axis=1, weights=w, method="inverted_cdf"), A, P, Q),
    "quantile weights 1-d": (lambda xp, x, w: xp.quantile(x, 0.4, axis=1, weights=w[0], method="inverted_cdf"), A, P),
    "quantile weights flat": (lambda xp, x, w, q: xp.quantile(x, q, weights=w, method="inverted_cdf"), A, K, Q),
    "quantile weights nan": (lambda xp, x, w: xp.quantile(x, 0.4, axis=0, weights=w, method="inverted_cdf"), N, P),
    "cov": (lambda xp, x: xp.cov(x), A),
    "cov columns": (lambda xp, x: xp.cov(x, rowvar=False, bias=True), A),
    "cov two": (lambda xp, x, y: xp.cov(x, y, ddof=2), A, B),
    "cov 1-d": (lambda xp, x: xp.cov(x[0]), A),
    "cov two 1-d": (lambda xp, x, y: xp.cov(x[0], y[0], rowvar=False), A, B),
    "cov weights": (lambda xp, x, w, f: xp.cov(x, fweights=f[0], aweights=w[0]), A, P, K),
    "cov frequencies": (lambda xp, x, f: xp.cov(x, fweights=f[1] + 1), A, K),
    "cov complex": (lambda xp, x: xp.cov(x.reshape(2, 3)), C),
    "cov ints": (lambda xp, x: xp.cov(x), K),
    "corrcoef": (lambda xp, x: xp.corrcoef(x), A),
    "corrcoef two": (lambda xp, x, y: xp.corrcoef(x[0], y[0]), A, B),
    "corrcoef 1-d": (lambda xp, x: xp.corrcoef(x[0]), A),
    "corrcoef complex": (lambda xp, x: xp.corrcoef(x.reshape(2, 3)), C),
    "histogram": (lambda xp, x: xp.histogram(x, bins=5), A),
    "histogram ints": (lambda xp, x: xp.histogram(x, bins=4), K),
    "histogram range": (lambda xp, x: xp.histogram(x, bins=5, range=(-1.0, 0.5)), A),
    "histogram edges": (lambda xp, x, e: xp.histogram(x, bins=e), P, GRID),
    "histogram weights": (lambda xp, x, w: xp.histogram(x, bins=3, weights=w), A, P),
    "histogram density": (lambda xp, x: xp.histogram(x, bins=6, density=True), A),
    "histogram density edges": (lambda xp, x, e: xp.histogram(x, bins=e, density=True), P, GRID),
    "histogram density weights": (lambda xp, x, w: xp.histogram(x, 4, weights=w, density=True), A, P),
    "histogram point": (lambda xp, x: xp.histogram(x, bins=2), np.array([2.0, 2.0])),
    "histogram_bin_edges": (lambda xp, x: xp.histogram_bin_edges(x, bins=4), A),
    "histogram_bin_edges range": (lambda xp, x: xp.histogram_bin_edges(x, 4, (0, 1)), A),
    "histogram2d": (lambda xp, x, y: xp.histogram2d(x[0], y[0], bins=3), A, B),
    "histogram2d bins": (lambda xp, x, y: xp.histogram2d(x[0], y[0], bins=(2, 4), range=((-1, 1), (-2, 2))), A, B),
    "histogram2d edges": (lambda xp, x, y, e: xp.histogram2d(x[0], y[0], bins=e), P, P[::-1], GRID),
    "histogram2d weights": (lambda xp, x, y, w: xp.histogram2d(x[0], y[0], 3, weights=w[0], density=True), A, B, P),
    "histogramdd": (lambda xp, x: xp.histogramdd(x, bins=2), R.randn(5, 3)),
    "histogramdd bins": (lambda xp, x, e: xp.histogramdd(x, bins=[2, e], density=True), P[:, :2], GRID),
    "diff": (lambda xp, x: xp.diff(x), A),
    "diff twice": (lambda xp, x: xp.diff(x, n=2, axis=0), A),
    "diff none": (lambda xp, x: xp.diff(x, n=0), A),
    "diff too often": (lambda xp, x: xp.diff(x, n=5), A),
    "diff bools": (lambda xp, x: xp.diff(x), M),
    "diff ends": (lambda xp, x: xp.diff(x, prepend=0, append=x[:, :2]), A),
    "diff ends axis": (lambda xp, x: xp.diff(x, axis=0, prepend=x[:1], append=5), A),
    "ediff1d": (lambda xp, x: xp.ediff1d(x), A),
    "ediff1d ends": (lambda xp, x: xp.ediff1d(x, to_end=x[0], to_begin=-9.0), A),
    "ediff1d short": (lambda xp, x: xp.ediff1d(x), np.ones(1)),
    "gradient": (lambda xp, x: xp.gradient(x), A),
    "gradient one": (lambda xp, x: xp.gradient(x, axis=0), A),
    "gradient ints": (lambda xp, x: xp.gradient(x, axis=-1), K),
    "gradient steps": (lambda xp, x: xp.gradient(x, 2.0, 0.5), A),
    "gradient step": (lambda xp, x: xp.gradient(x, 0.1, axis=1), A),
    "gradient coordinates": (lambda xp, x, c: xp.gradient(x, c[:4], axis=1), A, GRID),
    "gradient mixed": (lambda xp, x, c: xp.gradient(x, c[:3], 0.5), A, GRID),
    "gradient order 2": (lambda xp, x: xp.gradient(x, edge_order=2), A),
    "gradient coordinates order 2": (lambda xp, x, c: xp.gradient(x, c[:3], c[:4], edge_order=2), A, GRID),
    "gradient two elements": (lambda xp, x: xp.gradient(x[0, :2]), A),
    "gradient axes": (lambda xp, x: xp.gradient(x, axis=(2, 0)), T),
    "trapezoid": (lambda xp, x: xp.trapezoid(x, axis=0), A),
    "trapezoid dx": (lambda xp, x: xp.trapezoid(x, dx=0.1), K),
    "trapezoid x": (lambda xp, x, c: xp.trapezoid(x, c[:4]), A, GRID),
    "trapezoid x axis": (lambda xp, x, c: xp.trapezoid(x, c[:3], axis=1), T, GRID),
    "trapezoid x full": (lambda xp, x, y: xp.trapezoid(x, y, axis=0), A, B),
    "trapezoid one": (lambda xp, x: xp.trapezoid(x[:, :1]), A),
    "interp": (lambda xp, x, c: xp.interp(x, c, c**2), P * 2, GRID),
    "interp scalar": (lambda xp, c: xp.interp(1.3, c, c**2), GRID),
    "interp ends": (lambda xp, x, c: xp.interp(x, c, c**2, left=-1, right=9.5), 3 * A, GRID),
    "interp ints": (lambda xp, x: xp.interp(x, np.arange(5), np.arange(5) * 2), K),
    "interp period": (lambda xp, x, c: xp.interp(x, c * 3, c, period=2.5), 5 * A, GRID),
    "interp one": (lambda xp, x: xp.interp(x, np.ones(1), np.full(1, 4.0), left=0.0), A),
    "interp complex": (lambda xp, x, f: xp.interp(x, np.arange(6.0), f), 3 * A, C),
    "interp infinite": (lambda xp, x: xp.interp(x, np.arange(3.0), np.array([1.0, 2.0, INF])), np.array([0.5, 1.0])),
    "interp nan": (lambda xp, x: xp.interp(x, np.arange(3.0), np.arange(3.0)), N),
    "convolve": (lambda xp, x, y: xp.convolve(x[0], y[0]), A, B),
    "convolve same": (lambda xp, x, y: xp.convolve(x[0], y[0, :3], mode="same"), A, B),
    "convolve same even": (lambda xp, x, y: xp.convolve(x[0], y[0, :2], mode="same"), A, B),
    "convolve valid": (lambda xp, x, y: xp.convolve(x[0, :2], y[0], "valid"), A, B),
    "convolve swapped": (lambda xp, x, y: xp.convolve(x[0, :2], y[0], "same"), A, B),
    "convolve ints": (lambda xp, x, y: xp.convolve(x[0], y[0]), K, K),
    "convolve complex": (lambda xp, x, y: xp.convolve(x, y[:3]), C, D),
    "correlate": (lambda xp, x, y: xp.correlate(x[0], y[0]), A, B),
    "correlate full": (lambda xp, x, y: xp.correlate(x[0], y[0, :3], "full"), A, B),
    "correlate same": (lambda xp, x, y: xp.correlate(x[0], y[0, :2], "same"), A, B),
    "correlate swapped": (lambda xp, x, y: xp.correlate(x[0, :2], y[0], "same"), A, B),
    "correlate swapped odd": (lambda xp, x, y: xp.correlate(x[0, :3], y[0], "same"), A, B),
    "correlate swapped full": (lambda xp, x, y: xp.correlate(x[:2], y, "full"), C, D),
    "correlate complex": (lambda xp, x, y: xp.correlate(x, y[:3], "full"), C, D),
    "unwrap": (lambda xp, x: xp.unwrap(4 * x), A),
    "unwrap axis": (lambda xp, x: xp.unwrap(4 * x, axis=0, period=3.0), A),
    "unwrap discont": (lambda xp, x: xp.unwrap(4 * x, discont=4.0), A),
    "unwrap ints": (lambda xp, x: xp.unwrap(x, period=4), K),
    "unwrap ints odd": (lambda xp, x: xp.unwrap(x * 2, period=5), K),
    "unwrap edge": (lambda xp, x: xp.unwrap(x, period=4.0), np.array([0.0, 2.0, 4.0, 2.0, 0.0])),
    "array_equal": (lambda xp, x, y: xp.array_equal(x, y), A, A),
    "array_equal not": (lambda xp, x, y: xp.array_equal(x, y), A, B),
    "array_equal shapes": (lambda xp, x, y: xp.array_equal(x, y[0]), A, A),
    "array_equal nan": (lambda xp, x: xp.array_equal(x, x), N),
    "array_equal nan equal": (lambda xp, x: xp.array_equal(x, x, equal_nan=True), N),
    "array_equiv": (lambda xp, x: xp.array_equiv(x, x[:1]), np.ones((2, 3))),
    "array_equiv not": (lambda xp, x: xp.array_equiv(x, x[:, :2]), A),
    "allclose": (lambda xp, x: xp.allclose(x, x + 1e-9), A),
    "allclose not": (lambda xp, x: xp.allclose(x, x + 1e-3), A),
    "allclose tolerance": (lambda xp, x: xp.allclose(x, x + 1e-3, atol=1), A),
    "allclose nan": (lambda xp, x: xp.allclose(x, x, equal_nan=True), N),
}  # fmt: skip


@pytest.mark.parametrize("row", list(CASES))
def test_as_numpy(row):
    f, *arrays = CASES[row]
    check(f, *arrays)


METHODS = [*METHODS._CONTINUOUS, *METHODS._DISCRETE]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_quantile_methods(method, n):
    x, q = R.randn(3, n), np.linspace(0, 1, 17)
    holes = np.where(R.rand(3, n) > 0.8, NAN, x)
    with atled.enable_x64(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(S.quantile(x, q, axis=1, method=method), np.quantile(x, q, axis=1, method=method))
        same(S.nanquantile(holes, q, axis=1, method=method), np.nanquantile(holes, q, axis=1, method=method))


def test_quantile_is_exact_where_neighbours_are_equal():
    x = np.full(7, 0.1, np.float32)
    assert all(float(S.quantile(x, q)) == float(np.float32(0.1)) for q in (0.13, 0.5, 0.77))
    assert float(S.median(np.array([1e308, -1e308]))) == 0.0
    assert float(S.quantile(np.array([1.0, 2.0, INF]), 0.5)) == 2.0


def test_quantile_of_nothing_and_half_precision():
    assert np.isnan(float(S.median(np.zeros(0)))) and S.quantile(np.zeros((2, 0)), Q, axis=1).shape == (6, 2)
    x = jnp.arange(300.0).astype("bfloat16")
    assert S.quantile(x, 0.5).dtype == x.dtype and float(S.median(jnp.arange(9.0).astype("float16"))) == 4.0
    assert S.median(np.arange(4, dtype=np.int32)).dtype == np.float32


def test_quantile_weights_skip_nan():
    x, w = np.array([[3.0, NAN, 1.0, 2.0]]), np.array([[1.0, 100.0, 1.0, 3.0]])
    same(S.nanquantile(x, 0.5, axis=1, weights=w, method="inverted_cdf"), np.array([2.0]))


def test_named_histogram_rules():
    x = R.randn(50)
    with atled.enable_x64():
        for rule in ("auto", "sturges", "fd"):
            same(S.histogram(x, rule), np.histogram(x, rule))
            same(S.histogram_bin_edges(x, rule), np.histogram_bin_edges(x, rule))


def test_histogram_leaves_out_nan_and_outside():
    x = np.array([NAN, -5.0, 0.0, 1.0, 2.0, 7.0], np.float32)
    heights, _ = S.histogram(x, bins=np.array([0.0, 1.0, 2.0], np.float32))
    assert [int(v) for v in heights] == [1, 2]
    assert S.histogram(np.zeros(0, np.float32), 2)[1].tolist() == [0.0, 0.5, 1.0]


def test_interp_extrapolates():
    grid, f = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 3.0])
    got = S.interp(np.array([-1.0, 5.0]), grid, f, left="extrapolate", right="extrapolate")
    np.testing.assert_allclose(np.asarray(got), [-2.0, 4.0])


def test_preferred_element_type_and_dtypes():
    x = np.arange(3, dtype=np.float32)
    assert S.convolve(x, x, preferred_element_type="float64").dtype == np.float64
    assert S.convolve(np.arange(3, dtype=np.int8), np.arange(2, dtype=np.int8)).dtype == np.int8
    assert S.cov(np.arange(3, dtype=np.int32)).dtype == np.float32
    assert S.cov(np.arange(3.0, dtype=np.float32), dtype="float64").dtype == np.float64
    assert S.histogram(x)[0].dtype == np.int32 and S.trapezoid(np.arange(3, dtype=np.int32)).dtype == np.float32


DISTINCT = np.array([[0.3, -1.2, 2.2, 0.9], [1.4, 0.1, -0.7, 0.6], [-2.0, 0.2, 1.1, -0.4]])
DERIVATIVES = {
    "median": (lambda x: S.median(x, axis=1), DISTINCT),
    "median odd": (lambda x: S.median(x, axis=0), DISTINCT),
    "nanmedian": (lambda x: S.nanmedian(x), DISTINCT),
    "quantile": (lambda x: S.quantile(x, jnp.array([0.2, 0.55]), axis=1), DISTINCT),
    "quantile by q": (lambda x, q: S.quantile(x, q), DISTINCT, np.array([0.21, 0.63])),
    "nanpercentile": (lambda x: S.nanpercentile(x, 33.0, axis=0), DISTINCT),
    "quantile hazen": (lambda x: S.quantile(x, 0.37, method="hazen"), DISTINCT),
    "quantile weights": (lambda x: S.quantile(x, 0.4, axis=1, weights=P, method="inverted_cdf"), DISTINCT),
    "cov": (lambda x: S.cov(x), DISTINCT),
    "cov weights": (lambda x, w: S.cov(x, aweights=w), DISTINCT, P[0]),
    "corrcoef": (lambda x: S.corrcoef(x)[0, 1], DISTINCT),
    "histogram weights": (lambda w: S.histogram(DISTINCT, 4, weights=w, density=True)[0], P),
    "diff": (lambda x: S.diff(x, 2, prepend=0.0) ** 2, DISTINCT),
    "ediff1d": (lambda x: S.ediff1d(x, to_end=x[0] ** 2), DISTINCT),
    "gradient": (lambda x: S.gradient(x)[1] ** 2, DISTINCT),
    "gradient by coordinates": (lambda x, c: S.gradient(x, c, axis=1, edge_order=2), DISTINCT, GRID[:4]),
    "trapezoid": (lambda y, x: S.trapezoid(y, x), DISTINCT, GRID[:4]),
    "interp": (lambda x, c, f: S.interp(x, c, f), np.linspace(-0.5, 4.5, 8) + 0.01, GRID, GRID**2),
    "interp period": (lambda x, f: S.interp(x, jnp.arange(4.0), f, period=4.5), DISTINCT, GRID[:4]),
    "interp extrapolate": (lambda x, f: S.interp(x, jnp.arange(4.0), f, "extrapolate", -1.0), DISTINCT, GRID[:4]),
    "convolve": (lambda x, y: S.convolve(x[0], y[:3]), DISTINCT, GRID),
    "convolve same": (lambda x, y: S.convolve(x[0], y[:2], "same"), DISTINCT, GRID),
    "correlate": (lambda x, y: S.correlate(x[0], y, "full"), DISTINCT, GRID),
    "unwrap": (lambda x: S.unwrap(4 * x) ** 2, DISTINCT),
}  # fmt: skip


@pytest.mark.parametrize("row", list(DERIVATIVES))
def test_derivatives(row):
    f, *xs = DERIVATIVES[row]
    check_derivative(f, *xs)
    check_derivative(atled.jit(f), *xs)


def test_second_derivatives():
    def twice(f, x, tolerance=1e-5):
        slope = lambda v: atled.grad(lambda u: jnp.sum(f(u) ** 3))(v)
        check_derivative(slope, x, tolerance=tolerance)

    for f in (
        lambda x: S.median(x, axis=1),
        lambda x: S.cov(x),
        lambda x: S.interp(x, GRID, GRID**2),
        lambda x: S.convolve(x[0], x[1]),
    ):
        twice(f, DISTINCT * 0.9 + 1.3)


@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        (lambda: S.quantile(A, 1.5), ValueError, "quantile: q must be between 0 and 1"),
        (lambda: S.percentile(A, np.array([5, 101])), ValueError, "percentile: q must be between 0 and 100"),
        (lambda: S.quantile(A, 0.5, method="x"), ValueError, "quantile: the method is one of"),
        (
            lambda: S.quantile(A, 0.5, weights=A),
            NotImplementedError,
            "quantile: weights need the method 'inverted_cdf'",
        ),
        (
            lambda: S.quantile(A, 0.5, weights=A[0], method="inverted_cdf"),
            ValueError,
            r"quantile: weights f64\[4\] match neither",
        ),
        (lambda: S.median(C), TypeError, r"median: complex numbers have no quantiles; got c128\[6\]"),
        (lambda: S.median(A, axis=3), ValueError, "median: axis 3 is out of bounds"),
        (lambda: S.cov(T), ValueError, r"cov: at most two axes are allowed; got f64\[2,3,5\]"),
        (lambda: S.cov(A, aweights=A), ValueError, "cov: aweights must have one element for each of 4 observations"),
        (lambda: S.histogram(A, 0), ValueError, "histogram: at least one bin is needed; got 0"),
        (
            lambda: S.histogram(A, A),
            ValueError,
            r"histogram: bins must be an integer or a one-dimensional array of edges; got f64\[3,4\]",
        ),
        (lambda: S.histogram(A, weights=A[0]), ValueError, "histogram: one weight is needed for each element"),
        (lambda: S.histogramdd(A[0]), ValueError, "histogramdd: the sample must have one row for each point"),
        (lambda: S.histogramdd(A, bins=[2, 2]), ValueError, "histogramdd: bins and ranges are needed for 4 axes"),
        (lambda: S.diff(A, -1), ValueError, "diff: n must not be negative; got n=-1"),
        (lambda: S.diff(np.float32(1.0)), ValueError, "diff: a 0-d array has no neighbours"),
        (lambda: S.gradient(A[:, :1]), ValueError, "gradient: 2 elements are needed along axis 1"),
        (lambda: S.gradient(A, 1.0, 1.0, 1.0), TypeError, "gradient: one spacing, or one for each of 2 axes"),
        (lambda: S.gradient(A, np.ones(9), axis=1), ValueError, "gradient: a spacing is a number or has 4 coordinates"),
        (lambda: S.gradient(A, edge_order=3), ValueError, "gradient: the edge order is 1 or 2; got 3"),
        (lambda: S.interp(1.0, A, A), ValueError, "interp: xp and fp must have one axis of the same length"),
        (
            lambda: S.interp(1.0, A[0], A[0], left="x"),
            ValueError,
            "interp: left and right are numbers or 'extrapolate'",
        ),
        (
            lambda: S.convolve(A, A[0]),
            ValueError,
            r"convolve: operands must have one axis that is not empty; got f64\[3,4\]",
        ),
        (lambda: S.correlate(A[0], A[0], "x"), ValueError, "correlate: the mode is 'full', 'same' or 'valid'; got 'x'"),
    ],
)
def test_messages(f, kind, message):
    with pytest.raises(kind, match=message):
        f()


def test_named_rule_under_jit_says_the_way_out():
    with pytest.raises(errors.ConcretizationTypeError, match=r"(?s)histogram: .*try: a number of bins"):
        atled.jit(lambda x: S.histogram(x, "auto"))(A)
