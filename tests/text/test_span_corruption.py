"""Span corruption: nothing is lost, and the numbers of tokens and spans are those that are promised."""

from __future__ import annotations

import collections
import functools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atled import data, text

SIZES = {"vocab_size": 1000, "num_sentinels": 200}
lengths, densities = st.integers(0, 300), st.floats(0, 1)
means, seeds = st.floats(1, 20), st.integers(0, 2**32)


def spans(is_noise):
    return int(np.diff(is_noise.astype(int), prepend=0).clip(0).sum())


@settings(max_examples=200, deadline=None)
@given(lengths, densities, means, seeds, st.sampled_from([None, 1]))
def test_inputs_and_targets_have_the_whole_text(length, density, mean, seed, end):
    tokens = np.random.default_rng(seed).integers(0, 700, length)
    made = text.corrupt_spans(
        tokens, seed, vocab_size=1000, noise_density=density, mean_span_length=mean, num_sentinels=300, end_token=end
    )
    assert made["inputs"].dtype == made["targets"].dtype == np.int32
    restored = text.fill_spans(**made, vocab_size=1000, num_sentinels=300, end_token=end)
    np.testing.assert_array_equal(restored, tokens)


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 300), st.floats(0.01, 0.99), means, seeds)
def test_counts(length, density, mean, seed):
    is_noise = text.noise_mask(length, seed, noise_density=density, mean_span_length=mean)
    noise = min(max(round(length * density), 1), length - 1)
    assert is_noise.shape == (length,) and is_noise.dtype == bool and is_noise.sum() == noise
    assert spans(is_noise) == min(max(round(noise / mean), 1), length - noise)
    assert not is_noise[0] and is_noise[-1]


def test_every_mask_is_equally_likely():
    """Three tokens of six in two spans: two ways to cut the spans, times two to cut what is kept."""
    rng = np.random.default_rng(0)
    found = collections.Counter(
        "".join(map(str, text.noise_mask(6, rng, noise_density=0.5, mean_span_length=1.5) * 1)) for _ in range(4000)
    )
    assert set(found) == {"010011", "011001", "001011", "001101"}
    assert all([abs(n - 1000) < 120 for n in found.values()])  # four standard deviations


def test_an_example():
    """That of the paper, figure 2, up to the last span."""
    words = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "</s>", "<Y>", "<X>"]
    options = {"noise_density": 1 / 3, "mean_span_length": 1.5}
    seed = next(s for s in range(1000) if text.noise_mask(9, s, **options).nonzero()[0].tolist() == [2, 3, 8])
    made = text.corrupt_spans(range(9), seed, vocab_size=12, num_sentinels=2, end_token=9, **options)
    shown = {name: " ".join([words[i] for i in x]) for name, x in made.items()}
    assert shown["inputs"] == "Thank you <X> me to your party <Y> </s>"
    assert shown["targets"] == "<X> for inviting <Y> last </s>"


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 600), st.floats(0, 0.9), means, seeds, st.sampled_from([None, 1]))
def test_lengths(length, density, mean, seed, end):
    """They are those of every example, and of a text with one token more, inputs would be too long."""
    options = {"noise_density": density, "mean_span_length": mean, "end_token": end}
    found = text.span_lengths(length, **options)
    assert found.inputs <= length
    for more in (0, 1):
        tokens = np.zeros(found.text + more, int)
        made = text.corrupt_spans(tokens, seed, vocab_size=10**6, num_sentinels=10**5, **options)
        if more:
            assert len(made["inputs"]) > length
        else:
            assert (len(made["inputs"]), len(made["targets"])) == (found.inputs, found.targets)


def test_published_lengths():
    assert text.span_lengths(512, end_token=1) == text.SpanLengths(text=568, inputs=512, targets=114)
    assert text.span_lengths(512, noise_density=0.5, end_token=1).text == 767
    assert text.span_lengths(7, noise_density=0) == (7, 7, 0)


@pytest.mark.parametrize("density", [0, 0.15, 0.5, 1])
def test_short_texts(density):
    for length in (0, 1):
        assert text.noise_mask(length, 0, noise_density=density).tolist() == [False] * length
        made = text.corrupt_spans([7] * length, 0, noise_density=density, end_token=1, **SIZES)
        assert made["inputs"].tolist() == [7] * length + [1] and made["targets"].tolist() == [1]
    assert text.noise_mask(2, 0, noise_density=density).tolist() == [False, density > 0]


def test_no_noise_and_only_noise():
    tokens = np.arange(10)
    made = text.corrupt_spans(tokens, 0, noise_density=0, **SIZES)
    assert made["inputs"].tolist() == tokens.tolist() and made["targets"].tolist() == []
    made = text.corrupt_spans(tokens, 0, noise_density=1, **SIZES)  # but the first token, as in T5
    assert made["inputs"].tolist() == [0, 999] and made["targets"].tolist() == [999, *range(1, 10)]


def test_a_seed_determines_everything():
    tokens = np.arange(100)
    corrupt = functools.partial(text.corrupt_spans, tokens, noise_density=0.3, **SIZES)
    a, again, b = corrupt(3), corrupt(np.random.default_rng(3)), corrupt(4)
    assert all([(a[name] == again[name]).all() for name in a]) and (a["inputs"] != b["inputs"]).any()
    assert (tokens == np.arange(100)).all()


def test_in_a_pipeline():
    """The same spans in each run, others in each epoch; batches need no padding; workers get the function."""
    size = text.span_lengths(32, end_token=1)
    corrupt = functools.partial(text.corrupt_spans, vocab_size=300, end_token=1)
    assert pickle.loads(pickle.dumps(corrupt)).keywords == corrupt.keywords
    batches = data.arrays(np.arange(6 * size.text).reshape(6, -1) % 200).random_map(corrupt, 0).batch(3)
    first, again = [list(batches.repeat(2)) for _ in range(2)]
    assert first[0]["inputs"].shape == (3, 32) and first[0]["targets"].shape == (3, size.targets)
    assert all([(a["inputs"] == b["inputs"]).all() for a, b in zip(first, again, strict=True)])
    assert (first[0]["inputs"] != first[2]["inputs"]).any()


def test_predictions_are_filled_in():
    fill = functools.partial(text.fill_spans, [5, 999, 6, 998, 1], **SIZES, end_token=1)
    assert fill([998, 9, 999, 7, 8, 1]).tolist() == [5, 7, 8, 6, 9]  # in another order
    assert fill([999, 7]).tolist() == [5, 7, 6]  # one is missing
    assert fill([3, 999, 7, 999, 8, 997, 2]).tolist() == [5, 7, 6]  # no sentinel, one twice, an unknown one
    assert fill([]).tolist() == [5, 6]
    assert text.fill_spans([], [], **SIZES).tolist() == []


@pytest.mark.parametrize(
    "call, says",
    [
        (
            lambda: text.corrupt_spans(np.zeros(400, int), 0, vocab_size=20, num_sentinels=10),
            "corrupt_spans: each span needs a sentinel; there are 20 spans in 400 tokens, and 10 sentinels.",
        ),
        (
            lambda: text.corrupt_spans([950], 0, **SIZES),
            "corrupt_spans: tokens must be between 0 and 799, since the last 200 of 1000 are sentinels; got 950.",
        ),
        (lambda: text.corrupt_spans([-1], 0, **SIZES), "corrupt_spans: tokens must be between 0 and 799, .* got -1."),
        (lambda: text.corrupt_spans([[1]], 0, **SIZES), r"corrupt_spans: tokens must be .* of shape \(1, 1\)"),
        (lambda: text.corrupt_spans([0.5], 0, **SIZES), "corrupt_spans: tokens must be integers .* dtype float64"),
        (
            lambda: text.corrupt_spans([1], 0, vocab_size=100),
            "corrupt_spans: num_sentinels must be 1 or more and less than vocab_size; got 100 of 100.",
        ),
        (lambda: text.fill_spans([1], [1], vocab_size=9), "fill_spans: num_sentinels must be .*; got 100 of 9."),
        (lambda: text.noise_mask(5, 0, noise_density=1.5), r"noise_mask: noise_density must be in \[0, 1\]; got 1.5."),
        (lambda: text.noise_mask(5, 0, mean_span_length=0), "noise_mask: mean_span_length must be 1 or more; got 0."),
        (lambda: text.noise_mask(-1, 0), "noise_mask: length must not be negative; got -1."),
        (lambda: text.span_lengths(0, end_token=1), "span_lengths: inputs_length must be 1 or more; got 0."),
        (lambda: text.span_lengths(9, noise_density=1), "span_lengths: with a noise_density of 1, texts of any length"),
    ],
)
def test_mistakes(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()


def test_the_way_out_of_too_few_sentinels():
    options = {"vocab_size": 200, "num_sentinels": 7, "noise_density": 0.4}
    tokens = np.zeros(101, int)
    with pytest.raises(ValueError, match="mean_span_length of") as caught:
        text.corrupt_spans(tokens, 0, **options)
    found = re.search(r"mean_span_length of (\d+\.\d+) or more", str(caught.value))
    made = text.corrupt_spans(tokens, 0, **options, mean_span_length=float(found[1]))
    assert (made["inputs"] >= 193).sum() == 7
