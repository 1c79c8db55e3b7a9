"""`train.fit` over a mesh gives the losses of one device."""

import numpy as np
import pytest

import atled
from atled import checkpoints, data, nn, optim, random, train
from atled.sharding import NamedSharding, PartitionSpec

X = np.random.RandomState(0).randn(160, 6).astype("float32")
Y = X[:, :3].argmax(1)


class Net(nn.Module):
    def __init__(self, *, key):
        keys = nn.Keys(key)
        # no bias before a norm: its gradient is nothing but rounding, which Adam makes into steps
        self.first, self.norm = nn.Linear(6, 16, use_bias=False, key=keys()), nn.BatchNorm(16)
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(16, 4, key=keys())

    def __call__(self, x, key=None):
        return self.last(self.drop(nn.relu(self.norm(self.first(x))), key=key))


def loss(net, batch, key):
    return nn.losses.cross_entropy(net(batch["x"], key=key), batch["y"])


def losses(model, path, **options):
    rows = data.arrays(x=X, y=Y).shuffle(0).batch(16)
    held_out = data.arrays(x=X[:30], y=Y[:30]).batch(16, drop_last=False)
    state = train.fit(
        model, loss, rows, optim.AdamW(1e-2), steps=20, key=random.key(1),
        evaluation=train.Evaluation(held_out, every=7), checkpoint=path, progress=False, **options,
    )  # fmt: skip
    return state, [list(one.values()) for one in train.records(path)]


def test_losses_are_those_of_one_device(tmp_path):
    _, want = losses(Net(key=random.key(0)), tmp_path / "one")
    mesh = atled.make_mesh((4, 2), ("data", "model"))
    spread, got = losses(Net(key=random.key(0)), tmp_path / "mesh", sharding=mesh)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert isinstance(spread.model.first.weight.sharding, NamedSharding)
    rules = {"first/weight": PartitionSpec(None, "model"), "**": PartitionSpec()}
    model = nn.create(lambda key: Net(key=key), random.key(0), rules=rules, mesh=mesh)
    split, got = losses(
        model, tmp_path / "split", sharding=NamedSharding(mesh, PartitionSpec("data")), gradient_accumulation_steps=1
    )
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert split.model.first.weight.sharding.spec == PartitionSpec(None, "model")


def test_a_run_goes_on_over_another_mesh(tmp_path):
    """The checkpoint of one device is resumed over eight."""
    options = {"key": random.key(1), "progress": False}
    saver = lambda: checkpoints.Saver(tmp_path, every=5)
    rows = data.arrays(x=X, y=Y).shuffle(0).batch(16)
    model = Net(key=random.key(0))
    _, want = losses(model, tmp_path / "whole")
    train.fit(model, loss, rows, optim.AdamW(1e-2), steps=10, checkpoint=saver(), **options)
    mesh = atled.make_mesh((8,), ("data",))
    train.fit(model, loss, rows, optim.AdamW(1e-2), steps=20, checkpoint=saver(), sharding=mesh, **options)
    got = train.records(tmp_path)
    np.testing.assert_allclose([one["loss"] for one in got], [one[1] for one in want], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("micro", [2, 4])
def test_micro_batches_over_a_mesh(tmp_path, micro):
    def plain(model, batch):
        return ((model(batch["x"]) - 1) ** 2).mean()

    model, rows = nn.Linear(6, 2, key=random.key(0)), data.arrays(x=X).batch(32)
    one = train.fit(model, plain, rows, optim.SGD(0.1), steps=5, progress=False)
    mesh = atled.make_mesh((8,), ("data",))
    many = train.fit(
        model, plain, rows, optim.SGD(0.1), steps=5, progress=False, sharding=mesh, gradient_accumulation_steps=micro
    )
    np.testing.assert_allclose(one.model.weight, many.model.weight, rtol=1e-5, atol=1e-6)
