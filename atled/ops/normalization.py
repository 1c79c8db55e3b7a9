"""Softmax and log-sum-exp as ops of their own: their derivatives are shorter and stabler than those of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core.array import type_of
from atled.core.op import Op
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.ops import elementary, elementwise, reduction, shape


class _OverAxes(Op):
    """Ops on floating arrays over some axes."""

    axes: tuple[int, ...]

    def check(self, x: ArrayType) -> None:
        if x.kind != "f":
            raise TypeError(f"{self.name}: operands must be floating; got {x}.")
        if any(not 0 <= a < x.ndim for a in self.axes) or len(set(self.axes)) != len(self.axes):
            raise TypeError(f"{self.name}: {x} does not have the axes {self.axes}, each once.")

    def kept(self, ndim: int) -> tuple[int, ...]:
        return tuple([a for a in range(ndim) if a not in self.axes])

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(type(self)(tuple([a + 1 for a in self.axes])), x)


class Softmax(_OverAxes):
    """exp(x) scaled to sum to one over `axes`."""

    def result_type(self, x: ArrayType) -> ArrayType:
        self.check(x)
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(self._compute, x) if x.type.size else x

    def _compute(self, x: Any) -> Any:
        t = type_of(x)
        kept = self.kept(t.ndim)
        top = reduction.reduce_max(x, self.axes)
        weight = elementary.exp(elementwise.sub(x, shape.broadcast(top, t.shape, kept)))
        total = reduction.reduce_sum(weight, self.axes)
        return elementwise.div(weight, shape.broadcast(total, t.shape, kept))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        scaled = elementwise.mul(t, out)
        total = reduction.reduce_sum(scaled, self.axes)
        spread = shape.broadcast(total, type_of(x).shape, self.kept(type_of(x).ndim))
        return out, elementwise.sub(scaled, elementwise.mul(spread, out))  # backwards, out * (t - sum(t * out))


class Logsumexp(_OverAxes):
    """log(sum(exp(x))) over `axes`, without overflow."""

    def result_type(self, x: ArrayType) -> ArrayType:
        self.check(x)
        return x.with_shape(tuple([x.shape[a] for a in self.kept(x.ndim)]))

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(self._compute, x)

    def _compute(self, x: Any) -> Any:
        t = type_of(x)
        top = reduction.reduce_max(x, self.axes)
        safe = elementwise.select(elementary.is_finite(top), top, np.zeros((), t.dtype))
        weight = elementary.exp(elementwise.sub(x, shape.broadcast(safe, t.shape, self.kept(t.ndim))))
        return elementwise.add(elementary.log(reduction.reduce_sum(weight, self.axes)), safe)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        dims, kept = type_of(x).shape, self.kept(type_of(x).ndim)
        one, zero, high = (np.asarray(v, type_of(x).dtype) for v in (1, 0, np.inf))
        top = reduction.reduce_max(bind(elementwise.StopGradient(), x), self.axes)
        is_endless = elementwise.eq(elementary.absolute(top), high)
        safe = shape.broadcast(elementwise.select(is_endless, zero, top), dims, kept)
        # infinite elements share all of the weight, and minus infinities among themselves have none
        among = elementwise.select(elementwise.eq(x, high), one, zero)
        weight = elementary.exp(elementwise.sub(x, safe))
        weight = elementwise.select(shape.broadcast(is_endless, dims, kept), among, weight)
        total = reduction.reduce_sum(weight, self.axes)
        out = elementwise.add(elementary.log(total), top)
        whole = elementwise.select(elementwise.eq(total, zero), one, total)
        share = elementwise.div(weight, shape.broadcast(whole, dims, kept))
        return out, reduction.reduce_sum(elementwise.mul(t, share), self.axes)


def softmax(x: Any, axes: Sequence[int]) -> Any:
    """exp(x) scaled to sum to one over axes."""
    return bind(Softmax(tuple(axes)), x)


def logsumexp(x: Any, axes: Sequence[int]) -> Any:
    """log(sum(exp(x))) over axes."""
    return bind(Logsumexp(tuple(axes)), x)
