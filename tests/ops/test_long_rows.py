"""Sorts and positions of extrema in rows that are long enough for the forms that are fast on a CPU."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

# without subnormal numbers, which count as zeros on a CPU
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 3.4e38, -3.4e38, 1.1754944e-38]


def special(length: int, seed: int = 0) -> np.ndarray:
    """Numbers of which many are equal, or zeros of both signs, or NaNs that differ in their bits."""
    r = np.random.default_rng(seed)
    x = r.choice(np.array(SPECIAL, np.float32), length)
    bits = x.view(np.uint32).copy()
    is_nan = np.isnan(x)
    bits[is_nan] |= r.integers(1, 2**20, is_nan.sum(), np.uint32)
    return bits.view(np.float32)


def stable_order(x: np.ndarray) -> np.ndarray:
    return np.argsort(x, axis=-1, kind="stable")


@pytest.mark.parametrize("length", [63, 64, 65, 1000, 4097])
def test_sort_keeps_the_bits_and_the_order_of_equal_numbers(length):
    x = special(length)
    order = stable_order(x)
    np.testing.assert_array_equal(np.asarray(jnp.argsort(x)), order)
    got = np.asarray(atled.jit(jnp.sort)(x))
    np.testing.assert_array_equal(got.view(np.uint32), x[order].view(np.uint32))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "bool", "float16", "bfloat16"]
)
def test_order_of_each_dtype_at_its_limits(dtype):
    r = np.random.default_rng(1)
    if dtype == "bool":
        x = r.random(200) > 0.5
    elif dtype in ("float16", "bfloat16"):
        x = np.clip(special(200), -6e4, 6e4).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)
    else:
        info = np.iinfo(dtype)
        x = r.integers(info.min, info.max, 200, dtype, endpoint=True)
        x[:4] = info.min, info.max, info.max, info.min
    want = stable_order(x.astype(np.float32) if dtype == "bfloat16" else x)
    np.testing.assert_array_equal(np.asarray(jnp.argsort(x)), want)


def test_operands_that_follow_a_key():
    key, a, b = special(300), np.arange(300), np.linspace(0, 1, 300)
    order = stable_order(key)
    out = lax.sort((key, a, b), num_keys=1)
    np.testing.assert_array_equal(np.asarray(out[1]), a[order])
    np.testing.assert_allclose(np.asarray(out[2]), b[order].astype(np.float32))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sort_along_each_axis(axis):
    x = special(70 * 66 * 65).reshape(70, 66, 65)
    np.testing.assert_array_equal(np.asarray(jnp.sort(x, axis=axis)), np.sort(x, axis=axis))


@pytest.mark.parametrize("length", [63, 64, 65, 66, 67, 1001])
@pytest.mark.parametrize("find", ["argmax", "argmin"])
def test_the_first_of_equal_extrema_counts_and_nan_before_all(find, length):
    for seed in range(4):
        x = special(5 * length, seed).reshape(5, length)
        plain = np.where(np.isnan(x), np.float32(2), x)
        for values in (x, plain, np.where(np.isinf(plain), -np.inf, -np.inf).astype(np.float32)):
            for axis in (0, 1):
                want = getattr(np, find)(values, axis)
                np.testing.assert_array_equal(np.asarray(getattr(jnp, find)(values, axis)), want)


def test_positions_in_a_narrow_dtype():
    assert lax.argmax(jnp.arange(100.0), 0, np.int8).dtype == np.int8
    assert int(lax.argmax(jnp.arange(100.0), 0, np.int8)) == 99


@pytest.mark.parametrize("dims", [(0, 100), (100, 0), (0, 0), (3, 0, 70)], ids=str)
def test_arrays_without_elements(dims):
    x = np.zeros(dims, np.float32)
    for f in (lambda v: jnp.sort(v, -1), lambda v: jnp.argsort(v, 0), atled.nn.softmax, atled.nn.log_softmax):
        assert f(x).shape == atled.jit(f)(x).shape == dims
    if dims[-1]:
        assert jnp.max(x, -1).shape == jnp.argmax(x, -1).shape == dims[:-1]
    assert atled.random.bits(atled.random.key(0), dims).shape == dims


def test_the_second_of_two_zeros():
    zeros = np.array([0.0, -0.0] * 50, np.float32)
    for f, want in ((jnp.maximum, np.maximum), (jnp.minimum, np.minimum)):
        for x, y in ((zeros, -zeros), (-zeros, zeros)):
            np.testing.assert_array_equal(np.signbit(np.asarray(f(x, y))), np.signbit(want(x, y)))
    assert not np.signbit(np.asarray(atled.nn.relu(zeros))).any()
