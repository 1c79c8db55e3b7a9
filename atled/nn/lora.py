"""`LoRA`: a frozen layer plus a trained product of two small matrices."""

from __future__ import annotations

from typing import Any

import atled.numpy as jnp
from atled import random
from atled.core import errors
from atled.core.array import describe, type_of
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.containers import takes_key
from atled.nn.convolutions import Conv
from atled.nn.dropout_layers import Dropout
from atled.nn.linear_layers import Embedding, Linear, needed
from atled.nn.module import Module, settled, with_kinds
from atled.nn.module_filters import freeze
from atled.nn.variable_kinds import Frozen, Param


@formerly(base="layer", dropout="dropout_rate", init="weight_init")
class LoRA(Module):
    """`layer(x) + alpha / rank * up(down(x))`: the layer is frozen; `down` (to `rank` features) and `up` are trained.

    The layer is a `Linear`, an `Embedding`, or a `Conv` without groups; `down` has the same class, and `up` is a
    `Linear` that starts with zeros, so the output is unchanged at first. The output has the dtype of the frozen layer's
    output. `merged()` gives the plain layer with the product added to its weight.

    Args:
        alpha: the product is scaled by alpha / rank; None means `rank`, a scale of 1.
        dropout_rate: the dropout rate of the input of `down` while training; calls then need a `key`.
        weight_init: the initializer of `down`; None is the default of its class.
        param_dtype: the dtype of `down` and `up`; None is that of the frozen layer.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> attention = nn.MultiHeadAttention(8, 2, key=random.key(0))
    >>> tuned = nn.replace(attention, "query_proj", lambda layer, key: nn.LoRA(layer, 2, key=key), key=random.key(1))
    >>> tuned.query_proj
    LoRA(
      layer=Linear(weight=Frozen f32[8,8], bias=Frozen f32[8], in_features=8, out_features=8),
      down=Linear(weight=Param f32[8,2], in_features=8, out_features=2),
      up=Linear(weight=Param f32[2,8], in_features=2, out_features=8),
      scale=1.0,
    )
    """

    def __init__(
        self,
        layer: Any,
        rank: int,
        *,
        alpha: float | None = None,
        dropout_rate: float = 0.0,
        weight_init: Any = None,
        param_dtype: Any = None,
        key: Any = None,
    ) -> None:
        _check(layer, rank, dropout_rate)
        keys = random.split(needed(self, key))
        kind: dict[str, Any] = {"dtype": layer.dtype, "param_dtype": param_dtype or type_of(layer.weight).dtype}
        outputs = layer.features if isinstance(layer, Embedding) else layer.out_features
        self.layer = freeze(layer)
        self.down = _narrow(layer, int(rank), weight_init=weight_init, key=keys[0], **kind)
        self.up = Linear(int(rank), outputs, use_bias=False, weight_init=initializers.zeros, key=keys[1], **kind)
        self.dropout = Dropout(dropout_rate) if dropout_rate else None
        self.scale = 1.0 if alpha is None else float(alpha) / int(rank)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """The output of the frozen layer plus that of the product."""

        def of(layer: Any, x: Any, i: int) -> Any:
            return layer(x, key=random.fold_in(key, i)) if key is not None and takes_key(layer) else layer(x)

        y = of(self.layer, x, 1)
        dropped = x if self.dropout is None else self.dropout(x, key=key)
        return y + (self.scale * of(self.up, of(self.down, dropped, 2), 3)).astype(y.dtype)

    def attend(self, x: Any) -> Any:
        """`Embedding.attend` with the combined weight."""
        y = self.layer.attend(x)
        return y + (self.scale * self.down.attend(jnp.dot(x, self.up.weight.T))).astype(y.dtype)

    @property
    def weight(self) -> Any:
        """The weight of the merged layer: the frozen weight plus the scaled product."""
        return (self.layer.weight + self.scale * jnp.dot(self.down.weight, self.up.weight)).astype(
            self.layer.weight.dtype
        )

    @property
    def bias(self) -> Any:
        """The bias of the frozen layer."""
        return self.layer.bias

    def merged(self) -> Any:
        """The plain layer with the product added to its weight; frozen arrays become parameters again.

        >>> from atled import nn, random
        >>> nn.LoRA(nn.Linear(2, 3, key=random.key(0)), 1, key=random.key(1)).merged()
        Linear(weight=Param f32[2,3], bias=Param f32[3], in_features=2, out_features=3)
        """
        layer = self.layer.merged() if isinstance(self.layer, LoRA) else self.layer.__copy__()
        layer.weight = self.weight
        return with_kinds(layer, {n: Param for n, k in settled(layer).kinds.items() if issubclass(k, Frozen)})


def _narrow(layer: Any, rank: int, **settings: Any) -> Any:
    """A layer of the same kind with `rank` outputs and no bias."""
    if isinstance(layer, Embedding):
        return Embedding(layer.num_embeddings, rank, **settings)
    if isinstance(layer, Linear):
        return Linear(layer.in_features, rank, use_bias=False, **settings)
    slides = {"strides": layer.strides, "padding": layer.padding, "dilation": layer.dilation}
    return Conv(layer.in_features, rank, layer.kernel_size, use_bias=False, **slides, **settings)


def _check(layer: Any, rank: int, dropout_rate: float) -> None:
    """Raise an error for an unsupported layer or rank."""
    if not isinstance(layer, (Linear, Embedding, Conv)):
        raise TypeError(
            errors.explained(
                f"LoRA: the layer must be a Linear, an Embedding or a Conv; got {describe(layer)}.",
                "nn.replace(model, nn.Linear, lambda layer, key: nn.LoRA(layer, 8, key=key), key=key).",
            )
        )
    if rank < 1:
        raise ValueError(errors.explained(f"LoRA: the rank must be 1 or more; got {rank}."))
    if isinstance(layer, Conv) and layer.groups != 1:
        raise ValueError(errors.explained(f"LoRA: a Conv must not have groups; got one with {layer.groups}."))
    if isinstance(layer, Embedding) and dropout_rate:
        raise ValueError(errors.explained("LoRA: dropout is not supported for an Embedding, whose input is integers."))
    if layer.weight is None:
        raise ValueError(
            errors.explained(
                f"LoRA: the layer must have a weight; that of this {type(layer).__name__} is None, as inside of a "
                "WeightNorm or SpectralNorm, which owns the weight.",
                "nn.replace(model, nn.WeightNorm, lambda layer: layer.merged()) before it.",
            )
        )
    ndim = 2 if not isinstance(layer, Conv) else len(layer.kernel_size) + 2
    if type_of(layer.weight).ndim != ndim:
        raise ValueError(
            errors.explained(
                f"LoRA: the weight must be that of one layer, with {ndim} axes; got {type_of(layer.weight)}.",
                "the layers of a Stack through nn.replace, or LoRA inside of vmap.",
            )
        )
