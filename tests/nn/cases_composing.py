"""Rows for layers made of layers, low-rank changes, mixtures of experts, graphs and features."""

from layer_case import Case, normal

import atled.numpy as jnp
from atled import nn, random

# Node 3 has no edges; two edges are padding, and one is there twice.
SENDERS, RECEIVERS = jnp.array([0, 1, 1, 2, 4, 0, 2, 2]), jnp.array([1, 0, 2, 1, 0, 4, 1, 0])


def sequential(key):
    a, b = random.split(key)
    return nn.Sequential(nn.Linear(3, 4, key=a), jnp.tanh, nn.Linear(4, 3, key=b))


def sequential_with_dropout(key):
    return nn.Sequential(nn.Linear(3, 3, key=key), nn.Dropout(0.4), nn.Dropout(0.1))


def moved(lora, key):
    """A low-rank change that is not zero."""
    lora.up.weight = random.normal(key, lora.up.weight.shape)
    return lora


def low_rank(make, **settings):
    def of(key):
        a, b, c = random.split(key, 3)
        return moved(nn.LoRA(make(a), 2, key=b, **settings), c)

    return of


def mixture(**settings):
    return lambda key: nn.MixtureOfExperts(
        lambda k: nn.Linear(3, 3, key=k), 4, in_features=3, key=key, **{"capacity_factor": None, **settings}
    )


def graph_network(**settings):
    def of(key):
        a, b, c = random.split(key, 3)
        return nn.GraphNetwork(
            nn.Linear(2 + 3 + 3 + 4, 5, key=a),
            nn.Linear(3 + 5 + 4, 3, key=b),
            nn.Linear(4 + 3 + 5, 2, key=c),
            **settings,
        )

    return of


def graph(key):
    """Four nodes, and edges between them."""
    return random.normal(key, (4, 3)), SENDERS, RECEIVERS


def graph_with_edges(key):
    a, b, c = random.split(key, 3)
    return random.normal(a, (4, 3)), random.normal(b, (8, 2)), SENDERS, RECEIVERS, random.normal(c, (4,))


LAYERS = tuple([f"layers/{i}/{n}" for i in (0, 2) for n in ("weight", "bias")])
LORA = ("layer/weight", "layer/bias", "down/weight", "up/weight")
EXPERTS = ("router", "experts/layers/weight", "experts/layers/bias")
UPDATES = tuple([f"update_{n}/{p}" for n in ("edges", "nodes", "globals") for p in ("weight", "bias")])

CASES = [
    Case("Sequential", sequential, normal(4, 3), LAYERS, True),
    Case("Sequential, keys", sequential_with_dropout, normal(4, 3), ("layers/0/weight", "layers/0/bias"), False, True),
    Case(
        "Residual",
        lambda k: nn.Residual(nn.Linear(3, 3, key=k), scale=nn.Param(jnp.ones(3) / 2)),
        normal(4, 3),
        ("layer/weight", "layer/bias", "scale"),
        True,
    ),
    Case("Lambda", lambda k: nn.Lambda(jnp.tanh), normal(4, 3), (), True),
    Case("LoRA", low_rank(lambda k: nn.Linear(3, 3, key=k), alpha=1), normal(4, 3), LORA, True),
    Case(
        "LoRA, dropout", low_rank(lambda k: nn.Linear(3, 3, key=k), dropout_rate=0.3), normal(4, 3), LORA, False, True
    ),
    Case("LoRA, Conv", low_rank(lambda k: nn.Conv(2, 4, (3, 3), strides=2, key=k)), normal(4, 5, 5, 2), LORA),
    Case(
        "LoRA, Embedding",
        low_rank(lambda k: nn.Embedding(7, 3, key=k)),
        lambda k: (random.randint(k, (4, 2), 0, 7),),
        ("layer/weight", "down/weight", "up/weight"),
    ),
    Case("MixtureOfExperts", mixture(), normal(4, 3), EXPERTS, True),
    Case(
        "MixtureOfExperts, k=1, capacity",
        mixture(k=1, capacity_factor=1.0),
        normal(4, 3),
        EXPERTS,
        True,
        is_mixing=True,
    ),
    Case(
        "MixtureOfExperts, noise", mixture(noise=0.5, num_groups=2), normal(4, 3), EXPERTS, False, True, is_mixing=True
    ),
    Case("GraphConv", lambda k: nn.GraphConv(3, 3, key=k), graph, ("weight", "bias"), is_mixing=True),
    Case(
        "GraphConv, plain",
        lambda k: nn.GraphConv(3, 5, add_self_loops=False, normalize=False, key=k),
        graph,
        ("weight", "bias"),
        is_mixing=True,
    ),
    Case(
        "GraphAttention",
        lambda k: nn.GraphAttention(3, 4, 2, key=k),
        graph,
        ("sender/weight", "sender/bias", "receiver/weight", "receiver/bias", "attention", "bias"),
        is_mixing=True,
    ),
    Case("GraphNetwork", graph_network(), graph_with_edges, UPDATES, is_mixing=True),
    Case("GraphNetwork, mean", graph_network(aggregate="mean"), graph_with_edges, UPDATES, is_mixing=True),
    Case("GraphNetwork, max", graph_network(aggregate="max"), graph_with_edges, UPDATES, is_mixing=True),
    Case("FourierFeatures", lambda k: nn.FourierFeatures(3, 4, scale=0.5, key=k), normal(4, 3), ("frequencies",)),
    Case("PatchEmbedding", lambda k: nn.PatchEmbedding(2, 3, (2, 3), key=k), normal(4, 4, 6, 2), ("weight", "bias")),
]
