"""Cumulative ops along an axis, and the associative scan that computes them.

The scan is Blelloch's: log2(n) rounds of slices and of elementwise combination of pairs. The derivative of a nonlinear
cumulative op scans pairs of a value and its tangent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from atled.core.array import type_of
from atled.core.op import LinearOp, Op
from atled.core.tangent_mask import ALL, SUMS, Mask
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.ops import elementary, elementwise, shape, special

SHORT = 16  # axes up to this length are combined in order


class Cumulative(Op):
    """Base class: element i of the result combines elements 0 to i along `axis`, or i to the last if `is_reversed`."""

    takes: ClassVar[str] = "iufc"
    axis: int
    is_reversed: bool = False

    def result_type(self, x: ArrayType) -> ArrayType:
        if x.kind not in self.takes:
            raise TypeError(f"{self.name}: this op is not defined for {x}.")
        if not 0 <= self.axis < x.ndim:
            raise TypeError(f"{self.name}: {x} has no axis {self.axis}.")
        return x

    def combine(self, x: Any, y: Any) -> Any:
        """Combine the results of two adjacent ranges of elements, the earlier one first."""
        raise NotImplementedError

    def combine_pairs(self, p: Any, q: Any) -> Any:
        """Like `combine`, for pairs of a value and its tangent."""
        raise NotImplementedError

    def lower(self, build: Any, x: Any) -> Any:
        if x.type.size == 0:
            return x
        return build.apply(lambda v: self._scan(lambda p, q: (self.combine(p[0], q[0]),), (v,))[0], x)

    def _scan(self, combine: Any, xs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Scan short axes in order: partial results of a tree may overflow or lose digits where prefixes do not."""
        way = in_order if type_of(xs[0]).shape[self.axis] <= SHORT else scan
        return way(combine, xs, self.axis, self.is_reversed)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        if type_of(x).size == 0:
            return bind(self, x), t
        return bind(self, x), self._scan(self.combine_pairs, (x, t))[1]

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(type(self)(self.axis + 1, self.is_reversed), x)


class Cumsum(Cumulative, LinearOp):
    """Cumulative sums."""

    def combine(self, x: Any, y: Any) -> Any:
        return elementwise.add(x, y)

    jvp = LinearOp.jvp  # pyright: ignore[reportAssignmentType]

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (cumsum(cotangent, self.axis, not self.is_reversed),)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        out, (mask,) = bind(self, *values), masks
        so_far = lambda: bind(Cummax(self.axis, self.is_reversed), mask.get())  # noqa: E731
        return out, ALL if mask is ALL or mask.reach < SUMS else Mask(so_far)


class Cumprod(Cumulative):
    """Cumulative products."""

    def combine(self, x: Any, y: Any) -> Any:
        return elementwise.mul(x, y)

    def combine_pairs(self, p: Any, q: Any) -> Any:
        (x, s), (y, t) = p, q
        return elementwise.mul(x, y), elementwise.add(elementwise.mul(s, y), elementwise.mul(t, x))


class Cummax(Cumulative):
    """Cumulative maxima."""

    takes = "biuf"
    selects = True

    def combine(self, x: Any, y: Any) -> Any:
        return elementwise.maximum(x, y)

    def combine_pairs(self, p: Any, q: Any) -> Any:
        return _pick(p, q, elementwise.ge)


class Cummin(Cumulative):
    """Cumulative minima."""

    takes = "biuf"
    selects = True

    def combine(self, x: Any, y: Any) -> Any:
        return elementwise.minimum(x, y)

    def combine_pairs(self, p: Any, q: Any) -> Any:
        return _pick(p, q, elementwise.le)


def _pick(p: Any, q: Any, wins: Callable[[Any, Any], Any]) -> Any:
    """The pair with the greater (or smaller) value; a NaN if there is one, and the earlier pair on a tie."""
    (x, s), (y, t) = p, q
    first = elementwise.logical_or(wins(x, y), elementwise.ne(x, x))
    return elementwise.select(first, x, y), bind(elementwise.GateTangent(), first, s, t)


class Cumlogsumexp(Cumulative):
    """Cumulative log(sum(exp(x)))."""

    takes = "f"

    def combine(self, x: Any, y: Any) -> Any:
        return special.logaddexp(x, y, refined=False)

    def combine_pairs(self, p: Any, q: Any) -> Any:
        (x, s), (y, t) = p, q
        out = special.logaddexp(x, y, refined=False)
        left, right = (_weight(v, out) for v in (x, y))
        return out, elementwise.add(elementwise.mul(s, left), elementwise.mul(t, right))


def _weight(x: Any, out: Any) -> Any:
    """exp(x - out), which is 1 where x is infinite, and 0 where both are minus infinity."""
    zero, inf, low = (np.asarray(v, type_of(x).dtype) for v in (0, np.inf, -np.inf))
    below = elementwise.sub(x, elementwise.select(elementwise.eq(out, low), zero, out))
    return elementary.exp(elementwise.select(elementwise.eq(x, inf), zero, below))


def in_order(combine: Callable[..., tuple[Any, ...]], xs: tuple[Any, ...], axis: int, is_reversed: bool) -> Any:
    """The inclusive scan of arrays along an axis with a function of tuples, one element after the other."""
    n = type_of(xs[0]).shape[axis]
    items = [tuple([shape.slice_in_axis(x, i, i + 1, axis) for x in xs]) for i in range(n)]
    ordered = list(itertools.accumulate(reversed(items) if is_reversed else items, combine))
    columns = zip(*(reversed(ordered) if is_reversed else ordered), strict=True)
    return tuple([shape.concatenate(column, axis) for column in columns])


def scan(
    combine: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]],
    xs: tuple[Any, ...],
    axis: int,
    is_reversed: bool = False,
) -> tuple[Any, ...]:
    """The inclusive scan of arrays along an axis with an associative function of tuples."""
    if is_reversed:
        turned = tuple([shape.reverse(x, (axis,)) for x in xs])
        out = scan(lambda p, q: combine(p, q), turned, axis)
        return tuple([shape.reverse(x, (axis,)) for x in out])
    n = type_of(xs[0]).shape[axis]
    if n < 2:
        return xs
    cut = lambda start, stop, step, vs: tuple([shape.slice_in_axis(v, start, stop, axis, step) for v in vs])  # noqa: E731
    even = n - n % 2
    pairs = combine(cut(0, even, 2, xs), cut(1, even, 2, xs))
    odd = scan(combine, pairs, axis)  # the results at indices 1, 3, 5, ...
    half = type_of(odd[0]).shape[axis]
    before = cut(0, half - (n % 2 == 0), 1, odd)
    rest = cut(2, n, 2, xs)
    later = combine(before, rest) if type_of(rest[0]).shape[axis] else rest  # the results at indices 2, 4, 6, ...
    first = cut(0, 1, 1, xs)
    out = []
    for f, a, b in zip(first, later, odd, strict=True):
        evens = shape.concatenate([f, a], axis) if type_of(a).shape[axis] else f
        out.append(_interleave(evens, b, axis))
    return tuple(out)


def _interleave(a: Any, b: Any, axis: int) -> Any:
    """a[0], b[0], a[1], b[1], ... along an axis; a is as long as b, or one longer."""
    dims = type_of(b).shape
    m = dims[axis]
    column = (*dims[: axis + 1], 1, *dims[axis + 1 :])
    pairs = [shape.reshape(shape.slice_in_axis(a, 0, m, axis), column), shape.reshape(b, column)]
    woven = shape.reshape(shape.concatenate(pairs, axis + 1), (*dims[:axis], 2 * m, *dims[axis + 1 :]))
    n = type_of(a).shape[axis]
    return woven if n == m else shape.concatenate([woven, shape.slice_in_axis(a, m, n, axis)], axis)


def cumsum(x: Any, axis: int, is_reversed: bool = False) -> Any:
    """Cumulative sums along an axis.

    >>> import atled.numpy as jnp
    >>> cumsum(jnp.array([3, 1, 2]), 0)
    Array([3, 4, 6], dtype=int32)
    """
    return bind(Cumsum(axis, is_reversed), x)


def cumprod(x: Any, axis: int, is_reversed: bool = False) -> Any:
    """Cumulative products along an axis.

    >>> import atled.numpy as jnp
    >>> cumprod(jnp.array([3, 1, 2]), 0)
    Array([3, 3, 6], dtype=int32)
    """
    return bind(Cumprod(axis, is_reversed), x)


def cummax(x: Any, axis: int, is_reversed: bool = False) -> Any:
    """Cumulative maxima along an axis.

    >>> import atled.numpy as jnp
    >>> cummax(jnp.array([1, 3, 2]), 0)
    Array([1, 3, 3], dtype=int32)
    """
    return bind(Cummax(axis, is_reversed), x)


def cummin(x: Any, axis: int, is_reversed: bool = False) -> Any:
    """Cumulative minima along an axis.

    >>> import atled.numpy as jnp
    >>> cummin(jnp.array([3, 1, 2]), 0)
    Array([3, 1, 1], dtype=int32)
    """
    return bind(Cummin(axis, is_reversed), x)


def cumlogsumexp(x: Any, axis: int, is_reversed: bool = False) -> Any:
    """Cumulative log(sum(exp(x))) along an axis.

    >>> import atled.numpy as jnp
    >>> cumlogsumexp(jnp.array([1000.0, 1000.0]), 0).round(1)
    Array([1000. , 1000.7], dtype=float32)
    """
    return bind(Cumlogsumexp(axis, is_reversed), x)
