"""One of W worker processes: makes every W-th batch and writes it to shared memory.

A worker receives the number of a batch and a slot, and sends back the layout of the arrays and the position after the
batch. A worker exits when the pool terminates it, or when its parent process dies.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import pickle
import threading
import traceback
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from atled.core import tree
from atled.data.collate import Stack
from atled.data.epoch_readers import Single
from atled.data.positions import Cursor, End
from atled.data.shared_buffers import placed, views


def main(number: int, sent: tuple[Any, ...], place: dict[str, Any], connection: Connection, watch: Any) -> None:
    """The main function of a worker process."""
    parent: Any = multiprocessing.parent_process()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the connection is closed
        try:
            worker = Worker(number, sent, place, connection, watch)
        except Exception as error:
            connection.send(("error", None, described(error)))
            connection.recv()
        else:
            worker.run()
    os._exit(0)  # skips the warnings about shared memory that is still in use


def _end_with(parent: Any) -> None:
    """Wait for the parent process to die, then exit."""
    while not wait([parent.sentinel], 2.0) and os.getppid() == parent.pid:
        pass
    os._exit(1)


class Worker:
    """The state of a worker process: a cursor, and the open slots."""

    def __init__(self, number: int, sent: Any, place: dict[str, Any], connection: Connection, watch: Any) -> None:
        data, name, bounds = sent
        self.constants = SharedMemory(name) if name else None
        whole: Any = self.constants.buf if self.constants else memoryview(b"")
        buffers = [whole[a:b].toreadonly() for a, b in bounds]
        self.cursor = Cursor(pickle.loads(data, buffers=buffers), np.frombuffer(watch, np.int64)[4 * number :][:4])
        self.cursor.go_to(place)
        self.connection, self.made = connection, 0
        self.slots: dict[str, SharedMemory] = {}
        self.waiting: collections.deque[Any] = collections.deque()  # messages received while waiting for another

    def run(self) -> None:
        """Serve requests until the connection is closed."""
        while True:
            kind, *message = self.waiting.popleft() if self.waiting else self.connection.recv()
            if kind == "drop":
                with contextlib.suppress(KeyError, BufferError):
                    self.slots.pop(message[0]).close()
                continue
            try:
                answer = self._make(*message)
            except End:
                answer = ("end", message[0])
            except Exception as error:
                answer = ("error", message[0], described(error))
            self.connection.send(answer)

    def _make(self, batch: int, name: str, size: int) -> tuple[Any, ...]:
        """Make a batch and write it to a slot."""
        while self.made < batch:
            self.cursor.next(build=False)
            self.made += 1
        stack = self.cursor.next()
        self.made += 1
        parcel = Parcel(stack)
        offsets, needed = placed(list(parcel.shared.values()))
        if needed > size:
            self.connection.send(("room", batch, needed))
            name = self._room()
        raw = np.frombuffer(self._memory(name), np.uint8) if needed else np.empty(0, np.uint8)
        rest = parcel.fill(dict(zip(parcel.shared, views(raw, offsets, list(parcel.shared.values())))))
        where = [(i, at, *kind) for (i, kind), at in zip(parcel.shared.items(), offsets)]
        return "ready", batch, (parcel.structure, where, rest), self.cursor.place()

    def _room(self) -> str:
        """Wait for the name of a slot that is large enough."""
        while True:
            kind, *message = self.connection.recv()
            if kind == "room":
                return message[0]
            self.waiting.append((kind, *message))

    def _memory(self, name: str) -> Any:
        """The bytes of a slot."""
        if name not in self.slots:
            self.slots[name] = SharedMemory(name)
        return self.slots[name].buf


class Parcel:
    """A batch in transit: `shared` has the shapes and dtypes of the leaves in shared memory."""

    def __init__(self, found: Any) -> None:
        if isinstance(found, Stack):
            self.structure, layout = found.structure, dict(enumerate(found.layout))
            self._stack: Stack | None = found
        else:
            self.leaves, self.structure = tree.flatten(found.made() if isinstance(found, Single) else found)
            layout = {i: (x.shape, x.dtype) for i, x in enumerate(self.leaves) if type(x) is np.ndarray}
            self._stack = None
        self.shared = {i: kind for i, kind in layout.items() if not kind[1].hasobject}

    def fill(self, parts: dict[int, np.ndarray]) -> dict[int, Any]:
        """Copy the shared leaves to shared memory; returns the other leaves."""
        if self._stack is None:
            for i, part in parts.items():
                part[...] = self.leaves[i]
            return {i: x for i, x in enumerate(self.leaves) if i not in parts}
        own = {i: np.empty(*kind) for i, kind in enumerate(self._stack.layout) if i not in parts}
        self._stack.fill([parts[i] if i in parts else own[i] for i in range(len(self._stack.layout))])
        return own


def described(error: Exception) -> tuple[bytes | None, str]:
    """An error as pickled bytes, if it can be pickled, and as text."""
    text = "".join(traceback.format_exception(error))
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        return None, text
    return data, text
