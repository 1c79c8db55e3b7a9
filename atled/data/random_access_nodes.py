"""Nodes have random access to examples by position: sources, and permutations, maps and mixtures of them.

`node.fetch(epoch, positions, memory)` returns a `Block` of examples, which depends only on epoch and positions;
`memory` is a dict in which an iterator caches expensive results. The identity of an example is the index of its source
in `node.sources()`, that source's epoch, and the example's index in the source.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from atled.core import errors
from atled.data import example_transforms
from atled.data.permutations import permuted, round_keys

ENDLESS = math.inf
STRETCH = 2048  # positions of a permutation that are computed at once
EPOCHS = 1 << 32  # the size of an epoch of an endless node


@dataclasses.dataclass
class Block:
    """A list of examples, and their identities."""

    source: np.ndarray
    epoch: np.ndarray
    index: np.ndarray
    examples: Sequence[Any]

    def __len__(self) -> int:
        return len(self.index)

    def identity(self, i: int) -> tuple[int, int, int]:
        """Source, epoch and index of an example."""
        return int(self.source[i]), int(self.epoch[i]), int(self.index[i])


class Node:
    """Random access to examples by position. `size` is the number of examples in an epoch: None if unknown, or
    `ENDLESS`.
    """

    @property
    def size(self) -> Any:
        """The number of examples in an epoch."""
        raise NotImplementedError

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """The examples at `positions` of an epoch; may be fewer if the size is unknown."""
        raise NotImplementedError

    def sources(self) -> tuple[Source, ...]:
        """The sources of the examples."""
        raise NotImplementedError

    def reaches(self, epoch: int, start: int, stop: int, memory: dict[Any, Any]) -> bool:
        """Whether an epoch has `stop` examples; examples before `start` are no longer needed."""
        return stop <= self.size

    def __str__(self) -> str:
        raise NotImplementedError


class Source(Node):
    """A source of examples. Subclasses define `size` and `read`, and may define `record`."""

    def read(self, indices: np.ndarray) -> Sequence[Any]:
        """The examples with these indices."""
        raise NotImplementedError

    def record(self, index: int) -> str:
        """The name of an example in messages."""
        return f"example {index} of {self}"

    def sources(self) -> tuple[Source, ...]:
        """Itself."""
        return (self,)

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`."""
        try:
            examples = self.read(positions)
        except Exception as error:
            self._blame(error, positions)
            raise
        n = len(positions)
        if len(examples) != n:
            raise ValueError(errors.explained(f"data: {n} examples of {self} were requested; got {len(examples)}."))
        return Block(np.zeros(n, np.int64), np.full(n, epoch, np.int64), positions, examples)

    def _blame(self, error: Exception, positions: np.ndarray) -> None:
        """Add the name of the first record that cannot be read to an error."""
        for i in positions.tolist():
            try:
                self.read(np.array([i]))
            except Exception:
                return error.add_note(f"  while reading {self.record(i)}")
        error.add_note(f"  while reading {len(positions)} examples of {self}; each of them can be read alone")


@dataclasses.dataclass(frozen=True, eq=False)
class Shuffled(Node):
    """The examples of a node in a different order in each epoch."""

    node: Node
    seed: int

    @property
    def size(self) -> Any:
        """See `Node`."""
        return self.node.size

    def sources(self) -> tuple[Source, ...]:
        """See `Node`."""
        return self.node.sources()

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`."""
        stretch = int(positions[0]) // STRETCH * STRETCH if len(positions) else 0
        if positions.size and stretch <= positions.min() and positions.max() < stretch + STRETCH:
            return self.node.fetch(epoch, self._stretch(epoch, stretch, memory)[positions - stretch], memory)
        return self.node.fetch(epoch, permuted(positions, self.node.size, round_keys(self.seed, epoch)), memory)

    def _stretch(self, epoch: int, start: int, memory: dict[Any, Any]) -> np.ndarray:
        """The permuted positions of the block at `start`; a block costs little more than a few positions."""
        cached = memory.get(id(self))
        if cached is None or cached[:2] != (epoch, start):
            rows = np.arange(start, min(start + STRETCH, self.node.size))
            cached = memory[id(self)] = (epoch, start, permuted(rows, self.node.size, round_keys(self.seed, epoch)))
        return cached[2]

    def __str__(self) -> str:
        return f"{self.node}.shuffle({self.seed})"


@dataclasses.dataclass(frozen=True, eq=False)
class Staged(Node):
    """The examples of a node, after maps of single examples."""

    node: Node
    stages: tuple[example_transforms.Stage, ...]

    @property
    def size(self) -> Any:
        """See `Node`."""
        return self.node.size

    def sources(self) -> tuple[Source, ...]:
        """See `Node`."""
        return self.node.sources()

    def reaches(self, epoch: int, start: int, stop: int, memory: dict[Any, Any]) -> bool:
        """See `Node`."""
        return self.node.reaches(epoch, start, stop, memory)

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`."""
        block = self.node.fetch(epoch, positions, memory)
        examples = example_transforms.mapped(self.stages, block, self, memory)
        return Block(block.source, block.epoch, block.index, examples)

    def __str__(self) -> str:
        return f"{self.node}{''.join([str(s) for s in self.stages])}"


@dataclasses.dataclass(frozen=True, eq=False)
class Part(Node):
    """The examples of a node from position `start` up to `stop`."""

    node: Node
    start: int
    stop: Any

    @property
    def size(self) -> Any:
        """See `Node`."""
        return max(min(self.node.size, self.stop) - self.start, 0)

    def sources(self) -> tuple[Source, ...]:
        """See `Node`."""
        return self.node.sources()

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`."""
        return self.node.fetch(epoch, positions + self.start, memory)

    def __str__(self) -> str:
        return f"{self.node}{f'.take({self.stop})' if self.stop != ENDLESS else f'.skip({self.start})'}"


@dataclasses.dataclass(frozen=True, eq=False)
class Repeated(Node):
    """Several epochs of a node, one after the other, as one epoch."""

    node: Node
    times: int | None

    @property
    def size(self) -> Any:
        """See `Node`."""
        return ENDLESS if self.times is None else self.node.size * self.times

    def sources(self) -> tuple[Source, ...]:
        """See `Node`."""
        return self.node.sources()

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`."""
        epochs, within = np.divmod(positions, self.node.size)
        return gathered([self.node], np.zeros_like(epochs), epochs + first_epoch(epoch, self.times), within, memory)

    def __str__(self) -> str:
        return f"{self.node}.repeat({'' if self.times is None else self.times})"


def first_epoch(epoch: int, times: int | None) -> int:
    """The first inner epoch of an outer epoch that repeats the node `times` times, or endlessly.

    If nested endless nodes make the number overflow, a large number derived from `epoch` replaces it.
    """
    start = epoch * (times or EPOCHS)
    return start if start < 1 << 62 else int(round_keys(epoch)[0]) >> 2


def gathered(
    nodes: Sequence[Node], which: np.ndarray, epochs: np.ndarray, positions: np.ndarray, memory: dict[Any, Any]
) -> Block:
    """Example i is at `positions[i]` in epoch `epochs[i]` of node `which[i]`."""
    parts: list[tuple[np.ndarray, Block]] = []
    bases = np.cumsum([0, *[len(n.sources()) for n in nodes]])
    for number in np.unique(which).tolist():
        of_node = np.flatnonzero(which == number)
        for epoch in np.unique(epochs[of_node]).tolist():
            rows = of_node[epochs[of_node] == epoch]
            block = nodes[number].fetch(epoch, positions[rows], memory)
            parts.append((rows, dataclasses.replace(block, source=block.source + bases[number])))
    if len(parts) == 1:
        return parts[0][1]
    source, epoch, index = (np.empty(len(which), np.int64) for _ in range(3))
    examples: list[Any] = [None] * len(which)
    for rows, block in parts:
        source[rows], epoch[rows], index[rows] = block.source, block.epoch, block.index
        for row, i in zip(rows.tolist(), range(len(block))):
            examples[row] = block.examples[i]
    return Block(source, epoch, index, examples)


def sized(name: str, nodes: Iterable[Node], may_be_endless: bool = False) -> None:
    """Raise if the number of examples of a node is unknown or, unless allowed, infinite."""
    for node in nodes:
        if node.size is None or (node.size == ENDLESS and not may_be_endless):
            what = "does not say how many examples it has" if node.size is None else "has no end"
            raise ValueError(
                errors.explained(
                    f"data.{name}: the number of examples of an epoch must be known; {node} {what}.",
                    f"{name} before repeat()." if node.size is not None else "a source with a length, such as a list.",
                )
            )


def seed_checked(name: str, seed: Any) -> int:
    """A seed, validated."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise ValueError(
            errors.explained(f"data.{name}: the seed must be an integer from 0 to 2**64 - 1; got {seed!r}.", "0.")
        )
    return int(seed)


def count_checked(name: str, what: str, n: Any, least: int = 1) -> int:
    """A count, validated."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < least:
        raise ValueError(errors.explained(f"data.{name}: {what} must be an integer of {least} or more; got {n!r}."))
    return int(n)


def function_checked(name: str, f: Any) -> Callable[..., Any]:
    """A function, validated."""
    if not callable(f):
        raise TypeError(errors.explained(f"data.{name}: the first argument must be a function; got {f!r}."))
    return f
