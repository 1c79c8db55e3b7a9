"""Sources that can only be iterated over: each epoch has a new iterator, which skips to a position."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from atled.data.copies import owned
from atled.data.example_transforms import name_of
from atled.data.pipeline import Pipeline
from atled.data.random_access_nodes import Block, Source, function_checked


class _Place:
    """A live iterator, the examples read from it but not yet used, and the position of the first such example."""

    def __init__(self, epoch: int, iterator: Iterator[Any]) -> None:
        self.epoch, self.iterator, self.position = epoch, iterator, 0
        self.read: collections.deque[Any] = collections.deque()


@dataclasses.dataclass(frozen=True, eq=False)
class Stream(Source):
    """See `iterable`."""

    make: Callable[[int], Iterable[Any]]

    @property
    def size(self) -> Any:
        """Unknown."""
        return None

    def _at(self, epoch: int, position: int, memory: dict[Any, Any]) -> _Place:
        """The live iterator of an epoch at a position, or at its end if the epoch is shorter."""
        place = memory.get(id(self))
        if place is None or place.epoch != epoch or place.position > position:
            place = memory[id(self)] = _Place(epoch, iter(self.make(epoch)))
        while place.position < position and (place.read or self._next(place)):
            place.read.popleft()
            place.position += 1
        return place

    def _next(self, place: _Place) -> bool:
        """Read one more example; returns False at the end of the epoch."""
        try:
            place.read.append(owned([next(place.iterator)]))
        except StopIteration:
            return False
        except Exception as error:
            error.add_note(f"  while reading {self.record(place.position + len(place.read))}, epoch {place.epoch}")
            raise
        return True

    def reaches(self, epoch: int, start: int, stop: int, memory: dict[Any, Any]) -> bool:
        """See `Node`."""
        place = self._at(epoch, start, memory)
        while place.position + len(place.read) < stop:
            if not self._next(place):
                return False
        return True

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`; positions must increase."""
        examples: list[Any] = []
        for position in positions.tolist():
            place = self._at(epoch, position, memory)
            if not (place.read or self._next(place)):
                break
            examples.append(place.read.popleft())
            place.position += 1
        n = len(examples)
        return Block(np.zeros(n, np.int64), np.full(n, epoch, np.int64), positions[:n], examples)

    def __str__(self) -> str:
        return f"iterable({name_of(self.make)})"


def iterable(make: Callable[[int], Iterable[Any]]) -> Pipeline:
    """A source that can only be iterated over: `make(epoch)` returns a new iterable, which must yield the same items
    each time.

    To restore a state, the pipeline skips the consumed items. All workers and processes iterate over all items, and use
    their part. The pipeline can be mapped, filtered, packed and batched, but not shuffled or mixed.

    >>> from atled import data
    >>> [b.tolist() for b in data.iterable(lambda epoch: range(5)).batch(2)]
    [[0, 1], [2, 3]]
    """
    return Pipeline(Stream(function_checked("iterable", make)))
