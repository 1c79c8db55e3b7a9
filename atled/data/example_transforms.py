"""Steps on single examples: `Map`, `RandomMap` and `Filter`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.random.bit_generator import ISpawnableSeedSequence

from atled.data.copies import owned
from atled.data.permutations import fixed_width


@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """A step that applies a function to each example."""

    f: Callable[..., Any]

    def __str__(self) -> str:
        step = getattr(self.f, "step", type(self).__name__.lower())  # `Pad` is a map that prints as `.pad`
        return f".{step}({name_of(self.f)})"


class Map(Stage):
    """Replaces each example by f(example)."""


class Filter(Stage):
    """Drops examples for which f(example) is false."""


@dataclasses.dataclass(frozen=True, eq=False)
class RandomMap(Stage):
    """Replaces each example by f(example, rng)."""

    seed: int

    def __str__(self) -> str:
        return f".random_map({name_of(self.f)}, {self.seed})"


class _Dropped:
    """The result of `applied` for an example that a filter dropped."""


DROPPED = _Dropped()


def name_of(f: Any) -> str:
    """The name of a function for messages."""
    if dataclasses.is_dataclass(f) and not isinstance(f, type):
        return str(f)
    inner = getattr(f, "func", None)  # of functools.partial
    return getattr(f, "__qualname__", None) or (name_of(inner) if inner else type(f).__qualname__)


def applied(
    steps: Sequence[Stage], block: Any, i: int, sources: Sequence[Any], memory: dict[Any, Any], value: Any = DROPPED
) -> Any:
    """The i-th example of a block after `steps`, or `DROPPED`; errors name the record."""
    step: Stage | None = None
    is_made = False
    watch = memory.get("watch")
    if watch is not None:  # the parent process reads this if the worker is killed
        watch[:3] = block.identity(i)
    try:
        value = block.examples[i] if value is DROPPED else value
        for step in steps:
            if type(step) is Map:
                is_made, value = True, step.f(value)
            elif isinstance(step, RandomMap):
                is_made, value = True, step.f(value, _generator(step.seed, block.identity(i), memory))
            elif not step.f(value):
                return DROPPED
    except Exception as error:
        source, epoch, index = block.identity(i)
        where = f"in {str(step)[1:]}, on " if step else "reading "
        error.add_note(f"  {where}{sources[source].record(index)}, epoch {epoch}")
        raise
    if not is_made:
        return value
    box, value = [value], None
    return owned(box)


def mapped(steps: Sequence[Stage], block: Any, node: Any, memory: dict[Any, Any]) -> Sequence[Any]:
    """The examples of a block after stages without filters."""
    if not steps:
        return block.examples
    sources = node.sources()
    return [applied(steps, block, i, sources, memory) for i in range(len(block))]


def run(steps: Sequence[Stage], value: Any, what: Callable[[], str]) -> Any:
    """A row or batch after the maps `steps`; errors name `what()`."""
    for step in steps:
        try:
            value = step.f(value)
        except Exception as error:
            error.add_note(f"  in {str(step)[1:]}, on {what()}")
            raise
    return value


def _holders(rng: np.random.Generator) -> tuple[int, int]:
    """The reference counts of a generator and of its bit generator."""
    return sys.getrefcount(rng), sys.getrefcount(rng.bit_generator)


class _Seeds(ISpawnableSeedSequence):
    """The seed sequence of an example's generator, for `rng.spawn`."""

    def __init__(self) -> None:
        self.identity: tuple[int, ...] = ()
        self.children = 0

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Zeros, which are not used: `_generator` sets the state directly."""
        return np.zeros(n_words, dtype)

    def spawn(self, n_children: int) -> list[Any]:
        """Seed sequences for child generators."""
        first, self.children = self.children, self.children + n_children
        return [SeedSequence(fixed_width(*self.identity, i)) for i in range(first, first + n_children)]


def _generator(seed: int, identity: tuple[int, int, int], memory: dict[Any, Any]) -> np.random.Generator:
    """A generator whose numbers depend on the seed and the identity of the example.

    Creating a generator takes ten times as long as reseeding it, so it is reused unless the user's function holds it.
    """
    generator, alone = memory.pop("generator", (None, None))
    if generator is None or _holders(generator) != alone:
        generator = np.random.Generator(np.random.Philox(_Seeds()))  # pyright: ignore[reportArgumentType]
        alone = _holders(generator)
    memory["generator"] = (generator, alone)
    source, epoch, index = identity
    seeds = generator.bit_generator.seed_seq
    seeds.identity, seeds.children = (seed, source, epoch, index), 0  # type: ignore[attr-defined]
    generator.bit_generator.state = {
        "bit_generator": "Philox",
        "state": {
            "counter": (0, index, epoch, source),
            "key": (seed, 0x61746C6564),
        },
        "buffer": (0, 0, 0, 0),
        "buffer_pos": 4,
        "has_uint32": 0,
        "uinteger": 0,
    }
    return generator
