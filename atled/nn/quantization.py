"""Layers for inference: int8 weights with a scale for each output channel (`quantize`), transposed 16-bit weights."""

from __future__ import annotations

from typing import Any

import atled.numpy as jnp
from atled import lax
from atled.core import dtypes, errors
from atled.core.array import Array, type_of
from atled.nn.index_checks import expected
from atled.nn.linear_layers import Embedding, Linear, check_features, computing
from atled.nn.module import Module
from atled.nn.module_filters import modules
from atled.nn.module_surgery import replace
from atled.nn.variable_kinds import Frozen


class QuantizedLinear(Module):
    """A `Linear` whose weight is int8, (out_features, in_features), times a scale for each output."""

    weight: Array
    scale: Array
    bias: Array | None

    def __init__(self, layer: Linear) -> None:
        self.in_features, self.out_features, self.dtype = layer.in_features, layer.out_features, layer.dtype
        weight, scale = _quantized(layer.weight.T)
        self.weight, self.scale = Frozen(weight), Frozen(scale)
        self.bias = None if layer.bias is None else Frozen(layer.bias)

    def __call__(self, x: Any) -> Any:
        """The output; products are in the dtype of the input, or in that of the layer."""
        check_features(self, x, self.in_features)
        y = _product(x, self.weight, self.scale, self.dtype)
        return y if self.bias is None else y + self.bias.astype(y.dtype)


class QuantizedEmbedding(Module):
    """An `Embedding` whose rows are int8, each times a scale."""

    weight: Array
    scale: Array

    def __init__(self, layer: Embedding) -> None:
        self.num_embeddings, self.features, self.dtype = layer.num_embeddings, layer.features, layer.dtype
        weight, scale = _quantized(layer.weight)
        self.weight, self.scale = Frozen(weight), Frozen(scale)

    def __call__(self, ids: Any) -> Any:
        """The rows at these indices."""
        ids = expected(ids, 0, self.num_embeddings, "Embedding: ids")
        scale = self.scale.at[ids].get(mode="fill", wrap_negative_indices=False)
        rows = self.weight[ids].astype(scale.dtype) * scale[..., None]
        return rows if self.dtype is None else rows.astype(self.dtype)

    def attend(self, x: Any) -> Any:
        """The products of vectors with all rows."""
        check_features(self, x, self.features)
        return _product(x, self.weight, self.scale, self.dtype)


class TransposedLinear(Module):
    """A `Linear` whose weight is stored as (out_features, in_features)."""

    weight: Array
    bias: Array | None

    def __init__(self, layer: Linear) -> None:
        self.in_features, self.out_features, self.dtype = layer.in_features, layer.out_features, layer.dtype
        self.weight, self.bias = Frozen(layer.weight.T), None if layer.bias is None else Frozen(layer.bias)

    def __call__(self, x: Any) -> Any:
        """The output of the layer."""
        check_features(self, x, self.in_features)
        x, weight, bias = computing(self.dtype, x, self.weight, self.bias)
        y = jnp.tensordot(x, weight, (-1, 1))
        return y if bias is None else y + bias


def transpose_narrow(model: Any) -> Any:
    """A copy whose linear layers with 16-bit weights store them transposed.

    The CPU multiplies a single row by these twice as fast.
    """

    def is_narrow(m: Any) -> bool:
        return type(m) is Linear and dtypes.bits(type_of(m.weight).dtype) == 16

    if not any([is_narrow(m) for _, m in modules(model)]):
        return model
    return replace(model, Linear, lambda m: TransposedLinear(m).train(m.training) if is_narrow(m) else m)


def _quantized(rows: Any) -> tuple[Any, Any]:
    """Rows as int8, and their scales: the largest magnitude of a row becomes 127."""
    wide = jnp.promote_types(type_of(rows).dtype, "float32")
    scale = jnp.max(jnp.abs(rows.astype(wide)), -1) / 127
    levels = jnp.round(rows.astype(wide) / jnp.where(scale == 0, 1, scale)[..., None])
    return levels.astype("int8"), scale.astype(type_of(rows).dtype)


def _product(x: Any, weight: Any, scale: Any, dtype: Any) -> Any:
    """x @ weight.T * scale; the weight is converted in the product."""
    x = jnp.asarray(x)
    x = x.astype(dtype or jnp.promote_types(x.dtype, scale.dtype))
    product = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=x.dtype)
    return product * scale.astype(x.dtype)


def quantize(model: Any) -> Any:
    """A copy whose linear and embedding layers have int8 weights: a quarter of the memory of float32.

    Each output channel has its own scale, so an element changes by at most 1/254 of the largest one of its channel. For
    inference: quantized weights have no gradients. To quantize a part of a model, quantize that part.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> layer = nn.Linear(256, 8, key=random.key(0))
    >>> small = nn.quantize(layer)
    >>> small.weight.dtype, bool(abs(small(jnp.ones(256)) - layer(jnp.ones(256))).max() < 0.02)
    (dtype('int8'), True)
    """
    kinds = {Linear: QuantizedLinear, Embedding: QuantizedEmbedding}
    present = [kind for kind in kinds if any([type(m) is kind for _, m in modules(model)])]
    if not present:
        raise ValueError(errors.explained("nn.quantize: the model has no Linear or Embedding layer."))
    for kind in present:
        model = replace(model, kind, lambda m: kinds[type(m)](m).train(m.training) if type(m) in kinds else m)
    return model
