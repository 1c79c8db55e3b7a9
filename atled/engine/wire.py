"""Messages between processes: a line of JSON, which may be followed by bytes; and a thread that runs asyncio.

Nothing here knows the engine. `hub.py` is the side that listens, `member.py` the side that connects.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

LINE = 2**20  # bytes that a message may have, without those that follow it
CHUNK = 2**20  # bytes that may follow


def ranks(numbers: Sequence[int]) -> str:
    """Ranks, in words.

    >>> ranks([1]), ranks([0, 2])
    ('rank 1', 'ranks 0, 2')
    """
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def address(host: str, port: int) -> str:
    """Host and port as people write them.

    >>> address("localhost", 80), address("::1", 80)
    ('localhost:80', '[::1]:80')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def receive(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """The next message and its bytes; raises EOFError at the end, ValueError if it is none of ours."""
    line = await reader.readline()
    if not line:
        raise EOFError
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    size = message.get("size", 0)
    return message, await reader.readexactly(size) if size else b""


def send(writer: asyncio.StreamWriter, message: dict[str, Any], data: bytes = b"") -> None:
    """Put a message on its way; nothing happens if the other side is gone."""
    if data:
        message = {**message, "size": len(data)}
    if not writer.is_closing():
        writer.write(json.dumps(message).encode() + b"\n" + data)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until there are no more, or nobody takes them."""
    with contextlib.suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()


async def splice(
    here: tuple[asyncio.StreamReader, asyncio.StreamWriter], there: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    """Pass bytes both ways until one side ends."""
    ways = [asyncio.ensure_future(pump(here[0], there[1])), asyncio.ensure_future(pump(there[0], here[1]))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def turns() -> None:
    """Let the event loop finish what it has begun: connections that come or go take more than one turn."""
    for _ in range(4):
        await asyncio.sleep(0)


class Background:
    """A thread with an event loop, for connections that must be served whatever the program does."""

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
        """Do something in the thread, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Let something run in the thread."""
        asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """End the thread and all that runs in it."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(5)
