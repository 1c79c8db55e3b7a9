"""The costs of collectives: bytes sent along each mesh axis, and steps. Devices form a ring along each axis.

A `psum` costs a `psum_scatter` and an `all_gather`. Each of these takes `max(lengths) * len(lengths)` steps, where
`lengths` are the lengths of the mesh axes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from atled.core.types import ArrayType
from atled.jax.experimental.roofline.results import RooflineResult, bytes_of
from atled.ops import collectives

Sizes = Mapping[Any, int]  # of mesh axes, by name


def traffic(op: collectives.Collective, types: Sequence[ArrayType], sizes: Sizes) -> RooflineResult:
    """The cost of a collective on operands of these types."""
    axes = [a for a in op.axes if sizes.get(a, 1) > 1]
    rule = next((r for kind, r in _RULES.items() if isinstance(op, kind)), None)
    if rule is None or not axes:
        return RooflineResult()
    sent, steps = rule(op, sum([bytes_of(t) for t in types]), [sizes[a] for a in axes])
    return RooflineResult(ici_bytes=dict.fromkeys(axes, sent), ici_latency=dict.fromkeys(axes, steps))


def _scattered(op: Any, size: int, lengths: Sequence[int]) -> tuple[int, int]:
    """A device sends all but one of `count` parts of its data, evenly split over the mesh axes."""
    count = math.prod(lengths)
    return size // count // len(lengths) * (count - 1), max(lengths) * len(lengths)


def _gathered(op: Any, size: int, lengths: Sequence[int]) -> tuple[int, int]:
    return _scattered(op, size * math.prod(lengths), lengths)


def _reduced(op: Any, size: int, lengths: Sequence[int]) -> tuple[int, int]:
    sent, steps = _scattered(op, size, lengths)
    return 2 * sent, 2 * steps


def _exchanged(op: Any, size: int, lengths: Sequence[int]) -> tuple[int, int]:
    """Half of all data crosses the middle of the longest axis, over the links of all rings along it."""
    count = math.prod(lengths)
    links = count // max(lengths) * (2 if min(lengths) > 2 else 1)
    return size * count // (2 * links), sum(lengths) // 2


def _permuted(op: Any, size: int, lengths: Sequence[int]) -> tuple[int, int]:
    """The bytes over the busiest link, and the number of links on the longest path."""
    ways = [list(_way(pair, lengths)) for pair in op.pairs]
    load = Counter([link for way in ways for link in way])
    return size * max(load.values(), default=0), max([len(way) for way in ways], default=0)


def _way(pair: Sequence[int], lengths: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The links on the path between two devices: along one axis after the other, each in the shorter direction."""
    here, there = (list(np.unravel_index(i, lengths)) for i in pair)
    for axis, length in enumerate(lengths):
        ahead = (there[axis] - here[axis]) % length
        step = 1 if ahead <= length - ahead else -1
        while here[axis] != there[axis]:
            before = tuple(here)
            here[axis] = (here[axis] + step) % length
            yield tuple(sorted([before, tuple(here)]))


_RULES: dict[type, Callable[[Any, int, Sequence[int]], tuple[int, int]]] = {
    collectives.AllReduce: _reduced,
    collectives.AllGather: _gathered,
    collectives.PsumScatter: _scattered,
    collectives.AllToAll: _exchanged,
    collectives.Ppermute: _permuted,
}
