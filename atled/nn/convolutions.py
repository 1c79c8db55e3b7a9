"""Convolution layers: `Conv`, `ConvTranspose`, and both for one, two and three axes, such as `Conv2d`; also checks of
settings for each axis.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors
from atled.core.array import Array, type_of
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.linear_layers import check_features, computing, kept, needed
from atled.nn.module import Module
from atled.nn.variable_kinds import Param

# classes that also exist for one, two and three axes, such as Conv2d
_WITH_AXES = ("Conv", "ConvTranspose", "MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool")
_MODES = {"CIRCULAR": "wrap", "REFLECT": "reflect", "REPLICATE": "edge"}  # paddings, and the modes of `jnp.pad`


def for_each_axis(
    layer: str, what: str, given: Any, count: int | None = None, least: int | None = 1
) -> tuple[int, ...]:
    """A tuple of integers, one for each of `count` axes, from one number or a sequence of them."""
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


def window(layer: str, what: str, given: Any, count: int | None) -> tuple[int, ...]:
    """The lengths of a window along `count` axes; if `count` is None, the number of lengths is the number of axes."""
    if count is None and isinstance(given, (int, np.integer)):
        ways = f"{what}={(int(given),) * 2}"
        if layer in _WITH_AXES:
            ways = " or ".join([f"{layer}{n}d" for n in (1, 2, 3)]) + f"; or {ways}"
        raise TypeError(
            errors.explained(
                f"{layer}: {what} must have a length for each axis, or the number of axes is unknown; got {given}.",
                f"{ways} for images.",
            )
        )
    return for_each_axis(layer, what, given, count)


def padding_for_each_axis(layer: str, padding: Any, count: int, words: Sequence[str]) -> Any:
    """A normalized padding: one of `words`, or (before, after) for each of `count` axes."""
    if isinstance(padding, str):
        if padding not in words:
            raise ValueError(
                errors.explained(
                    f"{layer}: padding must be {', '.join(words)}, or pairs of numbers; got {padding!r}.",
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
        n = t.ndim - 2
        what = "output_size" if layer.startswith("Adaptive") else "kernel_size"
        way = f"{layer[:-2]}{n}d" if layer.endswith(("1d", "2d", "3d")) and n < 4 else f"{what}={(3,) * n} for {n} axes"
        raise ValueError(
            errors.explained(
                f"{layer}: the input must have {count + 2} axes, or {count + 1} without a batch; got {t}.",
                f"{way}, or an input of another shape." if n > 0 else "an input of another shape.",
            )
        )


class _Sliding(Module):
    """Base of `Conv` and `ConvTranspose`: sizes, input checks, dtypes, and the bias."""

    axes: ClassVar[int | None] = None  # the number of spatial axes, if the class fixes it
    weight: Array
    bias: Array | None

    def _set(
        self, in_features: int, out_features: int, kernel_size: Any, strides: Any, dilation: Any, groups: int
    ) -> None:
        name = type(self).__name__
        self.in_features, self.out_features, self.groups = int(in_features), int(out_features), int(groups)
        self.kernel_size = window(name, "kernel_size", kernel_size, self.axes)
        if groups < 1 or in_features % groups or out_features % groups:
            raise ValueError(
                errors.explained(
                    f"{name}: groups must divide in_features and out_features; got {groups} for {in_features}, "
                    f"{out_features}."
                )
            )
        self.strides = for_each_axis(name, "strides", strides, len(self.kernel_size))
        self.dilation = for_each_axis(name, "dilation", dilation, len(self.kernel_size))

    def __call__(self, x: Any) -> Any:
        """The output; without a batch axis if the input has none."""
        check_features(self, x, self.in_features)
        check_places(type(self).__name__, x, len(self.kernel_size))
        if type_of(x).ndim == len(self.kernel_size) + 1:
            return self(jnp.asarray(x)[None])[0]
        x, weight, bias = computing(self.dtype, x, self.weight, self.bias)
        dtype = jnp.result_type(x, weight)
        y = self._slid(x.astype(dtype), weight.astype(dtype))
        return y if bias is None else y + bias

    def _slid(self, x: Any, weight: Any) -> Any:
        raise NotImplementedError

    def _places(self) -> str:
        """Letters for the spatial axes."""
        n = len(self.kernel_size)
        return "DHW"[-n:] if n < 4 else "".join([chr(ord("a") + i) for i in range(n)])

    def _reach(self) -> list[int]:
        """The extent of the dilated window along each axis, minus 1."""
        return [(k - 1) * d for k, d in zip(self.kernel_size, self.dilation, strict=True)]


@formerly(
    inputs="in_features",
    outputs="out_features",
    size="kernel_size",
    stride="strides",
    bias="use_bias",
    init="weight_init",
)
class Conv(_Sliding):
    """A convolution of (batch, *spatial, features), with as many spatial axes as `kernel_size` has entries.

    `y[p] = bias + sum over q of x[stride * p + dilation * q - before] @ weight[q]`, with a weight of shape
    (*kernel_size, in_features / groups, out_features). With `groups=in_features`, the convolution is depthwise: each
    feature has its own `out_features / in_features` kernels.

    Args:
        kernel_size: the length of the window along each axis. `Conv1d`, `Conv2d` and `Conv3d` also take one number for
            all axes.
        strides, dilation: the stride of the window, and the distance between its elements; one number, or one for each
            axis.
        padding: "SAME" pads with zeros for as many outputs as inputs, divided by the stride; "VALID" does not pad;
            "CAUSAL" pads with zeros only at the start, so no output depends on later inputs; (before, after) for each
            axis, or one number for all ends, is the number of zeros. As wide as "SAME" at stride 1, "CIRCULAR" wraps
            around, "REFLECT" mirrors at the last element, and "REPLICATE" repeats the last element.
        groups: number of feature groups that are convolved separately.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Conv(3, 8, (3, 3), strides=2, key=random.key(0))(jnp.ones((1, 32, 32, 3))).shape
    (1, 16, 16, 8)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_size: int | Sequence[int],
        *,
        strides: int | Sequence[int] = 1,
        padding: Any = "SAME",
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        use_bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self._set(in_features, out_features, kernel_size, strides, dilation, groups)
        self.padding = padding_for_each_axis(
            type(self).__name__, padding, len(self.kernel_size), ("SAME", "VALID", "CAUSAL", *_MODES)
        )
        draw, key = weight_init or initializers.lecun_normal(), needed(self, key)
        self.weight = Param(draw(key, (*self.kernel_size, in_features // groups, out_features), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (out_features,), param_dtype)) if use_bias else None
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
            x, weight, self.strides, padding, rhs_dilation=self.dilation,
            dimension_numbers=(f"N{places}C", f"{places}IO", f"N{places}C"), feature_group_count=self.groups,
        )  # fmt: skip


class Conv1d(Conv):
    """`Conv` over one axis, such as time; `kernel_size` may be one number.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Conv1d(3, 8, 3, key=random.key(0))(jnp.ones((2, 9, 3))).shape
    (2, 9, 8)
    """

    axes = 1


class Conv2d(Conv):
    """`Conv` over two axes, such as those of an image; `kernel_size` may be one number for both.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Conv2d(3, 8, 3, key=random.key(0))(jnp.ones((2, 9, 9, 3))).shape
    (2, 9, 9, 8)
    """

    axes = 2


class Conv3d(Conv):
    """`Conv` over three axes, such as those of a volume; `kernel_size` may be one number for all.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Conv3d(3, 8, 3, key=random.key(0))(jnp.ones((2, 9, 9, 9, 3))).shape
    (2, 9, 9, 9, 8)
    """

    axes = 3


def _check_long(layer: Conv, t: Any, reach: list[int]) -> None:
    """Raise an error for an axis that is empty, or too short to mirror for "REFLECT"."""
    for n, r in zip(t.shape[1:-1], reach, strict=True):
        if n <= ((r + 1) // 2 if layer.padding == "REFLECT" else 0):
            raise ValueError(
                errors.explained(
                    f"{type(layer).__name__}: an axis must be longer than the padding that {layer.padding} adds to an "
                    f"end; got {t} for windows of size {layer.kernel_size}.",
                    "padding='SAME', or a longer input.",
                )
            )


@formerly(
    inputs="in_features",
    outputs="out_features",
    size="kernel_size",
    stride="strides",
    bias="use_bias",
    init="weight_init",
)
class ConvTranspose(_Sliding):
    """A transposed convolution, for upsampling: each input adds a window of `kernel_size` to the output.

    The layer is the transpose of `Conv(out_features, in_features, kernel_size, …)` with the same weight, of shape
    (*kernel_size, out_features / groups, in_features), like PyTorch's `ConvTranspose2d`, and flax's `ConvTranspose`
    with `transpose_kernel=True`. With n inputs along an axis, and windows of extent r = dilation * (kernel_size - 1) +
    1, all windows together cover (n - 1) * stride + r positions.

    Args:
        kernel_size, strides, dilation, groups: the settings of the convolution that this layer transposes.
        padding: how many of these positions are cropped. "SAME" keeps n * stride positions. "VALID" crops nothing, and
            appends zeros up to n * stride if windows are shorter than the stride. "CIRCULAR" adds positions beyond n *
            stride at the other end. (before, after) for each axis, or one number for all ends, is the number of cropped
            positions, which is the padding of the convolution, as in PyTorch. flax's pairs are r - 1 minus these
            numbers.
        output_padding: how many positions fewer are cropped at the end, if `padding` is numeric; one number, or one for
            each axis.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.ConvTranspose(8, 3, (4, 4), strides=2, padding=1, key=random.key(0))(jnp.ones((1, 16, 16, 8))).shape
    (1, 32, 32, 3)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_size: int | Sequence[int],
        *,
        strides: int | Sequence[int] = 1,
        padding: Any = "SAME",
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        use_bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self._set(in_features, out_features, kernel_size, strides, dilation, groups)
        name, count = type(self).__name__, len(self.kernel_size)
        self.padding = padding_for_each_axis(name, padding, count, ("SAME", "VALID", "CIRCULAR"))
        self.output_padding = for_each_axis(name, "output_padding", output_padding, count, 0)
        _check_output_padding(self)
        draw = weight_init or initializers.variance_scaling(
            groups, "fan_in", "truncated_normal", in_axis=-1, out_axis=-2
        )
        self.weight = Param(
            draw(needed(self, key), (*self.kernel_size, out_features // groups, in_features), param_dtype)
        )
        self.bias = Param(bias_init(random.fold_in(key, 1), (out_features,), param_dtype)) if use_bias else None
        self.dtype = kept(dtype)

    def _slid(self, x: Any, weight: Any) -> Any:
        n, reach, cut = len(self.kernel_size), self._reach(), _cut(self)
        _check_left(self, type_of(x), reach, cut)
        if self.groups > 1:  # groups are along the outputs of a weight
            split = weight.reshape(*self.kernel_size, -1, self.groups, self.in_features // self.groups)
            weight = jnp.swapaxes(split, n, n + 2).reshape(*self.kernel_size, -1, self.out_features)
        places, order = self._places(), "OI" if self.groups == 1 else "IO"
        y = lax.conv_general_dilated(
            x, jnp.flip(weight, tuple(range(n))), (1,) * n,
            [(r - a, r - b) for r, (a, b) in zip(reach, cut, strict=True)], self.strides, self.dilation,
            (f"N{places}C", f"{places}{order}", f"N{places}C"), self.groups,
        )  # fmt: skip
        if self.padding == "CIRCULAR":
            for axis, (m, s, r) in enumerate(zip(type_of(x).shape[1:-1], self.strides, reach, strict=True), 1):
                y = _wrapped(y, axis, m * s, r // 2)
        return y


class ConvTranspose1d(ConvTranspose):
    """`ConvTranspose` over one axis, such as time; `kernel_size` may be one number.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.ConvTranspose1d(3, 8, 3, key=random.key(0))(jnp.ones((2, 9, 3))).shape
    (2, 9, 8)
    """

    axes = 1


class ConvTranspose2d(ConvTranspose):
    """`ConvTranspose` over two axes, such as those of an image; `kernel_size` may be one number for both.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.ConvTranspose2d(3, 8, 3, key=random.key(0))(jnp.ones((2, 9, 9, 3))).shape
    (2, 9, 9, 8)
    """

    axes = 2


class ConvTranspose3d(ConvTranspose):
    """`ConvTranspose` over three axes, such as those of a volume; `kernel_size` may be one number for all.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.ConvTranspose3d(3, 8, 3, key=random.key(0))(jnp.ones((2, 9, 9, 9, 3))).shape
    (2, 9, 9, 9, 8)
    """

    axes = 3


def _cut(layer: ConvTranspose) -> list[tuple[int, int]]:
    """How much is cropped at the ends of each axis; negative for appended zeros."""
    over = [r + 1 - s for r, s in zip(layer._reach(), layer.strides, strict=True)]
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
                f"{type(layer).__name__}: output_padding needs numeric padding; got {layer.padding!r}.", "padding=0."
            )
        )
    if any([p >= max(s, d) for p, s, d in zip(layer.output_padding, layer.strides, layer.dilation, strict=True)]):
        raise ValueError(
            errors.explained(
                f"{type(layer).__name__}: output_padding must be less than the stride or the dilation; got "
                f"{layer.output_padding} for strides {layer.strides} and dilation {layer.dilation}.",
                "padding=((before, after), …) for other lengths.",
            )
        )


def _check_left(layer: ConvTranspose, t: Any, reach: list[int], cut: list[tuple[int, int]]) -> None:
    """Raise if the output would be empty."""
    longest = [(m - 1) * s + r + 1 for m, s, r in zip(t.shape[1:-1], layer.strides, reach, strict=True)]
    if not all(t.shape[1:-1]) or any([a - sum(b) < 1 for a, b in zip(longest, cut, strict=True)]):
        raise ValueError(
            errors.explained(
                f"{type(layer).__name__}: the output must not be empty after the padding is cropped; got {t} for "
                f"windows of size {layer.kernel_size} and padding {layer.padding}.",
                "a smaller padding.",
            )
        )


def _wrapped(y: Any, axis: int, period: int, before: int) -> Any:
    """Wrap an axis around: sum elements that are `period` apart, starting after `before`."""
    dims = type_of(y).shape
    y = jnp.pad(y, [(0, -n % period if i == axis else 0) for i, n in enumerate(dims)])
    turns = -(-dims[axis] // period)
    return jnp.roll(y.reshape(*dims[:axis], turns, period, *dims[axis + 1 :]).sum(axis), -before, axis)
