"""A process of `test_fit_in_processes.py`: trains over all processes, or is told by a signal to stop."""

import json
import os
import signal
import sys

import numpy as np

import atled
from atled import data, distributed, nn, optim, random, train

_out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Gloo writes to the standard output
X = np.random.RandomState(0).randn(160, 6).astype("float32")
Y = X[:, :3].argmax(1)


class Net(nn.Module):
    def __init__(self, *, key):
        keys = nn.Keys(key)
        self.first, self.norm = nn.Linear(6, 16, use_bias=False, key=keys()), nn.BatchNorm(16)
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(16, 4, key=keys())

    def __call__(self, x, key=None):
        return self.last(self.drop(nn.relu(self.norm(self.first(x))), key=key))


def loss(net, batch, key):
    return nn.losses.cross_entropy(net(batch["x"], key=key), batch["y"])


def main(rank, size, address, what, path, steps):
    if int(size) > 1:
        distributed.initialize(address, int(size), int(rank))
    mesh = atled.make_mesh((atled.device_count(),), ("data",))
    rows, held_out = data.arrays(x=X, y=Y).shuffle(0).batch(16), data.arrays(x=X[:32], y=Y[:32]).batch(16)

    def hook(run):
        if what == "signal" and int(rank) == 1 and run.step == 5:
            signal.raise_signal(signal.SIGTERM)  # one process is told, all of them stop

    def bad(net, batch, key):
        return loss(net, batch, key) + (0 * atled.numpy.log(-abs(batch["x"]).sum()) if what == "nan" else 0)

    said = {}
    try:
        state = train.fit(
            Net(key=random.key(0)), bad, rows, optim.AdamW(1e-2), steps=int(steps), key=random.key(1),
            evaluation=train.Evaluation(held_out, every=7), checkpoint=path, progress=False, sharding=mesh,
            callbacks=[hook],
        )  # fmt: skip
        said["weight"] = np.asarray(state.model.last.weight.addressable_shards[0].data).tobytes().hex()
    except SystemExit as error:
        said["code"] = error.code
    except FloatingPointError as error:
        said["error"] = str(error)
    os.write(_out, json.dumps(said).encode() + b"\n")
    if int(size) > 1:
        distributed.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
