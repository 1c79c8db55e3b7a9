"""`RegularGridInterpolator`, `trapezoid` and `vq` against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy_checks import check_derivatives, check_transforms, same

import atled
import atled.numpy as jnp
from atled.scipy import integrate
from atled.scipy.cluster.vq import vq
from atled.scipy.interpolate import RegularGridInterpolator

interpolate = pytest.importorskip("scipy.interpolate")
R = np.random.RandomState(0)
X, Y = np.sort(R.rand(4)), np.array([-1.0, 0.5, 2.0])
V = R.randn(4, 3)
INSIDE = np.stack([R.uniform(X[0], X[-1], 6), R.uniform(-1, 2, 6)], -1)
AROUND = INSIDE * 3 - 1


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_interpolation(method):
    for values, fill in ((V, -5.0), (V + 1j * V**2, None), (R.randn(4, 3, 2), np.nan)):
        ours = RegularGridInterpolator((X, Y), values, method, fill_value=fill)
        scipys = interpolate.RegularGridInterpolator((X, Y), values, method, bounds_error=False, fill_value=fill)
        same(ours(AROUND), scipys(AROUND))
    ours = RegularGridInterpolator((X, Y), V, method)
    scipys = interpolate.RegularGridInterpolator((X, Y), V, method, bounds_error=False)
    same(ours(np.stack(np.meshgrid(X, Y, indexing="ij"), -1)), V)  # at the grid's own points
    same(ours(INSIDE[0]), scipys(INSIDE[0]))
    same(ours((INSIDE[:3, :1], INSIDE[3:, 1])), scipys((INSIDE[:3, :1], INSIDE[3:, 1])))
    same(ours(INSIDE, "nearest"), scipys(INSIDE, "nearest"))
    assert np.isnan(np.asarray(ours([[np.nan, 0.0]]))).all()
    line = RegularGridInterpolator((X,), V[:, 0], method)
    same(line(INSIDE[:, 0]), interpolate.RegularGridInterpolator((X,), V[:, 0], method)(INSIDE[:, 0]))
    same(RegularGridInterpolator(([1.0], Y), V[:1], method)([[1.0, 0.5]]), V[0, 1:2])  # an axis with one point
    assert RegularGridInterpolator((X, Y), jnp.asarray(V, "float32"))(INSIDE).dtype == np.float32
    assert RegularGridInterpolator(([0, 1], [0, 1]), np.eye(2, dtype=int))([[0.5, 0.5]]).dtype == np.float64


def test_interpolators_are_trees():
    f = RegularGridInterpolator((X, Y), V)
    same(atled.jit(lambda g, x: g(x))(f, INSIDE), f(INSIDE))
    check_derivatives(lambda x, v: RegularGridInterpolator((X, Y), v)(x), INSIDE, V, order=1)
    check_transforms(lambda v: RegularGridInterpolator((X, Y), v)(INSIDE), R.randn(3, 4, 3))
    bounded = RegularGridInterpolator((X, Y), V, bounds_error=True)
    same(bounded(INSIDE), f(INSIDE))
    with pytest.raises(ValueError, match="RegularGridInterpolator: a point is out of bounds along axis"):
        bounded(AROUND)
    with pytest.raises(atled.errors.ConcretizationTypeError, match="bounds_error needs concrete points"):
        atled.jit(bounded)(INSIDE)


def test_trapezoid():
    same(integrate.trapezoid(V, axis=0), np.trapezoid(V, axis=0))
    same(integrate.trapezoid(V, Y), np.trapezoid(V, Y))


def test_vq():
    scipys = pytest.importorskip("scipy.cluster.vq").vq
    points, codes = R.randn(7, 3), R.randn(4, 3)
    for x, y in ((points, codes), (points[:, 0], codes[:, 0]), (points[:0], codes)):
        for got, want in zip(vq(x, y), scipys(x, y), strict=True):
            same(got, want)
    assert vq(jnp.asarray(points, "float32"), jnp.asarray(codes, "float32"))[1].dtype == np.float32
    check_derivatives(lambda x, y: vq(x, y)[1], points, codes, order=1)
    check_transforms(lambda x: vq(x, codes), R.randn(2, 5, 3))


COMPLAINTS = [
    (lambda: RegularGridInterpolator((X, Y), V, "cubic"), "RegularGridInterpolator: the method is"),
    (lambda: RegularGridInterpolator((X, Y, X), V), "RegularGridInterpolator: values must have at least 3 axes"),
    (lambda: RegularGridInterpolator((Y, X), V), "RegularGridInterpolator: axis 0 needs one coordinate for each of 4"),
    (lambda: RegularGridInterpolator((X, Y), V)(np.ones((2, 3))), "RegularGridInterpolator: points must have 2"),
    (
        lambda: RegularGridInterpolator((X, Y), V, fill_value=1j),
        "RegularGridInterpolator: fill_value must be real for values",
    ),
    (lambda: vq(V, X), "vq: observations and codes must be rows of equal length"),
    (lambda: vq(V, V[:0]), "vq: at least one code is needed"),
]


@pytest.mark.parametrize("call, message", COMPLAINTS)
def test_complaints(call, message):
    with pytest.raises(ValueError, match=message):
        call()
