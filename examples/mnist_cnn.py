"""Classification of handwritten digits with a convolutional network.

The accuracy on the test images is 99.24 %; a linear classifier has 92 %. 6 minutes on two cores.

    atled data mnist
    python examples/mnist_cnn.py

Settings, model, loss, data, training and picture follow in this order. A second run resumes from the last checkpoint.
"""

import dataclasses

import numpy as np

from atled import data, metrics, nn, optim, random, train


@dataclasses.dataclass
class Config:
    epochs: int = 5
    batch: int = 128
    rate: float = 2e-3
    channels: int = 16
    examples: int | None = None  # number of training images, for quick tests; None: all
    run: str | None = "runs/mnist_cnn"
    picture: str | None = "examples/pictures/mnist_cnn.png"


class CNN(nn.Module):
    """Two convolutions, each followed by max pooling, and two dense layers."""

    def __init__(self, channels, *, key):
        keys = nn.Keys(key)
        self.conv1 = nn.Conv2d(1, channels, 3, key=keys())
        self.conv2 = nn.Conv2d(channels, 2 * channels, 3, key=keys())
        self.norm1, self.norm2 = nn.BatchNorm(channels, momentum=0.9), nn.BatchNorm(2 * channels, momentum=0.9)
        self.hidden = nn.Linear(7 * 7 * 2 * channels, 128, key=keys())
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(128, 10, key=keys())

    def __call__(self, x, key=None):
        x = nn.max_pool(nn.relu(self.norm1(self.conv1(x))), (2, 2))
        x = nn.max_pool(nn.relu(self.norm2(self.conv2(x))), (2, 2))
        x = nn.relu(self.hidden(x.reshape(len(x), -1)))
        return self.out(self.drop(x, key=key))


def loss(model, batch, key):
    return nn.losses.cross_entropy(model(batch["image"], key=key), batch["label"])


def measure(model, batch):
    return {"accuracy": metrics.Accuracy().update(model(batch["image"]), batch["label"])}


def moved(example, rng):
    """The example with its image shifted by up to two pixels."""
    down, right = rng.integers(-2, 3, 2)
    return {**example, "image": np.roll(example["image"], (down, right), (0, 1))}


def scaled(batch):
    return {"image": (batch["image"][..., None] / 255 - 0.1307).astype("float32") / 0.3081, "label": batch["label"]}


def main(config):
    sets = data.sets.mnist()
    few = {name: x[: config.examples] for name, x in sets["train"].items()}
    test = data.arrays(sets["test"]).batch(500).map(scaled)
    batches = data.arrays(few).shuffle(0).random_map(moved, 1).batch(config.batch).map(scaled)
    steps = config.epochs * len(batches)
    rate = optim.cosine(config.rate, steps, warmup_steps=steps // 20)
    state = train.fit(
        CNN(config.channels, key=random.key(0)), loss, batches,
        optim.average(optim.AdamW(rate, weight_decay=1e-2), 0.995),
        steps=steps, key=random.key(1), evaluation=train.Evaluation(test, measure, every=len(batches)),
        checkpoint=config.run,
    )  # fmt: skip
    accuracy = train.evaluate(state.eval_model(), measure, test)["accuracy"]
    print(f"accuracy on 10,000 test images: {accuracy:.2%}")
    if config.picture:
        draw(state.eval_model(), sets["test"], config.picture)
    return {"accuracy": accuracy}


def draw(model, test, path):
    """Plot up to 40 misclassified images."""
    import matplotlib.pyplot as plt

    found = np.concatenate([model(batch["image"]).argmax(1) for batch in data.arrays(test).batch(500).map(scaled)])
    wrong = np.flatnonzero(found != test["label"])[:40]
    figure, axes = plt.subplots(4, 10, figsize=(10, 4.6), layout="constrained")
    for i, ax in enumerate(axes.flat):
        ax.axis("off")
        if i < len(wrong):
            ax.imshow(test["image"][wrong[i]], cmap="gray_r")
            ax.set_title(f"{test['label'][wrong[i]]}, not {found[wrong[i]]}", fontsize=8)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Config())
