"""Cosine transforms against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy_checks import check_derivatives, check_transforms, same

import atled
import atled.numpy as jnp
from atled.scipy import fft

scipy_fft = pytest.importorskip("scipy.fft")
R = np.random.RandomState(0)
X, P = R.randn(9), R.randn(4, 5)


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


@pytest.mark.parametrize("name", ["dct", "idct"])
def test_one_axis(name):
    ours, scipys = getattr(fft, name), getattr(scipy_fft, name)
    for kind in (1, 2, 3, 4):
        for norm, sizes in ((None, (8,)), ("backward", (9,)), ("ortho", (1, 2, 8, 9)), ("forward", (9,))):
            for n in sizes:
                if n > 1 or kind > 1:
                    same(ours(X[:n], kind, norm=norm), scipys(X[:n], kind, norm=norm), 1e-13)
        same(ours(P, kind, 7, 0), scipys(P, kind, 7, 0), 1e-13)
        same(ours(P + 1j * P**2, kind, 3), scipys(P + 1j * P**2, kind, 3), 1e-13)
    single = ours(jnp.asarray(X, "float32"))
    assert single.dtype == np.float32 and ours(jnp.ones(3, "float16")).dtype == np.float16
    same(single, scipys(X), 1e-6)
    assert ours(np.arange(3)).dtype == np.float64


@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_many_axes(name):
    ours, scipys = getattr(fft, name), getattr(scipy_fft, name)
    for kind in (1, 2, 3, 4):
        same(ours(P, kind, norm="ortho"), scipys(P, kind, norm="ortho"), 1e-13)
    for s, axes in ((None, (0,)), ((3, 7), None), ((6,), None), ((6,), [0]), (None, -1)):
        same(ours(P, s=s, axes=axes), scipys(P, s=s, axes=axes), 1e-13)
    cube = R.randn(3, 4, 2)
    same(ours(cube), scipys(cube), 1e-13)


def test_transforms():
    for kind in (1, 2, 3, 4):
        check_derivatives(lambda x, k=kind: fft.dct(x, k, norm="ortho"), X[:6], order=1)
    check_derivatives(lambda x: fft.idctn(x) ** 2, P)
    check_transforms(fft.dct, P)
    check_transforms(lambda x: fft.idct(x, 1), P)


COMPLAINTS = [
    (lambda: fft.dct(X, 5), "dct: the type is 1, 2, 3 or 4; got 5"),
    (lambda: fft.idct(X, norm="no"), "idct: norm is"),
    (lambda: fft.dct(X[:1], 1), "dct: type 1 needs 2 elements or more"),
    (lambda: fft.dct(X, n=0), "dct: one positive length"),
    (lambda: fft.dctn(P, s=(3,), axes=(0, 1)), "dctn: one positive length for each of axes"),
    (lambda: fft.dct(X, axis=2), "dct: axis 2 is out of bounds"),
]


@pytest.mark.parametrize("call, message", COMPLAINTS)
def test_complaints(call, message):
    with pytest.raises(ValueError, match=message):
        call()
