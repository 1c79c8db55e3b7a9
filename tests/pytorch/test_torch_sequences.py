"""Recurrent layers and attention with options against PyTorch: GRU, RNN, packed sequences, both directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from torch_rows import LIMIT, Row, drawn, largest, randomized, run_theirs, torch, weight_of

import atled
import atled.numpy as jnp
from atled import nn, random, tree

X, LENGTHS = drawn(5, 7, 4), np.array([7, 1, 4, 7, 2])
H, C = drawn(5, 6, seed=1), drawn(5, 6, seed=2)
MADE = {
    "gru": (nn.GRUCell, torch.nn.GRU, {}),
    "tanh": (nn.RNNCell, torch.nn.RNN, {}),
    "relu": (nn.RNNCell, torch.nn.RNN, {"activation": nn.relu}),
    "lstm": (nn.LSTMCell, torch.nn.LSTM, {}),
}


def joined(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Names of two biases that are one here: the first has the sum."""
    out = dict(found)
    for name in [n for n in found if "bias_hh" in n]:
        first = name.replace("bias_hh", "bias_ih")
        out[first] = found[first] + out.pop(name)
    return out


def check(row: Row, has_two_biases: bool) -> None:
    """Weights there and back, outputs, gradients."""
    weights = randomized(row.theirs)
    layer = nn.load_state_dict(row.ours, weights)
    plain, back = {n: x.numpy() for n, x in weights.items()}, nn.state_dict(layer)
    assert back.keys() == plain.keys()
    assert largest(*[d if has_two_biases else joined(d) for d in (back, plain)])[0] == 0
    floating = [i for i, x in enumerate(row.inputs) if x.dtype.kind == "f"]

    def loss(layer: Any, *xs: Any) -> Any:
        out = tree.leaves(row.call(layer, *xs))
        return sum([jnp.sum(y * weight_of(y, i)) for i, y in enumerate(out)]), out

    by = (0, *[i + 1 for i in floating])
    (_, out), grads = atled.jit(atled.value_and_grad(loss, argnums=by, has_aux=True))(layer, *row.inputs)
    got = {f"output {i}": np.asarray(y) for i, y in enumerate(out)}
    got |= {f"gradient by input {i}": np.asarray(g) for i, g in zip(floating, grads[1:], strict=True)}
    by_weights = nn.state_dict(grads[0])
    if not has_two_biases:  # each of them has the gradient of the sum
        by_weights |= {n: by_weights[n.replace("_hh", "_ih")] for n in by_weights if "bias_hh" in n}
    got |= {f"gradient by {n}": g for n, g in by_weights.items()}
    error, where = largest(got, run_theirs(row))
    print(f"{error:.1e} at {where}")
    assert error <= LIMIT, f"{error:.1e} at {where}"


def ours(name: str, seed: int = 0) -> Any:
    make, _, settings = MADE[name]
    return make(4, 6, key=random.key(seed), **settings)


def theirs(name: str, **settings: Any) -> Any:
    more = {"nonlinearity": "relu"} if name == "relu" else {}
    return MADE[name][1](4, 6, batch_first=True, **more, **settings)


def flat(state: Any) -> list[Any]:
    """States of PyTorch, (directions, batch, features), in our order: all arrays of a direction, cells first."""
    parts = (state[1], state[0]) if isinstance(state, tuple) else (state,)
    return [p[i] for i in range(len(parts[0])) for p in parts]


def run_packed(layer: Any, x: Any, start: Any, lengths: Any) -> tuple[Any, ...]:
    """PyTorch's layer over sequences of different lengths."""
    if lengths is None:
        out, last = layer(x, start)
        return (out, *flat(last))
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    out, last = layer(packed, start)
    out = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0]
    return (out, *flat(last))


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["", "lengths"])
@pytest.mark.parametrize("name", MADE)
def test_over_time(name, lengths):
    is_pair = name == "lstm"

    def there(layer, x, h, c):
        return run_packed(layer, x, (h[None], c[None]) if is_pair else h[None], lengths)

    def here(layer, x, h, c):
        return layer(x, (c, h) if is_pair else h, lengths=lengths, return_state=True)

    inputs = (X, H, C) if is_pair else (X, H)
    cut = lambda f: f if is_pair else (lambda layer, x, h: f(layer, x, h, None))
    check(Row(nn.RNN(ours(name)), theirs(name), inputs, cut(here), cut(there)), name == "gru")


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["", "lengths"])
@pytest.mark.parametrize("name", MADE)
def test_both_directions(name, lengths):
    row = Row(
        nn.Bidirectional(ours(name), ours(name, 1)),
        theirs(name, bidirectional=True),
        (X,),
        lambda layer, x: layer(x, lengths=lengths, return_state=True),
        lambda layer, x: run_packed(layer, x, None, lengths),
    )
    check(row, name == "gru")


@pytest.mark.parametrize("name", ["gru", "tanh", "relu"])
def test_one_step(name):
    more = {"nonlinearity": "relu"} if name == "relu" else {}
    cell = {"gru": torch.nn.GRUCell}.get(name, torch.nn.RNNCell)(4, 6, **more)
    row = Row(
        ours(name), cell, (X[:, 0], H), lambda layer, x, h: layer(h, x)[1], lambda layer, x, h: layer(x, h)
    )  # fmt: skip
    check(row, name == "gru")


@pytest.mark.parametrize("window", [None, (2, 1)])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("name", ["none", "alibi", "relative"])
def test_grouped_queries_windows_and_biases(kv_heads, name, window):
    """PyTorch's attention function on the same queries, keys and values, with the bias and the mask as one."""
    positions = {
        "none": None,
        "alibi": nn.ALiBi(4),
        "relative": nn.RelativePositions(4, 8, 12, weight_init=nn.initializers.normal(1.0), key=random.key(1)),
    }[name]
    layer = nn.MultiHeadAttention(
        16, 4, num_kv_heads=kv_heads, positions=positions, local_window_size=window, key=random.key(0)
    ).eval()
    x = drawn(2, 9, 16)
    weights = {n: torch.tensor(np.asarray(v)) for n, v in nn.state_dict(layer, layout={}).items()}
    there = torch.tensor(x, requires_grad=True)
    q, k, v = [
        (there @ weights[f"{n}_proj.weight"]).unflatten(-1, (-1, 4)).transpose(1, 2) for n in ("query", "key", "value")
    ]
    bias = torch.zeros(4, 9, 9)
    if name == "alibi":
        far = (torch.arange(9)[:, None] - torch.arange(9)).abs()
        bias = -torch.tensor([0.25, 0.0625, 0.015625, 0.00390625])[:, None, None] * far
    if name == "relative":
        bias = weights["positions.weight"][buckets_in_float32(9, 8, 12)].movedim(-1, 0)
    seen = torch.ones(9, 9, dtype=torch.bool).tril()
    if window is not None:
        seen &= torch.ones(9, 9, dtype=torch.bool).triu(-window[0])
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias.masked_fill(~seen, -math.inf), enable_gqa=True)
    y = y.transpose(1, 2).flatten(2) @ weights["out_proj.weight"]
    (y * torch.tensor(weight_of(y, 0))).sum().backward()
    out, back = atled.vjp(lambda x: layer(x, is_causal=True), x)
    got = {"output": np.asarray(out), "gradient": np.asarray(back(weight_of(out, 0))[0])}
    assert there.grad is not None
    error, where = largest(got, {"output": y.detach().numpy(), "gradient": there.grad.numpy()})
    assert error <= LIMIT, f"{error:.1e} at {where}"


def buckets_in_float32(count: int, buckets: int, distance: int) -> Any:
    """Numbers of buckets, in both directions, by PyTorch's logarithm in float32, as models were trained with."""
    far = torch.arange(count) - torch.arange(count)[:, None]
    side, exact = buckets // 2, buckets // 4
    n = far.abs()
    log = (torch.log(n.float().clamp(min=1) / exact) / math.log(distance / exact) * (side - exact)).long()
    return (far > 0) * side + torch.where(n < exact, n, (exact + log).clamp(max=side - 1))


@pytest.mark.parametrize("buckets, distance", [(32, 128), (32, 256), (64, 512), (16, 100)])
def test_buckets_as_pytorch_computes_them(buckets, distance):
    layer = nn.RelativePositions(1, buckets, distance, key=random.key(0))
    layer.weight = np.arange(buckets, dtype="f4")[:, None]
    count = 2 * distance
    got = layer(np.arange(count), np.arange(count))[0]
    np.testing.assert_array_equal(got, buckets_in_float32(count, buckets, distance).numpy())


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_positions(interleaved):
    """Pairs as complex numbers of PyTorch."""
    x = drawn(2, 9, 3, 8)
    angle = torch.outer(torch.arange(9).double(), 10000.0 ** (-torch.arange(4).double() / 4))
    pairs = torch.tensor(x).double().unflatten(-1, (4, 2) if interleaved else (2, 4))
    pairs = (pairs if interleaved else pairs.transpose(-1, -2)).contiguous()
    turned = torch.view_as_real(torch.view_as_complex(pairs) * torch.polar(torch.ones_like(angle), angle)[:, None])
    want = (turned if interleaved else turned.transpose(-1, -2)).flatten(-2)
    error, _ = largest({"": np.asarray(nn.RoPE(8, interleaved=interleaved)(x))}, {"": want.numpy()})
    assert error <= 2e-6
