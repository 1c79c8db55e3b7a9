"""A character-level language model of Shakespeare: a small Transformer.

The loss on the last 5 % of the text, which is held out, is 1.44 nats per character. Counts of 6-grams, with Witten-Bell
smoothing, have 1.53, and longer or shorter n-grams have more. About 8 minutes on two cores.

    atled data shakespeare
    python examples/shakespeare.py

Settings, model, loss, baseline, data, training and picture follow in this order. A second run resumes from the last
checkpoint.
"""

import dataclasses
import textwrap

import numpy as np

import atled
from atled import data, metrics, nn, optim, random, train


@dataclasses.dataclass
class Config:
    steps: int = 2000
    batch: int = 16
    context: int = 128  # context length in characters
    features: int = 128
    layers: int = 4
    rate: float = 2e-2
    characters: int | None = None  # length of the text, for quick tests; None: all
    run: str | None = "runs/shakespeare"
    picture: str | None = "examples/pictures/shakespeare.png"


class Block(nn.Module):
    """Causal self-attention, and a feed-forward network of two dense layers."""

    def __init__(self, features, *, key):
        keys = nn.Keys(key)
        self.norm1, self.norm2 = nn.RMSNorm(features), nn.RMSNorm(features)
        self.attention = nn.MultiHeadAttention(
            features, 4, use_bias=False, positions=nn.RoPE(features // 4), key=keys()
        )
        self.up = nn.Linear(features, 4 * features, use_bias=False, key=keys())
        self.down = nn.Linear(4 * features, features, use_bias=False, key=keys())

    def __call__(self, x):
        x = x + self.attention(self.norm1(x), is_causal=True)
        return x + self.down(nn.relu(self.up(self.norm2(x))) ** 2)


class Transformer(nn.Module):
    """A causal language model: logits of the next character at each position."""

    def __init__(self, size, features, layers, *, key):
        keys = nn.Keys(key)
        self.characters = nn.Embedding(size, features, key=keys())
        # Mixes in the previous three characters, which attention would otherwise have to learn first.
        self.near = nn.Conv1d(features, features, 4, padding=[(3, 0)], key=keys())
        self.blocks = nn.Stack(lambda key: Block(features, key=key), layers, key=keys())
        self.norm = nn.RMSNorm(features)
        self.out = nn.Linear(features, size, key=keys())

    def __call__(self, ids):
        x = self.characters(ids)
        return self.out(self.norm(self.blocks(x + self.near(x))))


def loss(model, ids):
    return nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:])


def measure(model, ids):
    """The loss in nats per character in the second half of each window, so that each character has enough context."""
    nats = nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:], reduction=None)
    return {"nats": metrics.Mean().update(nats[:, nats.shape[1] // 2 :])}


def counted(seen, wanted, size, orders):
    """The baseline: nats per character of n-gram counts with Witten-Bell smoothing, for each n up to `orders`."""
    grams, asked, nats = np.zeros(len(seen) + 1, int), np.zeros(len(wanted) + 1, int), []
    chance = np.full(len(wanted), 1 / size)
    for n in range(1, orders + 1):
        # An n-gram is a number in base `size`; the number without the last digit is its context.
        grams, asked = grams[:-1] * size + seen[n - 1 :], asked[:-1] * size + wanted[n - 1 :]
        known, counts = np.unique(grams, return_counts=True)
        contexts, first = np.unique(known // size, return_index=True)
        count = looked_up(known, counts, asked)
        total = looked_up(contexts, np.add.reduceat(counts, first), asked // size)
        kinds = looked_up(contexts, np.diff(first, append=len(known)), asked // size)
        mixed = (count + kinds * chance[n - 1 :]) / np.maximum(total + kinds, 1)
        chance[n - 1 :] = np.where(total > 0, mixed, chance[n - 1 :])
        nats.append(-float(np.log(chance).mean()))
    return nats


def looked_up(keys, values, wanted):
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


def continued(model, ids, count, key):
    """A continuation of the characters `ids` by the model, sampled at temperature 0.8."""
    drawn = atled.jit(lambda model, ids, key: random.categorical(key, model(ids)[0, -1] / 0.8))
    text, keys = list(ids), nn.Keys(key)
    for _ in range(count):
        text.append(int(drawn(model, np.array([text[-len(ids) :]], "int32"), keys())))
    return text[len(ids) :]


def main(config):
    text = data.sets.shakespeare()[: config.characters]
    alphabet, ids = np.unique(list(text), return_inverse=True)
    ids, end = ids.astype("int32"), int(0.95 * len(ids))
    windows = np.lib.stride_tricks.sliding_window_view(ids, config.context + 1)
    batches = data.arrays(windows[: end - config.context]).shuffle(0).batch(config.batch)
    held_out = windows[end :: config.context // 2]
    test, few = [data.arrays(rows).batch(64, drop_last=False) for rows in (held_out, held_out[::8])]
    warmup = config.steps // 20
    rate, adam_rate = [optim.cosine(r, config.steps, warmup_steps=warmup) for r in (config.rate, config.rate / 7)]
    state = train.fit(
        Transformer(len(alphabet), config.features, config.layers, key=random.key(0)), loss, batches,
        optim.partition({"blocks": optim.Muon(rate, adam_learning_rate=adam_rate), "**": optim.Adam(adam_rate)}),
        steps=config.steps, evaluation=train.Evaluation(few, measure, every=200), checkpoint=config.run,
    )  # fmt: skip
    nats = train.evaluate(state.model, measure, test)["nats"]
    by_counting = counted(ids[:end], ids[end:], len(alphabet), 6)
    sample = "".join(alphabet[continued(state.model.eval(), ids[end:][: config.context], 600, random.key(1))])
    print(f"{sample}\n\nnats per character of the last 5 %: {nats:.3f}, by counting 6-grams {by_counting[-1]:.3f}")
    if config.picture and config.run:
        draw(train.records(config.run), by_counting, sample, config)
    return {"nats": nats, "by counting": by_counting[-1]}


def draw(records, by_counting, sample, config):
    """Plot training and held-out loss with lines for n-grams, and show a sample of the trained model."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for name, style in (("loss", {"alpha": 0.3}), ("eval/nats", {"marker": "o"})):
        found = [(r["step"] * config.batch * config.context / 1e6, r[name]) for r in records if name in r]
        left.plot(*zip(*found, strict=True), color="tab:blue", **style)
    for n, nats in enumerate(by_counting[1:], 2):
        left.axhline(nats, color="tab:orange", linewidth=0.8)
        left.text(0, nats, f" {n}-grams", color="tab:orange", va="top" if n == len(by_counting) else "bottom")
    left.set(xlabel="million characters read", ylabel="nats per character, held out", xlim=(0, None), ylim=(1.2, 2.7))
    lines = [textwrap.fill(line, 60) for line in sample.split("\n")]
    right.text(0, 1, "\n".join(lines), va="top", family="monospace", fontsize=9, in_layout=False)
    right.axis("off")
    figure.savefig(config.picture, dpi=90)


if __name__ == "__main__":
    main(Config())
