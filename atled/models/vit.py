"""ViT (Dosovitskiy et al., 2020): an encoder over the patches of an image, with layer norm before attention and MLP."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import atled.numpy as jnp
from atled import nn
from atled.core import errors
from atled.models.config import PublishedConfig
from atled.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class ViTConfig(PublishedConfig):
    """Sizes, under the names of the published `config.json`; `labels` are the names of the classes, if known."""

    MODEL_TYPE = "vit"
    REQUIRED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "architectures": (["ViTForImageClassification"],), "hidden_act": ("gelu",),
    }  # fmt: skip
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    patch_size: int | tuple[int, int] = 16
    image_size: int | tuple[int, int] = 224
    num_channels: int = 3
    num_labels: int = 1000
    labels: tuple[str, ...] = ()
    qkv_bias: bool = True
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02

    @classmethod
    def from_published(cls, found: Mapping[str, Any]) -> ViTConfig:
        """The configuration of a published dict."""
        names, sizes = found.get("id2label", {}), {n: found[n] for n in ("image_size", "patch_size") if n in found}
        sizes = {n: x if isinstance(x, int) else tuple(x) for n, x in sizes.items()}
        labels = tuple([names[i] for i in sorted(names, key=int)])
        count = len(labels) if "id2label" in found else found.get("num_labels", 2)  # files leave out two classes
        return super().from_published({**found, **sizes, "num_labels": count, "labels": labels})

    def published(self) -> dict[str, Any]:
        """The dict for `config.json`."""
        out = super().published()
        labels = out.pop("labels")
        if not labels:
            return out
        return {**out, "id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width of images."""
        return _pair(self.image_size)

    @property
    def num_patches(self) -> int:
        """The number of patches of an image."""
        return (self.image_shape[0] // _pair(self.patch_size)[0]) * (self.image_shape[1] // _pair(self.patch_size)[1])


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


_TI, _S, _B = (192, 12, 3, 768), (384, 12, 6, 1536), (768, 12, 12, 3072)
_L, _H = (1024, 24, 16, 4096), (1280, 32, 16, 5120)
SIZES = {
    "vit-ti-16": ViTConfig(*_TI), "vit-s-16": ViTConfig(*_S), "vit-s-32": ViTConfig(*_S, 32),
    "vit-b-16": ViTConfig(*_B), "vit-b-32": ViTConfig(*_B, 32),
    "vit-l-16": ViTConfig(*_L), "vit-l-32": ViTConfig(*_L, 32), "vit-h-14": ViTConfig(*_H, 14),
}  # fmt: skip


class Embeddings(nn.Module):
    """A class token and the patches of an image, each with a learned position."""

    def __init__(self, c: ViTConfig, *, key: Any) -> None:
        keys, init = nn.Keys(key), nn.initializers.truncated_normal(c.initializer_range)
        self.patches = nn.PatchEmbedding(
            c.num_channels, c.hidden_size, _pair(c.patch_size), weight_init=init, key=keys()
        )
        self.cls_token = nn.Param(init(keys(), (1, 1, c.hidden_size), "float32"))
        self.position_embeddings = nn.Param(init(keys(), (1, 1 + c.num_patches, c.hidden_size), "float32"))
        self.dropout = nn.Dropout(c.hidden_dropout_prob)

    def __call__(self, images: Any, *, key: Any = None) -> Any:
        """Images (batch, height, width, channels) as (batch, 1 + patches, features)."""
        x = self.patches(images)
        token = jnp.broadcast_to(self.cls_token.astype(x.dtype), (x.shape[0], 1, x.shape[2]))
        return self.dropout(jnp.concatenate([token, x], 1) + self.position_embeddings, key=key)


class Block(nn.Module):
    """Attention between all patches, then a feed-forward network; each adds to the residual stream."""

    def __init__(self, c: ViTConfig, *, key: Any) -> None:
        keys, init = nn.Keys(key), nn.initializers.truncated_normal(c.initializer_range)
        self.attention_norm = nn.LayerNorm(c.hidden_size, eps=c.layer_norm_eps)
        self.attention = nn.MultiHeadAttention(
            c.hidden_size, c.num_attention_heads, use_bias=c.qkv_bias, dropout_rate=c.attention_probs_dropout_prob,
            weight_init=init, key=keys(),
        )  # fmt: skip
        if not c.qkv_bias:  # the output has a bias in any case
            self.attention.out_proj = nn.Linear(c.hidden_size, c.hidden_size, weight_init=init, key=keys())
        self.mlp_norm = nn.LayerNorm(c.hidden_size, eps=c.layer_norm_eps)
        self.up = nn.Linear(c.hidden_size, c.intermediate_size, weight_init=init, key=keys())
        self.down = nn.Linear(c.intermediate_size, c.hidden_size, weight_init=init, key=keys())
        self.dropout = nn.Dropout(c.hidden_dropout_prob)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """The residual stream (batch, 1 + patches, features) after the block."""
        keys = nn.Keys(key)
        x = x + self.dropout(self.attention(self.attention_norm(x), key=keys()), key=keys())
        y = self.down(nn.gelu(self.up(self.mlp_norm(x)), approximate=False))
        return x + self.dropout(y, key=keys())


class ViT(nn.Module):
    """Logits of the classes of images: (batch, height, width, channels) to (batch, num_labels).

    Args:
        remat: recompute the blocks in the backward pass, which saves memory.

    >>> from atled import models, random
    >>> import atled.numpy as jnp
    >>> config = models.vit.ViTConfig(16, 2, 2, 32, patch_size=4, image_size=8, num_labels=10)
    >>> model = models.vit.ViT(config, key=random.key(0))
    >>> model(jnp.ones((1, 8, 8, 3))).shape
    (1, 10)
    """

    def __init__(self, config: ViTConfig, *, remat: Any = False, key: Any) -> None:
        keys, init = nn.Keys(key), nn.initializers.truncated_normal(config.initializer_range)
        self.config = config
        self.embeddings = Embeddings(config, key=keys())
        self.blocks = nn.Stack(lambda key: Block(config, key=key), config.num_hidden_layers, remat=remat, key=keys())
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.head = nn.Linear(config.hidden_size, config.num_labels, weight_init=init, key=keys())

    def __call__(self, images: Any, *, key: Any = None) -> Any:
        """Logits (batch, num_labels)."""
        return self.head(self.features(images, key=key)[:, 0])

    def features(self, images: Any, *, key: Any = None) -> Any:
        """The output of the last block, normalized: (batch, 1 + patches, hidden_size), the class token first."""
        shape = (*self.config.image_shape, self.config.num_channels)
        if images.ndim != 4 or images.shape[1:] != shape:
            axes = ", ".join(map(str, shape))
            raise ValueError(
                errors.explained(
                    f"ViT: images must have the shape (batch, {axes}); got {tuple(images.shape)}.",
                    f"atled.image.resize(images, (len(images), {axes}), 'cubic').",
                )
            )
        keys = nn.Keys(key)
        return self.norm(self.blocks(self.embeddings(images, key=keys()), key=keys()))


Model, Config = ViT, ViTConfig


def loss(model: ViT, images: Any, labels: Any, *, key: Any = None) -> Any:
    """The mean cross-entropy of the classes of images.

    Args:
        labels: the number of each image's class, (batch,).
        key: a random key for dropout while training.
    """
    return nn.losses.cross_entropy(model(images, key=key), labels)


# How parameters are split over a mesh with the axes "data" and "model"; the batch is split over "data".
SHARDING = {
    "patches/weight": P(None, None, None, ("data", "model")),
    "query_proj/weight": P("data", "model"), "key_proj/weight": P("data", "model"),
    "value_proj/weight": P("data", "model"), "out_proj/weight": P("model", "data"),
    "up/weight": P("data", "model"), "down/weight": P("model", "data"), "head/weight": P(("data", "model")),
}  # fmt: skip
_LAYER = "vit.encoder.layer.{}."
# Modules in published files.
NAMES = {
    "embeddings/patches": "vit.embeddings.patch_embeddings.projection", "embeddings": "vit.embeddings",
    "blocks/*/attention_norm": _LAYER + "layernorm_before", "blocks/*/mlp_norm": _LAYER + "layernorm_after",
    **{f"blocks/*/attention/{a}_proj": f"{_LAYER}attention.attention.{a}" for a in ("query", "key", "value")},
    "blocks/*/attention/out_proj": _LAYER + "attention.output.dense",
    "blocks/*/up": _LAYER + "intermediate.dense", "blocks/*/down": _LAYER + "output.dense",
    "norm": "vit.layernorm", "head": "classifier",
}  # fmt: skip
