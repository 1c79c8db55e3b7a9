"""Arguments that a function does not use may be on devices where it does not run."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.sharding import NamedSharding, PartitionSpec


def test_they_may_be_on_another_device():
    first, other = atled.devices()[:2]
    x, y = atled.device_put(jnp.ones(3), first), atled.device_put(jnp.arange(3.0), other)
    f = atled.jit(lambda x, y: y * 2)
    for _ in range(3):
        out = f(x, y)
        assert out.device == other
        np.testing.assert_array_equal(out, [0, 2, 4])
    with pytest.raises(ValueError, match="committed to different devices"):
        atled.jit(lambda x, y: y * 2, keep_unused=True)(x, y)


def test_they_may_be_over_a_mesh_among_others():
    mesh = atled.make_mesh((8,), ("x",))
    split = NamedSharding(mesh, PartitionSpec("x"))
    unused, used = jnp.ones(5), atled.device_put(jnp.arange(16.0), split)
    f = atled.jit(lambda a, b, c: b + c)
    for i in range(3):
        out = f(unused, used, jnp.float32(i))
        np.testing.assert_array_equal(out, np.arange(16.0) + i)
        assert out.sharding == split


def test_in_shardings_name_them_all():
    mesh = atled.make_mesh((8,), ("x",))
    split, whole = NamedSharding(mesh, PartitionSpec("x")), NamedSharding(mesh, PartitionSpec())
    f = atled.jit(lambda a, b: b * 2, in_shardings=(whole, split))
    for _ in range(3):
        assert f(jnp.ones(3), jnp.arange(16.0)).sharding == split
