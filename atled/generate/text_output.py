"""`text` and `stream`: from strings to strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from atled.core.array import ArrayLike
from atled.generate.decoding import steps, tokens
from atled.generate.sampling import GREEDY, Sampling


def text(
    model: Any,
    tokenizer: Any,
    prompts: Any,
    *,
    max_new_tokens: int,
    sampling: Sampling = GREEDY,
    stop: Sequence[str] = (),
    key: ArrayLike | None = None,
) -> Any:
    """The text that a model adds to a prompt, or to each of several prompts.

    Args:
        prompts: a string, or a list of strings.
        stop: strings that end a text; they are not part of it. The tokenizer's end tokens end it as well.

    The other arguments are those of `generate.tokens`.

    >>> from atled import generate, models, random
    >>> from atled.text import ByteLevelBPE
    >>> tokenizer = ByteLevelBPE({"a": 0, "b": 1, "c": 2}, [])
    >>> config = models.gpt2.Config(3, 64, n_embd=16, n_layer=2, n_head=2)
    >>> model = models.gpt2.Model(config, key=random.key(0)).eval()
    >>> len(generate.text(model, tokenizer, "abc", max_new_tokens=5))
    5
    """
    many = [prompts] if isinstance(prompts, str) else list(prompts)
    ids = [tokenizer.encode(p) for p in many]
    if not stop:
        new = tokens(
            model, ids, max_new_tokens=max_new_tokens, sampling=sampling, stop_tokens=tokenizer.end_tokens, key=key
        )
        out = [tokenizer.decode(_without_end(row, tokenizer)) for row in new]
    else:
        out = _until(model, tokenizer, ids, max_new_tokens, sampling, stop, key)
    return out[0] if isinstance(prompts, str) else out


def stream(
    model: Any,
    tokenizer: Any,
    prompt: str,
    *,
    max_new_tokens: int,
    sampling: Sampling = GREEDY,
    stop: Sequence[str] = (),
    key: ArrayLike | None = None,
) -> Iterator[str]:
    """Pieces of the text that a model adds to a prompt, as soon as they are known; joined, they are `generate.text`.

    A piece never ends inside of a character, nor in what may become a stop string.

    >>> from atled import generate, models, random
    >>> from atled.text import ByteLevelBPE
    >>> tokenizer = ByteLevelBPE({"a": 0, "b": 1, "c": 2}, [])
    >>> config = models.gpt2.Config(3, 64, n_embd=16, n_layer=2, n_head=2)
    >>> model = models.gpt2.Model(config, key=random.key(0)).eval()
    >>> pieces = list(generate.stream(model, tokenizer, "abc", max_new_tokens=5))
    >>> "".join(pieces) == generate.text(model, tokenizer, "abc", max_new_tokens=5)
    True
    """
    ids: list[int] = []
    shown = ""
    for (token,) in steps(model, [tokenizer.encode(prompt)], max_new_tokens, sampling, tokenizer.end_tokens, key):
        if token is None or token in tokenizer.end_tokens:
            break
        ids.append(token)
        known = tokenizer.decode(ids)
        end = _stop_at(known, stop)
        if end is not None:
            yield known[len(shown) : end]
            return
        safe = len(known) - max([_overlap(known, s) for s in stop], default=0)
        safe = min(safe, len(known.rstrip("\ufffd")))  # bytes of a character that is not complete
        if safe > len(shown):
            yield known[len(shown) : safe]
            shown = known[:safe]
    rest = tokenizer.decode(ids)[len(shown) :]
    if rest:
        yield rest


def _without_end(row: Any, tokenizer: Any) -> list[int]:
    ids = [int(t) for t in row]
    return ids[:-1] if ids and ids[-1] in tokenizer.end_tokens else ids


def _until(
    model: Any, tokenizer: Any, prompts: list[Any], max_new_tokens: int, sampling: Sampling, stop: Sequence[str],
    key: Any,
) -> list[str]:  # fmt: skip
    """The texts up to the first stop string; the loop ends when all rows have one."""
    rows: list[list[int]] = [[] for _ in prompts]
    texts: list[str | None] = [None] * len(prompts)
    for new in steps(model, prompts, max_new_tokens, sampling, tokenizer.end_tokens, key):
        for i, token in enumerate(new):
            if token is None or texts[i] is not None:
                continue
            rows[i].append(token)
            found = tokenizer.decode(_without_end(rows[i], tokenizer))
            end = _stop_at(found, stop)
            if end is not None:
                texts[i] = found[:end]
        if all([t is not None for t in texts]):
            break
    return [
        tokenizer.decode(_without_end(row, tokenizer)) if t is None else t for t, row in zip(texts, rows, strict=True)
    ]


def _stop_at(found: str, stop: Sequence[str]) -> int | None:
    places = [found.find(s) for s in stop if s in found]
    return min(places) if places else None


def _overlap(found: str, stop: str) -> int:
    """How many characters at the end may be the beginning of a stop string."""
    return next((n for n in range(min(len(stop), len(found)), 0, -1) if found.endswith(stop[:n])), 0)
