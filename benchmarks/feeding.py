"""Input pipelines for images: `atled.data`, grain and PyTorch's DataLoader, from one memory-mapped file.

`python -m benchmarks.feeding` measures batches per second. A batch has 256 images of 224 × 224 × 3 bytes, random crops
and flips of images of 256 × 256, made by two worker processes. The candidates take turns, each in a process of its own;
the first batches are not timed, and the best turn of each counts. grain runs with one thread per process, and with its
default number. Peers that are not installed are skipped.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

IMAGES, SIDE, CROP, BATCH = 2048, 256, 224, 256


def cropped(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random crop of an image, mirrored half of the time, as a view."""
    top, left, flip = rng.integers(SIDE - CROP), rng.integers(SIDE - CROP), rng.integers(2)
    part = image[top : top + CROP, left : left + CROP]
    return part[:, ::-1] if flip else part


def augment(example: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {"image": cropped(example["image"], rng), "label": example["label"]}


class Records:
    """The images as a data set for PyTorch and grain; each process opens the file at its first access."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened: Any = None

    def __len__(self) -> int:
        return IMAGES

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "opened": None}

    def __getitem__(self, i: Any) -> dict[str, Any]:
        if self.opened is None:
            self.opened = np.load(self.path, mmap_mode="r")
        return {"image": self.opened[i], "label": np.int64(i)}


def ours(path: str, workers: int) -> Any:
    from atled import data

    images = data.arrays(image=np.load(path, mmap_mode="r"), label=np.arange(IMAGES))
    batches = images.shuffle(0).random_map(augment, 1).batch(BATCH).repeat()
    return batches.iterator(num_workers=workers)


class Augmented(Records):
    """The images as a PyTorch data set, which augments each example."""

    def __getitem__(self, i: Any) -> dict[str, Any]:
        import torch

        rng = self.__dict__.setdefault("rng", np.random.default_rng(i))
        made = augment(super().__getitem__(i), rng)
        return {"image": torch.from_numpy(np.ascontiguousarray(made["image"])), "label": int(i)}


def torch_loader(path: str, workers: int) -> Any:
    import torch

    order = torch.utils.data.RandomSampler(Augmented(path), num_samples=100 * IMAGES, replacement=True)
    return iter(
        torch.utils.data.DataLoader(Augmented(path), BATCH, sampler=order, num_workers=workers, persistent_workers=True)
    )


def grain_loader(path: str, workers: int, threads: int | None = 1) -> Any:
    import grain

    class Augment(grain.transforms.RandomMap):
        def random_map(self, element: Any, rng: np.random.Generator) -> Any:
            return augment(element, rng)

    set_of = grain.MapDataset.source(Records(path)).shuffle(0).seed(1).random_map(Augment()).repeat().batch(BATCH)
    reads = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4) if threads else grain.ReadOptions()
    return iter(
        set_of.to_iter_dataset(reads).mp_prefetch(
            grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=2)
        )
    )


def grain_as_it_comes(path: str, workers: int) -> Any:
    return grain_loader(path, workers, None)


MAKERS = {"atled": ours, "torch": torch_loader, "grain": grain_loader, "grain-threads": grain_as_it_comes}


def rate(name: str, path: str, workers: int, batches: int) -> float:
    """Batches per second of a candidate, after the first batches."""
    iterator = MAKERS[name](path, workers)
    for _ in range(2 + 2 * workers):
        next(iterator)
    began = time.perf_counter()
    total = 0
    for _ in range(batches):
        batch = next(iterator)
        total += int(batch["image"][0, 0, 0, 0])  # reads the batch
    return batches / (time.perf_counter() - began)


def written(folder: str) -> str:
    """Write a file of random images; returns its path."""
    path = os.path.join(folder, "images.npy")
    file = np.lib.format.open_memmap(path, "w+", "uint8", (IMAGES, SIDE, SIDE, 3))
    rng = np.random.default_rng(0)
    for i in range(0, IMAGES, 128):
        file[i : i + 128] = rng.integers(0, 256, (128, SIDE, SIDE, 3), np.uint8)
    file.flush()
    return path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=2, help="print the rate of a candidate with a file of images")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.one:
        print(rate(*args.one, args.workers, args.batches))
        sys.stdout.flush()
        return
    names = [n for n in MAKERS if n == "atled" or importlib.util.find_spec(n.split("-")[0])]
    best = dict.fromkeys(names, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder)
        for _ in range(args.rounds):
            for name in names:
                command = [sys.executable, "-m", "benchmarks.feeding", "--one", name, path]
                rest = ["--workers", str(args.workers), "--batches", str(args.batches)]
                done = subprocess.run([*command, *rest], capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr)
                found = float(done.stdout.split()[-1])
                best[name] = max(best[name], found)
                print(f"{name:13} {found:7.2f} batches/s", flush=True)
    print(" | ".join([f"{n} {r:.2f}" for n, r in best.items()]))
    peers = [r for n, r in best.items() if n != "atled"]
    if peers:
        print(f"atled / the fastest peer: {best['atled'] / max(peers):.2f}")


if __name__ == "__main__":
    main()
