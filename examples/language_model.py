"""A language model of presidential speeches: byte-pair tokens and a small Transformer.

The loss on speeches since 2002 is 1.243 nats per byte; 3-grams have 1.293, or 1.254 if counted from 1934. 9 minutes.

    atled data sotu
    python examples/language_model.py

Byte-pair encoding merges the most frequent pair of adjacent tokens in words into a new token, 1,500 times. Settings,
tokens, model, loss, baseline, training and picture follow in this order. A second run resumes from a checkpoint.
"""

import collections
import dataclasses
import re
import textwrap

import numpy as np

from atled import data, jit, metrics, nn, optim, random, train


@dataclasses.dataclass
class Config:
    steps: int = 1800
    batch: int = 16
    context: int = 128  # context length in tokens
    pieces: int = 1500  # tokens that are learned, in addition to the 256 bytes
    features: int = 128
    layers: int = 4
    rate: float = 2e-2
    since: int = 2002  # the first year of held-out speeches
    run: str | None = "runs/language_model"
    picture: str | None = "examples/pictures/language_model.png"


def split(texts, count):
    """Learn tokens on the first text; returns the texts as token ids, and the tokens as bytes."""
    texts = [re.findall(r" ?\w+| ?[^\w\s]+|\s+", text) for text in texts]
    often, words = collections.Counter(texts[0]), list(dict.fromkeys([*texts[0], *texts[1]]))
    spelled, pieces = [[*word.encode(), 0] for word in words], [bytes([i]) for i in range(256)]  # 0 ends a word
    ids, weight = np.concatenate(spelled), np.repeat([often[word] for word in words], [len(x) for x in spelled])
    for new in range(256, 256 + count):
        pair = ids[:-1] * new + ids[1:]
        best = np.bincount(pair, weight[:-1] * (ids[:-1] > 0) * (ids[1:] > 0)).argmax()
        at = np.flatnonzero(pair == best)
        at = at[np.diff(at, prepend=-2) > 1]  # pairs must not overlap: of three equal tokens, merge two
        ids[at] = new
        ids, weight = [np.delete(x, at + 1) for x in (ids, weight)]
        pieces.append(pieces[best // new] + pieces[best % new])
    of = dict(zip(words, np.split(ids, np.flatnonzero(ids == 0) + 1)))
    return [np.concatenate([of[word][:-1] for word in text]).astype("int32") for text in texts], pieces


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
    """A causal language model: logits of the next token at each position."""

    def __init__(self, size, features, layers, *, key):
        keys = nn.Keys(key)
        self.pieces = nn.Embedding(size, features, key=keys())
        self.near = nn.Conv1d(features, features, 2, padding=[(1, 0)], key=keys())  # mixes in the previous token
        self.blocks = nn.Stack(lambda key: Block(features, key=key), layers, key=keys())
        self.norm, self.out = nn.RMSNorm(features), nn.Linear(features, size, key=keys())

    def __call__(self, ids):
        return self.out(self.norm(self.blocks(self.near(self.pieces(ids)))))


def loss(model, ids):
    return nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:])


def measure(model, ids):
    """The loss in nats per token in the second half of each window, so that each token has enough context."""
    nats = nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:], reduction=None)
    return {"nats": metrics.Mean().update(nats[:, nats.shape[1] // 2 :])}


def counted(seen, wanted, size):
    """The baseline: the loss in nats per token of 3-gram counts with Witten-Bell smoothing."""
    chance, (grams, asked) = np.full(len(wanted), 1 / size), [np.zeros(len(x) + 1, int) for x in (seen, wanted)]
    for n in range(3):
        # An n-gram is a number in base `size`; the number without the last digit is its context.
        grams, asked = grams[:-1] * size + seen[n:], asked[:-1] * size + wanted[n:]
        known, counts = np.unique(grams, return_counts=True)
        contexts, first = np.unique(known // size, return_index=True)
        a, b = [np.searchsorted(x, y).clip(max=len(x) - 1) for x, y in ((known, asked), (contexts, asked // size))]
        total, kinds = np.add.reduceat(counts, first)[b], np.diff(first, append=len(known))[b]
        mixed = (np.where(known[a] == asked, counts[a], 0) + kinds * chance[n:]) / (total + kinds)
        chance[n:] = np.where(contexts[b] == asked // size, mixed, chance[n:])
    return -float(np.log(chance).mean())


def main(config):
    texts = re.split(f"^(?={config.since} )", data.sets.sotu(), maxsplit=1, flags=re.MULTILINE)
    (seen, held_out), pieces = split(texts, config.pieces)
    per_byte = len(held_out) / len(texts[1].encode())
    windows, rows = [np.lib.stride_tricks.sliding_window_view(x, config.context + 1) for x in (seen, held_out)]
    test, few = [data.arrays(rows[::n]).batch(64, drop_last=False) for n in (config.context // 2, 4 * config.context)]
    warmup = config.steps // 20
    rate, adam_rate = [optim.cosine(r, config.steps, warmup_steps=warmup) for r in (config.rate, config.rate / 7)]
    state = train.fit(
        Transformer(len(pieces), config.features, config.layers, key=random.key(0)), loss,
        data.arrays(windows).shuffle(0).batch(config.batch),
        optim.partition({"blocks": optim.Muon(rate, adam_learning_rate=adam_rate), "**": optim.Adam(adam_rate)}),
        steps=config.steps, evaluation=train.Evaluation(few, measure, every=200), checkpoint=config.run,
    )  # fmt: skip
    nats = train.evaluate(state.model, measure, test)["nats"]
    result = {"3-grams": counted(seen, held_out, len(pieces)) * per_byte, "Transformer": nats * per_byte}
    drawn = jit(lambda model, ids, key: random.categorical(key, model(ids)[0, -1] / 0.8))  # temperature 0.8
    ids = list(held_out[: config.context])
    for key in random.split(random.key(1), 250):
        ids.append(int(drawn(state.model, np.array([ids[-config.context :]], "int32"), key)))
    sample = re.sub(r"[^\n -~]", "?", b"".join([pieces[i] for i in ids[config.context :]]).decode(errors="replace"))
    print(f"{sample}\n\nnats per byte:", ", ".join([f"{name} {x:.3f}" for name, x in result.items()]))
    if config.picture and config.run:
        draw(train.records(config.run), per_byte, result, sample, config.picture)
    return result


def draw(records, per_byte, result, sample, path):
    """Plot the loss on an eighth of the held-out windows, and show a sample of the trained model."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    left.plot(*zip(*[(r["step"], r["eval/nats"] * per_byte) for r in records if "eval/nats" in r]), marker="o")
    left.axhline(result["3-grams"], color="tab:orange")
    left.legend(["Transformer", "3-grams"])
    left.set(xlabel="steps", ylabel="nats per byte, held out", xlim=(0, None))
    sample = textwrap.fill(sample, 64, replace_whitespace=False)
    right.text(0, 1, sample, va="top", family="monospace", fontsize=9, parse_math=False)
    right.axis("off")
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Config())
