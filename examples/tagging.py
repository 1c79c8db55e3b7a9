"""Part-of-speech tagging of Greek words, from their letters and their neighbours.

Trained on the Greek New Testament without Acts, the model tags 97.8 % of the words of Acts correctly; the most frequent
part of speech of each word is right for 88.0 %. One word in six is not in the training set: of these words, the model
tags 92.8 % correctly, the baseline 33.8 %. About 3 minutes on two cores.

    atled data greek_new_testament
    python examples/tagging.py

Settings, model, loss, data, training and picture follow in this order. A second run resumes from the last checkpoint.
"""

import collections
import dataclasses
import unicodedata

import numpy as np

from atled import data, metrics, nn, optim, random, train


@dataclasses.dataclass
class Config:
    epochs: int = 5
    batch: int = 32
    rate: float = 3e-3
    features: int = 128
    letters: int = 8  # maximum length of prefixes and suffixes
    book: int = 5  # the held-out book: Acts
    verses: int | None = None  # number of training verses, for quick tests; None: all
    run: str | None = "runs/tagging"
    picture: str | None = "examples/pictures/tagging.png"


class Tagger(nn.Module):
    """A bidirectional LSTM over the words of a verse; a word is the sum of embeddings of its prefixes and suffixes."""

    def __init__(self, pieces, parts, features, *, key):
        keys = nn.Keys(key)
        self.pieces = nn.Embedding(pieces, features, key=keys())
        self.verse = nn.Bidirectional(*[nn.LSTMCell(features, features, key=keys()) for _ in range(2)])
        self.drop = nn.Dropout(0.4)
        self.out = nn.Linear(2 * features, parts, key=keys())

    def __call__(self, batch, key=None):
        keys = nn.Keys(key)
        x = self.pieces(batch["pieces"]).sum(2, where=batch["pieces"][..., None] > 0)
        x = self.verse(self.drop(x, key=keys()), lengths=batch["mask"].sum(1))
        return self.out(self.drop(x, key=keys()))


def loss(model, batch, key):
    return nn.losses.cross_entropy(model(batch, key=key), batch["part"], where=batch["mask"])


def measure(model, batch):
    return {"accuracy": metrics.Accuracy().update(model(batch), batch["part"], where=batch["mask"])}


def pieces(word, longest):
    """Prefixes and suffixes of a word. Grave accents, which depend on the next word, become acute accents."""
    word = unicodedata.normalize("NFC", unicodedata.normalize("NFD", word).replace("\u0300", "\u0301"))
    return [piece for n in range(1, min(len(word), longest) + 1) for piece in (f"{word[:n]}-", f"-{word[-n:]}")]


def hidden(verse, rng):
    """A verse with a quarter of its pieces dropped at random, since new words have few known pieces."""
    return {**verse, "pieces": verse["pieces"] * (rng.random(verse["pieces"].shape) > 0.25)}


def most_frequent(words, parts, asked):
    """The baseline: the most frequent part of speech of each word, or of all words if the word is new."""
    counts = collections.defaultdict(collections.Counter)
    for word, part in zip(words, parts, strict=True):
        counts[word][part] += 1
    everywhere = collections.Counter(parts)
    return np.array([counts.get(word, everywhere).most_common(1)[0][0] for word in asked])


def main(config):
    text = data.sets.greek_new_testament()
    is_held_out = text["verse"] // 10000 == config.book
    words = [pieces(word, config.letters) for word in text["word"]]
    counts = collections.Counter([piece for i in np.flatnonzero(~is_held_out) for piece in words[i]])
    known = {piece: i for i, piece in enumerate([p for p, count in counts.items() if count > 1], 1)}  # 0: none
    parts = sorted(set(text["part"]))
    columns = {
        "pieces": np.zeros((len(words), 2 * config.letters), "int32"),
        "part": np.searchsorted(parts, text["part"]).astype("int32"),
    }
    for row, word in zip(columns["pieces"], words, strict=True):
        row[: len(word)] = [known.get(piece, 0) for piece in word]
    starts = np.flatnonzero(np.diff(text["verse"], prepend=0))
    verses = [{k: x[a:b] for k, x in columns.items()} for a, b in zip(starts, [*starts[1:], None], strict=True)]
    held_out = [verses[i] for i in np.flatnonzero(is_held_out[starts])]
    learned = [verses[i] for i in np.flatnonzero(~is_held_out[starts])][: config.verses]
    # One verse in fifty has more than 32 words; training uses its first 32.
    batches = data.source(learned).shuffle(0).random_map(hidden, 1).pad(32, truncate=True).batch(config.batch)
    test = data.source(held_out).pad(64).batch(128, drop_last=False)
    steps = config.epochs * len(batches)
    rate = optim.cosine(config.rate, steps, warmup_steps=steps // 20)
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.AdamW(rate, weight_decay=1e-2))
    state = train.fit(
        Tagger(len(known) + 1, len(parts), config.features, key=random.key(0)), loss, batches,
        optim.average(optimizer, 0.995),
        steps=steps, key=random.key(1), evaluation=train.Evaluation(test, measure, every=len(batches)),
        checkpoint=config.run,
    )  # fmt: skip
    found = np.concatenate([np.asarray(state.eval_model()(batch).argmax(-1))[batch["mask"]] for batch in test])
    counted = most_frequent(text["word"][~is_held_out], columns["part"][~is_held_out], text["word"][is_held_out])
    is_new = ~np.isin(text["word"][is_held_out], text["word"][~is_held_out])
    wanted, result = columns["part"][is_held_out], {}
    for name, tags in (("model", found), ("most frequent", counted)):
        is_right = tags == wanted
        result |= {name: float(is_right.mean()), f"{name}, new words": float(is_right[is_new].mean())}
        print(f"{name}: {is_right.mean():.1%} of words are right, {is_right[is_new].mean():.1%} of new words")
    if config.picture:
        draw(text["word"][is_held_out], found, wanted, is_new, parts, config.picture)
    return result


def draw(words, found, wanted, is_new, parts, path):
    """Show the passage with the most new words, coloured by the predicted parts of speech."""
    import matplotlib.pyplot as plt

    names = {
        "A-": "adjective", "C-": "conjunction", "D-": "adverb", "I-": "interjection", "N-": "noun", "P-": "preposition",
        "RA": "article", "RD": "demonstrative", "RI": "interrogative", "RP": "personal", "RR": "relative", "V-": "verb",
        "X-": "particle",
    }  # fmt: skip
    colours = [*plt.get_cmap("Set3").colors, "lightgray"]
    start = np.convolve(is_new, np.ones(150), "valid").argmax()
    figure, ax = plt.subplots(figsize=(11, 5.5))
    x = y = 0
    for i in range(start, min(start + 150, len(words))):
        x, y = (0, y - 1) if x + len(words[i]) > 104 else (x, y)
        frame = {"facecolor": colours[found[i]], "edgecolor": "none" if found[i] == wanted[i] else "red", "pad": 2}
        weight = "bold" if is_new[i] else "normal"
        ax.text(x, y, words[i], family="monospace", fontsize=10, weight=weight, bbox=frame)
        x += len(words[i]) + 2
    x = 0
    for i, part in enumerate(parts):
        frame = {"facecolor": colours[i], "edgecolor": "none", "pad": 2}
        ax.text(x, y - 2, names[part], family="monospace", fontsize=7.5, bbox=frame)
        x += 0.75 * len(names[part]) + 1.6
    ax.set(xlim=(0, 106), ylim=(y - 2.5, 1), title="bold: new words; red: mistakes")
    ax.axis("off")
    figure.savefig(path, dpi=90, bbox_inches="tight")


if __name__ == "__main__":
    main(Config())
