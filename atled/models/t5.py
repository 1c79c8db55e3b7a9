"""T5 (Raffel et al., 2020): an encoder and a decoder with RMSNorm and relative positions. Also T5 1.1 and FLAN-T5."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import atled.numpy as jnp
from atled import nn
from atled.core import errors
from atled.models.config import PublishedConfig
from atled.nn.initializers import normal
from atled.nn.state_dicts import TORCH, Part
from atled.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class T5Config(PublishedConfig):
    """Sizes, under the names of the published `config.json`."""

    MODEL_TYPE = "t5"
    REQUIRED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "architectures": tuple([[f"T5{end}"] for end in ("ForConditionalGeneration", "WithLMHeadModel", "Model")]),
        "feed_forward_proj": ("relu", "gated-gelu"), "is_encoder_decoder": (True,), "is_decoder": (False,),
    }  # fmt: skip
    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_heads: int = 8
    num_decoder_layers: int | None = None
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int = 0

    @classmethod
    def from_published(cls, found: Mapping[str, Any]) -> T5Config:
        """The configuration of a published dict."""
        found = {name: x for name, x in found.items() if x is not None}
        # Transformers 5 always writes tie_word_embeddings=True, and the former value under another name
        tied = found.get("scale_decoder_outputs", found.get("tie_word_embeddings", True))
        config = super().from_published({**found, "tie_word_embeddings": tied})
        activation = "relu" if config.feed_forward_proj == "relu" else "gelu_new"
        if (got := found.get("dense_act_fn", activation)) != activation:
            raise ValueError(errors.explained(f"T5Config: dense_act_fn must be {activation!r} here; got {got!r}."))
        return config


SIZES = {
    **{f"t5-{name}": T5Config(32128, *sizes) for name, sizes in {
        "small": (512, 64, 2048, 6, 8), "base": (768, 64, 3072, 12, 12), "large": (1024, 64, 4096, 24, 16),
        "3b": (1024, 128, 16384, 24, 32), "11b": (1024, 128, 65536, 24, 128),
    }.items()},
    **{f"t5-v1_1-{name}": T5Config(32128, *sizes, None, "gated-gelu", False) for name, sizes in {
        "small": (512, 64, 1024, 8, 6), "base": (768, 64, 2048, 12, 12), "large": (1024, 64, 2816, 24, 16),
        "xl": (2048, 64, 5120, 24, 32), "xxl": (4096, 64, 10240, 24, 64),
    }.items()},
}  # fmt: skip


def _attention(c: T5Config, key: Any) -> nn.MultiHeadAttention:
    """Attention without a factor of the logits; the initial queries have it instead."""
    options: Any = {"head_dim": c.d_kv, "scale": 1.0, "use_bias": False, "dropout_rate": c.dropout_rate}
    attention = nn.MultiHeadAttention(c.d_model, c.num_heads, key=key, **options)
    attention.query_proj.weight *= c.d_kv**-0.5
    return attention


class Block(nn.Module):
    """Attention, in the decoder also to the context, then a feed-forward network; each adds to the residual stream."""

    def __init__(self, c: T5Config, is_decoder: bool, *, key: Any) -> None:
        keys, inner = nn.Keys(key), ("wi",) if c.feed_forward_proj == "relu" else ("wi_0", "wi_1")
        self.attention_norm, norm, self.mlp_norm = [nn.RMSNorm(c.d_model, eps=c.layer_norm_epsilon) for _ in range(3)]
        self.attention, self.dropout = _attention(c, keys()), nn.Dropout(c.dropout_rate)
        self.cross_attention_norm: Any = norm if is_decoder else None
        self.cross_attention: Any = _attention(c, keys()) if is_decoder else None
        mlp = {name: nn.Linear(c.d_model, c.d_ff, use_bias=False, key=keys()) for name in inner}
        self.mlp = {**mlp, "wo": nn.Linear(c.d_ff, c.d_model, use_bias=False, key=keys())}

    def __call__(self, x: Any, bias: Any, context: Any = None, mask: Any = None, *, key: Any = None) -> Any:
        """The residual stream (batch, time, d_model) after the block; `mask` is False for padding of the encoder."""
        keys, y, mlp = nn.Keys(key), self.attention_norm(x), self.mlp
        if self.cross_attention is None:  # the second y: never from a cache
            x = x + self.dropout(self.attention(y, y, bias=bias, mask=mask, key=keys()), key=keys())
        else:
            x = x + self.dropout(self.attention(y, bias=bias, is_causal=True, key=keys()), key=keys())
            y = self.cross_attention_norm(x)
            x = x + self.dropout(self.cross_attention(y, context, mask=mask, key=keys()), key=keys())
        y = self.mlp_norm(x)
        y = nn.relu(mlp["wi"](y)) if "wi" in mlp else nn.gelu(mlp["wi_0"](y), approximate=True) * mlp["wi_1"](y)
        return x + self.dropout(mlp["wo"](self.dropout(y, key=keys())), key=keys())


class Side(nn.Module):
    """The encoder or the decoder: blocks that share a bias by relative position, then a norm."""

    def __init__(self, c: T5Config, is_decoder: bool, *, remat: Any, key: Any) -> None:
        keys, depth = nn.Keys(key), (is_decoder and c.num_decoder_layers) or c.num_layers
        buckets = c.relative_attention_num_buckets, c.relative_attention_max_distance, not is_decoder
        self.positions, self.dropout = nn.Positions() if is_decoder else None, nn.Dropout(c.dropout_rate)
        self.relative = nn.RelativePositions(c.num_heads, *buckets, weight_init=normal(c.d_model**-0.5), key=keys())
        self.blocks = nn.Stack(lambda key: Block(c, is_decoder, key=key), depth, remat=remat, key=keys())
        self.norm = nn.RMSNorm(c.d_model, eps=c.layer_norm_epsilon)

    def __call__(self, x: Any, context: Any = None, where: Any = None, *, key: Any = None) -> Any:
        """The output of the last block, normalized: (batch, time, d_model)."""
        keys, mask = nn.Keys(key), None if where is None else where[:, None, None, :]
        positions = [jnp.arange(x.shape[-2])] * 2 if self.positions is None else self.positions(x.shape[-2])
        x = self.blocks(self.dropout(x, key=keys()), self.relative(*positions), context, mask, key=keys())
        return self.dropout(self.norm(x), key=keys())


class T5(nn.Module):
    """Logits (batch, decoder time, vocab_size) for tokens of the encoder (batch, time) and the decoder.

    Args:
        remat: recompute the blocks in the backward pass, which saves memory.

    >>> from atled import generate, models, random
    >>> import atled.numpy as jnp
    >>> config = models.t5.T5Config(100, 16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    >>> model = models.t5.T5(config, key=random.key(0)).eval()
    >>> model(jnp.ones((1, 5), "int32"), jnp.ones((1, 3), "int32")).shape
    (1, 3, 100)
    >>> [len(row) for row in generate.tokens(model, [[1, 2, 3], [4]], max_new_tokens=5)]
    [5, 5]
    """

    def __init__(self, config: T5Config, *, remat: Any = False, key: Any) -> None:
        c, keys, self.config = config, nn.Keys(key), config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, weight_init=normal(1.0), key=keys())
        self.encoder: Any = Side(c, False, remat=remat, key=keys())
        self.decoder = Side(c, True, remat=remat, key=keys())
        self.head = None if c.tie_word_embeddings else nn.Linear(c.d_model, c.vocab_size, use_bias=False, key=keys())

    def __call__(self, ids: Any, decoder_ids: Any, where: Any = None, *, key: Any = None) -> Any:
        """Logits (batch, decoder time, vocab_size); `where` is False for padding of `ids`."""
        keys = nn.Keys(key)
        context = self.encoder(self.embedding(ids), None, where, key=keys())
        return self.logits(self.decoder(self.embedding(decoder_ids), context, where, key=keys()))

    def encode(self, ids: Any, where: Any = None) -> T5:
        """The model for decoding, without the encoder and with the keys and values of these tokens."""
        model, context = self.__copy__(), self.encoder(self.embedding(ids), None, where)
        model.encoder = None
        model.decoder = nn.replace(self.decoder, "cross_attention", lambda m: m.with_context(context, where))
        return model

    def features(self, decoder_ids: Any) -> Any:
        """The output of the decoder (batch, decoder time, d_model), in a model that `encode` returns."""
        if self.encoder is not None:
            raise ValueError(errors.explained("T5: features need the tokens of the encoder.", "model.encode(ids)."))
        return self.decoder(self.embedding(decoder_ids))

    def logits(self, features: Any) -> Any:
        """Logits (…, vocab_size) of features."""
        return self.embedding.attend(features * self.config.d_model**-0.5) if self.head is None else self.head(features)


def loss(model: T5, ids: Any, labels: Any, where: Any = None, *, key: Any = None) -> Any:
    """The mean cross-entropy of each label given those before it and the tokens of the encoder.

    Args:
        labels: integers (batch, decoder time); -100 for padding.
        where: False for padding of `ids`, (batch, time).
        key: a random key for dropout while training.
    """
    is_label, c = labels != -100, model.config
    start, before = jnp.full_like(labels[:, :1], c.decoder_start_token_id), jnp.where(is_label, labels, c.pad_token_id)
    logits = model(ids, jnp.concatenate([start, before[:, :-1]], 1), where, key=key)
    return nn.losses.cross_entropy(logits, labels, where=is_label)


Model, Config = T5, T5Config
# How parameters are split over a mesh with the axes "data" and "model"; the batch is split over "data".
SHARDING = {
    "embedding/weight": P("model", "data"), "relative/weight": P(), "out_proj/weight": P("model", "data"),
    "wo/weight": P("model", "data"), "weight": P("data", "model"),
}  # fmt: skip
# Arrays of attention and modules in published files, which may also have copies of the embedding and an unused table.
_PROJECTIONS = {f"{n}_proj/weight": Part(f"{n[0]}.weight", (1, 0)) for n in ("query", "key", "value", "out")}
_PARTS = {"attention": "SelfAttention", "cross_attention": "EncDecAttention", "mlp": "DenseReluDense"}
LAYOUT = {**TORCH, nn.MultiHeadAttention: _PROJECTIONS}
NAMES = {"embedding": "shared", "head": "lm_head"}
for _side, _parts in {"encoder": ("attention", "mlp"), "decoder": tuple(_PARTS)}.items():
    NAMES[f"{_side}/relative"] = f"{_side}.block.0.layer.0.SelfAttention.relative_attention_bias"
    NAMES[f"{_side}/norm"] = f"{_side}.final_layer_norm"
    for _i, _part in enumerate(_parts):
        NAMES[f"{_side}/blocks/*/{_part}"] = f"{_side}.block.{{}}.layer.{_i}.{_PARTS[_part]}"
        NAMES[f"{_side}/blocks/*/{_part}_norm"] = f"{_side}.block.{{}}.layer.{_i}.layer_norm"
IGNORED = r"(en|de)coder\.embed_tokens\.weight|.*\.EncDecAttention\.relative_attention_bias\.weight"
