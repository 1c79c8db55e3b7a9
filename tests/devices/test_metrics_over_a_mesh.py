"""Metrics over a mesh of 4 × 2 devices: batches that are split are counted as one, and so is what devices counted."""

import pathlib
import sys

import numpy as np
import pytest

import atled
from atled import tree
from atled.nn import losses
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "metrics"))
from test_metric_laws import METRICS


@pytest.fixture
def mesh():
    return atled.make_mesh((4, 2), ("data", "model"))


@pytest.mark.parametrize("name", METRICS)
def test_split_batches_in_a_jit(name, mesh):
    empty, args = METRICS[name]
    split = [atled.device_put(x, NamedSharding(mesh, P(("data", "model")))) for x in args]
    seen = atled.jit(lambda m, *a: m.update(*a))(empty, *split)
    np.testing.assert_allclose(seen.compute(), empty.update(*args).compute(), rtol=1e-12)


@pytest.mark.parametrize("axes", ["data", ("data", "model")])
@pytest.mark.parametrize("name", METRICS)
def test_parts_in_a_shard_map(name, axes, mesh):
    """Each device has a batch of its own, and in the end all have the metric of all; masks differ between them."""
    empty, args = METRICS[name]
    mask = np.random.RandomState(1).rand(len(args[0])) < 0.7
    mask[:3] = False  # all of the first device of eight

    def run(mask, *args):
        return empty.update(*args, where=mask).reduce(axes)

    specs = (P(axes),) * (1 + len(args))
    seen = atled.jit(atled.shard_map(run, mesh=mesh, in_specs=specs, out_specs=P()))(mask, *args)
    np.testing.assert_allclose(seen.compute(), empty.update(*args, where=mask).compute(), rtol=1e-12)
    assert all([x.shape == y.shape for x, y in zip(tree.leaves(seen), tree.leaves(empty), strict=True)])


def test_losses_over_a_mesh(mesh):
    r = np.random.RandomState(0)
    x, w, ids = r.randn(64, 8).astype("f4"), r.randn(10, 8).astype("f4"), r.randint(0, 10, 64)
    f = atled.jit(atled.value_and_grad(lambda *a: losses.linear_cross_entropy(*a, chunk_size=16), (0, 1)))
    want = f(x, w, ids)
    put = lambda x, *spec: atled.device_put(x, NamedSharding(mesh, P(*spec)))
    got = f(put(x, "data"), put(w, "model"), put(ids, "data"))
    for a, b in zip(tree.leaves(want), tree.leaves(got), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
