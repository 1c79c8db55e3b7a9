"""Neural networks: modules and layers; activations, the softmax family, attention, and first values of weights."""

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
    from atled.nn import initializers
    from atled.nn.capturing import capture
    from atled.nn.convolutions import Conv
    from atled.nn.keys import Keys
    from atled.nn.layers import Dense, Dropout, Embedding, Linear
    from atled.nn.module import Buffer, Frozen, Kind, Module, Param
    from atled.nn.multi_head import Cache, MultiHeadAttention, start_decoding
    from atled.nn.norms import BatchNorm, LayerNorm
    from atled.nn.recurrent import RNN, LSTMCell
    from atled.nn.replacing import replace
    from atled.nn.selecting import buffers, cast, declare, freeze, matches, merge, modules, only, params
    from atled.nn.shards import create, creator, shardings
    from atled.nn.stack import Stack
    from atled.nn.summaries import summary
    from atled.nn.weights import load_state, state

# What is loaded when it is first asked for.
_NAMES = {
    "capturing": ("capture",),
    "convolutions": ("Conv",),
    "keys": ("Keys",),
    "layers": (
        "Dense",
        "Dropout",
        "Embedding",
        "Linear",
    ),
    "module": (
        "Buffer",
        "Frozen",
        "Kind",
        "Module",
        "Param",
    ),
    "multi_head": (
        "Cache",
        "MultiHeadAttention",
        "start_decoding",
    ),
    "norms": (
        "BatchNorm",
        "LayerNorm",
    ),
    "recurrent": (
        "LSTMCell",
        "RNN",
    ),
    "replacing": ("replace",),
    "selecting": (
        "buffers",
        "cast",
        "declare",
        "freeze",
        "matches",
        "merge",
        "modules",
        "only",
        "params",
    ),
    "shards": (
        "create",
        "creator",
        "shardings",
    ),
    "stack": ("Stack",),
    "summaries": ("summary",),
    "weights": (
        "load_state",
        "state",
    ),
}
_FILES = {name: file for file, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "initializers":
        return importlib.import_module("atled.nn.initializers")
    if name in _FILES:
        found = globals()[name] = getattr(importlib.import_module(f"atled.nn.{_FILES[name]}"), name)
        return found
    raise AttributeError(f"module 'atled.nn' has no attribute {name!r}")


__all__ = [
    "RNN",
    "BatchNorm",
    "Buffer",
    "Cache",
    "Conv",
    "Dense",
    "Dropout",
    "Embedding",
    "Frozen",
    "Keys",
    "Kind",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "Param",
    "Stack",
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
    "matches",
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
