"""Writes `docs/guide/words.md`: the words of parameters and methods, and what four libraries call the same.

What a word means is in `words.txt`; how often a library uses a word, in `peer_words.txt`. `words.py --peers LIBRARY`
counts them where the library is installed, and writes its line. Run this file to write the page anew.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "guide" / "words.md"
PACKAGES = (
    "nn", "nn.initializers", "nn.losses", "optim", "optim.schedules", "train", "data", "data.sets", "checkpoints",
    "checkpoints.orbax", "checkpoints.safetensors", "metrics",
)  # fmt: skip
PEERS = {
    "flax": (
        "Flax 0.12", ("flax.nnx", "flax.linen", "flax.training.train_state", "flax.training.checkpoints"),
    ),
    "optax": (
        "Optax 0.2",
        ("optax", "optax.losses", "optax.contrib", "optax.schedules", "optax.transforms", "optax.tree_utils"),
    ),
    "torch": (
        "PyTorch 2.13", (
            "torch.nn", "torch.nn.functional", "torch.nn.utils", "torch.nn.utils.rnn", "torch.nn.utils.parametrize",
            "torch.nn.utils.parametrizations", "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils",
            "torch.utils.data", "torch.utils.checkpoint", "torch.amp", "torch.autograd", "torch.nn.init",
        ),
    ),
    "keras": (
        "Keras 3.15", (
            "keras.layers", "keras.optimizers", "keras.optimizers.schedules", "keras.metrics", "keras.callbacks",
            "keras.models", "keras.utils", "keras", "keras.ops", "keras.trainers", "keras.random",
        ),
    ),
}  # fmt: skip
HEAD = """\
# Words

The names of parameters and methods, and of the same things in Flax, Optax, PyTorch and Keras. In parentheses: how many
of a library's public functions and classes use the name. atled takes the name that most libraries use, or the most
descriptive one if they disagree, and has one name for one thing in all packages. Until 0.2, a name from before 0.1
raises an error that gives the new one. `python tests/names/words.py` generates this page, and a test verifies it.
"""


class Word(NamedTuple):
    section: str
    name: str
    what: str
    was: str
    peers: dict[str, list[str]]  # only where a peer's words are not the same


def words() -> list[Word]:
    """The rows of `words.txt`."""
    found, section = [], ""
    for line in (HERE / "words.txt").read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line and line[0] != "#":
            name, _, rest = line.partition(" = ")
            what, *more = [part.strip() for part in rest.split(";")]
            said = {
                key: text
                for key, _, text in (part.partition(" ") for part in more if part.split(" ")[0] in ("was", *PEERS))
            }
            what = "; ".join([what, *[part for part in more if part.split(" ")[0] not in ("was", *PEERS)]])
            peers = {p: [] if said[p] == "-" else said[p].split(", ") for p in PEERS if p in said}
            found.append(Word(section, name, what, said.get("was", ""), peers))
    return found


def counts() -> dict[str, dict[str, int]]:
    """How many callables of each library use each word."""
    return {p: dict(rows) for p, rows in json.loads((HERE / "peer_words.txt").read_text()).items()}


def _named(x: Any) -> Iterator[str]:
    """The words of a callable: its parameters and, of a class, its methods with ()."""
    things = [x]
    if inspect.isclass(x):
        things += [x.__init__, *[v for n, v in inspect.getmembers(x) if n[0] != "_" and callable(v)]]
        yield from [f"{n}()" for n, v in inspect.getmembers(x) if n[0] != "_" and callable(v)]
    for thing in things:
        try:
            yield from [n for n in inspect.signature(thing).parameters if n not in ("self", "cls", "args", "kwargs")]
        except (TypeError, ValueError):
            continue


def ours() -> dict[str, set[str]]:
    """The words of our packages, and where they are."""
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        module = importlib.import_module(f"atled.{package}")
        for name in module.__all__:
            x = getattr(module, name)
            if (
                not callable(x)
                or not (getattr(x, "__module__", "") or "").startswith("atled.")
                or (inspect.isclass(x) and issubclass(x, (Exception,)))
            ):
                continue
            for word in _own(x):
                found.setdefault(word, set()).add(f"{package}.{name}")
    return found


def _own(x: Any) -> Iterator[str]:
    """The words of one of ours: without what a class inherits from Python's own."""
    if not inspect.isclass(x):
        yield from _named(x)
        return
    methods = {n: v for n, v in inspect.getmembers(x) if n[0] != "_" and callable(v)}
    methods = {n: v for n, v in methods.items() if (getattr(v, "__module__", "") or "").startswith("atled")}
    yield from [f"{n}()" for n in methods]
    yield from [n for n in getattr(x, "__annotations__", {}) if n[0] != "_"]  # fields
    for thing in (x, *methods.values()):
        try:
            yield from [n for n in inspect.signature(thing).parameters if n not in ("self", "cls", "args", "kwargs")]
        except (TypeError, ValueError):
            continue


def peer_counts(peer: str) -> dict[str, int]:
    """Count the words of an installed library."""
    seen: set[int] = set()
    found: Counter[str] = Counter()
    for space in PEERS[peer][1]:
        try:
            module = importlib.import_module(space)
        except ImportError:
            continue
        for name in dir(module):
            x = getattr(module, name, None)
            if name[0] == "_" or not callable(x) or id(x) in seen:
                continue
            if (getattr(x, "__module__", None) or "").startswith(peer):
                seen.add(id(x))
                found.update({name, *_named(x)})
    asked = {w for word in words() for w in [word.name, *word.peers.get(peer, [])]}
    return {w: found[w] for w in sorted(asked) if found[w]}


def page() -> str:
    """The text of the page."""
    known, text, section = counts(), [HEAD], ""
    for word in words():
        if word.section != section:
            section = word.section
            titles = ["word", "meaning", "before 0.1", *[title for title, _ in PEERS.values()]]
            text.append(f"\n## {section}\n\n| {' | '.join(titles)} |\n|{' --- |' * len(titles)}\n")
        cells = []
        for peer in PEERS:
            said = word.peers.get(peer, [word.name] if word.name in known[peer] else [])
            cells.append(", ".join([f"`{w}` ({known[peer].get(w, 0)})" for w in said]) or "-")
        was = ", ".join([f"`{w}`" for w in word.was.split(", ") if w]) or ""
        text.append(f"| `{word.name}` | {word.what} | {was} | {' | '.join(cells)} |\n")
    return re.sub(r" +\|", " |", "".join(text))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peers"]:
        file = HERE / "peer_words.txt"
        known = json.loads(file.read_text()) if file.exists() else {}
        known[sys.argv[2]] = sorted(peer_counts(sys.argv[2]).items())
        file.write_text(
            "{\n" + ",\n".join([f'"{p}": {json.dumps(rows)}' for p, rows in sorted(known.items())]) + "\n}\n"
        )
    else:
        PAGE.write_text(page())
