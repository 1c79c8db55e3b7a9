"""Normalization layers: over features, feature groups, spatial positions, or a batch."""

from __future__ import annotations

import math
from typing import Any

import atled.numpy as jnp
from atled import lax
from atled.core import errors
from atled.core.array import Array, type_of
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.linear_layers import check_features, computing, kept
from atled.nn.module import Module
from atled.nn.variable_kinds import Buffer, Param
from atled.ops import elementary
from atled.transforms.grad import stop_gradient


class _Norm(Module):
    """A layer with an optional scale and bias for each feature."""

    scale: Array | None
    bias: Array | None

    def __init__(
        self,
        num_features: int,
        *,
        eps: float = 1e-6,
        use_scale: bool = True,
        use_bias: bool = True,
        scale_init: Any = initializers.ones,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.num_features, self.eps = int(num_features), float(eps)
        self.scale = Param(scale_init(key, (num_features,), param_dtype)) if use_scale else None
        self.bias = Param(jnp.zeros(num_features, param_dtype)) if use_bias else None
        self.dtype = kept(dtype)


@formerly(features="num_features", scale="use_scale", bias="use_bias", init="scale_init")
class LayerNorm(_Norm):
    """Normalizes each vector along the last axis to mean 0 and variance 1, then scales and shifts by parameters.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.LayerNorm(2)(jnp.array([1.0, 3.0])).round(3)
    Array([-1.,  1.], dtype=float32)
    """

    def __call__(self, x: Any) -> Any:
        """The normalized input. Mean and variance are computed in float32 or wider."""
        return _finished(self, x, _normalized(_taken(self, x), -1, self.eps))


def wide(x: Any) -> Any:
    """x in a dtype for sums: 16-bit floats, which are too coarse, and integers, which overflow, become float32."""
    t = type_of(x)
    is_short = t.kind in "iub" or (t.kind == "f" and t.dtype.itemsize < 4)
    return jnp.asarray(x, "float32") if is_short else jnp.asarray(x)


def _taken(layer: Any, x: Any) -> Any:
    """The input in a dtype for sums; raises if it is complex, or has another number of features."""
    check_features(layer, x, layer.num_features)
    if type_of(x).kind == "c":
        raise TypeError(
            errors.explained(
                f"{type(layer).__name__}: the input must be real; got {type_of(x)}.", "x.real and x.imag, or abs(x)."
            )
        )
    return wide(x)


def _normalized(x: Any, axes: Any, eps: float, is_centered: bool = True) -> Any:
    """x, centered if `is_centered`, then scaled to a mean square of 1 over the axes."""
    if is_centered:
        x = x - x.mean(axes, keepdims=True)
    return x * elementary.rsqrt((x * x).mean(axes, keepdims=True) + eps)


def _finished(layer: Any, x: Any, y: Any) -> Any:
    """The normalized input y with the layer's scale and bias applied, in the layer's compute dtype."""
    if layer.scale is not None:
        y = y * layer.scale
    if layer.bias is not None:
        y = y + layer.bias
    dtype = layer.dtype
    if dtype is None:
        params = [p for p in (layer.scale, layer.bias) if p is not None]
        dtype = jnp.result_type(x, *params)
    return computing(dtype, y)


@formerly(features="num_features", scale="use_scale", init="scale_init")
class RMSNorm(Module):
    """RMS norm: scales each vector along the last axis to a mean square of 1: `x / sqrt(mean(x²) + eps) * scale`.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.RMSNorm(2, eps=0.0)(jnp.array([2.0, 2.0]))
    Array([1., 1.], dtype=float32)
    """

    scale: Array | None
    bias = None

    def __init__(
        self,
        num_features: int,
        *,
        eps: float = 1e-6,
        use_scale: bool = True,
        scale_init: Any = initializers.ones,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.num_features, self.eps = int(num_features), float(eps)
        self.scale = Param(scale_init(key, (num_features,), param_dtype)) if use_scale else None
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The normalized input. The mean square is computed in float32 or wider."""
        return _finished(self, x, _normalized(_taken(self, x), -1, self.eps, is_centered=False))


@formerly(features="num_features", groups="num_groups", scale="use_scale", bias="use_bias", init="scale_init")
class GroupNorm(_Norm):
    """Normalizes each group of features of (batch, *spatial, features) to mean 0 and variance 1 over the group and all
    positions, separately for each example; then scales and shifts each feature by parameters.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.GroupNorm(4, 2)(jnp.array([[1.0, 3.0, 10.0, 30.0]])).round(3)
    Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        num_features: int,
        num_groups: int,
        *,
        eps: float = 1e-6,
        use_scale: bool = True,
        use_bias: bool = True,
        scale_init: Any = initializers.ones,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        if num_groups < 1 or num_features % num_groups:
            raise ValueError(
                errors.explained(
                    f"GroupNorm: num_groups must divide num_features; got {num_groups} for {num_features}."
                )
            )
        super().__init__(
            num_features,
            eps=eps,
            use_scale=use_scale,
            use_bias=use_bias,
            scale_init=scale_init,
            dtype=dtype,
            param_dtype=param_dtype,
            key=key,
        )
        self.num_groups = int(num_groups)

    def __call__(self, x: Any) -> Any:
        """The normalized input. Means and variances are computed in float32 or wider."""
        wide, t = _taken(self, x), type_of(x)
        _check_sizes(self, t, 2, t.shape[1:-1], self.num_features // self.num_groups)
        split = wide.reshape(*t.shape[:-1], self.num_groups, self.num_features // self.num_groups)
        axes = (*range(1, t.ndim - 1), t.ndim)
        return _finished(self, x, _normalized(split, axes, self.eps).reshape(t.shape))


@formerly(features="num_features", scale="use_scale", bias="use_bias", init="scale_init")
class InstanceNorm(_Norm):
    """Normalizes each feature of (batch, *spatial, features) to mean 0 and variance 1 over all positions, separately
    for each example; then scales and shifts each feature by parameters. There are no running statistics.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.InstanceNorm(1)(jnp.array([[[1.0], [3.0]]])).round(3).ravel()
    Array([-1.,  1.], dtype=float32)
    """

    def __call__(self, x: Any) -> Any:
        """The normalized input. Means and variances are computed in float32 or wider."""
        wide, t = _taken(self, x), type_of(x)
        _check_sizes(self, t, 3, t.shape[1:-1], 1)
        return _finished(self, x, _normalized(wide, tuple(range(1, t.ndim - 1)), self.eps))


def _check_sizes(layer: Any, t: Any, least: int, places: Any, features: int) -> None:
    """Raise for an input without the axes that a layer normalizes over, or with only one element along them."""
    name = type(layer).__name__
    if t.ndim < least:
        axes = "(batch, *spatial, features)" if least == 3 else "(batch, …, features)"
        raise ValueError(errors.explained(f"{name}: the input must have the axes {axes}; got {t}.", "x[None]."))
    if math.prod(places) * features < 2:
        raise ValueError(
            errors.explained(
                f"{name}: at least two numbers are needed to normalize over, or all results are 0; got {t}.",
                "fewer groups, more positions, or LayerNorm.",
            )
        )


@formerly(features="num_features", scale="use_scale", bias="use_bias", init="scale_init")
class BatchNorm(_Norm):
    """Normalizes each feature to mean 0 and variance 1 over a batch; in evaluation, with the running statistics.

    All axes but the last are batch axes. While training, `mean` and `variance` are assigned, so transformed functions
    must return the module (`train.gradients` does). With `axis_name`, statistics are those of all devices along a named
    axis; in a `jit` over a mesh, they are always those of the whole batch.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> norm = nn.BatchNorm(1, momentum=0.5)
    >>> _ = norm(jnp.array([[1.0], [3.0]]))
    >>> norm.mean, norm.variance
    (Array([1.], dtype=float32), Array([1.], dtype=float32))
    """

    mean: Array
    variance: Array

    def __init__(
        self,
        num_features: int,
        *,
        momentum: float = 0.99,
        eps: float = 1e-5,
        use_scale: bool = True,
        use_bias: bool = True,
        axis_name: Any = None,
        scale_init: Any = initializers.ones,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        super().__init__(
            num_features,
            eps=eps,
            use_scale=use_scale,
            use_bias=use_bias,
            scale_init=scale_init,
            dtype=dtype,
            param_dtype=param_dtype,
            key=key,
        )
        self.momentum, self.axis_name = float(momentum), axis_name
        kind = jnp.promote_types(param_dtype, "float32")
        self.mean, self.variance = Buffer(jnp.zeros(num_features, kind)), Buffer(jnp.ones(num_features, kind))

    def __call__(self, x: Any) -> Any:
        """The normalized input."""
        wide = _taken(self, x)
        mean, variance = self._of_batch(wide) if self.training else (self.mean, self.variance)
        mean, variance = mean.astype(wide.dtype), variance.astype(wide.dtype)
        return _finished(self, x, (wide - mean) * elementary.rsqrt(variance + self.eps))

    def _of_batch(self, x: Any) -> tuple[Any, Any]:
        axes = _batch_axes(type_of(x), 1 if self.axis_name is None else lax.axis_size(self.axis_name))
        middle = self._of_all(stop_gradient(x.mean(axes)))  # centered, so that the variance does not cancel
        off = x - middle
        mean, square = self._of_all(off.mean(axes)), self._of_all((off * off).mean(axes))
        mean, variance = middle + mean, jnp.maximum(square - mean * mean, 0)
        self.mean, self.variance = [
            self.momentum * old + (1 - self.momentum) * new.astype(old.dtype)
            for old, new in ((self.mean, mean), (self.variance, variance))
        ]
        return mean, variance

    def _of_all(self, mean: Any) -> Any:
        """A mean over the batch, averaged over the named axis if there is one."""
        return mean if self.axis_name is None else lax.pmean(mean, self.axis_name)


def _batch_axes(t: Any, others: int) -> tuple[int, ...]:
    """The batch axes; raises if the batches of all `others` devices have fewer than two numbers for each feature."""
    if t.ndim >= 2 and math.prod(t.shape[:-1]) * others == 1:
        raise ValueError(
            errors.explained(
                f"BatchNorm: while training, at least two numbers for each feature are needed, or all results are 0; "
                f"got {t}.",
                "a larger batch, or model.eval().",
            )
        )
    if t.ndim < 2 or not t.size:
        raise ValueError(
            errors.explained(
                f"BatchNorm: while training, the input must have a batch; got {t}.", "x[None], or model.eval()."
            )
        )
    return tuple(range(t.ndim - 1))
