"""Edits, grids, index arrays, bits and spaced numbers against NumPy."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.numpy import bitwise, index_grids, insert_delete, ranges, triangular
from atled.numpy.bitwise import packbits, unpackbits
from atled.numpy.index_grids import c_, index_exp, ix_, meshgrid, mgrid, ogrid, r_, s_
from atled.numpy.insert_delete import delete, fill_diagonal, insert, place, put, put_along_axis, resize
from atled.numpy.ranges import geomspace, logspace
from atled.numpy.triangular import (
    diag_indices,
    diag_indices_from,
    mask_indices,
    tri,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
)

R = np.random.RandomState(0)
A = R.randn(3, 4)
COUNT = np.arange(6)
ConcretizationTypeError = atled.errors.ConcretizationTypeError


def same(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def check_gradient(f: Any, x: np.ndarray) -> None:
    with atled.enable_x64():
        weights = np.random.RandomState(1).randn(*f(jnp.asarray(x)).shape)
        loss = lambda x: jnp.sum(jnp.sin(f(x)) * weights)
        found = np.asarray(atled.grad(loss)(jnp.asarray(x)))
        h, want = 1e-6, np.zeros_like(x)
        for i in np.ndindex(*x.shape):
            step = np.zeros_like(x)
            step[i] = h
            want[i] = (float(loss(jnp.asarray(x + step))) - float(loss(jnp.asarray(x - step)))) / (2 * h)
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-7)


def changed(f: Any, x: np.ndarray, *args: Any, **options: Any) -> np.ndarray:
    """What a NumPy function that works in place makes of x."""
    out = x.copy()
    f(out, *args, **options)
    return out


# -- insert and delete ------------------------------------------------------------------------------------------------

INSERTS: list[tuple[Any, ...]] = [
    (COUNT, 1, 9),
    (COUNT, -1, 9),
    (COUNT, 6, 9),
    (COUNT, -6, 9),
    (COUNT, [1], 9),
    (COUNT, [1, 1, 4], [7, 8, 9]),
    (COUNT, [4, 0, 4], [7, 8, 9]),
    (COUNT, [2, -1], 7),
    (COUNT, 2, [7, 8, 9]),
    (COUNT, slice(1, 5, 2), 9),
    (COUNT, slice(None), 9),
    (COUNT, slice(4, 1, -1), [7, 8, 9]),
    (COUNT, [], 1),
    (COUNT, np.asarray([True, False, False, True, False, False]), 5),
    (COUNT, 2, 3.7),
    (A, 1, 5.0, 1),
    (A, 1, 5.0),
    (A, 1, A[:, 0], 1),
    (A, 1, A[:1], 0),
    (A, [1], A[:, :1], 1),
    (A, 1, [[7.0], [8.0], [9.0]], 1),
    (A, [0, 2], A[:, :2], 1),
    (A, [0, 2], [[1.0], [2.0]], 0),
    (A, -1, A[0], -2),
    (A, slice(0, 2), 1.0, 0),
    (np.zeros(0), 0, 1.0),
    (np.zeros((0, 2)), 0, [1.0, 2.0], 0),
    (A > 0, 1, True, 0),
]


@pytest.mark.parametrize("arguments", INSERTS, ids=lambda a: f"{a[0].shape}-{a[1]}-{np.shape(a[2])}-{a[3:]}")
def test_insert(arguments):
    with atled.enable_x64():
        same(insert(*arguments), np.insert(*arguments))
        same(atled.jit(lambda x: insert(x, *arguments[1:]))(arguments[0]), np.insert(*arguments))


DELETES: list[tuple[Any, ...]] = [
    (COUNT, 1),
    (COUNT, -1),
    (COUNT, [0, 2]),
    (COUNT, [2, 2, -1, 5]),
    (COUNT, slice(1, 5, 2)),
    (COUNT, slice(4, 1, -1)),
    (COUNT, []),
    (COUNT, slice(None)),
    (COUNT, np.asarray([True, False, True, False, False, False])),
    (A, 1, 1),
    (A, 1),
    (A, [0, -1], 0),
    (A, slice(0, 2), -1),
    (COUNT, np.asarray([3], "uint8")),
    (A > 0, [1, 2], 1),
]


@pytest.mark.parametrize("arguments", DELETES, ids=lambda a: f"{a[0].shape}-{a[1]}-{a[2:]}")
def test_delete(arguments):
    same(delete(*arguments), np.delete(*arguments))
    same(atled.jit(lambda x: delete(x, *arguments[1:]))(arguments[0]), np.delete(*arguments))


def test_traced_positions():
    for i in ([1, 4], [4, 1], [-1, 0], [3, 3]):
        position = np.asarray(i)
        same(atled.jit(lambda i: insert(COUNT, i, np.asarray([8, 9])))(position), np.insert(COUNT, i, [8, 9]))
        if len(set(i)) == 2:
            same(atled.jit(lambda i: delete(COUNT, i, assume_unique_indices=True))(position), np.delete(COUNT, i))
    for i in (0, 2, -1):
        same(atled.jit(lambda i: insert(A, i, 5.0, 1))(i), np.insert(A, i, 5.0, 1))
        same(atled.jit(lambda i: delete(A, i, 0))(i), np.delete(A, i, 0))
    same(atled.vmap(lambda i: delete(COUNT, i))(np.arange(6)), np.stack([np.delete(COUNT, i) for i in range(6)]))
    same(
        atled.vmap(lambda x, i: insert(x, i, 9.0), (1, 0))(A, np.asarray([0, 1, 2, 3])),
        np.stack([np.insert(A[:, k], k, 9.0) for k in range(4)]),
    )


def test_gradients_of_edits():
    check_gradient(lambda x: insert(x, np.asarray([0, 2, 2]), 5.0, 1), A)
    check_gradient(lambda v: insert(jnp.asarray(A), np.asarray([0, 2]), v, 1), R.randn(3, 2))
    check_gradient(lambda x: delete(x, np.asarray([0, 2]), 1), A)
    check_gradient(lambda x: resize(x, (5, 3)), R.randn(2, 2))
    check_gradient(lambda x: fill_diagonal(x, 2.0, inplace=False), A)
    check_gradient(lambda v: fill_diagonal(jnp.asarray(A), v, inplace=False), R.randn(2))
    check_gradient(lambda x: put(x, np.asarray([0, 5]), 2.0, inplace=False), A)
    check_gradient(lambda v: put(jnp.asarray(A), np.asarray([0, 5, 7]), v, inplace=False), R.randn(2))
    check_gradient(lambda v: place(jnp.asarray(A), A > 0, v, inplace=False), R.randn(2))
    check_gradient(
        lambda v: put_along_axis(jnp.asarray(A), np.argmax(A, 1)[:, None], v, 1, inplace=False), R.randn(3, 1)
    )
    check_gradient(lambda v: jnp.stack(meshgrid(v, v * 2)), R.randn(3))
    check_gradient(lambda v: geomspace(v[0], v[1], 4), np.asarray([1.5, 20.0]))
    check_gradient(lambda v: logspace(v[0], v[1], 4, base=v[2]), np.asarray([0.5, 1.5, 2.0]))


@pytest.mark.parametrize("dims", [(2, 5), 7, (0, 3), (), (2, 1, 3), (1,)])
def test_resize(dims):
    for x in (np.arange(3), A, np.asarray(5.0)):
        same(resize(x, dims), np.resize(x, dims))
    same(resize(np.zeros(0), dims), np.resize(np.zeros(0), dims))


# -- writes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(3, 3), (2, 4), (5, 2), (7, 3), (3, 3, 3), (1, 1), (0, 2)])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("value", [5.0, [1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]])
def test_fill_diagonal(dims, wrap, value):
    x = R.randn(*dims)
    want = changed(np.fill_diagonal, x, value, wrap)
    same(fill_diagonal(x, value, wrap, inplace=False), want)
    same(atled.vmap(lambda x: fill_diagonal(x, value, wrap, inplace=False))(np.stack([x, x])), np.stack([want, want]))


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize(
    "ind, v",
    [([0, 5], [8, 9]), ([0, -1, 99], 7), ([[3, 2], [1, -30]], [1, 2, 3]), (2, 5), ([], 5), ([1, 2], [3, 4, 5])],
)
def test_put(ind, v, mode):
    x = np.arange(12).reshape(3, 4)
    want = changed(np.put, x, np.asarray(ind, int), v, mode)
    same(put(x, ind, v, mode, inplace=False), want)
    same(atled.jit(lambda x: put(x, ind, v, mode, inplace=False))(x), want)
    if np.all(np.abs(ind) < 12):
        same(put(x, ind, v, inplace=False), changed(np.put, x, np.asarray(ind, int), v))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_put_along_axis(axis):
    x = R.randn(3, 4)
    order = np.argsort(x, axis)
    values = R.randn(*order.shape)
    same(put_along_axis(x, order, values, axis, inplace=False), changed(np.put_along_axis, x, order, values, axis))
    same(put_along_axis(x, order - order.max() - 1, 2.0, axis, inplace=False), np.full(x.shape, 2.0))
    want = changed(np.put_along_axis, x, order[:1], 9.0, axis)
    same(put_along_axis(x, order[:1], 9.0, axis, inplace=False), want)
    same(
        atled.vmap(lambda x: put_along_axis(x, order[:1], 9.0, axis, inplace=False))(np.stack([x, x])),
        np.stack([want, want]),
    )


def test_put_along_axis_out_of_bounds():
    x = np.zeros((2, 3))
    i = np.asarray([[1], [5]])
    assert put_along_axis(x, i, 9.0, 1, inplace=False).tolist() == [[0, 9, 0], [0, 0, 0]]
    assert put_along_axis(x, i, 9.0, 1, inplace=False, mode="clip").tolist() == [[0, 9, 0], [0, 0, 9]]


@pytest.mark.parametrize("values", [5.0, [1.0, 2.0], [1.0, 2.0, 3.0], np.arange(20.0)])
def test_place(values):
    mask = A > 0
    want = changed(np.place, A, mask, values)
    same(place(A, mask, values, inplace=False), want)
    same(place(A, mask.ravel().astype(int), values, inplace=False), want)
    same(atled.jit(lambda m: place(A, m, values, inplace=False))(mask), want)
    same(atled.vmap(lambda m: place(A, m, values, inplace=False))(np.stack([mask, ~mask]))[0], want)


def test_arrays_are_not_changed_in_place():
    calls = [
        lambda: fill_diagonal(A, 1.0),
        lambda: put(A, 0, 1.0),
        lambda: put_along_axis(A, A.argsort(1), 1.0, 1),
        lambda: place(A, A > 0, 1.0),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match=r"(?s): arrays are immutable, .*inplace=False\)"):
            call()


# -- grids and index arrays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid(count, sparse, indexing):
    xs = [np.arange(2), R.randn(3), np.arange(4.0)][:count]
    got = meshgrid(*xs, sparse=sparse, indexing=indexing)
    want = np.meshgrid(*xs, sparse=sparse, indexing=indexing)
    assert isinstance(got, tuple) and len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        same(g, w)


def test_meshgrid_of_scalars_and_under_vmap():
    same(meshgrid(np.asarray(1.0), np.arange(2.0))[0], np.meshgrid(1.0, np.arange(2.0))[0])
    x = R.randn(4, 3)
    same(atled.vmap(lambda v: meshgrid(v, v)[0])(x), np.stack([np.meshgrid(v, v)[0] for v in x]))


def test_ix():
    i, j, k = np.asarray([2, 0]), np.asarray([1, 3, 3]), np.asarray([True, False, True])
    with atled.enable_x64():
        for arguments in ((i,), (i, j), (k, j), (i, j, k)):
            for got, want in zip(ix_(*arguments), np.ix_(*arguments), strict=True):
                same(got, want)
    same(jnp.asarray(A)[ix_(i, j)], A[np.ix_(i, j)])
    assert ix_(np.asarray([]), i)[0].shape == (0, 1)


@pytest.mark.parametrize("n, m, k", [(3, None, 0), (3, 4, 1), (4, 2, -1), (0, 3, 0), (3, 3, 5), (3, 3, -5), (2, 0, 0)])
def test_triangles(n, m, k):
    with atled.enable_x64():
        same(tri(n, m, k), np.tri(n, m, k))
        same(tri(n, m, k, int), np.tri(n, m, k, int))
        for ours, theirs in ((tril_indices, np.tril_indices), (triu_indices, np.triu_indices)):
            for got, want in zip(ours(n, k, m), theirs(n, k, m), strict=True):
                same(got, want)
        x = np.zeros((n, n if m is None else m))
        for ours, theirs in ((tril_indices_from, np.tril_indices_from), (triu_indices_from, np.triu_indices_from)):
            for got, want in zip(ours(x, k), theirs(x, k), strict=True):
                same(got, want)
            assert ours(atled.ShapeDtypeStruct(x.shape, "float32"), k)[0].shape == theirs(x, k)[0].shape
    assert tril_indices(2)[0].dtype == "int32" and tri(2, dtype=bool).dtype == bool


def test_diagonals():
    with atled.enable_x64():
        for got, want in zip(diag_indices(3, 3), np.diag_indices(3, 3), strict=True):
            same(got, want)
        for got, want in zip(diag_indices_from(np.ones((2, 2))), np.diag_indices_from(np.ones((2, 2))), strict=True):
            same(got, want)
        for got, want in zip(mask_indices(3, jnp.triu, 1), np.mask_indices(3, np.triu, 1), strict=True):
            same(got, want)
    rows, columns = mask_indices(3, jnp.triu, 1, size=5)
    assert rows.tolist() == [0, 0, 1, 0, 0] and columns.tolist() == [1, 2, 2, 0, 0]
    assert mask_indices(3, jnp.tril, size=2)[0].tolist() == [0, 1] and mask_indices(2, jnp.tril, size=9)[1].shape == (
        9,
    )
    rows, _ = atled.jit(lambda: mask_indices(3, jnp.triu, 1, size=3))()
    assert rows.tolist() == [0, 0, 1]


GRIDS = [
    s_[0:3, 0:2],
    s_[0:1:3j],
    s_[0:1:3j, -1:1:4j],
    s_[:5:2],
    s_[:3.0, 1:2:0.5],
    s_[5:1:-2, 0:2],
    s_[0:2, 0:3, 0:2],
    s_[0:3,],
    s_[0:2:2j, 0:3],
]


@pytest.mark.parametrize("key", GRIDS, ids=str)
def test_grids(key):
    with atled.enable_x64():
        same(mgrid[key], np.mgrid[key])
        got, want = ogrid[key], np.ogrid[key]
        if isinstance(want, np.ndarray):
            same(got, want)
        else:
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(np.asarray(g), w)
    assert mgrid[0:2, 0:2].dtype == "int32" and mgrid[0:2.0, 0:2].dtype == "float32"


JOINS = [
    s_[1:4, 0, 4],
    s_[1:4, 0.5],
    s_[0:1:5j],
    s_[[1, 2], [3]],
    s_["0,2", [1, 2, 3], [4, 5, 6]],
    s_["1,2", [1, 2, 3], [4, 5, 6]],
    s_["-1", [[1]], [[2]]],
    s_["0,2,0", [1, 2, 3], [4, 5, 6]],
    s_["1,2,0", [1, 2, 3], [4, 5, 6]],
    s_["0,3,1", [1, 2], [3, 4]],
    s_["0,3,-2", [1, 2], [3, 4]],
    s_["2,3,-3", [1, 2], [3, 4]],
    s_["0,3,0", [[1, 2]], [[3, 4]]],
    s_[3],
    s_[np.eye(2), np.ones((1, 2))],
    s_["1", np.eye(2), np.ones((2, 1))],
]


@pytest.mark.parametrize("key", JOINS, ids=str)
def test_joins(key):
    with atled.enable_x64():
        same(r_[key], np.r_[key])


def test_columns_rows_and_index_expressions():
    with atled.enable_x64():
        same(c_[np.arange(3), np.arange(3) * 2], np.c_[np.arange(3), np.arange(3) * 2])
        same(c_[np.ones((2, 1)), np.zeros((2, 2))], np.c_[np.ones((2, 1)), np.zeros((2, 2))])
        same(c_[1:4, 2:5], np.c_[1:4, 2:5])
        same(r_["r", [1, 2]], np.asarray([[1, 2]]))
        same(r_["c", [1, 2]], np.asarray([[1], [2]]))
    assert s_[1:2, ...] == np.s_[1:2, ...] and index_exp[1] == np.index_exp[1]
    same(atled.jit(lambda x: r_[x, 0.0, 1:3])(np.arange(2.0)), np.r_[np.arange(2.0), 0.0, 1:3])
    assert repr(r_) == "atled.numpy.r_" and repr(mgrid) == "atled.numpy.mgrid"


# -- bits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_bits(axis, bitorder):
    x = R.randint(0, 3, (9, 17))
    same(packbits(x, axis, bitorder), np.packbits(x, axis, bitorder))
    same(packbits(x > 1, axis, bitorder), np.packbits(x > 1, axis, bitorder))
    b = R.randint(0, 256, (3, 2)).astype("uint8")
    for count in (None, 5, 13, 40, -3, 0):
        same(unpackbits(b, axis, count, bitorder), np.unpackbits(b, axis, count, bitorder))
    same(atled.vmap(lambda v: packbits(v, bitorder=bitorder))(x), np.packbits(x, 1, bitorder))
    same(atled.jit(lambda v: unpackbits(v, axis, bitorder=bitorder))(b), np.unpackbits(b, axis, bitorder=bitorder))


def test_bits_of_nothing():
    same(packbits(np.zeros(0, bool)), np.packbits(np.zeros(0, bool)))
    same(unpackbits(np.zeros((0, 2), "uint8"), 1), np.unpackbits(np.zeros((0, 2), "uint8"), 1))


# -- spaced numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num, endpoint", [(0, True), (1, True), (4, True), (4, False), (50, True)])
def test_spaced_numbers(num, endpoint):
    with atled.enable_x64():
        for start, stop in ((0, 2), (-1.5, 3.0), (np.zeros(2), np.asarray([1.0, 2.0]))):
            same(logspace(start, stop, num, endpoint), np.logspace(start, stop, num, endpoint), 1e-10)
            same(
                logspace(start, stop, num, endpoint, 2.0, axis=-1),
                np.logspace(start, stop, num, endpoint, 2.0, axis=-1),
                1e-10,
            )
        for start, stop in (
            (1, 1000),
            (-2.0, -50.0),
            (1e-150, 1e150),
            (np.ones(2), np.asarray([8.0, 0.1])),
            (1j, 1000j),
            (1 + 1j, -3.0 + 0j),
        ):
            same(geomspace(start, stop, num, endpoint), np.geomspace(start, stop, num, endpoint), 1e-9)
            same(
                geomspace(start, stop, num, endpoint, axis=-1), np.geomspace(start, stop, num, endpoint, axis=-1), 1e-9
            )
        same(logspace(0, 3, 4, dtype=int), np.logspace(0, 3, 4, dtype=int))
        same(geomspace(1, 1000, 2, dtype=int), np.geomspace(1, 1000, 2, dtype=int))
    assert logspace(0, 1, 3).dtype == geomspace(1, 2, 3).dtype == "float32"
    assert float(geomspace(1, 1000, 4)[-1]) == 1000.0


def test_spaced_numbers_are_transformed():
    x = R.rand(3) + 1
    want = np.stack([np.geomspace(v, 9.0, 5) for v in x])
    same(atled.vmap(lambda v: geomspace(v, 9.0, 5))(x), want, 1e-9)
    same(atled.jit(lambda v: geomspace(v, 9.0, 5, axis=-1))(x), want, 1e-9)
    same(atled.vmap(lambda v: logspace(0.0, v, 5))(x), np.stack([np.logspace(0, v, 5) for v in x]), 1e-9)
    bases = np.asarray([2.0, 3.0])
    same(
        logspace(np.zeros(2), np.full(2, 2.0), 3, base=bases),
        np.logspace(np.zeros(2), np.full(2, 2.0), 3, base=bases),
        1e-12,
    )
    assert np.isnan(np.asarray(geomspace(-1.0, 1.0, 3))[1]) and np.isnan(np.asarray(geomspace(0.0, 1.0, 3))[1])


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: insert(COUNT, 7, 1), IndexError, "insert: position 7 is out of bounds for an axis of length 6"),
        (lambda: insert(COUNT, [0, -7], 1), IndexError, "insert: position -7 is out of bounds"),
        (lambda: insert(COUNT, 1.5, 1), IndexError, "insert: positions must be integers"),
        (lambda: insert(COUNT, [[1]], 1), ValueError, "insert: positions are a scalar, a slice or a 1-d array"),
        (
            lambda: insert(COUNT, [1, 2], [1, 2, 3]),
            ValueError,
            r"insert: values of shape \(3,\) do not broadcast to the inserted shape \(2,\)",
        ),
        (lambda: delete(COUNT, 6), IndexError, "delete: position 6 is out of bounds"),
        (lambda: delete(COUNT, np.asarray([True])), ValueError, "delete: a mask must be as long as the axis"),
        (lambda: delete(COUNT, 0, 1), ValueError, "delete: axis 1 is out of bounds"),
        (
            lambda: atled.jit(lambda i: delete(COUNT, i))(np.asarray([1, 2])),
            ConcretizationTypeError,
            "(?s)delete: .*assume_unique_indices=True",
        ),
        (lambda: atled.jit(lambda m: delete(COUNT, m))(COUNT > 2), ConcretizationTypeError, "delete: a traced mask"),
        (lambda: resize(COUNT, (-1,)), ValueError, "resize: a shape has no negative lengths"),
        (lambda: fill_diagonal(COUNT, 1, inplace=False), ValueError, "fill_diagonal: a matrix is needed"),
        (lambda: fill_diagonal(np.ones((2, 2, 3)), 1, inplace=False), ValueError, "fill_diagonal: a matrix is needed"),
        (
            lambda: fill_diagonal(A, np.zeros(0), inplace=False),
            ValueError,
            "fill_diagonal: at least one value is needed",
        ),
        (
            lambda: put(COUNT, 0, 1, "raise", inplace=False),
            NotImplementedError,
            "put: the mode is 'clip' or 'wrap'; got 'raise'",
        ),
        (lambda: put(COUNT, 0.5, 1, inplace=False), TypeError, "put: positions must be integers"),
        (lambda: put(COUNT, 0, [], inplace=False), ValueError, "put: at least one value is needed"),
        (
            lambda: put_along_axis(A, COUNT, 1.0, 0, inplace=False),
            ValueError,
            "put_along_axis: array and indices must have the same number of axes",
        ),
        (lambda: put_along_axis(A, A, 1.0, 0, inplace=False), TypeError, "put_along_axis: indices must be integers"),
        (
            lambda: put_along_axis(COUNT, COUNT, 1, 0, inplace=False, mode="x"),
            ValueError,
            "put_along_axis: the mode is",
        ),
        (
            lambda: place(A, COUNT, 1.0, inplace=False),
            ValueError,
            "place: array and mask must have the same number of elements",
        ),
        (lambda: place(A, A > 0, [], inplace=False), ValueError, "place: at least one value is needed"),
        (lambda: meshgrid(A), ValueError, r"meshgrid: vectors are needed; got f64\[3,4\]"),
        (lambda: meshgrid(COUNT, indexing="yx"), ValueError, "meshgrid: indexing is 'xy' or 'ij'"),
        (lambda: ix_(A), ValueError, "ix_: vectors are needed"),
        (lambda: atled.jit(lambda m: ix_(m))(COUNT > 2), ConcretizationTypeError, "ix_: a traced mask"),
        (lambda: tril_indices_from(COUNT), ValueError, "tril_indices_from: a matrix is needed"),
        (lambda: diag_indices_from(A), ValueError, "diag_indices_from: at least two axes, all equally long"),
        (
            lambda: atled.jit(lambda: mask_indices(3, jnp.triu))(),
            ConcretizationTypeError,
            "(?s)mask_indices: .*try: size=n",
        ),
        (lambda: mgrid[3], TypeError, "mgrid: slices are needed"),
        (lambda: ogrid[3:], ValueError, "grid: a slice needs an end"),
        (lambda: r_[1, "0"], ValueError, "r_: a string can only come first"),
        (lambda: r_["x", 1], ValueError, "r_: a string is 'r', 'c', or up to three integers"),
        (lambda: packbits(A), TypeError, "packbits: bools or integers are needed"),
        (lambda: packbits(COUNT, bitorder="x"), ValueError, "packbits: bitorder is 'big' or 'little'"),
        (lambda: unpackbits(COUNT), TypeError, r"unpackbits: bytes \(uint8\) are needed; got i64\[6\]"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("file", [bitwise, insert_delete, index_grids, ranges, triangular])
def test_examples(file, monkeypatch):
    names = [n for n in file.__all__ if callable(getattr(file, n))]
    for name in names:
        monkeypatch.setattr(jnp, name, getattr(file, name), raising=False)
    objects = [getattr(file, n) for n in names] + (
        [index_grids._Grid, index_grids._Joined] if file is index_grids else []
    )
    for x in objects:
        for example in doctest.DocTestFinder(recurse=False).find(x, x.__name__, module=False, globs=dict(vars(file))):
            assert doctest.DocTestRunner().run(example).failed == 0
