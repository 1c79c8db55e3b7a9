"""Max and average pooling: `max_pool`, `avg_pool`, and layers with a fixed window, a fixed output size (adaptive), or
one window over all positions (global). Inputs are (batch, *spatial, features), or without a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import atled.numpy as jnp
from atled import lax
from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.former_names import formerly
from atled.nn.convolutions import check_places, for_each_axis, padding_for_each_axis, window
from atled.nn.module import Module
from atled.nn.normalization import wide
from atled.ops import window_reductions


@formerly(size="kernel_size", stride="strides")
def max_pool(
    x: ArrayLike,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[int | Sequence[int]] = "VALID",
) -> Array:
    """The maximum of each window, for each feature. Padding does not count, and NaN counts as the largest value.

    Args:
        kernel_size: the length of the window along each axis.
        strides: the stride of the window; None is `kernel_size`.
        padding: "VALID" for windows inside of the input, "SAME" for as many outputs as inputs, divided by the stride,
            (before, after) for each axis, or a number for all.

    At ties, the gradient goes to the first maximum.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.max_pool(jnp.array([[1.0], [5.0], [2.0], [3.0]]), (2,)).ravel()
    Array([5., 3.], dtype=float32)
    """
    kernel_size, strides, padding = _windows("max_pool", kernel_size, strides, padding)
    return _max("max_pool", x, kernel_size, strides, padding)


@formerly(size="kernel_size", stride="strides", count_padding="count_include_pad")
def avg_pool(
    x: ArrayLike,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[int | Sequence[int]] = "VALID",
    *,
    count_include_pad: bool = False,
) -> Array:
    """The mean of each window, for each feature; sums are computed in float32 or wider. The other arguments are those
    of `max_pool`.

    Args:
        count_include_pad: whether padding counts, as zeros; if not, means are over the elements inside the input.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.avg_pool(jnp.array([[1.0], [5.0], [2.0], [3.0]]), (2,)).ravel()
    Array([3. , 2.5], dtype=float32)
    """
    kernel_size, strides, padding = _windows("avg_pool", kernel_size, strides, padding)
    return _avg("avg_pool", x, kernel_size, strides, padding, count_include_pad)


def _windows(
    name: str, kernel_size: Any, strides: Any, padding: Any, axes: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
    """The validated `kernel_size`, `strides` and `padding`, for each axis."""
    kernel_size = window(name, "kernel_size", kernel_size, axes)
    strides = for_each_axis(name, "strides", kernel_size if strides is None else strides, len(kernel_size))
    padding = padding_for_each_axis(name, padding, len(kernel_size), ("VALID", "SAME"))
    if not isinstance(padding, str):
        for n, pair in zip(kernel_size, padding, strict=True):
            if not 0 <= min(pair) <= max(pair) < n:  # otherwise a window could contain only padding
                raise ValueError(
                    errors.explained(
                        f"{name}: padding must be 0 or more, and less than the size of the window; got {padding} for "
                        f"kernel_size {kernel_size}."
                    )
                )
    return kernel_size, strides, padding


def _pairs(name: str, x: Any, kernel_size: Any, strides: Any, padding: Any) -> list[tuple[int, int]]:
    """The padding of each axis of an input, including features and batch; checks the shape."""
    check_places(name, x, len(kernel_size))
    t = type_of(x)
    lengths = t.shape[-1 - len(kernel_size) : -1]
    pairs = lax.padtype_to_pads(lengths, kernel_size, strides, padding) if isinstance(padding, str) else padding
    if any([n == 0 or n + sum(p) < k for n, p, k in zip(lengths, pairs, kernel_size, strict=True)]):
        raise ValueError(
            errors.explained(
                f"{name}: a window of size {kernel_size} must fit into the input; got {t}.", "padding='SAME'."
            )
        )
    return [*[(0, 0)] * (t.ndim - len(kernel_size) - 1), *[(int(a), int(b)) for a, b in pairs], (0, 0)]


def _max(name: str, x: Any, kernel_size: tuple[int, ...], strides: tuple[int, ...], padding: Any) -> Any:
    if type_of(x).kind not in "iuf":
        raise TypeError(errors.explained(f"{name}: the input must be real numbers; got {type_of(x)}."))
    pairs = _pairs(name, x, kernel_size, strides, padding)
    before = (1,) * (type_of(x).ndim - len(kernel_size) - 1)
    return window_reductions.reduce_window(
        jnp.asarray(x), "max", (*before, *kernel_size, 1), (*before, *strides, 1), pairs
    )


def _avg(
    name: str, x: Any, kernel_size: tuple[int, ...], strides: tuple[int, ...], padding: Any, count_include_pad: bool
) -> Any:
    pairs = _pairs(name, x, kernel_size, strides, padding)
    t, n = type_of(x), len(kernel_size)
    before = (1,) * (t.ndim - n - 1)
    total = window_reductions.reduce_window(wide(x), "add", (*before, *kernel_size, 1), (*before, *strides, 1), pairs)
    count: Any = math.prod(kernel_size)
    if not count_include_pad and any([p != (0, 0) for p in pairs]):
        axes = zip(
            type_of(total).shape[-1 - n : -1],
            t.shape[-1 - n : -1],
            pairs[-1 - n : -1],
            kernel_size,
            strides,
            strict=True,
        )
        counts = [_counts(*axis) for axis in axes]
        count = math.prod([np.expand_dims(c, tuple(range(1, n + 1 - i))) for i, c in enumerate(counts)])
    return (total / jnp.asarray(count, total.dtype)).astype(_float(x))


def _counts(windows: int, length: int, padding: tuple[int, int], size: int, stride: int) -> np.ndarray:
    """The number of input elements in each window along an axis."""
    start = np.arange(windows) * stride - padding[0]
    return np.minimum(start + size, length) - np.maximum(start, 0)


def _float(x: Any) -> Any:
    """The dtype of the means of x."""
    t = type_of(x)
    return t.dtype if t.kind in "fc" else dtypes.canonical("float32")


@formerly(size="kernel_size", stride="strides")
class MaxPool(Module):
    """The maximum of each window, for each feature; the arguments are those of `max_pool`.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.MaxPool((3, 3), strides=2, padding=1)(jnp.ones((1, 8, 8, 4))).shape
    (1, 4, 4, 4)
    """

    axes: ClassVar[int | None] = None  # the number of spatial axes, if the class fixes it

    def __init__(
        self, kernel_size: int | Sequence[int], *, strides: int | Sequence[int] | None = None, padding: Any = "VALID"
    ) -> None:
        self.kernel_size, self.strides, self.padding = _windows(
            type(self).__name__, kernel_size, strides, padding, self.axes
        )

    def __call__(self, x: Any) -> Any:
        """The maxima."""
        return _max(type(self).__name__, x, self.kernel_size, self.strides, self.padding)


@formerly(size="kernel_size", stride="strides", count_padding="count_include_pad")
class AvgPool(Module):
    """The mean of each window, for each feature; the arguments are those of `avg_pool`.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AvgPool1d(2)(jnp.array([[1.0], [5.0], [2.0], [3.0]])).ravel()
    Array([3. , 2.5], dtype=float32)
    """

    axes: ClassVar[int | None] = None  # the number of spatial axes, if the class fixes it

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        *,
        strides: int | Sequence[int] | None = None,
        padding: Any = "VALID",
        count_include_pad: bool = False,
    ) -> None:
        self.kernel_size, self.strides, self.padding = _windows(
            type(self).__name__, kernel_size, strides, padding, self.axes
        )
        self.count_include_pad = bool(count_include_pad)

    def __call__(self, x: Any) -> Any:
        """The means."""
        return _avg(type(self).__name__, x, self.kernel_size, self.strides, self.padding, self.count_include_pad)


class MaxPool1d(MaxPool):
    """`MaxPool` over one axis, such as time. `kernel_size` may be one number.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.MaxPool1d(2)(jnp.ones((2, 8, 4))).shape
    (2, 4, 4)
    """

    axes = 1


class MaxPool2d(MaxPool):
    """`MaxPool` over two axes, such as those of an image. `kernel_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.MaxPool2d(2)(jnp.ones((2, 8, 8, 4))).shape
    (2, 4, 4, 4)
    """

    axes = 2


class MaxPool3d(MaxPool):
    """`MaxPool` over three axes, such as those of a volume. `kernel_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.MaxPool3d(2)(jnp.ones((2, 8, 8, 8, 4))).shape
    (2, 4, 4, 4, 4)
    """

    axes = 3


class AvgPool1d(AvgPool):
    """`AvgPool` over one axis, such as time. `kernel_size` may be one number.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AvgPool1d(2)(jnp.ones((2, 8, 4))).shape
    (2, 4, 4)
    """

    axes = 1


class AvgPool2d(AvgPool):
    """`AvgPool` over two axes, such as those of an image. `kernel_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AvgPool2d(2)(jnp.ones((2, 8, 8, 4))).shape
    (2, 4, 4, 4)
    """

    axes = 2


class AvgPool3d(AvgPool):
    """`AvgPool` over three axes, such as those of a volume. `kernel_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AvgPool3d(2)(jnp.ones((2, 8, 8, 8, 4))).shape
    (2, 4, 4, 4, 4)
    """

    axes = 3


class _Adaptive(Module):
    """Adaptive pooling: a given number of windows of about equal length that cover the input."""

    _is_mean: bool
    axes: ClassVar[int | None] = None  # the number of spatial axes, if the class fixes it

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        name = type(self).__name__
        if output_size is None or isinstance(output_size, (int, np.integer)):
            axes = window(name, "output_size", 1 if output_size is None else output_size, self.axes)
            output_size = (output_size,) * len(axes)
        given = list(output_size)
        lengths = for_each_axis(
            name, "output_size", [1 if n is None else n for n in given], self.axes or len(given) or 1
        )
        self.output_size = tuple([None if n is None else m for n, m in zip(given, lengths, strict=True)])

    def __call__(self, x: Any) -> Any:
        """The output, with the requested number of positions."""
        check_places(type(self).__name__, x, len(self.output_size))
        t, y = type_of(x), wide(x) if self._is_mean else jnp.asarray(x)
        for axis, count in enumerate(self.output_size, t.ndim - len(self.output_size) - 1):
            if t.shape[axis] == 0:
                raise ValueError(errors.explained(f"{type(self).__name__}: spatial axes must not be empty; got {t}."))
            if count not in (None, t.shape[axis]):
                y = self._reduced(y, axis, count)
        return y.astype(_float(x)) if self._is_mean else y

    def _reduced(self, x: Any, axis: int, count: int) -> Any:
        """The results of a given number of windows over an axis, computed together for windows of equal length."""

        def of(rows: Any) -> Any:
            return rows.mean(axis + 1) if self._is_mean else rows.max(axis + 1)

        dims = type_of(x).shape
        if dims[axis] % count == 0:
            return of(x.reshape(*dims[:axis], count, dims[axis] // count, *dims[axis + 1 :]))
        i = np.arange(count)
        start, stop = i * dims[axis] // count, -(-(i + 1) * dims[axis] // count)
        groups = {n: np.flatnonzero(stop - start == n) for n in np.unique(stop - start).tolist()}
        parts = [of(jnp.take(x, start[which, None] + np.arange(n), axis)) for n, which in groups.items()]
        return jnp.take(jnp.concatenate(parts, axis), np.argsort(np.concatenate(list(groups.values()))), axis)


@formerly(size="output_size")
class AdaptiveAvgPool(_Adaptive):
    """Adaptive average pooling to `output_size` outputs along each axis; None leaves an axis unchanged.

    For n inputs and m outputs, window i goes from floor(i * n / m) up to, but not including, ceil((i + 1) * n / m).
    Sums are computed in float32 or wider.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveAvgPool1d(2)(jnp.array([[1.0], [5.0], [3.0]])).ravel()
    Array([3., 4.], dtype=float32)
    """

    _is_mean = True


@formerly(size="output_size")
class AdaptiveMaxPool(_Adaptive):
    """Adaptive max pooling to `output_size` outputs along each axis, with the windows of `AdaptiveAvgPool`.

    At ties, the gradient is shared evenly by the maxima of a window, one axis after the other.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveMaxPool1d(2)(jnp.array([[1.0], [5.0], [3.0]])).ravel()
    Array([5., 5.], dtype=float32)
    """

    _is_mean = False


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """`AdaptiveAvgPool` over one axis, such as time. `output_size` may be one number.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveAvgPool1d(2)(jnp.ones((2, 8, 4))).shape
    (2, 2, 4)
    """

    axes = 1


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """`AdaptiveAvgPool` over two axes, such as those of an image. `output_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveAvgPool2d(2)(jnp.ones((2, 8, 8, 4))).shape
    (2, 2, 2, 4)
    """

    axes = 2


class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """`AdaptiveAvgPool` over three axes, such as those of a volume. `output_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveAvgPool3d(2)(jnp.ones((2, 8, 8, 8, 4))).shape
    (2, 2, 2, 2, 4)
    """

    axes = 3


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """`AdaptiveMaxPool` over one axis, such as time. `output_size` may be one number.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveMaxPool1d(2)(jnp.ones((2, 8, 4))).shape
    (2, 2, 4)
    """

    axes = 1


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """`AdaptiveMaxPool` over two axes, such as those of an image. `output_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveMaxPool2d(2)(jnp.ones((2, 8, 8, 4))).shape
    (2, 2, 2, 4)
    """

    axes = 2


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """`AdaptiveMaxPool` over three axes, such as those of a volume. `output_size` may be one number, for all axes.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.AdaptiveMaxPool3d(2)(jnp.ones((2, 8, 8, 8, 4))).shape
    (2, 2, 2, 2, 4)
    """

    axes = 3


def _all_places(layer: Module, x: Any) -> tuple[int, ...]:
    """The spatial axes: all but the first and the last one."""
    t = type_of(x)
    if t.ndim < 3 or not all(t.shape[1:-1]):
        raise ValueError(
            errors.explained(
                f"{type(layer).__name__}: the input must be (batch, *spatial, features), with non-empty axes; got {t}.",
                "x[None] if there is no batch.",
            )
        )
    return tuple(range(1, t.ndim - 1))


class GlobalAvgPool(Module):
    """The mean over all positions of (batch, *spatial, features): (batch, features). Sums are in float32 or wider.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.GlobalAvgPool()(jnp.ones((2, 8, 8, 3))).shape
    (2, 3)
    """

    def __init__(self, *, keepdims: bool = False) -> None:
        self.keepdims = bool(keepdims)  # whether spatial axes stay, with length 1

    def __call__(self, x: Any) -> Any:
        """The means."""
        return wide(x).mean(_all_places(self, x), keepdims=self.keepdims).astype(_float(x))


class GlobalMaxPool(Module):
    """The maximum over all positions of (batch, *spatial, features): (batch, features).

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.GlobalMaxPool()(jnp.ones((2, 8, 8, 3))).shape
    (2, 3)
    """

    def __init__(self, *, keepdims: bool = False) -> None:
        self.keepdims = bool(keepdims)  # whether spatial axes stay, with length 1

    def __call__(self, x: Any) -> Any:
        """The maxima."""
        return jnp.asarray(x).max(_all_places(self, x), keepdims=self.keepdims)
