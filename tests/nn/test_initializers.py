"""Initializers have the statistics that they promise; that their numbers are those of JAX is in `tests/oracle`."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import random
from atled.nn import initializers


@pytest.mark.parametrize("kind", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_variance(kind, dtype):
    x = np.asarray(initializers.variance_scaling(3.0, "fan_out", kind)(random.key(1), (300, 200), dtype))
    known = (1 - 4 * np.exp(-4) / -np.expm1(-4)) / (1 - 5 * np.exp(-4))  # what JAX's numbers have too much of
    excess = known if (kind, dtype) == ("truncated_normal", "complex64") else 1
    np.testing.assert_allclose(np.var(x), excess * 3 / 200, rtol=0.01)
    assert abs(x.mean()) < 3e-3


def test_under_jit_vmap_and_on_a_mesh():
    init = initializers.orthogonal()
    want = init(random.key(0), (4, 4))
    np.testing.assert_allclose(atled.jit(lambda k: init(k, (4, 4)))(random.key(0)), want, atol=1e-6)
    keys = random.split(random.key(0), 3)
    many = atled.vmap(lambda k: init(k, (4, 4)))(keys)
    np.testing.assert_allclose(many @ many.mT, np.broadcast_to(np.eye(4), (3, 4, 4)), atol=1e-5)
    np.testing.assert_allclose(many[1], init(keys[1], (4, 4)), atol=1e-6)
    mesh = atled.make_mesh((1,), ("x",), devices=atled.devices()[:1])
    place = atled.sharding.NamedSharding(mesh, atled.sharding.PartitionSpec("x"))
    for f in (initializers.ones, initializers.normal(1.0)):
        out = f(random.key(0), (4, 2), "float32", place)
        assert out.sharding.is_equivalent_to(place, 2)
    x = atled.grad(lambda s: jnp.sum(initializers.normal(s)(random.key(0), (3,))))(2.0)
    np.testing.assert_allclose(x, random.normal(random.key(0), (3,)).sum(), rtol=1e-5)


def test_what_does_not_fit_raises():
    key = random.key(0)
    with pytest.raises(ValueError, match="the shape needs two axes"):
        initializers.he_normal()(key, (3,))
    with pytest.raises(ValueError, match="mode must be one of"):
        initializers.variance_scaling(1.0, "fan", "normal")(key, (3, 3))
    with pytest.raises(ValueError, match="distribution must be"):
        initializers.variance_scaling(1.0, "fan_in", "cauchy")(key, (3, 3))
    with pytest.raises(ValueError, match="orthogonal: the shape must have two axes"):
        initializers.orthogonal()(key, (3,))
    with pytest.raises(ValueError, match="three to five axes"):
        initializers.delta_orthogonal()(key, (3, 3))
    with pytest.raises(ValueError, match="no fewer outputs than inputs"):
        initializers.delta_orthogonal()(key, (3, 4, 3))
