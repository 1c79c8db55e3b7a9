"""A run of `test_kills.py`: shuffled data, worker processes, dropout, batch statistics, AdamW, frequent checkpoints."""

import sys

import numpy as np

import atled.numpy as jnp
from atled import checkpoints, data, nn, optim, random, train

STEPS = 120


class Net(nn.Module):
    def __init__(self, *, key):
        keys = nn.Keys(key)
        self.first, self.norm = nn.Linear(8, 256, key=keys()), nn.BatchNorm(256)
        self.wide, self.drop = nn.Linear(256, 512, key=keys()), nn.Dropout(0.2)
        self.last = nn.Linear(512, 4, key=keys())

    def __call__(self, x, key=None):
        return self.last(self.drop(nn.relu(self.wide(nn.relu(self.norm(self.first(x))))), key=key))


def loss(net, batch, key):
    return nn.losses.cross_entropy(net(batch["x"], key=key), batch["y"])


def noisy(example, rng):
    return {**example, "x": example["x"] + rng.normal(0, 0.1, 8).astype("float32")}


def main(directory, workers):
    x = np.random.RandomState(0).randn(500, 8).astype("float32")
    rows = data.arrays(x=x, y=x[:, :4].argmax(1)).shuffle(3).random_map(noisy, 4).batch(32)
    held_out = data.arrays(x=x[:64], y=x[:64, :4].argmax(1)).batch(32)
    state = train.fit(
        Net(key=random.key(0)), loss, rows, optim.AdamW(3e-3), steps=STEPS, key=random.key(1), num_workers=int(workers),
        evaluation=train.Evaluation(held_out, every=10),
        checkpoint=checkpoints.Saver(directory, every=5, max_to_keep=2),
        loggers=[train.TensorBoard(f"{directory}/board")], progress=False,
    )  # fmt: skip
    assert int(state.step) == STEPS and bool(jnp.isfinite(state.model.last.weight).all())


if __name__ == "__main__":
    main(*sys.argv[1:])
