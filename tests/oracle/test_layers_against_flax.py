"""Layers against those of flax.nnx with the same weights: outputs, gradients by everything, statistics of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flax_rows import ONLY_STATISTICS, ZEROS, ZEROS_THERE, Case, check_half_precision, check_precisely, drawn

import atled
from atled import nn, random

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")

ZERO_CELL = {"kernel_init": ZEROS_THERE, "recurrent_kernel_init": ZEROS_THERE}


SAME_NAMES = {n: (n,) for n in ("scale", "bias")}
KERNEL = {"weight": ("kernel",)}
KERNEL_AND_BIAS = {**KERNEL, "bias": ("bias",)}
TABLE = {"weight": ("embedding",)}
STATISTICS = {**SAME_NAMES, "mean": ("mean",), "variance": ("var",)}
PROJECTIONS = ("query", "key", "value", "out")
ATTENTION_KERNELS = {f"{n}_proj/weight": (f"{n}/kernel",) for n in PROJECTIONS}
ATTENTION = {**ATTENTION_KERNELS, **{f"{n}_proj/bias": (f"{n}/bias",) for n in PROJECTIONS}}
CELL = {"input_weight": ("dense_i/kernel",), "state_weight": ("dense_h/kernel",), "bias": ("dense_h/bias",)}
GATES = {
    "input_weight": tuple([f"{n}/kernel" for n in ("ii", "if_", "ig", "io")]),
    "state_weight": tuple([f"h{n}/kernel" for n in "ifgo"]),
    "bias": tuple([f"h{n}/bias" for n in "ifgo"]),
}
IN_RNN = {f"cell/{ours}": tuple([f"cell/{n}" for n in theirs]) for ours, theirs in CELL.items()}

IDS = np.random.RandomState(1).randint(0, 7, (4, 5)).astype("i4")
LINE, IMAGE = drawn(2, 11, 4), drawn(2, 9, 10, 4)
TIME, CONTEXT = drawn(2, 5, 8), drawn(2, 7, 6, seed=1)
MASK = np.random.RandomState(2).rand(2, 1, 5, 5) > 0.4
MASK[0, 0, 1] = False  # a query that sees nothing
CROSS_MASK = np.random.RandomState(3).rand(2, 2, 5, 7) > 0.3
STATE = drawn(8, 24, seed=2), drawn(8, 24, seed=3)  # large enough for errors to be typical
SEQUENCE = drawn(8, 12, 10)


def linear(inputs: int, outputs: int, x: np.ndarray, bias: bool = True) -> Case:
    return Case(
        lambda **kw: nn.Linear(inputs, outputs, use_bias=bias, weight_init=ZEROS, key=random.key(0), **kw),
        lambda **kw: nnx.Linear(inputs, outputs, use_bias=bias, kernel_init=ZEROS_THERE, rngs=nnx.Rngs(0), **kw),
        KERNEL_AND_BIAS if bias else KERNEL,
        (x,),
    )


def embedding(inputs: tuple[np.ndarray, ...], call: Callable[..., Any]) -> Case:
    return Case(
        lambda **kw: nn.Embedding(7, 6, weight_init=ZEROS, key=random.key(0), **kw),
        lambda **kw: nnx.Embed(7, 6, embedding_init=ZEROS_THERE, rngs=nnx.Rngs(0), **kw),
        TABLE,
        inputs,
        call,
    )


def conv(x: np.ndarray, size: Any, stride: Any = 1, padding: Any = "SAME", dilation: Any = 1, groups: int = 1) -> Case:
    return Case(
        lambda **kw: nn.Conv(
            4, 8, (size,) if isinstance(size, int) else size, strides=stride, padding=padding, dilation=dilation,
            groups=groups, weight_init=ZEROS, key=random.key(0), **kw,
        ),
        lambda **kw: nnx.Conv(
            4, 8, size, stride, padding=padding, kernel_dilation=dilation, feature_group_count=groups,
            kernel_init=ZEROS_THERE, rngs=nnx.Rngs(0), **kw,
        ),
        KERNEL_AND_BIAS,
        (x,),
    )  # fmt: skip


def batch_norm(x: np.ndarray, training: bool = True, affine: bool = True, **settings: float) -> Case:
    theirs = {{"eps": "epsilon"}.get(n, n): v for n, v in settings.items()}

    def make(**kw: Any) -> Any:
        made = nn.BatchNorm(x.shape[-1], use_scale=affine, use_bias=affine, **settings, **kw)
        return made if training else made.eval()

    return Case(
        make,
        lambda **kw: nnx.BatchNorm(
            x.shape[-1], use_running_average=not training, use_scale=affine, use_bias=affine, rngs=nnx.Rngs(0),
            **theirs, **kw,
        ),
        STATISTICS if affine else ONLY_STATISTICS,
        (x,),
    )  # fmt: skip


def layer_norm(x: np.ndarray, scale: bool = True, bias: bool = True, eps: float = 1e-6) -> Case:
    return Case(
        lambda **kw: nn.LayerNorm(x.shape[-1], eps=eps, use_scale=scale, use_bias=bias, **kw),
        lambda **kw: nnx.LayerNorm(
            x.shape[-1], epsilon=eps, use_scale=scale, use_bias=bias, rngs=nnx.Rngs(0), **kw
        ),
        {n: (n,) for n, is_there in (("scale", scale), ("bias", bias)) if is_there},
        (x,),
    )  # fmt: skip


def attention(*inputs: np.ndarray, bias: bool = True, outputs: int | None = None, **settings: Any) -> Case:
    context = inputs[1].shape[-1] if len(inputs) > 1 else None
    return Case(
        lambda **kw: nn.MultiHeadAttention(
            8, 2, in_kv_features=context, out_features=outputs, use_bias=bias, weight_init=ZEROS,
            key=random.key(0), **kw,
        ),
        lambda **kw: nnx.MultiHeadAttention(
            2, 8, in_kv_features=context, out_features=outputs, use_bias=bias, decode=False,
            kernel_init=ZEROS_THERE, rngs=nnx.Rngs(0),
            **({"attention_fn": wide_attention} if kw["param_dtype"] == "float64" else {}), **kw,
        ),
        ATTENTION if bias else ATTENTION_KERNELS,
        inputs,
        lambda layer, *xs: layer(*xs, **settings),
    )  # fmt: skip


def wide_attention(query: Any, key: Any, value: Any, mask: Any = None, is_causal: bool = False, **_: Any) -> Any:
    """Attention in float64: JAX's own takes the softmax in float32."""
    logits = jax.numpy.einsum("bthd,bshd->bhts", query, key) / np.sqrt(query.shape[-1])
    seen = np.tril(np.ones(logits.shape[-2:], bool)) if is_causal else True
    logits = jax.numpy.where(seen if mask is None else seen & mask, logits, -1e300)
    return jax.numpy.einsum("bhts,bshd->bthd", jax.nn.softmax(logits), value)


def cell(theirs: str, names: dict[str, tuple[str, ...]]) -> Case:
    return Case(
        lambda **kw: nn.LSTMCell(10, 24, weight_init=ZEROS, recurrent_init=ZEROS, key=random.key(0), **kw),
        lambda **kw: getattr(nnx, theirs)(10, 24, rngs=nnx.Rngs(0), **ZERO_CELL, **kw),
        names,
        (*STATE, SEQUENCE[:, 0]),
        lambda layer, c, h, x: layer((c, h), x),
    )


def rnn(*state: np.ndarray, reverse: bool = False, unroll: int = 1) -> Case:
    def theirs(layer: Any, x: Any, *start: Any) -> Any:
        last, out = layer(x, initial_carry=start or None, return_carry=True)
        return out, last

    return Case(
        lambda **kw: nn.RNN(
            nn.LSTMCell(10, 24, weight_init=ZEROS, recurrent_init=ZEROS, key=random.key(0), **kw),
            reverse=reverse,
            unroll=unroll,
        ),
        lambda **kw: nnx.RNN(
            nnx.OptimizedLSTMCell(10, 24, rngs=nnx.Rngs(0), **ZERO_CELL, **kw),
            reverse=reverse,
            keep_order=True,
            unroll=unroll,
        ),
        IN_RNN,
        (SEQUENCE, *state),
        lambda layer, x, *start: layer(x, start or None, return_state=True),
        theirs,
    )


CASES = {
    "linear": linear(6, 5, drawn(3, 6)),
    "linear, no bias": linear(6, 5, drawn(3, 6), bias=False),
    "linear, many axes": linear(6, 5, drawn(2, 3, 4, 6)),
    "linear, no batch": linear(6, 5, drawn(6)),
    "embedding": embedding((IDS,), lambda layer, ids: layer(ids)),
    "embedding, attend": embedding((drawn(4, 6),), lambda layer, x: layer.attend(x)),
    "conv 1d": conv(LINE, 3),
    "conv 1d, even": conv(LINE, 4),
    "conv 1d, stride": conv(LINE, 3, stride=2),
    "conv 1d, VALID": conv(LINE, 3, padding="VALID"),
    "conv 1d, CIRCULAR": conv(LINE, 4, padding="CIRCULAR"),
    "conv 1d, groups": conv(LINE, 3, groups=4),
    "conv 2d": conv(IMAGE, (3, 3)),
    "conv 2d, no batch": conv(IMAGE[0], (3, 3)),
    "conv 2d, strides": conv(IMAGE, (3, 2), stride=(2, 3)),
    "conv 2d, stride, VALID": conv(IMAGE, (3, 3), stride=2, padding="VALID"),
    "conv 2d, CIRCULAR": conv(IMAGE, (3, 3), padding="CIRCULAR"),
    "conv 2d, CIRCULAR, dilation, stride": conv(IMAGE, (3, 2), stride=2, padding="CIRCULAR", dilation=(2, 3)),
    "conv 2d, pairs": conv(IMAGE, (3, 3), padding=((1, 2), (0, 3))),
    "conv 2d, number": conv(IMAGE, (3, 3), padding=2),
    "conv 2d, dilation": conv(IMAGE, (3, 3), dilation=(2, 1)),
    "conv 2d, groups": conv(IMAGE, (3, 3), groups=2),
    "conv 2d, all": conv(IMAGE, (3, 3), stride=(1, 2), padding=((2, 1), (1, 1)), dilation=2, groups=2),
    "batch norm": batch_norm(drawn(16, 5) + 0.5),
    "batch norm, images": batch_norm(IMAGE, momentum=0.9, eps=1e-3),
    "batch norm, momentum 0": batch_norm(drawn(16, 5), momentum=0.0),
    "batch norm, no parameters": batch_norm(drawn(16, 5), affine=False),
    "batch norm, in use": batch_norm(drawn(16, 5), training=False),
    "layer norm": layer_norm(drawn(3, 4, 6)),
    "layer norm, no scale": layer_norm(drawn(3, 6), scale=False, eps=1e-3),
    "layer norm, no bias": layer_norm(drawn(3, 6), bias=False),
    "attention": attention(TIME),
    "attention, cross, no bias": attention(TIME, CONTEXT, bias=False, outputs=3),
    "attention, mask": attention(TIME, mask=MASK),
    "attention, causal": attention(TIME, is_causal=True),
    "attention, cross, mask": attention(TIME, CONTEXT, mask=CROSS_MASK),
    "cell": cell("OptimizedLSTMCell", CELL),
    "cell, gate by gate": cell("LSTMCell", GATES),
    "rnn": rnn(),
    "rnn, state": rnn(*STATE),
    "rnn, reverse, unroll": rnn(reverse=True, unroll=2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same(name):
    check_precisely(CASES[name])


HALF = (
    "linear", "embedding", "embedding, attend", "conv 1d, CIRCULAR", "conv 2d", "batch norm", "batch norm, in use",
    "layer norm", "attention, cross, mask", "cell", "rnn",
    "rnn, state",
)  # fmt: skip


@pytest.mark.parametrize("name", HALF)
def test_half_precision(name):
    check_half_precision(CASES[name])


DROPOUT = {  # rate, and axes along which everything is dropped or kept together
    "some": (0.25, ()), "half": (0.5, ()), "most": (0.9, ()), "rows": (0.5, (1,)), "columns": (0.3, (-2,)),
    "nothing": (0.0, ()), "everything": (1.0, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", DROPOUT)
def test_dropout(name):
    """Zeros are as many as the rate says, the rest is as much larger, and gradients are where the rest is."""
    rate, axes = DROPOUT[name]
    x = np.abs(drawn(200, 150)) + 1
    ours, theirs = nn.Dropout(rate, broadcast_dims=axes), nnx.Dropout(rate, broadcast_dims=axes, rngs=nnx.Rngs(0))
    assert (ours.eval()(x) == x).all()
    more = {"key": random.key(0)} if 0 < rate < 1 else {}
    y, back = atled.vjp(lambda x: ours(x, **more), x)
    graph, state = nnx.split(theirs)
    there, back_there = jax.vjp(lambda x: nnx.merge(graph, state, copy=True)(x), x)
    for out, grad in ((y, back(np.ones_like(x))[0]), (there, back_there(np.ones_like(x))[0])):
        kept = np.asarray(out) != 0
        factor = kept / (1 - rate) if rate < 1 else np.zeros_like(x)
        np.testing.assert_allclose(out, x * factor, rtol=1e-6)
        np.testing.assert_allclose(grad, factor, rtol=1e-6)
        for axis in axes:
            assert (kept == kept.take([0], axis)).all()
            kept = kept.take([0], axis)
        assert abs(1 - kept.mean() - rate) <= 4 * np.sqrt(rate * (1 - rate) / kept.size)
