"""How processes save together: they agree on what is saved, and hear of each other's files and failures.

All goes through the key-value store of `atled.distributed`, never through devices, so that it can happen beside a step.
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

PATIENCE = 600.0  # seconds that a process waits for the others
_counts: collections.Counter[str] = collections.Counter()  # saves so far by who saves; the same in all processes
_used: collections.deque[str] = collections.deque()  # keys of the last saves, on the first process


def chosen_by_first(number: int) -> int:
    """A number of the first process, in all of them."""
    return int(distributed.broadcast(np.int64(number))) if distributed.is_initialized() else number


def all_say(is_so: bool) -> bool:
    """Whether it is so in every process."""
    return bool(distributed.gather(np.bool_(is_so)).all()) if distributed.is_initialized() else is_so


class World:
    """The processes of one save. `who` is a text that they have in common: that of a saver, for one."""

    def __init__(self, who: str) -> None:
        self._count = client.process_count() if distributed.is_initialized() else 1
        self._rank = client.process_index() if self._count > 1 else 0
        self._key = f"checkpoints/{who}/{_counts[who]}"
        self.is_void = True  # no manifest names what this process wrote, and none will
        _counts[who] += 1
        if self._count > 1 and self._rank == 0:
            _used.append(self._key)
            if len(_used) > 2:  # all have taken part in the save after that one, so nobody asks for it
                distributed.store.delete(_used.popleft())

    def agreed(self, what: str) -> str:
        """What the names of files begin with: another one for each save. All must be about to save the same."""
        name = uuid.uuid4().hex[:8]
        if self._count == 1:
            return name
        if self._rank == 0:
            distributed.store.set(f"{self._key}/what", json.dumps([name, what]))
        name, first = json.loads(self._awaited("what"))
        if what != first:
            raise CheckpointError(
                f"checkpoints: all processes must save the same; process {self._rank} saves {what}, and process 0 "
                f"saves {first}."
            )
        return name

    def collected(self, mine: Any) -> list[Any] | None:
        """What all processes wrote, on the first of them; None elsewhere."""
        if self._count == 1:
            return [mine]
        if self._rank:
            self.is_void = False
            distributed.store.set(f"{self._key}/{self._rank}", json.dumps(mine))
            return None
        found = [mine, *[json.loads(self._awaited(str(r))) for r in range(1, self._count)]]
        for one in found:
            if "error" in one:
                raise CheckpointError(f"checkpoints: {one['error']}")
        return found

    def failed(self, error: BaseException) -> None:
        """Tell the others that this process could not do its part."""
        if self._count > 1 and self.is_void:
            text = f"process {self._rank} could not save: {error or type(error).__name__}"
            if self._rank == 0:
                distributed.store.set(f"{self._key}/done", text)
            else:
                distributed.store.set(f"{self._key}/{self._rank}", json.dumps({"error": text}))

    def finished(self) -> None:
        """Wait until the checkpoint is there; the first process says so."""
        if self._count > 1 and self._rank == 0:
            distributed.store.set(f"{self._key}/done", b"")
        elif self._count > 1:
            self._awaited("done")

    def _awaited(self, key: str) -> bytes:
        """A value that another process sets. Asks again and again, to hear of failures and of processes that died."""
        start = time.monotonic()
        while True:
            found = distributed.store.try_get(f"{self._key}/{key}")
            done = distributed.store.try_get(f"{self._key}/done") if self._rank else None
            if done:
                self.is_void = True
                raise CheckpointError(f"checkpoints: {done.decode()}")
            if found is not None:
                return found
            missing = distributed.lost()
            if missing:
                raise CheckpointError(f"checkpoints: the processes {sorted(missing)} are lost; nothing was saved.")
            if time.monotonic() - start > PATIENCE:
                raise CheckpointError(
                    f"checkpoints: process {self._rank} waited {PATIENCE:g} s for the others: do all of them save?"
                )
            time.sleep(0.01)
