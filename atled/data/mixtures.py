"""Several pipelines combined into one: concatenated, interleaved, or mixed by weights. The source of each example is
computed from its position.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from atled.core import errors
from atled.data.permutations import permuted, round_keys
from atled.data.pipeline import Pipeline
from atled.data.random_access_nodes import ENDLESS, Block, Node, Source, first_epoch, gathered, seed_checked, sized

PERIOD = 4096  # the block size of a mixture: each block has exactly the proportions of the weights


@dataclasses.dataclass(frozen=True, eq=False)
class Several(Node):
    """A combination of nodes: `locate` maps a position to a node and a position in it."""

    nodes: tuple[Node, ...]

    def sources(self) -> tuple[Source, ...]:
        """See `Node`."""
        return tuple(itertools.chain.from_iterable([n.sources() for n in self.nodes]))

    def locate(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """The index of each position's node, and the position in that node, which counts across its epochs."""
        raise NotImplementedError

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`."""
        which, numbers = self.locate(epoch, positions, memory)
        return gathered(self.nodes, which, np.full_like(which, epoch), numbers, memory)

    def _names(self) -> str:
        return ", ".join([str(n) for n in self.nodes])


class Concatenated(Several):
    """The examples of the nodes, one node after the other."""

    @property
    def size(self) -> Any:
        """See `Node`."""
        return sum([n.size for n in self.nodes])

    def locate(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """See `Several`."""
        starts = np.cumsum([0, *[n.size for n in self.nodes]])
        which = np.searchsorted(starts, positions, "right") - 1
        return which, positions - starts[which]

    def __str__(self) -> str:
        return f"concatenate({self._names()})"


class Interleaved(Several):
    """The examples of the nodes in turn; exhausted nodes are skipped."""

    @property
    def size(self) -> Any:
        """See `Node`."""
        return sum([n.size for n in self.nodes])

    def locate(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """See `Several`."""
        sizes = np.array([n.size for n in self.nodes])
        ends = np.unique(np.concatenate([[0], sizes]))  # rounds after which a node is exhausted
        widths = [int((sizes > end).sum()) for end in ends]
        starts = np.cumsum([0, *[w * (b - a) for w, a, b in zip(widths, ends, ends[1:])]])
        which, within = np.empty_like(positions), np.empty_like(positions)
        stretch = np.searchsorted(starts, positions, "right") - 1
        for s in np.unique(stretch).tolist():
            here, left = stretch == s, np.flatnonzero(sizes > ends[s])
            turn, place = np.divmod(positions[here] - starts[s], widths[s])
            which[here], within[here] = left[place], turn + ends[s]
        return which, within

    def __str__(self) -> str:
        return f"interleave({self._names()})"


@dataclasses.dataclass(frozen=True, eq=False)
class Mixed(Several):
    """A mixture by weights: of each `PERIOD` examples, node i has `shares[i]`, in an order determined by `seed`."""

    shares: tuple[int, ...]
    seed: int
    stops: bool

    @functools.cached_property
    def size(self) -> Any:
        """See `Node`."""
        if not self.stops:
            return ENDLESS
        return min([self._place_of(i, n.size) for i, n in enumerate(self.nodes)])

    def _place_of(self, node: int, number: Any) -> Any:
        """The position in the mixture of a node's example with index `number`."""
        if number == ENDLESS:
            return ENDLESS
        period, rank = divmod(number, self.shares[node])
        which, ranks = self._period(period)
        return period * PERIOD + int(np.flatnonzero((which == node) & (ranks == rank))[0])

    def _period(self, period: int) -> tuple[np.ndarray, np.ndarray]:
        """For each position of a period: its node, and the number of that node's examples earlier in the period."""
        order = permuted(np.arange(PERIOD), PERIOD, round_keys(self.seed, period))
        which = np.repeat(np.arange(len(self.shares)), self.shares)[order]
        ranks = np.empty(PERIOD, np.int64)
        for i, share in enumerate(self.shares):
            ranks[which == i] = np.arange(share)
        return which, ranks

    def locate(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """See `Several`."""
        which, numbers = np.empty_like(positions), np.empty_like(positions)
        periods, within = np.divmod(positions, PERIOD)
        shares = np.array(self.shares)
        for period in np.unique(periods).tolist():
            cached = memory.get(id(self))
            if cached is None or cached[0] != period:
                cached = memory[id(self)] = (period, self._period(period))
            here = periods == period
            which[here] = cached[1][0][within[here]]
            numbers[here] = cached[1][1][within[here]] + period * shares[which[here]]
        return which, numbers

    def fetch(self, epoch: int, positions: np.ndarray, memory: dict[Any, Any]) -> Block:
        """See `Node`."""
        which, numbers = self.locate(epoch, positions, memory)
        if self.stops:
            return gathered(self.nodes, which, np.full_like(which, epoch), numbers, memory)
        sizes = np.array([np.iinfo(np.int64).max if n.size == ENDLESS else n.size for n in self.nodes])
        epochs = first_epoch(epoch, None) + numbers // sizes[which]
        return gathered(self.nodes, which, epochs, numbers % sizes[which], memory)

    def __str__(self) -> str:
        shares = "/".join([str(s) for s in self.shares])
        return f"mix({self._names()}, {shares}, {self.seed}{', stop' if self.stops else ''})"


def shares_of(weights: list[float]) -> tuple[int, ...]:
    """The number of examples from each node among `PERIOD`: at least one, and proportional to the weights, rounded."""
    exact = np.array(weights, float) / sum(weights) * PERIOD
    shares = np.maximum(np.floor(exact).astype(int), 1)
    while shares.sum() > PERIOD:
        shares[np.argmax(shares)] -= 1
    for i in np.argsort(-(exact - shares), kind="stable")[: PERIOD - shares.sum()]:
        shares[i] += 1
    return tuple(shares.tolist())


def concatenate(*pipelines: Pipeline) -> Pipeline:
    """The examples of several pipelines, one after the other.

    >>> from atled import data
    >>> list(data.concatenate(data.source("ab"), data.source("c")))
    ['a', 'b', 'c']
    """
    return Pipeline(Concatenated(_nodes("concatenate", pipelines)))


def interleave(*pipelines: Pipeline) -> Pipeline:
    """The examples of several pipelines in turn. Exhausted pipelines are skipped.

    >>> from atled import data
    >>> list(data.interleave(data.source("abc"), data.source("xy")))
    ['a', 'x', 'b', 'y', 'c']
    """
    return Pipeline(Interleaved(_nodes("interleave", pipelines)))


def mix(pipelines: Sequence[Pipeline], weights: Sequence[float], seed: int, *, exhausted: str = "restart") -> Pipeline:
    """The examples of several pipelines, mixed by weights. The seed and n determine the pipeline of the n-th example.

    In each block of 4096 consecutive examples, each pipeline has its share, rounded to whole examples. An exhausted
    pipeline starts its next epoch, so the mixture is infinite; with `exhausted="stop"`, the first exhausted pipeline
    ends the epoch.

    >>> from atled import data
    >>> mixed = data.mix([data.source("a"), data.source("b")], [3, 1], 0).take(4096)
    >>> list(mixed).count("a")
    3072
    """
    nodes = _nodes("mix", pipelines, may_be_endless=True)
    good = len(weights) == len(nodes) and all([isinstance(w, Real) and 0 < w < ENDLESS for w in weights])
    if not good or len(nodes) > PERIOD // 4:
        raise ValueError(
            errors.explained(f"data.mix: there must be a weight above 0 for each pipeline; got {list(weights)}.")
        )
    if exhausted not in ("restart", "stop") or any([n.size == 0 for n in nodes]):
        raise ValueError(
            errors.explained(
                "data.mix: exhausted must be 'restart' or 'stop', and no pipeline may be empty; got "
                f"{exhausted!r} and sizes {[n.size for n in nodes]}."
            )
        )
    shares = shares_of([float(w) for w in weights])
    return Pipeline(Mixed(nodes, shares, seed_checked("mix", seed), exhausted == "stop"))


def _nodes(name: str, pipelines: Sequence[Pipeline], may_be_endless: bool = False) -> tuple[Node, ...]:
    """The nodes of pipelines; raises unless they have random access."""
    if not pipelines or not all([isinstance(p, Pipeline) for p in pipelines]):
        raise TypeError(errors.explained(f"data.{name}: the arguments must be pipelines, such as data.source(items)."))
    nodes = tuple([p.indexed(name) for p in pipelines])
    sized(name, nodes, may_be_endless)
    return nodes
