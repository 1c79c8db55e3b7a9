"""The client of the hub (`hub.py`) in each process: one connection, served by a background thread.

The constructor waits until all members have joined. Later, the hub's reports of lost members are kept in `lost`; once
the world has failed, the thread calls `on_failure` repeatedly. The hub answers requests (`ask`) in any order.

The engine's coordination client connects to `tunnel_port`, a port of this process, which forwards bytes to the hub and
from there to the service. If the hub is lost, the tunnel stays open but silent, because the client would abort the
process if the connection closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from atled.engine.multiprocess import hub, wire
from atled.engine.multiprocess.token import origin

SILENCE = 1.0  # seconds of connections closed without an answer, after which joining fails
_SILENT = "the server there has another token, or is not a coordinator of atled"


class Refused(Exception):  # noqa: N818
    """The hub rejected this process; `argument` names the argument that is wrong."""

    def __init__(self, why: str, argument: str = "") -> None:
        super().__init__(why)
        self.argument = argument


class Unanswered(Exception):  # noqa: N818
    """The rendezvous timed out: some or all processes did not join."""


class HubLost(Exception):  # noqa: N818
    """A request got no answer because the hub is lost."""


class Member:
    """One process of a world."""

    def __init__(self, host: str, port: int, rank: int, size: int, timeout: float, token: bytes) -> None:
        self._token = token
        self.host, self.port, self.rank, self.size = host, port, rank, size
        self.lost: dict[int | None, str] = {}  # rank -> reason; the key is None for a hub in a supervisor
        self.left: dict[int, str] = {}  # ranks that shut down normally
        self.mismatch = ""  # the hub's message if the launches of processes differ
        self.on_failure: Callable[[], None] = lambda: None
        self.on_tick: Callable[[], None] = lambda: None
        self.on_report: Callable[[], None] = lambda: None
        self.local_address = ""
        self.tunnel_port = 0
        self.heartbeat = timeout
        self._home: int | None = None  # the rank that the hub runs in
        self._questions: dict[int, Future[tuple[dict[str, Any], bytes]]] = {}
        self._numbers = itertools.count(1)
        self._is_closing = False
        self._ends: list[asyncio.StreamWriter] = []  # this side's ends of the tunnel
        self._heard = time.monotonic()
        self._background = wire.Background("atled-member")
        try:
            self._channel = self._background.run(self._join(timeout))
        except BaseException:
            self._background.stop()
            raise
        self._background.start(self._listen())
        self._background.start(self._tick())

    @property
    def has_failed(self) -> bool:
        return bool(self.lost or self.mismatch)

    # -- joining -----------------------------------------------------------------------------------------------------

    async def _join(self, timeout: float) -> wire.Channel:
        until = time.monotonic() + timeout
        state = {"why": "no process listens there"}
        silent: float | None = None  # the time of the first connection that the server closed without an answer
        while True:
            try:
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + until - time.monotonic()):
                    channel = await self._try(state)
                    if channel is not None:
                        return channel
                    silent = (silent or time.monotonic()) if state["why"] == _SILENT else None
                    if silent is not None and time.monotonic() - silent > SILENCE:
                        raise Refused(f"{_SILENT}. The token of this process is from {origin()}.", "token")
                    await asyncio.sleep(0.1)
            except TimeoutError:
                raise Unanswered(state["why"]) from None

    async def _try(self, state: dict[str, str]) -> wire.Channel | None:
        """A channel, once all processes have joined; None if this attempt failed, for the reason in `state["why"]`."""
        try:
            streams = await asyncio.open_connection(self.host, self.port, limit=wire.LINE)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            state["why"] = f"no process listens there ({reason.lower()})"
            return None
        state["why"] = "the server there does not answer"
        try:
            channel = await wire.introduce(*streams, self._token)
        except (OSError, EOFError, ValueError):
            state["why"] = _SILENT
            return None
        says = {"do": "join", "version": hub.VERSION, "rank": self.rank, "processes": self.size}
        channel.send({**says, "pid": os.getpid(), "host": socket.gethostname()})
        is_joined = False
        try:
            notes: list[str] = []
            while True:
                message, _ = await channel.receive()
                match message["is"]:
                    case "ready":
                        is_joined = True
                        self._home, self.heartbeat = message["home"], message["heartbeat"]
                        self._heard = time.monotonic()
                        await self._open_tunnel(channel)
                        return channel
                    case "refused":
                        raise Refused(message["why"], message.get("argument", ""))
                    case "later":
                        state["why"] = "the run there has all of its processes, and has not ended"
                        return None
                    case "note":
                        notes.append(message["why"])
                    case "present":
                        missing = sorted({*range(self.size)} - {*message["ranks"]})
                        state["missing"] = wire.ranks(missing)
                state["why"] = f"missing: {state.get('missing', '')}"
                state["why"] += "".join(f"\n  also: {note}" for note in dict.fromkeys(notes))
        except (OSError, EOFError, ValueError, KeyError):
            return None
        finally:
            if not is_joined:
                channel.close()

    async def _open_tunnel(self, channel: wire.Channel) -> None:
        self.local_address = channel.writer.get_extra_info("sockname")[0]
        self._tunnels = await wire.listen(self._tunnel, "127.0.0.1", 0)
        self.tunnel_port = self._tunnels.sockets[0].getsockname()[1]

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.append(writer)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            with contextlib.suppress(OSError, EOFError, ValueError):
                there = await wire.connect(self.host, self.port, self._token)
                there.send({"do": "tunnel"})
                try:
                    await wire.splice(reader, writer, there)
                finally:
                    there.close()
            while await reader.read(2**16):
                pass  # the hub is lost: keep the tunnel open, but silent

    # -- in the background thread -------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            while True:
                message, data = await self._channel.receive()
                self._heard = time.monotonic()
                match message["is"]:
                    case "answer":
                        question = self._questions.pop(message["to"], None)
                        if question is not None:
                            question.set_result((message, data))
                    case "lost":
                        self._lose(message["rank"], message["why"])
                    case "left":
                        self.left.update(message["ranks"])
                    case "mismatch":
                        self.mismatch = self.mismatch or message["why"]
                        self.on_failure()
                    case "report":
                        self.on_report()
                    case "closed":
                        break
        self._lose_hub("its process ended, or the connection to it broke")

    def _lose(self, rank: int | None, why: str) -> None:
        if self._is_closing or rank in self.lost:
            return
        if rank == self.rank:
            why = "the other processes got no heartbeat from it for too long, and continue without it"
        self.lost[rank] = why
        self.on_failure()

    def _lose_hub(self, why: str) -> None:
        if self.rank not in self.lost:
            self._lose(self._home, why)
        for question in list(self._questions.values()):
            question.set_exception(HubLost())
        self._questions.clear()
        self._channel.writer.close()

    async def _tick(self) -> None:
        pause = min(0.5, self.heartbeat / 4)
        last = time.monotonic()
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            if now - last > pause + 1:  # this process was suspended, not the hub
                self._heard = now
            last = now
            if now - self._heard > self.heartbeat and not self._channel.writer.is_closing():
                self._lose_hub(f"it sent no heartbeat for {self.heartbeat:g} s: it hangs, or cannot be reached")
            self.on_tick()
            self._channel.send({"do": "ping"})
            if self.has_failed:
                self.on_failure()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._background.loop

    # -- called from other threads ------------------------------------------------------------------------------------

    def tell(self, message: dict[str, Any], data: bytes = b"") -> None:
        """Send the hub a message that needs no answer."""
        self._background.loop.call_soon_threadsafe(self._channel.send, message, data)

    def ask(self, message: dict[str, Any], data: bytes = b"") -> Future[tuple[dict[str, Any], bytes]]:
        """Send a request to the hub; the future has its answer, or raises HubLost."""
        number = next(self._numbers)
        answer: Future[tuple[dict[str, Any], bytes]] = Future()

        def put() -> None:
            if self._channel.writer.is_closing():
                answer.set_exception(HubLost())
            else:
                self._questions[number] = answer
                self._channel.send({**message, "number": number}, data)

        self._background.loop.call_soon_threadsafe(put)
        return answer

    def close_tunnel(self) -> None:
        """Close the tunnel of the engine's coordination client, which must already be disconnected."""

        async def close() -> None:
            await wire.stop_listening(self._tunnels)
            for end in self._ends:
                end.close()

        self._background.start(close())

    def leave(self, why: str = "it shut down", is_loss: bool = False) -> None:
        """Notify the other processes, close the connection and the tunnel, and end the thread."""
        self._is_closing = True

        async def last_words() -> None:
            await wire.stop_listening(self._tunnels)
            self._channel.send({"do": "leave", "why": why, "is_loss": is_loss})
            with contextlib.suppress(OSError):
                await asyncio.wait_for(self._channel.writer.drain(), 1)
            self._channel.writer.close()

        with contextlib.suppress(TimeoutError):
            self._background.run(last_words(), 2)
        self._background.stop()

    def abandon(self) -> None:
        """Close the connection without a message, in a forked child."""
        os.close(self._channel.writer.get_extra_info("socket").fileno())
