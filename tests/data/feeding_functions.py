"""Functions for pipelines of the tests; worker processes import them."""

import os
import signal
import time

import numpy as np


def double(x):
    return x * 2


def to_float(example):
    return {**example, "x": example["x"].astype("float32") / 2}


def noise(example, rng):
    return {**example, "noise": rng.standard_normal(3), "draw": rng.integers(1000)}


def named(example):
    return {**example, "name": f"example {int(example['y'])}"}


def is_kept(example):
    return int(example["y"]) % 3 != 0


def ragged(example):
    n = int(example["y"]) % 7
    return np.arange(n) + 100 * int(example["y"])


def summed(batch):
    return {**batch, "sum": batch["y"].sum(0)}


def kill_at_13(example):
    if int(example["y"]) == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return example


def raise_at_13(example):
    if int(example["y"]) == 13:
        raise ZeroDivisionError("thirteen")
    return example


class Odd(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, a, b):
        super().__init__(f"{a} {b}")


def raise_odd(example):
    raise Odd(1, 2)


def slow(example):
    time.sleep(0.01)
    return example


def very_slow(example):
    time.sleep(60)
    return example


def starts_nothing(example):
    """Whether XLA has been started in this process, and which threads there are."""
    from atled.engine import client

    return {"y": example["y"], "started": bool(client._clients), "pid": os.getpid()}


def ten(epoch):
    return iter([{"y": np.int64(100 * epoch + i)} for i in range(10)])


def plain(example):
    """Examples of different pipelines, made alike."""
    return {"x": example["x"].astype("float64"), "y": example["y"]}


def same_row(row):
    return {**row, "length": np.int64(len(row["tokens"]))}


def many(epoch):
    return iter(range(10**6))
