"""Softmax, log-softmax and log-sum-exp as single ops.

Their derivative rules are shorter and more stable than those of the ops they consist of. Each op lowers to operations
that the CPU compiler fuses into one kernel; no operation is a comparison, a selection or a test for infinity, which
would split the kernel.
"""

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
    """Base class of ops on floating-point arrays over `axes`."""

    emitted_from = 2**16

    axes: tuple[int, ...]

    def check(self, x: ArrayType) -> None:
        if x.kind != "f":
            raise TypeError(f"{self.name}: operands must be floating; got {x}.")
        if any(not 0 <= a < x.ndim for a in self.axes) or len(set(self.axes)) != len(self.axes):
            raise TypeError(f"{self.name}: axes must be different axes of {x}; got {self.axes}.")

    def kept(self, ndim: int) -> tuple[int, ...]:
        return tuple([a for a in range(ndim) if a not in self.axes])

    def largest(self, x: Any) -> Any:
        """The largest element, without a test for NaN, which the sums propagate."""
        return bind(reduction.ReduceMax(self.axes, True), x)

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(type(self)(tuple([a + 1 for a in self.axes])), x)


class _SameShape(_OverAxes):
    """Base class of ops whose result has the type of x."""

    def result_type(self, x: ArrayType) -> ArrayType:
        self.check(x)
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(self._compute, x) if x.type.size else x

    def _compute(self, x: Any) -> Any:
        raise NotImplementedError


class Softmax(_SameShape):
    """exp(x) divided by its sum over `axes`."""

    def _compute(self, x: Any) -> Any:
        t = type_of(x)
        axes = self.kept(t.ndim)
        top = self.largest(x)
        weight = elementary.exp(elementwise.sub(x, shape.broadcast(top, t.shape, axes)))
        total = reduction.reduce_sum(weight, self.axes)
        return elementwise.div(weight, shape.broadcast(total, t.shape, axes))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        scaled = elementwise.mul(t, out)
        total = elementwise.neg(reduction.reduce_sum(scaled, self.axes))  # negate the smaller array
        spread = shape.broadcast(total, type_of(x).shape, self.kept(type_of(x).ndim))
        return out, elementwise.add(scaled, elementwise.mul(spread, out))  # the transpose is out * (t - sum(t * out))


class LogSoftmax(_SameShape):
    """x minus the logarithm of the sum of exp(x) over `axes`, accurate for small probabilities.

    The result is NaN if an element is plus infinity, or all are minus infinity.
    """

    def _compute(self, x: Any) -> Any:
        shifted, _, total = self._parts(x)
        return elementwise.sub(
            shifted, shape.broadcast(elementary.log(total), type_of(x).shape, self.kept(type_of(x).ndim))
        )

    def _parts(self, x: Any) -> tuple[Any, Any, Any]:
        """x minus its maximum, which keeps small logarithms accurate, the exponential of that, and its sum."""
        t = type_of(x)
        shifted = elementwise.sub(x, shape.broadcast(self.largest(x), t.shape, self.kept(t.ndim)))
        weight = elementary.exp(shifted)
        return shifted, weight, reduction.reduce_sum(weight, self.axes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        dims, axes = type_of(x).shape, self.kept(type_of(x).ndim)
        _, weight, total = self._parts(x)  # the compiler merges these with the result (CSE)
        moved = elementwise.div(reduction.reduce_sum(elementwise.mul(t, weight), self.axes), elementwise.neg(total))
        return bind(self, x), elementwise.add(t, shape.broadcast(moved, dims, axes))


class Logsumexp(_OverAxes):
    """log(sum(exp(x))) over `axes`, without overflow."""

    def result_type(self, x: ArrayType) -> ArrayType:
        self.check(x)
        return x.with_shape(tuple([x.shape[a] for a in self.kept(x.ndim)]))

    def lower(self, build: Any, x: Any) -> Any:
        return build.apply(self._compute, x)

    def _compute(self, x: Any) -> Any:
        t = type_of(x)
        top = self.largest(x)
        safe = elementwise.select(elementary.is_finite(top), top, np.zeros((), t.dtype))
        weight = elementary.exp(elementwise.sub(x, shape.broadcast(safe, t.shape, self.kept(t.ndim))))
        return elementwise.add(elementary.log(reduction.reduce_sum(weight, self.axes)), safe)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        dims, axes, dtype = type_of(x).shape, self.kept(type_of(x).ndim), type_of(x).dtype
        most = np.asarray(reduction.dtypes_limit(dtype, "max"), dtype)
        top = self.largest(x)
        # infinities are replaced by the largest finite numbers: plus infinities share all of the weight, and if all
        # elements are minus infinity, they have no weight
        safe = elementwise.maximum(elementwise.minimum(top, most), -most)
        weight = elementary.exp(elementwise.sub(elementwise.minimum(x, most), shape.broadcast(safe, dims, axes)))
        total = reduction.reduce_sum(weight, self.axes)
        whole = elementwise.maximum(total, np.ones((), dtype))
        share = elementwise.div(weight, shape.broadcast(whole, dims, axes))
        out = elementwise.add(elementary.log(total), top)
        return out, reduction.reduce_sum(elementwise.mul(t, share), self.axes)


def softmax(x: Any, axes: Sequence[int]) -> Any:
    """exp(x) divided by its sum over axes."""
    return bind(Softmax(tuple(axes)), x)


def log_softmax(x: Any, axes: Sequence[int]) -> Any:
    """The logarithm of softmax over axes."""
    return bind(LogSoftmax(tuple(axes)), x)


def logsumexp(x: Any, axes: Sequence[int]) -> Any:
    """log(sum(exp(x))) over axes."""
    return bind(Logsumexp(tuple(axes)), x)
