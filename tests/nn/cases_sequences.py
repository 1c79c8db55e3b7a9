"""Rows for attention with options, positions, and recurrent layers."""

from layer_case import Case, normal

import atled.numpy as jnp
from atled import nn, random

ATTENTION = tuple([f"{a}_proj/{b}" for a in ("query", "key", "value", "out") for b in ("weight", "bias")])
CELL = ("input_weight", "state_weight", "bias")
GRU = ("input_weight", "state_weight", "input_bias", "state_bias")


def attention(name, *paths, bias=None, **settings):
    """Grouped queries and more; `bias` makes positions from a key."""

    def make(key):
        keys = random.split(key)
        return nn.MultiHeadAttention(
            8, 4, key=keys[0], **settings, **({} if bias is None else {"positions": bias(keys[1])})
        )

    return Case(f"MultiHeadAttention, {name}", make, normal(4, 5, 8), (*paths, *ATTENTION), True)


def places(key):
    """Positions of 4 batches, of 3 queries and of 5 keys."""
    return tuple([random.randint(k, (4, n), 0, 40) for k, n in zip(random.split(key), (3, 5), strict=True)])


def cell_inputs(*places, features=2, is_pair=False):
    """A state and an input."""

    def made(key):
        h = 0.3 * jnp.ones((4, *places, features))
        return (h - 0.2, h) if is_pair else h, random.normal(key, (4, *places, 3))

    return made


def both(make, key):
    """A layer of two cells of their own."""
    return nn.Bidirectional(*[make(k) for k in random.split(key)])


CASES = [
    attention("grouped queries, RoPE, local_window_size", num_kv_heads=2, positions=nn.RoPE(2), local_window_size=2),
    attention("one head of keys, ALiBi", num_kv_heads=1, positions=nn.ALiBi(4)),
    attention(
        "RelativePositions", "positions/weight", bias=lambda key: nn.RelativePositions(4, 8, 16, key=key),
        local_window_size=(1, 3),
    ),
    Case("RoPE", lambda k: nn.RoPE(4), normal(4, 5, 2, 4), (), True),
    Case("RoPE, interleaved, rotary_dim", lambda k: nn.RoPE(6, 100.0, rotary_dim=4, interleaved=True),
         normal(4, 5, 2, 6), ()),
    Case("RelativePositions", lambda k: nn.RelativePositions(3, key=k), places, ("weight",)),
    Case("RelativePositions, causal", lambda k: nn.RelativePositions(3, 6, 9, False, key=k), places, ("weight",)),
    Case("ALiBi", lambda k: nn.ALiBi(3), places, ()),
    Case("SinusoidalPositions", lambda k: nn.SinusoidalPositions(6), lambda k: (random.normal(k, (4, 3)),), ()),
    Case("RNNCell", lambda k: nn.RNNCell(3, 2, key=k), cell_inputs(), CELL),
    Case("RNNCell, relu", lambda k: nn.RNNCell(3, 2, activation=nn.relu, key=k), cell_inputs(), CELL),
    Case("GRUCell", lambda k: nn.GRUCell(3, 2, key=k), cell_inputs(), GRU),
    Case("GRUCell, bfloat16", lambda k: nn.GRUCell(3, 2, dtype="bfloat16", key=k), cell_inputs(), GRU),
    Case(
        "ConvLSTMCell",
        lambda k: nn.ConvLSTMCell(3, 2, (3, 2), key=k),
        cell_inputs(4, 5, is_pair=True),
        ("input_conv/weight", "input_conv/bias", "state_conv/weight"),
    ),
    Case("RNN, GRU, reverse", lambda k: nn.RNN(nn.GRUCell(3, 3, key=k), reverse=True), normal(4, 5, 3),
         tuple([f"cell/{n}" for n in GRU]), True),
    Case("RNN, ConvLSTMCell", lambda k: nn.RNN(nn.ConvLSTMCell(2, 2, (3,), key=k)), normal(4, 3, 5, 2),
         ("cell/input_conv/weight", "cell/input_conv/bias", "cell/state_conv/weight"), True),
    Case("Bidirectional", lambda k: both(lambda key: nn.GRUCell(3, 2, key=key), k), normal(4, 5, 3),
         tuple([f"{a}/cell/{n}" for a in ("forward", "backward") for n in GRU])),
]  # fmt: skip
