"""Shared memory buffers for the batches of workers, reused.

A `Slot` is one shared memory buffer. The arrays of a batch that the user receives are views of a slot, without a copy;
they hold a `Lease`, and the slot is free when the last of these arrays is deleted, so memory that a batch still refers
to is never overwritten.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Self

import numpy as np

from atled.core import errors

ALIGNED = 64  # alignment in bytes at which XLA can use CPU arrays without a copy


class Slot:
    """A block of shared memory that this process creates.

    Because Ctrl-C may come at any moment, the owner must store the slot, to remove it later, before it calls `create`,
    and `create` registers the name with the resource tracker before the memory exists.
    """

    def __init__(self, size: int) -> None:
        self.name, self.size, self.is_free = f"atled-{os.getpid()}-{secrets.token_hex(6)}", size, False
        self.memory: SharedMemory | None = None
        self.buffer: Any = None

    def create(self) -> Self:
        """Allocate the memory."""
        resource_tracker.register(f"/{self.name}", "shared_memory")
        self.memory = SharedMemory(self.name, create=True, size=max(self.size, 1))
        self.buffer = self.memory.buf
        try:
            _allocate(self.name, max(self.size, 1))
        except OSError as error:
            raise MemoryError(
                errors.explained(
                    f"data.iterator: there is no room for {self.size} bytes in shared memory: {error}.",
                    "fewer workers, prefetch=1, smaller batches, or more shared memory (docker run --shm-size=8g).",
                )
            ) from error
        return self

    def remove(self) -> None:
        """Unlink the memory, which is freed when no process maps it."""
        with contextlib.suppress(FileNotFoundError, ValueError):  # not created, or not completely
            (self.memory or SharedMemory(self.name)).unlink()


def _allocate(name: str, size: int) -> None:
    """Allocate the memory now: if there is too little, this raises; without it, a later write would kill a process."""
    path = f"/dev/shm/{name}"
    if os.path.exists(path) and hasattr(os, "posix_fallocate"):
        file = os.open(path, os.O_RDWR)
        try:
            os.posix_fallocate(file, 0, size)
        finally:
            os.close(file)


class Lease:
    """The base of all arrays that are views of a slot; frees the slot when it is deleted."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        address = np.frombuffer(slot.buffer, np.uint8).__array_interface__["data"][0]
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (slot.size,), "data": (address, False)}

    def __del__(self) -> None:
        self.slot.is_free = True


def placed(layout: Sequence[tuple[tuple[int, ...], np.dtype]]) -> tuple[list[int], int]:
    """The aligned offsets of the arrays of a layout, and the total number of bytes."""
    offsets, at = [], 0
    for shape, dtype in layout:
        offsets.append(at)
        at += -(-int(np.prod(shape, dtype=np.int64)) * dtype.itemsize // ALIGNED) * ALIGNED
    return offsets, at


def views(raw: Any, offsets: Sequence[int], layout: Sequence[tuple[tuple[int, ...], np.dtype]]) -> list[np.ndarray]:
    """The arrays of a layout, as views of an array of bytes."""
    arrays = []
    for at, (shape, dtype) in zip(offsets, layout):
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        arrays.append(raw[at : at + count].view(dtype).reshape(shape) if count else np.empty(shape, dtype))
    return arrays
