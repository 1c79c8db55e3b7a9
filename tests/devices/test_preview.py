"""How split arrays look: as whole ones, with their sharding; only the parts that hold the corners are read."""

from __future__ import annotations

import time

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.engine import array
from atled.engine.array import DeviceArray
from atled.sharding import NamedSharding, P


@pytest.mark.parametrize("spec", [P(), P("x"), P(None, "y"), P("x", "y"), P(("x", "y")), P("y", "x")], ids=str)
@pytest.mark.parametrize("shape", [(8, 8), (16, 8), (80, 40)])
def test_as_the_whole_array(spec, shape):
    s = NamedSharding(atled.make_mesh((2, 4), ("x", "y")), spec)
    host = np.random.RandomState(0).randn(*shape).astype("f4")
    x = atled.device_put(host, s)
    assert str(x) == str(host)
    whole = repr(jnp.asarray(host))
    assert repr(x) == f"{whole[:-1]}, sharding={x.sharding})" and x.sharding == s  # which may be written otherwise
    table = x._repr_html_()
    assert table.split("<table")[1] == jnp.asarray(host)._repr_html_().split("<table")[1] and "Mesh(" in table


def test_only_the_parts_with_corners_are_read(monkeypatch):
    s = NamedSharding(atled.make_mesh((8,), ("x",)), P("x"))
    x = jnp.zeros((40_000, 4000), "int8", out_sharding=s).block_until_ready()
    read = []
    monkeypatch.setattr(DeviceArray, "_on_host", lambda a, f=DeviceArray._on_host: read.append(a) or f(a))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert "sharding=NamedSharding" in repr(x)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05 and len(read) == 6


def test_on_another_device():
    assert repr(atled.device_put(jnp.ones(2), atled.devices()[1])) == "Array([1., 1.], dtype=float32, device=cpu:1)"


def test_parts_in_other_processes(monkeypatch):
    """With half of the parts out of sight, as they are in another process."""
    s = NamedSharding(atled.make_mesh((8,), ("x",)), P("x"))
    x = atled.device_put(np.arange(8.0, dtype="f4"), s)
    monkeypatch.setattr(DeviceArray, "addressable_shards", property(lambda x: array.shards(x)[:4]))
    monkeypatch.setattr(NamedSharding, "is_fully_addressable", property(lambda self: False))
    assert str(x) == "[0. 1. 2. 3. ? ? ? ?]"
    assert repr(x) == f"Array([0., 1., 2., 3., ?, ?, ?, ?], dtype=float32, sharding={s}, ? in other processes)"
    assert x._repr_html_().count(">?<") == 4
