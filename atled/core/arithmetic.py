"""The few operations that the core itself needs. `ops/` fills them in once, so that imports point down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Arithmetic:
    add: Callable[[Any, Any], Any]
    zeros: Callable[[Any], Any]
    constant: Callable[[Any], Any]  # the op that holds an array


arithmetic = _Arithmetic()
