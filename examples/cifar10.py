"""Classification of small colour images in ten classes with a residual network.

    atled data cifar10
    python examples/cifar10.py

The network is a ResNet for CIFAR-10 (He et al., 2015), wider, with eight layers, of which the first halves the image;
the schedule is one-cycle. Half an hour on two cores gives 83.6 % accuracy on the test images; the same network in
PyTorch, with the same initial weights and batches, 83.9 % (benchmarks/cifar10_torch.py). A second run resumes.
"""

import dataclasses

import numpy as np

from atled import data, metrics, nn, optim, random, train


@dataclasses.dataclass
class Config:
    epochs: int = 12
    batch: int = 128
    rate: float = 0.4
    channels: int = 32
    blocks: int = 1  # residual blocks in each of three stages
    examples: int | None = None  # number of training images, for quick tests; None: all
    run: str | None = "runs/cifar10"
    picture: str | None = "examples/pictures/cifar10.png"


class Block(nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, inputs, outputs, stride, *, key):
        keys = nn.Keys(key)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, strides=stride, use_bias=False, key=keys())
        self.conv2 = nn.Conv2d(outputs, outputs, 3, use_bias=False, key=keys())
        self.norm1, self.norm2 = nn.BatchNorm(outputs, momentum=0.9), nn.BatchNorm(outputs, momentum=0.9)
        self.around = None
        if stride > 1:
            self.around = nn.Conv2d(inputs, outputs, 1, strides=stride, use_bias=False, key=keys())

    def __call__(self, x):
        y = self.norm2(self.conv2(nn.relu(self.norm1(self.conv1(x)))))
        return nn.relu(y + (x if self.around is None else self.around(x)))


class ResNet(nn.Module):
    def __init__(self, channels, blocks, *, key):
        keys = nn.Keys(key)
        self.conv = nn.Conv2d(3, channels, 4, strides=2, use_bias=False, key=keys())
        self.norm = nn.BatchNorm(channels, momentum=0.9)
        self.blocks, inputs = [], channels
        for stage, outputs in enumerate((channels, 2 * channels, 4 * channels)):
            for i in range(blocks):
                self.blocks.append(Block(inputs, outputs, 2 if stage and not i else 1, key=keys()))
                inputs = outputs
        self.out = nn.Linear(inputs, 10, key=keys())

    def __call__(self, x):
        x = nn.relu(self.norm(self.conv(x)))
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean((1, 2)))


def loss(model, batch):
    return nn.losses.cross_entropy(model(batch["image"]), batch["label"])


def measure(model, batch):
    scores = model(batch["image"])
    return {
        "accuracy": metrics.Accuracy().update(scores, batch["label"]),
        "confusion": metrics.ConfusionMatrix(10).update(scores, batch["label"]),
    }


def changed(example, rng):
    """A random crop of the zero-padded image, mirrored half of the time."""
    padded = np.pad(example["image"], ((4, 4), (4, 4), (0, 0)))
    down, right, is_mirrored = rng.integers((9, 9, 2))
    part = padded[down : down + 32, right : right + 32]
    return {**example, "image": part[:, ::-1] if is_mirrored else part}


def scaled(batch):
    mean, deviation = np.float32([125.3, 123.0, 113.9]), np.float32([63.0, 62.1, 66.7])
    return {"image": (batch["image"] - mean) / deviation, "label": batch["label"].astype("int32")}


def main(config):
    sets = data.sets.cifar10()
    few = {name: x[: config.examples] for name, x in sets["train"].items()}
    test = data.arrays(sets["test"]).batch(250).map(scaled)
    batches = data.arrays(few).shuffle(0).random_map(changed, 1).batch(config.batch).map(scaled)
    steps = config.epochs * len(batches)
    optimizer = optim.SGD(optim.one_cycle(config.rate, steps), momentum=0.9, nesterov=True)
    decayed = optim.chain(optim.add_decayed_weights(5e-4), optimizer)
    state = train.fit(
        ResNet(config.channels, config.blocks, key=random.key(0)), loss, batches, decayed, steps=steps,
        evaluation=train.Evaluation(test, measure, every=len(batches)), checkpoint=config.run,
    )  # fmt: skip
    found = train.evaluate(state.eval_model(), measure, test)
    print(f"accuracy on the test images: {found['accuracy']:.2%}")
    if config.picture:
        draw(found["confusion"], config.picture)
    return {"accuracy": found["accuracy"]}


def draw(confusion, path):
    """Plot the confusion matrix."""
    import matplotlib.pyplot as plt

    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    share = confusion / confusion.sum(1, keepdims=True)
    figure, axes = plt.subplots(figsize=(5.6, 5), layout="constrained")
    axes.imshow(np.where(np.eye(10), 0, share), cmap="Oranges")
    axes.set_xticks(range(10), names, rotation=60)
    axes.set_yticks(range(10), names)
    for i, j in np.ndindex(10, 10):
        if share[i, j] >= 0.005:
            axes.text(j, i, f"{100 * share[i, j]:.0f}", ha="center", va="center", fontsize=8)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title("test images of each class, in percent")
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Config())
