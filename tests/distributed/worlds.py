"""Real processes for the tests: started, listened to, and ended, whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
WORKER = pathlib.Path(__file__).with_name("worker.py")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Process:
    """A worker: a scenario of `worker.py`, which prints a JSON object a line."""

    def __init__(self, scenario: str, *args: Any, **environment: str) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "ATLED_", "XLA_"))}
        env = {
            **clean,
            "PYTHONPATH": str(ROOT),
            "ATLED_PLATFORMS": "cpu",
            "PYTHONWARNINGS": "error",
            "TF_CPP_MIN_LOG_LEVEL": "1",
            **environment,
        }
        self.child = subprocess.Popen(
            [sys.executable, str(WORKER), scenario, *map(str, args)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip

    def hear(self) -> dict[str, Any]:
        """The next thing that it says."""
        assert self.child.stdout is not None
        line = "["
        while line.startswith("["):  # Gloo speaks, too
            line = self.child.stdout.readline()
        if not line:
            code = self.child.wait(30)
            assert self.child.stderr is not None
            raise AssertionError(f"a worker ended with {code}:\n{self.child.stderr.read()}")
        return json.loads(line)

    def end(self, timeout: float = 60) -> list[dict[str, Any]]:
        """All that it still says, after it has ended as it should."""
        out, err = self.child.communicate(timeout=timeout)
        assert self.child.returncode == 0, f"a worker ended with {self.child.returncode}:\n{err}\n{out}"
        assert not err, err
        return [json.loads(line) for line in out.splitlines() if not line.startswith("[")]

    def signal(self, number: int) -> float:
        """Send a signal, and return when that was."""
        self.child.send_signal(number)
        return time.time()


@contextlib.contextmanager
def started(scenario: str, size: int, *args: Any, address: str = "", **environment: str) -> Iterator[list[Process]]:
    """So many workers of a scenario, which are given rank, number and address first."""
    address = address or f"127.0.0.1:{free_port()}"
    workers = [Process(scenario, rank, size, address, *args, **environment) for rank in range(size)]
    try:
        yield workers
    finally:
        for worker in workers:
            if worker.child.poll() is None:
                worker.child.send_signal(signal.SIGCONT)
                worker.child.kill()
            worker.child.communicate()


def run(scenario: str, size: int, *args: Any, **environment: str) -> list[list[dict[str, Any]]]:
    """What each worker of a scenario has said."""
    with started(scenario, size, *args, **environment) as workers:
        return [worker.end() for worker in workers]
