"""What `train.fit` costs beside the compiled step: `python -m benchmarks.fitting`.

A step of about 10 ms, batches in memory. `fit` logs each step, shows a bar, puts batches on the device ahead and saves
every 100 steps; the peer is a loop that does nothing but call the step. They take turns, each keeps its best.
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
from atled import data, nn, optim, train


class Terminal(io.StringIO):
    """A terminal that nobody looks at."""

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
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=512)
    options = parser.parse_args()
    x = np.random.RandomState(0).randn(4096, 256).astype("float32")
    held = list(data.arrays(x=x, y=x[:, :10].argmax(1)).batch(256))
    batches = data.source(held).shuffle(0)
    optimizer, model, steps = optim.AdamW(1e-3), net(options.width), options.steps
    step = train.step(loss)
    held = [atled.device_put(b) for b in held]

    def bare() -> float:
        state = train.State(atled.tree.map(atled.numpy.copy, model), optimizer)
        state, _ = step(state, held[0])
        atled.block_until_ready(state)
        start = time.perf_counter()
        for i in range(steps):
            state, values = step(state, held[i % len(held)])
        atled.block_until_ready((state, values))
        return (time.perf_counter() - start) / steps

    def fitted(**more: Any) -> float:
        seen: list[float] = []

        def hook(run: Any) -> None:
            if run.step == 1:
                atled.block_until_ready(run.metrics)
                seen.append(time.perf_counter())

        screen, sys.stderr = sys.stderr, Terminal()
        try:
            with tempfile.TemporaryDirectory() as path:
                keep = {"checkpoint": path, "every": 100} if more.pop("saves", True) else {}
                train.fit(model, loss, batches, optimizer, steps=steps + 1, hooks=[hook], **keep, **more)
                seen.append(time.perf_counter())
        finally:
            sys.stderr = screen
        return (seen[1] - seen[0]) / steps

    ways = {
        "fit": fitted,
        "fit, nobody looks for nans": lambda: fitted(nans=None),
        "fit, without checkpoints": lambda: fitted(saves=False),
    }
    best = {name: float("inf") for name in ("bare", *ways)}
    for _ in range(options.rounds):
        for name in best:
            best[name] = min(best[name], bare() if name == "bare" else ways[name]())
    for name, seconds in best.items():
        print(f"{name:30} {seconds * 1e3:8.3f} ms a step, {seconds / best['bare']:.3f}")


if __name__ == "__main__":
    main()
