"""NumPy's elementwise comparisons and logical functions; `array_equality.py` compares whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np  # noqa: F401, for the examples

from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.elementwise_family import Binary, binary, finish, to_bool
from atled.numpy.promotion import broadcast, promote_compared
from atled.ops import conversion, reduction
from atled.ops import elementwise as ew
from atled.ops.random import unwrap_key
from atled.staging.jit import library_function

equal = binary(
    "equal", lambda x, y: _same(x, y),
    "x1 == x2; random keys by key data.\n\n>>> print(equal(np.arange(3), 1))\n[False  True False]", promote_compared,
)  # fmt: skip
not_equal = binary(
    "not_equal", lambda x, y: ew.logical_not(_same(x, y)) if type_of(x).kind == "k" else ew.ne(x, y),
    "x1 != x2; random keys by key data.\n\n>>> print(not_equal(np.arange(3), 1))\n[ True False  True]",
    promote_compared,
)  # fmt: skip
less = binary(
    "less", lambda x, y: order(x, y, ew.lt),
    "x1 < x2; complex numbers by real, then imaginary part.\n\n>>> print(less(np.arange(3), 1))\n[ True False False]",
    promote_compared,
)  # fmt: skip
less_equal = binary(
    "less_equal", lambda x, y: order(x, y, ew.le),
    "x1 <= x2.\n\n>>> print(less_equal(np.arange(3), 1))\n[ True  True False]", promote_compared,
)  # fmt: skip
greater = binary(
    "greater", lambda x, y: order(x, y, ew.gt),
    "x1 > x2.\n\n>>> print(greater(np.arange(3), 1))\n[False False  True]", promote_compared,
)  # fmt: skip
greater_equal = binary(
    "greater_equal", lambda x, y: order(x, y, ew.ge),
    "x1 >= x2.\n\n>>> print(greater_equal(np.arange(3), 1))\n[False  True  True]", promote_compared,
)  # fmt: skip


def _same(x: Any, y: Any) -> Any:
    if type_of(x).kind != "k":
        return ew.eq(x, y)
    words = ew.eq(*broadcast("equal", [unwrap_key(x), unwrap_key(y)]))
    return reduction.reduce_and(words, (type_of(words).ndim - 1,))


def order(x: Any, y: Any, compare: Callable[[Any, Any], Any]) -> Any:
    """compare(x, y); complex numbers in lexicographic order."""
    if type_of(x).kind != "c":
        return compare(x, y)
    (a, b), (c, d) = ((conversion.real(v), conversion.imag(v)) for v in (x, y))
    strict = {ew.le: ew.lt, ew.ge: ew.gt}.get(compare, compare)
    return ew.logical_or(strict(a, c), ew.logical_and(ew.eq(a, c), compare(b, d)))


def _logical(name: str, op: Callable[[Any, Any], Any], doc: str) -> Binary:
    def f(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return op(*broadcast(name, [to_bool(name, x1), to_bool(name, x2)]))

    return finish(f, name, doc)


logical_and = _logical(
    "logical_and", ew.logical_and,
    "Whether both are true.\n\n>>> print(logical_and(np.arange(3), True))\n[False  True  True]",
)  # fmt: skip
logical_or = _logical(
    "logical_or", ew.logical_or,
    "Whether either is true.\n\n>>> print(logical_or(np.arange(3), False))\n[False  True  True]",
)  # fmt: skip
logical_xor = _logical(
    "logical_xor", ew.logical_xor,
    "Whether exactly one is true.\n\n>>> print(logical_xor(np.arange(3), True))\n[ True False False]",
)  # fmt: skip


@library_function(is_thin=True)
def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is false.

    >>> logical_not(np.asarray([0, 1, 2], "int32"))
    Array([ True, False, False], dtype=bool)
    """
    return ew.logical_not(to_bool("logical_not", x))
