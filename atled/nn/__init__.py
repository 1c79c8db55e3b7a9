"""Neural networks: activations, the softmax family, encodings, attention, and first values of weights."""

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


def __getattr__(name: str) -> Any:
    if name == "initializers":
        return importlib.import_module("atled.nn.initializers")
    raise AttributeError(f"module 'atled.nn' has no attribute {name!r}")


__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax",
    "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu",
    "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "standardize",
    "swish", "tanh",
]  # fmt: skip
