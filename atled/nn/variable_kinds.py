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
    """The kind of a module's array: `nn.Param(x)` declares x as a parameter. Subclass `Kind` for custom kinds.

    The value may be an array, a number, or a tree of arrays and numbers. Numbers become arrays.

    >>> from atled import nn
    >>> class Cache(nn.Buffer):
    ...     "What attention keeps of earlier tokens."
    """

    is_trained = False  # whether `grad` differentiates it by default
    __slots__ = ("value",)

    def __new__(cls, value: Any) -> Any:  # Any for type checkers: attributes hold the bare value
        """A declaration, which an assignment to an attribute of a module unpacks."""
        return super().__new__(cls)

    def __init__(self, value: Any) -> None:
        self.value = tree.map(as_declared, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.value)})"


class Param(Kind):
    """Declares a parameter, which is trained.

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
    """x as a strongly typed array: promotion of a weakly typed one would change its type and cause a recompilation."""
    if isinstance(x, (ShapeDtypeStruct, Kind)):
        return x.value if isinstance(x, Kind) else x
    try:
        t = type_of(x)
    except TypeError:
        raise TypeError(
            errors.explained(f"nn: only arrays, numbers and trees of these can be declared; got {describe(x)}.")
        ) from None
    if not isinstance(x, Array):
        return to_device(np.asarray(x, t.dtype), t.strong())  # its own buffer, which can be donated
    return conversion.convert(x, t.dtype) if t.weak else x
