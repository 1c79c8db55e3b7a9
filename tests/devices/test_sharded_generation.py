"""Decoding with weights that are split over a mesh of 4 × 2 devices gives the tokens of one device."""

import numpy as np
import pytest

import atled
from atled import generate, models, nn, random
from atled.models import llama

CONFIG = llama.LlamaConfig(64, 16, 32, 2, num_attention_heads=4, num_key_value_heads=2)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A model on one device and on the mesh."""
    place = tmp_path_factory.mktemp("llama")
    models.save(place, llama.Llama(CONFIG, key=random.key(0)))
    mesh = atled.make_mesh((4, 2), ("data", "model"))
    return models.load(place)[0], models.load(place, mesh=mesh)[0]


def test_greedy_and_sampled_tokens(both):
    prompts = [np.array(p) for p in ([3, 4, 5], [6], [7, 8, 9, 10, 11])]
    sampled = {"sampling": generate.Sampling(temperature=1.0, top_k=20), "key": random.key(1)}
    for how in ({}, sampled):
        alone, split = [generate.tokens(m, prompts, max_new_tokens=8, stop_tokens=[2], **how) for m in both]
        for a, b in zip(alone, split, strict=True):
            np.testing.assert_array_equal(a, b)


def test_beams_and_speculation(both):
    prompts = [[3, 4, 5], [6, 7]]
    alone, split = [generate.beams(m, prompts, max_new_tokens=6, num_beams=3) for m in both]
    for row, other in zip(alone, split, strict=True):
        for a, b in zip(row, other, strict=True):
            np.testing.assert_array_equal(a.tokens, b.tokens)
    draft = llama.Llama(CONFIG, key=random.key(5)).eval()
    wanted = generate.tokens(both[0], prompts, max_new_tokens=8)
    found = generate.speculate(both[1], draft, prompts, max_new_tokens=8, num_draft_tokens=3)
    for a, b in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_int8_weights_stay_split(both):
    small = nn.quantize(both[1])
    rows = generate.tokens(small, [[3, 4, 5]], max_new_tokens=4)
    assert len(rows[0]) == 4
