"""Processes that die, hang, or do something else than the others: an exception that names the rank, soon."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from worlds import ROOT, WORKER, Process, free_port, run, started

from atled import distributed
from atled.engine.multiprocess import hub, wire
from atled.engine.multiprocess.token import token

HEARTBEAT = 1


@pytest.mark.parametrize(
    "number, victim, limit, delay",
    [
        (signal.SIGKILL, 2, 1.0, 0.2),
        (signal.SIGKILL, 0, 1.0, 0.2),  # it serves
        (signal.SIGSTOP, 2, HEARTBEAT + 1.0, 0.2),
        (signal.SIGSTOP, 0, HEARTBEAT + 1.0, 0.2),
        *[(signal.SIGSTOP, 0, HEARTBEAT + 1.0, delay) for delay in (0.01, 0.03, 0.05)],  # while Gloo connects
    ],
)
def test_a_lost_process_is_named_and_the_others_go_on(number, victim, limit, delay):
    """In the middle of collectives; then the two that are left make a new world in the same processes."""
    options = (f"heartbeat_timeout={HEARTBEAT}", f"anew='127.0.0.1:{free_port()}'")
    with started("steps", 3, *options) as workers:
        for worker in workers:
            worker.hear()
        time.sleep(delay)
        at = workers[victim].signal(number)
        for rank, worker in enumerate(workers):
            if rank != victim:
                said = worker.hear()
                assert said["kind"] == "PeerLost" and said["ranks"] == said["lost"] == [victim]
                assert said["text"].startswith(f"distributed: rank {victim} is lost: ")
                assert said["at"] - at < limit
                assert said["later"] == "PeerLost"
        for rank, worker in enumerate(workers):
            if rank != victim:
                (anew,) = worker.end()
                assert anew["count"] == 2 and anew["seconds"] < 3


def test_a_process_may_reach_the_rendezvous_long_after_the_loss():
    """As a machine with too much to do delays it."""
    with started("steps", 3, f"heartbeat_timeout={HEARTBEAT}", "pause=5") as workers:
        for worker in workers:
            worker.hear()
        workers[0].signal(signal.SIGKILL)
        for worker in workers[1:]:
            assert worker.hear(30)["ranks"] == [0]
            worker.end()


def test_the_supervisor_may_die():
    child = subprocess.Popen(
        [sys.executable, str(WORKER), "serve", "127.0.0.1:0", "2"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert child.stdout is not None
    address = json.loads(child.stdout.readline())["address"]
    with started("steps", 2, "serve=False", address=address) as workers:
        for worker in workers:
            worker.hear()
        child.kill()
        child.communicate()
        for worker in workers:
            said = worker.hear()
            assert said["kind"] == "PeerLost" and said["ranks"] == []
            assert said["text"].startswith(f"distributed: the coordinator at {address} is lost: ")
            worker.end()


def test_an_exception_that_ends_a_process_is_told_to_the_others():
    with started("fails", 2) as workers:
        said = workers[0].hear()
        assert said["text"].startswith("distributed: rank 1 is lost: it ended with ValueError: no more data.")
        assert workers[1].child.wait(30) == 1


def test_other_connections_and_forked_children():
    with started("bystanders", 2) as workers:
        said = workers[0].hear()
        assert said["kind"] == "PeerLost" and said["ranks"] == [1] and said["seconds"] < 1.5
        assert said["heard"] == ["still", "here"]
        workers[0].end()


@pytest.mark.parametrize("kind", ["new", "known"])
def test_different_programs(kind):
    for *_, said in run("launches", 2, kind):
        assert said["kind"] == "ProgramMismatch"
        assert said["text"].startswith(
            "distributed: the processes launch different programs, or the same ones in a different order: "
            "rank 0 launches f (train.py:102), rank 1 launches g (train.py:103)."
        )
        assert said.get("seconds", 0) < 3


def test_a_process_that_dies_while_the_world_begins():
    service = distributed.serve("127.0.0.1:0", 2)
    worker = Process("join", 0, 2, service.address, "initialization_timeout=30")
    try:
        host, port = service.address.split(":")

        async def joins_and_dies() -> None:
            channel = await wire.connect(host, int(port), token())
            channel.send({"do": "join", "version": hub.VERSION, "rank": 1, "processes": 2})
            while (await channel.receive())[0]["is"] != "ready":
                pass
            channel.close()

        asyncio.run(joins_and_dies())
        (said,) = worker.end()
    finally:
        worker.kill()
        service.shutdown(0)
    assert said["kind"] == "PeerLost" and said["ranks"] == [1] and said["seconds"] < 10


@pytest.mark.parametrize("kind", ["order", "known", "shape", "alone"])
def test_compiled_functions_that_are_not_the_same_everywhere(kind):
    with started("different", 2, kind) as workers:
        for rank, worker in enumerate(workers):
            said = worker.hear()
            if kind == "alone":  # one launches, the other waits at a barrier, gives up and ends
                assert said["kind"] == ("ProgramMismatch" if rank == 0 else "TimeoutError") and said["seconds"] < 5, (
                    said
                )
                named = "rank 0 launches <lambda> (worker.py:" in said["text"] and "rank 1 shuts down" in said["text"]
                assert named if rank == 0 else "rank 0 did not reach" in said["text"], said
                continue
            assert said["kind"] == "ProgramMismatch" and said["seconds"] < 10, said
            assert "rank 0 launches <lambda> (worker.py:" in said["text"] and "rank 1 launches" in said["text"]


def test_a_process_that_ends_as_it_should_is_noticed_at_once():
    """Others wait at a barrier, to which it will not come: they waited for as long as it waited for them."""
    with started("ends_early", 3) as workers:
        for worker in workers[:2]:
            said = worker.hear()
            # the other one of the two may have left by now
            assert said["kind"] == "PeerLost" and 2 in said["ranks"] and said["seconds"] < 5, said


def test_an_interrupt_ends_a_wait():
    with started("waits", 2) as workers:
        assert all(worker.hear()["ready"] for worker in workers)
        time.sleep(1)
        sent = workers[0].signal(signal.SIGINT)
        assert workers[0].hear(timeout=20)["interrupted"] and time.time() - sent < 3
        assert workers[0].child.wait(20) == 0  # its hub waits 5 seconds for the others, and no longer


def test_a_connection_whose_task_never_begins_is_closed(monkeypatch):
    """A world that ends while somebody connects left the socket open: the task that closes it was cancelled first."""

    async def scene() -> bytes:
        cancelled = asyncio.Event()

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"here")

        before = asyncio.ensure_future

        def cancelled_before_it_begins(work):
            task = before(work)
            task.cancel()
            cancelled.set()
            return task

        server = await wire.listen(greet, "127.0.0.1", 0)
        monkeypatch.setattr(wire.asyncio, "ensure_future", cancelled_before_it_begins)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await cancelled.wait()
        monkeypatch.undo()
        try:
            return await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()
            server.close()

    assert asyncio.run(scene()) == b""
