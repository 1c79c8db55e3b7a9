"""Extrema of arrays that are split over devices: a NaN is not lost, and nothing but results is sent."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P


@pytest.mark.parametrize("spec", [P("a"), P(None, "a")], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_extrema_over_axes_that_are_split(spec, axis):
    x = np.random.default_rng(0).standard_normal((512, 4096), np.float32)
    x[3, 7] = x[100, 4095] = np.nan
    y = atled.device_put(x, NamedSharding(atled.make_mesh((8,), ("a",)), spec))
    for f, want in ((jnp.max, np.max), (jnp.min, np.min)):
        compiled = atled.jit(lambda v, f=f: f(v, axis))
        np.testing.assert_array_equal(np.asarray(compiled(y)), want(x, axis))
        text = compiled.lower(y).compile().as_text()
        assert not any(f"{name}(" in text for name in ("all-gather", "all-to-all", "collective-permute"))
