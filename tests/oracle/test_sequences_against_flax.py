"""Recurrent layers against those of flax with the same weights: outputs, states, gradients by everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flax_rows import ZEROS, ZEROS_THERE, Case, check_half_precision, check_precisely, check_same, drawn

import atled
import atled.numpy as jnp
from atled import nn, random

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")
linen = pytest.importorskip("flax.linen")

ZERO_CELL = {"kernel_init": ZEROS_THERE, "recurrent_kernel_init": ZEROS_THERE}
CELLS = {
    "gru": (nn.GRUCell, nnx.GRUCell, {"input_bias": ("dense_i/bias",)}),  # flax has no bias of the state
    "plain": (nn.RNNCell, nnx.SimpleCell, {"bias": ("dense_i/bias",)}),
    "lstm": (nn.LSTMCell, nnx.OptimizedLSTMCell, {"bias": ("dense_h/bias",)}),
}
WEIGHTS = {"input_weight": ("dense_i/kernel",), "state_weight": ("dense_h/kernel",)}
STATES = drawn(8, 24, seed=2), drawn(8, 24, seed=3)
SEQUENCE, LENGTHS = drawn(8, 12, 10), np.array([12, 1, 5, 7, 12, 3, 2, 9], "i4")
IS_INSIDE = (np.arange(12) < LENGTHS[:, None])[..., None]


def ours(name: str, **settings: Any) -> Any:
    return CELLS[name][0](10, 24, weight_init=ZEROS, recurrent_init=ZEROS, key=random.key(0), **settings)


def theirs(name: str, **settings: Any) -> Any:
    if name == "plain":  # which computes in float32 unless it is told otherwise
        settings = {"dtype": settings.get("param_dtype", "float32"), **settings}
    return CELLS[name][1](10, 24, rngs=nnx.Rngs(0), **ZERO_CELL, **settings)


def names(name: str, path: str = "", there: str = "") -> dict[str, tuple[str, ...]]:
    """Our names of arrays, and theirs, below paths."""
    return {path + a: tuple([there + n for n in b]) for a, b in {**WEIGHTS, **CELLS[name][2]}.items()}


def states_of(name: str) -> tuple[np.ndarray, ...]:
    return STATES if name == "lstm" else STATES[:1]


def as_state(states: tuple[Any, ...]) -> Any:
    return states[0] if len(states) == 1 else states


def cell(name: str) -> Case:
    return Case(
        lambda **kw: ours(name, **kw),
        lambda **kw: theirs(name, **kw),
        names(name),
        (*states_of(name), SEQUENCE[:, 0]),
        lambda layer, *xs: layer(as_state(xs[:-1]), xs[-1]),
    )


def rnn(name: str, reverse: bool = False, lengths: Any = None, with_state: bool = False) -> Case:
    """Over time; past the end of a sequence flax goes on, where ours are zeros."""
    inside = 1 if lengths is None else IS_INSIDE

    def call_there(layer: Any, x: Any, *start: Any) -> Any:
        last, out = layer(x, initial_carry=as_state(start) if start else None, seq_lengths=lengths, return_carry=True)
        return out * inside, last

    return Case(
        lambda **kw: nn.RNN(ours(name, **kw), reverse=reverse),
        lambda **kw: nnx.RNN(theirs(name, **kw), reverse=reverse, keep_order=True),
        names(name, "cell/", "cell/"),
        (SEQUENCE, *(states_of(name) if with_state else ())),
        lambda layer, x, *start: layer(x, as_state(start) if start else None, lengths=lengths, return_state=True),
        call_there,
    )


def both_directions(name: str, lengths: Any = None) -> Case:
    inside = 1 if lengths is None else IS_INSIDE

    def call_there(layer: Any, x: Any) -> Any:
        last, out = layer(x, seq_lengths=lengths, return_carry=True)
        return out * inside, last

    return Case(
        lambda **kw: nn.Bidirectional(ours(name, **kw), ours(name, **kw)),
        lambda **kw: nnx.Bidirectional(nnx.RNN(theirs(name, **kw)), nnx.RNN(theirs(name, **kw))),
        {**names(name, "forward/cell/", "forward_rnn/cell/"), **names(name, "backward/cell/", "backward_rnn/cell/")},
        (SEQUENCE,),
        lambda layer, x: layer(x, lengths=lengths, return_state=True),
        call_there,
    )


CASES = {
    **{f"cell, {n}": cell(n) for n in ("gru", "plain")},
    **{f"rnn, {n}, state": rnn(n, with_state=True) for n in ("gru", "plain")},
    **{f"rnn, {n}, lengths": rnn(n, lengths=LENGTHS, with_state=True) for n in CELLS},
    **{f"rnn, {n}, reverse, lengths": rnn(n, True, LENGTHS) for n in CELLS},
    "rnn, gru, reverse": rnn("gru", True),
    **{f"both, {n}": both_directions(n) for n in ("gru", "lstm")},
    "both, plain, lengths": both_directions("plain", LENGTHS),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same(name):
    check_precisely(CASES[name])


@pytest.mark.parametrize("name", ["cell, gru", "cell, plain", "rnn, gru, state", "rnn, lstm, reverse, lengths"])
def test_half_precision(name):
    check_half_precision(CASES[name])


def conv_run(dtype: str, compute: str | None, is_ours: bool) -> dict[str, np.ndarray]:
    """Outputs, states and gradients of three steps over images, where flax has its gates in another order."""
    x, (c, h) = drawn(2, 3, 6, 5, 3), drawn(2, 2, 6, 5, 4, seed=1)
    wi, wh, bias = drawn(3, 2, 3, 16, seed=2) / 4, drawn(3, 2, 4, 16, seed=3) / 5, drawn(16, seed=4) / 2
    weight = [drawn(2, 3, 6, 5, 4, seed=5), drawn(2, 6, 5, 4, seed=6)]
    arrays = [a.astype(dtype) for a in (wi, wh, bias, x, c, h)]

    def loss(run: Callable[..., Any], wi: Any, wh: Any, bias: Any, x: Any, c: Any, h: Any) -> Any:
        out, (c, h) = run(wi, wh, bias, x, c, h)
        found = out.astype(dtype), c.astype(dtype)
        return sum([(y * w.astype(dtype)).sum() for y, w in zip(found, weight, strict=True)]), (out, c, h)

    def own(wi: Any, wh: Any, bias: Any, x: Any, c: Any, h: Any) -> Any:
        cell = nn.ConvLSTMCell(3, 4, (3, 2), dtype=compute, param_dtype=dtype, key=random.key(0))
        cell.input_conv.weight, cell.state_conv.weight, cell.input_conv.bias = wi, wh, bias
        return nn.RNN(cell)(x, (c, h), return_state=True)

    def other(wi: Any, wh: Any, bias: Any, x: Any, c: Any, h: Any) -> Any:
        turned = lambda w: jax.numpy.concatenate([jax.numpy.split(w, 4, -1)[i] for i in (0, 2, 1, 3)], -1)
        bias = turned(bias) - np.repeat([0.0, 0.0, 1.0, 0.0], 4).astype(dtype)  # 1 is added to the forget gate there
        params = {"ih": {"kernel": turned(wi), "bias": bias}, "hh": {"kernel": turned(wh), "bias": 0 * bias}}
        cell, state, out = linen.ConvLSTMCell(4, (3, 2), dtype=compute, param_dtype=dtype), (c, h), []
        for t in range(3):
            state, y = cell.apply({"params": params}, state, x[:, t])
            out.append(y)
        return jax.numpy.stack(out, 1), state

    def found(library: Any, run: Callable[..., Any]) -> dict[str, np.ndarray]:
        f = library.value_and_grad(lambda *xs: loss(run, *xs), argnums=tuple(range(6)), has_aux=True)
        (_, out), grads = library.jit(f)(*arrays)
        return {
            f"{k} {i}": np.asarray(y).astype("f8") for k, ys in (("out", out), ("by", grads)) for i, y in enumerate(ys)
        }

    if is_ours:
        return found(atled, own)
    with jax.enable_x64(dtype == "float64"):
        return found(jax, other)


def test_convolutions_for_products():
    check_same(conv_run("float32", None, True), conv_run("float32", None, False), 2e-5)
    want = conv_run("float64", None, False)
    check_same(conv_run("float64", None, True), want, 1e-13)
    half, there = [conv_run("float32", "bfloat16", is_ours) for is_ours in (True, False)]
    for what, x in want.items():
        a, b = [np.sqrt(((y[what] - x) ** 2).mean()) for y in (half, there)]
        assert a <= 1.5 * b + 1e-6, f"{what}: {a:.2g}, flax {b:.2g}"


def test_grouped_queries_and_windows_are_those_of_jax():
    """The layer with its options, against JAX's function on the same queries, keys and values."""
    x = drawn(2, 9, 16)
    layer = nn.MultiHeadAttention(16, 4, num_kv_heads=2, local_window_size=(3, 1), key=random.key(0)).eval()
    for is_causal in (False, True):

        def there(x: Any, is_causal: bool = is_causal) -> Any:
            parts = layer.query_proj, layer.key_proj, layer.value_proj
            q, k, v = [(x @ np.asarray(p.weight)).reshape(2, 9, -1, 4) for p in parts]
            y = jax.nn.dot_product_attention(q, k, v, is_causal=is_causal, local_window_size=(3, 1))
            return y.reshape(2, 9, 16) @ np.asarray(layer.out_proj.weight)

        own = atled.value_and_grad(lambda x, c=is_causal: jnp.sum(jnp.sin(layer(x, is_causal=c))))(x)
        want = jax.value_and_grad(lambda x, f=there: jax.numpy.sum(jax.numpy.sin(f(x))))(x)
        for a, b in zip(own, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
