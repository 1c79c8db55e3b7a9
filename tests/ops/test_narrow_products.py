"""Products of narrow numbers, in every order of axes, as kernels of the CPU's compiler take them."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.engine import stablehlo

ORDERS = list(itertools.product((0, 1), repeat=2))


@pytest.fixture
def with_matrix_unit(monkeypatch):
    """Programs as for a processor that has a unit for products of bfloat16; they run on any."""
    monkeypatch.setattr(stablehlo, "cpu_features", lambda: frozenset({"amx_bf16"}))
    with atled.settings.override(cache=False):
        yield


def turned(x: np.ndarray, axis: int, wanted: int) -> np.ndarray:
    """x with its two last axes in the order that puts the axis to contract at `wanted`."""
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if axis != wanted else x


@pytest.mark.parametrize("dims", [(64, 65, 66), (128, 96, 33), (5, 7, 3)], ids=str)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_products_of_small_integers_are_exact(order, dims):
    m, k, n = dims
    r = np.random.default_rng(0)
    a, b = r.integers(-128, 128, (m, k), np.int8), r.integers(-128, 128, (k, n), np.int8)
    want = a.astype(np.int64) @ b.astype(np.int64)
    left, right = turned(a, 1, order[0]), turned(b, 0, order[1])
    f = atled.jit(
        lambda x, y: lax.dot_general(x, y, (((order[0],), (order[1],)), ((), ())), preferred_element_type="int32")
    )
    np.testing.assert_array_equal(np.asarray(f(left, right)), want)


def test_batches_and_several_contracted_axes():
    r = np.random.default_rng(0)
    a, b = r.integers(-9, 9, (3, 16, 5, 17, 11), np.int8), r.integers(-9, 9, (5, 11, 13, 16), np.int8)
    # contracted: axes 1 and 4 of a with 3 and 1 of b; batched: axis 2 with 0
    got = lax.dot_general(a, b, (((4, 1), (1, 3)), ((2,), (0,))), preferred_element_type="int32")
    want = np.einsum("acdef,dfgc->daeg", a.astype(np.int64), b.astype(np.int64))
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_products_of_bfloat16_are_summed_in_float32(with_matrix_unit, order, out):
    r = np.random.default_rng(0)
    a, b = (r.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((96, 130), (130, 65)))
    left, right = turned(a, 1, order[0]), turned(b, 0, order[1])
    f = atled.jit(
        lambda x, y: lax.dot_general(x, y, (((order[0],), (order[1],)), ((), ())), preferred_element_type=out)
    )
    got = np.asarray(f(left, right)).astype(np.float64)
    want = a.astype(np.float64) @ b.astype(np.float64)
    near = 2**-8 if out == "bfloat16" else 1e-5
    np.testing.assert_allclose(got, want, rtol=near, atol=near)
    assert "bf16" in f.lower(left, right).as_text().split("stablehlo.dot_general")[1].splitlines()[0]


def test_gradients_of_products_of_bfloat16(with_matrix_unit):
    r = np.random.default_rng(0)
    a, b = (r.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((96, 130), (130, 65)))
    got = atled.jit(atled.grad(lambda x, y: jnp.sum(jnp.tanh(x @ y).astype("float32")), (0, 1)))(a, b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    slope = 1 - np.tanh(x @ y) ** 2
    for g, want in zip(got, (slope @ y.T, x.T @ slope), strict=True):
        np.testing.assert_allclose(np.asarray(g).astype(np.float64), want, rtol=0.05, atol=0.5)
