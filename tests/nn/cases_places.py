"""Rows for convolutions, pooling, normalization and dropout."""

from layer_case import Case, normal

from atled import nn

LINE, IMAGE, VOLUME = normal(4, 7, 4), normal(4, 6, 5, 4), normal(4, 3, 4, 2, 4)
BOTH, SCALED = ("weight", "bias"), ("scale", "bias")

CASES = [
    Case("Conv, CAUSAL", lambda k: nn.Conv(4, 4, (3,), padding="CAUSAL", dilation=2, key=k), LINE, BOTH, True),
    Case("Conv, REFLECT", lambda k: nn.Conv(4, 4, (3, 2), padding="REFLECT", key=k), IMAGE, BOTH, True),
    Case("Conv, REPLICATE", lambda k: nn.Conv(4, 2, (3, 2), strides=2, padding="REPLICATE", key=k), IMAGE, BOTH),
    Case("Conv1d", lambda k: nn.Conv1d(4, 2, 3, strides=2, key=k), LINE, BOTH),
    Case("Conv2d", lambda k: nn.Conv2d(4, 2, 3, dilation=2, key=k), IMAGE, BOTH),
    Case("Conv3d", lambda k: nn.Conv3d(4, 2, 2, padding="VALID", key=k), VOLUME, BOTH),
    Case("Conv, depthwise", lambda k: nn.Conv(4, 8, (3, 3), groups=4, key=k), IMAGE, BOTH),
    Case("ConvTranspose", lambda k: nn.ConvTranspose(4, 4, (3, 3), key=k), IMAGE, BOTH, True),
    Case("ConvTranspose, stride", lambda k: nn.ConvTranspose(4, 2, (3,), strides=2, key=k), LINE, BOTH),
    Case(
        "ConvTranspose, numbers, groups",
        lambda k: nn.ConvTranspose(4, 2, (3,), strides=2, padding=1, output_padding=1, groups=2, key=k),
        LINE,
        BOTH,
    ),
    Case(
        "ConvTranspose, CIRCULAR",
        lambda k: nn.ConvTranspose(4, 2, (3, 4), strides=(1, 2), padding="CIRCULAR", use_bias=False, key=k),
        IMAGE,
        ("weight",),
    ),
    Case("ConvTranspose1d", lambda k: nn.ConvTranspose1d(4, 2, 3, strides=2, key=k), LINE, BOTH),
    Case("ConvTranspose2d", lambda k: nn.ConvTranspose2d(4, 2, 3, dilation=2, key=k), IMAGE, BOTH),
    Case("ConvTranspose3d", lambda k: nn.ConvTranspose3d(4, 2, 2, padding="VALID", key=k), VOLUME, BOTH),
    Case("MaxPool", lambda k: nn.MaxPool((3, 2), strides=2, padding="SAME"), IMAGE, ()),
    Case("MaxPool1d", lambda k: nn.MaxPool1d(2), LINE, ()),
    Case("MaxPool2d", lambda k: nn.MaxPool2d(3, strides=2, padding=1), IMAGE, ()),
    Case("MaxPool3d", lambda k: nn.MaxPool3d(2, padding="SAME"), VOLUME, ()),
    Case("AvgPool", lambda k: nn.AvgPool((3, 2), strides=2, padding=1), IMAGE, ()),
    Case("AvgPool1d", lambda k: nn.AvgPool1d(2), LINE, ()),
    Case("AvgPool2d", lambda k: nn.AvgPool2d(3, strides=2, padding=1, count_include_pad=True), IMAGE, ()),
    Case("AvgPool3d", lambda k: nn.AvgPool3d(2, padding="SAME"), VOLUME, ()),
    Case("AdaptiveAvgPool", lambda k: nn.AdaptiveAvgPool((3, 3)), IMAGE, ()),
    Case("AdaptiveAvgPool1d", lambda k: nn.AdaptiveAvgPool1d(3), LINE, ()),
    Case("AdaptiveAvgPool2d", lambda k: nn.AdaptiveAvgPool2d(3), IMAGE, ()),
    Case("AdaptiveAvgPool3d", lambda k: nn.AdaptiveAvgPool3d(2), VOLUME, ()),
    Case("AdaptiveMaxPool", lambda k: nn.AdaptiveMaxPool((None, 4)), IMAGE, ()),
    Case("AdaptiveMaxPool1d", lambda k: nn.AdaptiveMaxPool1d(3), LINE, ()),
    Case("AdaptiveMaxPool2d", lambda k: nn.AdaptiveMaxPool2d(3), IMAGE, ()),
    Case("AdaptiveMaxPool3d", lambda k: nn.AdaptiveMaxPool3d(2), VOLUME, ()),
    Case("GlobalAvgPool", lambda k: nn.GlobalAvgPool(), IMAGE, ()),
    Case("GlobalMaxPool", lambda k: nn.GlobalMaxPool(keepdims=True), IMAGE, ()),
    Case("RMSNorm", lambda k: nn.RMSNorm(3), normal(4, 3), ("scale",), True),
    Case("RMSNorm, bfloat16", lambda k: nn.RMSNorm(3, dtype="bfloat16"), normal(4, 3), ("scale",)),
    Case("GroupNorm", lambda k: nn.GroupNorm(4, 2), IMAGE, SCALED, True),
    Case("InstanceNorm", lambda k: nn.InstanceNorm(4), IMAGE, SCALED, True),
    Case(
        "WeightNorm",
        lambda k: nn.WeightNorm(nn.Linear(3, 3, key=k)),
        normal(4, 3),
        ("layer/bias", "scale", "direction"),
        True,
    ),
    Case(
        "SpectralNorm",
        lambda k: nn.SpectralNorm(nn.Linear(3, 3, key=k)),
        normal(4, 3),
        ("layer/bias", "weight", "u", "v"),
        True,
    ),
    Case(
        "SpectralNorm, Conv, power_iterations",
        lambda k: nn.SpectralNorm(nn.Conv(4, 2, (3, 2), key=k), power_iterations=3),
        IMAGE,
        ("layer/bias", "weight", "u", "v"),
    ),
    Case("SpatialDropout", lambda k: nn.SpatialDropout(0.4), LINE, (), False, True),
    Case("AlphaDropout", lambda k: nn.AlphaDropout(0.4), LINE, (), False, True),
    Case("StochasticDepth", lambda k: nn.StochasticDepth(0.4), LINE, (), False, True),
]
