"""The nouns of WordNet, sorted into 26 classes by a graph network.

94.4 % of 69,798 test nodes are right, with a bag of words 66.6 %; about 2 minutes on two cores, for both.

    atled data wordnet
    python examples/wordnet.py

A node is a meaning with its definition; edges lead from "viper" up to "snake". Nodes are split at random: one of ten is
labelled for training, one of twenty is for validation, the others are the test. The baseline, a bag of words, is the
same network without the layers that hear other nodes. Run it again, and it resumes.
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
    batch: int = 1024  # nodes that are asked for
    room: int = 4096  # nodes of a batch with those above them, and edges; the rest is padding
    rate: float = 1e-2
    width: int = 64
    layers: int = 4  # so many steps up does a node look
    words: int = 12  # of a definition, at most
    run: str | None = "runs/wordnet"
    picture: str | None = "examples/pictures/wordnet.png"


class Net(nn.Module):
    """The sum of vectors of words, and layers that add what the nodes above say. Without layers: a bag of words."""

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
        return self.out(self.drop(x, key=keys())[: len(batch["label"])])  # the nodes that are asked for come first


def loss(model, batch, key):
    return nn.losses.cross_entropy(model(batch, key=key), batch["label"])


def measure(model, batch):
    return {"accuracy": metrics.Accuracy().update(model(batch), batch["label"])}


class Graph:
    """Words, labels and edges of all nodes, from which batches are cut."""

    def __init__(self, nouns, config):
        texts = [list(dict.fromkeys(re.findall("[a-z]+", gloss.lower()))) for gloss in nouns["gloss"]]
        counts = collections.Counter(word for text in texts for word in text)
        common = [word for word, count in counts.most_common()[30:] if count >= 5]  # not "of", "the", "a"
        number = {word: i for i, word in enumerate(common, start=1)}  # 0 is padding
        self.words = np.zeros((len(texts), config.words), np.int32)
        for row, text in zip(self.words, texts):
            known = [number[word] for word in text if word in number][: config.words]
            row[: len(known)] = known
        is_up = np.isin(np.array(nouns["kinds"])[nouns["kind"]], ["@", "@i"])
        self.lower, self.upper = nouns["edges"][is_up].T
        self.label, self.vocabulary, self.config = nouns["label"], len(common) + 1, config

    def around(self, asked):
        """The part of the graph that says something about these nodes: what is above them."""
        above = np.isin(np.arange(len(self.label)), asked)
        for _ in range(self.config.layers):
            above[self.upper[above[self.lower]]] = True
        edges = above[self.lower] & above[self.upper]
        above[asked] = False
        nodes = np.concatenate([asked, np.flatnonzero(above)])
        place = np.zeros(len(self.label), np.int32)
        place[nodes] = np.arange(len(nodes))
        room = self.config.room  # which is, as the end of an edge, no node
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
    """The nouns as a disk, the most general one in the middle and around it what is special; colors are classes."""
    import matplotlib.pyplot as plt

    below = collections.defaultdict(list)
    for i in np.unique(graph.lower, return_index=True)[1]:  # a node is drawn below one other only
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
