"""Rows for the first layers."""

from layer_case import Case, normal

import atled.numpy as jnp
from atled import nn, random

CASES = [
    Case("Linear", lambda k: nn.Linear(3, 3, key=k), normal(4, 3), ("weight", "bias"), True),
    Case("Linear, no bias", lambda k: nn.Linear(3, 5, use_bias=False, key=k), normal(4, 3), ("weight",)),
    Case("Linear, bfloat16", lambda k: nn.Linear(3, 3, dtype="bfloat16", key=k), normal(4, 3), ("weight", "bias")),
    Case(
        "Embedding",
        lambda k: nn.Embedding(7, 3, key=k),
        lambda k: (random.randint(k, (4, 2), 0, 7),),
        ("weight",),
    ),
    Case("Conv", lambda k: nn.Conv(2, 2, (3, 3), key=k), normal(4, 5, 5, 2), ("weight", "bias"), True),
    Case(
        "Conv, 1d, groups",
        lambda k: nn.Conv(4, 4, (3,), groups=2, strides=2, padding="VALID", key=k),
        normal(4, 7, 4),
        ("weight", "bias"),
    ),
    Case(
        "BatchNorm",
        lambda k: nn.BatchNorm(3),
        normal(4, 3),
        ("scale", "bias", "mean", "variance"),
        True,
        is_mixing=True,
    ),
    Case("LayerNorm", lambda k: nn.LayerNorm(3), normal(4, 3), ("scale", "bias"), True),
    Case("Dropout", lambda k: nn.Dropout(0.4), normal(4, 3), (), False, True),
    Case(
        "MultiHeadAttention",
        lambda k: nn.MultiHeadAttention(4, 2, key=k),
        normal(4, 5, 4),
        tuple([f"{a}_proj/{b}" for a in ("query", "key", "value", "out") for b in ("weight", "bias")]),
        True,
    ),
    Case(
        "LSTMCell",
        lambda k: nn.LSTMCell(3, 2, key=k),
        lambda k: ((jnp.zeros((4, 2)), jnp.ones((4, 2))), random.normal(k, (4, 3))),
        ("input_weight", "state_weight", "bias"),
    ),
    Case(
        "RNN",
        lambda k: nn.RNN(nn.LSTMCell(3, 3, key=k)),
        normal(4, 5, 3),
        ("cell/input_weight", "cell/state_weight", "cell/bias"),
        True,
    ),
    Case(
        "Stack",
        lambda k: nn.Stack(lambda key: nn.Linear(3, 3, key=key), 2, key=k),
        normal(4, 3),
        ("layers/weight", "layers/bias"),
        True,
    ),
]
