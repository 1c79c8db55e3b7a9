"""Trains the network of examples/cifar10.py in PyTorch, with the same initial weights, batches, rates and epochs.

Run `python -m benchmarks.cifar10_torch`.
"""

import pathlib
import sys
import time
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
import cifar10

from atled import data, optim, random


class Conv(nn.Module):
    """A convolution with "SAME" padding: if the padding is odd, the extra row and column are at the end."""

    def __init__(self, theirs: Any, stride: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(np.asarray(theirs.weight).transpose(3, 2, 0, 1).copy()))
        extra = max(self.weight.shape[-1] - stride, 0)
        self.stride, self.padding = stride, (extra // 2, extra - extra // 2) * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(functional.pad(x, self.padding), self.weight, stride=self.stride)


class Block(nn.Module):
    def __init__(self, theirs: Any, stride: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = Conv(theirs.conv1, stride), Conv(theirs.conv2, 1)
        channels = self.conv2.weight.shape[0]
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.around = Conv(theirs.around, stride) if theirs.around is not None else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x)))))
        return functional.relu(y + self.around(x))


class ResNet(nn.Module):
    def __init__(self, theirs: Any) -> None:
        super().__init__()
        self.conv = Conv(theirs.conv, 2)
        self.norm = nn.BatchNorm2d(self.conv.weight.shape[0])
        self.blocks = nn.Sequential(*(Block(b, 1 if b.around is None else 2) for b in theirs.blocks))
        self.out = nn.Linear(theirs.out.weight.shape[0], 10)
        with torch.no_grad():
            self.out.weight.copy_(torch.tensor(np.asarray(theirs.out.weight).T.copy()))
            self.out.bias.copy_(torch.tensor(np.asarray(theirs.out.bias).copy()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(functional.relu(self.norm(self.conv(x))))
        return self.out(x.mean((2, 3)))


def tensors(batch: dict) -> tuple:
    image = torch.tensor(batch["image"].transpose(0, 3, 1, 2))
    return image.contiguous(memory_format=torch.channels_last), torch.tensor(batch["label"].astype("int64"))


def accuracy(model: nn.Module, batches: Any) -> float:
    model.eval()
    with torch.no_grad():
        pairs = [(model(image).argmax(1) == label) for image, label in map(tensors, batches)]
    model.train()
    return float(torch.cat(pairs).float().mean())


def main(config: cifar10.Config) -> None:
    torch.set_num_threads(2)
    sets = data.sets.cifar10()
    test = data.arrays(sets["test"]).batch(250).map(cifar10.scaled)
    batches = data.arrays(sets["train"]).shuffle(0).random_map(cifar10.changed, 1).batch(config.batch)
    batches = batches.map(cifar10.scaled).repeat()
    per_epoch = len(sets["train"]["label"]) // config.batch
    steps = config.epochs * per_epoch
    rates = optim.one_cycle(config.rate, steps)
    model = ResNet(cifar10.ResNet(config.channels, config.blocks, key=random.key(0)))
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, nesterov=True, weight_decay=5e-4)
    began = time.time()
    for i, (image, label) in zip(range(steps), map(tensors, batches), strict=False):
        optimizer.param_groups[0]["lr"] = float(rates(i))
        optimizer.zero_grad()
        value = functional.cross_entropy(model(image), label)
        value.backward()
        optimizer.step()
        if (i + 1) % per_epoch == 0:
            minutes = (time.time() - began) / 60
            print(f"{i + 1}/{steps}  loss {float(value):.3f}  {minutes:.1f} minutes", flush=True)
    print(f"accuracy on the test images: {accuracy(model, test):.2%}")


if __name__ == "__main__":
    main(cifar10.Config())
