"""Convolutions, pooling and normalization against PyTorch, with its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_rows import LIMIT, Row, check, drawn, features_second, in_their_words, largest, run_ours, run_theirs, torch

from atled import nn, random

T = torch.nn
PLACES = ((9,), (8, 7), (5, 6, 4))


def features_first(layer: Any, x: Any) -> Any:
    """A call of a layer without a batch that has its features on the first axis."""
    return layer(x.movedim(-1, 0)).movedim(0, -1)


def shaped(count: int, features: int) -> np.ndarray:
    return drawn(2, *PLACES[count - 1], features)


def conv(count: int, size: int, mode: str, **settings: Any) -> Row:
    """Paddings that repeat the input are as wide as SAME there."""
    padding = settings.get("dilation", 1) * (size - 1) // 2
    theirs = getattr(T, f"Conv{count}d")(
        4, 8, size, padding=padding, padding_mode=mode.lower(), **in_their_words(settings)
    )
    ours = nn.Conv(4, 8, (size,) * count, padding=mode, key=random.key(0), **settings)
    return Row(ours, theirs, (shaped(count, 4),), their_call=features_second)


def depthwise() -> Row:
    ours = nn.Conv(4, 8, (3, 3), padding=1, groups=4, key=random.key(0))
    return Row(ours, T.Conv2d(4, 8, 3, padding=1, groups=4), (shaped(2, 4),), their_call=features_second)


def causal() -> Row:
    ours = nn.Conv1d(4, 8, 3, padding="CAUSAL", dilation=2, key=random.key(0))
    theirs = T.Conv1d(4, 8, 3, dilation=2)
    call = lambda layer, x: features_second(layer, T.functional.pad(x, (0, 0, 4, 0)))
    return Row(ours, theirs, (shaped(1, 4),), their_call=call)


def transposed(count: int, size: Any, padding: Any = 0, inputs: int = 4, outputs: int = 6, **settings: Any) -> Row:
    ours = nn.ConvTranspose(
        inputs, outputs, (size,) * count if isinstance(size, int) else size, padding=padding, key=random.key(0),
        **settings,
    )  # fmt: skip
    theirs = getattr(T, f"ConvTranspose{count}d")(inputs, outputs, size, padding=padding, **in_their_words(settings))
    return Row(ours, theirs, (shaped(count, inputs),), their_call=features_second)


def plain(ours: Any, theirs: Any, x: np.ndarray) -> Row:
    return Row(ours, theirs, (x,), their_call=features_second)


def weight_norm(ours: Any, theirs: Any, x: np.ndarray, dim: int = 0) -> Row:
    found = T.utils.parametrizations.weight_norm(theirs, dim=dim)
    return Row(ours, found, (x,), their_call=features_second if x.ndim > 2 else lambda layer, x: layer(x))


def spectral_norm(ours: Any, theirs: Any, x: np.ndarray, **settings: Any) -> Row:
    found = T.utils.parametrizations.spectral_norm(theirs, **settings)
    return Row(ours, found, (x,), their_call=features_second if x.ndim > 2 else lambda layer, x: layer(x))


def linear(outputs: int = 5) -> Any:
    return nn.Linear(6, outputs, key=random.key(0))


def image_conv() -> Any:
    return nn.Conv(4, 8, (3, 2), padding="VALID", key=random.key(0))


def image_transposed() -> Any:
    return nn.ConvTranspose(4, 6, (3, 2), padding=0, key=random.key(0))


IMAGE, VECTORS = shaped(2, 4), drawn(3, 6)
TIES = np.random.RandomState(0).randint(0, 3, (2, 8, 7, 3)).astype("f4")
ROWS = {
    "conv 1d, REFLECT": conv(1, 5, "REFLECT"),
    "conv 2d, REFLECT, dilation": conv(2, 3, "REFLECT", dilation=2),
    "conv 2d, REFLECT, stride": conv(2, 3, "REFLECT", strides=2),
    "conv 1d, REPLICATE": conv(1, 5, "REPLICATE"),
    "conv 2d, REPLICATE, dilation, stride": conv(2, 3, "REPLICATE", dilation=2, strides=2),
    "conv 3d, REPLICATE": conv(3, 3, "REPLICATE"),
    "conv 2d, depthwise": depthwise(),
    "conv 1d, causal": causal(),
    "transposed 1d": transposed(1, 3),
    "transposed 1d, padding": transposed(1, 4, 1, strides=2),
    "transposed 1d, stride larger": transposed(1, 2, strides=4),
    "transposed 1d, output padding": transposed(1, 3, 1, strides=2, output_padding=1),
    "transposed 1d, padding larger than the window": transposed(1, 2, 3, strides=2),
    "transposed 2d": transposed(2, (3, 4), (1, 2), strides=(2, 1), output_padding=(1, 0)),
    "transposed 2d, dilation": transposed(2, 3, 1, strides=2, dilation=3, output_padding=2),
    "transposed 2d, groups": transposed(2, (3, 2), 1, strides=2, groups=2),
    "transposed 2d, depthwise": transposed(2, 3, 1, 4, 4, strides=2, groups=4),
    "transposed 2d, no bias": transposed(2, 3, use_bias=False),
    "transposed 2d, no batch": transposed(2, 3)._replace(inputs=(IMAGE[0],), their_call=features_first),
    "transposed 3d, groups": transposed(3, 2, 0, strides=2, groups=2),
    "max pool 1d": plain(nn.MaxPool1d(3, strides=2, padding=1), T.MaxPool1d(3, 2, 1), shaped(1, 3)),
    "max pool 2d": plain(nn.MaxPool((2, 3)), T.MaxPool2d((2, 3)), IMAGE),
    "max pool 2d, ties": plain(nn.MaxPool((3, 2), strides=(2, 1)), T.MaxPool2d((3, 2), (2, 1)), TIES),
    "max pool 3d": plain(nn.MaxPool((2, 2, 2), strides=1), T.MaxPool3d(2, 1), shaped(3, 3)),
    "avg pool 1d": plain(nn.AvgPool1d(2), T.AvgPool1d(2), shaped(1, 3)),
    "avg pool 2d": plain(
        nn.AvgPool((3, 3), strides=2, padding=1), T.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE
    ),
    "avg pool 2d, zeros count": plain(
        nn.AvgPool((3, 2), strides=2, padding=1, count_include_pad=True), T.AvgPool2d((3, 2), 2, 1), IMAGE
    ),
    "avg pool 3d": plain(nn.AvgPool((2, 3, 2)), T.AvgPool3d((2, 3, 2)), shaped(3, 3)),
    "adaptive avg 1d": plain(nn.AdaptiveAvgPool1d(4), T.AdaptiveAvgPool1d(4), shaped(1, 3)),
    "adaptive avg 2d": plain(nn.AdaptiveAvgPool((3, 2)), T.AdaptiveAvgPool2d((3, 2)), IMAGE),
    "adaptive avg 2d, more": plain(nn.AdaptiveAvgPool((11, 16)), T.AdaptiveAvgPool2d((11, 16)), IMAGE),
    "adaptive avg 2d, one": plain(nn.AdaptiveAvgPool((1, None)), T.AdaptiveAvgPool2d((1, None)), IMAGE),
    "adaptive avg 3d": plain(nn.AdaptiveAvgPool((2, 4, 3)), T.AdaptiveAvgPool3d((2, 4, 3)), shaped(3, 3)),
    "adaptive max 1d": plain(nn.AdaptiveMaxPool1d(4), T.AdaptiveMaxPool1d(4), shaped(1, 3)),
    "adaptive max 2d": plain(nn.AdaptiveMaxPool((3, None)), T.AdaptiveMaxPool2d((3, None)), IMAGE),
    "adaptive max 2d, more": plain(nn.AdaptiveMaxPool((11, 3)), T.AdaptiveMaxPool2d((11, 3)), IMAGE),
    "adaptive max 3d": plain(nn.AdaptiveMaxPool((2, 3, 4)), T.AdaptiveMaxPool3d((2, 3, 4)), shaped(3, 3)),
    "global avg": plain(nn.GlobalAvgPool(keepdims=True), T.AdaptiveAvgPool2d(1), IMAGE),
    "global max": plain(nn.GlobalMaxPool(keepdims=True), T.AdaptiveMaxPool2d(1), IMAGE),
    "rms norm": Row(nn.RMSNorm(6), T.RMSNorm(6, eps=1e-6), (drawn(3, 4, 6),)),
    "rms norm, no scale": Row(nn.RMSNorm(6, use_scale=False), T.RMSNorm(6, 1e-6, False), (VECTORS,)),
    "group norm": plain(nn.GroupNorm(4, 2, eps=1e-5), T.GroupNorm(2, 4), IMAGE),
    "group norm, no places": Row(nn.GroupNorm(6, 2, eps=1e-5), T.GroupNorm(2, 6), (VECTORS,)),
    "group norm, no parameters": plain(
        nn.GroupNorm(4, 1, eps=1e-5, use_scale=False, use_bias=False), T.GroupNorm(1, 4, affine=False), IMAGE
    ),
    "instance norm 1d": plain(nn.InstanceNorm(4, eps=1e-5), T.InstanceNorm1d(4, affine=True), shaped(1, 4)),
    "instance norm 2d": plain(
        nn.InstanceNorm(4, eps=1e-5, use_scale=False, use_bias=False), T.InstanceNorm2d(4), IMAGE
    ),
    "weight norm, linear": weight_norm(nn.WeightNorm(linear()), T.Linear(6, 5), VECTORS),
    "weight norm, linear, other axis": weight_norm(nn.WeightNorm(linear(), axis=0), T.Linear(6, 5), VECTORS, 1),
    "weight norm, conv": weight_norm(nn.WeightNorm(image_conv()), T.Conv2d(4, 8, (3, 2)), IMAGE),
    "weight norm, transposed": weight_norm(
        nn.WeightNorm(image_transposed()), T.ConvTranspose2d(4, 6, (3, 2)), IMAGE
    ),
    "weight norm, stack": Row(
        nn.Stack(lambda key: nn.WeightNorm(nn.Linear(6, 6, key=key)), 3, key=random.key(0)),
        T.Sequential(*[T.utils.parametrizations.weight_norm(T.Linear(6, 6)) for _ in range(3)]),
        (VECTORS,),
    ),
    "spectral norm, linear": spectral_norm(nn.SpectralNorm(linear()), T.Linear(6, 5), VECTORS),
    "spectral norm, conv": spectral_norm(
        nn.SpectralNorm(image_conv(), power_iterations=3), T.Conv2d(4, 8, (3, 2)), IMAGE, n_power_iterations=3
    ),
    "spectral norm, transposed": spectral_norm(
        nn.SpectralNorm(image_transposed(), axis=-2), T.ConvTranspose2d(4, 6, (3, 2)), IMAGE
    ),
    "spectral norm, stack": Row(
        nn.Stack(lambda key: nn.SpectralNorm(nn.Conv1d(4, 4, 3, key=key)), 2, key=random.key(0)),
        T.Sequential(*[T.utils.parametrizations.spectral_norm(T.Conv1d(4, 4, 3, padding=1)) for _ in range(2)]),
        (shaped(1, 4),),
        their_call=features_second,
    ),
    "spatial dropout, in use": plain(nn.SpatialDropout(0.5).eval(), T.Dropout2d(0.5).eval(), IMAGE),
    "spatial dropout, everything": plain(nn.SpatialDropout(1.0), T.Dropout2d(1.0), IMAGE),
    "alpha dropout, in use": Row(nn.AlphaDropout(0.5).eval(), T.AlphaDropout(0.5).eval(), (VECTORS,)),
    "alpha dropout, everything": Row(nn.AlphaDropout(1.0), T.AlphaDropout(1.0), (VECTORS,)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_the_same(name):
    check(ROWS[name])


def test_spectral_norm_in_use():
    """With the vectors that training left, which do not change any more; random ones would cancel."""
    theirs = T.utils.parametrizations.spectral_norm(T.Linear(6, 5)).eval()
    row = Row(nn.SpectralNorm(linear()).eval(), theirs, (VECTORS,))
    layer = nn.load_state_dict(row.ours, theirs.state_dict())
    found, where = largest(run_ours(row, layer), run_theirs(row))
    assert found <= LIMIT, f"{found:.1e} at {where}"


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_alpha_dropout_has_the_same_two_branches(rate):
    """Which numbers are dropped is drawn; what becomes of those that are, and of the rest, is not."""
    x = np.linspace(-3, 3, 1001, dtype="f4")
    torch.manual_seed(0)
    theirs = T.AlphaDropout(rate)(torch.tensor(x)).numpy()
    ours = np.asarray(nn.AlphaDropout(rate)(x, key=random.key(0)))
    slopes, low = [], []
    for y in (theirs, ours):
        dropped = abs(y - np.median(y[abs(np.diff(y, prepend=9)) < 1e-6])) < 1e-5
        slopes.append(np.polyfit(x[~dropped], y[~dropped], 1))
        low.append(y[dropped].mean())
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(low[0], low[1], rtol=1e-5)
