"""Rows for convolutions, pooling, normalization and dropout."""

from layer_case import Case, normal

from atled import nn

LINE, IMAGE = normal(4, 7, 4), normal(4, 6, 5, 4)
BOTH, SCALED = ("weight", "bias"), ("scale", "bias")

CASES = [
    Case("Conv, CAUSAL", lambda k: nn.Conv(4, 4, 3, padding="CAUSAL", dilation=2, key=k), LINE, BOTH, True),
    Case("Conv, REFLECT", lambda k: nn.Conv(4, 4, (3, 2), padding="REFLECT", key=k), IMAGE, BOTH, True),
    Case("Conv, REPLICATE", lambda k: nn.Conv(4, 2, (3, 2), stride=2, padding="REPLICATE", key=k), IMAGE, BOTH),
    Case("Conv, depthwise", lambda k: nn.Conv(4, 8, (3, 3), groups=4, key=k), IMAGE, BOTH),
    Case("ConvTranspose", lambda k: nn.ConvTranspose(4, 4, (3, 3), key=k), IMAGE, BOTH, True),
    Case("ConvTranspose, stride", lambda k: nn.ConvTranspose(4, 2, 3, stride=2, key=k), LINE, BOTH),
    Case(
        "ConvTranspose, numbers, groups",
        lambda k: nn.ConvTranspose(4, 2, 3, stride=2, padding=1, output_padding=1, groups=2, key=k),
        LINE,
        BOTH,
    ),
    Case(
        "ConvTranspose, CIRCULAR",
        lambda k: nn.ConvTranspose(4, 2, (3, 4), stride=(1, 2), padding="CIRCULAR", bias=False, key=k),
        IMAGE,
        ("weight",),
    ),
    Case("MaxPool", lambda k: nn.MaxPool((3, 2), stride=2, padding="SAME"), IMAGE, ()),
    Case("AvgPool", lambda k: nn.AvgPool((3, 2), stride=2, padding=1), IMAGE, ()),
    Case("AdaptiveAvgPool", lambda k: nn.AdaptiveAvgPool((3, 3)), IMAGE, ()),
    Case("AdaptiveMaxPool", lambda k: nn.AdaptiveMaxPool((None, 4)), IMAGE, ()),
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
        "SpectralNorm, Conv, iterations",
        lambda k: nn.SpectralNorm(nn.Conv(4, 2, (3, 2), key=k), iterations=3),
        IMAGE,
        ("layer/bias", "weight", "u", "v"),
    ),
    Case("SpatialDropout", lambda k: nn.SpatialDropout(0.4), LINE, (), False, True),
    Case("AlphaDropout", lambda k: nn.AlphaDropout(0.4), LINE, (), False, True),
    Case("StochasticDepth", lambda k: nn.StochasticDepth(0.4), LINE, (), False, True),
]
