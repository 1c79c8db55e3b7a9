"""Kill runs at random moments, start them again, and compare what they did with a run that nobody killed."""

import os
import pathlib
import random as std_random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from atled import checkpoints, train
from atled.checkpoints.format import MANIFEST

PROGRAM = pathlib.Path(__file__).with_name("killed_run.py")


def start(directory, workers):
    command = [sys.executable, str(PROGRAM), str(directory), str(workers)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)


def finish(process):
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def result(directory):
    """All that a run did: the log, the events, and the bits of the last checkpoint."""
    saver = checkpoints.Saver(directory)
    found = saver.restore()
    assert found is not None and found.step == saver.latest()
    board = [(step, values) for _, step, values in train.TensorBoard(directory / "board").events()][1:]
    return train.records(directory), board, {k: np.asarray(v).tobytes() for k, v in found.tree.items()}


def kills(count, place, seed, workers=1, say=lambda text: None):
    """Kill runs `count` times. Every run that comes to its end must be the one that was never killed."""
    place, rng = pathlib.Path(place), std_random.Random(seed)
    for name in ("first", "whole"):  # the second has what the first compiled, as all others do
        began = time.monotonic()
        finish(start(place / name, workers))
        length = time.monotonic() - began
    want = result(place / "whole")
    assert [one["step"] for one in want[0]] == list(range(1, len(want[0]) + 1))
    killed = ended = moments = 0
    while killed < count:
        shutil.rmtree(place / "killed", ignore_errors=True)
        process = start(place / "killed", workers)
        while True:
            try:
                process.wait(rng.uniform(0.2, 0.9) * length)
                break
            except subprocess.TimeoutExpired:
                pass
            whole = rng.random() < 0.5  # the workers, too, or the process alone, and they notice
            (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
            moments += any([not (p / MANIFEST).exists() for p in (place / "killed").glob("step-*")])
            process = start(place / "killed", workers)
            say(f"{killed} killed, {moments} of them in the middle of a save, {ended} runs to the end")
            if killed >= count:
                break
        finish(process)
        ended += 1
        assert result(place / "killed") == want
    return killed, moments, ended
