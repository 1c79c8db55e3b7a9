"""Graph layers: a node receives messages along its incoming edges.

Node features are (nodes, features). Edges are two arrays of integers: edge e goes from node `senders[e]` to node
`receivers[e]`; an undirected edge is two directed ones. Edges whose sender or receiver equals the number of nodes are
padding and are ignored, so that graphs of different sizes can have arrays of the same shape. To batch graphs, use
`vmap`, or join them into one large graph with shifted node indices. Sums and softmax are computed in float32 or wider.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import atled.numpy as jnp
from atled import random
from atled.core import errors
from atled.core.array import Array, describe, type_of
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.activations import leaky_relu
from atled.nn.containers import as_layer, takes_key
from atled.nn.index_checks import expected
from atled.nn.linear_layers import Linear, check_features, computing, kept, needed
from atled.nn.module import Module
from atled.nn.variable_kinds import Param
from atled.ops import segments
from atled.ops.elementary import rsqrt
from atled.transforms.grad import stop_gradient


@formerly(
    inputs="in_features", outputs="out_features", self_loops="add_self_loops", bias="use_bias", init="weight_init"
)
class GraphConv(Module):
    """A graph convolution (GCN): `y[i] = Σ x[j] @ weight / sqrt(degree[j] * degree[i]) + bias`, over edges j → i.

    The degree of a sender is the number of its outgoing edges, that of a receiver the number of its incoming edges; in
    undirected graphs, both are the same. A node without edges gets only the bias.

    Args:
        add_self_loops: whether each node also has an edge to itself, which counts in degrees.
        normalize: whether messages are divided by sqrt(degree[j] * degree[i]); if not, they are only summed.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> senders, receivers = jnp.array([0, 1, 1, 2]), jnp.array([1, 0, 2, 1])  # 0 - 1 - 2
    >>> nn.GraphConv(4, 8, key=random.key(0))(jnp.ones((3, 4)), senders, receivers).shape
    (3, 8)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        add_self_loops: bool = True,
        normalize: bool = True,
        use_bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.in_features, self.out_features = int(in_features), int(out_features)
        self.add_self_loops, self.normalize = bool(add_self_loops), bool(normalize)
        draw, key = weight_init or initializers.lecun_normal(), needed(self, key)
        self.weight = Param(draw(key, (in_features, out_features), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (out_features,), param_dtype)) if use_bias else None
        self.dtype = kept(dtype)

    def __call__(self, nodes: Any, senders: Any, receivers: Any, *, edge_weights: Any = None) -> Any:
        """The new node features; `edge_weights` (edges,), 0 or more, multiply messages and count in degrees."""
        graph = _Graph(self, nodes, senders, receivers, self.add_self_loops)
        check_features(self, nodes, self.in_features)
        x, weight, bias = computing(self.dtype, nodes, self.weight, self.bias)
        is_narrow = self.out_features <= self.in_features  # multiply by the weight where vectors are shorter
        h = jnp.dot(x, weight) if is_narrow else jnp.asarray(x)
        wide = h.astype(jnp.promote_types(jnp.result_type(h, weight), "float32"))
        share = self._shares(graph, edge_weights, wide.dtype)
        y = graph.summed(share[:, None] * graph.of_senders(wide)).astype(jnp.result_type(h, weight))
        y = y if is_narrow else jnp.dot(y, weight)
        return y if bias is None else y + bias

    def _shares(self, graph: _Graph, edge_weights: Any, dtype: Any) -> Any:
        """The normalization factor of each message."""
        share = graph.shares(self, edge_weights, dtype)
        if not self.normalize:
            return share
        leaving, arriving = [segments.segment_sum(share, i, graph.count) for i in (graph.senders, graph.receivers)]
        return share * graph.of_senders(_inverse_root(leaving)) * graph.of_receivers(_inverse_root(arriving))


@formerly(
    inputs="in_features",
    outputs="out_features",
    heads="num_heads",
    self_loops="add_self_loops",
    bias="use_bias",
    init="weight_init",
)
class GraphAttention(Module):
    """Attention along edges (GATv2): `y[i] = Σ weights[j → i] * sender(x[j]) + bias`, with several heads, whose results
    are concatenated.

    The weights are the softmax, over the incoming edges of i, of `attention · leaky_relu(sender(x[j]) +
    receiver(x[i]))`, for each head. A node without incoming edges gets only the bias. `out_features` is the total over
    all heads.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> senders, receivers = jnp.array([0, 1, 1, 2]), jnp.array([1, 0, 2, 1])
    >>> nn.GraphAttention(4, 8, 2, key=random.key(0))(jnp.ones((3, 4)), senders, receivers).shape
    (3, 8)
    """

    attention: Array
    bias: Array | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        num_heads: int = 1,
        *,
        add_self_loops: bool = False,
        negative_slope: float = 0.2,
        use_bias: bool = True,
        weight_init: Any = None,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        if num_heads < 1 or out_features % num_heads:
            raise ValueError(
                errors.explained(
                    f"GraphAttention: num_heads must divide out_features; got {num_heads} for {out_features}."
                )
            )
        self.in_features, self.out_features, self.num_heads = int(in_features), int(out_features), int(num_heads)
        self.add_self_loops, self.negative_slope = bool(add_self_loops), float(negative_slope)
        keys = random.split(needed(self, key), 3)
        common = {"weight_init": weight_init, "dtype": dtype, "param_dtype": param_dtype}
        self.sender = Linear(in_features, out_features, key=keys[0], **common)
        self.receiver = Linear(in_features, out_features, key=keys[1], **common)
        draw = weight_init or initializers.lecun_normal(in_axis=-1, out_axis=-2)
        self.attention = Param(draw(keys[2], (num_heads, out_features // num_heads), param_dtype))
        self.bias = Param(jnp.zeros(out_features, param_dtype)) if use_bias else None
        self.dtype = kept(dtype)

    def __call__(self, nodes: Any, senders: Any, receivers: Any) -> Any:
        """The new node features."""
        graph = _Graph(self, nodes, senders, receivers, self.add_self_loops)
        check_features(self, nodes, self.in_features)
        sent, received = [f(nodes).reshape(graph.count, *self.attention.shape) for f in (self.sender, self.receiver)]
        attention, bias = computing(self.dtype, self.attention, self.bias)
        wide = jnp.promote_types(sent.dtype, "float32")
        messages = graph.of_senders(sent)
        both = leaky_relu(messages + graph.of_receivers(received), self.negative_slope)
        logits = (both.astype(wide) * attention.astype(wide)).sum(-1)
        weights = segment_softmax(logits, graph.receivers, graph.count)
        y = graph.summed(weights[..., None] * messages.astype(wide)).reshape(graph.count, self.out_features)
        y = y.astype(sent.dtype)
        return y if bias is None else y + bias


class GraphNetwork(Module):
    """A graph network: features of edges, nodes and the whole graph, each updated by a user-supplied module.

    The updates run in this order; each gets the concatenation of its parts, without those that are None:

        edges[e] = update_edges([edges[e], nodes[senders[e]], nodes[receivers[e]], globals])
        nodes[i] = update_nodes([nodes[i], aggregate of the incoming edges of i, globals])
        globals = update_globals([globals, aggregate of all nodes, aggregate of all edges])

    Without `update_edges`, the message of an edge is its features and those of its sender. Padding edges send no
    messages, and their features become zeros.

    Args:
        aggregate: how messages, nodes and edges are aggregated: "sum", "mean" or "max"; zeros if there are none.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> keys = nn.Keys(0)
    >>> network = nn.GraphNetwork(nn.Linear(2 + 3 + 3, 5, key=keys()), nn.Linear(3 + 5, 4, key=keys()))
    >>> nodes, edges, _ = network(jnp.ones((3, 3)), jnp.ones((2, 2)), jnp.array([0, 1]), jnp.array([1, 2]))
    >>> nodes.shape, edges.shape
    ((3, 4), (2, 5))
    """

    def __init__(
        self,
        update_edges: Callable[..., Any] | None = None,
        update_nodes: Callable[..., Any] | None = None,
        update_globals: Callable[..., Any] | None = None,
        *,
        aggregate: str = "sum",
    ) -> None:
        if aggregate not in _AGGREGATES:
            raise ValueError(
                errors.explained(f"GraphNetwork: aggregate must be one of {', '.join(_AGGREGATES)}; got {aggregate!r}.")
            )
        given = {"update_edges": update_edges, "update_nodes": update_nodes, "update_globals": update_globals}
        updates = {n: None if f is None else as_layer(f"GraphNetwork: {n}", f) for n, f in given.items()}
        if all([f is None for f in updates.values()]):
            raise ValueError(errors.explained("GraphNetwork: at least one update must be given; got none."))
        self.update_edges, self.update_nodes, self.update_globals = updates.values()
        self.aggregate = aggregate

    def __call__(
        self,
        nodes: Any,
        edges: Any,
        senders: Any,
        receivers: Any,
        globals: Any = None,
        *,
        node_mask: Any = None,
        key: Any = None,
    ) -> tuple[Any, Any, Any]:
        """The new (nodes, edges, globals). `edges`, (edges, features), and `globals`, (features,), may be None.

        Args:
            node_mask: booleans (nodes,), False for padding nodes, which become zeros and do not contribute to
                `update_globals`.
            key: a random key for the updates that take a `key`.
        """
        graph = _Graph(self, nodes, senders, receivers)
        _check_parts(graph, edges, globals, node_mask)
        keys = (None,) * 3 if key is None else random.split(key, 3)
        nodes, own = jnp.asarray(nodes), _selected(graph.is_edge, edges)
        sent, x = graph.of_senders(nodes), _selected(node_mask, nodes)
        if self.update_edges is not None:
            parts = [own, sent, graph.of_receivers(nodes), _repeated(globals, graph.edges)]
            edges = _selected(graph.is_edge, _updated(self.update_edges, parts, keys[0]))
            messages = edges = edges + graph.fault(edges.dtype)
        else:
            messages = _joined([own, sent])
        if self.update_nodes is not None:
            heard = _AGGREGATES[self.aggregate](messages, graph.receivers, graph.count) + graph.fault(messages.dtype)
            x = _updated(self.update_nodes, [x, heard, _repeated(globals, graph.count)], keys[1])
            nodes = x = _selected(node_mask, x)
        if self.update_globals is not None:
            whole = jnp.zeros(graph.count, "int32") if node_mask is None else jnp.where(node_mask, 0, 1)
            all_edges = jnp.where(graph.is_edge, 0, 1)
            parts = [_AGGREGATES[self.aggregate](v, i, 1)[0] for v, i in ((x, whole), (messages, all_edges))]
            globals = _updated(self.update_globals, [globals, *parts], keys[2])
        return nodes, edges, globals


# -- edges ------------------------------------------------------------------------------------------------------------


class _Graph:
    """The validated edges of a graph: padding edges have the number of nodes at both ends."""

    def __init__(self, layer: Module, nodes: Any, senders: Any, receivers: Any, self_loops: bool = False) -> None:
        name, t = type(layer).__name__, type_of(nodes)
        if t.ndim != 2 or t.kind != "f":
            raise ValueError(
                errors.explained(
                    f"{name}: nodes must be (nodes, features), floating-point; got {t}.",
                    "vmap over a batch of graphs.",
                )
            )
        s, r = type_of(senders), type_of(receivers)
        if s.kind not in "iu" or r.kind not in "iu" or s.ndim != 1 or s.shape != r.shape:
            raise ValueError(
                errors.explained(
                    f"{name}: senders and receivers must be integers, one for each edge; got {s} and {r}.",
                    "jnp.nonzero(adjacency) for a matrix.",
                )
            )
        self.count, self.given, self.edges = t.shape[0], s.shape[0], s.shape[0]
        ends = [
            expected(ids, 0, self.count + 1, f"{name}: {what}").astype("int32")
            for ids, what in ((senders, "senders"), (receivers, "receivers"))
        ]
        self.is_odd = jnp.any(jnp.stack([(i < 0) | (i > self.count) for i in ends]))
        self.is_edge = (ends[0] < self.count) & (ends[1] < self.count)
        self.senders, self.receivers = [jnp.where(self.is_edge, i, self.count) for i in ends]
        if self_loops:
            own = jnp.arange(self.count, dtype="int32")
            self.senders, self.receivers = [jnp.concatenate([i, own]) for i in (self.senders, self.receivers)]
            self.is_edge = jnp.concatenate([self.is_edge, jnp.ones(self.count, bool)])
            self.edges += self.count

    def of_senders(self, x: Any) -> Any:
        """The rows of the sender nodes; zeros for padding."""
        return x.at[self.senders].get(mode="fill", fill_value=0)

    def of_receivers(self, x: Any) -> Any:
        """The rows of the receiver nodes; zeros for padding."""
        return x.at[self.receivers].get(mode="fill", fill_value=0)

    def summed(self, messages: Any) -> Any:
        """The sum of the messages to each node."""
        return segments.segment_sum(messages, self.receivers, self.count) + self.fault(messages.dtype)

    def fault(self, dtype: Any) -> Any:
        """0, or NaN if edges have invalid node indices: compiled code cannot raise."""
        return jnp.where(self.is_odd, jnp.nan, 0).astype(dtype)

    def shares(self, layer: Module, edge_weights: Any, dtype: Any) -> Any:
        """The weights of edges and self loops; ones if none are given."""
        if edge_weights is None:
            return jnp.ones(self.edges, dtype)
        if type_of(edge_weights).shape != (self.given,):
            raise ValueError(
                errors.explained(
                    f"{type(layer).__name__}: edge_weights must have one number for each of {self.given} edges; got "
                    f"{describe(edge_weights)}."
                )
            )
        given = jnp.asarray(edge_weights, dtype)
        return _selected(self.is_edge, jnp.concatenate([given, jnp.ones(self.edges - self.given, dtype)]))


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x), and 0 for 0, with a derivative of 0 there."""
    return jnp.where(x == 0, 0, rsqrt(jnp.where(x == 0, 1, x)))


def segment_softmax(logits: Any, ids: Any, count: int) -> Any:
    """The softmax of logits (edges, …) over each segment; 0 for segment ids out of range.

    >>> import atled.numpy as jnp
    >>> segment_softmax(jnp.array([0.0, 0.0, 5.0]), jnp.array([0, 0, 1]), 2)
    Array([0.5, 0.5, 1. ], dtype=float32)
    """
    largest = segments.segment_max(stop_gradient(logits), ids, count)
    powers = jnp.exp(logits - largest.at[ids].get(mode="fill", fill_value=0))
    is_in = ((ids >= 0) & (ids < count)).reshape(-1, *[1] * (type_of(logits).ndim - 1))
    total = segments.segment_sum(powers, ids, count).at[ids].get(mode="fill", fill_value=1)
    return jnp.where(is_in, powers, 0) / total


def segment_mean(x: Any, ids: Any, count: int) -> Any:
    """The mean of the rows of each segment; zeros for empty segments.

    >>> import atled.numpy as jnp
    >>> segment_mean(jnp.array([1.0, 3.0, 5.0]), jnp.array([0, 0, 2]), 3)
    Array([2., 0., 5.], dtype=float32)
    """
    rows = segments.segment_sum(jnp.ones(type_of(ids).shape, "int32"), ids, count)
    rows = rows.reshape(-1, *[1] * (type_of(x).ndim - 1))
    total = _wide_sum(x, ids, count)
    mean = total / jnp.maximum(rows, 1).astype(total.dtype)
    return mean.astype(type_of(x).dtype) if type_of(x).kind in "fc" else mean


def _wide_sum(x: Any, ids: Any, count: int) -> Any:
    return segments.segment_sum(x.astype(jnp.promote_types(type_of(x).dtype, "float32")), ids, count)


def _segment_sum(x: Any, ids: Any, count: int) -> Any:
    return _wide_sum(x, ids, count).astype(type_of(x).dtype)


def _segment_max(x: Any, ids: Any, count: int) -> Any:
    """The maximum of the rows of each segment; zeros for empty segments."""
    rows = segments.segment_sum(jnp.ones(type_of(ids).shape, "int32"), ids, count)
    rows = rows.reshape(-1, *[1] * (type_of(x).ndim - 1))
    return jnp.where(rows > 0, segments.segment_max(x, ids, count), 0)


_AGGREGATES: dict[str, Callable[..., Any]] = {"sum": _segment_sum, "mean": segment_mean, "max": _segment_max}


# -- parts of a network -----------------------------------------------------------------------------------------------


def _check_parts(graph: _Graph, edges: Any, globals: Any, node_mask: Any) -> None:
    """Raise an error for features that do not match the graph."""
    for name, x, ndim, rows in (("edges", edges, 2, graph.edges), ("globals", globals, 1, None)):
        t = None if x is None else type_of(x)
        if t is not None and (t.ndim != ndim or t.kind != "f" or (rows is not None and t.shape[0] != rows)):
            shape = f"({rows}, features)" if ndim == 2 else "(features,)"
            raise ValueError(
                errors.explained(f"GraphNetwork: {name} must be {shape}, floating-point, or None; got {t}.")
            )
    if node_mask is not None and (type_of(node_mask).shape != (graph.count,) or type_of(node_mask).kind != "b"):
        raise ValueError(
            errors.explained(
                f"GraphNetwork: node_mask must have a boolean for each of {graph.count} nodes; got "
                f"{describe(node_mask)}."
            )
        )


def _selected(mask: Any, x: Any) -> Any:
    """x with rows of zeros where the mask is False, and zero gradients there, or None if x is None."""
    if mask is None or x is None:
        return x if x is None else jnp.asarray(x)
    return jnp.where(jnp.asarray(mask).reshape(-1, *[1] * (type_of(x).ndim - 1)), x, 0)


def _repeated(x: Any, count: int) -> Any:
    return None if x is None else jnp.broadcast_to(x, (count, *type_of(x).shape))


def _joined(parts: list[Any]) -> Any:
    """The concatenation of the parts that are not None."""
    there = [p for p in parts if p is not None]
    return there[0] if len(there) == 1 else jnp.concatenate(there, -1)


def _updated(update: Any, parts: list[Any], key: Any) -> Any:
    x = _joined(parts)
    return update(x, key=key) if key is not None and takes_key(update) else update(x)
