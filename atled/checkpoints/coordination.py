"""Coordination of processes that save together: they agree on the step, and exchange lists of files and errors.

Processes communicate through the key-value store of `atled.distributed`, never through devices, so that saving can
overlap a train step.
"""

from __future__ import annotations

import collections
import json
import time
import uuid
from typing import Any

import numpy as np

from atled import distributed
from atled.checkpoints.format import CheckpointError
from atled.engine import client

PATIENCE = 600.0  # seconds that a process waits for other processes
_counts: collections.Counter[str] = collections.Counter()  # number of saves of each saver; the same in all processes
_used: collections.deque[str] = collections.deque()  # keys of the last two saves, on the first process


def chosen_by_first(number: int) -> int:
    """The number that the first process passes."""
    return int(distributed.broadcast(np.int64(number))) if distributed.is_initialized() else number


def all_say(is_so: bool) -> bool:
    """Whether a condition holds in every process."""
    return bool(distributed.gather(np.bool_(is_so)).all()) if distributed.is_initialized() else is_so


class World:
    """The processes of one save. `who` is a string that is the same in all processes, such as the saver's name."""

    def __init__(self, who: str) -> None:
        self._count = client.process_count() if distributed.is_initialized() else 1
        self._rank = client.process_index() if self._count > 1 else 0
        self._key = f"checkpoints/{who}/{_counts[who]}"
        self.is_void = True  # whether a manifest can no longer list this process's files
        _counts[who] += 1
        if self._count > 1 and self._rank == 0:
            _used.append(self._key)
            if len(_used) > 2:  # all processes have reached the next save, and no longer read it
                distributed.store.delete(_used.popleft())

    def agreed(self, what: str) -> str:
        """The prefix of file names, unique to each save; raises if the processes save different steps."""
        name = uuid.uuid4().hex[:8]
        if self._count == 1:
            return name
        if self._rank == 0:
            distributed.store.set(f"{self._key}/what", json.dumps([name, what]))
        name, first = json.loads(self._awaited("what"))
        if what != first:
            raise CheckpointError(
                f"checkpoints: all processes must save the same step; process {self._rank} saves {what}, and process 0 "
                f"saves {first}."
            )
        return name

    def collected(self, mine: Any) -> list[Any] | None:
        """On the first process, the entries of all processes; elsewhere, sends `mine` to it and returns None."""
        if self._count == 1:
            return [mine]
        if self._rank:
            self.is_void = False
            distributed.store.set(f"{self._key}/{self._rank}", json.dumps(mine))
            return None
        entries = [mine, *[json.loads(self._awaited(str(r))) for r in range(1, self._count)]]
        for one in entries:
            if "error" in one:
                raise CheckpointError(f"checkpoints: {one['error']}")
        return entries

    def failed(self, error: BaseException) -> None:
        """Tell the other processes that this process failed."""
        if self._count > 1 and self.is_void:
            text = f"process {self._rank} could not save: {error or type(error).__name__}"
            if self._rank == 0:
                distributed.store.set(f"{self._key}/done", text)
            else:
                distributed.store.set(f"{self._key}/{self._rank}", json.dumps({"error": text}))

    def finished(self) -> None:
        """Wait until the first process reports that the checkpoint is complete."""
        if self._count > 1 and self._rank == 0:
            distributed.store.set(f"{self._key}/done", b"")
        elif self._count > 1:
            self._awaited("done")

    def _awaited(self, key: str) -> bytes:
        """Wait for a value that another process sets; raises if a process fails or dies meanwhile."""
        start = time.monotonic()
        while True:
            value = distributed.store.try_get(f"{self._key}/{key}")
            done = distributed.store.try_get(f"{self._key}/done") if self._rank else None
            if done:
                self.is_void = True
                raise CheckpointError(f"checkpoints: {done.decode()}")
            if value is not None:
                return value
            missing = distributed.lost()
            if missing:
                raise CheckpointError(f"checkpoints: lost processes {sorted(missing)}; nothing was saved.")
            if time.monotonic() - start > PATIENCE:
                raise CheckpointError(
                    f"checkpoints: process {self._rank} waited {PATIENCE:g} s for others: do all processes call save?"
                )
            time.sleep(0.01)
