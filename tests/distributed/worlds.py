"""Real processes for the tests: started, listened to, and ended, whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
WORKER = pathlib.Path(__file__).with_name("worker.py")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Process:
    """A worker: a scenario of `worker.py`, or a file of its own, which prints a JSON object a line."""

    def __init__(self, scenario: str, *args: Any, prefix: tuple[str, ...] = (), **environment: str) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "ATLED_P", "XLA_"))}
        env = {
            **clean,
            "PYTHONPATH": str(ROOT),
            "ATLED_PLATFORMS": "cpu",
            "PYTHONWARNINGS": "error",
            "TF_CPP_MIN_LOG_LEVEL": "1",
            **environment,
        }
        file = [scenario] if scenario.endswith(".py") else [str(WORKER), scenario]
        self.child = subprocess.Popen(
            [*prefix, sys.executable, *file, *map(str, args)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip
        self.errors: list[str] = []
        self._said: queue.Queue[str | None] = queue.Queue()
        self._threads = [threading.Thread(target=read) for read in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        for line in self.child.stdout or ():
            self._said.put(line)
        self._said.put(None)

    def _read_errors(self) -> None:
        self.errors.extend(self.child.stderr or ())

    def hear(self, timeout: float = 60) -> dict[str, Any]:
        """The next thing that it says."""
        try:
            line = self._said.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"a worker said nothing for {timeout} s:\n{self.stacks()}") from None
        if line is None:
            raise AssertionError(f"a worker ended with {self.child.wait(30)}:\n{''.join(self.errors)}")
        return json.loads(line)

    def stacks(self) -> str:
        """Where its threads are, and what it wrote before, for a test that fails."""
        self.child.send_signal(signal.SIGUSR1)
        time.sleep(1)
        return "".join(self.errors)

    def end(self, timeout: float = 60) -> list[dict[str, Any]]:
        """All that it still says, after it has ended as it should."""
        code = self.child.wait(timeout)
        for thread in self._threads:
            thread.join()
        said = [json.loads(line) for line in iter(self._said.get, None)]
        errors = [line for line in self.errors if not line.startswith("distributed: process 0 of ")]  # what it found
        assert code == 0 and not errors, f"a worker ended with {code}:\n{''.join(self.errors)}\n{said}"
        return said

    def heard(self) -> list[dict[str, Any]]:
        """All that it has said when it has ended, however that was."""
        self.child.wait()
        for thread in self._threads:
            thread.join()
        return [json.loads(line) for line in iter(self._said.get, None) if line.startswith("{")]

    def kill(self) -> None:
        """End it, in whatever state it is."""
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for thread, pipe in zip(self._threads, (self.child.stdout, self.child.stderr), strict=True):
            thread.join()
            if pipe is not None:
                pipe.close()

    def signal(self, number: int) -> float:
        """Send a signal, and return when that was."""
        self.child.send_signal(number)
        return time.time()


@contextlib.contextmanager
def started(scenario: str, size: int, *args: Any, address: str = "", **environment: str) -> Iterator[list[Process]]:
    """So many workers of a scenario. Rank, number and address are their first arguments, and in their environment."""
    address = address or f"127.0.0.1:{free_port()}"
    environment |= {"ATLED_COORDINATOR": address, "ATLED_NUM_PROCESSES": str(size)}
    workers = [
        Process(scenario, rank, size, address, *args, **environment, ATLED_PROCESS_ID=str(rank)) for rank in range(size)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()


def run(scenario: str, size: int, *args: Any, timeout: float = 60, **environment: str) -> list[list[dict[str, Any]]]:
    """What each worker of a scenario has said."""
    with started(scenario, size, *args, **environment) as workers:
        return [worker.end(timeout) for worker in workers]
