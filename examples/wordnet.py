"""Classification of the nouns of WordNet into 26 classes with a graph network.

The accuracy on 69,798 test nodes is 94.4 %, and 66.6 % with a bag of words; about 2 minutes on two cores for both.

    atled data wordnet
    python examples/wordnet.py

A node is a meaning with its definition; edges lead to more general nouns, as from "viper" to "snake". A random 10 % of
the nodes are for training, 5 % for validation and 85 % for testing. The baseline, a bag of words, is the same network
without graph layers. A second run resumes from the last checkpoint.
"""

import collections
import dataclasses
import pathlib
import re

import numpy as np

import atled
from atled import data, metrics, nn, optim, random, train


@dataclasses.dataclass
class Config:
    steps: int = 400
    batch: int = 1024  # nodes to classify in a batch
    room: int = 4096  # nodes in a batch with their ancestors, and edges; both are padded to it
    rate: float = 1e-2
    width: int = 64
    layers: int = 4  # graph layers; each receives messages from one level higher
    words: int = 12  # maximum number of words of a definition
    run: str | None = "runs/wordnet"
    picture: str | None = "examples/pictures/wordnet.png"


class Net(nn.Module):
    """The sum of word embeddings, then graph layers with messages from more general nodes; 0 layers: bag of words."""

    def __init__(self, vocabulary, width, layers, *, key):
        keys = nn.Keys(key)
        self.words = nn.Embedding(vocabulary, width, key=keys())
        self.drop_words, self.drop = nn.Dropout(0.5), nn.Dropout(0.3)
        updates = [nn.Linear(2 * width, width, key=keys()) for _ in range(layers)]
        self.layers = [nn.GraphNetwork(update_nodes=update, aggregate="mean") for update in updates]
        self.norms = [nn.LayerNorm(width) for _ in range(layers + 1)]
        self.out = nn.Linear(width, len(data.sets.NOUNS), key=keys())

    def __call__(self, batch, key=None):
        keys = nn.Keys(key)
        is_word = self.drop_words((batch["words"] > 0).astype("float32"), key=keys())
        x = nn.relu(self.norms[0]((is_word[..., None] * self.words(batch["words"])).sum(1)))
        for layer, norm in zip(self.layers, self.norms[1:]):
            heard, _, _ = layer(self.drop(x, key=keys()), None, batch["upper"], batch["lower"])
            x = x + nn.relu(norm(heard))
        return self.out(self.drop(x, key=keys())[: len(batch["label"])])  # the nodes to classify come first


def loss(model, batch, key):
    return nn.losses.cross_entropy(model(batch, key=key), batch["label"])


def measure(model, batch):
    return {"accuracy": metrics.Accuracy().update(model(batch), batch["label"])}


class Graph:
    """Words, labels and edges of all nodes, from which batches are made."""

    def __init__(self, nouns, config):
        texts = [list(dict.fromkeys(re.findall("[a-z]+", gloss.lower()))) for gloss in nouns["gloss"]]
        counts = collections.Counter(word for text in texts for word in text)
        common = [word for word, count in counts.most_common()[30:] if count >= 5]  # without "of", "the", "a"
        number = {word: i for i, word in enumerate(common, start=1)}  # 0 is padding
        self.words = np.zeros((len(texts), config.words), np.int32)
        for row, text in zip(self.words, texts):
            known = [number[word] for word in text if word in number][: config.words]
            row[: len(known)] = known
        is_up = np.isin(np.array(nouns["kinds"])[nouns["kind"]], ["@", "@i"])
        self.lower, self.upper = nouns["edges"][is_up].T
        self.label, self.vocabulary, self.config = nouns["label"], len(common) + 1, config

    def around(self, asked):
        """A batch: the nodes `asked`, their ancestors up to `layers` levels higher, and the edges between them."""
        above = np.isin(np.arange(len(self.label)), asked)
        for _ in range(self.config.layers):
            above[self.upper[above[self.lower]]] = True
        edges = above[self.lower] & above[self.upper]
        above[asked] = False
        nodes = np.concatenate([asked, np.flatnonzero(above)])
        place = np.zeros(len(self.label), np.int32)
        place[nodes] = np.arange(len(nodes))
        room = self.config.room  # as the end of an edge, `room` is out of range: padding
        spare = (0, room - edges.sum())
        ends = [np.pad(place[x[edges]], spare, constant_values=room) for x in (self.lower, self.upper)]
        words = np.pad(self.words[nodes], ((0, room - len(nodes)), (0, 0)))
        return {"words": words, "lower": ends[0], "upper": ends[1], "label": self.label[asked]}


def main(config):
    graph = Graph(data.sets.wordnet(), config)
    nodes = np.random.default_rng(0).permutation(len(graph.label))
    training, validation, test = np.split(nodes, [len(nodes) // 10, len(nodes) * 3 // 20])
    batches = data.arrays(training).shuffle(0).batch(config.batch).map(graph.around)
    held_out = data.arrays(validation).batch(config.batch, drop_last=False).map(graph.around)
    everything = data.arrays(np.arange(len(nodes))).batch(config.batch, drop_last=False).map(graph.around)
    found, result = {"truth": graph.label}, {}
    for name, layers in (("bag of words", 0), ("graph network", config.layers)):
        state = train.fit(
            Net(graph.vocabulary, config.width, layers, key=random.key(0)), loss, batches,
            optim.AdamW(optim.cosine(config.rate, config.steps, warmup_steps=config.steps // 10), weight_decay=1e-2),
            steps=config.steps, key=random.key(1), evaluation=train.Evaluation(held_out, measure, every=100),
            checkpoint=config.run and pathlib.Path(config.run, name),
        )  # fmt: skip
        predict = atled.jit(state.eval_model())
        found[name] = np.concatenate([predict(batch).argmax(1) for batch in everything])
        result[name] = float((found[name] == graph.label)[test].mean())
    print(f"accuracy on {len(test)} test nodes:", ", ".join([f"{name} {x:.1%}" for name, x in result.items()]))
    if config.picture:
        draw(found, graph, config.picture)
    return result


def draw(found, graph, path):
    """Plot the nouns as a disk, from the most general in the center to the most specific; colors are classes."""
    import matplotlib.pyplot as plt

    below = collections.defaultdict(list)
    for i in np.unique(graph.lower, return_index=True)[1]:  # draws each node below a single parent
        below[graph.upper[i]].append(graph.lower[i])
    walk, left = [], [(0, 0)]
    while left:
        node, depth = left.pop()
        walk.append((node, depth))
        left.extend([(other, depth + 1) for other in below[node]])
    nodes, depth = np.array(walk).T
    angle, radius = np.linspace(0, 2 * np.pi, len(nodes)), depth + np.random.default_rng(0).uniform(size=len(nodes))
    colors = np.concatenate([plt.get_cmap(name).colors for name in ("tab20", "Dark2")])[: len(data.sets.NOUNS)]
    figure, axes = plt.subplots(1, 3, figsize=(15, 6.2), layout="constrained")
    for ax, (name, label) in zip(axes, found.items()):
        ax.scatter(radius * np.cos(angle), radius * np.sin(angle), c=colors[label[nodes]], s=2, linewidths=0)
        ax.set(title=name, aspect="equal", xlim=(-14, 14), ylim=(-15, 14))
        ax.axis("off")
    marks = [plt.Line2D([], [], marker="o", linestyle="", color=color) for color in colors]
    figure.legend(marks, data.sets.NOUNS, ncols=9, loc="outside lower center", frameon=False)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Config())
