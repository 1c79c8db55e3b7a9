"""Saving and restoring a large state: `python -m benchmarks.storing --gigabytes 4`.

Prints ratios to a plain parallel write and read of the same bytes in the same run, and to Orbax if it is installed.
"cold" rows drop the page cache before reading. Each time is the best of several interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

ARRAYS = 32


def state(gigabytes: float):
    """A train state of 32 arrays with a total size in gigabytes."""
    import atled.numpy as jnp

    rows = int(gigabytes * 2**30 / 4 / ARRAYS / 1024)
    base = np.random.default_rng(0).normal(size=(rows, 1024)).astype("float32")
    return {f"w{i:02}": jnp.asarray(base + i) for i in range(ARRAYS)}


def seconds(f) -> float:
    begin = time.perf_counter()
    f()
    return time.perf_counter() - begin


def at_once(f, items, count=4) -> None:
    """Apply a function to each item, in `count` threads."""
    waiting, lock = list(items), threading.Lock()

    def run() -> None:
        while True:
            with lock:
                if not waiting:
                    return
                item = waiting.pop()
            f(item)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def raw_write(place: pathlib.Path, arrays) -> None:
    place.mkdir(parents=True, exist_ok=True)

    def one(item) -> None:
        name, x = item
        with open(place / name, "wb", buffering=0) as file:
            view, done = memoryview(np.asarray(x)).cast("B"), 0
            while done < len(view):
                done += file.write(view[done : done + 2**24])
            os.fsync(file.fileno())

    at_once(one, arrays.items())


def raw_read(place: pathlib.Path, arrays) -> None:
    """Read all arrays into new memory, which is kept until all are read, like a restored tree."""
    kept = []

    def one(item) -> None:
        name, x = item
        into = np.empty(x.shape, x.dtype)
        kept.append(into)
        with open(place / name, "rb", buffering=0) as file:
            view, done = memoryview(into).cast("B"), 0
            while done < len(view):
                done += file.readinto(view[done:])

    at_once(one, arrays.items())


def forget(place: pathlib.Path) -> None:
    """Drop the files below a directory from the page cache."""
    for file in place.rglob("*"):
        if file.is_file():
            handle = os.open(file, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def clean(place: pathlib.Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    os.sync()


class Run:
    """Runs the rounds and keeps the best seconds of each row."""

    def __init__(self, gigabytes: float, root: pathlib.Path) -> None:
        import atled
        from atled import checkpoints

        self.atled, self.checkpoints, self.root = atled, checkpoints, root
        self.tree, self.best = state(gigabytes), {}
        self.saver = checkpoints.Saver(root / "async", max_to_keep=1)
        self.donating = atled.jit(lambda t: {k: v * 1.0001 for k, v in t.items()}, donate_argnums=0)

    def note(self, name: str, f) -> None:
        took = seconds(f)
        self.best[name] = min(self.best.get(name, took), took)

    def step(self) -> None:
        self.tree = self.donating(self.tree)
        self.atled.block_until_ready(self.tree)

    def load(self) -> None:
        self.atled.block_until_ready(self.checkpoints.load(self.root / "ours", template=self.tree))

    def round(self, number: int) -> None:
        raw, ours = self.root / "raw", self.root / "ours"
        writes = [
            ("raw write", lambda: raw_write(raw, self.tree)),
            ("save", lambda: self.checkpoints.save(ours, self.tree)),
        ]
        for name, write in writes if number % 2 else reversed(writes):  # the second may be slower
            os.sync()
            self.note(name, write)
        for how in ("warm", "warm", "cold"):
            for name, read in (("raw read", lambda: raw_read(raw, self.tree)), ("restore", self.load)):
                if how == "cold":
                    forget(self.root)
                self.note(f"{name}, {how}", read)
        clean(raw)
        clean(ours)
        for _ in range(3):
            self.note("step", self.step)

        def saving() -> None:
            self.saver.save(number, self.tree)
            self.step()

        self.note("step that saves, first" if number == 0 else "step that saves", saving)
        self.saver.wait()
        clean(self.root / "async")


def orbax(gigabytes: float, rounds: int, root: pathlib.Path) -> dict[str, float]:
    """Seconds to save and restore the same tree with Orbax and jax."""
    import jax
    import jax.numpy as jnp
    import orbax.checkpoint as ocp

    rows = int(gigabytes * 2**30 / 4 / ARRAYS / 1024)
    base = np.random.default_rng(0).normal(size=(rows, 1024)).astype("float32")
    tree = {f"w{i:02}": jnp.asarray(base + i) for i in range(ARRAYS)}
    jax.block_until_ready(tree)
    best: dict[str, float] = {}
    with ocp.StandardCheckpointer() as checkpointer:
        for i in range(rounds):
            path = (root / f"orbax{i}").absolute()

            def save(path=path) -> None:
                checkpointer.save(path, tree)
                checkpointer.wait_until_finished()

            best["save"] = min(best.get("save", 1e9), seconds(save))
            restore = lambda path=path: jax.block_until_ready(checkpointer.restore(path, tree))
            best["restore"] = min(best.get("restore", 1e9), seconds(restore))
            clean(path)
    return best


def peak(gigabytes: float, root: pathlib.Path, how: str) -> float:
    """Megabytes that a save adds to the peak memory; called in a new process."""
    import atled
    from atled import checkpoints

    tree = state(gigabytes)
    atled.block_until_ready(tree)
    before = _now()
    top, stop = [before], threading.Event()

    def watch() -> None:
        while not stop.wait(0.005):
            top[0] = max(top[0], _now())

    watcher = threading.Thread(target=watch)
    watcher.start()
    saver = checkpoints.Saver(root / how, wait=how == "sync")
    saver.save(1, tree)
    saver.wait()
    stop.set()
    watcher.join()
    return top[0] - before


def _now() -> float:
    """Resident memory of this process in megabytes."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--orbax", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("ATLED_BENCH_DIR")) as place:
        root = pathlib.Path(place)
        if options.peak:
            print(peak(options.gigabytes, root, options.peak))
            return
        if options.orbax:
            print(json.dumps(orbax(options.gigabytes, options.rounds, root)))
            return
        run = Run(options.gigabytes, root)
        for number in range(options.rounds):
            run.round(number)
        best = run.best
    size = options.gigabytes * 2**30 / 1e9
    for name, value in best.items():
        print(f"{name:<24} {value:8.3f} s  {size / value:6.2f} GB/s")
    print(f"save, rate / raw write       {best['raw write'] / best['save']:.2f}")
    for how in ("warm", "cold"):
        print(f"restore, rate / raw read, {how} {best[f'raw read, {how}'] / best[f'restore, {how}']:.2f}")
    extra = best["step that saves"] - best["step"]
    print(f"a background save blocks the step for {extra:.3f} s, {extra / best['save']:.3f} of a blocking save")
    again = [sys.executable, "-m", "benchmarks.storing", "--gigabytes", str(options.gigabytes)]
    for how in ("sync", "async"):
        done = subprocess.run([*again, "--peak", how], capture_output=True, text=True)
        print(f"peak memory added, {how}: {done.stdout.strip() or done.stderr[-500:]} MB")
    done = subprocess.run([*again, "--orbax", "--rounds", str(options.rounds)], capture_output=True, text=True)
    if done.returncode == 0:
        peer = json.loads(done.stdout.strip().splitlines()[-1])
        ratios = [best["save"] / peer["save"], best["restore, warm"] / peer["restore"]]
        print(f"time / Orbax's time: save {ratios[0]:.2f}, restore {ratios[1]:.2f}")
    else:
        print(f"no Orbax: {done.stderr[-300:]}")


if __name__ == "__main__":
    main()
