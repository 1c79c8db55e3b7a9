"""Beam search: the most likely continuations that a bounded search finds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import atled.numpy as jnp
from atled import lax, nn
from atled.core import errors
from atled.core.array import ArrayLike
from atled.generate.decoding import bucket, following_logits, padded, prefill, started
from atled.staging.jit import library_function


class Beam(NamedTuple):
    """A continuation: its tokens, up to and including a stop token, and its score."""

    tokens: np.ndarray
    score: float


def beams(
    model: Any,
    prompts: Sequence[ArrayLike],
    *,
    max_new_tokens: int,
    num_beams: int,
    stop_tokens: Sequence[int] = (),
    length_penalty: float = 1.0,
) -> list[list[Beam]]:
    """The `num_beams` best continuations of each prompt, best first.

    The score is the sum of the log-probabilities divided by `length ** length_penalty`. The search for a prompt ends
    when no unfinished continuation scores better, at its present length, than the worst of `num_beams` finished ones.

    >>> from atled import generate, models, random
    >>> config = models.gpt2.Config(100, 64, n_embd=16, n_layer=2, n_head=2)
    >>> model = models.gpt2.Model(config, key=random.key(0))
    >>> [beam.tokens.shape for beam in generate.beams(model, [[1, 2]], max_new_tokens=4, num_beams=2)[0]]
    [(4,), (4,)]
    """
    if num_beams < 1 or max_new_tokens < 1:
        raise ValueError(errors.explained("generate.beams: num_beams and max_new_tokens must be 1 or more."))
    model, prompts = started(model, prompts)
    ids, lengths = padded(prompts)
    weights, cache, logits = prefill(model, ids, lengths, bucket(ids.shape[1] + max_new_tokens))
    searches = [_Search(num_beams, set(stop_tokens), max_new_tokens, length_penalty) for _ in prompts]
    count = min(max(2, 1 + len(set(stop_tokens))) * num_beams, num_beams * logits.shape[-1])
    # After the prompt, each search has one continuation; the others have a score of -inf.
    scores = np.full((len(prompts), num_beams), -np.inf, "float32")
    scores[:, 0] = 0
    cache = _rows(weights, cache, np.repeat(np.arange(len(prompts)), num_beams))
    best, where = _best(jnp.repeat(logits, num_beams, 0), scores, count)
    for step in range(max_new_tokens):
        rows, tokens = [], []
        for i, search in enumerate(searches):
            kept = search.advance(np.asarray(best[i]), *divmod(np.asarray(where[i]), logits.shape[-1]))
            rows.append(i * num_beams + kept)
            tokens.append(search.tokens[:, -1])
            scores[i] = search.scores
        if step + 1 == max_new_tokens or all([s.is_done for s in searches]):
            break
        (best, where), cache = _step(weights, cache, np.concatenate(rows), np.concatenate(tokens), scores, count)
    return [search.finished() for search in searches]


@dataclasses.dataclass
class _Search:
    """The search for one prompt, on the host: continuations that run, and those that have ended."""

    num_beams: int
    stop_tokens: set[int]
    max_new_tokens: int
    length_penalty: float

    def __post_init__(self) -> None:
        self.tokens, self.scores = np.zeros((self.num_beams, 0), "int32"), np.zeros(self.num_beams, "float32")
        self.ended: list[Beam] = []
        self.is_done = False

    def advance(self, scores: np.ndarray, beams: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Extend the continuations by the best candidates, in order; returns which ones were extended."""
        sequences = np.concatenate([self.tokens[beams], tokens[:, None].astype("int32")], 1)
        length = sequences.shape[1]
        stops = np.isin(tokens, list(self.stop_tokens)) | (length == self.max_new_tokens)
        if not self.is_done:
            for i in np.flatnonzero(stops[: self.num_beams] & np.isfinite(scores[: self.num_beams])):
                self.ended.append(Beam(sequences[i], float(scores[i] / length**self.length_penalty)))
            self.ended = sorted(self.ended, key=lambda b: -b.score)[: self.num_beams]
        kept = np.array(sorted(range(len(scores)), key=lambda i: (bool(stops[i]), -scores[i]))[: self.num_beams])
        self.tokens, self.scores = sequences[kept], np.where(stops[kept], -np.inf, scores[kept]).astype("float32")
        if len(self.ended) == self.num_beams:
            best = float(self.scores.max()) / length**self.length_penalty
            self.is_done = self.is_done or best <= self.ended[-1].score
        return beams[kept]

    def finished(self) -> list[Beam]:
        """The continuations that have ended, best first."""
        return self.ended


@library_function(static=("count",))
def _best(logits: Any, scores: Any, count: int) -> tuple[Any, Any]:
    """The scores of the best extensions of each search's continuations, and beam * vocabulary + token."""
    logits = logits.astype(jnp.promote_types(logits.dtype, "float32"))
    totals = scores[..., None] + nn.log_softmax(logits).reshape(*scores.shape, -1)
    return lax.top_k(totals.reshape(len(scores), -1), count)


@library_function
def _rows(weights: Any, cache: Any, rows: Any) -> Any:
    return nn.filter(nn.take_rows(nn.merge(weights, cache), rows), nn.Cache)


@library_function(static=("count",), donate=("cache",))
def _step(weights: Any, cache: Any, rows: Any, token: Any, scores: Any, count: int) -> tuple[tuple[Any, Any], Any]:
    """Take these rows of the cache, process one token for each, and return the best extensions and the new cache."""
    logits, cache = following_logits(weights, _rows(weights, cache, rows), token)
    return _best(logits, scores, count), cache
