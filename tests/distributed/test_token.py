"""Processes know each other by a secret: without it, the hub says nothing."""

from __future__ import annotations

import asyncio
import os
import stat
import time

import pytest
from strangers import attack, recording
from worlds import Process

from atled import distributed
from atled.engine.multiprocess import wire
from atled.engine.multiprocess.token import token


def test_strangers_hear_nothing():
    service = distributed.serve("127.0.0.1:0", 2)
    host, port = service._hub.host, service._hub.port
    recorded = recording(host, port, token())
    assert attack(host, port, 300, recorded) == []
    assert service.present == []
    recording(host, port, token())  # it still answers those who know
    service.shutdown()


def test_another_token(capfd):
    """It is named on both sides within seconds, with the places where the tokens come from."""
    service = distributed.serve("127.0.0.1:0", 2)
    began = time.monotonic()
    worker = Process("join", 1, 2, service.address, "initialization_timeout=60", ATLED_TOKEN="another")
    try:
        (said,) = worker.end()
        assert time.monotonic() - began < 20  # most of it is the start of a process
    finally:
        worker.kill()
        service.shutdown()
    assert said["kind"] == "ValueError"
    assert said["seconds"] < 3
    assert "has another token, or is not a coordinator of atled" in said["text"]
    assert "The token of this process is from the environment variable ATLED_TOKEN." in said["text"]
    here = [line for line in capfd.readouterr().err.splitlines() if line.startswith("distributed:")]
    assert len(here) == 1
    assert "a process at 127.0.0.1 cannot join: its token is not that of the coordinator" in here[0]
    assert "The coordinator's token is from " in here[0]


@pytest.mark.parametrize("part", ["nothing", "code", "text", "data", "again"])
def test_what_was_changed_on_the_way_is_refused(part):
    async def go() -> None:
        found = asyncio.get_running_loop().create_future()

        async def serve(reader, writer):
            channel = await wire.accept(reader, writer, b"secret", set())
            assert channel is not None
            received = []
            try:
                for _ in range(2):
                    received.append(await channel.receive())
            except (ValueError, EOFError) as error:
                received.append(error)
            found.set_result(received)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        channel = await wire.connect("127.0.0.1", server.sockets[0].getsockname()[1], b"secret")
        sent: list[bytes] = []
        real, channel.writer.write = channel.writer.write, sent.append  # type: ignore[method-assign]
        channel.send({"n": 1}, b"data")
        line, _, data = sent[0].partition(b"\n")
        if part == "code":
            line = bytes([line[0] ^ 1]) + line[1:]
        elif part == "text":
            line = line.replace(b'"n": 1', b'"n": 2')
        elif part == "data":
            data = b"dota"
        real((line + b"\n" + data) * (2 if part == "again" else 1))
        channel.writer.write_eof()
        first, *rest = await asyncio.wait_for(found, 10)
        if part in ("nothing", "again"):
            assert first[0]["n"] == 1 and first[1] == b"data"
            assert isinstance(rest[0], EOFError if part == "nothing" else ValueError)
        else:
            assert isinstance(first, ValueError)
        channel.close()
        server.close()

    asyncio.run(go())


def test_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.delenv("ATLED_TOKEN", raising=False)
    monkeypatch.delenv("ATLED_TOKEN_FILE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = token()
    path = tmp_path / "atled" / "token"
    assert len(made) == 64 and token() == made and stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(path.parent) == ["token"]
    path.chmod(0o644)
    with pytest.raises(RuntimeError, match=r"give other users access.*\n  try: ATLED_TOKEN"):
        token()
    own = tmp_path / "own"
    own.write_text("mine\n")
    own.chmod(0o600)
    monkeypatch.setenv("ATLED_TOKEN_FILE", str(own))
    assert token() == b"mine"
    monkeypatch.setenv("ATLED_TOKEN_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"ATLED_TOKEN_FILE=.*cannot be used"):
        token()
    monkeypatch.setenv("ATLED_TOKEN", "given")
    assert token() == b"given"
