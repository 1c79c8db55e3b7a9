"""Sorting, searching and choosing, against NumPy: values, jit, vmap, derivatives, fixed sizes, messages."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import errors

S = importlib.import_module("atled.numpy")
R = np.random.RandomState(0)
NAN, INF = np.nan, np.inf
A, B = R.randn(3, 4), R.randn(3, 4)
N = np.array([[3.0, NAN, 1.0, -INF], [NAN, 2.0, INF, 0.0], [1.0, 1.0, -1.0, NAN]])
K = R.randint(0, 4, (3, 4))
C = np.round(R.randn(3, 4)) + 1j * np.round(R.randn(3, 4))
CN = np.array([1 + 2j, complex(NAN, 1), complex(3, NAN), complex(0, NAN), 0, complex(NAN, NAN), complex(NAN, 0)])
M = R.rand(3, 4) > 0.5
TIES = np.array([2, 1, 2, 1, 0, 2, 1])


def leaves(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def same(got: Any, want: Any, rtol: float = 1e-9) -> None:
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape and g.dtype.kind == w.dtype.kind, (g.shape, w.shape, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


def check(f: Any, *arrays: Any, eager_only: bool = False, batch: bool = True) -> None:
    """f(module, *arrays) with ours is as with NumPy; under jit too; and vmap is a loop."""
    with atled.enable_x64(), np.errstate(all="ignore"):
        want = f(np, *arrays)
        on_device = [jnp.asarray(x) for x in arrays]
        same(f(S, *on_device), want)
        same(f(S, *arrays), want)
        if eager_only:
            return
        same(atled.jit(lambda *xs: f(S, *xs))(*on_device), want)
        if batch:
            turned = [np.stack([x, x[::-1], np.roll(x, 1, 0)]) if np.ndim(x) else np.stack([x] * 3) for x in arrays]
            rows = [leaves(f(S, *[jnp.asarray(t[k]) for t in turned])) for k in range(3)]
            got = atled.jit(atled.vmap(lambda *xs: f(S, *xs)))(*turned)
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


SORTS = {
    "sort": (lambda xp, x: xp.sort(x), A),
    "sort axis 0": (lambda xp, x: xp.sort(x, axis=0), A),
    "sort axis -2": (lambda xp, x: xp.sort(x, -2), A),
    "sort flat": (lambda xp, x: xp.sort(x, axis=None), A),
    "sort nan": (lambda xp, x: xp.sort(x, axis=1), N),
    "sort int": (lambda xp, x: xp.sort(x), K),
    "sort bool": (lambda xp, x: xp.sort(x), M),
    "sort complex": (lambda xp, x: xp.sort(x), C),
    "sort empty": (lambda xp, x: xp.sort(x), np.zeros((2, 0))),
    "argsort": (lambda xp, x: xp.argsort(x, axis=0), A),
    "argsort flat": (lambda xp, x: xp.argsort(x, axis=None), A),
    "argsort stable": (lambda xp, x: xp.argsort(x, stable=True), TIES),
    "argsort nan": (lambda xp, x: xp.argsort(x, stable=True), N),
    "argsort complex": (lambda xp, x: xp.argsort(x, stable=True), C),
    "lexsort": (lambda xp, x, y: xp.lexsort((x[0], y[0])), A, K),
    "lexsort matrix": (lambda xp, x: xp.lexsort(x), K),
    "lexsort axis": (lambda xp, x, y: xp.lexsort((x, y), axis=0), A, K),
    "partition": (lambda xp, x: xp.partition(x, 2, axis=1)[:, 2], A),
    "argpartition": (lambda xp, x: xp.argpartition(x, 1)[:, 1], A),
    "searchsorted": (lambda xp, x, v: xp.searchsorted(xp.sort(x[0]), v), K, K),
    "searchsorted right": (lambda xp, x, v: xp.searchsorted(xp.sort(x[0]), v, side="right"), K, K),
    "searchsorted scalar": (lambda xp, x: xp.searchsorted(xp.sort(x[0]), 0.1), A),
    "searchsorted sorter": (lambda xp, x, v: xp.searchsorted(x[0], v, sorter=xp.argsort(x[0])), A, B),
    "searchsorted nan": (lambda xp, x, v: xp.searchsorted(xp.sort(x[0]), v), N, N),
    "searchsorted nan right": (lambda xp, x, v: xp.searchsorted(xp.sort(x[0]), v, side="right"), N, N),
    "searchsorted mixed": (lambda xp, x, v: xp.searchsorted(xp.sort(x[0]), v), K, A),
    "searchsorted complex": (lambda xp, x, v: xp.searchsorted(xp.sort(x[0]), v, side="right"), C, C),
    "digitize": (lambda xp, x, b: xp.digitize(x, xp.sort(b[0])), A, B),
    "digitize right": (lambda xp, x, b: xp.digitize(x, xp.sort(b[0]), right=True), K, K),
    "digitize down": (lambda xp, x, b: xp.digitize(x, -xp.sort(-b[0])), K, K),
    "where": (lambda xp, m, x, y: xp.where(m, x, y), M, A, K),
    "where broadcast": (lambda xp, m, x: xp.where(m, x[0], 0), M, A),
    "select": (lambda xp, x, y: xp.select([x > 0.5, x > 0], [x, y], -1.0), A, K),
    "select default": (lambda xp, x: xp.select([x > 0.5, x > 5], [x[0], 3.0]), A),
    "unravel_index": (lambda xp, i: xp.unravel_index(i, (3, 4)), K),
    "unravel_index 1": (lambda xp, i: xp.unravel_index(i, 4), K),
    "ravel_multi_index clip": (lambda xp, i: xp.ravel_multi_index((i % 3, i + 2), (3, 4), mode="clip"), K),
    "ravel_multi_index wrap": (lambda xp, i: xp.ravel_multi_index((i % 3, i - 3), (3, 4), ("clip", "wrap"), "F"), K),
    "choose wrap": (lambda xp, i, x, y: xp.choose(i, [x, y, 2.0], mode="wrap"), K, A, B),
    "choose clip": (lambda xp, i, x: xp.choose(i - 1, x, mode="clip"), K, A),
    "piecewise": (lambda xp, x: xp.piecewise(x, [x < 0, x >= 0], [lambda v: v * v, 7.0]), A),
    "piecewise rest": (lambda xp, x: xp.piecewise(x, [x < -0.5, x < 0.5], [-1.0, lambda v, k: k * v, 2.0], 3.0), A),
    "piecewise one": (lambda xp, x: xp.piecewise(x[0], x[0] > 0, [1.0, 2.0]), A),
    "piecewise bools": (lambda xp, x: xp.piecewise(x[0], [True, False, False, True], [1.0, 2.0]), A),
    "piecewise matrix": (lambda xp, x: xp.piecewise(x[0], x[1:] > 0, [1.0, 2.0]), A),
    "piecewise scalar": (lambda xp, x: xp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 5.0]), np.asarray(2.0)),
    "piecewise int": (lambda xp, x: xp.piecewise(x, [x > 1], [lambda v: v * 2.5]), K),
}  # fmt: skip


@pytest.mark.parametrize("row", list(SORTS))
def test_as_numpy(row):
    f, *arrays = SORTS[row]
    check(f, *arrays)


def test_complex_with_nan_sorts_as_numpy():
    same(S.sort(CN), np.sort(CN))
    table = np.sort(CN)
    for side in ("left", "right"):
        got = S.searchsorted(table, CN, side=side)
        assert [int(i) for i in got] == [int(np.searchsorted(table, v, side=side)) for v in CN]


def test_sort_complex():
    with atled.enable_x64():
        same(S.sort_complex(jnp.asarray(A)), np.sort_complex(A))
        same(S.sort_complex(jnp.asarray(K)), np.sort_complex(K))


VALUE_DEPENDENT = {
    "nonzero": (lambda xp, x: xp.nonzero(x), K),
    "nonzero nan": (lambda xp, x: xp.nonzero(x), N),
    "nonzero empty": (lambda xp, x: xp.nonzero(x), np.zeros((0, 3))),
    "flatnonzero": (lambda xp, x: xp.flatnonzero(x), K),
    "argwhere": (lambda xp, x: xp.argwhere(x), K),
    "argwhere 0-d": (lambda xp, x: xp.argwhere(x), np.asarray(3.0)),
    "argwhere 0-d false": (lambda xp, x: xp.argwhere(x), np.asarray(0.0)),
    "where": (lambda xp, x: xp.where(x), M),
    "extract": (lambda xp, m, x: xp.extract(m, x), M, A),
    "compress": (lambda xp, m, x: xp.compress(m[0], x, axis=1), M, A),
    "compress short": (lambda xp, m, x: xp.compress(m[0], x, axis=-1), M[:, :2], A),
    "compress flat": (lambda xp, m, x: xp.compress(m[0], x), M, A),
    "trim_zeros": (lambda xp, x: xp.trim_zeros(x), np.array([0, 0, 1, 0, 2, 0])),
    "trim_zeros f": (lambda xp, x: xp.trim_zeros(x, "f"), np.array([0.0, 0, 1, 2, 0])),
    "trim_zeros none": (lambda xp, x: xp.trim_zeros(x), np.zeros(3)),
    "trim_zeros matrix": (lambda xp, x: xp.trim_zeros(x), np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]])),
    "trim_zeros axis": (lambda xp, x: xp.trim_zeros(x, axis=1), np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]])),
    "choose": (lambda xp, i, x: xp.choose(i % 3, [x, x * 2, 7.0]), K, A),
    "ravel_multi_index": (lambda xp, i: xp.ravel_multi_index((i % 3, i), (3, 4)), K),
}  # fmt: skip


@pytest.mark.parametrize("row", list(VALUE_DEPENDENT))
def test_value_dependent_as_numpy(row):
    f, *arrays = VALUE_DEPENDENT[row]
    check(f, *arrays, eager_only=True)


@pytest.mark.parametrize("size", [0, 2, 12, 20])
def test_nonzero_with_size(size):
    want = np.nonzero(K)
    count = len(want[0])

    def padded(w, fill):
        return np.concatenate([w[:size], np.full(max(size - count, 0), fill)]).astype(np.int32)

    f = atled.jit(lambda x: S.nonzero(x, size=size, fill_value=(-1, 9)))
    same(f(K), [padded(want[0], -1), padded(want[1], 9)])
    same(S.flatnonzero(K, size=size, fill_value=5), padded(np.flatnonzero(K), 5))
    same(S.argwhere(K, size=size), np.stack([padded(want[0], 0), padded(want[1], 0)], 1))
    batch = np.stack([K, np.zeros_like(K), K.T.reshape(3, 4)])
    got = atled.vmap(lambda x: S.where(x > 1, size=size, fill_value=-1))(batch)
    for k in range(3):
        same([g[k] for g in got], S.where(batch[k] > 1, size=size, fill_value=-1))
    same(S.nonzero(np.zeros((0, 2)), size=3, fill_value=7), [np.full(3, 7, np.int32)] * 2)


@pytest.mark.parametrize("size", [0, 1, 3, 6])
def test_compress_and_extract_with_size(size):
    mask = np.array([True, False, True, True])
    x = A.astype(np.float32)
    want = np.full((3, size), 9.0, np.float32)
    kept = np.compress(mask, x, 1)[:, :size]
    want[:, : kept.shape[1]] = kept
    same(atled.jit(lambda m, x: S.compress(m, x, 1, size=size, fill_value=9.0))(mask, x), want)
    found = x[M][:size]
    same(S.extract(M, x, size=size), np.concatenate([found, np.zeros(max(size - len(found), 0), np.float32)]))
    same(S.compress(np.zeros(0, bool), np.zeros((2, 0), np.float32), 1, size=size), np.zeros((2, size), np.float32))


def test_descending():
    x = TIES
    assert [int(i) for i in S.argsort(x, descending=True)] == [0, 2, 5, 1, 3, 6, 4]
    same(S.sort(A, descending=True, axis=0), np.sort(A, 0)[::-1])
    same(S.sort(np.array([1.0, NAN, 3.0]), descending=True), np.array([NAN, 3.0, 1.0]))
    assert [int(i) for i in S.argsort(np.array([1.0, NAN, 3.0]), descending=True)] == [1, 2, 0]
    same(S.sort(A, stable=False), np.sort(A))
    for dtype in (np.uint8, np.int8):
        assert [int(i) for i in S.argsort(x, descending=True, dtype=dtype)] == [0, 2, 5, 1, 3, 6, 4]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "uint8", "int64", "float64"])
def test_dtypes_of_results(dtype):
    x = jnp.asarray(TIES).astype(dtype)
    assert S.sort(x).dtype == x.dtype
    assert S.argsort(x).dtype == np.int32 and S.searchsorted(S.sort(x), x).dtype == np.int32
    same(np.asarray(S.sort(x)).astype(np.float32), np.sort(TIES).astype(np.float32))
    assert S.argsort(x, dtype="int16").dtype == np.int16
    with atled.enable_x64():
        assert S.argsort(x).dtype == np.int64 and S.nonzero(x)[0].dtype == np.int64
    assert S.nonzero(x)[0].dtype == np.int32 and S.nonzero(x, size=2)[0].dtype == np.int32


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 100])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_of_every_length(n, side):
    table = np.sort(np.random.RandomState(n).randint(0, 40, n)).astype(np.float32)
    values = np.arange(-1.0, 42.0, 0.5, np.float32)
    got = [np.asarray(S.searchsorted(table, values, side=side, method=m)) for m in ("scan", "sort", "compare_all")]
    for g in got:
        np.testing.assert_array_equal(g, np.searchsorted(table, values, side=side))


def test_searchsorted_batches_either_operand():
    tables, values = np.sort(R.randn(3, 9), 1), R.randn(3, 2, 5)
    for axes in ((0, 0), (0, None), (None, 0)):
        args = [v if a == 0 else v[0] for v, a in zip((tables, values), axes, strict=True)]
        got = np.asarray(atled.vmap(S.searchsorted, in_axes=axes)(*args))
        for k in range(3):
            a, v = (x[k] if i == 0 else x for x, i in zip(args, axes, strict=True))
            np.testing.assert_array_equal(got[k], np.searchsorted(a, v))


DERIVATIVES = {
    "sort": (lambda x: S.sort(x, 0), A),
    "sort flat": (lambda x: S.sort(x, None) ** 2, A),
    "sort descending": (lambda x: S.sort(x, descending=True), A),
    "partition": (lambda x: S.partition(x, 1), A),
    "where": (lambda x, y: S.where(x > 0, x * y, y), A, B),
    "extract": (lambda x: S.extract(M, x), A),
    "compress size": (lambda x: S.compress(M[0], x, 1, size=3, fill_value=2.0) ** 2, A),
    "select": (lambda x, y: S.select([x > 0.5, x > 0], [x * y, y], 1.0), A, B),
    "piecewise": (lambda x: S.piecewise(x, [x > 0], [lambda v: v**3, lambda v: -v]), A),
    "choose": (lambda x, y: S.choose(K % 2, [x, y**2]), A, B),
    "through searchsorted": (lambda x: x * S.searchsorted(S.sort(x[0]), x), A),
}


@pytest.mark.parametrize("row", list(DERIVATIVES))
def test_derivatives(row):
    f, *xs = DERIVATIVES[row]
    check_derivative(f, *xs)


def test_out_of_bounds_indices_move_inside():
    got = S.unravel_index(np.array([-1, 7, 100, -100]), (2, 4))
    assert [[int(v) for v in g] for g in got] == [[1, 1, 1, 0], [3, 3, 3, 0]]


@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        (lambda: S.sort([3, 1]), TypeError, "sort: expected an array or a number; got list"),
        (lambda: S.sort(np.float32(1.0)), ValueError, "sort: axis -1 is out of bounds for an array with 0 axes"),
        (lambda: S.argsort(A, 2), ValueError, "argsort: axis 2 is out of bounds"),
        (lambda: S.sort(A, order="x"), ValueError, "sort: arrays have no fields"),
        (lambda: S.lexsort(()), TypeError, "lexsort: at least one key"),
        (lambda: S.lexsort((A[0], A)), ValueError, r"lexsort: keys must have the same shape; got f64\[4\], f64\[3,4\]"),
        (lambda: S.partition(A, 9), ValueError, "partition: position 9 is out of bounds for 4 elements"),
        (lambda: S.searchsorted(A, 1.0), ValueError, r"searchsorted: a must have one axis; got f64\[3,4\]"),
        (lambda: S.searchsorted(A[0], 1.0, side="up"), ValueError, "searchsorted: the side is"),
        (lambda: S.searchsorted(A[0], 1.0, method="x"), ValueError, "searchsorted: the method is"),
        (lambda: S.nonzero(np.float32(1.0)), ValueError, "nonzero: a 0-d array"),
        (lambda: S.nonzero(A, size=-1), ValueError, "nonzero: size must not be negative"),
        (
            lambda: S.nonzero(A, size=2, fill_value=(1, 2, 3)),
            ValueError,
            "nonzero: one fill value is needed for each axis",
        ),
        (lambda: S.where(M, A), ValueError, "where: x and y must both be given"),
        (lambda: S.where(M, A, A, size=3), ValueError, "where: `size` and `fill_value`"),
        (lambda: S.compress(np.array([False] * 4 + [True]), A, 1), ValueError, "compress: the condition holds at 4"),
        (lambda: S.choose(K + 1, [A, A]), ValueError, "choose: positions must be between 0 and 1"),
        (lambda: S.choose(A, [A, A]), TypeError, "choose: positions must be integers"),
        (lambda: S.select([M], [A, A]), ValueError, "select: conditions and choices must have the same length"),
        (lambda: S.select([A], [A]), TypeError, r"select: conditions must be arrays of bools; got f64\[3,4\]"),
        (lambda: S.piecewise(A, [A > 0], [1.0, 2.0, 3.0]), ValueError, "piecewise: 1 conditions need"),
        (lambda: S.ravel_multi_index((K, K), (2, 2)), ValueError, "ravel_multi_index: positions must be"),
        (lambda: S.unravel_index(A, (2, 2)), TypeError, "unravel_index: indices must be integers"),
        (lambda: S.trim_zeros(A[0], "x"), ValueError, "trim_zeros: trim must consist of"),
    ],
)
def test_messages(f, kind, message):
    with pytest.raises(kind, match=message):
        f()


@pytest.mark.parametrize(
    "f",
    [
        S.nonzero,
        S.flatnonzero,
        S.argwhere,
        S.where,
        S.trim_zeros,
        lambda x: S.extract(x > 0, x),
        lambda x: S.choose(x, [x]),
    ],
)
def test_traced_values_say_the_way_out(f):
    with pytest.raises(errors.ConcretizationTypeError, match=r"(?s)depends on values.*try: "):
        atled.jit(f)(np.arange(3))
