"""Batches on eight devices: split as asked for, the right ones, with the state of those that were given."""

import gc
import pathlib
import sys
import threading
import time

import numpy as np
import pytest

import atled
from atled import data
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "data"))
import feeding_functions as f


@pytest.fixture
def mesh():
    return atled.make_mesh((4, 2), ("data", "model"))


def rows(n=160):
    return data.arrays(x=np.arange(4 * n, dtype="float32").reshape(n, 4), y=np.arange(n, dtype="int32"))


def feeding_threads():
    return [t for t in threading.enumerate() if t.name == "atled-data-to-devices"]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_split(mesh, workers):
    """All of them are held to the end, so none may be overwritten by a later one."""
    batches = rows().shuffle(1).random_map(f.noise, 1).batch(16)
    sharding = NamedSharding(mesh, P("data"))
    with data.to_devices(batches.iterator(num_workers=workers), sharding) as fed:
        got = list(fed)
    for want, x in zip(batches, got, strict=True):
        assert x["x"].sharding == sharding and x["x"].addressable_shards[0].data.shape == (4, 4)
        for k in want:
            np.testing.assert_array_equal(np.asarray(x[k], want[k].dtype), want[k].astype(x[k].dtype))
    assert not feeding_threads()


def test_a_tree_of_shardings(mesh):
    shardings = {"x": NamedSharding(mesh, P("data", "model")), "y": NamedSharding(mesh, P())}
    batch = next(data.to_devices(rows().batch(16).iterator(), shardings))
    assert batch["x"].sharding == shardings["x"] and batch["y"].is_fully_replicated


def test_states_are_those_of_what_was_given(mesh):
    batches = rows().batch(16).repeat()
    fed = data.to_devices(batches.iterator(), NamedSharding(mesh, P("data")), prefetch=3)
    assert fed.state() == batches.iterator().state()
    plain = batches.iterator()
    for _ in range(12):
        batch, want = next(fed), next(plain)
        time.sleep(0.01)  # the thread goes ahead
        np.testing.assert_array_equal(batch["y"], want["y"])
        assert fed.state() == plain.state()
    state = fed.state()
    after = next(fed)["y"]
    np.testing.assert_array_equal(next(fed.restore(state))["y"], after)
    np.testing.assert_array_equal(next(batches.iterator().restore(state))["y"], after)
    fed.close()


def test_errors_and_ends(mesh):
    fed = data.to_devices(rows().map(f.raise_at_13).batch(4).iterator(), NamedSharding(mesh, P("data")))
    assert [int(next(fed)["y"][0]) for _ in range(3)] == [0, 4, 8]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="thirteen"):
            next(fed)
        assert fed.state()["position"] == 12
    assert len(list(data.to_devices(rows(16).batch(4).iterator()))) == 4
    assert not feeding_threads()


def test_a_dropped_one_ends_its_thread():
    fed = data.to_devices(rows().batch(4).repeat().iterator())
    next(fed)
    assert len(feeding_threads()) == 1
    del fed
    gc.collect()
    end = time.perf_counter() + 5
    while feeding_threads() and time.perf_counter() < end:
        time.sleep(0.02)
    assert not feeding_threads()
