"""`Expect`: an identity op for integers that must lie in a range, which is checked before the first compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core.op import LinearOp
from atled.core.trace import bind
from atled.core.types import ArrayType


class Expect(LinearOp):
    """The identity, for integers with low <= x < high; `what` describes the integers in the error message."""

    low: int
    high: int
    what: str

    def result_type(self, x: ArrayType) -> ArrayType:
        if x.kind not in "iu":
            raise TypeError(f"{self.what} must be integers; got {x}.")
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return x

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *values), masks[0]

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)
