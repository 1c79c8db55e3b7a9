"""Sets of values, against NumPy: values, fixed sizes under jit and vmap, NaN, empty arrays, derivatives, messages."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import errors

S = importlib.import_module("atled.numpy.set_operations")
R = np.random.RandomState(0)
NAN = np.nan
K, J = R.randint(0, 5, (3, 4)), R.randint(2, 9, (2, 3))
F = np.round(R.randn(3, 4))
N = np.array([[3.0, NAN, 1.0], [NAN, 3.0, 0.0]])
C = np.round(R.randn(6)) + 1j * np.round(R.randn(6))
CN = np.array([1.0, complex(NAN, 1), complex(0, NAN), 1.0, complex(NAN, NAN)])
BOOLS = np.array([True, False, True])
EMPTY = np.zeros((0,), np.int64)
ROWS = np.array([[1, 2], [0, 5], [1, 2], [0, 4]])
LONG = R.randint(0, 40, 30)


def leaves(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def same(got: Any, want: Any) -> None:
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape and g.dtype.kind == w.dtype.kind, (g.shape, w.shape, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=1e-9)


CASES = {
    "unique": (lambda xp, x: xp.unique(x), K),
    "unique floats": (lambda xp, x: xp.unique(x), F),
    "unique bools": (lambda xp, x: xp.unique(x, return_counts=True), BOOLS),
    "unique complex": (lambda xp, x: xp.unique(x, return_index=True, return_inverse=True), C),
    "unique all flags": (lambda xp, x: xp.unique(x, True, True, True), K),
    "unique scalar": (lambda xp, x: xp.unique(x, True, True, True), np.asarray(3.0)),
    "unique empty": (lambda xp, x: xp.unique(x, True, True, True), EMPTY),
    "unique nan": (lambda xp, x: xp.unique(x, True, True, True), N),
    "unique nan apart": (lambda xp, x: xp.unique(x, return_counts=True, equal_nan=False), N),
    "unique rows": (lambda xp, x: xp.unique(x, True, True, True, axis=0), ROWS),
    "unique columns": (lambda xp, x: xp.unique(x, True, True, True, axis=1), ROWS.T),
    "unique negative axis": (lambda xp, x: xp.unique(x, axis=-1), ROWS.T),
    "unique blocks": (lambda xp, x: xp.unique(x, axis=1), np.stack([ROWS, ROWS + 1])),
    "unique_values": (lambda xp, x: np.sort(np.asarray(xp.unique_values(x))), K),
    "unique_counts": (lambda xp, x: xp.unique_counts(x), N),
    "unique_inverse": (lambda xp, x: xp.unique_inverse(x), K),
    "unique_all": (lambda xp, x: xp.unique_all(x), K),
    "isin": (lambda xp, x, y: xp.isin(x, y), K, J),
    "isin long": (lambda xp, x, y: xp.isin(x, y), K, LONG),
    "isin long inverted": (lambda xp, x, y: xp.isin(x, y, invert=True), J, LONG),
    "isin nan": (lambda xp, x, y: xp.isin(x, y), N, np.array([NAN, 3.0])),
    "isin long nan": (lambda xp, x, y: xp.isin(x, y), N, np.array([NAN, 3.0] * 6)),
    "isin empty": (lambda xp, x, y: xp.isin(x, y), K, EMPTY),
    "isin mixed": (lambda xp, x, y: xp.isin(x, y), F, J),
    "isin scalar": (lambda xp, x: xp.isin(2, x), J),
    "intersect1d": (lambda xp, x, y: xp.intersect1d(x, y), K, J),
    "intersect1d indices": (lambda xp, x, y: xp.intersect1d(x, y, return_indices=True), K, J),
    "intersect1d none": (lambda xp, x, y: xp.intersect1d(x, y, return_indices=True), K, J + 50),
    "intersect1d empty": (lambda xp, x, y: xp.intersect1d(x, y), EMPTY, J),
    "intersect1d empty other": (lambda xp, x, y: xp.intersect1d(x, y), K, EMPTY),
    "intersect1d nan": (lambda xp, x, y: xp.intersect1d(x, y), N, np.array([NAN, 3.0, 3.0])),
    "setdiff1d": (lambda xp, x, y: xp.setdiff1d(x, y), K, J),
    "setdiff1d unique": (lambda xp, x, y: xp.setdiff1d(x, y, assume_unique=True), K[0] + np.arange(4) * 5, K[1]),
    "setdiff1d nan": (lambda xp, x, y: xp.setdiff1d(x, y), N, np.array([NAN, 3.0])),
    "setdiff1d empty": (lambda xp, x, y: xp.setdiff1d(x, y), EMPTY, J),
    "setdiff1d nothing": (lambda xp, x, y: xp.setdiff1d(x, y), K, EMPTY),
    "setxor1d": (lambda xp, x, y: xp.setxor1d(x, y), K, J),
    "setxor1d nan": (lambda xp, x, y: xp.setxor1d(x, y), N, np.array([NAN, 3.0, 7.0])),
    "setxor1d complex": (lambda xp, x, y: xp.setxor1d(x, y), C, C[:3] + 1),
    "setxor1d empty": (lambda xp, x, y: xp.setxor1d(x, y), K, EMPTY),
    "union1d": (lambda xp, x, y: xp.union1d(x, y), K, J),
    "union1d mixed": (lambda xp, x, y: xp.union1d(x, y), F, J),
    "union1d empty": (lambda xp, x, y: xp.union1d(x, y), EMPTY, J),
    "bincount": (lambda xp, x: xp.bincount(x.ravel()), K),
    "bincount minlength": (lambda xp, x: xp.bincount(x.ravel(), minlength=9), K),
    "bincount weights": (lambda xp, x, w: xp.bincount(x.ravel(), w.ravel()), K, F),
    "bincount empty": (lambda xp, x: xp.bincount(x, minlength=2), EMPTY),
    "bincount unsigned": (lambda xp, x: xp.bincount(x), np.array([3, 1, 3], np.uint8)),
}  # fmt: skip


@pytest.mark.parametrize("row", list(CASES))
def test_as_numpy(row):
    f, *arrays = CASES[row]
    with atled.enable_x64():
        want = f(np, *arrays)
        same(f(S, *arrays), want)
        same(f(S, *[jnp.asarray(x) for x in arrays]), want)


def test_complex_nan_are_one():
    got, counts = S.unique(CN, return_counts=True)
    assert got.shape == (2,) and [int(c) for c in counts] == [2, 3]


def test_rows_with_nan_are_equal_if_nan_is():
    x = np.array([[NAN, 1.0], [NAN, 1.0], [0.0, 1.0]])
    assert S.unique(x, axis=0).shape == (2, 2) and S.unique(x, axis=0, equal_nan=False).shape == (3, 2)


def test_rows_without_columns_are_one():
    assert S.unique(np.zeros((3, 0)), axis=0).shape == (1, 0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint32", "bool"])
def test_dtypes(dtype):
    x = jnp.asarray(np.array([3, 0, 3, 1])).astype(dtype)
    got, index = S.unique(x, return_index=True)
    assert got.dtype == x.dtype and index.dtype == np.int32
    assert S.union1d(x, x).dtype == x.dtype and S.bincount(np.array([1, 2])).dtype == np.int32
    assert S.bincount(np.array([1, 1]), jnp.ones(2, dtype)).dtype == (np.int32 if dtype == "bool" else x.dtype)


# -- fixed sizes: what jax.numpy gives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 2, 3, 5])
@pytest.mark.parametrize("fill", [None, 9.0])
def test_unique_with_size(size, fill):
    x = np.array([3.0, 1.0, 2.0, 1.0, 3.0], np.float32)
    f = lambda x: S.unique(x, True, True, True, size=size, fill_value=fill)
    values, index, counts = np.array([1.0, 2.0, 3.0]), np.array([1, 2, 0]), np.array([2, 1, 2])
    missing = max(size - 3, 0)
    want = [
        np.concatenate([values[:size], np.full(missing, 1.0 if fill is None else fill)]).astype(np.float32),
        np.concatenate([index[:size], np.full(missing, 1)]).astype(np.int32),
        np.array([2, 0, 1, 0, 2], np.int32),
        np.concatenate([counts[:size], np.zeros(missing)]).astype(np.int32),
    ]
    same(f(x), want)
    same(atled.jit(f)(x), want)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_with_size_batches(axis):
    x = np.round(R.randn(3, 4, 5)).astype(np.float32)
    f = lambda v: S.unique(v, True, True, True, axis=axis, size=3)
    got = atled.jit(atled.vmap(f))(x)
    for k in range(3):
        same([g[k] for g in got], f(x[k]))
        full = np.unique(x[k], axis=axis)
        count = min(3, full.shape[axis or 0])
        np.testing.assert_array_equal(
            np.take(np.asarray(got[0][k]), range(count), axis or 0), np.take(full, range(count), axis or 0)
        )


def test_two_sets_with_size():
    a, b = np.array([3, 1, 2, 3], np.int32), np.array([2, 3, 7], np.int32)
    i32 = lambda *v: np.array(v, np.int32)
    rows = [
        (lambda a, b: S.intersect1d(a, b, False, True, size=4), [i32(2, 3, 2, 2), i32(2, 0, 4, 4), i32(0, 1, 3, 3)]),
        (lambda a, b: S.intersect1d(a, b, size=3, fill_value=-1), i32(2, 3, -1)),
        (lambda a, b: S.intersect1d(a, b + 50, size=2), i32(0, 0)),
        (lambda a, b: S.intersect1d(a, b, size=1), i32(2)),
        (lambda a, b: S.setdiff1d(a, b, size=3), i32(1, 0, 0)),
        (lambda a, b: S.setdiff1d(a, b, size=3, fill_value=8), i32(1, 8, 8)),
        (lambda a, b: S.setxor1d(a, b, size=3), i32(1, 7, 1)),
        (lambda a, b: S.setxor1d(a, b, size=3, fill_value=5), i32(1, 7, 5)),
        (lambda a, b: S.union1d(a, b, size=6), i32(1, 2, 3, 7, 1, 1)),
        (lambda a, b: S.union1d(a, b, size=6, fill_value=0), i32(1, 2, 3, 7, 0, 0)),
    ]  # fmt: skip
    for n, (f, want) in enumerate(rows):
        same(f(a, b), want)
        same(atled.jit(f)(a, b), want)
        got = leaves(atled.vmap(f)(np.stack([a, a[::-1], a + 1]), np.stack([b, b, b[::-1]])))
        assert len(got) == len(leaves(want)), n
        same([g[2] for g in got], f(a + 1, b[::-1]))


def test_isin_and_bincount_transform():
    got = atled.jit(atled.vmap(S.isin))(np.stack([K, K + 1]), np.stack([LONG, LONG[::-1] + 2]))
    same(got, np.stack([np.isin(K, LONG), np.isin(K + 1, LONG + 2)]))
    got = atled.jit(atled.vmap(lambda x: S.bincount(x, length=4)))(K)
    same(got, np.stack([np.bincount(row, minlength=5)[:4] for row in K]))
    assert [int(v) for v in S.bincount(np.array([-1, 2, 9, 2**32]), length=3)] == [1, 0, 1]
    assert int(S.bincount(np.array([100, 100], np.int8), length=300)[100]) == 2
    assert int(S.bincount(np.array([2**32 - 1, 1], np.uint32), length=3)[1]) == 1
    slope = atled.grad(lambda w: jnp.sum(S.bincount(np.array([0, 2, 2]), w, length=3) ** 2))(jnp.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(np.asarray(slope), [2.0, 10.0, 10.0])


def test_unique_has_derivatives():
    x = jnp.array([3.0, 1.0, 2.0, 1.0])
    weights = jnp.array([1.0, 10.0, 100.0])
    for f in (lambda x: jnp.sum(S.unique(x) * weights), lambda x: jnp.sum(S.unique(x, size=3) * weights)):
        np.testing.assert_allclose(np.asarray(atled.grad(f)(x)), [100.0, 1.0, 10.0, 0.0])
    both = lambda x: jnp.sum(S.intersect1d(x, jnp.array([2.0, 3.0, 5.0])) * jnp.array([1.0, 10.0]))
    np.testing.assert_allclose(np.asarray(atled.grad(both)(x)), [10.0, 0.0, 1.0, 0.0])


def test_named_results():
    found = S.unique_all(np.array([2, 1, 2]))
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    assert S.unique_counts(np.array([2]))._fields == ("values", "counts")
    assert atled.jit(lambda x: S.unique_inverse(x, size=2))(np.array([2, 1]))._fields == ("values", "inverse_indices")


@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        (
            lambda: S.unique(EMPTY, size=2),
            ValueError,
            r"unique: `fill_value` is needed for 2 elements, because there are none; got i64\[0\]",
        ),
        (lambda: S.unique(K, axis=2), ValueError, "unique: axis 2 is out of bounds"),
        (lambda: S.unique(K, size=-2), ValueError, "unique: size must not be negative"),
        (lambda: S.unique([1, 2]), TypeError, "unique: expected an array or a number; got list"),
        (lambda: S.isin(K, J, method="x"), ValueError, "isin: the method is"),
        (lambda: S.bincount(F[0]), TypeError, r"bincount: integers with one axis are needed; got f64\[4\]"),
        (lambda: S.bincount(np.array([-1])), ValueError, "bincount: the numbers must not be negative"),
        (lambda: S.bincount(K[0], np.ones(2)), ValueError, "bincount: one weight is needed"),
    ],
)
def test_messages(f, kind, message):
    with pytest.raises(kind, match=message):
        f()


@pytest.mark.parametrize(
    "f",
    [
        S.unique,
        S.unique_all,
        S.bincount,
        lambda x: S.union1d(x, x),
        lambda x: S.setdiff1d(x, x),
        lambda x: S.intersect1d(x, x),
    ],
)
def test_traced_values_say_the_way_out(f):
    with pytest.raises(errors.ConcretizationTypeError, match=r"(?s)depends on values.*try: .*(size|length)"):
        atled.jit(f)(np.arange(3))
