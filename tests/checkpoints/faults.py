"""Damage to checkpoints, and a process that saves until it is killed: for `test_faults.py` and its longer script."""

import contextlib
import pathlib
import sys

import numpy as np

from atled import checkpoints
from atled.checkpoints import CheckpointError


def tree_for(step, size=2000):
    """The tree of a step, which is the same each time."""
    rng = np.random.default_rng(step)
    return {"params": {f"w{i}": rng.normal(size=size + i).astype("float32") for i in range(4)}, "step": np.array(step)}


def equal(a, b):
    if isinstance(b, dict):
        return a.keys() == b.keys() and all([equal(a[k], b[k]) for k in b])
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def harmless_or_refused(path, want):
    """What becomes of a damaged checkpoint; wrong numbers without an error fail."""
    try:
        got = checkpoints.load(path, template=want)
    except CheckpointError:
        return "refused"
    assert equal(got, want), "wrong numbers, and no error"
    return "harmless"


@contextlib.contextmanager
def flip(rng, path):
    """One bit of one file of a directory, the other way round."""
    files = sorted([f for f in path.rglob("*") if f.is_file()])
    file = rng.choices(files, [f.stat().st_size for f in files])[0]
    whole = file.read_bytes()
    bad = bytearray(whole)
    bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
    file.write_bytes(bad)
    try:
        yield file
    finally:
        file.write_bytes(whole)


def save_for_ever(path):
    """Say which step is there, whole; then save one after the other, and say so."""
    saver = checkpoints.Saver(path, max_to_keep=2, wait=True)
    step = saver.latest() or 0
    if step:
        found = saver.restore(template=tree_for(step))
        assert found is not None and found.step == step and equal(found.tree, tree_for(step))
    print("AT", step, flush=True)
    while True:
        step += 1
        saver.save(step, tree_for(step))
        print("SAVED", step, flush=True)


if __name__ == "__main__":
    save_for_ever(pathlib.Path(sys.argv[1]))
