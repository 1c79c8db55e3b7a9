"""Linear ops that move elements: reshape, broadcast, transpose, concatenate, split, pad, reverse, slice; also `Iota`,
`Constant` and `OptimizationBarrier`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes, error_hints
from atled.core.array import Array, type_of
from atled.core.basic_ops import arithmetic
from atled.core.op import Op, instantiate
from atled.core.program import Program, Var
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import elementwise
from atled.ops.mask_rules import Moving


class Reshape(Moving):
    """x in another shape, with its elements in row-major order."""

    is_fusible = True
    shape: tuple[int, ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        if prod(self.shape) != x.size:
            raise TypeError(
                f"reshape: the number of elements must stay the same; got {x} (shape {x.shape}, {x.size} elements) "
                f"for shape {self.shape}, {prod(self.shape)} elements."
                "\n  try: -1 for one of the lengths, which is then inferred from the others."
            )
        return x.with_shape(self.shape)

    def lower(self, build: Any, x: Any) -> Any:
        return build.emit("stablehlo.reshape", (x,), (self.result_type(x.type),))

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (reshape(cotangent, x.type.shape),)

    def batch(self, batched: Any, x: Any) -> Any:
        return reshape(x, (type_of(x).shape[0], *self.shape))


class Broadcast(Moving):
    """x broadcast to a shape: axis i of x becomes axis `axes[i]`, and axes of length 1 are stretched."""

    is_fusible = True
    only_spreads = True
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        fits = len(self.axes) == x.ndim and all(
            n in (1, self.shape[a]) for n, a in zip(x.shape, self.axes, strict=True)
        )
        if not fits:
            raise TypeError(f"broadcast: {x} with axes at {self.axes} does not fit into shape {self.shape}.")
        return x.with_shape(self.shape)

    def lower(self, build: Any, x: Any) -> Any:
        if x.handle is None:
            return build.constant(x.literal, x.type.with_shape(self.shape))
        out = build.broadcast(x, self.shape, self.axes)
        return type(x)(out.handle, self.result_type(x.type))

    def transpose(self, cotangent: Any, x: Any) -> Any:
        added = [a for a in range(len(self.shape)) if a not in self.axes]
        stretched = [a for n, a in zip(x.type.shape, self.axes, strict=True) if n == 1 and self.shape[a] != 1]
        out = arithmetic.sum(cotangent, tuple(added + stretched))
        return (reshape(out, x.type.shape),)

    def batch(self, batched: Any, x: Any) -> Any:
        return broadcast(x, (type_of(x).shape[0], *self.shape), (0, *[a + 1 for a in self.axes]))


class Transpose(Moving):
    """x with its axes permuted: axis i of the result is axis `permutation[i]` of x."""

    is_fusible = True
    emitted_from = 2**20
    permutation: tuple[int, ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        if sorted(self.permutation) != list(range(x.ndim)):
            raise TypeError(f"transpose: {self.permutation} is not a permutation of the axes of {x}.")
        return x.with_shape(tuple([x.shape[a] for a in self.permutation]))

    def lower(self, build: Any, x: Any) -> Any:
        return build.emit("stablehlo.transpose", (x,), (self.result_type(x.type),), {"permutation": self.permutation})

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (transpose(cotangent, tuple(np.argsort(self.permutation).tolist())),)

    def batch(self, batched: Any, x: Any) -> Any:
        return transpose(x, (0, *[a + 1 for a in self.permutation]))


def _fit_along(axis: int, x: ArrayType, y: ArrayType) -> bool:
    return (x.shape[:axis], x.shape[axis + 1 :]) == (y.shape[:axis], y.shape[axis + 1 :]) and x.ndim == y.ndim


class Concatenate(Moving):
    """Arrays concatenated along an axis."""

    is_fusible = True
    selects = True
    axis: int

    def linear_groups(self, count: int) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(count)),)

    def result_type(self, *xs: ArrayType) -> ArrayType:
        first = xs[0]
        if not 0 <= self.axis < first.ndim:
            raise TypeError(f"concatenate: {first} has no axis {self.axis}.")
        rest = [(x.dtype, x.shape[: self.axis], x.shape[self.axis + 1 :]) for x in xs]
        if any(r != rest[0] for r in rest):
            shapes = ", ".join(map(repr, xs))
            axes = [a for a in range(first.ndim) if all([_fit_along(a, first, x) for x in xs])]
            way_out = "x[None] to add an axis, or stack for a new one."
            if axes:
                line = error_hints.called_with("{0}", f"axis={axes[0]}", function="concatenate")
                way_out = line or f"axis={axes[0]}, along which they fit."
            raise TypeError(
                f"concatenate: operands must have equal shapes except along axis {self.axis}; got {shapes}.\n "
                f" try: {way_out}"
            )
        length = sum([x.shape[self.axis] for x in xs])
        dims = (*first.shape[: self.axis], length, *first.shape[self.axis + 1 :])
        return ArrayType(dims, first.dtype, all([x.weak for x in xs]))

    def lower(self, build: Any, *xs: Any) -> Any:
        out = self.result_type(*[x.type for x in xs])
        return build.emit("stablehlo.concatenate", xs, (out,), {"dimension": self.axis})

    def transpose(self, cotangent: Any, *xs: Any) -> Any:
        out, start = [], 0
        for x in xs:
            stop = start + x.type.shape[self.axis]
            out.append(slice_in_axis(cotangent, start, stop, self.axis) if type(x) is Linear else None)
            start = stop
        return tuple(out)

    def batch(self, batched: tuple[bool, ...], *xs: Any) -> Any:
        size = next(type_of(x).shape[0] for x, b in zip(xs, batched, strict=True) if b)
        return concatenate([x if b else add_axis(x, size) for x, b in zip(xs, batched, strict=True)], self.axis + 1)


class Split(Moving):
    """x split along an axis into parts with given lengths."""

    is_fusible = True
    selects = True
    sizes: tuple[int, ...]
    axis: int
    gives_tuple = True

    def result_type(self, x: ArrayType) -> tuple[ArrayType, ...]:
        if not 0 <= self.axis < x.ndim or min(self.sizes) < 0 or sum(self.sizes) != x.shape[self.axis]:
            raise TypeError(f"split: axis {self.axis} of {x} cannot be cut into parts of {self.sizes}.")
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        return tuple([x.with_shape((*before, n, *after)) for n in self.sizes])

    def lower(self, build: Any, x: Any) -> Any:
        out, low = [], (0,) * x.type.ndim
        for part in self.result_type(x.type):
            high = tuple([a + n for a, n in zip(low, part.shape, strict=True)])
            attributes = {"start_indices": low, "limit_indices": high, "strides": (1,) * len(low)}
            out.append(build.emit("stablehlo.slice", (x,), (part,), attributes))
            low = tuple([high[a] if a == self.axis else 0 for a in range(len(low))])
        return tuple(out)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (concatenate([instantiate(c) for c in cotangent], self.axis),)

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(Split(self.sizes, self.axis + 1), x)


class Pad(Moving):
    """x with `padding[i] = (low, high, interior)` elements of a value added on axis i; low and high may be negative."""

    is_fusible = True
    selects = True
    padding: tuple[tuple[int, int, int], ...]
    linear_in = ((0, 1),)

    def result_type(self, x: ArrayType, value: ArrayType) -> ArrayType:
        if value.shape != () or value.dtype is not x.dtype:
            raise TypeError(f"pad: the padding value must be a scalar of the same dtype; got {x} and {value}.")
        if len(self.padding) != x.ndim or any(p[2] < 0 for p in self.padding):
            raise TypeError(f"pad: one (low, high, interior >= 0) is needed for each axis of {x}; got {self.padding}.")
        dims = tuple([lo + hi + n + max(n - 1, 0) * i for n, (lo, hi, i) in zip(x.shape, self.padding, strict=True)])
        if any(n < 0 for n in dims):
            raise TypeError(f"pad: {self.padding} removes more elements than {x} has.")
        return x.with_shape(dims)

    def lower(self, build: Any, x: Any, value: Any) -> Any:
        low, high, interior = zip(*self.padding, strict=True) if self.padding else ((), (), ())
        attributes = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
        return build.emit("stablehlo.pad", (x, value), (self.result_type(x.type, value.type),), attributes)

    def transpose(self, cotangent: Any, x: Any, value: Any) -> Any:
        inner = pad(cotangent, 0, [(-lo, -hi, 0) for lo, hi, _ in self.padding])
        dims = type_of(inner).shape
        inner = slice(inner, (0,) * len(dims), dims, tuple([i + 1 for _, _, i in self.padding]))
        axes = tuple(range(len(dims)))
        out = None
        if type(value) is Linear:
            out = elementwise.sub(arithmetic.sum(cotangent, axes), arithmetic.sum(inner, axes))
        return (inner if type(x) is Linear else None), out

    def batch(self, batched: tuple[bool, ...], x: Any, value: Any) -> Any:
        padding = ((0, 0, 0), *self.padding)
        if not batched[1]:
            return bind(Pad(padding), x, value)
        # one padding value per example: pad with zeros, and select the value where a padded mask is False
        size = type_of(value).shape[0]
        x = x if batched[0] else add_axis(x, size)
        mask = pad(broadcast(np.True_, type_of(x).shape, ()), False, padding)
        padded = pad(x, np.zeros((), type_of(x).dtype), padding)
        return elementwise.select(mask, padded, broadcast(value, type_of(padded).shape, (0,)))


class Reverse(Moving):
    """x reversed along some axes."""

    is_fusible = True
    axes: tuple[int, ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        if any(not 0 <= a < x.ndim for a in self.axes) or len({*self.axes}) != len(self.axes):
            raise TypeError(f"reverse: axes must be different axes of {x}; got {self.axes}.")
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return build.emit("stablehlo.reverse", (x,), (x.type,), {"dimensions": self.axes})

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (reverse(cotangent, self.axes),)

    def batch(self, batched: Any, x: Any) -> Any:
        return reverse(x, tuple([a + 1 for a in self.axes]))


class Slice(Moving):
    """The slice of x from `start` to `limit`, exclusive, with step `stride`, on each axis."""

    is_fusible = True
    selects = True
    start: tuple[int, ...]
    limit: tuple[int, ...]
    stride: tuple[int, ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        bounds = list(zip(self.start, self.limit, self.stride, strict=True))
        if len(bounds) != x.ndim or any(
            not (0 <= a <= b <= n and s > 0) for n, (a, b, s) in zip(x.shape, bounds, strict=False)
        ):
            raise TypeError(f"slice: {self.start} to {self.limit} by {self.stride} is not inside {x}.")
        return x.with_shape(tuple([-(-(b - a) // s) for a, b, s in bounds]))

    def lower(self, build: Any, x: Any) -> Any:
        attributes = {"start_indices": self.start, "limit_indices": self.limit, "strides": self.stride}
        return build.emit("stablehlo.slice", (x,), (self.result_type(x.type),), attributes)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        padding = []
        for n, m, a, s in zip(x.type.shape, type_of(cotangent).shape, self.start, self.stride, strict=True):
            covered = m + max(m - 1, 0) * (s - 1)
            padding.append((a, n - a - covered, s - 1))
        return (pad(cotangent, 0, padding),)

    def batch(self, batched: Any, x: Any) -> Any:
        return slice(x, (0, *self.start), (type_of(x).shape[0], *self.limit), (1, *self.stride))


class Iota(Op):
    """An array with the values 0, 1, 2, ... along one axis."""

    shape: tuple[int, ...]
    dtype: Any
    axis: int

    def result_type(self) -> ArrayType:
        return ArrayType(self.shape, self.dtype)

    def lower(self, build: Any) -> Any:
        return build.emit("stablehlo.iota", (), (self.result_type(),), {"iota_dimension": self.axis})


class Constant(Op):
    """A small constant array that a rule needs. The user's arrays are inputs of programs, never constants."""

    data: bytes
    shape: tuple[int, ...]
    dtype: Any

    def result_type(self) -> ArrayType:
        return ArrayType(self.shape, self.dtype)

    def lower(self, build: Any) -> Any:
        return build.constant(np.frombuffer(self.data, self.dtype).reshape(self.shape), self.result_type())


class OptimizationBarrier(Op):
    """The operands unchanged, behind a barrier across which the compiler moves no op."""

    gives_tuple = True
    takes_keys = True

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return types

    def lower(self, build: Any, *operands: Any) -> Any:
        if build.platform == "cpu" and build.is_nested:  # XLA outlines small loops, and fails on barriers
            inputs = tuple([Var(x.type) for x in operands])
            return build.call(Program(inputs, [], inputs, "barrier"), operands, is_closed=True)
        out = build.emit("stablehlo.optimization_barrier", operands, [x.type for x in operands])
        return out if type(out) is tuple else (out,)

    def linear_groups(self, count: int) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(count)),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        given = [t for t in tangents if type(t) is not Zero]
        moved = iter(bind(self, *given))
        return bind(self, *primals), tuple([t if type(t) is Zero else next(moved) for t in tangents])

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        given = [c for c in cotangent if type(c) is not Zero]
        moved = iter(bind(self, *given))
        return tuple([c if type(c) is Zero else next(moved) for c in cotangent])

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *values), tuple(masks)

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        size = next(type_of(x).shape[0] for x, b in zip(operands, batched, strict=True) if b)
        return bind(self, *[x if b else add_axis(x, size) for x, b in zip(operands, batched, strict=True)])


# -- functions --------------------------------------------------------------------------------------------------------


def reshape(x: Any, shape: Sequence[int]) -> Any:
    """x in another shape, with its elements in row-major order."""
    shape = tuple(shape)
    return x if type_of(x).shape == shape and isinstance(x, Array) else bind(Reshape(shape), x)


def broadcast(x: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """x broadcast to a shape, in which its axes are `axes`."""
    shape = tuple(shape)
    if type_of(x).shape == shape and isinstance(x, Array):
        return x
    return bind(Broadcast(shape, tuple(axes)), x)


def add_axis(x: Any, size: int) -> Any:
    """x repeated along a new leading axis."""
    t = type_of(x)
    return broadcast(x, (size, *t.shape), tuple(range(1, t.ndim + 1)))


def full(type: ArrayType, value: Any) -> Any:
    """An array of a type, filled with one value."""
    return broadcast(np.asarray(value, type.dtype), type.shape, ())


def zeros(type: ArrayType) -> Any:
    """An array of zeros of a type."""
    return full(type, 0)


def transpose(x: Any, permutation: Sequence[int]) -> Any:
    """x with its axes permuted."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))) and isinstance(x, Array):
        return x
    return bind(Transpose(permutation), x)


def move_axis(x: Any, source: int, target: int) -> Any:
    """x with one axis moved."""
    order = [a for a in range(type_of(x).ndim) if a != source]
    order.insert(target, source)
    return transpose(x, order)


def concatenate(xs: Sequence[Any], axis: int) -> Any:
    """Arrays concatenated along an axis."""
    xs = list(xs)
    return xs[0] if len(xs) == 1 else bind(Concatenate(axis), *xs)


def split(x: Any, sizes: Sequence[int], axis: int) -> tuple[Any, ...]:
    """x split along an axis into parts with given lengths."""
    sizes = tuple(sizes)
    return (x,) if sizes == (type_of(x).shape[axis],) and isinstance(x, Array) else bind(Split(sizes, axis), x)


def pad(x: Any, value: Any, padding: Sequence[tuple[int, int, int]]) -> Any:
    """x padded with (low, high, interior) elements on each axis; negative low and high remove elements."""
    padding = tuple([(int(lo), int(hi), int(i)) for lo, hi, i in padding])
    if not any([any(p) for p in padding]) and isinstance(x, Array):
        return x
    return bind(Pad(padding), *elementwise.match(x, value))


def reverse(x: Any, axes: Sequence[int]) -> Any:
    """x reversed along some axes."""
    return bind(Reverse(tuple(axes)), x) if axes else x


def slice(x: Any, start: Sequence[int], limit: Sequence[int], stride: Sequence[int] | None = None) -> Any:
    """The slice of x from `start` to `limit`, exclusive, with a stride, on each axis."""
    start, limit = tuple(start), tuple(limit)
    stride = (1,) * len(start) if stride is None else tuple(stride)
    if limit == type_of(x).shape and not any(start) and all([s == 1 for s in stride]) and isinstance(x, Array):
        return x
    return bind(Slice(start, limit, stride), x)


def slice_in_axis(x: Any, start: int, limit: int, axis: int, stride: int = 1) -> Any:
    """The slice of x from `start` to `limit`, exclusive, along one axis."""
    dims = type_of(x).shape
    starts, limits, strides = [0] * len(dims), list(dims), [1] * len(dims)
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice(x, starts, limits, strides)


def index_in_axis(x: Any, index: int, axis: int, keep: bool = False) -> Any:
    """The slice of x at one index of an axis, which is removed unless `keep`."""
    out = slice_in_axis(x, index, index + 1, axis)
    dims = type_of(out).shape
    return out if keep else reshape(out, (*dims[:axis], *dims[axis + 1 :]))


def iota(dtype: Any, shape: Sequence[int], axis: int) -> Any:
    """An array of a shape with the values 0, 1, 2, ... along one axis."""
    shape, dtype = tuple(shape), dtypes.canonical(dtype)
    if not 0 <= axis < len(shape):
        raise TypeError(f"iota: shape {shape} has no axis {axis}.")
    if dtypes.kind(dtype) not in "iufc":
        raise TypeError(f"iota: a numeric dtype is needed; got {dtype.name}.")
    return bind(Iota(shape, dtype, axis))


def constant(value: Any) -> Any:
    """A small NumPy array as a constant of the program."""
    return bind(constant_op(value))


def constant_op(value: Any) -> Constant:
    """The `Constant` op with the data of an array."""
    value = np.asarray(value)
    return Constant(value.tobytes(), value.shape, dtypes.canonical(value.dtype))


def optimization_barrier(*operands: Any) -> tuple[Any, ...]:
    """The operands unchanged, behind a barrier across which the compiler moves no op."""
    return bind(OptimizationBarrier(), *operands)


arithmetic.broadcast = broadcast
arithmetic.zeros = zeros
arithmetic.constant = constant_op
