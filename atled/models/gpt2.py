"""GPT-2 (Radford et al., 2019): a decoder with layer norm, learned positions and a tied head."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from atled import nn
from atled.models.config import PublishedConfig
from atled.nn.state_dicts import HUGGING_FACE_GPT2
from atled.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class GPT2Config(PublishedConfig):
    """Sizes, under the names of the published `config.json`."""

    MODEL_TYPE = "gpt2"
    REQUIRED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "activation_function": ("gelu_new", "gelu_pytorch_tanh"), "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,), "tie_word_embeddings": (True,), "add_cross_attention": (False,),
    }  # fmt: skip
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    embd_pdrop: float = 0.1
    resid_pdrop: float = 0.1
    attn_pdrop: float = 0.1


SIZES = {
    "gpt2": GPT2Config(),
    "gpt2-medium": GPT2Config(n_embd=1024, n_layer=24, n_head=16),
    "gpt2-large": GPT2Config(n_embd=1280, n_layer=36, n_head=20),
    "gpt2-xl": GPT2Config(n_embd=1600, n_layer=48, n_head=25),
}


class Block(nn.Module):
    """Attention to earlier positions, then a feed-forward network; each adds to the residual stream."""

    def __init__(self, c: GPT2Config, *, key: Any) -> None:
        keys, width = nn.Keys(key), c.n_inner or 4 * c.n_embd
        init, last = [
            nn.initializers.normal(s) for s in (c.initializer_range, c.initializer_range / (2 * c.n_layer) ** 0.5)
        ]
        self.attention_norm = nn.LayerNorm(c.n_embd, eps=c.layer_norm_epsilon)
        self.attention = nn.MultiHeadAttention(
            c.n_embd, c.n_head, dropout_rate=c.attn_pdrop, weight_init=init, key=keys()
        )
        self.mlp_norm = nn.LayerNorm(c.n_embd, eps=c.layer_norm_epsilon)
        self.up = nn.Linear(c.n_embd, width, weight_init=init, key=keys())
        self.down = nn.Linear(width, c.n_embd, weight_init=last, key=keys())
        self.dropout = nn.Dropout(c.resid_pdrop)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """The residual stream (batch, time, features) after the block."""
        keys = nn.Keys(key)
        x = x + self.dropout(self.attention(self.attention_norm(x), is_causal=True, key=keys()), key=keys())
        y = self.down(nn.gelu(self.up(self.mlp_norm(x)), approximate=True))
        return x + self.dropout(y, key=keys())


class GPT2(nn.Module):
    """Logits of the next token at each position: integers (batch, time) to (batch, time, vocab_size).

    Args:
        remat: recompute the blocks in the backward pass, which saves memory.

    >>> from atled import models, random
    >>> import atled.numpy as jnp
    >>> config = models.gpt2.GPT2Config(100, 32, n_embd=16, n_layer=2, n_head=2)
    >>> model = models.gpt2.GPT2(config, key=random.key(0)).eval()
    >>> model(jnp.ones((1, 5), "int32")).shape
    (1, 5, 100)
    """

    def __init__(self, config: GPT2Config, *, remat: Any = False, key: Any) -> None:
        keys, init = nn.Keys(key), nn.initializers.normal(config.initializer_range)
        self.config, self.positions = config, nn.Positions()
        self.embedding = nn.Embedding(config.vocab_size, config.n_embd, weight_init=init, key=keys())
        self.position_embedding = nn.Embedding(config.n_positions, config.n_embd, weight_init=init, key=keys())
        self.dropout = nn.Dropout(config.embd_pdrop)
        self.blocks = nn.Stack(lambda key: Block(config, key=key), config.n_layer, remat=remat, key=keys())
        self.norm = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)

    def __call__(self, ids: Any, *, key: Any = None) -> Any:
        """Logits (batch, time, vocab_size)."""
        return self.logits(self.features(ids, key=key))

    def features(self, ids: Any, *, key: Any = None) -> Any:
        """The output of the last block, normalized: (batch, time, n_embd)."""
        keys = nn.Keys(key)
        positions, _ = self.positions(ids.shape[-1])
        x = self.embedding(ids) + self.position_embedding(positions)
        return self.norm(self.blocks(self.dropout(x, key=keys()), key=keys()))

    def logits(self, features: Any) -> Any:
        """Logits (…, vocab_size) of features."""
        return self.embedding.attend(features)


Model, Config = GPT2, GPT2Config


def loss(model: GPT2, ids: Any, where: Any = None, *, key: Any = None) -> Any:
    """The mean cross-entropy of each token given those before it.

    Args:
        where: False for padding, (batch, time).
        key: a random key for dropout while training.
    """
    where = None if where is None else where[:, 1:]
    return nn.losses.cross_entropy(model(ids[:, :-1], key=key), ids[:, 1:], where=where)


# How parameters are split over a mesh with the axes "data" and "model"; the batch is split over "data".
SHARDING = {
    "embedding/weight": P(None, "model"),  # 50,257 rows: an odd number
    "query_proj/weight": P("data", "model"), "key_proj/weight": P("data", "model"),
    "value_proj/weight": P("data", "model"), "out_proj/weight": P("model", "data"),
    "up/weight": P("data", "model"), "down/weight": P("model", "data"),
}  # fmt: skip
# Modules in published files. Their linear weights are transposed; queries, keys and values are in one array.
LAYOUT = HUGGING_FACE_GPT2
NAMES = {
    "embedding": "transformer.wte", "position_embedding": "transformer.wpe", "norm": "transformer.ln_f",
    "blocks/*/attention_norm": "transformer.h.{}.ln_1", "blocks/*/attention": "transformer.h.{}.attn",
    "blocks/*/mlp_norm": "transformer.h.{}.ln_2",
    "blocks/*/up": "transformer.h.{}.mlp.c_fc", "blocks/*/down": "transformer.h.{}.mlp.c_proj",
}  # fmt: skip
