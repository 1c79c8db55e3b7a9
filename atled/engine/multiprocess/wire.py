"""Messages between processes (an authenticated line of JSON, then optional bytes), and a thread that runs asyncio.

This file does not use the engine. `hub.py` is the server, `member.py` is the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import re
import secrets
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

GREETING = b"atled-2"
LINE = 2**20  # maximum size of the JSON line in bytes


def ranks(numbers: Sequence[int]) -> str:
    """Ranks as text.

    >>> ranks([1]), ranks([0, 2])
    ('rank 1', 'ranks 0, 2')
    """
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def address(host: str, port: int) -> str:
    """A host and a port as `host:port`.

    >>> address("localhost", 80), address("::1", 80)
    ('localhost:80', '[::1]:80')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Channel:
    """A connection on which every message is authenticated.

    The client sends a nonce with a MAC made from the token; the server answers in the same way, or not at all. All
    further messages have MACs whose key is derived from both nonces and the token. Each MAC also covers the message
    number and the direction, so replayed and dropped messages are detected.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, is_hub: bool) -> None:
        self.reader, self.writer, self._key = reader, writer, key
        self._names = (b"hub", b"member") if is_hub else (b"member", b"hub")  # of sent and received MACs
        self._sent, self._received = itertools.count(), itertools.count()

    def send(self, message: dict[str, Any], data: bytes = b"") -> None:
        """Send a message; does nothing if the connection is closed."""
        if data:
            message = {**message, "size": len(data), "sum": _code(self._key, data)}
        if not self.writer.is_closing():
            text = json.dumps(message).encode()
            code = _code(self._key, self._names[0], str(next(self._sent)).encode(), text)
            self.writer.write(code.encode() + b" " + text + b"\n" + data)

    async def receive(self) -> tuple[dict[str, Any], bytes]:
        """The next message and its bytes; raises EOFError at the end of the stream, ValueError if a MAC is wrong."""
        line = await self.reader.readline()
        if not line:
            raise EOFError
        code, _, text = line.rstrip(b"\n").partition(b" ")
        right = _code(self._key, self._names[1], str(next(self._received)).encode(), text)
        if not hmac.compare_digest(code, right.encode()):
            raise ValueError("a message with a wrong MAC")
        message = json.loads(text)
        size = message.get("size", 0)
        data = await self.reader.readexactly(size) if size else b""
        if size and not hmac.compare_digest(message["sum"], _code(self._key, data)):
            raise ValueError("a message whose bytes were changed")
        return message, data

    def close(self) -> None:
        self.writer.close()


def _code(key: bytes, *parts: bytes) -> str:
    digest = hashlib.blake2b(key=hashlib.blake2b(key, digest_size=32).digest(), digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


async def connect(host: str, port: int, token: bytes) -> Channel:
    """A channel to the hub at an address; raises OSError if the connection fails."""
    return await introduce(*await asyncio.open_connection(host, port, limit=LINE), token)


async def introduce(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: bytes) -> Channel:
    """A connection to a hub as a channel; raises EOFError or ValueError if the other side does not know the token."""
    try:
        mine = secrets.token_hex(16).encode()
        writer.write(b" ".join([GREETING, mine, _code(token, b"open", mine).encode()]) + b"\n")
        line = await reader.readline()
        if not line:
            raise EOFError
        theirs, _, code = line.rstrip(b"\n").partition(b" ")
        if not hmac.compare_digest(code, _code(token, b"accept", mine, theirs).encode()):
            raise ValueError("the server at this address does not know the token")
        return Channel(reader, writer, (_code(token, mine, theirs)).encode(), is_hub=False)
    except BaseException:
        writer.close()
        raise


class WrongToken(ValueError):  # noqa: N818
    """A client of atled has another token."""


async def accept(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: bytes, seen: set[bytes]
) -> Channel | None:
    """The channel to a client that knows the token, or None for other clients, which get no answer.

    Raises `WrongToken` for a well-formed greeting made with another token.
    """
    line = await asyncio.wait_for(reader.readline(), 10)
    words = line.rstrip(b"\n").split(b" ")
    if len(words) != 3 or words[0] != GREETING or words[1] in seen:
        return None
    if not hmac.compare_digest(words[2], _code(token, b"open", words[1]).encode()):
        if re.fullmatch(rb"[0-9a-f]{32}", words[1]) and re.fullmatch(rb"[0-9a-f]{32}", words[2]):
            raise WrongToken
        return None
    seen.add(words[1])  # a replayed greeting is rejected
    mine = secrets.token_hex(16).encode()
    writer.write(mine + b" " + _code(token, b"accept", words[1], mine).encode() + b"\n")
    return Channel(reader, writer, _code(token, words[1], mine).encode(), is_hub=True)


async def splice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, channel: Channel) -> None:
    """Forward bytes between a stream and a channel, in both directions, until one side closes."""

    async def out() -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(2**16):
                channel.send({}, data)
                await channel.writer.drain()

    async def back() -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            while True:
                writer.write((await channel.receive())[1])
                await writer.drain()

    ways = [asyncio.ensure_future(out()), asyncio.ensure_future(back())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def listen(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    host: str | None,
    port: int,
) -> asyncio.Server:
    """Start a TCP server that closes each connection when its task ends, or is cancelled before its start."""

    running: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references to tasks

    async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()  # at once; the done callback runs later

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def end(task: asyncio.Task[None]) -> None:
            running.discard(task)
            writer.close()

        task = asyncio.ensure_future(whole(reader, writer))
        running.add(task)
        task.add_done_callback(end)

    return await asyncio.start_server(connected, host, port, limit=LINE)


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server after the tasks of accepted connections have started.

    If a server closes before a connection's task starts, Python 3.11 neither serves nor closes the connection.
    """
    loop = asyncio.get_running_loop()
    for accepting in server.sockets:
        loop.remove_reader(accepting.fileno())
    await turns()
    server.close()


async def turns() -> None:
    """Run four iterations of the event loop: opening or closing a connection takes more than one."""
    for _ in range(4):
        await asyncio.sleep(0)


class Background:
    """A background thread with an event loop, which serves connections while the main thread is busy."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await turns()

    def run(self, work: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        """Run a coroutine in the thread, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a coroutine in the thread."""
        asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """Stop the thread and everything that runs in it."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(5)
