"""Mixtures of experts over a mesh of 4 × 2 devices: the numbers of one device, and tokens that go to their experts."""

import re

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree
from atled.sharding import NamedSharding, set_mesh
from atled.sharding import PartitionSpec as P

X = random.normal(random.key(1), (8, 6, 8))


@pytest.fixture
def mesh():
    return atled.make_mesh((4, 2), ("data", "model"))


def expert(key):
    a, b = random.split(key)
    return nn.Sequential(nn.Linear(8, 16, key=a), nn.relu, nn.Linear(16, 8, key=b))


def mixture(**settings):
    return nn.MixtureOfExperts(expert, 8, in_features=8, key=random.key(0), **settings)


def loss(moe, x):
    y, losses = moe(x, return_losses=True)
    return jnp.sin(y).sum() + losses["balance"] + losses["z"], (y, losses)


@pytest.mark.parametrize("axis", ["data", "model"])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("capacity", [None, 1.0, 0.5])
@pytest.mark.parametrize("k", [1, 2])
def test_the_numbers_are_those_of_one_device(mesh, axis, groups, capacity, k):
    moe = mixture(mesh_axis=axis, num_groups=groups, capacity_factor=capacity, k=k)
    run = atled.jit(atled.value_and_grad(loss, has_aux=True))
    want = run(moe, X)
    split = atled.device_put(moe, nn.shardings(moe, {"experts": P(axis)}, mesh))
    assert split.experts.layers[0].weight.addressable_shards[0].data.shape == (8 // mesh.shape[axis], 8, 16)
    with set_mesh(mesh):
        got = run(split, atled.device_put(X, NamedSharding(mesh, P("data"))))
    assert got[1].experts.layers[0].weight.sharding.spec[0] == axis
    for a, b in zip(tree.leaves(want), tree.leaves(got), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=2e-5)


def test_tokens_move_by_all_to_all(mesh):
    moe = mixture(mesh_axis="data", num_groups=4)
    split = atled.device_put(moe, nn.shardings(moe, {"experts": P("data")}, mesh))
    x = atled.device_put(X, NamedSharding(mesh, P("data")))
    with set_mesh(mesh):
        text = atled.jit(lambda m, x: m(x)).lower(split, x).compile().as_text()
    assert len(re.findall(r" all-to-all\(", text)) == 2  # there and back
    assert not re.search(r"f32\[\S*\] all-gather\(", text)  # nobody gets all tokens, nor all weights


def test_one_expert_is_computed_by_one_device(mesh):
    moe = mixture(mesh_axis="data", num_groups=4)
    one = atled.jit(lambda m, x: m(x)).lower(moe, X).compile().cost_analysis()["flops"]
    split = atled.device_put(moe, nn.shardings(moe, {"experts": P("data")}, mesh))
    with set_mesh(mesh):
        x = atled.device_put(X, NamedSharding(mesh, P("data")))
        part = atled.jit(lambda m, x: m(x)).lower(split, x).compile().cost_analysis()["flops"]
    assert part < one / 3


def test_more_devices_than_experts_are_refused(mesh):
    moe = nn.MixtureOfExperts(expert, 2, in_features=8, mesh_axis="data", key=random.key(0))
    with pytest.raises(ValueError, match=r"nn.shardings, experts/layers/layers/0/weight"):
        nn.shardings(moe, {"experts": P("data")}, mesh)
    with set_mesh(mesh), pytest.raises(ValueError, match="with_sharding_constraint"):
        moe(X)
