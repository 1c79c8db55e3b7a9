"""Layers with a state that goes on from step to step: `LSTMCell`, and `RNN`, which runs a cell over time."""

from __future__ import annotations

from typing import Any

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors, tree
from atled.core.array import Array, type_of
from atled.nn import initializers
from atled.nn.functions import sigmoid
from atled.nn.layers import check_features, computing, kept, needed
from atled.nn.module import Module, Param


class LSTMCell(Module):
    """One step of an LSTM: `state, y = cell(state, x)`, where a state is a pair (cell, output).

    The gates are input, forget, new and output, side by side in `input_weight`, `state_weight` and `bias`.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> cell = nn.LSTMCell(2, 3, key=random.key(0))
    >>> state, y = cell(cell.start((5,)), jnp.ones((5, 2)))
    >>> y.shape
    (5, 3)
    """

    input_weight: Array
    state_weight: Array
    bias: Array

    def __init__(
        self,
        inputs: int,
        features: int,
        *,
        init: Any = None,
        state_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.inputs, self.features = int(inputs), int(features)
        keys = random.split(needed(self, key), 9)
        draw, draw_state = init or initializers.lecun_normal(), state_init or initializers.orthogonal()
        gates = [draw(k, (inputs, features), param_dtype) for k in keys[:4]]
        states = [draw_state(k, (features, features), param_dtype) for k in keys[4:8]]
        self.input_weight = Param(jnp.concatenate(gates, 1))
        self.state_weight = Param(jnp.concatenate(states, 1))
        self.bias = Param(bias_init(keys[8], (4 * features,), param_dtype))
        self.dtype = kept(dtype)

    def start(self, batch: tuple[int, ...] = (), dtype: Any = None) -> tuple[Any, Any]:
        """The state before the first step: zeros, in the dtype that the layer computes in if none is given."""
        dtype = dtype or self.dtype or self.state_weight.dtype
        return jnp.zeros((*batch, self.features), dtype), jnp.zeros((*batch, self.features), dtype)

    def __call__(self, state: tuple[Any, Any], x: Any) -> tuple[tuple[Any, Any], Any]:
        """The state after a step, and the output."""
        check_features(self, x, self.inputs)
        return self.stepped(state, self.prepared(x))

    def prepared(self, x: Any) -> Any:
        """What a step needs of its input; `RNN` takes it for all steps at once."""
        x, weight = computing(self.dtype, x, self.input_weight)
        y = jnp.dot(x, weight)
        return (y + self.bias).astype(y.dtype)  # the bias as it is: its gradient is a sum over all steps

    def stepped(self, state: tuple[Any, Any], gates: Any) -> tuple[tuple[Any, Any], Any]:
        """The state after a step with a prepared input, and the output."""
        c, h, weight = computing(self.dtype, *state, self.state_weight)
        i, f, g, o = jnp.split(gates + jnp.dot(h, weight), 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h = sigmoid(o) * jnp.tanh(c)
        return (c, h), h


class RNN(Module):
    """A cell run over the second last axis of its input: (batch, time, features).

    Args:
        reverse: from the last step to the first; outputs stay where their inputs are.
        unroll: steps that are written out in one turn of the loop.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> rnn = nn.RNN(nn.LSTMCell(2, 3, key=random.key(0)))
    >>> rnn(jnp.ones((5, 7, 2))).shape
    (5, 7, 3)
    """

    def __init__(self, cell: Any, *, reverse: bool = False, unroll: int = 1) -> None:
        if unroll < 1:
            raise ValueError(errors.explained(f"RNN: unroll must be 1 or more; got {unroll}."))
        self.cell, self.reverse, self.unroll = cell, bool(reverse), int(unroll)

    def __call__(self, x: Any, state: Any = None, *, return_state: bool = False) -> Any:
        """The outputs of all steps; with `return_state`, also the state after the last one."""
        cell, t = self.cell, type_of(x)
        if hasattr(cell, "inputs"):
            check_features(cell, x, cell.inputs)
        has_parts = hasattr(cell, "prepared")
        steps = jnp.moveaxis(cell.prepared(x) if has_parts else jnp.asarray(x), -2, 0)
        start = state
        if state is None:
            start = cell.start(t.shape[:-2], steps.dtype) if has_parts else cell.start(t.shape[:-2])
        if has_parts:  # a state in another dtype, such as one that was kept in float32
            start = tree.map(lambda x: x.astype(steps.dtype), start)
        step = cell.stepped if has_parts else cell
        last, out = lax.scan(step, start, steps, reverse=self.reverse, unroll=self.unroll)
        out = jnp.moveaxis(out, 0, -2)
        return (out, last) if return_state else out
