"""How the next token is chosen, compared with plain NumPy."""

import numpy as np
import pytest

import atled.numpy as jnp
from atled import generate, models, random
from atled.generate.decoding import bucket

RNG = np.random.default_rng(0)


def kept(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    """The probabilities of one row, step by step."""
    x = np.asarray(logits, "float64") / temperature
    if top_k is not None:
        x = np.where(x < np.sort(x)[-min(top_k, len(x))], -np.inf, x)
    p = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    if top_p is not None:
        order, total, keep = np.argsort(-p, kind="stable"), 0.0, np.zeros(len(p), bool)
        for i in order:
            if total < top_p:
                keep[i] = True
            total += p[i]
        p = np.where(keep, p, 0) / p[keep].sum()
    if min_p:
        p = np.where(p < min_p * p.max(), 0, p)
    return p / p.sum()


@pytest.mark.parametrize("size", [5, 300, 2000])
@pytest.mark.parametrize(
    "options",
    [{}, {"top_k": 3}, {"top_k": 10_000}, {"top_p": 0.5}, {"top_p": 0.999}, {"top_p": 1e-6}, {"top_p": 1.0},
     {"min_p": 0.2}, {"temperature": 0.3, "top_k": 50, "top_p": 0.9, "min_p": 0.05},
     {"temperature": 30.0, "top_p": 0.9}],
)  # fmt: skip
def test_what_is_kept(size, options):
    logits = RNG.normal(size=(4, size)).astype("float32") * 3
    options = {"temperature": 1.0, **options}
    ours = np.exp(np.asarray(generate.Sampling(**options).log_probabilities(jnp.array(logits))))
    for row, x in zip(ours, logits, strict=True):
        np.testing.assert_allclose(row, kept(x, **options), atol=2e-5)


def test_frequencies_of_draws():
    logits = jnp.array([[2.0, 1.0, 0.0, -1.0]])
    keys = random.split(random.key(0), 20_000)
    drawn = generate.Sampling(temperature=0.5, top_k=3).draw(keys, jnp.repeat(logits, 20_000, 0))
    found = np.bincount(np.asarray(drawn), minlength=4) / 20_000
    np.testing.assert_allclose(found, kept(logits[0], 0.5, 3), atol=0.012)


def test_repetition_penalty():
    seen = jnp.array([[True, True, False]])
    penalized = generate.Sampling(repetition_penalty=2.0).penalized(jnp.array([[4.0, -1.0, 1.5]]), seen)
    assert np.asarray(penalized).tolist() == [[2.0, -2.0, 1.5]]


@pytest.mark.parametrize(
    "options", [{"temperature": -1.0}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}, {"min_p": 2.0},
                {"repetition_penalty": 0.0}],
)  # fmt: skip
def test_wrong_options(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is out of range"):
        generate.Sampling(**options)


def test_misuse():
    config = models.gpt2.Config(100, 64, n_embd=16, n_layer=1, n_head=2)
    model = models.gpt2.Model(config, key=random.key(0))
    with pytest.raises(ValueError, match="needs a random key"):
        generate.tokens(model, [[1]], max_new_tokens=2, sampling=generate.Sampling(temperature=1.0))
    for prompts in ([], [[]], [[[1]]], [[0.5]]):
        with pytest.raises(ValueError, match=r"prompt"):
            generate.tokens(model, prompts, max_new_tokens=2)
    with pytest.raises(ValueError, match="num_beams"):
        generate.beams(model, [[1]], max_new_tokens=2, num_beams=0)
    with pytest.raises(ValueError, match="repetition penalty"):
        generate.speculate(model, model, [[1]], max_new_tokens=2, sampling=generate.Sampling(repetition_penalty=1.1))
    assert [r.size for r in generate.tokens(model, [[1]], max_new_tokens=0)] == [0]


def test_a_changed_model_is_not_decoded_with_old_weights():
    """Separate layers are kept between calls; arrays of a model may be assigned in between."""
    config = models.gpt2.Config(50, 64, n_embd=16, n_layer=2, n_head=2)
    model = models.gpt2.Model(config, key=random.key(0)).eval()
    other = models.gpt2.Model(config, key=random.key(5)).eval()
    before = generate.tokens(model, [[1, 2]], max_new_tokens=5)[0].tolist()
    model.blocks, model.embedding = other.blocks, other.embedding
    after = generate.tokens(model, [[1, 2]], max_new_tokens=5)[0].tolist()
    model.norm.scale = model.norm.scale * -1.0
    last = generate.tokens(model, [[1, 2]], max_new_tokens=5)[0].tolist()
    fresh = [models.gpt2.Model(config, key=random.key(i)).eval() for i in (0, 5)]
    fresh[1].position_embedding, fresh[1].norm = fresh[0].position_embedding, fresh[0].norm
    assert before == generate.tokens(fresh[0], [[1, 2]], max_new_tokens=5)[0].tolist()
    assert after == generate.tokens(fresh[1], [[1, 2]], max_new_tokens=5)[0].tolist()
    assert last != after


def test_buckets():
    assert [bucket(n) for n in (1, 32, 33, 64, 1000, 1024, 1025, 2049)] == [32, 32, 64, 64, 1024, 1024, 2048, 3072]
