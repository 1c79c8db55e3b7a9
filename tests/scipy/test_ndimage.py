"""`map_coordinates` against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy_checks import check_derivatives, check_transforms, same

import atled
import atled.numpy as jnp
from atled.scipy import ndimage

scipy_ndimage = pytest.importorskip("scipy.ndimage")
R = np.random.RandomState(0)
X, P = R.randn(9), R.randn(5, 6)
INSIDE = R.rand(2, 7) * [[4], [5]]
AROUND = R.rand(2, 3, 8) * 20 - 8
NAMES = {"constant": "grid-constant", "wrap": "grid-wrap", "reflect": "grid-wrap"}  # as SciPy calls them
MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


@pytest.mark.parametrize("order", range(6))
def test_values(order):
    for mode in MODES:
        # SciPy is not exact in the mode "reflect"; the same is a periodic array that is mirrored itself
        x = np.block([[P, P[:, ::-1]], [P[::-1], P[::-1, ::-1]]]) if mode == "reflect" else P
        want = scipy_ndimage.map_coordinates(x, AROUND, order=order, mode=NAMES.get(mode, mode), cval=1.5)
        same(ndimage.map_coordinates(P, AROUND, order, mode, 1.5), want, 1e-9)
    at = [np.linspace(-3, 12, 11)]
    want = scipy_ndimage.map_coordinates(X, at, order=order, mode="grid-constant")
    same(ndimage.map_coordinates(X, at, order, "grid-constant"), want, 1e-9)


def test_dtypes_and_shapes():
    whole = (P * 10).astype(int)
    for order in (0, 1):
        want = scipy_ndimage.map_coordinates(whole.astype(float), INSIDE, order=order)
        got = ndimage.map_coordinates(whole, INSIDE, order)
        assert got.dtype == whole.dtype
        same(got, (np.sign(want) * np.floor(np.abs(want) + 0.5)).astype(int))
        same(ndimage.map_coordinates(P, np.array([[0, 1], [2, 3]]), order), P[[0, 1], [2, 3]])
        complex_values = ndimage.map_coordinates(P + 1j * P**2, INSIDE, order)
        same(complex_values.imag, scipy_ndimage.map_coordinates(P**2, INSIDE, order=order))
    same(
        ndimage.map_coordinates(P + 1j * P**2, INSIDE, 3, "wrap").imag, ndimage.map_coordinates(P**2, INSIDE, 3, "wrap")
    )
    assert ndimage.map_coordinates(jnp.asarray(P, "float32"), INSIDE, 1).dtype == np.float32
    assert ndimage.map_coordinates(P, [1.0, 2.0], 1).shape == ()
    same(ndimage.map_coordinates(P, [np.arange(3.0)[:, None], np.arange(2.0)], 1), P[:3, :2])
    for mode in MODES:  # an axis of one element
        same(ndimage.map_coordinates(P[:1, :1], [[0.0], [0.0]], 3, mode), P[:1, 0])
    assert np.isnan(np.asarray(ndimage.map_coordinates(P, [[np.nan], [0.0]], 1)))


@pytest.mark.parametrize("order, mode", [(1, "constant"), (2, "reflect"), (3, "nearest")])
def test_derivatives(order, mode):
    f = atled.jit(lambda x, c: ndimage.map_coordinates(x, c, order, mode))
    check_derivatives(f, P, np.concatenate([INSIDE, INSIDE + 10], axis=1), order=1)


def test_transforms():
    check_transforms(lambda x: ndimage.map_coordinates(x, INSIDE, 1), R.randn(3, 5, 6))
    check_transforms(lambda c: ndimage.map_coordinates(P, c, 3, "mirror"), R.rand(3, 2, 4) * 4)


def test_complaints():
    with pytest.raises(ValueError, match=r"map_coordinates: one array of coordinates for each axis is needed; got 1"):
        ndimage.map_coordinates(P, [X], 1)
    with pytest.raises(NotImplementedError, match="map_coordinates: the mode is one of"):
        ndimage.map_coordinates(P, INSIDE, 1, "up")
    with pytest.raises(NotImplementedError, match="map_coordinates: the order is"):
        ndimage.map_coordinates(P, INSIDE, 6)
    with pytest.raises(ValueError, match="map_coordinates: an empty array has no values"):
        ndimage.map_coordinates(P[:0], INSIDE, 1)
