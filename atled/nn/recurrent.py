"""Recurrent layers: cells for one step; `RNN` and `Bidirectional`, which run them over time.

A cell is called as `state, y = cell(state, x)`. `prepared` is the part of a step that depends only on the input, and is
computed for all steps at once; `stepped` is the rest of a step. A custom cell needs `initial_state` and `__call__`;
`prepared` and `stepped` are optional.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors, tree
from atled.core.array import Array, describe, is_array_like, type_of
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.activations import sigmoid
from atled.nn.convolutions import Conv, window
from atled.nn.linear_layers import check_features, computing, kept, needed
from atled.nn.module import Module
from atled.nn.variable_kinds import Param


class _Cell(Module):
    """Base of cells: sizes, concatenated arrays of all gates, and the initial state."""

    input_weight: Array
    state_weight: Array
    bias: Array
    gate_count, biases = 1, ("bias",)
    feature_axes = 1  # number of axes of one step's input: features and spatial axes
    is_pair = False  # whether a state is (cell, output); otherwise it is the output

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        weight_init: Any = None,
        recurrent_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.in_features, self.hidden_features = int(in_features), int(hidden_features)
        n = self.gate_count
        keys = random.split(needed(self, key), 2 * n + len(self.biases))
        draw, draw_state = weight_init or initializers.lecun_normal(), recurrent_init or initializers.orthogonal()
        gates = [draw(k, (in_features, hidden_features), param_dtype) for k in keys[:n]]
        states = [draw_state(k, (hidden_features, hidden_features), param_dtype) for k in keys[n : 2 * n]]
        self.input_weight = Param(jnp.concatenate(gates, 1))
        self.state_weight = Param(jnp.concatenate(states, 1))
        for name, k in zip(self.biases, keys[2 * n :], strict=True):
            setattr(self, name, Param(bias_init(k, (n * hidden_features,), param_dtype)))
        self.dtype = kept(dtype)

    def initial_state(self, batch_shape: tuple[int, ...] = (), dtype: Any = None) -> Any:
        """The initial state: zeros, by default in the compute dtype of the layer."""
        dtype = dtype or self.dtype or tree.leaves(self)[0].dtype
        states = [jnp.zeros((*batch_shape, self.hidden_features), dtype) for _ in range(1 + self.is_pair)]
        return tuple(states) if self.is_pair else states[0]

    def __call__(self, state: Any, x: Any) -> Any:
        """The state after a step, and the output."""
        self.check_state(state)
        check_features(self, x, self.in_features)
        return self.stepped(state, self.prepared(x))

    def check_state(self, state: Any) -> None:
        """Raise unless a value is a valid state of this cell."""
        parts = state if self.is_pair and isinstance(state, (tuple, list)) else (state,)
        fits = len(parts) == 1 + self.is_pair and all([is_array_like(x) for x in parts])
        if fits and all([type_of(x).shape[-1:] == (self.hidden_features,) for x in parts]):
            return
        name, n = type(self).__name__, self.hidden_features
        expected = f"a pair (cell, output) of arrays (…, {n})" if self.is_pair else f"an array (…, {n})"
        got = ", ".join([describe(x) if not is_array_like(x) else str(type_of(x)) for x in parts])
        raise TypeError(
            errors.explained(
                f"{name}: the first argument must be the state, {expected}; got {got or 'nothing'}.",
                "cell(state, x), from cell.initial_state(x.shape[:-1]).",
            )
        )

    def prepared(self, x: Any) -> Any:
        """The part of a step that depends only on its input; `RNN` computes it for all steps at once."""
        x, weight = computing(self.dtype, x, self.input_weight)
        return _plus(jnp.dot(x, weight), self.bias)

    def stepped(self, state: Any, gates: Any) -> Any:
        """The state after a step with a prepared input, and the output."""
        raise NotImplementedError


def _plus(y: Any, bias: Any) -> Any:
    """y + bias in the dtype of y; the bias keeps its dtype, because its gradient is a sum over all steps."""
    return (y + bias).astype(y.dtype)


@formerly(
    inputs="in_features",
    features="hidden_features",
    init="weight_init",
    state_init="recurrent_init",
    start="initial_state",
)
class RNNCell(_Cell):
    """One step of a plain recurrent network: `state, y = cell(state, x)`, where the state is the last output.

    `y = activation(x @ input_weight + state @ state_weight + bias)`.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> cell = nn.RNNCell(2, 3, activation=nn.relu, key=random.key(0))
    >>> state, y = cell(cell.initial_state((5,)), jnp.ones((5, 2)))
    >>> y.shape
    (5, 3)
    """

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        activation: Callable[[Any], Any] = jnp.tanh,
        weight_init: Any = None,
        recurrent_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        super().__init__(
            in_features, hidden_features, weight_init=weight_init, recurrent_init=recurrent_init, bias_init=bias_init,
            dtype=dtype, param_dtype=param_dtype, key=key,
        )  # fmt: skip
        self.activation = activation

    def stepped(self, state: Any, gates: Any) -> tuple[Any, Any]:
        """The state after a step with a prepared input, and the output: the same array."""
        h, weight = computing(self.dtype, state, self.state_weight)
        y = self.activation(gates + jnp.dot(h, weight))
        return y, y


@formerly(
    inputs="in_features",
    features="hidden_features",
    init="weight_init",
    state_init="recurrent_init",
    start="initial_state",
)
class LSTMCell(_Cell):
    """One step of an LSTM: `state, y = cell(state, x)`, where a state is a pair (cell, output).

    The gates input, forget, new and output are concatenated in `input_weight`, `state_weight` and `bias`: `i, f, g, o =
    split(x @ input_weight + output @ state_weight + bias)`, then `cell = sigmoid(f) * cell + sigmoid(i) *
    tanh(g)` and `y = sigmoid(o) * tanh(cell)`.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> cell = nn.LSTMCell(2, 3, key=random.key(0))
    >>> state, y = cell(cell.initial_state((5,)), jnp.ones((5, 2)))
    >>> y.shape
    (5, 3)
    """

    gate_count, is_pair = 4, True

    def stepped(self, state: tuple[Any, Any], gates: Any) -> tuple[tuple[Any, Any], Any]:
        """The state after a step with a prepared input, and the output."""
        c, h, weight = computing(self.dtype, *state, self.state_weight)
        return _lstm(c, gates + jnp.dot(h, weight))


def _lstm(c: Any, gates: Any) -> tuple[tuple[Any, Any], Any]:
    """The state and output of an LSTM, from its old cell and its gates."""
    i, f, g, o = jnp.split(gates, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
    h = sigmoid(o) * jnp.tanh(c)
    return (c, h), h


@formerly(
    inputs="in_features",
    features="hidden_features",
    init="weight_init",
    state_init="recurrent_init",
    start="initial_state",
)
class GRUCell(_Cell):
    """One step of a GRU: `state, y = cell(state, x)`, where the state is the last output.

    The gates reset, update and new are concatenated: `a, b, c = split(x @ input_weight + input_bias)` and
    `d, e, f = split(state @ state_weight + state_bias)`. Then `r = sigmoid(a + d)`, `z = sigmoid(b + e)`,
    `n = tanh(c + r * f)` and `y = (1 - z) * n + z * state`. As in PyTorch, cuDNN and flax, the reset gate is applied to
    the product and its bias; in the paper (Cho et al., 2014), it is applied to the state before the product.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> cell = nn.GRUCell(2, 3, key=random.key(0))
    >>> state, y = cell(cell.initial_state((5,)), jnp.ones((5, 2)))
    >>> y.shape
    (5, 3)
    """

    input_bias: Array
    state_bias: Array
    gate_count, biases = 3, ("input_bias", "state_bias")

    def prepared(self, x: Any) -> Any:
        """The part of a step that depends only on its input; `RNN` computes it for all steps at once."""
        x, weight = computing(self.dtype, x, self.input_weight)
        return _plus(jnp.dot(x, weight), self.input_bias)

    def stepped(self, state: Any, gates: Any) -> tuple[Any, Any]:
        """The state after a step with a prepared input, and the output: the same array."""
        h, weight = computing(self.dtype, state, self.state_weight)
        own = _plus(jnp.dot(h, weight), self.state_bias)
        (a, b, c), (d, e, f) = jnp.split(gates, 3, -1), jnp.split(own, 3, -1)
        z, n = sigmoid(b + e), jnp.tanh(c + sigmoid(a + d) * f)
        y = n + z * (h - n)
        return y, y


@formerly(
    inputs="in_features",
    features="hidden_features",
    size="kernel_size",
    init="weight_init",
    state_init="recurrent_init",
    start="initial_state",
    input="input_conv",
    state="state_conv",
)
class ConvLSTMCell(_Cell):
    """One step of an LSTM over images (batch, *spatial, features), with convolutions as products (Shi et al., 2015).

    The convolutions `input_conv` and `state_conv` compute all four gates of `LSTMCell`; the paper's peephole
    connections, from the cell to the gates, are omitted.

    Args:
        kernel_size: the length of the windows along each axis.
        padding: of both convolutions: "SAME" (zeros) or "CIRCULAR" (wraps around).

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> cell = nn.ConvLSTMCell(2, 3, (3, 3), key=random.key(0))
    >>> state, y = cell(cell.initial_state((5, 8, 8)), jnp.ones((5, 8, 8, 2)))
    >>> y.shape
    (5, 8, 8, 3)
    """

    is_pair = True

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        kernel_size: int | Sequence[int],
        *,
        padding: str = "SAME",
        weight_init: Any = None,
        recurrent_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        if padding not in ("SAME", "CIRCULAR"):
            raise ValueError(
                errors.explained(
                    f"ConvLSTMCell: padding must be SAME or CIRCULAR, so that states keep their size; got {padding!r}."
                )
            )
        kernel_size = window("ConvLSTMCell", "kernel_size", kernel_size, None)
        self.in_features, self.hidden_features = int(in_features), int(hidden_features)
        keys = random.split(needed(self, key), 2)
        common = {"padding": padding, "dtype": dtype, "param_dtype": param_dtype}
        self.input_conv = Conv(
            in_features,
            4 * hidden_features,
            kernel_size,
            weight_init=weight_init,
            bias_init=bias_init,
            key=keys[0],
            **common,
        )
        self.state_conv = Conv(
            hidden_features,
            4 * hidden_features,
            kernel_size,
            weight_init=recurrent_init,
            use_bias=False,
            key=keys[1],
            **common,
        )
        self.feature_axes = 1 + len(self.input_conv.kernel_size)
        self.dtype = kept(dtype)

    def prepared(self, x: Any) -> Any:
        """The part of a step that depends only on its input, (…, *spatial, features): a convolution."""
        return self._convolved(self.input_conv, x)

    def stepped(self, state: tuple[Any, Any], gates: Any) -> tuple[tuple[Any, Any], Any]:
        """The state after a step with a prepared input, and the output."""
        c, h = computing(self.dtype, *state)
        return _lstm(c, gates + self._convolved(self.state_conv, h))

    def _convolved(self, layer: Any, x: Any) -> Any:
        """A convolution over the last axes; all axes before them are batch axes."""
        t, n = type_of(x), self.feature_axes
        if t.ndim < n:
            raise ValueError(
                errors.explained(f"ConvLSTMCell: an input must have {n} axes, or more with batch axes; got {t}.")
            )
        y = layer(jnp.reshape(x, (math.prod(t.shape[:-n]), *t.shape[-n:])))
        return y.reshape(*t.shape[:-1], 4 * self.hidden_features)


class RNN(Module):
    """Runs a cell over time; inputs are (batch, time, features), or (batch, time, *spatial, features) for
    `ConvLSTMCell`.

    Args:
        reverse: whether to run from the last step to the first; outputs stay at the positions of their inputs.
        unroll: steps per iteration of the compiled loop.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> rnn = nn.RNN(nn.LSTMCell(2, 3, key=random.key(0)))
    >>> rnn(jnp.ones((5, 7, 2))).shape
    (5, 7, 3)
    >>> rnn(jnp.ones((2, 4, 2)), lengths=jnp.array([4, 1]))[1, :, 0] != 0
    Array([ True, False, False, False], dtype=bool)
    """

    def __init__(self, cell: Any, *, reverse: bool = False, unroll: int = 1) -> None:
        if unroll < 1:
            raise ValueError(errors.explained(f"RNN: unroll must be 1 or more; got {unroll}."))
        if isinstance(cell, type) or not hasattr(cell, "initial_state"):
            raise TypeError(
                errors.explained(
                    f"RNN: a cell must have initial_state and __call__; got {describe(cell)}.",
                    "RNN(nn.LSTMCell(2, 3, key=key)).",
                )
            )
        self.cell, self.reverse, self.unroll = cell, bool(reverse), int(unroll)

    def __call__(self, x: Any, state: Any = None, *, lengths: Any = None, return_state: bool = False) -> Any:
        """The outputs of all steps; with `return_state`, also the state after the last one.

        Args:
            state: the state before the first step; by default the cell's `initial_state`.
            lengths: how many steps each sequence has, integers (batch,). Inputs after the
                end of a sequence are ignored: outputs are zero there, and states do not
                change. With `reverse`, each sequence starts at its own end.
        """
        cell, t = self.cell, type_of(x)
        count = t.ndim - 1 - getattr(cell, "feature_axes", 1)  # the number of axes before time
        if count < 0:
            raise ValueError(errors.explained(f"RNN: the input must be (…, time, features) for its cell; got {t}."))
        if hasattr(cell, "in_features"):
            check_features(cell, x, cell.in_features)
        is_inside = None if lengths is None else self._inside(lengths, t.shape[: count + 1])
        if is_inside is not None:
            x = jnp.where(_with_axes(is_inside, t.ndim), x, 0)  # otherwise NaN in the padding makes gradients NaN
        has_parts = hasattr(cell, "prepared")
        steps: Any = jnp.moveaxis(cell.prepared(x) if has_parts else jnp.asarray(x), count, 0)
        batch, start = (*t.shape[:count], *t.shape[count + 1 : -1]), state
        if state is None:
            start = cell.initial_state(batch, steps.dtype) if has_parts else cell.initial_state(batch)
        elif hasattr(cell, "check_state"):
            cell.check_state(state)
        if has_parts:  # the state may have another dtype, such as float32
            start = tree.map(lambda x: jnp.asarray(x, steps.dtype), start)
        step = cell.stepped if has_parts else cell
        if is_inside is not None:
            step, steps = _frozen(step), (steps, jnp.moveaxis(is_inside, -1, 0))
        last, out = lax.scan(step, start, steps, reverse=self.reverse, unroll=self.unroll)
        out = jnp.moveaxis(out, 0, count)
        return (out, last) if return_state else out

    def _inside(self, lengths: Any, dims: tuple[int, ...]) -> Any:
        """Which steps are before the end of their sequences, (batch, time)."""
        t = type_of(lengths)
        if t.kind not in "iu" or t.shape != dims[:-1]:
            raise ValueError(
                errors.explained(
                    f"RNN: lengths must be integers of the shape {dims[:-1]}, one for each sequence; got {t}."
                )
            )
        return jnp.arange(dims[-1]) < jnp.asarray(lengths)[..., None]


def _with_axes(x: Any, ndim: int) -> Any:
    """An array with trailing axes of length 1, up to `ndim` axes."""
    return x.reshape(*x.shape, *(1,) * (ndim - x.ndim))


def _frozen(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that updates states, and returns outputs, only for sequences that have not ended."""

    def frozen(state: Any, both: tuple[Any, Any]) -> tuple[Any, Any]:
        x, is_inside = both
        new, y = step(state, x)
        zeros = tree.map(jnp.zeros_like, y)
        return tree.map(lambda x, other: jnp.where(_with_axes(is_inside, x.ndim), x, other), (new, y), (state, zeros))

    return frozen


_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "concatenate": lambda a, b: jnp.concatenate([a, b], -1),
    "sum": lambda a, b: a + b,
    "mean": lambda a, b: (a + b) / 2,
    "product": lambda a, b: a * b,
}


@formerly(merge="merge_mode")
class Bidirectional(Module):
    """Two cells run over time, one forwards and one backwards, and their outputs merged.

    Args:
        forward, backward: two cells, or two `RNN`s, the second with `reverse=True`.
        merge_mode: "concatenate" (along features), "sum", "mean", "product", or a function of both outputs.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> one, two = [nn.GRUCell(2, 3, key=key) for key in random.split(random.key(0))]
    >>> nn.Bidirectional(one, two)(jnp.ones((5, 7, 2))).shape
    (5, 7, 6)
    """

    def __init__(self, forward: Any, backward: Any, *, merge_mode: Any = "concatenate") -> None:
        if forward is backward:
            raise ValueError(
                errors.explained(
                    "Bidirectional: forward and backward must be two cells; got the same one twice.",
                    "two cells, created with different keys.",
                )
            )
        if not callable(merge_mode) and merge_mode not in _MERGES:
            raise ValueError(
                errors.explained(
                    f"Bidirectional: merge_mode must be one of {', '.join(_MERGES)}, or a function; got "
                    f"{merge_mode!r}.",
                    "merge_mode='concatenate'.",
                )
            )
        self.forward, self.backward = [
            x if isinstance(x, RNN) else RNN(x, reverse=i) for x, i in ((forward, False), (backward, True))
        ]
        if self.forward.reverse or not self.backward.reverse:
            raise ValueError(
                errors.explained(
                    "Bidirectional: forward must be an RNN with reverse=False, backward one with reverse=True; got "
                    f"{self.forward.reverse} and {self.backward.reverse}.",
                    "the cells themselves: Bidirectional(cell, other_cell).",
                )
            )
        self.merge_mode = merge_mode

    def __call__(self, x: Any, state: Any = None, *, lengths: Any = None, return_state: bool = False) -> Any:
        """The merged outputs of all steps; with `return_state`, also the last states, a pair.

        Args:
            state: a pair: the state of each cell before its first step.
            lengths: how many steps each sequence has, as for `RNN`.
        """
        if state is not None and not (isinstance(state, (tuple, list)) and len(state) == 2):
            raise TypeError(
                errors.explained(f"Bidirectional: a state must be a pair, one for each cell; got {describe(state)}.")
            )
        (a, first), (b, second) = [
            rnn(x, start, lengths=lengths, return_state=True)
            for rnn, start in zip((self.forward, self.backward), state or (None, None), strict=True)
        ]
        y = (_MERGES[self.merge_mode] if isinstance(self.merge_mode, str) else self.merge_mode)(a, b)
        return (y, (first, second)) if return_state else y
