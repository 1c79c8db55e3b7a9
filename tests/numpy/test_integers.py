"""Division and divisors of integers at their limits: by zero, of the lowest number, and where products wrap."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def pairs(dtype):
    limits = np.iinfo(dtype)
    r = np.random.RandomState(0)
    edges = np.array([limits.min, limits.min + 1, limits.max, 0, 1, 7], dtype)
    x, y = [v.ravel() for v in np.meshgrid(edges, edges)]
    some = r.randint(limits.min, limits.max, (2, 50), dtype)
    small = r.randint(0 if dtype[0] == "u" else -5, 6, 50).astype(dtype)
    return np.concatenate([x, some[0], some[0]]), np.concatenate([y, some[1], small])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "gcd", "lcm"])
def test_as_numpy(name, dtype):
    x, y = pairs(dtype)
    ours = getattr(jnp, name)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    for way in (ours, atled.jit(ours), atled.vmap(ours)):
        got = np.asarray(way(x, y))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_operators():
    x, zero = jnp.array([7, -7]), jnp.zeros(2, "int32")
    assert (x % zero).tolist() == (x // zero).tolist() == [0, 0]
    assert [v.tolist() for v in jnp.divmod(x, 0)] == [[0, 0], [0, 0]]


def test_divisors_of_scalars_and_arrays():
    assert jnp.gcd(jnp.arange(6).reshape(2, 3), 4).tolist() == [[4, 1, 2], [1, 4, 1]]
    assert int(jnp.gcd(12, 18)) == 6
    assert int(atled.vmap(jnp.lcm, in_axes=(0, None))(jnp.array([4]), 6)[0]) == 12
