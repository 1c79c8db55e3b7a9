"""LSTM over sequences of different lengths, with the API of `jax.experimental.rnn`.

Weights are one vector: the input and state matrices of each layer and direction, then all biases. Gates are in cuDNN's
order: input, forget, cell, output. On every platform, the LSTM is a `scan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled import random
from atled.core import settings
from atled.core.array import Array, type_of
from atled.higher_order.scan import scan
from atled.nn.activations import sigmoid
from atled.staging.jit import jit
from atled.transforms.vmap import vmap

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights",
]  # fmt: skip
__dir__ = __all__.copy
Weights = dict[int, Any]


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[int, ...]]:
    directions = 2 if bidirectional else 1
    rows = 4 * hidden_size
    matrices: list[tuple[int, ...]] = []
    for i in range(num_layers * directions):
        matrices += [(rows, input_size if i < directions else directions * hidden_size), (rows, hidden_size)]
    return matrices + [(rows,)] * len(matrices)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The total number of weights.

    >>> get_num_params_in_lstm(2, 3, 1, False)
    84
    """
    return sum([math.prod(s) for s in _shapes(input_size, hidden_size, num_layers, bidirectional)])


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Weights drawn uniformly from -k to k, where k is 1 / sqrt(hidden_size).

    >>> init_lstm_weight(random.key(0), 2, 3, 1, False).shape
    (84,)
    """
    k = np.sqrt(1.0 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), jnp.float32, -k, k)


def _parts(weights: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    sizes = [math.prod(s) for s in shapes]
    ends = np.cumsum(sizes)
    return [weights[end - n : end].reshape(s) for n, end, s in zip(sizes, ends.tolist(), shapes, strict=True)]


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """A weight vector with the last two gates of each matrix and bias exchanged.

    >>> w = jnp.arange(84.0)
    >>> bool((swap_lstm_gates(swap_lstm_gates(w, 2, 3, 1, False), 2, 3, 1, False) == w).all())
    True
    """
    swapped = []
    for part in _parts(jnp.asarray(weights), _shapes(input_size, hidden_size, num_layers, bidirectional)):
        a, b, c, d = jnp.split(part, 4)
        swapped.append(jnp.concatenate([a, b, d, c]).ravel())
    return jnp.concatenate(swapped)


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """Input matrices, state matrices and the biases of both, as dicts; key `layer * directions + direction`.

    >>> [w[0].shape for w in unpack_lstm_weights(jnp.zeros(84), 2, 3, 1, False)]
    [(12, 2), (12, 3), (12,), (12,)]
    """
    parts = _parts(weights, _shapes(input_size, hidden_size, num_layers, bidirectional))
    matrices, biases = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    rows = [matrices[0::2], matrices[1::2], biases[0::2], biases[1::2]]
    w_ih, w_hh, b_ih, b_hh = [dict(enumerate(row)) for row in rows]
    return w_ih, w_hh, b_ih, b_hh


def lstm(
    x: Any,
    h_0: Any,
    c_0: Any,
    weights: Any,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """Outputs at each step, and the last states and cells of all layers.

    Args:
        x: inputs, (batch, steps, input_size); steps past the end of a sequence are ignored, with outputs of zero.
        h_0: initial states, (layers * directions, batch, hidden_size); `c_0`: initial cells, with the same shape.
        weights: the weight vector; see `init_lstm_weight`.
        seq_lengths: the lengths of the sequences, (batch,), int32.

    >>> w = jnp.zeros(get_num_params_in_lstm(2, 3, 1, False))
    >>> y, h, c = lstm(jnp.ones((1, 4, 2)), jnp.zeros((1, 1, 3)), jnp.zeros((1, 1, 3)), w, jnp.array([4]),
    ...     2, 3, 1, 0.0, False)
    >>> y.shape, h.shape
    ((1, 4, 3), (1, 1, 3))
    """
    sizes = (input_size, hidden_size, num_layers)
    unpacked = unpack_lstm_weights(weights, *sizes, bidirectional)
    matmul_precision = (
        settings.scope().matmul_precision if precision is None else getattr(precision, "name", str(precision)).lower()
    )
    with settings.default_matmul_precision(matmul_precision):
        return lstm_ref(x, h_0, c_0, *unpacked, seq_lengths, *sizes, dropout, bidirectional)


@partial(jit, static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Weights,  # noqa: N803, the name is JAX's
    W_hh: Weights,  # noqa: N803, the name is JAX's
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Like `lstm`, with the weights that `unpack_lstm_weights` returns.

    >>> sizes = (2, 3, 1)  # inputs, states, layers
    >>> w = unpack_lstm_weights(jnp.zeros(get_num_params_in_lstm(*sizes, False)), *sizes, False)
    >>> x, start = jnp.ones((1, 4, 2)), jnp.zeros((1, 1, 3))
    >>> y, h, c = lstm_ref(x, start, start, *w, jnp.array([4]), *sizes, 0.0, False)
    >>> y.shape, h.shape
    ((1, 4, 3), (1, 1, 3))
    """
    if type_of(seq_lengths).dtype != np.int32:
        raise NotImplementedError(f"lstm: seq_lengths must be int32; got {type_of(seq_lengths)}.")
    if dropout != 0.0:
        raise NotImplementedError(f"lstm: dropout is not supported; got {dropout}.\n  try: nn.Dropout between layers.")
    y, states, cells = jnp.swapaxes(x, 0, 1), [], []
    directions = 2 if bidirectional else 1
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            step = partial(_step, W_ih[i], W_hh[i], b_ih[i] + b_hh[i])
            turned = _turned(y, seq_lengths) if direction else y
            h, c, out = _run(step, h_0[i], c_0[i], turned, seq_lengths)
            outputs.append(_turned(out, seq_lengths) if direction else out)
            states.append(h)
            cells.append(c)
        y = jnp.concatenate(outputs, -1)
    return jnp.swapaxes(y, 0, 1), jnp.stack(states), jnp.stack(cells)


def _step(w_ih: Any, w_hh: Any, bias: Any, carry: Any, x: Any) -> tuple[Any, Any]:
    h, c = carry
    i, f, g, o = jnp.split(x @ w_ih.T + h @ w_hh.T + bias, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
    h = sigmoid(o) * jnp.tanh(c)
    return (h, c), (h, c)


def _run(step: Callable[..., Any], h: Any, c: Any, y: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """The state and the cell at the end of each sequence, and the states at all steps, with zeros after the end."""
    _, (states, cells) = scan(step, (h, c), y)
    rows = jnp.arange(states.shape[1])
    is_inside = jnp.arange(states.shape[0], dtype=jnp.int32)[:, None] < lengths[None]
    last = lengths - 1
    return states[last, rows], cells[last, rows], jnp.where(is_inside[..., None], states, 0)


def _turned(y: Any, lengths: Any) -> Any:
    """Sequences reversed within their lengths; the padding stays at the end."""
    moved = vmap(partial(jnp.roll, axis=0), (1, 0), 1)(y, y.shape[0] - lengths)
    return moved[::-1]
