"""What those who do not know the token can send to a hub: nothing of it may be answered."""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import time
from typing import Any

from atled.engine.multiprocess import wire

JOIN = {"do": "join", "version": 2, "rank": 0, "processes": 2, "pid": 1, "host": "x"}


def messages(seed: int, recorded: bytes) -> Any:
    """Bytes to send, one after the other, without end."""
    rng = random.Random(seed)
    plain = [json.dumps(m).encode() + b"\n" for m in ({"do": "hello"}, {"do": "tunnel"}, {"do": "ping"}, JOIN)]
    first = recorded[: recorded.index(b"\n") + 1]
    while True:
        kind = rng.randrange(8)
        if kind == 0:
            yield rng.choice(plain)
        elif kind == 1:
            yield rng.randbytes(rng.randrange(200)) + b"\n"
        elif kind == 2:  # what another process once said, again
            yield recorded
        elif kind == 3:  # the same with a bit changed
            changed = bytearray(recorded)
            changed[rng.randrange(len(first) - 1)] ^= 1 << rng.randrange(7)
            yield bytes(changed)
        elif kind == 4:  # with another token
            number = rng.randbytes(16).hex().encode()
            yield b" ".join([wire.GREETING, number, wire._code(rng.randbytes(8), b"open", number).encode()]) + b"\n"
        elif kind == 5:
            yield wire.GREETING + b" " + b"a" * rng.choice([10, 1000, 2 * wire.LINE]) + b"\n"
        elif kind == 6:
            header = json.dumps({"do": "set", "key": "a", "size": 10 ** rng.randrange(18)})
            yield b"0" * 32 + b" " + header.encode() + b"\n"
        else:
            yield first[: rng.randrange(len(first))]  # and no more


def attack(host: str, port: int, count: int, recorded: bytes, seed: int = 0) -> list[bytes]:
    """Send so many; what came back."""
    answers = []
    for _, message in zip(range(count), messages(seed, recorded)):
        with socket.create_connection((host, port), timeout=20) as line:
            try:
                line.sendall(message)
                line.shutdown(socket.SHUT_WR)
                found = line.recv(4096)
            except (ConnectionError, OSError):
                found = b""
            if found:
                answers.append(found)
    return answers


def recording(host: str, port: int, token: bytes) -> bytes:
    """What somebody says who knows the token, as others on the way hear it."""
    with socket.create_connection((host, port), timeout=20) as line:
        number = os.urandom(16).hex().encode()
        first = b" ".join([wire.GREETING, number, wire._code(token, b"open", number).encode()]) + b"\n"
        line.sendall(first)
        theirs = line.makefile("rb").readline().split(b" ")[0]
        key = wire._code(token, number, theirs).encode()
        text = json.dumps({"do": "hello"}).encode()
        second = wire._code(key, b"member", b"0", text).encode() + b" " + text + b"\n"
        line.sendall(second)
        assert b'{"is": "hub"}' in line.recv(4096)
        return first + second


def megabytes() -> float:
    """The memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def main(count: int) -> None:
    """Attack a hub so often, and say how it went."""
    from atled import distributed
    from atled.engine.multiprocess.token import token

    service = distributed.serve("127.0.0.1:0", 2)
    host, port = service._hub.host, service._hub.port
    recorded = recording(host, port, token())
    attack(host, port, 500, recorded, seed=1)
    before, began, answered = megabytes(), time.time(), 0
    for part in range(10):
        answered += len(attack(host, port, count // 10, recorded, seed=2 + part))
        print(f"{(part + 1) * count // 10} sent, {answered} answered, {megabytes() - before:+.1f} MB", flush=True)
    recording(host, port, token())  # it still answers those who know
    print(f"{time.time() - began:.0f} s; the hub is as it was")
    service.shutdown()
    assert not answered and megabytes() - before < 20
