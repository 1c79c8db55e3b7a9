"""Where the parts of an array are: plain data, without the engine.

An array has a type and a sharding; together, interned, they are its `Placed`, the one object that launch caches look
at. `committed` says that the user chose the place; arrays that are not committed move to where they are needed.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from atled.core.types import ArrayType


class Sharding:
    """How an array is laid out over devices."""

    __slots__ = ()

    @property
    def device_set(self) -> set[Any]:
        raise NotImplementedError

    @property
    def is_fully_replicated(self) -> bool:
        raise NotImplementedError

    @property
    def is_fully_addressable(self) -> bool:
        return all(d.process_index == d.client.process_index() for d in self.device_set)


class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    __slots__ = ("device",)

    def __init__(self, device: Any) -> None:
        self.device = device

    @property
    def device_set(self) -> set[Any]:
        return {self.device}

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        return len(other.device_set) == 1 and self.device_set == other.device_set

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self.device == other.device

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self.device))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding({self.device})"


class Placed:
    """A type that is somewhere: what a buffer carries, and what launches are keyed by. Interned."""

    __slots__ = ("__weakref__", "committed", "dtype", "handler", "shape", "sharding", "type", "weak_type")
    type: ArrayType
    sharding: Any
    committed: bool
    handler: Any  # the engine's maker of results of this kind
    _interned: ClassVar[dict[Any, Placed]] = {}

    def __new__(cls, type: ArrayType, sharding: Any, committed: bool) -> Placed:
        key = (type, sharding, committed)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.type, found.sharding, found.committed = type, sharding, committed
            found.shape, found.dtype = physical(type)
            found.weak_type = type.weak
            found.handler = None
            found = cls._interned.setdefault(key, found)
        return found

    def __repr__(self) -> str:
        return f"Placed({self.type}, {self.sharding})"


def physical(type: ArrayType) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype as stored. A key array is stored as its two words, on a leading axis."""
    if type.kind == "k":
        return (2, *type.shape), _WORD
    return type.shape, type.dtype


_WORD = np.dtype(np.uint32)
