"""Neural networks: modules and layers; activations, the softmax family, attention, and initializers."""

import importlib
from typing import TYPE_CHECKING, Any

from atled.nn.attention import dot_product_attention
from atled.nn.block_scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul
from atled.nn.functions import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    log_softmax,
    logmeanexp,
    logsumexp,
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softmax,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    standardize,
    swish,
)  # fmt: skip
from atled.numpy.elementwise import tanh

if TYPE_CHECKING:
    from atled.nn import initializers, losses
    from atled.nn.capturing import capture
    from atled.nn.composing import Lambda, Residual, Sequential
    from atled.nn.convolutions import Conv, ConvTranspose
    from atled.nn.dropouts import AlphaDropout, Dropout, SpatialDropout, StochasticDepth
    from atled.nn.experts import MixtureOfExperts
    from atled.nn.features import FourierFeatures, PatchEmbedding
    from atled.nn.graphs import GraphAttention, GraphConv, GraphNetwork
    from atled.nn.keys import Keys
    from atled.nn.kinds import Buffer, Frozen, Kind, Param
    from atled.nn.layers import Dense, Embedding, Linear
    from atled.nn.long_attention import memory_efficient_attention
    from atled.nn.low_rank import LoRA
    from atled.nn.module import Module
    from atled.nn.multi_head import Cache, MultiHeadAttention, start_decoding
    from atled.nn.norms import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
    from atled.nn.pooling import (
        AdaptiveAvgPool,
        AdaptiveMaxPool,
        AvgPool,
        GlobalAvgPool,
        GlobalMaxPool,
        MaxPool,
        avg_pool,
        max_pool,
    )
    from atled.nn.positions import ALiBi, RelativePositions, RoPE, SinusoidalPositions
    from atled.nn.recurrent import RNN, Bidirectional, ConvLSTMCell, GRUCell, LSTMCell, RNNCell
    from atled.nn.reparametrized import SpectralNorm, WeightNorm
    from atled.nn.replacing import replace
    from atled.nn.selecting import buffers, cast, declare, freeze, matches, merge, modules, only, params
    from atled.nn.shards import create, creator, shardings
    from atled.nn.stack import Stack
    from atled.nn.summaries import summary
    from atled.nn.weights import load_state, state

# Imported lazily.
_NAMES = {
    "capturing": ("capture",),
    "composing": ("Lambda", "Residual", "Sequential"),
    "convolutions": ("Conv", "ConvTranspose"),
    "dropouts": ("AlphaDropout", "Dropout", "SpatialDropout", "StochasticDepth"),
    "experts": ("MixtureOfExperts",),
    "features": ("FourierFeatures", "PatchEmbedding"),
    "graphs": ("GraphAttention", "GraphConv", "GraphNetwork"),
    "keys": ("Keys",),
    "kinds": ("Buffer", "Frozen", "Kind", "Param"),
    "layers": ("Dense", "Embedding", "Linear"),
    "long_attention": ("memory_efficient_attention",),
    "low_rank": ("LoRA",),
    "module": ("Module",),
    "multi_head": ("Cache", "MultiHeadAttention", "start_decoding"),
    "norms": ("BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm"),
    "pooling": (
        "AdaptiveAvgPool",
        "AdaptiveMaxPool",
        "avg_pool",
        "AvgPool",
        "GlobalAvgPool",
        "GlobalMaxPool",
        "max_pool",
        "MaxPool",
    ),
    "positions": ("ALiBi", "RelativePositions", "RoPE", "SinusoidalPositions"),
    "recurrent": ("Bidirectional", "ConvLSTMCell", "GRUCell", "LSTMCell", "RNN", "RNNCell"),
    "reparametrized": ("SpectralNorm", "WeightNorm"),
    "replacing": ("replace",),
    "selecting": ("buffers", "cast", "declare", "freeze", "matches", "merge", "modules", "only", "params"),
    "shards": ("create", "creator", "shardings"),
    "stack": ("Stack",),
    "summaries": ("summary",),
    "weights": ("load_state", "state"),
}
_FILES = {name: file for file, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("initializers", "losses"):
        return importlib.import_module(f"atled.nn.{name}")
    if name in _FILES:
        attribute = globals()[name] = getattr(importlib.import_module(f"atled.nn.{_FILES[name]}"), name)
        return attribute
    raise AttributeError(f"module 'atled.nn' has no attribute {name!r}")


__all__ = [
    "RNN",
    "ALiBi",
    "AdaptiveAvgPool",
    "AdaptiveMaxPool",
    "AlphaDropout",
    "AvgPool",
    "BatchNorm",
    "Bidirectional",
    "Buffer",
    "Cache",
    "Conv",
    "ConvLSTMCell",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Embedding",
    "FourierFeatures",
    "Frozen",
    "GRUCell",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GraphAttention",
    "GraphConv",
    "GraphNetwork",
    "GroupNorm",
    "InstanceNorm",
    "Keys",
    "Kind",
    "LSTMCell",
    "Lambda",
    "LayerNorm",
    "Linear",
    "LoRA",
    "MaxPool",
    "MixtureOfExperts",
    "Module",
    "MultiHeadAttention",
    "Param",
    "PatchEmbedding",
    "RMSNorm",
    "RNNCell",
    "RelativePositions",
    "Residual",
    "RoPE",
    "Sequential",
    "SinusoidalPositions",
    "SpatialDropout",
    "SpectralNorm",
    "Stack",
    "StochasticDepth",
    "WeightNorm",
    "avg_pool",
    "buffers",
    "capture",
    "cast",
    "celu",
    "create",
    "creator",
    "declare",
    "dot_product_attention",
    "elu",
    "freeze",
    "gelu",
    "get_scaled_dot_general_config",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "load_state",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "losses",
    "matches",
    "max_pool",
    "memory_efficient_attention",
    "merge",
    "mish",
    "modules",
    "one_hot",
    "only",
    "params",
    "relu",
    "relu6",
    "replace",
    "scaled_dot_general",
    "scaled_matmul",
    "selu",
    "shardings",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "start_decoding",
    "state",
    "summary",
    "swish",
    "tanh",
]  # fmt: skip
