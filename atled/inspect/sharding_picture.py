"""Draws shardings: `sharding` returns a `Picture`, which prints as text and displays as SVG in a notebook.

The picture is a grid with one or two dimensions; each cell shows the devices that hold it. `text_drawing.py` and
`svg_drawing.py` draw it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from atled.core.array import Array, type_of
from atled.core.sharding import NamedSharding, Sharding, tiles
from atled.core.trace import Tracer
from atled.core.types import ShapeDtypeStruct
from atled.inspect import svg_drawing, text_drawing


class Side(NamedTuple):
    """One direction of a picture: a dimension of the array, and the slices that it is split into."""

    dimension: int | None
    parts: tuple[str, ...]  # slices as text, such as "0:4"


class Picture:
    """The shards of an array as a picture. Print it, show it in a notebook, or `save` it as an SVG.

    >>> import atled
    >>> picture = atled.inspect.sharding(atled.device_put(atled.numpy.ones((4, 2)), atled.devices()[0]))
    >>> isinstance(picture, Picture), picture.svg()[:4]
    (True, '<svg')
    """

    def __init__(self, what: str, shape: tuple[int, ...], sharding: Sharding, color: bool | None) -> None:
        self.shape, self.sharding, self.color = shape, sharding, color
        counts, places = tiles(sharding, len(shape))
        down, across = _directions(counts)
        self.rows, self.columns = _side(down, shape, counts), _side(across, shape, counts)
        self.cells: dict[tuple[int, int], list[Any]] = {}
        for device, place in zip(sharding.devices, places.tolist()):
            at = (0 if down is None else place[down], 0 if across is None else place[across])
            self.cells.setdefault(at, []).append(device)
        self.number = {d: i for i, d in enumerate(sharding.devices)}
        self.title = f"{what}: {_described(shape, sharding, counts)}"
        self.notes = _notes(shape, counts, down, across)
        if isinstance(sharding, NamedSharding):
            self.notes.insert(0, f"over {sharding.mesh} as {sharding.spec}")

    def label(self, row: int, column: int, room: int) -> str:
        """The devices of a cell as text, in about `room` characters."""
        devices = self.cells[row, column]
        processes = sorted({d.process_index for d in devices})
        if len({d.process_index for d in self.sharding.devices}) == 1:
            return _shortened([d.id for d in devices], room)
        labels = [f"p{p}:{_shortened([d.id for d in devices if d.process_index == p], room)}" for p in processes]
        text = " ".join(labels)
        return text if len(text) <= room or len(labels) == 1 else f"{labels[0]} … {labels[-1]}"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        color = self.color
        if color is None:
            color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return text_drawing.draw(self, color)

    def svg(self) -> str:
        """The picture as an SVG."""
        return svg_drawing.draw(self)

    def _repr_html_(self) -> str:
        return self.svg()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg())


def sharding(x: Any, shape: Sequence[int] | None = None, *, color: bool | None = None) -> Picture:
    """A picture of the shards of an array: each block is a shard, with the ids of the devices that hold it.

    Args:
        x: an array, a `ShapeDtypeStruct` with a sharding, or a sharding with the `shape` of an array.
        shape: the shape of the array, if `x` is a sharding.
        color: whether to print in color, by default in a terminal unless NO_COLOR is set.

    >>> import atled
    >>> print(sharding(atled.device_put(atled.numpy.ones((4, 2)), atled.devices()[0])))
    f32[4,2]: whole on device 0
    ┌─────┐
    │  0  │
    └─────┘
    """
    if isinstance(x, Sharding):
        if shape is None:
            raise TypeError(
                f"inspect.sharding: a sharding needs the shape of an array; got only {type(x).__name__}."
                "\n  try: inspect.sharding(s, (64, 16))."
            )
        placement, dims = x, tuple([int(n) for n in shape])
        what = f"[{','.join(map(str, dims))}]"
    elif isinstance(x, (Array, ShapeDtypeStruct)) and not isinstance(x, Tracer) and x.sharding is not None:
        placement, dims, what = x.sharding, tuple(x.shape), str(type_of(x))
    else:
        got, way_out = type(x).__name__, "atled.device_put(x) first."
        if isinstance(x, Tracer):
            got, way_out = "a traced array, which has no sharding yet", "inspect.sharding of arguments and results."
        raise TypeError(f"inspect.sharding: expected an array or a sharding; got {got}.\n  try: {way_out}")
    if isinstance(placement, NamedSharding):
        placement.check(dims, "inspect.sharding")
    return Picture(what, dims, placement, color)


def _directions(counts: Sequence[int]) -> tuple[int | None, int | None]:
    """The dimensions drawn vertically and horizontally: those of a matrix, or the first two that are split."""
    if len(counts) <= 2:
        return (None if len(counts) < 2 else 0), (len(counts) - 1 if counts else None)
    split = [d for d, n in enumerate(counts) if n > 1]
    if len(split) >= 2:
        return split[0], split[1]
    last = len(counts) - 1
    return (None, last) if not split or split[0] == last else (split[0], None)


def _side(dimension: int | None, shape: Sequence[int], counts: Sequence[int]) -> Side:
    if dimension is None:
        return Side(None, ("",))
    size, count = shape[dimension], counts[dimension]
    step = size // count
    return Side(dimension, tuple([f"{i * step}:{(i + 1) * step}" if count > 1 else "" for i in range(count)]))


def _described(shape: tuple[int, ...], sharding: Sharding, counts: Sequence[int]) -> str:
    parts, devices = prod(counts), sharding.num_devices
    if devices == 1:
        return f"whole on device {sharding.devices[0].id}"
    if parts == 1:
        return f"whole on each of {devices} devices"
    size = ",".join(map(str, sharding.shard_shape(shape)))
    each = f", each on {devices // parts} devices" if devices > parts else ""
    return f"{parts} parts of [{size}]{each}"


def _notes(shape: tuple[int, ...], counts: Sequence[int], down: int | None, across: int | None) -> list[str]:
    """Notes for arrays of more than two dimensions: which are drawn, and which are split but not drawn."""
    if len(shape) <= 2:
        return []
    shown = [d for d in (down, across) if d is not None and counts[d] > 1]
    hidden = [d for d, n in enumerate(counts) if n > 1 and d not in shown]
    if not shown:
        return []
    ways = {(True, False): "down", (False, True): "across"}
    directions = [f"dimension {d} {ways[d == down, d == across]}" for d in shown]
    notes = [f"of {len(shape)} dimensions: {', '.join(directions)}"]
    if hidden:
        parts = prod([counts[d] for d in hidden])
        also = ", ".join([f"{d} ({counts[d]} parts)" for d in hidden])
        notes.append(f"also split: dimension {also}; each block is {parts} parts, on different devices")
    return notes


def _shortened(ids: Sequence[int], room: int) -> str:
    """Device ids as text: runs of three or more ids as 0-2, and middle ones omitted if there is no room."""
    runs: list[list[int]] = []
    for n in sorted(ids):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    words = [w for a, b in runs for w in ([f"{a}-{b}"] if b > a + 1 else map(str, range(a, b + 1)))]
    text = ",".join(words)
    shown_count = len(words) - 1
    while len(text) > room and shown_count > 1:
        shown_count -= 1
        text = f"{','.join(words[:shown_count])},…,{words[-1]}"
    return text
