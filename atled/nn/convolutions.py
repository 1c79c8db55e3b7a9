"""Layers that slide over one, two, three or more axes: `Conv`, and its transpose, `ConvTranspose`; and settings for
each axis.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors
from atled.core.array import Array, type_of
from atled.nn import initializers
from atled.nn.linear_layers import check_features, computing, kept, needed
from atled.nn.module import Module
from atled.nn.variable_kinds import Param

_MODES = {"CIRCULAR": "wrap", "REFLECT": "reflect", "REPLICATE": "edge"}  # paddings done by `numpy.pad`, and its modes


def for_each_axis(
    layer: str, what: str, given: Any, count: int | None = None, least: int | None = 1
) -> tuple[int, ...]:
    """Integers, one for each of `count` axes, from a single number or one for each axis."""
    try:
        listed = (given,) * (count or 1) if isinstance(given, (int, np.integer)) else tuple(given)
        per_axis = tuple([operator.index(n) for n in listed])
    except TypeError:
        raise TypeError(
            errors.explained(f"{layer}: {what} must be a whole number, or one for each axis; got {given!r}.")
        ) from None
    if not per_axis or len(per_axis) != (count or len(per_axis)):
        raise ValueError(errors.explained(f"{layer}: {what} must have an entry for each of {count} axes; got {given}."))
    if least is not None and min(per_axis) < least:
        raise ValueError(errors.explained(f"{layer}: {what} must be {least} or more; got {given}."))
    return per_axis


def padding_for_each_axis(layer: str, padding: Any, count: int, words: Sequence[str]) -> Any:
    """A normalized padding: one of the names, or (before, after) for each of `count` axes."""
    if isinstance(padding, str):
        if padding not in words:
            raise ValueError(
                errors.explained(
                    f"{layer}: padding is {', '.join(words)}, or pairs of numbers; got {padding!r}.",
                    f"{padding.upper() if padding.upper() in words else words[0]!r}.",
                )
            )
        return padding
    entries = (padding,) * count if isinstance(padding, (int, np.integer)) else padding
    if not isinstance(entries, Sequence) or len(entries) != count:
        raise ValueError(
            errors.explained(f"{layer}: padding must have an entry for each of {count} axes; got {padding!r}.")
        )
    return tuple([for_each_axis(layer, "padding", p, 2, None) for p in entries])


def check_places(layer: str, x: Any, count: int) -> None:
    """Raise unless an input has `count` spatial axes, a feature axis and optionally a batch axis."""
    t = type_of(x)
    if t.ndim not in (count + 1, count + 2):
        raise ValueError(
            errors.explained(
                f"{layer}: the input must have {count + 2} axes, or {count + 1} without a batch; got {t}.",
                f"size={(3,) * (t.ndim - 2)} for {t.ndim - 2} axes, or another shape of the input."
                if t.ndim > 2
                else "another shape of the input.",
            )
        )


class _Sliding(Module):
    """Base of `Conv` and `ConvTranspose`: sizes, input checks, dtypes, and the bias."""

    weight: Array
    bias: Array | None

    def _set(self, inputs: int, outputs: int, size: Any, stride: Any, dilation: Any, groups: int) -> None:
        name = type(self).__name__
        self.inputs, self.outputs, self.groups = int(inputs), int(outputs), int(groups)
        self.size = for_each_axis(name, "size", size)
        if groups < 1 or inputs % groups or outputs % groups:
            raise ValueError(
                errors.explained(
                    f"{name}: groups must divide inputs and outputs; got {groups} for {inputs}, {outputs}."
                )
            )
        self.stride = for_each_axis(name, "stride", stride, len(self.size))
        self.dilation = for_each_axis(name, "dilation", dilation, len(self.size))

    def __call__(self, x: Any) -> Any:
        """The output; without a batch axis if the input has none."""
        check_features(self, x, self.inputs)
        check_places(type(self).__name__, x, len(self.size))
        if type_of(x).ndim == len(self.size) + 1:
            return self(jnp.asarray(x)[None])[0]
        x, weight, bias = computing(self.dtype, x, self.weight, self.bias)
        dtype = jnp.result_type(x, weight)
        y = self._slid(x.astype(dtype), weight.astype(dtype))
        return y if bias is None else y + bias

    def _slid(self, x: Any, weight: Any) -> Any:
        raise NotImplementedError

    def _places(self) -> str:
        """Letters for the spatial axes."""
        n = len(self.size)
        return "DHW"[-n:] if n < 4 else "".join([chr(ord("a") + i) for i in range(n)])

    def _reach(self) -> list[int]:
        """The extent of a dilated window."""
        return [(k - 1) * d for k, d in zip(self.size, self.dilation, strict=True)]


class Conv(_Sliding):
    """A convolution of (batch, *spatial, features), with as many spatial axes as `size` has entries.

    `y[p] = bias + sum over q of x[stride * p + dilation * q - before] @ weight[q]`, with a weight of shape
    (*size, inputs / groups, outputs). With `groups=inputs` it is depthwise: each feature has its own `outputs /
    inputs` kernels.

    Args:
        size: the lengths of the window; one number for one axis.
        stride, dilation: strides of the window, and between elements in it; one number, or one for each axis.
        padding: the values beyond the ends. Zeros: "SAME" for as many outputs as inputs, divided by the stride; "VALID"
            for none; "CAUSAL" for padding only at the start, so that no output depends on later inputs; (before, after)
            for each axis, or a number for all. With the width of "SAME" at stride 1: "CIRCULAR" wraps around, "REFLECT"
            mirrors at the last element, "REPLICATE" repeats it.
        groups: number of feature groups that are convolved separately.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Conv(3, 8, (3, 3), stride=2, key=random.key(0))(jnp.ones((1, 32, 32, 3))).shape
    (1, 16, 16, 8)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int | Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: Any = "SAME",
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self._set(inputs, outputs, size, stride, dilation, groups)
        self.padding = padding_for_each_axis("Conv", padding, len(self.size), ("SAME", "VALID", "CAUSAL", *_MODES))
        draw, key = init or initializers.lecun_normal(), needed(self, key)
        self.weight = Param(draw(key, (*self.size, inputs // groups, outputs), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (outputs,), param_dtype)) if bias else None
        self.dtype = kept(dtype)

    def _slid(self, x: Any, weight: Any) -> Any:
        padding, reach = self.padding, self._reach()
        if padding == "CAUSAL":
            padding = [(r, 0) for r in reach]
        elif padding in _MODES:
            _check_long(self, type_of(x), reach)
            x = jnp.pad(x, [(0, 0), *[(r // 2, (r + 1) // 2) for r in reach], (0, 0)], _MODES[padding])
            padding = "VALID"
        places = self._places()
        return lax.conv_general_dilated(
            x, weight, self.stride, padding, rhs_dilation=self.dilation,
            dimension_numbers=(f"N{places}C", f"{places}IO", f"N{places}C"), feature_group_count=self.groups,
        )  # fmt: skip


def _check_long(layer: Conv, t: Any, reach: list[int]) -> None:
    """Raise an error for an axis that is shorter than its padding."""
    for n, r in zip(t.shape[1:-1], reach, strict=True):
        if n <= ((r + 1) // 2 if layer.padding == "REFLECT" else 0):
            raise ValueError(
                errors.explained(
                    f"Conv: an axis must be longer than the padding that {layer.padding} adds to an end; got {t} for "
                    f"windows of size {layer.size}.",
                    "padding='SAME', or a longer input.",
                )
            )


class ConvTranspose(_Sliding):
    """A transposed convolution, for upsampling: each input adds a window of `size` to the output.

    It is the transpose of `Conv(outputs, inputs, size, …)` with the same weight, of shape (*size, outputs / groups,
    inputs); PyTorch's `ConvTranspose2d`, and flax's with `transpose_kernel=True`. With n inputs along an axis, and
    windows of extent r = dilation * (size - 1) + 1, all windows together cover (n - 1) * stride + r positions.

    Args:
        size, stride, dilation, groups: those of the convolution that it is the transpose of.
        padding: how much of these positions is cropped. "SAME": n * stride are left. "VALID": nothing is cropped, and
            zeros are appended up to n * stride if windows are shorter than the stride. "CIRCULAR": positions beyond n *
            stride are added at the other end. (before, after) for each axis, or a number for all: crop that much; these
            are the paddings of the convolution, and PyTorch's. flax's pairs are r - 1 minus these.
        output_padding: how much less is cropped at the ends, if `padding` is numeric; one number, or one for each axis.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.ConvTranspose(8, 3, (4, 4), stride=2, padding=1, key=random.key(0))(jnp.ones((1, 16, 16, 8))).shape
    (1, 32, 32, 3)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int | Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: Any = "SAME",
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self._set(inputs, outputs, size, stride, dilation, groups)
        name, count = "ConvTranspose", len(self.size)
        self.padding = padding_for_each_axis(name, padding, count, ("SAME", "VALID", "CIRCULAR"))
        self.output_padding = for_each_axis(name, "output_padding", output_padding, count, 0)
        _check_output_padding(self)
        draw = init or initializers.variance_scaling(groups, "fan_in", "truncated_normal", in_axis=-1, out_axis=-2)
        self.weight = Param(draw(needed(self, key), (*self.size, outputs // groups, inputs), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (outputs,), param_dtype)) if bias else None
        self.dtype = kept(dtype)

    def _slid(self, x: Any, weight: Any) -> Any:
        n, reach, cut = len(self.size), self._reach(), _cut(self)
        _check_left(self, type_of(x), reach, cut)
        if self.groups > 1:  # groups are along the outputs of a weight
            split = weight.reshape(*self.size, -1, self.groups, self.inputs // self.groups)
            weight = jnp.swapaxes(split, n, n + 2).reshape(*self.size, -1, self.outputs)
        places, order = self._places(), "OI" if self.groups == 1 else "IO"
        y = lax.conv_general_dilated(
            x, jnp.flip(weight, tuple(range(n))), (1,) * n,
            [(r - a, r - b) for r, (a, b) in zip(reach, cut, strict=True)], self.stride, self.dilation,
            (f"N{places}C", f"{places}{order}", f"N{places}C"), self.groups,
        )  # fmt: skip
        if self.padding == "CIRCULAR":
            for axis, (m, s, r) in enumerate(zip(type_of(x).shape[1:-1], self.stride, reach, strict=True), 1):
                y = _wrapped(y, axis, m * s, r // 2)
        return y


def _cut(layer: ConvTranspose) -> list[tuple[int, int]]:
    """How much is cropped at the ends of each axis; negative for appended zeros."""
    over = [r + 1 - s for r, s in zip(layer._reach(), layer.stride, strict=True)]
    if layer.padding == "SAME":
        return [(max(m, 0) // 2, m - max(m, 0) // 2) for m in over]
    if isinstance(layer.padding, str):
        return [(0, min(m, 0) if layer.padding == "VALID" else 0) for m in over]
    return [(a, b - more) for (a, b), more in zip(layer.padding, layer.output_padding, strict=True)]


def _check_output_padding(layer: ConvTranspose) -> None:
    """Raise an error for invalid output_padding."""
    if any(layer.output_padding) and isinstance(layer.padding, str):
        raise ValueError(
            errors.explained(
                f"ConvTranspose: output_padding needs numeric padding; got {layer.padding!r}.", "padding=0."
            )
        )
    if any([p >= max(s, d) for p, s, d in zip(layer.output_padding, layer.stride, layer.dilation, strict=True)]):
        raise ValueError(
            errors.explained(
                "ConvTranspose: output_padding must be less than the stride or the dilation; got "
                f"{layer.output_padding} for stride {layer.stride} and dilation {layer.dilation}.",
                "padding=((before, after), …) for other lengths.",
            )
        )


def _check_left(layer: ConvTranspose, t: Any, reach: list[int], cut: list[tuple[int, int]]) -> None:
    """Raise if the output would be empty."""
    longest = [(m - 1) * s + r + 1 for m, s, r in zip(t.shape[1:-1], layer.stride, reach, strict=True)]
    if not all(t.shape[1:-1]) or any([a - sum(b) < 1 for a, b in zip(longest, cut, strict=True)]):
        raise ValueError(
            errors.explained(
                f"ConvTranspose: the output must not be empty after the padding is cropped; got {t} for "
                f"windows of size {layer.size} and padding {layer.padding}.",
                "a smaller padding.",
            )
        )


def _wrapped(y: Any, axis: int, period: int, before: int) -> Any:
    """Wrap an axis around: sum elements that are `period` apart, starting after `before`."""
    dims = type_of(y).shape
    y = jnp.pad(y, [(0, -n % period if i == axis else 0) for i, n in enumerate(dims)])
    turns = -(-dims[axis] // period)
    return jnp.roll(y.reshape(*dims[:axis], turns, period, *dims[axis + 1 :]).sum(axis), -before, axis)
