"""A pool of W worker processes: worker b mod W computes batch b; batches are returned in order.

Workers are spawned, because forking a process with XLA threads may deadlock. The pipeline is pickled once, and its
arrays are copied to shared memory once for all workers. Each worker prefetches a few batches. Ctrl-C does not reach the
workers: they exit with the pool, or when the parent process dies.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import weakref
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from atled.core import errors
from atled.data import worker_process
from atled.data.positions import End
from atled.data.shared_buffers import Lease, Slot, placed, views


class WorkerLost(RuntimeError):  # noqa: N818
    """A worker process died unexpectedly: it was killed, for example because memory ran out, or crashed.

    The iterator stays at the position after the last returned batch; the next call restarts the workers. A record that
    crashes a decoder will do so again: `num_workers=0` shows where.

    >>> from atled import data
    >>> try:
    ...     raise data.WorkerLost("worker 3 was killed")
    ... except data.WorkerLost as error:
    ...     print(error)
    worker 3 was killed
    """


class Pool:
    """Workers that make the batches of a pipeline from a position on."""

    def __init__(self, pipeline: Any, place: dict[str, Any], workers: int, ahead: int) -> None:
        self.pipeline, self.count, self.ahead = pipeline, workers, ahead
        self.slots: list[Slot] = []
        self.bytes = 0  # the size of the largest batch so far
        self.given = 0
        self.asked = list(range(workers))  # the next batch to request from each worker
        self.leases = workers + 2  # slots that the user's batches may hold; prefetching uses the others
        self.assigned: dict[int, Slot | None] = {}
        self.ready: dict[int, tuple[Any, ...]] = {}
        self.gone: set[int] = set()
        context = multiprocessing.get_context("spawn")
        self.watch = context.RawArray("q", [-1] * 4 * workers)
        self.processes: list[Any] = []
        self.connections: list[Connection] = []
        constants: list[Slot] = []
        self.close = weakref.finalize(
            self, _close, os.getpid(), self.processes, self.connections, self.slots, constants
        )
        sent = _packed(pipeline, constants)
        with _undisturbed():
            for number in range(workers):
                mine, its = context.Pipe()
                self.connections.append(mine)
                args = (number, sent, place, its, self.watch)
                process = context.Process(
                    target=worker_process.main, args=args, daemon=True, name=f"atled-data-{number}"
                )
                process.start()
                self.processes.append(process)
                its.close()

    def next(self) -> tuple[Any, dict[str, Any]]:
        """The next batch and the position after it; raises `End` after the last one."""
        number = self.given % self.count
        self._receive(0)
        self._ask()
        while self.given not in self.ready:
            if number in self.gone:
                raise self._lost(number)
            if not self._receive(2.0) and not self.processes[number].is_alive():
                self.gone.add(number)  # `recv` may not notice: another process may hold the other end
        kind, *answer = self.ready.pop(self.given)
        if kind == "end":
            raise End
        if kind == "error":
            raise self._error(number, *answer)
        parcel, place = answer
        batch = self._opened(parcel, self.assigned.pop(self.given))
        self.given += 1
        self._ask()
        return batch, place

    def _ask(self) -> None:
        """Request batches from each worker, up to its prefetch limit."""
        for batch in range(min(self.asked), self.given + self.count * self.ahead):
            number = batch % self.count
            if batch >= self.asked[number] and number not in self.gone:
                slot = self._free_slot()
                if slot is None and self.bytes:
                    return
                self.asked[number] = batch + self.count
                self.assigned[batch] = slot
                self._send(number, ("make", batch, slot and slot.name, slot.size if slot else 0))

    def _free_slot(self) -> Slot | None:
        """A free slot, large enough for the largest batch so far; None if the limit is reached."""
        for slot in [s for s in self.slots if s.is_free and s.size < self.bytes]:
            self._discard(slot)
        free_slot = next((s for s in self.slots if s.is_free), None)
        if free_slot is None and self.bytes and len(self.slots) < self.count * self.ahead + self.leases:
            free_slot = self._new_slot()
        if free_slot:
            free_slot.is_free = False
        return free_slot

    def _new_slot(self) -> Slot:
        self.slots.append(Slot(self.bytes))
        return self.slots[-1].create()

    def _discard(self, slot: Slot) -> None:
        slot.remove()
        self.slots.remove(slot)
        for number in range(self.count):
            self._send(number, ("drop", slot.name))

    def _send(self, number: int, message: tuple[Any, ...]) -> None:
        with contextlib.suppress(OSError):  # a dead worker is detected when its batch is awaited
            self.connections[number].send(message)

    def _receive(self, timeout: float) -> bool:
        """Receive messages from workers, waiting up to `timeout` seconds; returns whether any arrived."""
        there = {self.connections[n]: n for n in range(self.count) if n not in self.gone}
        readable = wait(list(there), timeout)
        for connection in readable:
            number = there[connection]  # type: ignore[index]
            try:
                kind, batch, *message = self.connections[number].recv()
            except (EOFError, OSError):
                self.gone.add(number)
                continue
            if kind == "room":
                self._make_room(number, batch, message[0])
            else:
                self.ready[self.given if batch is None else batch] = (kind, *message)
        return bool(readable)

    def _make_room(self, number: int, batch: int, size: int) -> None:
        """Allocate a larger slot for a batch that does not fit into its slot."""
        self.bytes = max(self.bytes, size)
        slot = self.assigned[batch]
        if slot is not None:
            self._discard(slot)
        new_slot = self.assigned[batch] = self._new_slot()
        self._send(number, ("room", new_slot.name))

    def _opened(self, parcel: tuple[Any, ...], slot: Slot | None) -> Any:
        """The batch of a parcel: views of its slot, or copies if the user already holds more than `leases` slots."""
        structure, where, leaves = parcel
        if slot is not None:
            raw = np.asarray(Lease(slot))
            held = sum([not s.is_free for s in self.slots]) - sum([s is not None for s in self.assigned.values()])
            arrays = views(raw, [at for _, at, *_ in where], [(shape, dtype) for _, _, shape, dtype in where])
            if held > self.leases:
                arrays = [a.copy() for a in arrays]
            leaves = {**leaves, **{i: a for (i, *_), a in zip(where, arrays)}}
        return structure.unflatten([leaves[i] for i in range(len(leaves))])

    def _error(self, number: int, described: tuple[bytes | None, str]) -> BaseException:
        """An error of a worker, of its own type if possible."""
        data, text = described
        if data is None:
            return RuntimeError(errors.explained(f"data: worker {number} raised an error.\n{text}"))
        error = pickle.loads(data)  # safe: from a process that this process started
        error.add_note(f"  in worker {number}:\n{text}")
        if "__main__" in text and isinstance(error, AttributeError):
            error.add_note("  try: functions in a module that workers can import, or num_workers=0.")
        return error

    def _lost(self, number: int) -> WorkerLost:
        """The error for a worker that died."""
        process = self.processes[number]
        process.join(5)
        code = process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
        source, epoch, index = self.watch[4 * number : 4 * number + 3]
        sources = self.pipeline.node.sources()
        is_known = source >= 0 and len(sources) == 1  # inside a mixture, sources are numbered differently
        at = f" while at {sources[0].record(index)}, epoch {epoch}" if is_known else ""
        way_out = (
            'in a script, start workers below `if __name__ == "__main__":`, as they import it; their output is above.'
            if code == 1 and not self.given
            else "fewer workers or smaller batches if memory was short; num_workers=0 to find the crash."
        )
        return WorkerLost(
            errors.explained(f"data: worker {number} {how}{at}; it was assigned batch {self.given}.", way_out)
        )


def _close(pid: int, processes: list[Any], connections: list[Connection], *slots: list[Slot]) -> None:
    """Stop the workers, then unlink their memory; does nothing in a forked child."""
    if pid != os.getpid():
        return
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(2)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
    for connection in connections:
        connection.close()
    for slot in [s for several in slots for s in several]:
        slot.remove()
    for several in slots:
        several.clear()


@contextlib.contextmanager
def _undisturbed() -> Any:
    """A block in which new child processes ignore Ctrl-C; the parent process still receives it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _packed(pipeline: Any, slots: list[Slot]) -> tuple[bytes, str | None, list[tuple[int, int]]]:
    """A pipeline as bytes, the name of the slot with its arrays, and begin and end of each array in the slot."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(pipeline, protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        raise _unpicklable(pipeline, error) from error
    raws = [b.raw() for b in buffers]
    offsets, size = placed([((r.nbytes,), np.dtype(np.uint8)) for r in raws])
    if not size:
        return data, None, [(0, 0) for _ in raws]
    slots.append(Slot(size))
    slot = slots[0].create()
    bounds = [(at, at + r.nbytes) for at, r in zip(offsets, raws)]
    for (start, stop), raw in zip(bounds, raws):
        slot.buffer[start:stop] = raw
    return data, slot.name, bounds


def _unpicklable(pipeline: Any, error: Exception) -> Exception:
    """The error for a pipeline that cannot be pickled: names the function or source."""
    culprits = [part for part in _parts(pipeline) if not _can_pickle(getattr(part, "f", part))]
    what = str(culprits[0]).lstrip(".") if culprits else str(pipeline)
    return TypeError(
        errors.explained(
            f"data.iterator: with workers, functions and sources must be picklable; {what} is not: {error}",
            "a named function at module level (functools.partial for its settings), or num_workers=0.",
        )
    )


def _parts(x: Any) -> list[Any]:
    """The steps and sources of a pipeline or node."""
    parts = [*getattr(x, "steps", ()), *getattr(x, "row_steps", ()), *getattr(x, "batch_steps", ())]
    parts += getattr(x, "stages", ())
    for inner in [*([x.node] if hasattr(x, "node") else []), *getattr(x, "nodes", ())]:
        parts += _parts(inner)
    return parts or ([x] if not hasattr(x, "node") and not hasattr(x, "nodes") else [])


def _can_pickle(x: Any) -> bool:
    try:
        pickle.dumps(x)
    except Exception:
        return False
    return True
