"""BERT (Devlin et al., 2018): an encoder with learned positions, token types, and layer norm after each sum."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import atled.numpy as jnp
from atled import nn
from atled.core import errors
from atled.models.config import PublishedConfig
from atled.models.pretrained import SEPARATE
from atled.nn.state_dicts import Part
from atled.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class BertConfig(PublishedConfig):
    """Sizes, under the names of `config.json`. A "BertModel" has a pooler, a "BertForMaskedLM" a masked-LM head."""

    MODEL_TYPE = "bert"
    REQUIRED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("gelu",), "position_embedding_type": ("absolute",), "tie_word_embeddings": (True,),
        "is_decoder": (False,), "add_cross_attention": (False,),
        "architectures": (("BertForPreTraining",), ("BertForMaskedLM",), ("BertModel",)),
    }  # fmt: skip
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    pad_token_id: int | None = 0
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    architectures: tuple[str, ...] = ("BertForPreTraining",)

    @classmethod
    def from_published(cls, found: Mapping[str, Any]) -> BertConfig:
        """The configuration of a published dict."""
        return super().from_published({**found, "architectures": tuple(found.get("architectures", cls.architectures))})


SIZES = {
    "bert-tiny": BertConfig(30522, 128, 2, 2, 512), "bert-mini": BertConfig(30522, 256, 4, 4, 1024),
    "bert-small": BertConfig(30522, 512, 4, 8, 2048), "bert-medium": BertConfig(30522, 512, 8, 8, 2048),
    "bert-base-uncased": BertConfig(), "bert-large-uncased": BertConfig(30522, 1024, 24, 16, 4096),
}  # fmt: skip


class Block(nn.Module):
    """Attention between all tokens, then a feed-forward network; layer norm follows each sum."""

    def __init__(self, c: BertConfig, *, key: Any) -> None:
        keys, init, rate = nn.Keys(key), nn.initializers.normal(c.initializer_range), c.attention_probs_dropout_prob
        self.attention = nn.MultiHeadAttention(
            c.hidden_size, c.num_attention_heads, dropout_rate=rate, weight_init=init, key=keys()
        )
        self.attention_norm = nn.LayerNorm(c.hidden_size, eps=c.layer_norm_eps)
        self.up = nn.Linear(c.hidden_size, c.intermediate_size, weight_init=init, key=keys())
        self.down = nn.Linear(c.intermediate_size, c.hidden_size, weight_init=init, key=keys())
        self.mlp_norm = nn.LayerNorm(c.hidden_size, eps=c.layer_norm_eps)
        self.dropout = nn.Dropout(c.hidden_dropout_prob)

    def __call__(self, x: Any, *, mask: Any = None, key: Any = None) -> Any:
        """The features (batch, time, features) after the block."""
        keys = nn.Keys(key)
        x = self.attention_norm(x + self.dropout(self.attention(x, mask=mask, key=keys()), key=keys()))
        y = self.down(nn.gelu(self.up(x), approximate=False))
        return self.mlp_norm(x + self.dropout(y, key=keys()))


class Pooler(nn.Module):
    """The features of the first token, after a linear layer and tanh."""

    def __init__(self, c: BertConfig, *, key: Any) -> None:
        init = nn.initializers.normal(c.initializer_range)
        self.dense = nn.Linear(c.hidden_size, c.hidden_size, weight_init=init, key=key)

    def __call__(self, x: Any) -> Any:
        """Features (batch, time, features) to (batch, features)."""
        return nn.tanh(self.dense(x[:, 0]))


class Head(nn.Module):
    """Logits of the tokens: a linear layer, GELU, layer norm, and the products with all embeddings plus a bias."""

    def __init__(self, c: BertConfig, *, key: Any) -> None:
        init = nn.initializers.normal(c.initializer_range)
        self.transform = nn.Linear(c.hidden_size, c.hidden_size, weight_init=init, key=key)
        self.norm = nn.LayerNorm(c.hidden_size, eps=c.layer_norm_eps)
        self.bias = nn.Param(jnp.zeros(c.vocab_size))

    def __call__(self, x: Any, embedding: nn.Embedding) -> Any:
        """Logits (…, vocab_size)."""
        return embedding.attend(self.norm(nn.gelu(self.transform(x), approximate=False))) + self.bias


class Bert(nn.Module):
    """Logits of the token at each position: integers (batch, time) to (batch, time, vocab_size).

    Args:
        remat: recompute the blocks in the backward pass, which saves memory.

    >>> from atled import models, random
    >>> import atled.numpy as jnp
    >>> config = models.bert.BertConfig(100, 16, 2, 2, 32)
    >>> model = models.bert.Bert(config, key=random.key(0)).eval()
    >>> ids = jnp.array([[2, 5, 7, 0]])
    >>> model(ids, mask=ids != 0).shape, model.pooled(model.features(ids, mask=ids != 0)).shape
    ((1, 4, 100), (1, 16))
    """

    def __init__(self, config: BertConfig, *, remat: Any = False, key: Any) -> None:
        keys, init = nn.Keys(key), nn.initializers.normal(config.initializer_range)
        self.config, width, (kind,) = config, config.hidden_size, config.architectures
        self.embedding = nn.Embedding(config.vocab_size, width, weight_init=init, key=keys())
        self.position_embedding = nn.Embedding(config.max_position_embeddings, width, weight_init=init, key=keys())
        self.type_embedding = nn.Embedding(config.type_vocab_size, width, weight_init=init, key=keys())
        self.norm, self.dropout = nn.LayerNorm(width, eps=config.layer_norm_eps), nn.Dropout(config.hidden_dropout_prob)
        self.blocks = nn.Stack(lambda key: Block(config, key=key), config.num_hidden_layers, remat=remat, key=keys())
        self.pooler = Pooler(config, key=keys()) if kind != "BertForMaskedLM" else None
        self.head = Head(config, key=keys()) if kind != "BertModel" else None
        self.next_sentence = nn.Linear(width, 2, weight_init=init, key=keys()) if kind == "BertForPreTraining" else None

    def __call__(self, ids: Any, token_types: Any = None, *, mask: Any = None, key: Any = None) -> Any:
        """Logits (batch, time, vocab_size); the features if there is no masked-LM head. See `features`."""
        x = self.features(ids, token_types, mask=mask, key=key)
        return x if self.head is None else self.head(x, self.embedding)

    def features(self, ids: Any, token_types: Any = None, *, mask: Any = None, key: Any = None) -> Any:
        """The output of the last block: (batch, time, hidden_size).

        Args:
            token_types: 1 for tokens of a second sentence, (batch, time).
            mask: False for padding, (batch, time).
        """
        keys, time, n = nn.Keys(key), ids.shape[-1], self.config.max_position_embeddings
        if time > n:
            raise ValueError(errors.explained(f"Bert: there are {n} positions; got {time} tokens.", f"ids[:, :{n}]."))
        types = jnp.zeros_like(ids) if token_types is None else token_types
        x = self.embedding(ids) + self.type_embedding(types) + self.position_embedding(jnp.arange(time))
        x = self.dropout(self.norm(x), key=keys())
        return self.blocks(x, mask=None if mask is None else mask[:, None, None, :], key=keys())

    def pooled(self, features: Any) -> Any:
        """A vector for each sequence, (batch, hidden_size)."""
        if self.pooler is None:
            raise ValueError(errors.explained("Bert: BertForMaskedLM has no pooler.", "features[:, 0]."))
        return self.pooler(features)


Model, Config = Bert, BertConfig


def loss(
    model: Bert, ids: Any, labels: Any, where: Any, token_types: Any = None, *, mask: Any = None, key: Any = None
) -> Any:
    """The mean cross-entropy of the tokens to predict; the other arguments are those of `Bert.features`.

    Args:
        labels: the tokens before some of `ids` were hidden, (batch, time).
        where: True for the tokens to predict, (batch, time).
    """
    if model.head is None:
        raise ValueError(errors.explained("bert.loss: BertModel has no head.", "architectures=('BertForMaskedLM',)."))
    return nn.losses.cross_entropy(model(ids, token_types, mask=mask, key=key), labels, where=where)


# How parameters are split over a mesh with the axes "data" and "model"; the batch is split over "data".
SHARDING = {
    "embedding/weight": P(None, ("data", "model")),
    **{f"{name}_proj/weight": P("data", "model") for name in ("query", "key", "value")},
    "out_proj/weight": P("model", "data"), "up/weight": P("data", "model"), "down/weight": P("model", "data"),
}  # fmt: skip
PREFIX, IGNORED = "bert.", r"(bert\.)?embeddings\.position_ids|cls\.predictions\.decoder\.(weight|bias)"
# Prefixes of arrays that a model without this part ignores; endings in the first published files.
OPTIONAL = {"pooler": "bert.pooler.", "next_sentence": "cls.seq_relationship.", "head": "cls.predictions."}
FORMER = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
_LAYER = "bert.encoder.layer.{}."
# Modules in published files, and arrays of the heads, which not all files have; "*" is the pooler.
NAMES = {
    "embedding": "bert.embeddings.word_embeddings", "position_embedding": "bert.embeddings.position_embeddings",
    "type_embedding": "bert.embeddings.token_type_embeddings", "norm": "bert.embeddings.LayerNorm",
    **{f"blocks/*/attention/{a}_proj": f"{_LAYER}attention.self.{a}" for a in ("query", "key", "value")},
    "blocks/*/attention/out_proj": _LAYER + "attention.output.dense",
    "blocks/*/attention_norm": _LAYER + "attention.output.LayerNorm", "blocks/*/up": _LAYER + "intermediate.dense",
    "blocks/*/down": _LAYER + "output.dense", "blocks/*/mlp_norm": _LAYER + "output.LayerNorm", "*": "bert.{}",
}  # fmt: skip
_HEADS = {
    "head/transform": "cls.predictions.transform.dense", "head/norm": "cls.predictions.transform.LayerNorm",
    "head": "cls.predictions", "next_sentence": "cls.seq_relationship",
}  # fmt: skip
_PARTS = {"weight": ("weight", (1, 0)), "scale": ("weight", None), "bias": ("bias", None)}
LAYOUT = {**SEPARATE, Bert: {f"{path}/{ours}": Part(f"{name}.{theirs}", axes)
                             for path, name in _HEADS.items() for ours, (theirs, axes) in _PARTS.items()}}  # fmt: skip
