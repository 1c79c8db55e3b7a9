"""`Looped`: elementwise functions made of loops, and their derivatives of every order.

Reverse mode of a loop stores every step. An elementwise function does not need reverse mode: its derivative is a factor
for each operand. The factor is another `Looped`, which runs the loop in forward mode, and so on for higher derivatives;
known closed forms are used instead. All computation is in double precision, so float32 results are accurate to the last
digit, also in the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.program import record_closed
from atled.core.trace import bind
from atled.ops import conversion, shape
from atled.ops.elementwise_family import Elementwise, spread_all
from atled.transforms.grad import jvp


class Looped(Elementwise):
    """The partial derivative of `compute` of order `orders[i]` in each operand i; with zeros, `compute` itself."""

    takes = "f"
    is_fusible = False
    orders: tuple[int, ...]

    def compute(self, *operands: Any) -> Any:
        """The function, on float64 operands of equal shape."""
        raise NotImplementedError

    def slope(self, i: int) -> Callable[..., Any] | None:
        """The closed-form derivative of `compute` in operand i, as a transformable function, or None."""
        return None

    def lower(self, build: Any, *operands: Any) -> Any:
        f = in_double(partial_derivative(self.compute, self.orders))
        spread = spread_all(build, self, operands)
        program = record_closed(lambda *xs: (f(*xs),), [x.type for x in spread], self.name)  # tables become constants
        return build.inline(program, spread)[0]

    def derivative(self, i: int, out: Any, *operands: Any) -> Any:
        known = self.slope(i)
        if known is not None:
            return in_double(partial_derivative(known, self.orders))(*operands)
        raised = tuple([n + (j == i) for j, n in enumerate(self.orders)])
        return bind(type(self)(raised), *operands)  # pyright: ignore[reportCallIssue]


def partial_derivative(f: Callable[..., Any], orders: Sequence[int]) -> Callable[..., Any]:
    """The partial derivative of an elementwise function, of order `orders[i]` in each operand i, by forward mode."""
    for i, count in enumerate(orders):
        for _ in range(count):
            f = _once(f, i)
    return f


def _once(f: Callable[..., Any], i: int) -> Callable[..., Any]:
    def along(*xs: Any) -> Any:
        one = lambda x: f(*xs[:i], x, *xs[i + 1 :])  # noqa: E731
        t = type_of(xs[i])
        return jvp(one, (xs[i],), (shape.broadcast(np.ones((), t.dtype), t.shape, ()),))[1]

    return along


def in_double(f: Callable[..., Any]) -> Callable[..., Any]:
    """The elementwise function computed in double precision; the result has the dtype of the first operand."""

    def apply(*xs: Any) -> Any:
        dtype = type_of(xs[0]).dtype
        if dtype is dtypes.float64:
            return f(*xs)
        dims = max([type_of(x).shape for x in xs], key=len)
        wide = [conversion.convert(x, dtypes.float64) for x in xs]
        wide = [x if type_of(x).shape == dims else shape.broadcast(x, dims, ()) for x in wide]
        return conversion.convert(f(*wide), dtype)

    return apply
