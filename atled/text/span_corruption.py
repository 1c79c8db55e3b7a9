"""Span corruption (Raffel et al., 2020, section 3.1.4): the text-to-text task on which T5 is trained.

Random spans of a text are noise. Each is replaced by a sentinel in the inputs; the targets have the sentinels, each
followed by its span. `corrupt_spans` fits `data.Pipeline.random_map`; everything here is NumPy.
"""

from __future__ import annotations

import bisect
import math
from typing import Any, NamedTuple

import numpy as np

from atled.core import errors


class SpanLengths(NamedTuple):
    """The number of tokens before and after `corrupt_spans`.

    >>> from atled import text
    >>> text.span_lengths(512, end_token=1).text
    568
    """

    text: int
    inputs: int
    targets: int


def corrupt_spans(
    tokens: Any,
    rng: np.random.Generator | int,
    *,
    vocab_size: int,
    num_sentinels: int = 100,
    noise_density: float = 0.15,
    mean_span_length: float = 3.0,
    end_token: int | None = None,
) -> dict[str, np.ndarray]:
    """A text without random spans, `inputs`, and these spans, `targets`: int32 arrays that together have every token.

    The sentinel of the first span is `vocab_size - 1`, that of the second `vocab_size - 2`, and so on.

    Args:
        tokens: the ids of a text, without sentinels.
        rng: a generator, such as that of `data.Pipeline.random_map`, or a seed.
        vocab_size: the number of tokens with the sentinels: 32100 for published T5, whose models have a larger table.
        num_sentinels: how many tokens at the end of the vocabulary are sentinels.
        noise_density: the share of tokens in spans; see `noise_mask`.
        mean_span_length: the mean length of spans.
        end_token: a token that is added to the inputs and to the targets.

    >>> import functools, numpy as np
    >>> from atled import data, text
    >>> corrupt = functools.partial(text.corrupt_spans, vocab_size=100, noise_density=0.3, num_sentinels=9)
    >>> made = corrupt(np.arange(10, 20), 0)
    >>> made["inputs"].tolist(), made["targets"].tolist()
    ([10, 11, 12, 13, 14, 15, 16, 99], [99, 17, 18, 19])
    >>> texts = data.arrays(np.arange(60).reshape(3, 20)).random_map(corrupt, 1)
    >>> [(batch["inputs"].shape, batch["targets"].shape) for batch in texts.batch(3)]
    [((3, 16), (3, 8))]
    """
    ids, last = _checked(tokens, "corrupt_spans", "tokens"), _last_token("corrupt_spans", vocab_size, num_sentinels)
    if ids.size and not 0 <= ids.min() <= ids.max() <= last:
        wrong = int(ids.min() if ids.min() < 0 else ids.max())
        says = (
            f"corrupt_spans: tokens must be between 0 and {last}, since the last {num_sentinels} of {vocab_size} are "
        )
        raise ValueError(
            errors.explained(f"{says}sentinels; got {wrong}.", "a vocab_size with the sentinels, such as 32100 for T5.")
        )
    is_noise = noise_mask(len(ids), rng, noise_density=noise_density, mean_span_length=mean_span_length)
    is_first = is_noise & ~np.concatenate([[False], is_noise])[:-1]
    count = int(is_first.sum())
    if count > num_sentinels:
        says = f"corrupt_spans: each span needs a sentinel; there are {count} spans in {len(ids)} tokens, and "
        least = math.ceil(10 * int(is_noise.sum()) / num_sentinels) / 10
        raise ValueError(
            errors.explained(
                f"{says}{num_sentinels} sentinels.", f"shorter texts, or a mean_span_length of {least} or more."
            )
        )
    sentinels = vocab_size - 1 - np.arange(count)
    kept = ids.copy()
    kept[is_first] = sentinels
    end = [] if end_token is None else [end_token]
    inputs, targets = (
        kept[~is_noise | is_first],
        np.insert(ids[is_noise], np.flatnonzero(is_first[is_noise]), sentinels),
    )
    return {name: np.append(x, end).astype("int32") for name, x in (("inputs", inputs), ("targets", targets))}


def noise_mask(
    length: int, rng: np.random.Generator | int, *, noise_density: float = 0.15, mean_span_length: float = 3.0
) -> np.ndarray:
    """True for the tokens of random spans. A text begins with a token that is kept, and ends with a span.

    There are `length * noise_density` tokens in spans and `mean_span_length` times fewer spans, both rounded, at random
    places and of random lengths, all equally likely, but at least one token is kept before each span. As in T5, at
    least one token of a text of two or more is in a span, unless the density is 0.

    Args:
        rng: a generator or a seed.

    >>> from atled import text
    >>> text.noise_mask(10, 0, noise_density=0.3, mean_span_length=1.5).astype(int)
    array([0, 0, 0, 0, 0, 0, 1, 1, 0, 1])
    """
    noise, spans = _counts(length, noise_density, mean_span_length)
    rng = np.random.default_rng(rng)
    lengths = np.stack([_segments(total, spans, rng) for total in (length - noise, noise)], 1) if spans else [length]
    return np.repeat(np.arange(np.size(lengths)) % 2 == 1, np.ravel(lengths))


def span_lengths(
    inputs_length: int, *, noise_density: float = 0.15, mean_span_length: float = 3.0, end_token: int | None = None
) -> SpanLengths:
    """The length of the longest texts whose `inputs` have at most this length, and the lengths of inputs and targets.

    Cut texts to the first, and every example has the other two, without padding. The arguments are those of
    `corrupt_spans`.

    >>> from atled import text
    >>> text.span_lengths(512, end_token=1)  # as in the paper
    SpanLengths(text=568, inputs=512, targets=114)
    """
    if inputs_length < _lengths(0, noise_density, mean_span_length, end_token).inputs:
        raise ValueError(errors.explained(f"span_lengths: inputs_length must be 1 or more; got {inputs_length}."))
    if noise_density == 1:
        says = "span_lengths: with a noise_density of 1, texts of any length have inputs of the same length"
        raise ValueError(errors.explained(f"{says}.", "a noise_density of less than 1, such as 0.15."))
    longest = int((inputs_length + 2) / (1 - noise_density)) + 2
    texts = range(longest + 1)  # with a longer text, inputs never become shorter
    inputs = lambda n: _lengths(n, noise_density, mean_span_length, end_token).inputs  # noqa: E731
    length = bisect.bisect_right(texts, inputs_length, key=inputs) - 1
    return _lengths(length, noise_density, mean_span_length, end_token)


def fill_spans(
    inputs: Any, targets: Any, *, vocab_size: int, num_sentinels: int = 100, end_token: int | None = None
) -> np.ndarray:
    """The text of `inputs` and `targets`: each sentinel becomes what follows it in the targets, up to the next one.

    The inverse of `corrupt_spans`; the targets may also be what a model predicts. A sentinel that they lack becomes
    nothing; of one that they repeat, the first counts. An end token at the end of either is dropped.

    >>> from atled import text
    >>> text.fill_spans([5, 99, 6, 98, 1], [99, 7, 8, 98, 9, 1], vocab_size=100, num_sentinels=9, end_token=1)
    array([5, 7, 8, 6, 9], dtype=int32)
    """
    last = _last_token("fill_spans", vocab_size, num_sentinels)
    texts = [_checked(x, "fill_spans", name) for x, name in ((inputs, "inputs"), (targets, "targets"))]
    texts = [x[:-1] if end_token is not None and x.size and x[-1] == end_token else x for x in texts]
    parts, spans = [np.split(x, np.flatnonzero(x > last)) for x in texts]
    found = {int(span[0]): span[1:] for span in spans[:0:-1]}
    filled = [np.append(found.get(int(part[0]), part[:0]), part[1:]) for part in parts[1:]]
    return np.concatenate([parts[0], *filled]).astype("int32")


def _counts(length: int, noise_density: float, mean_span_length: float) -> tuple[int, int]:
    """The number of tokens in spans, and of spans."""
    if not 0 <= noise_density <= 1:
        raise ValueError(errors.explained(f"noise_mask: noise_density must be in [0, 1]; got {noise_density}."))
    if not mean_span_length >= 1:
        raise ValueError(errors.explained(f"noise_mask: mean_span_length must be 1 or more; got {mean_span_length}."))
    if length < 0:
        raise ValueError(errors.explained(f"noise_mask: length must not be negative; got {length}."))
    if noise_density == 0 or length < 2:
        return 0, 0
    noise = min(max(round(length * noise_density), 1), length - 1)
    return noise, min(max(round(noise / mean_span_length), 1), length - noise)


def _lengths(length: int, noise_density: float, mean_span_length: float, end_token: int | None) -> SpanLengths:
    noise, spans = _counts(length, noise_density, mean_span_length)
    more = spans + (end_token is not None)
    return SpanLengths(length, length - noise + more, noise + more)


def _segments(total: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """The lengths of `count` segments of at least one, with this total."""
    cuts = 1 + np.sort(rng.choice(total - 1, count - 1, replace=False, shuffle=False))
    return np.diff(cuts, prepend=0, append=total)


def _last_token(where: str, vocab_size: int, num_sentinels: int) -> int:
    """The largest token that is not a sentinel."""
    if not 0 < num_sentinels < vocab_size:
        says = f"{where}: num_sentinels must be 1 or more and less than vocab_size; got {num_sentinels} of {vocab_size}"
        raise ValueError(errors.explained(f"{says}.", "a vocab_size with the sentinels, such as 32100 for T5."))
    return vocab_size - num_sentinels - 1


def _checked(tokens: Any, where: str, name: str) -> np.ndarray:
    """The tokens as an array of integers."""
    x = np.asarray(tokens)
    if x.ndim != 1 or (x.size and x.dtype.kind not in "iu"):
        says = f"{where}: {name} must be integers in a list or a 1-d array; got an array of shape {x.shape} and dtype "
        raise TypeError(errors.explained(f"{says}{x.dtype}.", f"{where}(row, …) for each row of a batch."))
    return x.astype("int64")
