"""Declarations: `Param`, `Buffer` and `Frozen` say how an array of a module is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import errors, tree
from atled.core.array import Array, describe, type_of
from atled.core.types import ShapeDtypeStruct
from atled.engine.array import to_device
from atled.ops import conversion


class Kind:
    """The kind of a module's array: `nn.Param(x)` declares x as a parameter. Subclass it for custom kinds.

    The value may be an array, a number, or a tree of those. Numbers become arrays.

    >>> from atled import nn
    >>> class Cache(nn.Buffer):
    ...     "What attention keeps of earlier tokens."
    """

    is_trained = False  # whether `grad` differentiates it by default
    __slots__ = ("value",)

    def __new__(cls, value: Any) -> Any:  # the attribute holds the bare value, so that is the type for type checkers
        """A declaration, which an assignment to an attribute of a module unpacks."""
        return super().__new__(cls)

    def __init__(self, value: Any) -> None:
        self.value = tree.map(as_declared, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.value)})"


class Param(Kind):
    """Declares what is trained.

    >>> Param(np.zeros((2, 3), "float32"))
    Param(f32[2,3])
    """

    is_trained = True


class Buffer(Kind):
    """Declares state that is not trained: statistics, counters, caches.

    >>> Buffer(0)
    Buffer(i32[])
    """


class Frozen(Kind):
    """Declares a parameter that is not trained. `nn.freeze` turns parameters into this kind.

    >>> Frozen(np.ones(3, "float32"))
    Frozen(f32[3])
    """


def as_declared(x: Any) -> Any:
    """A strongly typed array: weak types would cause a recompilation after promotion with an array."""
    if isinstance(x, (ShapeDtypeStruct, Kind)):
        return x.value if isinstance(x, Kind) else x
    try:
        t = type_of(x)
    except TypeError:
        raise TypeError(
            errors.explained(f"nn: arrays and numbers can be declared, and trees of those; got {describe(x)}.")
        ) from None
    if not isinstance(x, Array):
        return to_device(np.asarray(x, t.dtype), t.strong())  # its own buffer, which can be donated
    return conversion.convert(x, t.dtype) if t.weak else x
