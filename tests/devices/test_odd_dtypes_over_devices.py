"""Random keys and dtypes narrower than a byte, on other devices than the first and between devices."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.sharding import NamedSharding, P

DATA = atled.random.key_data


@pytest.fixture(scope="module")
def mesh():
    return atled.make_mesh((4,), ("i",))


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_narrow_dtypes_can_be_read_everywhere(mesh, dtype):
    """The program that reads them ran on the first device, wherever they were."""
    x = np.array([1, 0, 2, 3]).astype(getattr(ml_dtypes, dtype))
    for where in (atled.devices()[3], NamedSharding(mesh, P("i")), NamedSharding(mesh, P())):
        for start in (x, jnp.asarray(x)):
            got = np.asarray(atled.device_put(start, where))
            assert got.dtype == x.dtype
            assert got.tolist() == x.tolist()


def test_keys_between_devices(mesh):
    """Collectives on keys said that there is no such axis."""
    keys = atled.random.split(atled.random.key(0), 8)
    words = np.asarray(DATA(keys))
    turn = [(i, (i + 1) % 4) for i in range(4)]

    def over(f, out):
        made = atled.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=out, check_vma=False)
        return np.asarray(DATA(atled.jit(made)(keys)))

    assert np.array_equal(over(lambda k: lax.all_gather(k, "i", tiled=True), P()), words)
    assert np.array_equal(over(lambda k: lax.ppermute(k, "i", turn), P("i")), np.roll(words, 2, 0))
    loop = over(lambda k: lax.fori_loop(0, 3, lambda _, k: lax.ppermute(k, "i", turn), k), P("i"))
    assert np.array_equal(loop, np.roll(words, 6, 0))
    for f in (lax.psum, lax.pmax, lambda k, i: lax.psum_scatter(k, i, tiled=True)):
        with pytest.raises(TypeError, match="cannot be reduced"):
            over(lambda k, f=f: f(k.reshape(2)[jnp.array([0, 1, 0, 1])], "i"), P("i"))


def test_keys_between_places_of_a_vmap():
    keys = atled.random.split(atled.random.key(0), 4)
    turn = [(i, (i + 1) % 4) for i in range(4)]
    got = atled.vmap(lambda k: lax.ppermute(k, "i", turn), axis_name="i")(keys)
    assert np.array_equal(DATA(got), np.roll(DATA(keys), 1, 0))


@pytest.mark.parametrize("dtype", ["int2", "uint2"])
def test_two_bits_are_moved_rightly_and_not_computed_with(dtype):
    """The engine's collectives lose elements of two bits: arrays are moved past them, and programs are refused."""
    mesh = atled.make_mesh((4,), ("i",))
    split, whole = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
    host = np.array([1, 0, 1, 1]).astype(getattr(ml_dtypes, dtype))
    x = atled.device_put(host, split)
    np.testing.assert_array_equal(np.asarray(atled.device_put(x, whole)), host)
    for f in (atled.jit(lambda v: v, out_shardings=whole), atled.jit(lambda v: v[::-1])):
        with pytest.raises(NotImplementedError, match="2-bit arrays"):
            f(x)
