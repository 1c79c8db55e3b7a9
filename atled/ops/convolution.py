"""Convolution in any number of dimensions, with strides, padding, dilation of both operands, and groups.

With feature groups, block g of the output features depends on block g of the input features; with batch groups, it
depends on block g of the batch. The transpose and batching rules turn one kind of group into the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear
from atled.ops import conversion, shape
from atled.ops.contraction import PLAIN_PRECISIONS


class ConvAxes(NamedTuple):
    """The axes of input and output, as (batch, feature, *spatial), and of the kernel, as (output, input, *spatial)."""

    x: tuple[int, ...]
    kernel: tuple[int, ...]
    out: tuple[int, ...]


class Convolution(LinearOp):
    """The cross-correlation of x with a kernel."""

    linear_in = ((0,), (1,))
    emitted_from = 2**14  # the compiler transposes operands whose axes are in another order than its kernels'
    axes: ConvAxes
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    x_dilation: tuple[int, ...]
    kernel_dilation: tuple[int, ...]
    feature_groups: int = 1
    batch_groups: int = 1
    precision: str | None = None
    result: Any = None

    def result_type(self, x: ArrayType, kernel: ArrayType) -> ArrayType:
        n = len(self.strides)
        if x.ndim != n + 2 or kernel.ndim != n + 2:
            raise TypeError(f"conv: {n} spatial dimensions need operands with {n + 2} axes; got {x} and {kernel}.")
        if x.dtype is not kernel.dtype and self.result is None:
            raise TypeError(f"conv: operands must have the same dtype; got {x} and {kernel}.")
        features = x.shape[self.axes.x[1]]
        inputs, outputs = kernel.shape[self.axes.kernel[1]], kernel.shape[self.axes.kernel[0]]
        groups = f" in {self.feature_groups} groups" if self.feature_groups > 1 else ""
        if features != inputs * self.feature_groups:
            raise TypeError(
                f"conv: x has {features} features{groups}, the kernel takes {inputs}; got {x} (shape {x.shape}) "
                f"and {kernel} (shape {kernel.shape})."
                f"\n  try: a kernel whose axis {self.axes.kernel[1]} is {features // self.feature_groups} long, or "
                "other dimension_numbers if the features are on another axis."
            )
        if outputs % self.feature_groups or outputs % self.batch_groups or x.shape[self.axes.x[0]] % self.batch_groups:
            raise TypeError(f"conv: the number of groups must divide the features or the batch of {x} and {kernel}.")
        dims = [0] * (n + 2)
        dims[self.axes.out[0]] = x.shape[self.axes.x[0]] // self.batch_groups
        dims[self.axes.out[1]] = outputs
        for i in range(n):
            length = dilated(x.shape[self.axes.x[2 + i]], self.x_dilation[i]) + sum(self.padding[i])
            window = dilated(kernel.shape[self.axes.kernel[2 + i]], self.kernel_dilation[i])
            dims[self.axes.out[2 + i]] = max(0, (length - window) // self.strides[i] + 1) if length >= window else 0
        return ArrayType(tuple(dims), self.result or x.dtype)

    def lower(self, build: Any, x: Any, kernel: Any) -> Any:
        out = self.result_type(x.type, kernel.type)
        if 0 in (out.size, x.type.size, kernel.type.size):  # the compiler rejects empty convolutions
            return build.apply(lambda: shape.zeros(out))
        if self.batch_groups > 1 and build.is_spread:  # the partitioner sums twice if the summed axis is split
            groups, a = self.batch_groups, self.axes
            x = build.apply(lambda v: _move_groups(v, a.x[0], a.x[1], groups), x)
            return self._grouped(groups, 1).lower(build, x, kernel)
        work = out
        if build.platform == "cpu" and out.kind == "f":
            common = max((x.type.dtype, kernel.type.dtype, out.dtype, dtypes.float32), key=dtypes.bits)
            x, kernel = (
                build.apply(lambda v: conversion.convert(v, common), v) if v.type.dtype is not common else v
                for v in (x, kernel)
            )
            work = out.with_dtype(common)
        attributes: dict[str, Any] = {
            "dimension_numbers": (
                f"#stablehlo.conv<{_spec(self.axes.x, 'bf')}x{_spec(self.axes.kernel, 'oi')}"
                f"->{_spec(self.axes.out, 'bf')}>"
            ),
            "window_strides": self.strides,
            "padding": np.array(self.padding, np.int64).reshape(-1, 2),
            "lhs_dilation": self.x_dilation,
            "rhs_dilation": self.kernel_dilation,
            "feature_group_count": self.feature_groups,
            "batch_group_count": self.batch_groups,
        }
        if self.precision in PLAIN_PRECISIONS:  # dot algorithms do not apply to convolutions
            attributes["precision_config"] = (f"#stablehlo<precision {self.precision}>",) * 2
        convolved = build.emit("stablehlo.convolution", (x, kernel), (work,), attributes)
        return convolved if work is out else build.apply(lambda v: conversion.convert(v, out.dtype), convolved)

    def transpose(self, cotangent: Any, x: Any, kernel: Any) -> Any:
        is_empty = 0 in [type_of(v).size for v in (cotangent, x, kernel)]
        if type(x) is Linear:
            return shape.zeros(x.type) if is_empty else self._to_x(cotangent, x.type, kernel), None
        return None, shape.zeros(kernel.type) if is_empty else self._to_kernel(cotangent, x, kernel.type)

    def _to_x(self, cotangent: Any, x: ArrayType, kernel: Any) -> Any:
        a, k = self.axes, type_of(kernel)
        groups = max(self.feature_groups, self.batch_groups)
        # swap the kernel's input and output features inside each group
        kernel = _move_groups(kernel, a.kernel[0], a.kernel[1], groups)
        kernel = shape.reverse(kernel, a.kernel[2:])
        padding = []
        for i, (low, _) in enumerate(self.padding):
            window = dilated(k.shape[a.kernel[2 + i]], self.kernel_dilation[i])
            length = dilated(x.shape[a.x[2 + i]], self.x_dilation[i])
            seen = dilated(type_of(cotangent).shape[a.out[2 + i]], self.strides[i])
            start = window - 1 - low
            padding.append((start, window + length - 1 - start - seen))
        axes = ConvAxes(a.out, (a.kernel[1], a.kernel[0], *a.kernel[2:]), a.x)
        dtype = None if type_of(cotangent).dtype is type_of(kernel).dtype is x.dtype else x.dtype
        op = Convolution(
            axes, self.x_dilation, tuple(padding), self.strides, self.kernel_dilation, groups, 1, self.precision, dtype
        )
        out = bind(op, cotangent, kernel)
        return _move_groups(out, a.x[1], a.x[0], groups) if self.batch_groups > 1 else out

    def _to_kernel(self, cotangent: Any, x: Any, kernel: ArrayType) -> Any:
        a, t = self.axes, type_of(x)
        padding = []
        for i, (low, _) in enumerate(self.padding):
            reach = dilated(type_of(cotangent).shape[a.out[2 + i]], self.strides[i])
            span = dilated(kernel.shape[a.kernel[2 + i]], self.kernel_dilation[i])
            padding.append((low, reach + span - 1 - dilated(t.shape[a.x[2 + i]], self.x_dilation[i]) - low))
        # swap batch and features, because the sum runs over the batch
        swap = lambda spec: (spec[1], spec[0], *spec[2:])  # noqa: E731
        axes = ConvAxes(swap(a.x), swap(a.out), swap(a.kernel))
        dtype = None if type_of(cotangent).dtype is t.dtype is kernel.dtype else kernel.dtype
        op = Convolution(
            axes, self.kernel_dilation, tuple(padding), self.x_dilation, self.strides,
            self.batch_groups, self.feature_groups, self.precision, dtype,
        )  # fmt: skip
        return bind(op, x, cotangent)

    def batch(self, batched: tuple[bool, ...], x: Any, kernel: Any) -> Any:
        size = type_of(x if batched[0] else kernel).shape[0]
        a, fg, bg = self.axes, self.feature_groups, self.batch_groups
        if size == 0:  # an empty axis cannot be split into groups
            one = [ArrayType(t.shape[1:], t.dtype) if b else t for t, b in zip(map(type_of, (x, kernel)), batched)]
            out = self.result_type(*one)
            return shape.zeros(ArrayType((0, *out.shape), out.dtype))
        if all(batched):
            if bg > 1:
                x, bg = _absorb(x, a.x[0], 1), bg * size
            else:
                x, fg = _absorb(x, a.x[1], 1), fg * size
            kernel = _absorb(kernel, a.kernel[0], 1)
            return _release(bind(self._grouped(fg, bg), x, kernel), a.out[1], 1, size)
        if batched[0]:
            return _release(bind(self, _absorb(x, a.x[0], bg), kernel), a.out[0], 1, size)
        groups = max(fg, bg)
        return _release(bind(self, x, _absorb(kernel, a.kernel[0], groups)), a.out[1], groups, size)

    def _grouped(self, feature_groups: int, batch_groups: int) -> Convolution:
        return Convolution(
            self.axes, self.strides, self.padding, self.x_dilation, self.kernel_dilation,
            feature_groups, batch_groups, self.precision, self.result,
        )  # fmt: skip


def dilated(length: int, dilation: int) -> int:
    """The length of an axis after dilation."""
    return (length - 1) * dilation + 1 if length > 0 else 0


def _spec(axes: Sequence[int], letters: str) -> str:
    names = [""] * len(axes)
    for name, axis in zip([*letters, *map(str, range(len(axes) - 2))], axes, strict=True):
        names[axis] = name
    return f"[{', '.join(names)}]"


def _move_groups(x: Any, source: int, target: int, groups: int) -> Any:
    """Move a factor of `groups` from the front of one axis to the front of another."""
    if groups == 1:
        return x
    dims = list(type_of(x).shape)
    split = [*dims[:source], groups, dims[source] // groups, *dims[source + 1 :]]
    x = shape.reshape(x, split)
    at = target + (target > source)  # the index of the target axis after the split
    order = [i for i in range(len(split)) if i != source]
    order.insert(order.index(at), source)
    dims[source] //= groups
    dims[target] *= groups
    return shape.reshape(shape.transpose(x, order), dims)


def _absorb(x: Any, axis: int, groups: int) -> Any:
    """Merge a leading batch axis into another axis, inside each of its groups."""
    dims = list(type_of(x).shape)
    size, rest = dims[0], dims[1:]
    split = [size, *rest[:axis], groups, rest[axis] // groups, *rest[axis + 1 :]]
    order = [*range(1, axis + 2), 0, *range(axis + 2, len(split))]
    rest[axis] *= size
    return shape.reshape(shape.transpose(shape.reshape(x, split), order), rest)


def _release(x: Any, axis: int, groups: int, size: int) -> Any:
    """The inverse of `_absorb`."""
    dims = list(type_of(x).shape)
    inner = dims[axis] // (groups * size)
    split = [*dims[:axis], groups, size, inner, *dims[axis + 1 :]]
    order = [axis + 1, *range(axis + 1), *range(axis + 2, len(split))]
    dims[axis] //= size
    return shape.reshape(shape.transpose(shape.reshape(x, split), order), (size, *dims))
