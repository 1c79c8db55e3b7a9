"""The hub: the coordinator of a multi-process run, in the process of rank 0 or in a supervisor.

All connections use one port. A process that joins keeps its connection; when all have joined, the hub starts the
engine's own coordination service and notifies them. From then on, a closed connection means that its process died, and
a connection without heartbeats means that its process hangs; the hub immediately sends the rank to the others. The hub
also provides barriers and a key-value store, and checks that all processes launch the same programs
(`launch_order.py`).

Processes reach the coordination service through tunnels (`member.py`): connections to the hub's port, which the hub
forwards to the service. The engine aborts a process that loses its connection to the service; a tunnel stays open.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from atled.engine.multiprocess import wire
from atled.engine.multiprocess.launch_order import Copy, Launched, LaunchOrder

VERSION = 2
STRANGERS = 512  # the maximum number of unauthenticated connections
SHUTDOWN = ":shutdown"  # the barrier of processes that shut down


class Member:
    """A process that has joined."""

    def __init__(self, rank: int, says: dict[str, Any], channel: wire.Channel) -> None:
        self.rank = rank
        self.channel = channel
        self.heard = time.monotonic()
        self.name = f"process {says.get('pid')} on {says.get('host')}"

    def tell(self, message: dict[str, Any], data: bytes = b"") -> None:
        self.channel.send(message, data)


class Waiter(NamedTuple):
    """A request that cannot be answered yet."""

    member: Member
    number: int  # of the request

    def answer(self, message: dict[str, Any] | None = None, data: bytes = b"") -> None:
        self.member.tell({"is": "answer", "to": self.number, **(message or {})}, data)


class Hub:
    """The coordinator of one world. Methods whose name begins with an underscore run in the hub's thread.

    `start_service()` starts the coordination service and returns its port and a function that ends it. `home` is the
    rank in whose process the hub runs, or None.
    """

    def __init__(
        self,
        host: str,
        port: int,
        size: int,
        heartbeat: float,
        start_service: Callable[[], tuple[int, Callable[[], None]]],
        home: int | None = None,
        token: bytes = b"",
        origin: str = "nowhere",
    ) -> None:
        self._token, self._origin = token, origin
        self._reported: set[str] = set()  # hosts from which a process with another token connected
        self._seen: set[bytes] = set()  # nonces of opened connections
        self._strangers = 0  # connections that are not authenticated yet
        self.size, self.heartbeat, self.home = size, heartbeat, home
        self._start_service = start_service
        self.members: dict[int, Member] = {}  # connected members
        self.gone: dict[int, str] = {}  # rank -> the reason it left or was lost
        self._is_changed = False  # members joined or left since the last notice
        self._left_since: dict[int, str] = {}  # rank -> the reason it left; not sent to the others yet
        self.state = "waiting"  # "waiting", then "running", then "closed"
        self._service: tuple[int, Callable[[], None]] | None = None
        self._values: dict[str, bytes] = {}
        self._wanted: dict[str, list[Waiter]] = {}
        self._barriers: dict[str, dict[int, tuple[Waiter, bytes]]] = {}
        self._orders: dict[tuple[int, ...], LaunchOrder] = {}
        self._agreeing: dict[tuple[tuple[int, ...], int], list[Waiter]] = {}
        self._confirming: list[tuple[LaunchOrder, int, Waiter]] = []  # requests to confirm a number of launches
        self._has_mismatch = False
        self._leaving: set[int] = set()  # ranks at the shutdown barrier
        self._background = wire.Background("atled-hub")
        try:
            self._server, self.host, self.port = self._background.run(self._listen(host, port))
        except BaseException:
            self._background.stop()
            raise
        self._background.start(self._watch())

    async def _listen(self, host: str, port: int) -> tuple[asyncio.Server, str, int]:
        try:
            server = await wire.listen(self._connected, host, port)
        except OSError as error:
            # `host` may be a name that only other machines resolve: listen on all addresses.
            if error.errno == errno.EADDRINUSE or getattr(error, "errno", None) == errno.EACCES:
                raise
            server = await wire.listen(self._connected, None, port)
        return server, host, server.sockets[0].getsockname()[1]

    @property
    def address(self) -> str:
        return wire.address(self.host, self.port)

    def close(self, timeout: float = 5.0) -> None:
        """Shut down: wait up to `timeout` seconds for the members to leave, stop the service, and close the port."""
        until = time.monotonic() + timeout
        while self.state == "running" and self.members and time.monotonic() < until:
            time.sleep(0.005)
        if self.state != "closed":
            self._background.run(self._close())
            if self._service is not None:
                self._service[1]()
        self._background.stop()

    def abandon(self) -> None:
        """Close the connections without a message, in a forked child."""
        for sock in (
            *self._server.sockets,
            *[m.channel.writer.get_extra_info("socket") for m in self.members.values()],
        ):
            os.close(sock.fileno())

    async def _close(self) -> None:
        self.state = "closed"
        await wire.stop_listening(self._server)
        for member in self.members.values():
            member.tell({"is": "closed"})
            with contextlib.suppress(OSError):
                await asyncio.wait_for(member.channel.writer.drain(), 1)
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()  # closes every connection, so the tunnels end before the service
        await wire.turns()

    # -- connections -------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError, KeyError, asyncio.CancelledError):
            channel = await self._known(reader, writer)
            if channel is not None:
                await self._serve(channel)

    async def _known(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> wire.Channel | None:
        if self._strangers >= STRANGERS:
            return None
        self._strangers += 1
        try:
            return await wire.accept(reader, writer, self._token, self._seen)
        except wire.WrongToken:
            self._report_token((writer.get_extra_info("peername") or ["an unknown host"])[0])
            return None
        finally:
            self._strangers -= 1

    def _report_token(self, host: str) -> None:
        """Print, once per host, that a process there has another token. The process gets no answer and gives up."""
        if host not in self._reported and len(self._reported) < 16:
            self._reported.add(host)
            print(
                f"distributed: a process at {host} cannot join: its token is not that of the coordinator at "
                f"{self.address}. The coordinator's token is from {self._origin}.",
                file=sys.stderr,
            )

    async def _serve(self, channel: wire.Channel) -> None:
        says, _ = await asyncio.wait_for(channel.receive(), 30)
        if says.get("do") == "tunnel" and self._service is not None:
            there = await asyncio.open_connection("127.0.0.1", self._service[0])
            try:
                await wire.splice(*there, channel)
            finally:
                there[1].close()
        elif says.get("do") == "join":
            await self._join(says, channel)
        elif says.get("do") == "hello":
            channel.send({"is": "hub"})

    async def _join(self, says: dict[str, Any], channel: wire.Channel) -> None:
        refusal = self._refusal(says)
        if refusal:
            channel.send(refusal)
            if refusal["is"] == "refused":
                self._tell_all({"is": "note", "why": refusal["why"]})
            await channel.writer.drain()
            return
        member = self.members[says["rank"]] = Member(says["rank"], says, channel)
        member.tell({"is": "present", "ranks": sorted(self.members)})
        self._is_changed = True
        if len(self.members) == self.size:
            self._run()
        end = "its process ended, or its connection broke"
        try:
            while True:
                message, data = await channel.receive()
                member.heard = time.monotonic()
                if message["do"] == "leave":
                    end = message["why"]
                    self._left(member, end, is_loss=message["is_loss"])
                    return
                self._handle(member, message, data)
        finally:
            self._left(member, end, is_loss=True)

    def _refusal(self, says: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a process that cannot join, or None if it can."""
        rank, size = says["rank"], says["processes"]
        if says["version"] != VERSION:
            return {"is": "refused", "why": "it runs another version of atled."}
        if size != self.size:
            why = f"num_processes={size} was given by rank {rank}, but this run has {self.size} processes."
            return {"is": "refused", "argument": "num_processes", "why": why}
        there = self.members.get(rank)
        if there is not None:
            why = f"process_id={rank} is taken, by {there.name}; two processes have this process_id."
            return {"is": "refused", "argument": "process_id", "why": why}
        if self.state != "waiting":
            return {"is": "later"}  # the previous world is shutting down
        return None

    def _run(self) -> None:
        try:
            self._service = self._start_service()
        except Exception as error:
            self._tell_all({"is": "refused", "why": f"the coordination service did not start: {error}"})
            return
        self.state = "running"
        for member in self.members.values():
            member.heard = time.monotonic()  # heartbeats count from now on
        self._tell_all({"is": "ready", "home": self.home, "heartbeat": self.heartbeat})

    def _tell_all(self, message: dict[str, Any]) -> None:
        for member in list(self.members.values()):
            member.tell(message)

    def _left(self, member: Member, why: str, is_loss: bool) -> None:
        if self.members.get(member.rank) is not member:
            return
        if self.state != "running":
            del self.members[member.rank]
            self._is_changed = True
            return
        self.gone[member.rank] = why
        if is_loss:
            self._tell_all({"is": "lost", "rank": member.rank, "why": why})  # also to the lost member
        else:
            self._left_since[member.rank] = why
        del self.members[member.rank]
        self._forsake(member.rank)
        self._confirm()

    async def _watch(self) -> None:
        """Detect members that have been silent too long, and send pending notices of joined and left members."""
        pause = min(0.25, self.heartbeat / 4)
        last = time.monotonic()
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            if now - last > pause + 1:  # this process was suspended, not the members
                for member in self.members.values():
                    member.heard = now
            last = now
            self._announce()
            for member in list(self.members.values()) if self.state == "running" else ():
                if now - member.heard > self.heartbeat:
                    why = f"it sent no heartbeat for {self.heartbeat:g} s: it hangs, or cannot be reached"
                    self._left(member, why, is_loss=True)
                    member.channel.close()

    def _announce(self) -> None:
        """Send pending notices of joined and left members in batches: one message per member would be too many."""
        if self._is_changed and self.state == "waiting":
            self._is_changed = False
            self._tell_all({"is": "present", "ranks": sorted(self.members)})
        if self._left_since:
            left, self._left_since = self._left_since, {}
            self._tell_all({"is": "left", "ranks": list(left.items())})

    # -- requests of members ------------------------------------------------------------------------------------------

    def _handle(self, member: Member, message: dict[str, Any], data: bytes) -> None:
        waiter = Waiter(member, message.get("number", 0))
        match message["do"]:
            case "ping":
                member.tell({"is": "pong"})
            case "set":
                self._set(waiter, message["key"], data, message["overwrite"])
            case "get":
                self._get(waiter, message["key"], message["timeout"])
            case "delete":
                for key in [k for k in self._values if k == message["key"] or k.startswith(message["key"] + "/")]:
                    del self._values[key]
                waiter.answer()
            case "increment":
                try:
                    total = int(self._values.get(message["key"], b"0")) + message["by"]
                except ValueError:
                    waiter.answer({"error": "not a number"})
                    return
                self._values[message["key"]] = str(total).encode()
                waiter.answer({"value": total})
            case "barrier":
                self._wait_at(waiter, message["name"], message["timeout"], data)
            case "agree":
                self._agree(waiter, message)
            case "launched":
                copies = {int(i): {k: Copy(*c) for k, c in given.items()} for i, given in message["copies"].items()}
                self._check(self._order(message["group"]).report(member.rank, message["programs"], copies))
                self._confirm()
            case "confirm":
                order, count = self._order(message["group"]), message["count"]
                self._confirming.append((order, count, waiter))
                self._confirm()
                for rank in order.behind(count):
                    if rank in self.members:
                        self.members[rank].tell({"is": "report"})

    def _set(self, waiter: Waiter, key: str, data: bytes, overwrite: bool) -> None:
        if key in self._values and not overwrite:
            waiter.answer({"error": "exists"})
            return
        self._values[key] = data
        waiter.answer()
        for other in self._wanted.pop(key, ()):
            other.answer({}, data)

    def _get(self, waiter: Waiter, key: str, timeout: float) -> None:
        if key in self._values:
            waiter.answer({}, self._values[key])
        elif timeout <= 0:
            waiter.answer({"error": "absent"})
        else:
            self._wanted.setdefault(key, []).append(waiter)
            asyncio.get_running_loop().call_later(timeout, self._give_up, key, waiter)

    def _give_up(self, key: str, waiter: Waiter) -> None:
        waiters = self._wanted.get(key, [])
        if waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._wanted[key]
            waiter.answer({"error": "absent"})

    def _ranks_of(self, barrier: str) -> list[int]:
        """The ranks that take part in a barrier, from its name, such as "0,2:name"; all ranks for ":name"."""
        ranks = barrier.partition(":")[0]
        return [int(r) for r in ranks.split(",")] if ranks else list(range(self.size))

    def _wait_at(self, waiter: Waiter, name: str, timeout: float, data: bytes) -> None:
        """Add a member to a barrier, which is also an all-gather: each process sends bytes and gets those of all."""
        ranks = self._ranks_of(name)
        if name == SHUTDOWN:
            self._leave(waiter.member.rank)
        absent = [r for r in ranks if r in self.gone or (r in self._leaving and name != SHUTDOWN)]
        if absent:
            waiter.answer({"error": "gone", "ranks": absent})
            return
        here = self._barriers.setdefault(name, {})
        here[waiter.member.rank] = (waiter, data)
        if len(here) == len(ranks):
            del self._barriers[name]
            brought = [here[r][1] for r in ranks]
            for other, _ in here.values():
                other.answer({"sizes": [len(b) for b in brought]}, b"".join(brought))
        else:
            asyncio.get_running_loop().call_later(timeout, self._end_barrier, name, waiter)

    def _leave(self, rank: int) -> None:
        """Record that a process shuts down: it launches no more programs and joins no other barrier."""
        self._leaving.add(rank)
        self._forsake(rank, SHUTDOWN)
        for order in self._orders.values():
            if rank in order.ranks:
                self._check(order.finish(rank))

    def _forsake(self, rank: int, but: str = "") -> None:
        """Fail the barriers that wait for a process that has left, except the barrier `but`."""
        for name, waiters in list(self._barriers.items()):
            if name != but and rank in self._ranks_of(name):
                del self._barriers[name]
                for waiter, _ in waiters.values():
                    waiter.answer({"error": "gone", "ranks": [rank]})

    def _end_barrier(self, name: str, waiter: Waiter) -> None:
        """End a barrier that timed out: send the missing ranks to all processes that wait at it."""
        here = self._barriers.get(name, {})
        if here.get(waiter.member.rank, (None,))[0] is waiter:
            missing = [r for r in self._ranks_of(name) if r not in here]
            del self._barriers[name]
            for other, _ in here.values():
                other.answer({"error": "timeout", "ranks": missing})

    # -- the order of launches ---------------------------------------------------------------------------------------

    def _order(self, group: list[int]) -> LaunchOrder:
        key = tuple(group)
        if key not in self._orders:
            self._orders[key] = LaunchOrder(key or range(self.size))
        return self._orders[key]

    def _agree(self, waiter: Waiter, message: dict[str, Any]) -> None:
        order, number = self._order(message["group"]), message["program"]
        rank = waiter.member.rank
        self._check(order.agree(rank, number, Launched(message["digest"], message["name"], message["place"])))
        key = (tuple(message["group"]), number)
        waiting = self._agreeing.setdefault(key, [])
        waiting.append(waiter)
        if order.is_agreed(number):
            for other in self._agreeing.pop(key):
                other.answer()
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(message["timeout"], self._end_agreement, key, waiter, order.missing)

    def _end_agreement(self, key: Any, waiter: Waiter, missing: Callable[[int], list[int]]) -> None:
        if waiter in self._agreeing.get(key, ()):
            self._agreeing[key].remove(waiter)
            waiter.answer({"error": "timeout", "ranks": missing(key[1])})

    def _confirm(self) -> None:
        """Answer the confirm requests whose launches all processes have reported, or a process that left never will."""
        left = []
        for order, count, waiter in self._confirming:
            behind = order.behind(count)
            gone = [r for r in behind if r in self.gone]
            if self._has_mismatch or (behind and not gone):
                left.append((order, count, waiter))  # after a mismatch no launch is confirmed
            else:
                waiter.answer({"error": "gone", "ranks": gone} if gone else {})
        self._confirming = left

    def _check(self, wrong: str) -> None:
        if wrong:
            self._has_mismatch = True
            self._tell_all({"is": "mismatch", "why": wrong})
