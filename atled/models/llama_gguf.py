"""Llama in GGUF files: names of modules, sizes, and the order of rotated features."""

from __future__ import annotations

import numpy as np

from atled.checkpoints import gguf
from atled.core import errors
from atled.models.llama import LlamaConfig

NAMES = {
    "embedding": "token_embd", "norm": "output_norm", "head": "output",
    "blocks/*/attention_norm": "blk.{}.attn_norm", "blocks/*/mlp_norm": "blk.{}.ffn_norm",
    **{f"blocks/*/attention/{a}_proj": f"blk.{{}}.attn_{b}"
       for a, b in {"query": "q", "key": "k", "value": "v", "out": "output"}.items()},
    **{f"blocks/*/{a}": f"blk.{{}}.ffn_{a}" for a in ("gate", "up", "down")},
}  # fmt: skip


def config_of(file: gguf.File) -> LlamaConfig:
    """The sizes of a GGUF file."""
    told = {name.removeprefix("llama."): x for name, x in file.metadata.items()}
    if told.get("rope.scaling.type", "none") != "none":
        raise ValueError(errors.explained(f"LlamaConfig: {file.path}: scaled rotary positions are not supported."))
    return LlamaConfig(
        vocab_size=file.tensors["token_embd.weight"].shape[0], hidden_size=told["embedding_length"],
        intermediate_size=told["feed_forward_length"], num_hidden_layers=told["block_count"],
        num_attention_heads=told["attention.head_count"],
        num_key_value_heads=told.get("attention.head_count_kv", told["attention.head_count"]),
        head_dim=told.get("attention.key_length"), max_position_embeddings=told["context_length"],
        rms_norm_eps=told["attention.layer_norm_rms_epsilon"], rope_theta=told.get("rope.freq_base", 10000.0),
        tie_word_embeddings="output.weight" not in file.tensors,
    )  # fmt: skip


def published_array(config: LlamaConfig, name: str, x: np.ndarray) -> np.ndarray:
    """An array of a GGUF file in the layout of safetensors: GGUF has rotated pairs of rows as neighbours."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(name.split(".")[-2])
    if heads is None:
        return x
    return x.reshape(heads, -1, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)
