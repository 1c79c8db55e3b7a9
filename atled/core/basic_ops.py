"""The operations that `core/` and the base classes of ops call. `ops/` sets them at import, because `core/` must not
import `ops/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Arithmetic:
    add: Callable[[Any, Any], Any]
    mul: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]  # a tangent times a derivative
    select: Callable[[Any, Any, Any], Any]
    logical_or: Callable[[Any, Any], Any]
    convert: Callable[[Any, Any], Any]  # converts an array to a dtype
    broadcast: Callable[[Any, tuple[int, ...], tuple[int, ...]], Any]
    sum: Callable[[Any, tuple[int, ...]], Any]  # along axes
    zeros: Callable[[Any], Any]
    constant: Callable[[Any], Any]  # the op that holds an array


arithmetic = _Arithmetic()
