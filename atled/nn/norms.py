"""Layers that bring numbers to mean 0 and variance 1: over features (`LayerNorm`), or over a batch (`BatchNorm`)."""

from __future__ import annotations

from typing import Any

import atled.numpy as jnp
from atled import lax
from atled.core import errors
from atled.core.array import Array, type_of
from atled.nn import initializers
from atled.nn.layers import check_features, computing, kept
from atled.nn.module import Buffer, Module, Param
from atled.ops import elementary
from atled.transforms.grad import stop_gradient


class LayerNorm(Module):
    """Each vector along the last axis brought to mean 0 and variance 1, then scaled and shifted by parameters.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.LayerNorm(2)(jnp.array([1.0, 3.0])).round(3)
    Array([-1.,  1.], dtype=float32)
    """

    scale: Array | None
    bias: Array | None

    def __init__(
        self,
        features: int,
        *,
        eps: float = 1e-6,
        scale: bool = True,
        bias: bool = True,
        init: Any = initializers.ones,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.features, self.eps = int(features), float(eps)
        self.scale = Param(init(key, (features,), param_dtype)) if scale else None
        self.bias = Param(jnp.zeros(features, param_dtype)) if bias else None
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The normalized input. Mean and variance are taken in float32 at least."""
        check_features(self, x, self.features)
        wide = _wide(x)
        mean = wide.mean(-1, keepdims=True)
        centered = wide - mean
        variance = (centered * centered).mean(-1, keepdims=True)
        return _finished(self, x, centered * elementary.rsqrt(variance + self.eps))


def _wide(x: Any) -> Any:
    """An input for statistics: half precision is too coarse for sums."""
    t = type_of(x)
    return jnp.asarray(x, "float32") if t.kind == "f" and t.dtype.itemsize < 4 else jnp.asarray(x)


def _finished(layer: Any, x: Any, y: Any) -> Any:
    """A normalized input with the layer's scale and bias, in the dtype that it computes in."""
    if layer.scale is not None:
        y = y * layer.scale
    if layer.bias is not None:
        y = y + layer.bias
    dtype = layer.dtype
    if dtype is None:
        params = [p for p in (layer.scale, layer.bias) if p is not None]
        dtype = jnp.result_type(x, *params)
    return computing(dtype, y)


class BatchNorm(Module):
    """Each feature brought to mean 0 and variance 1 over a batch; in use, with the statistics that training left.

    All axes but the last count as batch. While training, `mean` and `variance` are assigned, so the module is to be
    returned (`train.gradients` does that). With `axis_name`, the batch is that of all parts along a named axis; in a
    `jit` over a mesh it always is.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> norm = nn.BatchNorm(1, momentum=0.5)
    >>> _ = norm(jnp.array([[1.0], [3.0]]))
    >>> norm.mean, norm.variance
    (Array([1.], dtype=float32), Array([1.], dtype=float32))
    """

    scale: Array | None
    bias: Array | None
    mean: Array
    variance: Array

    def __init__(
        self,
        features: int,
        *,
        momentum: float = 0.99,
        eps: float = 1e-5,
        scale: bool = True,
        bias: bool = True,
        axis_name: Any = None,
        init: Any = initializers.ones,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.features, self.momentum, self.eps, self.axis_name = int(features), float(momentum), float(eps), axis_name
        self.scale = Param(init(key, (features,), param_dtype)) if scale else None
        self.bias = Param(jnp.zeros(features, param_dtype)) if bias else None
        self.mean = Buffer(jnp.zeros(features, "float32"))
        self.variance = Buffer(jnp.ones(features, "float32"))
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The normalized input."""
        check_features(self, x, self.features)
        if self.training and type_of(x).ndim < 2:
            raise ValueError(
                errors.explained(
                    f"BatchNorm: while training, the input must have a batch; got {type_of(x)}.",
                    "x[None], or model.eval().",
                )
            )
        wide = _wide(x)
        mean, variance = self._of_batch(wide) if self.training else (self.mean, self.variance)
        mean, variance = mean.astype(wide.dtype), variance.astype(wide.dtype)
        return _finished(self, x, (wide - mean) * elementary.rsqrt(variance + self.eps))

    def _of_batch(self, x: Any) -> tuple[Any, Any]:
        axes = tuple(range(type_of(x).ndim - 1))
        some = self._of_all(stop_gradient(x[(0,) * len(axes)]))  # near the mean, so that squares do not cancel
        off = x - some
        mean, square = self._of_all(off.mean(axes)), self._of_all((off * off).mean(axes))
        mean, variance = some + mean, jnp.maximum(square - mean * mean, 0)
        self.mean, self.variance = [
            self.momentum * old + (1 - self.momentum) * new.astype(old.dtype)
            for old, new in ((self.mean, mean), (self.variance, variance))
        ]
        return mean, variance

    def _of_all(self, mean: Any) -> Any:
        """A mean over the batch, over those of all devices as well."""
        return mean if self.axis_name is None else lax.pmean(mean, self.axis_name)
