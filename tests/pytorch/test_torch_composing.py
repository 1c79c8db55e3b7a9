"""Layers made of layers, low-rank changes, mixtures of experts, graphs and features against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_rows import LIMIT, Row, check, drawn, error, torch

import atled
import atled.numpy as jnp
from atled import nn, random

EDGES = np.array([(0, 1), (1, 0), (1, 2), (2, 1), (4, 0), (4, 0), (3, 3)], "i4")  # 5 is alone
NODES = 6


class Holding(torch.nn.Module):
    """Modules and parameters by the names that ours have."""

    def __init__(self, run: Any, **parts: Any) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *xs: Any) -> Any:
        return self.run(self, *xs)


def numbers(*shape: int) -> Any:
    return torch.nn.Parameter(torch.zeros(*shape))


def sequential() -> Row:
    parts = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    return Row(
        nn.Sequential(nn.Linear(4, 8, key=random.key(0)), jnp.tanh, nn.Linear(8, 3, key=random.key(1))),
        Holding(lambda m, x: m.layers(x), layers=parts),
        (drawn(5, 4),),
    )


def residual() -> Row:
    return Row(
        nn.Residual(nn.Linear(4, 4, key=random.key(0)), scale=nn.Param(jnp.ones(4))),
        Holding(lambda m, x: x + m.scale * m.layer(x), layer=torch.nn.Linear(4, 4), scale=numbers(4)),
        (drawn(5, 4),),
    )


def low_rank() -> Row:
    layer = nn.LoRA(nn.Linear(4, 6, key=random.key(0)), 2, alpha=3.0, key=random.key(1))
    parts = {
        "layer": torch.nn.Linear(4, 6),
        "down": torch.nn.Linear(4, 2, bias=False),
        "up": torch.nn.Linear(2, 6, bias=False),
    }
    return Row(
        nn.declare(layer, "layer/*", nn.Param),
        Holding(lambda m, x: m.layer(x) + 1.5 * m.up(m.down(x)), **parts),
        (drawn(5, 4),),
    )


def graph_conv(self_loops: bool) -> Row:
    def theirs(m: Any, x: Any) -> Any:
        a = torch.zeros(NODES, NODES)
        a.index_put_((torch.tensor(EDGES[:, 1]).long(), torch.tensor(EDGES[:, 0]).long()), torch.ones(1), True)
        a = a + torch.eye(NODES) * self_loops
        arriving, leaving = [torch.where(d > 0, d, 1).rsqrt() for d in (a.sum(1), a.sum(0))]
        return (arriving[:, None] * a * leaving) @ (x @ m.weight) + m.bias

    return Row(
        nn.GraphConv(4, 3, add_self_loops=self_loops, key=random.key(0)),
        Holding(theirs, weight=numbers(4, 3), bias=numbers(3)),
        (drawn(NODES, 4),),
        lambda layer, x: layer(x, EDGES[:, 0], EDGES[:, 1]),
    )


def graph_attention(heads: int) -> Row:
    def theirs(m: Any, x: Any) -> Any:
        s, r = [f(x).reshape(NODES, heads, -1) for f in (m.sender, m.receiver)]
        rows = []
        for i in range(NODES):
            to_i = [int(j) for j, k in EDGES if k == i]
            both = torch.nn.functional.leaky_relu(s[to_i] + r[i], 0.2)
            weights = torch.softmax((both * m.attention).sum(-1), 0)
            rows.append((weights[..., None] * s[to_i]).sum(0).reshape(-1))
        return torch.stack(rows) + m.bias

    parts = {n: torch.nn.Linear(4, 6) for n in ("sender", "receiver")}
    return Row(
        nn.GraphAttention(4, 6, heads, key=random.key(0)),
        Holding(theirs, attention=numbers(heads, 6 // heads), bias=numbers(6), **parts),
        (drawn(NODES, 4),),
        lambda layer, x: layer(x, EDGES[:, 0], EDGES[:, 1]),
    )


ROWS = {
    "sequential": sequential(),
    "residual": residual(),
    "low rank": low_rank(),
    "graph conv": graph_conv(False),
    "graph conv, self loops": graph_conv(True),
    "graph attention": graph_attention(1),
    "graph attention, heads": graph_attention(2),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_layers_are_those_of_pytorch(row):
    check(row)


def test_pieces_of_images_are_a_convolution_with_strides():
    there = torch.nn.Conv2d(3, 5, (2, 3), (2, 3))
    conv = nn.load_state_dict(nn.Conv(3, 5, (2, 3), key=random.key(0)), there.state_dict())
    layer = nn.PatchEmbedding(3, 5, (2, 3), key=random.key(0))
    layer.weight, layer.bias = conv.weight, conv.bias
    x = drawn(2, 4, 6, 3)
    want = there(torch.tensor(x).movedim(-1, 1)).flatten(2).mT.detach().numpy()
    assert error(np.asarray(layer(x)), want) <= LIMIT


@pytest.mark.parametrize("capacity", [8.0, 1.0, 0.4])
@pytest.mark.parametrize("k", [1, 2])
def test_mixtures_of_experts_and_their_gradients(k, capacity):
    """Against a loop over choices and tokens, which PyTorch differentiates."""
    count, tokens = 4, 20
    moe = nn.MixtureOfExperts(
        lambda key: nn.Linear(6, 5, key=key), count, in_features=6, k=k, capacity_factor=capacity, key=random.key(0)
    )
    moe.experts.layers.bias = drawn(count, 5, seed=4)
    x, weight = drawn(tokens, 6) + 0.3, drawn(tokens, 5, seed=20)
    held = [moe.router, moe.experts.layers.weight, moe.experts.layers.bias, x]
    router, matrices, biases, given = [torch.tensor(np.asarray(v), requires_grad=True) for v in held]
    logits = given @ router
    best, chosen = logits.topk(k)
    shares = best.softmax(-1) if k > 1 else (best - logits.logsumexp(-1, keepdim=True)).exp()
    room, used, out = int(np.ceil(capacity * k * tokens / count)), [0] * count, [torch.zeros(5)] * tokens
    for choice in range(k):
        for t in range(tokens):
            e = int(chosen[t, choice])
            used[e] += 1
            if used[e] <= room:
                out[t] = out[t] + shares[t, choice] * (given[t] @ matrices[e] + biases[e])
    often = torch.bincount(chosen.flatten(), minlength=count) / (tokens * k)
    balance = count * (often * logits.softmax(-1).mean(0)).sum()
    z = (logits.logsumexp(-1) ** 2).mean()
    total = (torch.stack(out) * torch.tensor(weight)).sum() + balance + z
    total.backward()

    def loss(moe: Any, x: Any) -> Any:
        y, losses = moe(x, return_losses=True)
        return jnp.sum(y * weight) + losses["balance"] + losses["z"], y

    (value, y), (grads, by_x) = atled.jit(atled.value_and_grad(loss, argnums=(0, 1), has_aux=True))(moe, x)
    pairs = [(y, torch.stack(out)), (value, total), (by_x, given.grad), (grads.router, router.grad)]
    pairs += [(grads.experts.layers.weight, matrices.grad), (grads.experts.layers.bias, biases.grad)]
    for got, want in pairs:
        assert error(np.asarray(got), want.detach().numpy()) <= LIMIT
