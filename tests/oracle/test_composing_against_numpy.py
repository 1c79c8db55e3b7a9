"""Mixtures of experts, graphs, features and low-rank changes against loops of NumPy in float64, and against flax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flax_rows import ZEROS, ZEROS_THERE, Case, check_half_precision, check_precisely, drawn

import atled
import atled.numpy as jnp
from atled import nn, random

nnx = pytest.importorskip("flax.nnx")

RNG = np.random.default_rng(0)


def wide(layer: Any) -> Any:
    """A layer with drawn parameters in float64."""
    layer = nn.cast(layer, param_dtype="float64")
    return atled.tree.map(lambda x: jnp.asarray(RNG.normal(size=x.shape) * 0.5), layer)


def host(x: Any) -> np.ndarray:
    return np.asarray(x, "float64")


def same(got: Any, want: np.ndarray, tolerance: float = 1e-12) -> None:
    assert got.dtype == np.float64
    np.testing.assert_allclose(host(got), want, rtol=tolerance, atol=tolerance)


# -- against flax -----------------------------------------------------------------------------------------------------


def sequential() -> Case:
    def theirs(**kw: Any) -> Any:
        more = {"kernel_init": ZEROS_THERE, "rngs": nnx.Rngs(0), **kw}
        return nnx.Sequential(nnx.Linear(6, 8, **more), nnx.tanh, nnx.Linear(8, 5, **more))

    def ours(**kw: Any) -> Any:
        more = {"weight_init": ZEROS, "key": random.key(0), **kw}
        return Both(nn.Sequential(nn.Linear(6, 8, **more), jnp.tanh, nn.Linear(8, 5, **more)))

    return Case(ours, lambda **kw: Theirs(theirs(**kw)), NAMES, (drawn(3, 6),))


class Both(nn.Module):
    """A model whose layers have names, which are those of a `Sequential`."""

    def __init__(self, model: Any) -> None:
        self.first, self.last = model[0], model[2]

    def __call__(self, x: Any) -> Any:
        return nn.Sequential(self.first, jnp.tanh, self.last)(x)


class Theirs(nnx.Module):
    def __init__(self, model: Any) -> None:
        self.first, self.last = model.layers[0], model.layers[2]

    def __call__(self, x: Any) -> Any:
        return nnx.Sequential(self.first, nnx.tanh, self.last)(x)


NAMES = {f"{n}/{a}": (f"{n}/{b}",) for n in ("first", "last") for a, b in (("weight", "kernel"), ("bias", "bias"))}


def low_rank() -> Case:
    def ours(**kw: Any) -> Any:
        base = nn.Linear(6, 5, weight_init=ZEROS, key=random.key(0), **kw)
        return nn.declare(nn.LoRA(base, 2, key=random.key(1)), "layer/*", nn.Param)

    def theirs(**kw: Any) -> Any:
        return nnx.LoRALinear(
            6, 5, lora_rank=2, lora_dtype=kw.get("dtype"), lora_param_dtype=kw["param_dtype"], rngs=nnx.Rngs(0), **kw
        )

    names = {"layer/weight": ("kernel",), "layer/bias": ("bias",), "down/weight": ("lora/lora_a",)}
    return Case(ours, theirs, {**names, "up/weight": ("lora/lora_b",)}, (drawn(16, 6),))


def patches(x: np.ndarray, size: tuple[int, ...]) -> Case:
    def theirs(layer: Any, x: Any) -> Any:
        y = layer(x)
        return y.reshape(*y.shape[: y.ndim - len(size) - 1], -1, y.shape[-1])

    return Case(
        lambda **kw: nn.PatchEmbedding(4, 5, size, weight_init=ZEROS, key=random.key(0), **kw),
        lambda **kw: nnx.Conv(
            4, 5, size, size, padding="VALID", kernel_init=ZEROS_THERE, rngs=nnx.Rngs(0), **kw
        ),
        {"weight": ("kernel",), "bias": ("bias",)},
        (x,),
        their_call=theirs,
    )  # fmt: skip


CASES = {
    "sequential": sequential(),
    "low rank": low_rank(),
    "patches": patches(drawn(2, 6, 8, 4), (3, 2)),
    "patches, one image": patches(drawn(6, 8, 4), (2, 2)),
    "patches, 1d": patches(drawn(2, 12, 4), (3,)),
    "patches, 3d": patches(drawn(2, 4, 6, 4, 4), (2, 3, 2)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_as_precise_as_flax(case):
    check_precisely(case)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_half_precision_errs_no_more_than_flax(case):
    check_half_precision(case)


# -- mixtures of experts ----------------------------------------------------------------------------------------------


def mixture_by_loop(
    moe: Any, x: np.ndarray, k: int, capacity: float | None, groups: int = 1
) -> tuple[np.ndarray, float]:
    """Token by token, first choices first; and the fraction of choices that were dropped."""
    weights = [host(v) for v in (moe.router, moe.experts.layers.weight, moe.experts.layers.bias)]
    parts = [_group_by_loop(part, *weights, k, capacity) for part in np.split(x, groups)]
    return np.concatenate([y for y, _ in parts]), sum([d for _, d in parts]) / (k * len(x))


def _group_by_loop(x: Any, router: Any, matrices: Any, biases: Any, k: int, capacity: Any) -> tuple[np.ndarray, int]:
    count, tokens = router.shape[1], len(x)
    room = tokens if capacity is None else math.ceil(capacity * k * tokens / count)
    used, dropped, y = [0] * count, 0, np.zeros((tokens, matrices.shape[-1]))
    for choice in range(k):
        for t in range(tokens):
            logits = x[t] @ router
            order = np.argsort(-logits, kind="stable")[:k]
            of = logits[order] if k > 1 else logits
            weight = np.exp(logits[order[choice]]) / np.exp(of).sum()
            e = order[choice]
            if used[e] < room:
                used[e] += 1
                y[t] += weight * (x[t] @ matrices[e] + biases[e])
            else:
                dropped += 1
    return y, dropped


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("capacity", [None, 8.0, 1.0, 0.5, 0.01])
@pytest.mark.parametrize("groups", [1, 3])
def test_mixtures_are_the_documented_loop(k, capacity, groups):
    moe = wide(
        nn.MixtureOfExperts(
            lambda key: nn.Linear(4, 6, key=key),
            5,
            in_features=4,
            k=k,
            capacity_factor=capacity,
            num_groups=groups,
            key=random.key(0),
        )
    )
    x = RNG.normal(size=(24, 4)) + 0.5
    want, dropped = mixture_by_loop(moe, x, k, capacity, groups)
    run = lambda moe, x: moe(x, return_losses=True)
    for call in (run, atled.jit(run)):
        y, losses = call(moe, jnp.asarray(x).reshape(2, 3, 4, 4))
        same(y.reshape(24, 6), want)
        assert float(losses["dropped"]) == pytest.approx(dropped, abs=1e-12)
    if capacity in (None, 8.0):
        assert dropped == 0
    elif capacity <= 0.5:
        assert dropped > 0.3


def test_losses_of_a_mixture():
    moe = wide(nn.MixtureOfExperts(lambda key: nn.Linear(4, 4, key=key), 5, in_features=4, k=2, key=random.key(0)))
    x = RNG.normal(size=(24, 4))
    losses = moe(jnp.asarray(x), return_losses=True)[1]
    logits = x @ host(moe.router)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    often = np.bincount(np.argsort(-logits, 1)[:, :2].ravel(), minlength=5) / 48
    same(losses["balance"], 5 * (often * p.mean(0)).sum())
    same(losses["z"], (np.log(np.exp(logits).sum(1)) ** 2).mean())


# -- graphs -----------------------------------------------------------------------------------------------------------

NODES = 7
EDGES = np.array([(0, 1), (1, 0), (1, 2), (2, 1), (3, 3), (5, 0), (4, 0), (4, 0), (2, 5)])  # 4 → 0 twice, 6 alone


def padded(edges: np.ndarray) -> tuple[Any, Any]:
    """Senders and receivers, with edges in between that are padding at one end or both."""
    more = np.concatenate([edges[:3], [(NODES, 2), (1, NODES), (NODES, NODES)], edges[3:]])
    return jnp.asarray(more[:, 0]), jnp.asarray(more[:, 1])


def adjacency(self_loops: bool, weights: np.ndarray | None = None) -> np.ndarray:
    """`a[i, j]` is how much of j arrives at i."""
    a = np.zeros((NODES, NODES))
    np.add.at(a, (EDGES[:, 1], EDGES[:, 0]), 1 if weights is None else weights)
    return a + np.eye(NODES) * self_loops


@pytest.mark.parametrize("outputs", [2, 6])  # fewer and more than there are inputs
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_graph_convolution_is_its_formula(outputs, self_loops, normalize, weighted):
    layer = wide(nn.GraphConv(4, outputs, add_self_loops=self_loops, normalize=normalize, key=random.key(0)))
    x, weights = RNG.normal(size=(NODES, 4)), RNG.uniform(0.5, 2, size=len(EDGES)) if weighted else None
    a = adjacency(self_loops, weights)
    if normalize:
        arriving, leaving = [np.where(d == 0, 1, d) for d in (a.sum(1), a.sum(0))]
        a = a / np.sqrt(arriving)[:, None] / np.sqrt(leaving)
    want = a @ x @ host(layer.weight) + host(layer.bias)
    more = {"edge_weights": np.insert(weights, 3, [9.0, 9.0, 9.0])} if weighted else {}
    for run in (layer, atled.jit(layer)):
        same(run(jnp.asarray(x), *padded(EDGES), **more), want)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e3])  # logits whose exponentials overflow
def test_graph_attention_is_its_formula(heads, self_loops, size):
    layer = wide(nn.GraphAttention(4, 6, heads, add_self_loops=self_loops, key=random.key(0)))
    x = RNG.normal(size=(NODES, 4)) * size
    edges = [*EDGES.tolist(), *([(i, i) for i in range(NODES)] if self_loops else [])]
    s, r = [(x @ host(f.weight) + host(f.bias)).reshape(NODES, heads, -1) for f in (layer.sender, layer.receiver)]
    want = np.zeros((NODES, heads, 6 // heads))
    for i in range(NODES):
        to_i = [j for j, k in edges if k == i]
        for h in range(heads):
            both = [s[j, h] + r[i, h] for j in to_i]
            logits = np.array([(np.where(v > 0, v, 0.2 * v) * host(layer.attention)[h]).sum() for v in both])
            powers = np.exp(logits - logits.max(initial=-np.inf))
            for j, w in zip(to_i, powers / powers.sum(), strict=True):
                want[i, h] += w * s[j, h]
    for run in (layer, atled.jit(layer)):
        got = run(jnp.asarray(x), *padded(EDGES))
        same(got / size, (want.reshape(NODES, 6) + host(layer.bias)) / size, 1e-11)


@pytest.mark.parametrize("aggregate", ["sum", "mean", "max"])
@pytest.mark.parametrize("has_edges", [False, True])
@pytest.mark.parametrize("has_globals", [False, True])
def test_graph_network_is_its_formula(aggregate, has_edges, has_globals):
    e, u = 3 * has_edges, 2 * has_globals
    edge, node, whole = [
        nn.Linear(n, 5, key=random.key(i)) for i, n in enumerate((e + 8 + u, 4 + 5 + u, u + 10))
    ]  # fmt: skip
    layer = wide(nn.GraphNetwork(edge, node, whole, aggregate=aggregate))
    x, own, top = RNG.normal(size=(NODES, 4)), RNG.normal(size=(len(EDGES), e)), RNG.normal(size=u)
    together = {"sum": np.sum, "mean": np.mean, "max": np.max}[aggregate]
    of = lambda rows, n: together(np.array(rows), axis=0) if len(rows) else np.zeros(n)
    run = lambda f, *parts: np.concatenate(parts) @ host(f.weight) + host(f.bias)
    mask = np.arange(NODES) != 3
    edges = np.array([run(layer.update_edges, own[i], x[s], x[r], top) for i, (s, r) in enumerate(EDGES)])
    to = [[edges[i] for i, (_, r) in enumerate(EDGES) if r == n] for n in range(NODES)]
    nodes = np.array([run(layer.update_nodes, x[n], of(to[n], 5), top) for n in range(NODES)])
    total = run(layer.update_globals, top, of(nodes[mask], 5), of(edges, 5))
    nodes[~mask] = 0

    given = jnp.asarray(np.insert(own, 3, np.full((3, e), 7.0), axis=0)) if has_edges else None
    for call in (layer, atled.jit(layer)):
        found = call(
            jnp.asarray(x),
            given,
            *padded(EDGES),
            jnp.asarray(top) if has_globals else None,
            node_mask=jnp.asarray(mask),
        )
        same(found[0], nodes)
        same(found[1], np.insert(edges, 3, np.zeros((3, 5)), axis=0))
        same(found[2], total)


@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_graphs_in_half_precision_sum_in_single(layer):
    """Ten thousand messages to one node: in bfloat16, a sum would stop growing."""
    make = {"conv": nn.GraphConv, "attention": nn.GraphAttention}[layer]
    net = wide(make(4, 4, key=random.key(0)))
    x = np.abs(RNG.normal(size=(10_000, 4)))
    senders, receivers = jnp.arange(10_000), jnp.zeros(10_000, "int32")
    want = host(net(jnp.asarray(x), senders, receivers))[0]
    half = nn.cast(net, param_dtype="bfloat16")
    got = host(half(jnp.asarray(x, "bfloat16"), senders, receivers))[0]
    assert half(jnp.asarray(x, "bfloat16"), senders, receivers).dtype == jnp.bfloat16
    assert (abs(got - want) / abs(want).max()).max() < 0.02


# -- features ---------------------------------------------------------------------------------------------------------


def test_fourier_features_are_their_formula():
    layer = nn.FourierFeatures(3, 8, scale=2.0, key=random.key(0))
    x = RNG.normal(size=(5, 3))
    angles = 2 * np.pi * x @ host(layer.frequencies)
    want = np.concatenate([np.cos(angles), np.sin(angles)], 1)
    same(layer(jnp.asarray(x)), want)
    single = layer(jnp.asarray(x, "float32"))
    assert abs(host(single) - want).max() < 2e-5
    half = jnp.asarray(x, "bfloat16")
    angles = 2 * np.pi * host(half) @ host(layer.frequencies)
    assert abs(host(layer(half)) - np.concatenate([np.cos(angles), np.sin(angles)], 1)).max() < 5e-3
