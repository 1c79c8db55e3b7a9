"""A saver's staging memory: a tree is copied there before it is written, so that training does not wait for the disk.

New memory is slow, because of page faults, so the memory is reused for every save, and allocated in the background when
a saver sees the first tree, even if that tree is not saved.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import threading

import numpy as np

from atled.checkpoints.format import ALIGNMENT
from atled.checkpoints.shard_writer import THREADS, Part, Snapshot, at_once, bytes_of, pieces_of

_PAGE = 4096


class Staging:
    """Memory for one snapshot."""

    def __init__(self) -> None:
        self._memory: np.ndarray | None = None
        self._lock = threading.Lock()

    def prepare(self, size: int) -> None:
        """Allocate `size` bytes, unless there are as many, and write to every page, so that page faults occur now."""
        with self._lock:
            if self._memory is None or len(self._memory) < size:
                self._memory = None  # free the old memory before allocating
                raw = mmap.mmap(-1, max(size, 1))
                if hasattr(mmap, "MADV_HUGEPAGE"):
                    raw.madvise(mmap.MADV_HUGEPAGE)
                self._memory = np.frombuffer(raw, np.uint8)
                self._memory[::_PAGE] = 0

    def copied(self, taken: Snapshot) -> Snapshot:
        """A copy of a snapshot in this memory, valid until the next call."""
        pieces = pieces_of(taken.parts)
        ends = np.cumsum([0] + [_room(p.values.nbytes) for p in pieces])
        self.prepare(int(ends[-1]))
        memory = self._memory
        assert memory is not None

        def copy(piece: Part, at: int) -> Part:
            to = memory[at : at + piece.values.nbytes].view(piece.values.dtype).reshape(piece.values.shape)
            np.copyto(memory[at : at + piece.values.nbytes], np.frombuffer(bytes_of(piece.values), np.uint8))
            return dataclasses.replace(piece, values=to)

        threads = min(THREADS, os.cpu_count() or 1)  # with more threads than cores, copies are 20 % slower
        return dataclasses.replace(taken, parts=at_once(copy, pieces, [int(a) for a in ends[:-1]], threads=threads))


def _room(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
