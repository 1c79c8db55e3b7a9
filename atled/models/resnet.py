"""ResNet (He et al., 2015): convolutions with batch norm and residual connections, in stages that halve the image."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

import atled
from atled import nn
from atled.core import errors
from atled.models.config import PublishedConfig
from atled.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class ResNetConfig(PublishedConfig):
    """Sizes, under the names of the published `config.json`; `labels` are the names of the classes, if known.

    A stage is `depths[i]` blocks with `hidden_sizes[i]` features. Blocks are "basic", two convolutions of 3 × 3, or
    "bottleneck", one of 3 × 3 between two of 1 × 1 with a quarter of the features in the middle.
    """

    MODEL_TYPE = "resnet"
    REQUIRED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "architectures": (["ResNetForImageClassification"],), "hidden_act": ("relu",),
        "layer_type": ("bottleneck", "basic"),
    }  # fmt: skip
    depths: tuple[int, ...] = (3, 4, 6, 3)
    hidden_sizes: tuple[int, ...] = (256, 512, 1024, 2048)
    layer_type: str = "bottleneck"
    embedding_size: int = 64
    num_channels: int = 3
    num_labels: int = 1000
    labels: tuple[str, ...] = ()
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False

    def __post_init__(self) -> None:
        if len(self.depths) != len(self.hidden_sizes):
            got = f"{self.depths} and {self.hidden_sizes}"
            raise ValueError(
                errors.explained(f"ResNetConfig: depths and hidden_sizes must have an entry for each stage; got {got}.")
            )

    @classmethod
    def from_published(cls, found: Mapping[str, Any]) -> ResNetConfig:
        """The configuration of a published dict."""
        names, sizes = found.get("id2label", {}), {n: tuple(found[n]) for n in ("depths", "hidden_sizes") if n in found}
        labels = tuple([names[i] for i in sorted(names, key=int)])
        count = len(labels) if "id2label" in found else found.get("num_labels", 2)  # files leave out two classes
        return super().from_published({**found, **sizes, "num_labels": count, "labels": labels})

    def published(self) -> dict[str, Any]:
        """The dict for `config.json`."""
        out = super().published()
        labels = out.pop("labels")
        if not labels:
            return out
        return {**out, "id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}


_BASIC = (64, 128, 256, 512)
SIZES = {
    "resnet-18": ResNetConfig((2, 2, 2, 2), _BASIC, "basic"),
    "resnet-34": ResNetConfig((3, 4, 6, 3), _BASIC, "basic"),
    "resnet-50": ResNetConfig(),
    "resnet-101": ResNetConfig((3, 4, 23, 3)), "resnet-152": ResNetConfig((3, 8, 36, 3)),
}  # fmt: skip


class ConvNorm(nn.Module):
    """A convolution and batch norm."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1, *, key: Any) -> None:
        init = nn.initializers.variance_scaling(2.0, "fan_out", "normal")
        self.convolution = nn.Conv2d(
            inputs, outputs, size, strides=stride, padding=size // 2, use_bias=False, weight_init=init, key=key
        )
        self.normalization = nn.BatchNorm(outputs, momentum=0.9)

    def __call__(self, x: Any) -> Any:
        """The normalized features."""
        return self.normalization(self.convolution(x))


class Block(nn.Module):
    """Two or three convolutions, with a residual connection around them."""

    def __init__(self, c: ResNetConfig, inputs: int, outputs: int, stride: int, *, key: Any) -> None:
        keys, middle = nn.Keys(key), outputs // 4
        first, second = (stride, 1) if c.downsample_in_bottleneck else (1, stride)
        sizes = {
            "basic": [(inputs, outputs, 3, stride), (outputs, outputs, 3, 1)],
            "bottleneck": [(inputs, middle, 1, first), (middle, middle, 3, second), (middle, outputs, 1, 1)],
        }
        self.layers = [ConvNorm(*size, key=keys()) for size in sizes[c.layer_type]]
        self.shortcut = ConvNorm(inputs, outputs, 1, stride, key=keys()) if stride > 1 or inputs != outputs else None

    def __call__(self, x: Any) -> Any:
        """The features (batch, height, width, outputs) after the block."""
        y = x
        for layer in self.layers[:-1]:
            y = nn.relu(layer(y))
        return nn.relu(self.layers[-1](y) + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    """Logits of the classes of images: (batch, height, width, channels) to (batch, num_labels).

    While training, batch norm assigns its statistics: a transformed function must return the model.

    Args:
        remat: recompute the blocks in the backward pass, which saves memory.

    >>> from atled import models, random
    >>> import atled.numpy as jnp
    >>> config = models.resnet.ResNetConfig((1, 1), (8, 16), embedding_size=8, num_labels=10)
    >>> model = models.resnet.ResNet(config, key=random.key(0)).eval()
    >>> model(jnp.ones((1, 32, 32, 3))).shape
    (1, 10)
    """

    def __init__(self, config: ResNetConfig, *, remat: Any = False, key: Any) -> None:
        keys = nn.Keys(key)
        self.config, self.remat = config, remat
        self.stem = ConvNorm(config.num_channels, config.embedding_size, 7, 2, key=keys())
        self.stages, inputs = [], config.embedding_size
        for depth, outputs in zip(config.depths, config.hidden_sizes, strict=True):
            stride = 2 if self.stages or config.downsample_in_first_stage else 1
            steps = [(inputs, outputs, stride), *[(outputs, outputs, 1)] * (depth - 1)]
            self.stages.append([Block(config, *step, key=keys()) for step in steps])
            inputs = outputs
        self.head = nn.Linear(inputs, config.num_labels, key=keys())

    def __call__(self, images: Any) -> Any:
        """Logits (batch, num_labels)."""
        return self.head(self.features(images).mean((1, 2)))

    def features(self, images: Any) -> Any:
        """The output of the last stage: (batch, height, width, hidden_sizes[-1])."""

        def run(block: Block, x: Any) -> tuple[Any, Block]:
            return block(x), block

        policy = None if self.remat is True else self.remat
        call: Any = atled.remat(run, policy=policy) if self.remat else run
        x, stages = nn.max_pool(nn.relu(self.stem(images)), (3, 3), 2, 1), []
        for stage in self.stages:
            stages.append([])
            for block in stage:
                x, after = call(block, x)
                stages[-1].append(after)
        if self.remat and self.training:  # what `remat` returns are copies, with new statistics
            self.stages = stages
        return x


Model, Config = ResNet, ResNetConfig


def loss(model: ResNet, images: Any, labels: Any) -> Any:
    """The mean cross-entropy of the classes of images; `train.gradients(loss)` returns the statistics as well.

    Args:
        labels: the number of each image's class, (batch,).
    """
    return nn.losses.cross_entropy(model(images), labels)


# How parameters are split over a mesh with the axes "data" and "model"; the batch is split over "data".
SHARDING = {"convolution/weight": P(None, None, None, "model"), "head/weight": P("model")}
# Modules in published files.
_BLOCK = "resnet.encoder.stages.{}.layers.{}"
NAMES = {
    "stem": "resnet.embedder.embedder", "stages/*/*/layers": _BLOCK + ".layer", "stages/*/*": _BLOCK,
    "head": "classifier.1",
}  # fmt: skip


def torchvision_names(config: ResNetConfig) -> dict[str, str]:
    """Modules in the state dicts of torchvision and timm, for `nn.load_state_dict` and `nn.state_dict`.

    >>> from atled import models, nn, random
    >>> config = models.resnet.ResNetConfig((1, 1), (8, 16), embedding_size=8)
    >>> model = models.resnet.ResNet(config, key=random.key(0))
    >>> sorted(nn.state_dict(model, models.resnet.torchvision_names(config)))[:3]
    ['bn1.bias', 'bn1.running_mean', 'bn1.running_var']
    """
    names = {"stem/convolution": "conv1", "stem/normalization": "bn1", "head": "fc"}
    for s, (inputs, outputs) in enumerate(itertools.pairwise((config.embedding_size, *config.hidden_sizes))):
        ours, theirs = f"stages/{s}/*", f"layer{s + 1}.{{}}"
        for i in range(2 if config.layer_type == "basic" else 3):
            names[f"{ours}/layers/{i}/convolution"] = f"{theirs}.conv{i + 1}"
            names[f"{ours}/layers/{i}/normalization"] = f"{theirs}.bn{i + 1}"
        if s or config.downsample_in_first_stage or inputs != outputs:
            names[f"{ours}/shortcut/convolution"] = f"{theirs}.downsample.0"
            names[f"{ours}/shortcut/normalization"] = f"{theirs}.downsample.1"
    return names
