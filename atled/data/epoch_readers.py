"""Readers of one epoch: `Rows` for pipelines with random access, `Stripe` for filters and packing, `Buckets`.

A reader starts at a position, a dict of integers, and `place()` returns its current position. `pull(True)` returns the
next batch as a `Stack` that is not copied yet; `pull(False)` skips it, as workers do with the batches of other workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import errors
from atled.data import example_transforms
from atled.data.batching import Pad
from atled.data.collate import Stack
from atled.data.random_access_nodes import ENDLESS, Block

MOST_DROPPED = 100_000  # dropped examples in a row after which `_check_dropped` runs
CHUNK = 64  # examples read at once if the number per batch is unknown


class Rows:
    """Batches of a node without filters: process p of P reads the p-th of P equal parts of each batch."""

    def __init__(self, pipeline: Any, memory: dict[Any, Any], epoch: int, place: dict[str, Any]) -> None:
        self.pipeline, self.memory, self.epoch = pipeline, memory, epoch
        self.position = place["position"]

    def place(self) -> dict[str, Any]:
        """See above."""
        return {"position": self.position}

    def pull(self, build: bool) -> Any:
        """See above."""
        p, node = self.pipeline, self.pipeline.node
        index, count = p.process
        size = p.group.size if p.group else count
        start, stop = self.position, self.position + size
        if not node.reaches(self.epoch, start, stop, self.memory):
            takes_rest = p.group is not None and not p.group.drop_last
            if not takes_rest or not node.reaches(self.epoch, start, start + 1, self.memory):
                return None
            stop = node.size if node.size is not None else stop
        self.position = stop
        share = (stop - start) // count
        if not build and node.size is not None:
            return True
        rows = np.arange(start + index * share, start + (index + 1) * share)
        block = node.fetch(self.epoch, rows, self.memory)
        if count == 1:  # if the size is unknown, the block may be shorter
            self.position = start + len(block)
        if not build:
            return True
        examples = example_transforms.mapped(p.steps, block, node, self.memory)
        return Stack(examples, naming(node, block)) if p.group else Single(examples[0])


class Single:
    """One example of a pipeline without `batch`, which is not stacked."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def made(self) -> Any:
        """The example, unchanged."""
        return self.value


def naming(node: Any, block: Block) -> Callable[[int], str]:
    """A function that returns the name of the i-th example of a block, for messages."""

    def name(i: int) -> str:
        source, _, index = block.identity(i)
        return node.sources()[source].record(index)

    return name


class Examples:
    """The examples of an epoch that pass the filters: every `step`-th, beginning at `first`."""

    def __init__(
        self, pipeline: Any, memory: dict[Any, Any], epoch: int, first: int, step: int, taken: int, chunk: int = CHUNK
    ) -> None:
        steps = pipeline.steps
        cut = max([i + 1 for i, s in enumerate(steps) if isinstance(s, example_transforms.Filter)], default=0)
        self.early, self.late, self.node, self.memory = steps[:cut], steps[cut:], pipeline.node, memory
        self.epoch, self.first, self.step, self.taken, self.chunk = epoch, first, step, taken, chunk
        self.sources = self.node.sources()
        self._dropped = 0  # dropped examples in a row
        self._block: Block | None = None
        self._start = 0  # the number of examples before the block

    def next(self) -> tuple[Block, int, Any] | None:
        """The next example that passes all filters; steps after the last filter are not yet applied."""
        while True:
            if self._block is None or self.taken - self._start >= len(self._block):
                self._block, self._start = self._more(), self.taken
                if not len(self._block):
                    self._block = None
                    return None
            block, i = self._block, self.taken - self._start
            value = example_transforms.applied(self.early, block, i, self.sources, self.memory)
            self.taken += 1
            if value is not example_transforms.DROPPED:
                self._dropped = 0
                return block, i, value
            self._dropped += 1
            if self._dropped % MOST_DROPPED == 0 and self.node.size == ENDLESS:
                self._check_dropped()

    def _check_dropped(self) -> None:
        """Raise if no example of an endless pipeline passed the filters in two epochs of all sources."""
        sizes = [s.size for s in self.sources]
        if None not in sizes and self._dropped * self.step >= 2 * sum(sizes):
            raise ValueError(
                errors.explained(
                    f"data.filter: nothing passes; the last {self._dropped} examples of {self.node} were dropped.",
                    "another filter.",
                )
            )

    def _more(self) -> Block:
        start = self.first + self.taken * self.step
        size = self.node.size
        count = 1 if size is None else max(min(self.chunk, -(-(size - start) // self.step)), 0)
        return self.node.fetch(self.epoch, start + self.step * np.arange(count), self.memory)

    def finished(self, found: tuple[Block, int, Any]) -> Any:
        """An example with the steps after the last filter applied."""
        block, i, value = found
        return example_transforms.applied(self.late, block, i, self.sources, self.memory, value)

    def named(self, found: tuple[Block, int, Any]) -> str:
        """The name of an example, for messages."""
        return naming(self.node, found[0])(found[1])


class Stripe:
    """Batches of examples that pass filters, or of packed rows; process p of P reads examples p, p + P, p + 2 P, …"""

    def __init__(self, pipeline: Any, memory: dict[Any, Any], epoch: int, place: dict[str, Any]) -> None:
        self.pipeline, (index, self.count) = pipeline, pipeline.process
        self.start = place["position"]
        taken = place.get("taken", 0)
        self.examples = Examples(pipeline, memory, epoch, self.start + index, self.count, taken)
        self.packer = Packer(self.examples, pipeline.packing, place.get("offset", 0)) if pipeline.packing else None

    def place(self) -> dict[str, Any]:
        """See above."""
        taken, offset = (self.examples.taken, 0) if self.packer is None else self.packer.place()
        more = {"offset": offset} if self.packer else {}
        if self.count == 1:
            return {"position": self.start + taken, **more}
        return {"position": self.start, "taken": taken, **more}

    def pull(self, build: bool) -> Any:
        """See above."""
        group = self.pipeline.group
        local_size = group.size // self.count if group else 1
        rows: list[Any] = []
        while len(rows) < local_size:
            one = self.packer.next() if self.packer else self.examples.next()
            if one is None:
                break
            rows.append(one)
        if not rows or (len(rows) < local_size and group.drop_last):
            return None
        if not build:
            return True
        examples = [self._made(x) for x in rows]
        return Stack(examples, lambda i: self._named(rows[i])) if group else Single(examples[0])

    def _made(self, found: Any) -> Any:
        if self.packer is None:
            return self.examples.finished(found)
        return example_transforms.run(
            self.pipeline.row_steps, self.pipeline.packing.row(found), lambda: self._named(found)
        )

    def _named(self, found: Any) -> str:
        return self.examples.named(found) if self.packer is None else f"the packed row that begins with {found[0][3]}"


class Packer:
    """Packs pieces of examples into rows of at most a given length."""

    def __init__(self, examples: Examples, pack: Any, offset: int) -> None:
        self.examples, self.pack, self.offset = examples, pack, offset
        self.fields: dict[str, np.ndarray] | None = None  # of the current example, from `offset` on
        self.name = ""

    def place(self) -> tuple[int, int]:
        """The number of consumed examples, and the offset into the next one."""
        return self.examples.taken - (self.fields is not None), self.offset

    def _load(self) -> bool:
        """Fetch the next example if the last one is used up; returns False at the end of the epoch."""
        while self.fields is None:
            example = self.examples.next()
            if example is None:
                return False
            try:
                fields = self.pack.fields(self.examples.finished(example))
            except Exception as error:
                error.add_note(f"  for pack, on {self.examples.named(example)}")
                raise
            if len(next(iter(fields.values()))) > self.offset:
                self.fields, self.name = fields, self.examples.named(example)
        return True

    def next(self) -> list[tuple[dict[str, np.ndarray], int, int, str]] | None:
        """The pieces of the next row."""
        pieces, room = [], self.pack.length
        while room and self._load():
            assert self.fields is not None
            length = len(next(iter(self.fields.values())))
            if not self.pack.cut and length > room:
                break
            stop = min(length, self.offset + room)
            pieces.append((self.fields, self.offset, stop, self.name))
            room -= stop - self.offset
            self.fields, self.offset = (None, 0) if stop == length else (self.fields, stop)
        return pieces or None


class Buckets:
    """Batches of examples of similar length. Every process reads all examples, and keeps its own rows."""

    def __init__(self, pipeline: Any, memory: dict[Any, Any], epoch: int, place: dict[str, Any]) -> None:
        self.pipeline, self.bucket = pipeline, pipeline.group
        self.waiting: list[list[tuple[int, Any, str]]] = [[] for _ in self.bucket.bounds]
        places = place.get("waiting", [[] for _ in self.bucket.bounds])
        for where in sorted([(n, i) for i, numbers in enumerate(places) for n in numbers]):  # reads them again
            again = Examples(pipeline, memory, epoch, 0, 1, where[0], 1)
            self.waiting[where[1]].append(self._one(again))
        self.examples = Examples(pipeline, memory, epoch, 0, 1, place["position"])

    def place(self) -> dict[str, Any]:
        """See above."""
        return {"position": self.examples.taken, "waiting": [[x[0] for x in w] for w in self.waiting]}

    def _one(self, examples: Examples) -> Any:
        """The next example, with its position and name."""
        example = examples.next()
        return example and (examples.taken - 1, examples.finished(example), examples.named(example))

    def pull(self, build: bool) -> Any:
        """See above."""
        full = self._full()
        if full is None:
            return None
        number, examples = full
        if not build:
            return True
        share = len(examples) // self.pipeline.process[1]
        rows = examples[share * self.pipeline.process[0] :][:share]
        pad = Pad(self.bucket.bounds[number], None, self.bucket.fields, self.bucket.fill, False, "bucket")
        return Stack([pad(x[1]) for x in rows], lambda i: rows[i][2])

    def _full(self) -> tuple[int, list[Any]] | None:
        """The index and entries of a full bucket, or, at the end of the epoch, of an incomplete one unless `drop_last`;
        the bucket is emptied.
        """
        while (entry := self._one(self.examples)) is not None:
            try:
                number = self.bucket.number(entry[1])
            except Exception as error:
                error.add_note(f"  for bucket, on {entry[2]}")
                raise
            self.waiting[number].append(entry)
            if len(self.waiting[number]) == self.bucket.sizes[number]:
                return self._emptied(number)
        left = [i for i, w in enumerate(self.waiting) if w and not self.bucket.drop_last]
        return self._emptied(left[0]) if left else None

    def _emptied(self, number: int) -> tuple[int, list[Any]]:
        entries, self.waiting[number] = self.waiting[number], []
        return number, entries
