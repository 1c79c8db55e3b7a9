"""Multi-process runs: start, shutdown, and communication between processes.

Every process calls `initialize` before it creates an array; `devices()` then lists the devices of all processes. When a
process dies or hangs, computations that need it raise `PeerLost`, which names its rank. After `shutdown`, a process can
call `initialize` again, with another number of processes. Keep values as NumPy arrays in between.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from atled.core import tree
from atled.core.array import type_of
from atled.engine import client
from atled.engine.multiprocess import cluster_detection, processes
from atled.engine.multiprocess.hub import Hub
from atled.engine.multiprocess.member import Refused, Unanswered
from atled.engine.multiprocess.processes import PeerLost, ProgramMismatch

__all__ = [
    "PeerLost", "ProgramMismatch", "Service", "Store", "all_gather", "barrier", "broadcast", "gather", "initialize",
    "is_initialized", "lost", "serve", "shutdown", "store", "sync",
]  # fmt: skip
__dir__ = __all__.copy


class Service:
    """A coordinator that runs in this process, created by `serve`.

    >>> service = serve(num_processes=2)
    >>> service.address.startswith("127.0.0.1:"), service.present, service.gone
    (True, [], {})
    >>> service.shutdown()
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @property
    def address(self) -> str:
        """The address that processes pass to `initialize`."""
        return self._hub.address

    @property
    def present(self) -> list[int]:
        """The ranks that have joined."""
        return sorted(self._hub.members)

    @property
    def gone(self) -> dict[int, str]:
        """The ranks that have left or were lost, with the reason."""
        return dict(self._hub.gone)

    def shutdown(self, timeout: float = 5.0) -> None:
        """Stop the coordinator, after waiting at most `timeout` seconds for its processes to leave."""
        self._hub.close(timeout)


def serve(address: str = "127.0.0.1:0", num_processes: int = 1, *, heartbeat_timeout: float = 10) -> Service:
    """Run the coordinator of a multi-process run in this process, which need not be one of the ranks.

    A coordinator in a supervisor survives the loss of any rank, including rank 0. The ranks call
    `initialize(service.address, ..., serve=False)`. Port 0 selects a free port.

    >>> service = serve("127.0.0.1:0", num_processes=2)
    >>> service.present
    []
    >>> service.shutdown()
    """
    host, port = _address(address, "serve", "address")
    return Service(_hub("serve", host, port, num_processes, heartbeat_timeout, None))


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    *,
    initialization_timeout: float = 60,
    heartbeat_timeout: float = 10,
    serve: bool | None = None,
) -> None:
    """Join a multi-process run. Returns when all processes have joined; call it before the first array is created.

    Missing arguments are read from the environment: `ATLED_COORDINATOR`, `ATLED_NUM_PROCESSES`, `ATLED_PROCESS_ID` and
        `ATLED_SERVE`, or the variables of SLURM, Open MPI, Kubernetes or Cloud TPU. The processes must share a secret:
        `ATLED_TOKEN`, the file `ATLED_TOKEN_FILE`, or a file in the user's cache directory, created on first use.

    Args:
        coordinator_address: `host:port` of the coordinator, which rank 0 runs unless another process serves there.
        local_device_ids: ids of the GPUs of this machine that this process may use.
        initialization_timeout: seconds to wait for the other processes.
        heartbeat_timeout: seconds without a heartbeat after which a process counts as lost. A process that exits is
            detected at once. The coordinator's value applies to all processes.
        serve: False if a supervisor serves at the address (see `serve`), True if rank 0 must serve there.

    Raises:
        TimeoutError: if not all processes join in time; the message lists the missing ranks.

    >>> initialize("127.0.0.1:0", num_processes=1, process_id=0)  # of n processes, each gives its own process_id
    >>> is_initialized()
    True
    >>> shutdown()
    """
    _check_system()
    launcher, detected = cluster_detection.detect(os.environ)
    address = coordinator_address if coordinator_address is not None else detected.coordinator
    size = num_processes if num_processes is not None else detected.num_processes
    rank = process_id if process_id is not None else detected.process_id
    serve = serve if serve is not None else detected.serve
    visible = local_device_ids if local_device_ids is not None else detected.local_device_ids
    _check_arguments(address, size, rank, launcher)
    assert address is not None and size is not None and rank is not None
    if rank == 0 and launcher and None in (coordinator_address, num_processes, process_id):
        found = cluster_detection.reason(os.environ)
        print(f"distributed: process 0 of {size}, coordinator {address}; found {found}.", file=sys.stderr)
    host, port = _address(address, "initialize", "coordinator_address")
    hub = None
    if rank == 0 and serve is not False:
        hub = _own_hub(host, port, size, heartbeat_timeout, serve)
    try:
        port = hub.port if hub is not None else port
        visible = (visible,) if isinstance(visible, int) else visible
        processes.begin(host, port, rank, size, initialization_timeout, hub, visible)
    except Unanswered as error:
        _close(hub)
        raise TimeoutError(
            f"distributed.initialize: process {rank} waited {initialization_timeout:g} s at {address} for "
            f"{size} processes; {error}\n  try: start the missing processes with the same coordinator_address, "
            "where rank 0 or the process that called distributed.serve runs the coordinator; or raise "
            "initialization_timeout."
        ) from None
    except Refused as error:
        _close(hub)
        way = "give all processes the same num_processes, and each its own process_id."
        if error.argument == "token":
            way = "ATLED_TOKEN, the same long random text for all processes; or another port."
        raise ValueError(
            f"distributed.initialize: the coordinator at {address} refused process {rank}: {error}\n  try: {way}"
        ) from None
    except BaseException:
        _close(hub)
        raise


def _check_system() -> None:
    if sys.platform == "win32":
        raise NotImplementedError(
            "distributed.initialize: several processes need Linux or macOS; got Windows, whose jaxlib has no "
            "collectives between processes.\n  try: the Windows Subsystem for Linux, or the devices of one process."
        )


def _check_arguments(address: Any, size: Any, rank: Any, launcher: str) -> None:
    given = {"coordinator_address": address, "num_processes": size, "process_id": rank}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        where = f"the environment of {launcher} does not set it" if launcher else "the environment names no launcher"
        raise ValueError(
            f"distributed.initialize: {', '.join(missing)} must be given; got None, and {where}."
            "\n  try: distributed.initialize('host:port', num_processes=n, process_id=i), or set ATLED_COORDINATOR, "
            "ATLED_NUM_PROCESSES and ATLED_PROCESS_ID."
        )
    for name in ("num_processes", "process_id"):
        if not isinstance(given[name], int) or isinstance(given[name], bool):
            raise TypeError(f"distributed.initialize: {name} must be an integer; got {given[name]!r}.")
    if size < 1:
        raise ValueError(f"distributed.initialize: num_processes must be at least 1; got {size}.")
    if not 0 <= rank < size:
        raise ValueError(
            f"distributed.initialize: process_id must be in 0 .. num_processes - 1; got {rank} of {size}."
            "\n  try: number the processes from zero."
        )
    if processes.world() is not None:
        raise RuntimeError(
            "distributed.initialize: this process has already joined a run.\n  try: distributed.shutdown() first."
        )
    if client.is_used():
        raise RuntimeError(
            "distributed.initialize: the devices are already in use, because an array was created or a "
            "function was run."
            "\n  try: call it first in the program; or convert arrays to NumPy arrays, call distributed.shutdown(), "
            "which releases the devices, and call distributed.initialize again."
        )


def _address(address: Any, function: str, argument: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"distributed.{function}: {argument} must look like 'host:port'; got {address!r}.")
    return host.strip("[]"), int(port)


def _hub(function: str, host: str, port: int, size: int, heartbeat: float, home: int | None) -> Hub:
    if heartbeat <= 0:
        raise ValueError(f"distributed.{function}: heartbeat_timeout must be positive; got {heartbeat}.")
    try:
        return processes.start_hub(host, port, size, heartbeat, home)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror or error})"
        raise OSError(
            error.errno,
            f"distributed.{function}: port {port} of {host} {reason}.\n  try: another port, the same for all "
            "processes; `ss -ltnp` shows which process uses this one.",
        ) from None


def _own_hub(host: str, port: int, size: int, heartbeat: float, serve: bool | None) -> Hub | None:
    """Start the hub in the process of rank 0; None if another process already serves at the address."""
    try:
        return _hub("initialize", host, port, size, heartbeat, 0)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and serve is None and processes.is_hub(host, port):
            return None
        raise


def _close(hub: Hub | None) -> None:
    if hub is not None:
        hub.close(0)


def is_initialized() -> bool:
    """Whether this process is part of a multi-process run: after `initialize` and before `shutdown`.

    >>> is_initialized()
    False
    """
    return processes.world() is not None


def lost() -> dict[int, str]:
    """The ranks that died, hang or cannot be reached, with the reason for each.

    >>> lost()
    {}
    """
    world = processes.world()
    return {} if world is None else {r: why for r, why in dict(world.member.lost).items() if r is not None}


def shutdown(timeout: float = 30) -> None:
    """Leave the run, after waiting at most `timeout` seconds for the other processes to do the same.

    Drops the devices and all compiled programs, so the process can call `initialize` again. Existing arrays can be
    read, but not used in computations. If a process is lost, `shutdown` does not wait.

    >>> initialize("127.0.0.1:0", num_processes=1, process_id=0)
    >>> shutdown()
    >>> is_initialized()
    False
    """
    world = processes.world()
    late = None
    if world is not None and world.is_broken_off and world.failure() is None:
        processes.end("it was interrupted", is_loss=True)
        return
    if world is not None and world.failure() is None and not world.member.left:
        try:
            processes.exchange(world, "shutdown", b"", timeout)
        except TimeoutError as error:
            late = str(error).split("\n")[0]
        except PeerLost:
            pass
        except ProgramMismatch:
            processes.end()
            raise
    processes.end()
    if late is not None:
        warnings.warn(f"distributed.shutdown: this process left before the others. {late}", stacklevel=2)


@atexit.register
def _at_exit() -> None:
    """Leave the run at exit; if an exception ended the program, notify the other processes at once."""
    error = getattr(sys, "last_value", None)
    world = processes.world()
    if world is None:
        return
    if error is not None:
        processes.end(f"it ended with {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", True)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(ProgramMismatch):  # reported below
                shutdown()
        if world.member.mismatch:  # results may be wrong; an atexit function can set the exit status only this way
            print(f"distributed: {world.member.mismatch}", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)


# -- communication ----------------------------------------------------------------------------------------------------


def _world(function: str) -> processes.World:
    world = processes.world()
    if world is None:
        raise RuntimeError(
            f"distributed.{function}: this process is not part of a multi-process run.\n  try: "
            f"distributed.initialize(...) first."
        )
    return world


def barrier(name: str = "barrier", timeout: float = 60, ranks: Sequence[int] = ()) -> None:
    """Wait until all processes, or those in `ranks`, call this; raises a TimeoutError that lists the missing ranks.

    >>> initialize("127.0.0.1:0", num_processes=1, process_id=0)
    >>> barrier("data is ready", timeout=10)  # returns when all processes are here
    >>> shutdown()
    """
    processes.exchange(_world("barrier"), f"barrier {name}", b"", timeout, ranks)


def sync(name: str = "sync") -> None:
    """Wait without a time limit until all processes call this; raises PeerLost if a process is lost.

    >>> initialize("127.0.0.1:0", num_processes=1, process_id=0)
    >>> sync("step 100")  # returns when all processes are here, however long that takes
    >>> shutdown()
    """
    processes.exchange(_world("sync"), f"sync {name}", b"", 10 * 365 * 86400)


def broadcast(x: Any, source: int = 0, timeout: float = 300) -> Any:
    """Broadcast the pytree of rank `source` to all processes, as NumPy arrays.

    Every process passes a pytree of the same structure, shapes and dtypes; only the values of rank `source` are used.

    >>> import numpy as np
    >>> initialize("127.0.0.1:0", num_processes=1, process_id=0)
    >>> broadcast({"seed": np.array([7])})
    {'seed': array([7])}
    >>> shutdown()
    """
    world = _world("broadcast")
    if not isinstance(source, int) or not 0 <= source < world.member.size:
        raise ValueError(f"distributed.broadcast: source must be one of the {world.member.size} ranks; got {source!r}.")
    mine = world.member.rank == source
    return _collected(world, "broadcast", x, timeout, lambda rank: rank == source, mine)[source]


def gather(x: Any, timeout: float = 300) -> Any:
    """The pytrees of all processes as NumPy arrays, stacked along a new first axis; every process gets the result.

    >>> import numpy as np
    >>> initialize("127.0.0.1:0", num_processes=1, process_id=0)
    >>> gather(np.array([1.5, 2.5]))  # with n processes: n rows
    array([[1.5, 2.5]])
    >>> shutdown()
    """
    world = _world("gather")
    trees = _collected(world, "gather", x, timeout, lambda rank: True, True)
    return tree.map(lambda *leaves: np.stack(leaves), *trees)


all_gather = gather


def _collected(world: processes.World, name: str, x: Any, timeout: float, gives: Any, is_giver: bool) -> list[Any]:
    """The pytrees of the contributing ranks by rank, None for other ranks."""
    leaves, structure = tree.flatten(x)
    arrays = [np.asarray(leaf) for leaf in leaves]
    described = [str(structure), *[str(type_of(a)) for a in arrays]]
    number = world.exchanges
    world.exchanges += 1
    label = f"{name} {number}"
    headers = [json.loads(h) for h in processes.exchange(world, label, json.dumps(described).encode(), timeout)]
    for rank, header in enumerate(headers):
        if header != headers[0]:
            first, second = _difference(headers[0], header)
            raise ValueError(
                f"distributed.{name}: all processes must pass trees of the same structure and types; rank 0 "
                f"passed {first}, and rank {rank} passed {second}."
            )
    data = b"".join([a.tobytes() for a in arrays])
    total = len(data)
    parts: list[list[bytes]] = [[] for _ in headers]
    for start in range(0, total, _CHUNK):
        chunk = data[start : start + _CHUNK] if is_giver else b""
        for rank, part in enumerate(processes.exchange(world, f"{label}.{start}", chunk, timeout)):
            parts[rank].append(part)
    return [_from_bytes(b"".join(part), arrays, structure) if gives(rank) else None for rank, part in enumerate(parts)]


_CHUNK = 2**20


def _difference(one: list[str], other: list[str]) -> tuple[str, str]:
    for a, b in zip(one, other, strict=False):
        if a != b:
            return a, b
    return f"{len(one) - 1} arrays", f"{len(other) - 1}"


def _from_bytes(data: bytes, like: list[np.ndarray], structure: Any) -> Any:
    arrays, start = [], 0
    for a in like:
        arrays.append(np.frombuffer(data, a.dtype, a.size, start).reshape(a.shape).copy())
        start += a.nbytes
    return tree.unflatten(structure, arrays)


class Store:
    """A key-value store shared by all processes; `distributed.store` is the store of the current run.

    >>> initialize("127.0.0.1:0", num_processes=1, process_id=0)
    >>> store.set("best", "0.91")
    >>> store.get("best"), store.try_get("worst"), [store.increment("tickets") for _ in range(2)]
    (b'0.91', None, [1, 2])
    >>> shutdown()
    """

    def set(self, key: str, value: bytes | str, *, overwrite: bool = True) -> None:
        """Store a value; text is encoded as UTF-8."""
        data = value.encode() if isinstance(value, str) else bytes(value)
        if self._ask("set", {"key": key, "overwrite": overwrite}, data)[0].get("error"):
            raise KeyError(f"distributed.store.set: the key {key!r} is already set, and overwrite=False.")

    def get(self, key: str, timeout: float = 60) -> bytes:
        """The value of a key; waits at most `timeout` seconds until it is set."""
        message, data = self._ask("get", {"key": key, "timeout": timeout})
        if message.get("error"):
            raise TimeoutError(f"distributed.store.get: {key!r} was not set within {timeout:g} s.")
        return data

    def try_get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default` if it is not set."""
        message, data = self._ask("get", {"key": key, "timeout": 0})
        return default if message.get("error") else data

    def delete(self, key: str) -> None:
        """Delete a key, and all keys that begin with the key and a slash."""
        self._ask("delete", {"key": key})

    def increment(self, key: str, by: int = 1) -> int:
        """Atomically add to a counter, initially zero, and return the sum: no two processes get the same value."""
        message, _ = self._ask("increment", {"key": key, "by": by})
        if message.get("error"):
            raise ValueError(f"distributed.store.increment: the value of {key!r} is not an integer.")
        return message["value"]

    def _ask(self, do: str, question: Mapping[str, Any], data: bytes = b"") -> tuple[dict[str, Any], bytes]:
        if not isinstance(question["key"], str):
            raise TypeError(f"distributed.store.{do}: the key must be a string; got {question['key']!r}.")
        world = _world(f"store.{do}")
        return world.answer(world.member.ask({"do": do, **question}, data))


store = Store()
