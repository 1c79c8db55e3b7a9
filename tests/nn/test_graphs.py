"""Layers over graphs: padding, directions, isolated nodes, batches, what is refused."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random
from atled.nn.graph_layers import segment_mean, segment_softmax

SENDERS, RECEIVERS = jnp.array([0, 1, 1, 2]), jnp.array([1, 0, 2, 1])
X = random.normal(random.key(1), (5, 3))  # nodes 3 and 4 have no edges


def network(**settings):
    a, b, c = random.split(random.key(0), 3)
    return nn.GraphNetwork(
        nn.Linear(6, 4, key=a), nn.Linear(7, 3, key=b), nn.Linear(7, 2, key=c), **settings
    )  # fmt: skip


LAYERS = {
    "conv": lambda: nn.GraphConv(3, 4, add_self_loops=False, key=random.key(0)),
    "conv, self loops": lambda: nn.GraphConv(3, 4, key=random.key(0)),
    "attention": lambda: nn.GraphAttention(3, 4, 2, key=random.key(0)),
    "attention, self loops": lambda: nn.GraphAttention(3, 4, 2, add_self_loops=True, key=random.key(0)),
    "sum": lambda: network(),
    "mean": lambda: network(aggregate="mean"),
    "max": lambda: network(aggregate="max"),
}
each = pytest.mark.parametrize("make", LAYERS.values(), ids=list(LAYERS))


def run(layer, x, senders, receivers):
    """New nodes, and a number that depends on all that a network gives."""
    if not isinstance(layer, nn.GraphNetwork):
        y = layer(x, senders, receivers)
        return y, jnp.sin(y).sum()
    nodes, edges, top = layer(x, None, senders, receivers)
    return nodes, jnp.sin(nodes).sum() + jnp.sin(edges).sum() + jnp.sin(top).sum()


@each
def test_padding_and_the_order_of_edges_change_nothing(make):
    layer = make()
    want = run(layer, X, SENDERS, RECEIVERS)
    more = [jnp.array([5, 2, *ids[::-1].tolist(), other]) for ids, other in ((SENDERS, 5), (RECEIVERS, 0))]
    more[1] = more[1].at[1].set(5)
    for a, b in zip(want, run(layer, X, *more), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


@each
def test_messages_go_from_senders_to_receivers(make):
    layer, edge = make(), (jnp.array([0]), jnp.array([1]))
    hears = abs(run(layer, X.at[0].add(1.0), *edge)[0] - run(layer, X, *edge)[0]).max(1) > 1e-6
    is_apart = not getattr(layer, "add_self_loops", True)  # what a node was counts only if it is told so
    assert hears.tolist() == [not is_apart, True, False, False, False]


@each
def test_gradients_are_finite_with_isolated_nodes_and_without_edges(make):
    layer = make()
    for edges in ((SENDERS, RECEIVERS), (SENDERS[:0], RECEIVERS[:0]), (SENDERS * 0 + 5, RECEIVERS)):
        grads = atled.grad(lambda m, x, e=edges: run(m, x, *e)[1], argnums=(0, 1))(layer, X)
        assert all([bool(jnp.isfinite(g).all()) for g in atled.tree.leaves(grads)])
        twice = atled.grad(lambda s, e=edges: atled.grad(lambda s: run(layer, X * s, *e)[1])(s))(1.0)
        assert bool(jnp.isfinite(twice))
    assert run(layer, X[:0], SENDERS[:0], RECEIVERS[:0])[0].shape[0] == 0


@pytest.mark.parametrize("self_loops", [False, True])
def test_gradients_by_weights_of_edges_are_finite(self_loops):
    layer = nn.GraphConv(3, 4, add_self_loops=self_loops, key=random.key(0))
    run = lambda w: jnp.sin(layer(X, SENDERS, RECEIVERS, edge_weights=w)).sum()
    for weights in (jnp.ones(4), jnp.array([0.0, 1.0, 0.0, 0.0])):  # nodes whose degree is 0
        grads = atled.grad(run)(weights)
        assert bool(jnp.isfinite(grads).all()) and float(abs(grads).max()) > 1e-4


def test_isolated_nodes_hear_nothing():
    for layer in (LAYERS["conv"](), LAYERS["attention"]()):
        layer.bias = jnp.arange(4.0)
        np.testing.assert_array_equal(layer(X, SENDERS, RECEIVERS)[3:], [[0, 1, 2, 3]] * 2)


@each
def test_a_batch_is_vmap(make):
    layer = make()
    xs = jnp.stack([X, X + 1])
    senders, receivers = jnp.stack([SENDERS, SENDERS[::-1]]), jnp.stack([RECEIVERS, jnp.array([5, 3, 0, 4])])
    out = atled.vmap(lambda *a: run(layer, *a)[0])(xs, senders, receivers)
    for i in range(2):
        np.testing.assert_allclose(out[i], run(layer, xs[i], senders[i], receivers[i])[0], rtol=1e-5, atol=1e-5)


@each
@pytest.mark.parametrize("bad", [-1, 6])
def test_edges_that_lead_out_of_the_graph(make, bad):
    layer = make()
    for edges, name in (
        ((SENDERS.at[1].set(bad), RECEIVERS), "senders"),
        ((SENDERS, RECEIVERS.at[1].set(bad)), "receivers"),
    ):
        with pytest.raises(ValueError, match=rf"Graph\w+: {name} must be 0 to 5; got {bad}"):
            run(layer, X, *edges)
        compiled = atled.jit(lambda m, *a: run(m, *a)[0])
        compiled(layer, X, SENDERS, RECEIVERS)
        assert bool(jnp.isnan(compiled(layer, X, *edges)).any())  # later calls cannot complain


@each
def test_nan_stays_where_it_is_heard(make):
    layer = make()
    y = run(layer, X.at[0, 0].set(jnp.nan), SENDERS, RECEIVERS)[0]
    assert bool(jnp.isnan(y[1]).any()) and not bool(jnp.isnan(y[2:]).any())


@each
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_stays_half(make, dtype):
    layer = nn.cast(make(), param_dtype=dtype)
    y = run(layer, X.astype(dtype), SENDERS, RECEIVERS)[0]
    assert y.dtype == dtype
    wide = run(nn.cast(layer, param_dtype="float32"), X.astype(dtype).astype("float32"), SENDERS, RECEIVERS)[0]
    np.testing.assert_allclose(np.asarray(y, "float32"), wide, rtol=5e-2, atol=5e-2)


def test_computing_dtype():
    for make in (nn.GraphConv, nn.GraphAttention):
        assert make(3, 4, dtype="bfloat16", key=random.key(0))(X, SENDERS, RECEIVERS).dtype == jnp.bfloat16


def test_networks_of_some_updates():
    nodes, edges, top = nn.GraphNetwork(None, jnp.abs)(X, jnp.ones((4, 2)), SENDERS, RECEIVERS)
    heard = np.zeros((5, 5))
    for s, r in zip(SENDERS.tolist(), RECEIVERS.tolist(), strict=True):
        heard[r] += [1, 1, *X[s].tolist()]
    np.testing.assert_allclose(nodes, abs(np.concatenate([X, heard], 1)), rtol=1e-6)
    assert edges.shape == (4, 2) and top is None
    nodes, edges, top = nn.GraphNetwork(jnp.abs)(X, None, SENDERS, RECEIVERS)
    assert nodes.shape == X.shape and edges.shape == (4, 6) and top is None
    mask = jnp.array([True, True, False, False, True])
    _, _, top = nn.GraphNetwork(None, None, jnp.abs, aggregate="max")(X, None, SENDERS, RECEIVERS, node_mask=mask)
    np.testing.assert_allclose(top, abs(jnp.concatenate([X[mask].max(0), X[SENDERS].max(0)])), rtol=1e-6)


def test_keys_of_a_network_go_to_updates_that_take_one():
    dropping = nn.GraphNetwork(nn.Dropout(0.5), jnp.abs)
    a, b = [dropping(X, None, SENDERS, RECEIVERS, key=random.key(i))[0] for i in (0, 1)]
    assert not np.array_equal(a, b)


def test_segments():
    ids = jnp.array([2, 0, 2, 9, 0])
    weights = segment_softmax(jnp.array([1e4, 1.0, 1e4, 5.0, 2.0]), ids, 3)
    np.testing.assert_allclose(weights, [0.5, 1 / (1 + np.e), 0.5, 0, np.e / (1 + np.e)], rtol=1e-6)
    np.testing.assert_allclose(segment_mean(jnp.arange(5.0), ids, 3), [2.5, 0, 1], rtol=1e-6)


@pytest.mark.parametrize(
    "call, match",
    [
        (
            lambda c: c(X[0], SENDERS, RECEIVERS),
            r"GraphConv: nodes must be \(nodes, features\), floating-point; got f32\[3\]",
        ),
        (lambda c: c(X[None], SENDERS, RECEIVERS), "GraphConv: nodes must be"),
        (lambda c: c(jnp.ones((5, 3), "int32"), SENDERS, RECEIVERS), "GraphConv: nodes must be"),
        (lambda c: c(X[:, :2], SENDERS, RECEIVERS), "GraphConv: the last axis of the input must have length 3"),
        (
            lambda c: c(X, SENDERS, RECEIVERS[:3]),
            "GraphConv: senders and receivers must be integers, one for each edge",
        ),
        (lambda c: c(X, SENDERS * 1.0, RECEIVERS), "GraphConv: senders and receivers must be integers"),
        (lambda c: c(X, SENDERS[None], RECEIVERS[None]), "GraphConv: senders and receivers must be integers"),
        (
            lambda c: c(X, SENDERS, RECEIVERS, edge_weights=jnp.ones(3)),
            "edge_weights must have one number for each of 4",
        ),
        (lambda c: nn.GraphConv(3, 4), "GraphConv: a key must be given"),
        (
            lambda c: nn.GraphAttention(3, 4, 3, key=random.key(0)),
            "GraphAttention: num_heads must divide out_features; got 3 for 4",
        ),
        (lambda c: nn.GraphAttention(3, 4, 0, key=random.key(0)), "GraphAttention: num_heads must divide out_features"),
        (lambda c: nn.GraphNetwork(), "GraphNetwork: at least one update must be given"),
        (
            lambda c: nn.GraphNetwork(jnp.abs, aggregate="median"),
            "GraphNetwork: aggregate must be one of sum, mean, max; got 'med",
        ),
        (lambda c: nn.GraphNetwork(3), "GraphNetwork: update_edges must be a layer or a function"),
        (lambda c: network()(X, jnp.ones((3, 2)), SENDERS, RECEIVERS), r"GraphNetwork: edges must be \(4, features\)"),
        (lambda c: network()(X, jnp.ones((4, 2), int), SENDERS, RECEIVERS), "GraphNetwork: edges must be"),
        (
            lambda c: network()(X, None, SENDERS, RECEIVERS, jnp.ones((1, 2))),
            r"GraphNetwork: globals must be \(features,\)",
        ),
        (
            lambda c: network()(X, None, SENDERS, RECEIVERS, node_mask=jnp.ones(5)),
            "node_mask must have a boolean for each of 5",
        ),
        (
            lambda c: network()(X, jnp.ones((4, 2)), SENDERS, RECEIVERS),
            "Linear: the last axis of the input must have length 6",
        ),
    ],
)
def test_what_is_no_graph_is_refused(call, match):
    with pytest.raises((TypeError, ValueError), match=match):
        call(LAYERS["conv"]())


def test_a_mean_of_many_short_numbers():
    for dtype in ("float16", "bfloat16"):
        network = nn.GraphNetwork(None, lambda v: v, aggregate="mean")
        nodes, zero = jnp.full((2, 1), 100.0, dtype), jnp.zeros(1000, "int32")
        assert float(network(nodes, None, zero, zero + 1)[0][1, 1]) == 100.0
    assert segment_mean(jnp.array([1, 2]), jnp.array([0, 0]), 1).tolist() == [1.5]
