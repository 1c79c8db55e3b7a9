"""Products over several axes are lowered as products over one, where that is faster."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.ops import contraction

SHAPES = [  # shapes, contracting axes, batch axes, and what NumPy calls it
    ((3, 4, 5), (3, 4, 6), ((0, 1), (0, 1)), ((), ()), "abi,abj->ij"),
    ((5, 3, 4), (3, 4, 6), ((1, 2), (0, 1)), ((), ()), "iab,abj->ij"),
    ((2, 3, 4, 5), (2, 3, 4, 6), ((1, 2), (1, 2)), ((0,), (0,)), "nabi,nabj->nij"),
    ((3, 4, 2, 5), (2, 3, 4, 6), ((0, 1), (1, 2)), ((2,), (0,)), "abni,nabj->nij"),
    ((3, 4, 5, 2), (3, 4, 2, 7, 6), ((0, 1), (0, 1)), ((3,), (2,)), "abin,abnkj->nikj"),
    ((3, 2, 4, 5), (3, 4, 6, 2), ((0, 2), (0, 1)), ((1,), (3,)), "anbi,abjn->nij"),
    ((3, 4, 5), (4, 3, 6), ((0, 1), (1, 0)), ((), ()), "abi,baj->ij"),
    ((2, 3, 4), (2, 3, 4), ((0, 1, 2), (0, 1, 2)), ((), ()), "abc,abc->"),
]
APART = {"anbi,abjn->nij", "abi,baj->ij"}  # not side by side, and in another order


@pytest.mark.parametrize(("x", "y", "contracting", "batch", "subscripts"), SHAPES)
def test_the_same_as_numpy(monkeypatch, x, y, contracting, batch, subscripts):
    monkeypatch.setattr(contraction, "_gains_by_merging", lambda t, axes: contraction._are_side_by_side(axes))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=x).astype("f4"), rng.normal(size=y).astype("f4")
    f = atled.jit(lambda a, b: lax.dot_general(a, b, (contracting, batch)))
    is_merged = subscripts not in APART
    assert ("stablehlo.reshape" in f.lower(a, b).as_text()) == is_merged
    np.testing.assert_allclose(f(a, b), np.einsum(subscripts, a, b), rtol=1e-5, atol=1e-5)


def test_large_products_copy_nothing():
    x, y = (atled.ShapeDtypeStruct((32, 128, n), "float32") for n in (256, 192))
    lowered = atled.jit(lambda x, y: jnp.einsum("abi,abj->ij", x, y)).lower(x, y)
    assert "contracting_dims = [0] x [0]" in lowered.as_text()
    assert " copy(" not in lowered.compile().as_text()
    small = atled.jit(lambda x, y: jnp.einsum("abi,abj->ij", x, y)).lower(jnp.ones((3, 2, 4)), jnp.ones((3, 2, 4)))
    assert "[0, 1]" in small.as_text()
