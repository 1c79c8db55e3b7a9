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


def reached(directory):
    """The step of the newest checkpoint, whole or not."""
    return max([int(p.name.removeprefix("step-")) for p in directory.glob("step-*")], default=0)


def lives(process, directory, rng):
    """Whether a run is there to be killed: while it starts, or some steps and less than a second later."""
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 2))
        return process.poll() is None
    target = reached(directory) + rng.randrange(5, 45)
    while process.poll() is None and reached(directory) < target:
        time.sleep(0.005)
    time.sleep(rng.choice([0, rng.uniform(0, 0.02), rng.uniform(0, 0.2)]))
    return process.poll() is None


def kills(count, place, seed, workers=1, say=lambda text: None):
    """Kill runs `count` times, each some times. Every run must come to the end of one that was never killed."""
    place, rng = pathlib.Path(place), std_random.Random(seed)
    finish(start(place / "whole", workers))
    want = result(place / "whole")
    assert [one["step"] for one in want[0]] == list(range(1, len(want[0]) + 1))
    killed = ended = moments = 0
    while killed < count:
        shutil.rmtree(place / "killed", ignore_errors=True)
        process = start(place / "killed", workers)
        for _ in range(min(4, count - killed)):
            if not lives(process, place / "killed", rng):
                break
            whole = rng.random() < 0.5  # the workers, too, or the process alone, and they notice
            (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
            moments += any([not (p / MANIFEST).exists() for p in (place / "killed").glob("step-*")])
            process = start(place / "killed", workers)
            say(f"{killed} killed, {moments} of them in the middle of a save, {ended} runs to the end")
        finish(process)
        ended += 1
        assert result(place / "killed") == want
    return killed, moments, ended
