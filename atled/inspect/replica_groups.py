"""Parses the device groups of a collective in all notations of HLO, and finds the mesh axes that they run over.

A device's number is its row-major index in the mesh, as in HLO.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any, NamedTuple

import numpy as np

from atled.core.list_partition import kept
from atled.core.sharding import Mesh


class Span(NamedTuple):
    """The mesh axes that a collective runs over; `is_whole` if each group spans these axes completely."""

    axes: tuple[Any, ...]
    is_whole: bool
    devices: int  # devices per group

    def __str__(self) -> str:
        names = ", ".join(map(str, self.axes)) or "nothing"
        return names if self.is_whole else f"part of {names}"


def span(attributes: str, mesh: Mesh) -> Span:
    """The mesh axes that a collective runs over, from the text of its attributes."""
    where = np.indices(mesh.devices.shape).reshape(mesh.devices.ndim, -1)
    pairs = re.search(r"\bsource_target_pairs=(\{\{.*?\}\}|\{\})", attributes)
    groups = _explicit(pairs[1]) if pairs else replica_groups(attributes, mesh.size)
    varies = [any([len(set(places[list(g)].tolist())) > 1 for g in groups]) for places in where]
    axes = tuple(kept(varies, mesh.axis_names))
    count = prod([mesh.shape[a] for a in axes])
    devices = count if pairs else max([len(g) for g in groups], default=1)
    return Span(axes, devices == count, devices)


def replica_groups(attributes: str, devices: int) -> list[tuple[int, ...]]:
    """The groups of devices of a collective, from the text of its attributes."""
    _, marker, text = attributes.partition("replica_groups=")
    if marker and text.startswith("mesh["):
        return _of_mesh(text)
    if marker and text.startswith("["):
        return [tuple(g) for g in _iota(text).tolist()]
    return (_explicit(text[: text.find("}}") + 2]) if text.startswith("{{") else []) or [tuple(range(devices))]


def _explicit(text: str) -> list[tuple[int, ...]]:
    """`{{0,1},{2,3}}`"""
    return [tuple(_numbers(group)) for group in re.findall(r"\{([\d,]+)\}", text)]


def _iota(text: str) -> np.ndarray:
    """`[2,4]<=[4,2]T(1,0)`: 0, 1, 2, ... in the second shape, transposed, then reshaped to the first shape."""
    shape, _, order = text.partition("<=")
    return _order(order).reshape(_numbers(shape.strip("[]")))


def _order(text: str) -> np.ndarray:
    """`[4,2]T(1,0)`: 0, 1, 2, ... in a shape, transposed, then flattened."""
    match = re.match(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    assert match, text
    shape = _numbers(match[1])
    axes = _numbers(match[2]) if match[2] else range(len(shape))
    return np.arange(prod(shape)).reshape(shape).transpose(axes).ravel()


def _of_mesh(text: str) -> list[tuple[int, ...]]:
    """`mesh['a'=4,'b'=2] {'a'}`: groups along axes of the compiler's mesh, or along sub-axes such as `'a':(2)2`."""
    match = re.match(r"mesh\[([^\]]*)\](?:, device_ids=\((.*?)\)(?= \{))? \{([^}]*)\}", text)
    assert match, text
    axes = [(name, int(n)) for name, n in re.findall(r"'([^']*)'=(\d+)", match[1])]
    asked = [(name, int(p or 1), int(n or 0)) for name, p, n in re.findall(r"'([^']*)'(?::\((\d+)\)(\d+))?", match[3])]
    shape: list[int] = []
    chosen: dict[int, int] = {}  # index of a requested axis -> its dimension in `shape`
    for name, n in axes:  # an axis with requested sub-axes becomes several dimensions
        done = 1
        for i, (_, before, count) in sorted([(i, a) for i, a in enumerate(asked) if a[0] == name], key=lambda s: s[1]):
            count = count or n
            shape.append(before // done)
            chosen[i] = len(shape)
            shape.append(count)
            done = before * count
        shape.append(n // done)
    inside = [chosen[i] for i in range(len(asked))]
    outside = [d for d in range(len(shape)) if d not in inside]
    ids = _device_ids(match[2], prod(shape)).reshape(shape).transpose([*outside, *inside])
    return [tuple(g) for g in ids.reshape(-1, prod([shape[d] for d in inside])).tolist()]


def _device_ids(text: str | None, count: int) -> np.ndarray:
    """The device ids of a mesh: `8,3,7`, `[4,16]T(1,0)`, or 0, 1, 2, ... if there is no text."""
    if not text:
        return np.arange(count)
    return _order(text) if text.startswith("[") else np.array(_numbers(text))


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",")]
