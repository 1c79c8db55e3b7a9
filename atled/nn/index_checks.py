"""`expected`: integers that must lie in a range, such as labels, token ids and node indices."""

from __future__ import annotations

from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core.array import type_of
from atled.core.trace import Tracer, bind
from atled.ops.range_check import Expect
from atled.staging.range_checks import complain


def expected(x: Any, low: int, high: int, what: str) -> Any:
    """The integers x, which must be `low` or more and less than `high`.

    For concrete x, raises at once if an integer is out of range. A compiled function checks only its first call:
    callers should return NaN for integers out of range, so that later errors are noticed as well.

    >>> from atled.nn.index_checks import expected
    >>> expected(jnp.array([0, 2]), 0, 3, "labels")
    Array([0, 2], dtype=int32)
    """
    op, x = Expect(int(low), int(high), what), jnp.asarray(x)
    op.result_type(type_of(x))
    if isinstance(x, Tracer):
        return bind(op, x)
    if x.size and x.is_fully_addressable:
        values = np.asarray(x)
        complain(op, int(values.min()), int(values.max()))
    return x
