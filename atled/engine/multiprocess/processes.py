"""Multi-process runs: the rendezvous, the engine's collectives between processes, and the loss of a process.

A world has a `Member` (`member.py`), the engine's coordination client, which reaches its service through the member's
tunnel, and Gloo's connections. `atled/distributed.py` is the public API. The launch path calls `agree` when a program
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

# The engine's heartbeat timeout in seconds: practically never, since it aborts the process. The hub has its own.
_NEVER = 1_000_000
_AGREEMENT = 600.0  # seconds to wait for other processes to launch a new program; they may be compiling


class PeerLost(RuntimeError):  # noqa: N818
    """Another process died, hangs, or cannot be reached; `ranks` lists the lost processes.

    Arrays with shards in a lost process are lost. The remaining processes can continue together: each calls
    `distributed.shutdown()` and then `distributed.initialize` with the new number of processes.

    >>> from atled.distributed import PeerLost
    >>> PeerLost("rank 3 was lost: its process ended", ranks=[3]).ranks
    (3,)
    """

    def __init__(self, message: str, ranks: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


class ProgramMismatch(RuntimeError):  # noqa: N818
    """The processes launched different programs, in a different order, or with different values of replicated inputs.

    The message names two ranks and what each did. A program over several processes runs when all of them launch it.
    Processes that share programs must launch those in the same order; programs on one process's own devices are not
    restricted.

    >>> from atled.distributed import ProgramMismatch
    >>> try:
    ...     raise ProgramMismatch("rank 0 launched train, and rank 1 launched evaluate")
    ... except RuntimeError as error:
    ...     print(error)
    rank 0 launched train, and rank 1 launched evaluate
    """


class World:
    """The state of a multi-process run in this process."""

    def __init__(self, member: Member, hub: Hub | None) -> None:
        self.member = member
        self.hub = hub  # the hub, if it runs in this process
        self.coordination: Any = None  # the engine's coordination client
        self.gloo: set[tuple[str, int]] = set()  # addresses on which all processes listen for collectives
        self.launches: list[tuple[int, dict[str, Copy] | None]] = []  # launches to report, with checksums of inputs
        self.unchecked: dict[int, tuple[Any, dict[str, Copy]]] = {}  # id -> replicated array that no launch took yet
        self._reporting = threading.Lock()
        self._disconnecting = threading.Lock()
        self.is_broken_off = False
        self._breaks = 0  # calls of `break_off`
        self.programs: list[tuple[tuple[int, ...], int]] = []  # handle -> group, and number in that group
        self.counts: dict[tuple[int, ...], int] = {}  # group -> number of its programs
        self.made: dict[tuple[int, ...], int] = {}  # group -> number of launches
        self.confirmed: dict[tuple[int, ...], int] = {}  # group -> number of launches confirmed to agree
        self.launching = threading.Lock()
        self.is_awaited = False  # another process waits for this process's next report
        self.is_launching = False  # an engine call is in progress
        self._interrupts: tuple[socket.socket, socket.socket] | None = None
        self.exchanges = 0

    @property
    def address(self) -> str:
        return wire.address(self.member.host, self.member.port)

    def failure(self) -> Exception | None:
        """The exception to raise if other processes failed, else None."""
        if self.member.mismatch:
            return ProgramMismatch(f"distributed: {self.member.mismatch}")
        return self.without(dict(self.member.lost)) if self.member.lost else None

    def without(self, lost: dict[Any, str], what: str = "is lost") -> PeerLost:
        """A `PeerLost` that names the lost ranks, with the reason for each."""
        who = {r: f"the coordinator at {self.address}" if r is None else f"rank {r}" for r in lost}
        reasons = "; ".join(f"{who[r]} {what}: {why}" for r, why in lost.items())
        return PeerLost(
            f"distributed: {reasons}.\n  try: distributed.shutdown() in the remaining processes, and "
            "distributed.initialize(...) with the new number of processes; or start all of them again.",
            sorted(r for r in lost if r is not None),
        )

    def answer(self, answer: Future[Any]) -> tuple[dict[str, Any], bytes]:
        """Wait for the hub's answer to a request; raises if the hub is lost or the processes' launches differ."""
        while True:
            try:
                return answer.result(0.05)
            except TimeoutError:
                if self.member.mismatch:
                    raise self.failure() from None  # type: ignore[misc]
            except HubLost:
                raise self.failure() or PeerLost("distributed: this run has ended.") from None

    # -- reports, interrupts and failures ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Report to the hub the launches since the last report."""
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
        """Report pending launches, or, if there are none, the next one at once: another process waits for a report."""
        self.is_awaited = True
        self.flush()

    def watch_interrupts(self) -> None:
        """Let Ctrl-C interrupt a launch, in which the engine may block and keep Python's signal handlers from running.

        Python writes the number of each signal to a socket, which the member's thread reads.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        if before != -1:  # other code has set a wakeup fd
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
        """Make all engine calls that wait for other processes raise."""
        if not self.is_broken_off:
            self.is_broken_off = True
            _stop_listening()  # on sockets of an earlier world
            # A call that waits for a connection asks the coordination service for addresses. Disconnecting aborts the
            # request, which takes up to a second if the service is lost.
            threading.Thread(target=self.disconnect, name="atled-break-off", daemon=True).start()
        pairs = 0
        for connection in _connections():
            with contextlib.suppress(OSError):  # not connected
                if {_plain(connection.getpeername()), _plain(connection.getsockname())} & self.gloo:
                    connection.shutdown(socket.SHUT_RDWR)
                    pairs += 1
        self._breaks += 1
        if self._breaks <= 4 or self._breaks.bit_count() == 1:  # on a busy machine, a thread may wait only later
            self._end_rendezvous(pairs)

    def _end_rendezvous(self, pairs: int) -> None:
        """End Gloo's rendezvous, which waits without a timeout for a lost rank to connect, or retries refused
        connections.

        The connecting side sends the number of its pair (Gloo's word for a connection), counted from 0. Connect to this
        process with every number that can be pending, and hang up, which makes the collective raise. Keep listening
        after Gloo's device is gone: slower ranks then connect and see the connection close, instead of being refused
        and trying again.
        """
        for connection in _connections():
            address = connection.getsockname()
            if _is_listening(connection) and _plain(address) in self.gloo and address not in _still_listening:
                with contextlib.suppress(OSError):  # too many open files
                    # not connection.dup(): it would make the shared socket blocking, and with it Gloo's accept()
                    _still_listening[address] = os.dup(connection.fileno())
        room = (os.sysconf("SC_OPEN_MAX") - len(os.listdir("/dev/fd"))) // 2  # Gloo aborts if it cannot open a file
        for address in list(_still_listening):
            for number in range(min(pairs + 2 * self.member.size + 64, room)):
                try:
                    with socket.create_connection(address[:2], 0.1) as ours:
                        ours.sendall(number.to_bytes(8, sys.byteorder))
                except TimeoutError:  # the queue of connections is full: nobody accepts them
                    break
                except OSError:
                    pass

    def disconnect(self) -> None:
        """Disconnect from the coordination service; when the service ends, a connected client aborts this process."""
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
        except OSError:  # not a socket
            os.close(number)
            continue
        with connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                yield connection


_world: World | None = None
_still_listening: dict[Any, int] = {}  # address -> file descriptor, of the last failed world (`World._end_rendezvous`)


def _stop_listening() -> None:
    while _still_listening:
        os.close(_still_listening.popitem()[1])


def _plain(address: Any) -> tuple[str, int]:
    return address[0].removeprefix("::ffff:"), address[1]


def world() -> World | None:
    """The world that this process is in, or None outside of multi-process runs."""
    return _world


# -- start and shutdown -----------------------------------------------------------------------------------------------


def start_hub(host: str, port: int, size: int, heartbeat: float, home: int | None = None) -> Hub:
    """Start the hub of a run of `size` processes; raises OSError if it cannot listen at the address."""
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
    """Start the engine's coordination service on the loopback address; returns its port and a function that ends it."""
    for attempt in range(5):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        utils.absl_set_min_log_level(2)  # the service warns about an experimental option
        try:
            service = _jax.get_distributed_runtime_service(
                f"127.0.0.1:{port}", size, heartbeat_timeout=_NEVER, cluster_register_timeout=_NEVER,
                shutdown_timeout=1, recoverable=True,
            )  # fmt: skip
            return port, service.shutdown
        except _jax.JaxRuntimeError:  # another process took the port meanwhile
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
    """The addresses on which this process listens."""
    return {_plain(c.getsockname()) for c in _connections() if _is_listening(c)}


def _is_listening(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _patiently(made: World, work: Callable[[], Any]) -> Any:
    """Run an engine call that waits for other processes and cannot be interrupted; raise if a process is lost."""
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
    """Close the connections in a forked child: while they are open, other processes do not notice the parent's end."""
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


# -- communication ----------------------------------------------------------------------------------------------------


def exchange(made: World, name: str, data: bytes, timeout: float, ranks: Sequence[int] = ()) -> list[bytes]:
    """A barrier and all-gather: each process sends bytes and gets the bytes of all processes in rank order."""
    failure = made.failure()
    if failure is not None:
        raise failure
    made.flush()  # the hub compares earlier launches first
    full = f"{','.join(map(str, ranks))}:{name}"
    asked = made.member.ask({"do": "barrier", "name": full, "timeout": timeout}, data)
    message, payload = made.answer(asked)
    missing = message.get("ranks", [])
    if made.member.mismatch:
        raise made.failure()  # type: ignore[misc]
    if message.get("error") == "timeout":
        raise TimeoutError(
            f"distributed: {wire.ranks(missing)} did not reach {name!r} within {timeout:g} s."
            "\n  try: the same call in every process, or a longer timeout."
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
        finally:  # if `make` raises, the others get empty data and call `make` themselves
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


# -- launches ---------------------------------------------------------------------------------------------------------


def agree(digest: str, name: str, place: str, ranks: Sequence[int] = (), timeout: float = _AGREEMENT) -> int:
    """Wait until all processes are about to launch a new program; raise if their programs differ.

    `digest` identifies the program, `name` and `place` (the user's `file:line`) are for messages; `ranks` are the
    participating processes, or empty for all. Returns the number to pass to `launched`.
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
            f"s after this process.\n  try: let every process call the same compiled functions in the same order."
        )
    _raise_failure(current)
    current.programs.append((group, number))
    return len(current.programs) - 1


class Mark(NamedTuple):
    """The launch that a result comes from: the `count`-th launch of the processes `group`, counted from 1."""

    world: World
    group: tuple[int, ...]
    count: int


def launched(number: int, buffers: Sequence[Any] = ()) -> Mark:
    """Record, for the next report, that a program is about to be launched; raises if the world has failed."""
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
    """Record checksums of a buffer's replicated shards; the hub compares them at the buffer's first launch."""
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
    """Remove and return checksums of inputs that were not compared yet, by input position and shard, or None."""
    hit = made.unchecked.keys() & map(id, buffers)
    copied = {}
    for i, b in enumerate(buffers) if hit else ():
        if id(b) in hit:
            _, copies = made.unchecked.pop(id(b))
            copied.update({f"{i} {name}": copy for name, copy in copies.items()})
    return copied or None


def confirm(mark: Mark) -> None:
    """Wait until the hub confirms that all processes made the same launches, in the same order, up to this one.

    Raises if the launches differ or a process is lost. Returns at once if this or a later launch was already confirmed;
    otherwise sends pending reports and one request. The wait overlaps with the computation.
    """
    launched_in, group, count = mark
    if launched_in.confirmed.get(group, 0) >= count:
        return
    if launched_in is not _world:  # that world has ended: all its launches were compared, or it failed
        if launched_in.failure() is not None:
            raise launched_in.failure()  # type: ignore[misc]
        return
    launched_in.flush()
    message, _ = launched_in.answer(launched_in.member.ask({"do": "confirm", "group": group, "count": count}))
    if message.get("error") == "gone":
        raise _gone(launched_in, message["ranks"])
    launched_in.confirmed[group] = max(count, launched_in.confirmed.get(group, 0))


def await_result(buffer: Any) -> None:
    """Wait for the result of a confirmed launch. Ctrl-C interrupts this wait, but not the engine's own."""
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
    """The `PeerLost` or `ProgramMismatch` for an engine error that another process caused, or None for other errors.

    The engine notices a broken connection before the hub reports the rank, so wait up to `patience` seconds for the
    hub.
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
        "distributed: a connection between processes broke, but no process has been reported lost: "
        f"{' '.join(str(error).split())[:300]}\n  try: check the network; then start again with distributed.shutdown() "
        "and distributed.initialize(...) in every process."
    )
