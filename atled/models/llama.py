"""Llama (Touvron et al., 2023): a decoder with RMSNorm, rotary positions, grouped queries and SwiGLU.

The same file runs Mistral (a sliding window) and SmolLM2 (a tied head).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from atled import nn
from atled.core import errors
from atled.models.config import PublishedConfig
from atled.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class LlamaConfig(PublishedConfig):
    """Sizes, under the names of the published `config.json`."""

    MODEL_TYPE = "llama"
    REQUIRED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("silu",), "pretraining_tp": (1,)}
    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    rope_scaling: nn.RoPEScaling | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: int | None = None
    tie_word_embeddings: bool = False
    initializer_range: float = 0.02

    @classmethod
    def from_published(cls, found: Mapping[str, Any]) -> LlamaConfig:
        """The configuration of a published dict."""
        rope = {**(found.get("rope_scaling") or {}), **(found.get("rope_parameters") or {})}
        theta = rope.get("rope_theta", found.get("rope_theta", cls.rope_theta))
        return super().from_published({**found, "rope_theta": theta, "rope_scaling": _scaling(rope)})

    def published(self) -> dict[str, Any]:
        """The dict for `config.json`."""
        s, rope = self.rope_scaling, None
        if s is not None and s.original_length is None:
            rope = {"rope_type": "linear", "factor": s.factor}
        elif s is not None:
            rope = {
                "rope_type": "llama3", "factor": s.factor, "original_max_position_embeddings": s.original_length,
                "low_freq_factor": s.low_frequency, "high_freq_factor": s.high_frequency,
            }  # fmt: skip
        kind = "llama" if self.sliding_window is None else "mistral"
        architectures = [f"{kind.capitalize()}ForCausalLM"]
        return {**super().published(), "rope_scaling": rope, "model_type": kind, "architectures": architectures}


def _scaling(rope: Mapping[str, Any]) -> nn.RoPEScaling | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return None
    if kind == "linear":
        return nn.RoPEScaling(rope["factor"])
    if kind == "llama3":
        length = rope["original_max_position_embeddings"]
        return nn.RoPEScaling(rope["factor"], length, rope["low_freq_factor"], rope["high_freq_factor"])
    raise ValueError(errors.explained(f"LlamaConfig: rope_type must be default, linear or llama3; got {kind!r}."))


SIZES = {
    "smollm2-135m": LlamaConfig(49152, 576, 1536, 30, 9, 3, None, 8192, rope_theta=1e5, tie_word_embeddings=True),
    "smollm2-360m": LlamaConfig(49152, 960, 2560, 32, 15, 5, None, 8192, rope_theta=1e5, tie_word_embeddings=True),
    "smollm2-1.7b": LlamaConfig(49152, 2048, 8192, 24, 32, 32, None, 8192, rope_theta=1.3e5, tie_word_embeddings=True),
    "llama-2-7b": LlamaConfig(),
    "llama-2-13b": LlamaConfig(32000, 5120, 13824, 40, 40),
    "llama-2-70b": LlamaConfig(32000, 8192, 28672, 80, 64, 8),
    "llama-3-8b": LlamaConfig(128256, 4096, 14336, 32, 32, 8, None, 8192, rope_theta=5e5),
    "llama-3-70b": LlamaConfig(128256, 8192, 28672, 80, 64, 8, None, 8192, rope_theta=5e5),
    "mistral-7b": LlamaConfig(32000, 4096, 14336, 32, 32, 8, None, 32768, sliding_window=4096),
}


class Block(nn.Module):
    """Attention to earlier positions, then a gated feed-forward network; each adds to the residual stream."""

    def __init__(self, c: LlamaConfig, *, key: Any) -> None:
        keys, init = nn.Keys(key), nn.initializers.normal(c.initializer_range)
        head_dim = c.head_dim or c.hidden_size // c.num_attention_heads
        self.attention_norm = nn.RMSNorm(c.hidden_size, eps=c.rms_norm_eps)
        self.attention = nn.MultiHeadAttention(
            c.hidden_size, c.num_attention_heads, num_kv_heads=c.num_key_value_heads, head_dim=head_dim,
            positions=nn.RoPE(head_dim, c.rope_theta, scaling=c.rope_scaling), use_bias=c.attention_bias,
            local_window_size=None if c.sliding_window is None else (c.sliding_window - 1, 0),
            weight_init=init, key=keys(),
        )  # fmt: skip
        self.mlp_norm = nn.RMSNorm(c.hidden_size, eps=c.rms_norm_eps)
        sizes, common = (c.hidden_size, c.intermediate_size), {"use_bias": c.mlp_bias, "weight_init": init}
        self.gate, self.up = nn.Linear(*sizes, key=keys(), **common), nn.Linear(*sizes, key=keys(), **common)
        self.down = nn.Linear(*sizes[::-1], key=keys(), **common)

    def __call__(self, x: Any) -> Any:
        """The residual stream (batch, time, features) after the block."""
        x = x + self.attention(self.attention_norm(x), is_causal=True)
        y = self.mlp_norm(x)
        return x + self.down(nn.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Logits of the next token at each position: integers (batch, time) to (batch, time, vocab_size).

    Args:
        remat: recompute the blocks in the backward pass, which saves memory.

    >>> from atled import models, random
    >>> import atled.numpy as jnp
    >>> config = models.llama.LlamaConfig(100, 16, 32, 2, num_attention_heads=4, num_key_value_heads=2)
    >>> model = models.llama.Llama(config, key=random.key(0))
    >>> model(jnp.ones((1, 5), "int32")).shape
    (1, 5, 100)
    """

    def __init__(self, config: LlamaConfig, *, remat: Any = False, key: Any) -> None:
        keys, init = nn.Keys(key), nn.initializers.normal(config.initializer_range)
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size, weight_init=init, key=keys())
        self.blocks = nn.Stack(lambda key: Block(config, key=key), config.num_hidden_layers, remat=remat, key=keys())
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        sizes, tied = (config.hidden_size, config.vocab_size), config.tie_word_embeddings
        self.head = None if tied else nn.Linear(*sizes, use_bias=False, weight_init=init, key=keys())

    def __call__(self, ids: Any) -> Any:
        """Logits (batch, time, vocab_size)."""
        return self.logits(self.features(ids))

    def features(self, ids: Any) -> Any:
        """The output of the last block, normalized: (batch, time, hidden_size)."""
        return self.norm(self.blocks(self.embedding(ids)))

    def logits(self, features: Any) -> Any:
        """Logits (…, vocab_size) of features."""
        return self.embedding.attend(features) if self.head is None else self.head(features)


Model, Config = Llama, LlamaConfig


def loss(model: Llama, ids: Any, where: Any = None) -> Any:
    """The mean cross-entropy of each token given those before it.

    Args:
        where: False for padding, (batch, time).
    """
    where = None if where is None else where[:, 1:]
    return nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:], where=where)


# How parameters are split over a mesh with the axes "data" and "model"; the batch is split over "data".
SHARDING = {
    "embedding/weight": P("model", "data"),
    "query_proj/weight": P("data", "model"), "key_proj/weight": P("data", "model"),
    "value_proj/weight": P("data", "model"), "out_proj/weight": P("model", "data"),
    "gate/weight": P("data", "model"), "up/weight": P("data", "model"), "down/weight": P("model", "data"),
    "head/weight": P("data", "model"),
}  # fmt: skip
_LAYER = "model.layers.{}."
# Modules in published safetensors files.
NAMES = {
    "embedding": "model.embed_tokens", "norm": "model.norm", "head": "lm_head",
    "blocks/*/attention_norm": _LAYER + "input_layernorm",
    "blocks/*/mlp_norm": _LAYER + "post_attention_layernorm",
    **{f"blocks/*/attention/{a}_proj": f"{_LAYER}self_attn.{b}_proj"
       for a, b in {"query": "q", "key": "k", "value": "v", "out": "o"}.items()},
    **{f"blocks/*/{a}": f"{_LAYER}mlp.{a}_proj" for a in ("gate", "up", "down")},
}  # fmt: skip
