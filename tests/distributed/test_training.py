"""The same training run in one process, in two and in four: the same losses, and the same bits everywhere."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from worlds import Process, free_port

TRAINING = pathlib.Path(__file__).with_name("training.py")


def losses_of(processes: int, devices: int, shape: str) -> list[list[float]]:
    address = f"127.0.0.1:{free_port()}"
    workers = [
        Process(str(TRAINING), rank, processes, address, f"shape={shape}", ATLED_NUM_CPU_DEVICES=str(devices))
        for rank in range(processes)
    ]
    try:
        said = [worker.end(120)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert {s["processes"] for s in said} == {processes} and len({s["bits"] for s in said}) == 1
    return [s["losses"] for s in said]


@pytest.fixture(scope="module")
def alone() -> list[float]:
    (found,) = losses_of(1, 1, "1,1")
    assert len(found) == 20 and found[-1] < found[0]
    return found


@pytest.mark.parametrize("processes, devices, shape", [(2, 4, "4,2"), (4, 1, "2,2")])
def test_losses_are_the_same_in_several_processes(alone, processes, devices, shape):
    for losses in losses_of(processes, devices, shape):
        np.testing.assert_allclose(losses, alone, rtol=1e-6)
