"""The overhead of `train.fit` over the compiled step: `python -m benchmarks.fitting`.

A step takes about 10 ms; batches are in memory. `fit` logs each step, shows a bar, prefetches batches to the device and
saves every 100 steps; the peer is a loop that only calls the step. Both take turns of 100 steps in one process.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from typing import Any

import numpy as np

import atled
from atled import checkpoints, data, nn, optim, train


class Terminal(io.StringIO):
    """A terminal that discards the progress bar."""

    def isatty(self) -> bool:
        return True


def loss(model: Any, batch: Any) -> Any:
    return nn.losses.cross_entropy(model(batch["x"]), batch["y"])


def net(width: int) -> Any:
    keys = nn.Keys(0)
    layers = [nn.Linear(n, m, key=keys()) for n, m in ((256, width), (width, width), (width, 10))]
    return nn.Sequential(layers[0], nn.relu, layers[1], nn.relu, layers[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--width", type=int, default=800)
    options = parser.parse_args()
    x = np.random.RandomState(0).randn(4096, 256).astype("float32")
    batches = data.source(list(data.arrays(x=x, y=x[:, :10].argmax(1)).batch(256))).shuffle(0)
    optimizer, model, every = optim.AdamW(1e-3), net(options.width), options.every
    step = train.step(loss)
    held = [atled.device_put(b) for b in batches]

    def bare() -> float:
        nonlocal state
        start = time.perf_counter()
        for i in range(every):
            state, values = step(state, held[i % len(held)])
        atled.block_until_ready((state, values))
        return (time.perf_counter() - start) / every

    def hook(run: Any) -> None:
        nonlocal start
        if run.step % every:
            return
        atled.block_until_ready(run.state)
        fitted.append((time.perf_counter() - start) / every)
        alone.append(bare())
        start = time.perf_counter()

    for name, more in {
        "fit": {"checkpoint": True},
        "fit, without checks for NaN": {"checkpoint": True, "nans": None},
        "fit, without checkpoints": {},
    }.items():
        state = train.State(atled.tree.map(atled.numpy.copy, model), optimizer)
        alone: list[float] = []
        fitted: list[float] = []
        start = time.perf_counter()
        screen, sys.stderr = sys.stderr, Terminal()
        try:
            with tempfile.TemporaryDirectory() as path:
                if more.pop("checkpoint", False):
                    more |= {"checkpoint": checkpoints.Saver(path, every=every)}
                train.fit(model, loss, batches, optimizer, steps=every * (options.turns + 1), callbacks=[hook], **more)
        finally:
            sys.stderr = screen
        ratios = np.array(fitted[1:]) / np.array(alone[1:])  # without the first turn, which compiles
        low, middle, high = np.percentile(ratios, [25, 50, 75])
        best = min(fitted[1:]) / min(alone[1:])
        print(
            f"{name:28} {min(alone[1:]) * 1e3:7.3f} ms bare, ratio of turns: median {middle:.3f} "
            f"(quartiles {low:.3f} to {high:.3f}), of the best {best:.3f}"
        )


if __name__ == "__main__":
    main()
