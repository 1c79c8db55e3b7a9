"""The first layers against those of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_rows import Row, check, drawn, features_second, in_their_words, torch

from atled import nn, random


def conv(count: int, size: int, inputs: int = 4, outputs: int = 8, **settings: Any) -> Row:
    """Convolutions over so many axes; the words for paddings differ."""
    shape = (2, *((9,), (8, 7), (5, 6, 4))[count - 1], inputs)
    renamed = in_their_words({n: v for n, v in settings.items() if n != "padding"})
    padding = settings.get("padding", "SAME")
    if padding == "CIRCULAR":
        renamed |= {"padding": settings.get("dilation", 1) * (size - 1) // 2, "padding_mode": "circular"}
    else:
        renamed["padding"] = padding.lower() if isinstance(padding, str) else padding
    return Row(
        nn.Conv(inputs, outputs, (size,) * count, key=random.key(0), **settings),
        (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[count - 1](inputs, outputs, size, **renamed),
        (drawn(*shape),),
        their_call=features_second,
    )


def batch_norm(shape: tuple[int, ...], training: bool = True) -> Row:
    """Running statistics keep 0.9 there as well, which says how much is replaced."""
    norm = nn.BatchNorm(shape[-1], momentum=0.9)
    theirs = (torch.nn.BatchNorm1d if len(shape) == 2 else torch.nn.BatchNorm2d)(shape[-1], momentum=0.1)
    inputs = (drawn(*shape) + 1,)
    return Row(norm if training else norm.eval(), theirs.train(training), inputs, their_call=features_second)


def attention(*inputs: np.ndarray, mask: np.ndarray | None = None, is_causal: bool = False, **settings: Any) -> Row:
    """Attention to the input itself or to a context."""

    def theirs(layer: Any, x: Any, context: Any = None) -> Any:
        source = x if context is None else context
        hidden = torch.ones(x.shape[1], source.shape[1], dtype=torch.bool).triu(1) if is_causal else None
        if mask is not None:  # there, True is what must not be seen, and heads are next to the batch
            hidden = torch.tensor(~mask).expand(-1, layer.num_heads, -1, -1).flatten(0, 1)
        return layer(x, source, source, attn_mask=hidden, need_weights=False)[0]

    return Row(
        nn.MultiHeadAttention(8, 2, key=random.key(0), **settings),
        torch.nn.MultiheadAttention(8, 2, batch_first=True, **in_their_words(settings)),
        inputs,
        lambda layer, *xs: layer(*xs, mask=mask, is_causal=is_causal),
        theirs,
    )


def cell() -> Row:
    """One step; states are in another order there."""

    def theirs(layer: Any, c: Any, h: Any, x: Any) -> Any:
        h, c = layer(x, (h, c))
        return c, h, h

    return Row(
        nn.LSTMCell(4, 6, key=random.key(0)),
        torch.nn.LSTMCell(4, 6),
        (drawn(3, 6, seed=1), drawn(3, 6, seed=2), drawn(3, 4)),
        lambda layer, c, h, x: layer((c, h), x),
        theirs,
    )


def rnn(reverse: bool = False, unroll: int = 1) -> Row:
    """An LSTM over time, from a state; backwards, the input is turned around there."""

    def theirs(layer: Any, x: Any, c: Any, h: Any) -> Any:
        out, (h, c) = layer(x.flip(1) if reverse else x, (h[None], c[None]))
        return out.flip(1) if reverse else out, c[0], h[0]

    return Row(
        nn.RNN(nn.LSTMCell(4, 6, key=random.key(0)), reverse=reverse, unroll=unroll),
        torch.nn.LSTM(4, 6, batch_first=True),
        (drawn(3, 7, 4), drawn(3, 6, seed=1), drawn(3, 6, seed=2)),
        lambda layer, x, c, h: layer(x, (c, h), return_state=True),
        theirs,
    )


WORDS, VECTORS = np.random.RandomState(0).randint(0, 7, (4, 5)), drawn(4, 6)
TIME, CONTEXT = drawn(2, 5, 8), drawn(2, 6, 8, seed=1)
MASK = np.random.RandomState(1).rand(2, 1, 5, 6) > 0.3
ROWS = {
    "linear": Row(nn.Linear(6, 5, key=random.key(0)), torch.nn.Linear(6, 5), (drawn(2, 3, 6),)),
    "linear, no bias": Row(
        nn.Linear(6, 5, use_bias=False, key=random.key(0)), torch.nn.Linear(6, 5, bias=False), (drawn(3, 6),)
    ),
    "stack": Row(
        nn.Stack(lambda key: nn.Linear(6, 6, key=key), 3, key=random.key(0)),
        torch.nn.Sequential(*[torch.nn.Linear(6, 6) for _ in range(3)]),
        (drawn(4, 6),),
    ),
    "embedding": Row(nn.Embedding(7, 6, key=random.key(0)), torch.nn.Embedding(7, 6), (WORDS,)),
    "embedding, attend": Row(
        nn.Embedding(7, 6, key=random.key(0)),
        torch.nn.Embedding(7, 6),
        (VECTORS,),
        lambda layer, x: layer.attend(x),
        lambda layer, x: x @ layer.weight.T,
    ),
    "conv 1d": conv(1, 3),
    "conv 1d, even": conv(1, 4),
    "conv 1d, VALID, stride": conv(1, 3, padding="VALID", strides=2),
    "conv 2d": conv(2, 3),
    "conv 2d, number, stride": conv(2, 3, padding=1, strides=2),
    "conv 2d, CIRCULAR": conv(2, 3, padding="CIRCULAR"),
    "conv 2d, CIRCULAR, dilation": conv(2, 3, padding="CIRCULAR", dilation=2),
    "conv 2d, dilation": conv(2, 3, dilation=2),
    "conv 2d, groups": conv(2, 3, groups=2),
    "conv 2d, no bias": conv(2, 1, use_bias=False),
    "conv 3d, VALID": conv(3, 2, padding="VALID"),
    "batch norm": batch_norm((16, 5)),
    "batch norm, images": batch_norm((3, 6, 7, 5)),
    "batch norm, in use": batch_norm((16, 5), training=False),
    "layer norm": Row(nn.LayerNorm(6), torch.nn.LayerNorm(6, eps=1e-6), (drawn(3, 4, 6),)),
    "dropout, nothing": Row(nn.Dropout(0.0), torch.nn.Dropout(0.0), (VECTORS,)),
    "dropout, everything": Row(nn.Dropout(1.0), torch.nn.Dropout(1.0), (VECTORS,)),
    "dropout, in use": Row(nn.Dropout(0.5).eval(), torch.nn.Dropout(0.5).eval(), (VECTORS,)),
    "attention": attention(TIME),
    "attention, no bias": attention(TIME, use_bias=False),
    "attention, causal": attention(TIME, is_causal=True),
    "attention, cross": attention(TIME, CONTEXT),
    "attention, cross, mask": attention(TIME, CONTEXT, mask=MASK),
    "cell": cell(),
    "rnn": rnn(),
    "rnn, reverse, unroll": rnn(reverse=True, unroll=2),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_same(name):
    check(ROWS[name])
