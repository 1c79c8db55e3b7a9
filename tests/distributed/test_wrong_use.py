"""What is wrong with a call of `initialize` or `serve` is said, with the argument or rank, and nothing hangs."""

from __future__ import annotations

import socket

import pytest
from worlds import Process, free_port, run

from atled import distributed

SOON = "initialization_timeout=3"


def joined(*processes: tuple) -> list[dict]:
    """What `initialize` raised in processes that were started at once."""
    workers = [Process("join", *given) for given in processes]
    try:
        return [worker.end()[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((None, 2, 0), "distributed.initialize: coordinator_address must be given; got None"),
        (("h:1", None, None), "distributed.initialize: num_processes, process_id must be given; got None"),
        (("h:1", 2, 2), "distributed.initialize: process_id must be in 0 .. num_processes - 1; got 2 of 2."),
        (("h:1", 2, -1), "distributed.initialize: process_id must be in 0 .. num_processes - 1; got -1 of 2."),
        (("h:1", 0, 0), "distributed.initialize: num_processes must be at least 1; got 0."),
        (("h:1", "2", 0), "distributed.initialize: num_processes must be an integer; got '2'."),
        (("h:1", 2, 0.0), "distributed.initialize: process_id must be an integer; got 0.0."),
    ],
)
def test_arguments(arguments, message, monkeypatch):
    for name in ("SLURM_JOB_ID", "OMPI_COMM_WORLD_SIZE", "JOB_COMPLETION_INDEX", "TPU_WORKER_ID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises((ValueError, TypeError)) as caught:
        distributed.initialize(*arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("address", ["nowhere", "host:", ":80", "host:port", "host:99999", 80])
def test_addresses(address):
    with pytest.raises(ValueError, match=r"distributed\.serve: address must look like 'host:port'; got"):
        distributed.serve(address, 2)


def test_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"distributed.serve: port {port} of 127.0.0.1 is in use.\n  try: "):
            distributed.serve(f"127.0.0.1:{port}", 2)
        (said,) = joined((0, 2, f"127.0.0.1:{port}", SOON))
    assert f"distributed.initialize: port {port} of 127.0.0.1 is in use." in said["text"]


def test_those_who_do_not_come():
    """Nobody serves; somebody else answers; the other processes are missing."""
    service = distributed.serve("127.0.0.1:0", 3)
    with socket.create_server(("127.0.0.1", 0)) as other:
        addresses = [f"127.0.0.1:{free_port()}", f"127.0.0.1:{other.getsockname()[1]}", service.address]
        worker = Process("join", 1, 3, *addresses, "initialization_timeout=0.5")
        try:
            said = worker.end()
        finally:
            worker.kill()
            service.shutdown()
    reasons = (
        "no process listens there (connection refused)",
        "the server there does not answer",
        "missing: ranks 0, 2",
    )
    for address, reason, heard in zip(addresses, reasons, said, strict=True):
        assert heard["kind"] == "TimeoutError" and heard["seconds"] < 3
        assert heard["text"].startswith(
            f"distributed.initialize: process 1 waited 0.5 s at {address} for 3 processes; {reason}\n  try: "
        )


def test_ranks_and_sizes_that_do_not_fit():
    service = distributed.serve("127.0.0.1:0", 3)
    first = Process("join", 1, 3, service.address, "initialization_timeout=30")
    try:
        while service.present != [1]:
            assert first.child.poll() is None
        again, other = joined((1, 3, service.address, SOON), (0, 2, service.address, SOON))
    finally:
        first.kill()
        service.shutdown(0)
    start = f"distributed.initialize: the coordinator at {service.address} refused process "
    assert again["text"].startswith(f"{start}1: process_id=1 is taken, by process {first.child.pid} on ")
    assert other["text"].startswith(f"{start}0: num_processes=2 was given by rank 0, but this run has 3 processes.")


def test_without_a_world():
    for call in (
        distributed.barrier,
        distributed.sync,
        lambda: distributed.gather(1),
        lambda: distributed.store.get("k"),
    ):
        with pytest.raises(
            RuntimeError, match=r"^distributed\.[a-z.]+: this process is not part of a multi-process run.\n  try: "
        ):
            call()


def test_launches_after_the_end():
    """An assertion without a word."""
    for (said,) in run("after_the_end", 2):
        for how in ("known", "new", "eager"):
            assert said[how]["kind"] == "PeerLost", (how, said[how])
            assert said[how]["text"].startswith("distributed: the multi-process run of this program has ended")
