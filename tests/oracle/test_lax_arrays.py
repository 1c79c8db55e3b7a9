"""Functions of `lax` that make, spread and combine arrays, and the shapes of windows: as JAX computes them."""

from __future__ import annotations

import numpy as np
import pytest

import atled

jax = pytest.importorskip("jax")

R = np.random.RandomState(0)
X = R.randn(2, 6).astype("f4")
IMAGE = R.randn(2, 3, 7, 6).astype("f4")
I8, U16, I32, U32 = (R.randint(-(2**62), 2**62, 50).astype(d) for d in ("i1", "u2", "i4", "u4"))
ROWS, MATRICES = R.randn(7, 3).astype("f4"), R.randn(3, 3, 4).astype("f4")
PATCHES = {"filter_shape": (3, 2), "window_strides": (2, 1), "padding": "SAME"}
VALUES = {
    "stack": lambda lax: lax.stack([X, 2 * X], 1),
    "unstack": lambda lax: lax.unstack(X, 1),
    "tile": lambda lax: lax.tile(X, (2, 3)),
    "broadcast_to_rank": lambda lax: lax.broadcast_to_rank(X, 4),
    "broadcast_like": lambda lax: lax.broadcast_like(X[0], X),
    "approx_max_k": lambda lax: lax.approx_max_k(X, 2),
    "approx_max_k axis": lambda lax: lax.approx_max_k(X, 1, 0),
    "approx_min_k": lambda lax: lax.approx_min_k(X, 3),
    "mulhi i8": lambda lax: lax.mulhi(I8, I8[::-1]),
    "mulhi u16": lambda lax: lax.mulhi(U16, U16[::-1]),
    "mulhi i32": lambda lax: lax.mulhi(I32, I32[::-1]),
    "mulhi u32": lambda lax: lax.mulhi(U32, U32[::-1]),
    "ragged_dot": lambda lax: lax.ragged_dot(ROWS, MATRICES, np.array([2, 0, 4], "i4")),
    "ragged_dot wide": lambda lax: lax.ragged_dot(
        ROWS.astype("f2"), MATRICES.astype("f2"), np.array([1, 5, 1], "i4"), preferred_element_type="float32"
    ),
    "patches": lambda lax: lax.conv_general_dilated_patches(IMAGE, **PATCHES),
    "patches last": lambda lax: lax.conv_general_dilated_patches(
        IMAGE, **PATCHES, rhs_dilation=(1, 2), dimension_numbers=("NCHW", "HWIO", "NHWC")
    ),
}
PLAIN = {
    "dtype": lambda lax: np.dtype(lax.dtype(X)),
    "padtype_to_pads": lambda lax: lax.padtype_to_pads((7, 6), (3, 2), (2, 1), "SAME"),
    "padtype_to_pads lower": lambda lax: lax.padtype_to_pads((7, 6), (3, 2), (2, 1), "SAME_LOWER"),
    "conv_shape_tuple": lambda lax: lax.conv_shape_tuple((2, 3, 7, 6), (5, 3, 3, 2), (2, 1), [(1, 0), (0, 2)]),
    "conv_general_permutations": lambda lax: [*map(tuple, lax.conv_general_permutations(("NHWC", "HWIO", "NCHW")))],
    "conv_general_shape_tuple": lambda lax: tuple(
        lax.conv_general_shape_tuple((2, 7, 6, 3), (3, 2, 3, 5), (2, 1), "VALID", ("NHWC", "HWIO", "NCHW"))
    ),
    "reduce_window_shape_tuple": lambda lax: tuple(
        lax.reduce_window_shape_tuple((7, 6), (3, 2), (2, 1), [(1, 1), (0, 0)], (2, 1), (1, 2))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    ours, theirs = (VALUES[name](m.lax) for m in (atled.jax, jax))
    ours, theirs = (list(v) if isinstance(v, (list, tuple)) else [v] for v in (ours, theirs))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values(name):
    assert PLAIN[name](atled.lax) == PLAIN[name](jax.lax)


def test_mulhi_of_long_integers():
    for dtype, low in (("i8", -(2**63)), ("u8", 0)):
        x = np.array([low, 2**62 + 3, 7, 2**63 - 1, 0xFFFFFFFF, 2**32 + 5], dtype)
        want = [[(int(a) * int(b)) >> 64 for b in x] for a in x]
        got = atled.lax.mulhi(np.repeat(x, len(x)), np.tile(x, len(x)))
        assert np.asarray(got).reshape(len(x), -1).tolist() == want


def test_derivatives_and_batches():
    sizes = np.array([2, 0, 4], "i4")
    f = lambda r, m: atled.numpy.sum(atled.numpy.sin(atled.lax.ragged_dot(r, m, sizes)))
    g = lambda r, m: jax.numpy.sum(jax.numpy.sin(jax.lax.ragged_dot(r, m, sizes)))
    for a, b in zip(atled.grad(f, (0, 1))(ROWS, MATRICES), jax.grad(g, (0, 1))(ROWS, MATRICES)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    swapped = atled.vmap(lambda x: atled.lax.pswapaxes(x, "i", 0), axis_name="i")(X[:, :2])
    np.testing.assert_array_equal(swapped, X[:, :2].T)


@pytest.mark.parametrize(
    "bad, kind, message",
    [
        (lambda lax: lax.stack([X, X[0]]), TypeError, "stack: operands must have the same shape"),
        (lambda lax: lax.tile(X, (2,)), ValueError, "tile: one number for each axis"),
        (lambda lax: lax.broadcast_to_rank(X, 1), ValueError, "broadcast_to_rank: the rank must be at least"),
        (lambda lax: lax.approx_max_k(I32, 2), TypeError, "approx_max_k: floating-point numbers are needed"),
        (lambda lax: lax.mulhi(X, X), TypeError, "mulhi: integers of the same dtype"),
        (lambda lax: lax.ragged_dot(X, X, U16), TypeError, "ragged_dot: rows"),
    ],
)
def test_bad_arguments(bad, kind, message):
    with pytest.raises(kind, match=message):
        bad(atled.lax)
