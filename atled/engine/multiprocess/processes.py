"""Multi-process runs: the rendezvous, the engine's collectives between processes, and the loss of a process.

A world is a `Member` (`member.py`), the engine's coordination client, which reaches its service through the member's
tunnel, and Gloo's connections. `atled/distributed.py` is the public side. The launch path calls `agree` when a program
over several processes is new, `launched` each time, and `explain` when the engine raises. Collectives of different
programs can match up by accident and give wrong sums, so results carry the `Mark` of their launch, and are read only
after `confirm`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import jaxlib._jax as _jax
import jaxlib.utils as utils  # pyright: ignore[reportMissingImports]
import numpy as np

from atled.core import source
from atled.engine import client
from atled.engine.multiprocess import wire
from atled.engine.multiprocess.hub import Hub
from atled.engine.multiprocess.launch_order import Copy
from atled.engine.multiprocess.member import HubLost, Member
from atled.engine.multiprocess.token import origin, token

# The engine's own heartbeat timeout, in seconds: effectively never, because it aborts the process. The hub has its own.
_NEVER = 1_000_000
_AGREEMENT = 600.0  # seconds to wait for other processes to launch a new program; they may be compiling


class PeerLost(RuntimeError):  # noqa: N818
    """Another process died, hangs, or cannot be reached; `ranks` lists the lost processes.

    Arrays with shards on it are lost. The remaining processes can continue together: each calls
    `distributed.shutdown()` and then `distributed.initialize` with the new number of processes.

    >>> from atled.distributed import PeerLost
    >>> PeerLost("rank 3 was lost: its process ended", ranks=[3]).ranks
    (3,)
    """

    def __init__(self, message: str, ranks: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


class ProgramMismatch(RuntimeError):  # noqa: N818
    """The processes launched different programs, or the same ones in a different order; the message names both.

    A program over several processes runs when all of them launch it. All processes must launch the same programs in the
    same order.

    >>> from atled.distributed import ProgramMismatch
    >>> try:
    ...     raise ProgramMismatch("rank 0 launched train, and rank 1 launched evaluate")
    ... except RuntimeError as error:
    ...     print(error)
    rank 0 launched train, and rank 1 launched evaluate
    """


class World:
    """This process as a part of a multi-process run."""

    def __init__(self, member: Member, hub: Hub | None) -> None:
        self.member = member
        self.hub = hub  # the hub, if it runs in this process
        self.coordination: Any = None  # the engine's client
        self.gloo: set[tuple[str, int]] = set()  # addresses on which the processes listen for collectives
        self.launches: list[tuple[int, dict[str, Copy] | None]] = []  # not reported yet, with checksums of inputs
        self.unchecked: dict[int, tuple[Any, dict[str, Copy]]] = {}  # id -> a replicated array not used in a launch yet
        self._reporting = threading.Lock()
        self._disconnecting = threading.Lock()
        self.is_broken_off = False
        self._rendezvous_to_end = 4  # times
        self.programs: list[tuple[tuple[int, ...], int]] = []  # handle -> group and number in it
        self.counts: dict[tuple[int, ...], int] = {}  # group -> programs that it has agreed on
        self.made: dict[tuple[int, ...], int] = {}  # group -> launches
        self.confirmed: dict[tuple[int, ...], int] = {}  # group -> number of launches confirmed to agree
        self.launching = threading.Lock()
        self.is_awaited = False  # another process waits for the next launches
        self.is_launching = False  # an engine call is in progress
        self._interrupts: tuple[socket.socket, socket.socket] | None = None
        self.exchanges = 0

    @property
    def address(self) -> str:
        return wire.address(self.member.host, self.member.port)

    def failure(self) -> Exception | None:
        """The exception for a failure of other processes, if there was one."""
        if self.member.mismatch:
            return ProgramMismatch(f"distributed: {self.member.mismatch}")
        return self.without(dict(self.member.lost)) if self.member.lost else None

    def without(self, lost: dict[Any, str], what: str = "is lost") -> PeerLost:
        """The exception that names the lost ranks, with the reason for each."""
        who = {r: f"the coordinator at {self.address}" if r is None else f"rank {r}" for r in lost}
        reasons = "; ".join(f"{who[r]} {what}: {why}" for r, why in lost.items())
        return PeerLost(
            f"distributed: {reasons}.\n  try: distributed.shutdown() in the processes that are left, and "
            "distributed.initialize(...) with the new number of processes; or start all of them again.",
            sorted(r for r in lost if r is not None),
        )

    def answer(self, answer: Future[Any]) -> tuple[dict[str, Any], bytes]:
        """The hub's answer to a request."""
        while True:
            try:
                return answer.result(0.05)
            except TimeoutError:
                if self.member.mismatch:
                    raise self.failure() from None  # type: ignore[misc]
            except HubLost:
                raise self.failure() or PeerLost("distributed: this run has ended.") from None

    # -- what the member's thread does ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Report the launches since the last time."""
        with self._reporting:
            self.is_awaited = self.is_awaited and not self.launches
            while self.launches:
                done = self.launches[:4096]
                del self.launches[: len(done)]
                groups: dict[tuple[int, ...], tuple[list[int], dict[int, Any]]] = {}
                for handle, copies in done:
                    group, number = self.programs[handle]
                    numbers, given = groups.setdefault(group, ([], {}))
                    if copies:
                        given[len(numbers)] = copies
                    numbers.append(number)
                for group, (numbers, given) in groups.items():
                    self.member.tell({"do": "launched", "group": group, "programs": numbers, "copies": given})

    def report(self) -> None:
        """Another process waits for launches: report pending ones, and from now on each immediately."""
        self.is_awaited = True
        self.flush()

    def watch_interrupts(self) -> None:
        """Let Ctrl-C interrupt a launch, in which the engine may block and keep Python's signal handlers from running.

        The system writes the number of each signal to a socket, on which the member's thread listens.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        if before != -1:  # somebody else listens
            signal.set_wakeup_fd(before)
            ours.close()
            theirs.close()
            return
        self._interrupts = (ours, theirs)
        loop = self.member.loop

        def heard() -> None:
            if signal.SIGINT in ours.recv(64) and self.is_launching:
                loop.call_later(0.5, lambda: self.is_launching and self.break_off())

        loop.call_soon_threadsafe(loop.add_reader, ours, heard)

    def ignore_interrupts(self) -> None:
        """Undo `watch_interrupts`."""
        pair, self._interrupts = self._interrupts, None
        if pair is None:
            return
        ours, theirs = pair
        if threading.current_thread() is threading.main_thread():
            before = signal.set_wakeup_fd(-1)
            if before not in (-1, theirs.fileno()):
                signal.set_wakeup_fd(before)
        theirs.close()

        def close() -> None:
            self.member.loop.remove_reader(ours)
            ours.close()

        self.member.loop.call_soon_threadsafe(close)

    def break_off(self) -> None:
        """Make all engine calls that wait for a lost process raise."""
        if not self.is_broken_off:
            self.is_broken_off = True
            _stop_listening()  # for an earlier world
            # A call that waits for a connection asks the coordination service for addresses; this aborts the request.
            # It takes a second if the service is lost, too.
            threading.Thread(target=self.disconnect, name="atled-break-off", daemon=True).start()
        pairs = 0
        for connection in _connections():
            with contextlib.suppress(OSError):  # not connected
                if {_plain(connection.getpeername()), _plain(connection.getsockname())} & self.gloo:
                    connection.shutdown(socket.SHUT_RDWR)
                    pairs += 1
        if self._rendezvous_to_end:
            self._rendezvous_to_end -= 1
            self._end_rendezvous(pairs)

    def _end_rendezvous(self, pairs: int) -> None:
        """End Gloo's rendezvous, which has no timeout: it waits for a lost rank to connect, or retries a refused one.

        The connecting side sends the number of the pair, counted from 0. So connect to this process as every pair that
        can be pending and hang up: the collective raises then. And keep listening after Gloo's device is gone, so that
        slower ranks connect to it and find the connection cut, instead of being refused and trying again.
        """
        for connection in _connections():
            address = connection.getsockname()
            if _is_listening(connection) and _plain(address) in self.gloo and address not in _still_listening:
                with contextlib.suppress(OSError):  # no open files are left
                    _still_listening[address] = os.dup(connection.fileno())  # connection.dup() would make accept block
        room = (os.sysconf("SC_OPEN_MAX") - len(os.listdir("/dev/fd"))) // 2  # without open files, Gloo aborts
        for address in list(_still_listening):
            for number in range(min(pairs + 2 * self.member.size + 64, room)):
                with contextlib.suppress(OSError), socket.create_connection(address[:2], 0.1) as ours:
                    ours.sendall(number.to_bytes(8, sys.byteorder))

    def disconnect(self) -> None:
        """Disconnect from the coordination service; after this, the engine's client tolerates its end."""
        with self._disconnecting:
            coordination, self.coordination = self.coordination, None
            if coordination is not None:
                with contextlib.suppress(_jax.JaxRuntimeError):
                    coordination.shutdown()
                self.member.close_tunnel()


def _connections() -> Iterator[socket.socket]:
    """All network connections and listening sockets of this process."""
    for name in os.listdir("/dev/fd"):
        try:
            number = os.dup(int(name))
        except OSError:
            continue
        try:
            connection = socket.socket(fileno=number)
        except OSError:  # a file
            os.close(number)
            continue
        with connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                yield connection


_world: World | None = None
_still_listening: dict[Any, int] = {}  # address -> file, of the last world that failed: see `World._end_rendezvous`


def _stop_listening() -> None:
    while _still_listening:
        os.close(_still_listening.popitem()[1])


def _plain(address: Any) -> tuple[str, int]:
    return address[0].removeprefix("::ffff:"), address[1]


def world() -> World | None:
    """The world that this process is in."""
    return _world


# -- begin and end -----------------------------------------------------------------------------------------------------


def start_hub(host: str, port: int, size: int, heartbeat: float, home: int | None = None) -> Hub:
    """Serve a run of `size` processes at an address; raises OSError if that is not possible."""
    return Hub(host, port, size, heartbeat, lambda: _start_service(size), home, token(), origin())


def is_hub(host: str, port: int) -> bool:
    """Whether a hub answers at an address."""

    async def ask() -> bool:
        channel = await wire.connect(host, port, token())
        channel.send({"do": "hello"})
        try:
            return (await channel.receive())[0] == {"is": "hub"}
        finally:
            channel.close()

    background = wire.Background("atled-hello")
    try:
        return background.run(ask(), 2)
    except (OSError, ValueError, EOFError, TimeoutError):
        return False
    finally:
        background.stop()


def _start_service(size: int) -> tuple[int, Callable[[], None]]:
    """The engine's coordination service, reachable only from this process."""
    for attempt in range(5):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        utils.absl_set_min_log_level(2)  # it warns about an experimental option
        try:
            service = _jax.get_distributed_runtime_service(
                f"127.0.0.1:{port}", size, heartbeat_timeout=_NEVER, cluster_register_timeout=_NEVER,
                shutdown_timeout=1, recoverable=True,
            )  # fmt: skip
            return port, service.shutdown
        except _jax.JaxRuntimeError:  # another process took the port in between
            if attempt == 4:
                raise
        finally:
            utils.absl_set_min_log_level(int(os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1")))
    raise AssertionError


def begin(host: str, port: int, rank: int, size: int, timeout: float, hub: Hub | None, visible: Any = None) -> None:
    """Join a world, and make the engine's clients for it; returns when all processes have joined."""
    global _world
    member = Member(host, port, rank, size, timeout, token())
    joined = World(member, hub)
    member.on_tick, member.on_report, member.on_failure = joined.flush, joined.report, joined.break_off
    try:
        joined.coordination = _jax.get_distributed_runtime_client(
            f"127.0.0.1:{member.tunnel_port}", rank, init_timeout=_NEVER, heartbeat_timeout=_NEVER,
            shutdown_timeout=1, shutdown_on_destruction=False,
        )  # fmt: skip
        _patiently(joined, joined.coordination.connect)
        client.world = client.World(joined.coordination, rank, size, member.local_address, visible)
        before = _listening()
        _patiently(joined, client.clients)
        mine = _listening() - before
        ports = exchange(joined, "gloo", json.dumps(sorted(mine)).encode(), timeout)
        joined.gloo = {(host, port) for part in ports for host, port in json.loads(part)}

    except BaseException as error:
        client.world = None
        client.reset()
        joined.disconnect()
        member.leave(f"it could not initialize: {type(error).__name__}", is_loss=True)
        raise
    _world = joined
    joined.watch_interrupts()


def _listening() -> set[tuple[str, int]]:
    """The addresses that this process listens on."""
    return {_plain(c.getsockname()) for c in _connections() if _is_listening(c)}


def _is_listening(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _patiently(made: World, work: Callable[[], Any]) -> Any:
    """Run an engine call that waits for other processes and cannot be interrupted; raise if one of them is lost."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="atled-begin", daemon=True).start()
    while True:
        try:
            return result.result(0.05)
        except TimeoutError:
            if result.done():
                raise
            failure = made.failure()
            if failure is not None:
                raise failure from None


def end(why: str = "it shut down", is_loss: bool = False) -> None:
    """Leave the world, and reset the engine."""
    global _world
    former, _world = _world, None
    client.world = None
    client.reset()
    if former is None:
        return
    former.ignore_interrupts()
    former.disconnect()
    former.member.leave(why, is_loss)
    if former.hub is not None:
        former.hub.close()


def _after_fork() -> None:
    """A forked child must not keep the connections open: their end signals that this process died."""
    global _world
    former, _world = _world, None
    _stop_listening()
    if former is not None:
        client.world = None
        if former._interrupts is not None:
            signal.set_wakeup_fd(-1)
        former.member.abandon()
        if former.hub is not None:
            former.hub.abandon()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


# -- talking to the others ---------------------------------------------------------------------------------------------


def exchange(made: World, name: str, data: bytes, timeout: float, ranks: Sequence[int] = ()) -> list[bytes]:
    """A barrier and all-gather: each process sends bytes and gets those of all, in rank order."""
    failure = made.failure()
    if failure is not None:
        raise failure
    made.flush()  # so that earlier launches are compared first
    full = f"{','.join(map(str, ranks))}:{name}"
    asked = made.member.ask({"do": "barrier", "name": full, "timeout": timeout}, data)
    message, payload = made.answer(asked)
    missing = message.get("ranks", [])
    if made.member.mismatch:
        raise made.failure()  # type: ignore[misc]
    if message.get("error") == "timeout":
        raise TimeoutError(
            f"distributed: {wire.ranks(missing)} did not reach {name!r} within {timeout:g} s."
            "\n  try: let every process call it, or give it a longer timeout."
        )
    if message.get("error") == "gone":
        raise _gone(made, missing)
    parts = []
    for size in message["sizes"]:
        parts.append(payload[:size])
        payload = payload[size:]
    return parts


def _gone(made: World, ranks: Sequence[int]) -> Exception:
    return made.failure() or made.without({r: made.member.left.get(r, "it ended") for r in ranks}, "has left")


def once(name: str, make: Callable[[], tuple[dict[str, Any], bytes]]) -> tuple[dict[str, Any], bytes]:
    """The result of `make()`, computed by the first process that requests this name and sent to the others."""
    current = _world
    _raise_failure(current)
    assert current is not None
    claim = current.member.ask({"do": "set", "key": f"claimed/{name}", "overwrite": False})
    if "error" not in current.answer(claim)[0]:
        header: dict[str, Any] = {}
        data = b""
        try:
            header, data = make()
        finally:  # if it failed here, it will fail in the other processes, too
            text = json.dumps([header, _digest(name, data)]).encode()
            current.member.ask({"do": "set", "key": f"made/{name}", "overwrite": True}, text + b"\n" + data)
        return header, data
    while True:
        message, content = current.answer(current.member.ask({"do": "get", "key": f"made/{name}", "timeout": 0.2}))
        _raise_failure(current)
        if "error" not in message:
            text, _, data = content.partition(b"\n")
            header, checksum = json.loads(text)
            return (header, data) if data and checksum == _digest(name, data) else make()


def _digest(name: str, data: bytes) -> str:
    return hashlib.sha256(name.encode() + data).hexdigest()


# -- for the launch path -----------------------------------------------------------------------------------------------


def agree(digest: str, name: str, place: str, ranks: Sequence[int] = (), timeout: float = _AGREEMENT) -> int:
    """Agree on a multi-process program before its first launch: all processes must be about to launch it.

    `digest` identifies the program, `name` and `place` (the user's `file:line`) are for messages; `ranks` are the
    processes that take part, if not all. Returns the number to give to `launched`.
    """
    current = _world
    _raise_failure(current)
    assert current is not None
    current.flush()
    group = () if len(ranks) in (0, current.member.size) else tuple(sorted(ranks))
    number = current.counts.get(group, 0)
    current.counts[group] = number + 1
    question = {"do": "agree", "group": group, "program": number, "timeout": timeout}
    answer = current.member.ask({**question, "digest": digest, "name": name, "place": place})
    while True:
        try:
            message, _ = answer.result(0.05)
            break
        except TimeoutError:
            _raise_failure(current)
            left = {r: why for r, why in current.member.left.items() if not group or r in group}
            if left:
                raise current.without(left, "has left") from None
        except HubLost:
            _raise_failure(current)
            raise PeerLost("distributed: this run has ended.") from None
    if message.get("error") == "timeout":
        raise TimeoutError(
            f"distributed: {wire.ranks(message['ranks'])} did not launch {name} ({place}) within {timeout:g} "
            f"s, as this process did.\n  try: let every process call the same compiled functions in the same order."
        )
    _raise_failure(current)
    current.programs.append((group, number))
    return len(current.programs) - 1


class Mark(NamedTuple):
    """The launch that a result comes from: `count` is the number of launches of its group so far."""

    world: World
    group: tuple[int, ...]
    count: int


def launched(number: int, buffers: Sequence[Any] = ()) -> Mark:
    """Report that an agreed program is about to be launched; raises if the world has failed."""
    current = _world
    if current is None or current.member.lost or current.member.mismatch:
        _raise_failure(current)
    assert current is not None
    group = current.programs[number][0]
    copies = _taken(current, buffers) if current.unchecked else None
    with current.launching:
        current.launches.append((number, copies))
        count = current.made[group] = current.made.get(group, 0) + 1
    if current.is_awaited:
        current.flush()
    return Mark(current, group, count)


def was_put(buffer: Any, parts: dict[str, np.ndarray]) -> None:
    """Register the checksums of replicated shards, by index; the first launch compares them between processes."""
    current = _world
    if current is None:
        return
    place = source.here()
    location, type = str(place) if place is not None else "an unknown line", str(buffer.aval.type)
    copies = {
        name: Copy(zlib.crc32(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data), type, location)
        for name, x in parts.items()
    }
    key, unchecked = id(buffer), current.unchecked
    unchecked[key] = (weakref.ref(buffer, lambda _: unchecked.pop(key, None)), copies)


def _taken(made: World, buffers: Sequence[Any]) -> dict[str, Copy] | None:
    """The inputs of a launch whose replicated shards were not compared yet, by position."""
    hit = made.unchecked.keys() & map(id, buffers)
    copied = {}
    for i, b in enumerate(buffers) if hit else ():
        if id(b) in hit:
            _, copies = made.unchecked.pop(id(b))
            copied.update({f"{i} {name}": copy for name, copy in copies.items()})
    return copied or None


def confirm(mark: Mark) -> None:
    """Wait until all processes are known to have launched the same programs, in the same order, up to this one.

    Raises if they have not, or if that can no longer be determined. Launches need no messages; this needs one, which
    overlaps the computation, unless a later launch was already confirmed.
    """
    launched_in, group, count = mark
    if launched_in.confirmed.get(group, 0) >= count:
        return
    if launched_in is not _world:  # the world ended after all launches were compared, or with an exception
        if launched_in.failure() is not None:
            raise launched_in.failure()  # type: ignore[misc]
        return
    launched_in.flush()
    message, _ = launched_in.answer(launched_in.member.ask({"do": "confirm", "group": group, "count": count}))
    if message.get("error") == "gone":
        raise _gone(launched_in, message["ranks"])
    launched_in.confirmed[group] = max(count, launched_in.confirmed.get(group, 0))


def await_result(buffer: Any) -> None:
    """Wait for the result of a confirmed launch. Unlike the engine's own wait, Ctrl-C interrupts this."""
    began = time.monotonic()
    while not buffer.is_ready():
        time.sleep(min(2e-3, 2e-5 + (time.monotonic() - began) / 20))


def _raise_failure(made: World | None) -> None:
    if made is None:
        raise PeerLost(
            "distributed: the multi-process run of this program has ended; its arrays and programs can no "
            "longer be used."
        )
    failure = made.failure()
    if failure is not None:
        raise failure


_SIGNS = ("gloo", "connection reset", "connection closed", "socket closed", "cancelled", "unavailable", "nccl")


def explain(error: Exception, patience: float = 2.0) -> Exception | None:
    """Translates an engine error that another process caused into `PeerLost` or `ProgramMismatch`.

    A broken connection is noticed a moment before the hub reports the rank, so this waits briefly for the hub.
    """
    current = _world
    if current is None or not any(sign in str(error).lower() for sign in _SIGNS):
        return None
    until = time.monotonic() + patience
    while time.monotonic() < until:
        failure = current.failure()
        if failure is not None:
            return failure
        if current.member.left:
            return current.without(dict(current.member.left), "has left")
        time.sleep(0.002)
    return PeerLost(
        "distributed: a connection between processes broke, though all of them are alive: "
        f"{' '.join(str(error).split())[:300]}\n  try: look at the network; then begin anew, distributed.shutdown() "
        "and distributed.initialize(...) in every process."
    )
