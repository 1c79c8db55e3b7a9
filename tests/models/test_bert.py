"""BERT: the numbers of transformers, its files byte for byte, training, and what is refused."""

import dataclasses
import json
import pathlib
import shutil

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import models, optim, random, train, tree
from atled.checkpoints import safetensors
from atled.models import bert

GOLDEN = pathlib.Path(__file__).with_name("golden")
KINDS = ("bert_model", "bert_masked_lm", "bert_pretraining")
TINY = bert.Config(30, 16, 2, 2, 24, 12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def close(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_those_of_transformers(kind):
    model, tokenizer = models.load(GOLDEN / kind)
    assert not model.training and tokenizer is None
    there = np.load(GOLDEN / kind / "computed.npz")
    mask = there["mask"] != 0
    run = atled.jit(lambda model, *args: (model.features(*args, mask=mask), model(*args, mask=mask)))
    features, out = run(model, there["ids"], there["types"])
    close(features[mask], there["features"][mask])
    close(out[mask], there["features" if kind == "bert_model" else "logits"][mask])
    if kind == "bert_model":
        close(model.pooled(features), there["pooled"])
    if kind == "bert_pretraining":
        close(model.next_sentence(model.pooled(features)), there["next_sentence"])


@pytest.mark.parametrize("kind", KINDS)
def test_saved_files_have_the_same_bytes(kind, tmp_path):
    model, _ = models.load(GOLDEN / kind)
    models.save(tmp_path, model)
    before, after = safetensors.load(GOLDEN / kind), safetensors.load(tmp_path)
    prefix = "bert." if kind == "bert_model" else ""  # which transformers leaves out if there is no head
    assert {prefix + name: x.tobytes() for name, x in before.items()} == {n: x.tobytes() for n, x in after.items()}
    wanted, found = [json.loads((d / "config.json").read_text()) for d in (GOLDEN / kind, tmp_path)]
    assert {name: found[name] for name in found.keys() & wanted.keys()} == {
        name: wanted[name] for name in found.keys() & wanted.keys()
    }
    again, _ = models.load(tmp_path)
    assert again.config == model.config and tree.structure(again) == tree.structure(model)


def test_padding_changes_nothing():
    model = bert.Model(TINY, key=random.key(0)).eval()
    ids = jnp.array([[3, 4, 5, 6, 7, 0, 0, 0], [3, 4, 5, 6, 7, 8, 9, 8]])
    mask = jnp.arange(8) < 5
    a, b = atled.jit(lambda model: model(ids, mask=jnp.stack([mask, mask])))(model)[:, :5]
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="attention: a mask must be booleans"):
        atled.jit(lambda model: model(ids, mask=jnp.ones((2, 8))))(model)


def test_arrays_that_repeat_others_are_ignored(tmp_path):
    arrays = safetensors.load(GOLDEN / "bert_masked_lm")
    arrays["cls.predictions.decoder.weight"] = arrays["bert.embeddings.word_embeddings.weight"]
    arrays["cls.predictions.decoder.bias"] = arrays["cls.predictions.bias"]
    arrays["bert.embeddings.position_ids"] = np.arange(12)[None]
    safetensors.save(tmp_path / "model.safetensors", arrays)
    shutil.copy(GOLDEN / "bert_masked_lm" / "config.json", tmp_path)
    assert models.load(tmp_path)[0].config.architectures == ("BertForMaskedLM",)


def test_the_first_published_files_are_read(tmp_path):
    """Their layer norms have gamma and beta, and arrays of heads that the configuration does not name."""
    wanted = models.load(GOLDEN / "bert_masked_lm")[0]
    arrays = safetensors.load(GOLDEN / "bert_masked_lm")
    arrays = {n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
              for n, x in arrays.items()}  # fmt: skip
    arrays["bert.pooler.dense.weight"], arrays["cls.seq_relationship.bias"] = np.zeros((2, 2)), np.zeros(2)
    safetensors.save(tmp_path / "model.safetensors", arrays)
    shutil.copy(GOLDEN / "bert_masked_lm" / "config.json", tmp_path)
    for a, b in zip(tree.leaves(models.load(tmp_path)[0]), tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("bert.encoder.layer.1.output.dense.bias"), r"missing: blocks/layers/down/bias \(bert.enc"),
        (lambda a: a.update(more=np.zeros(3)), "unused: more"),
        (
            lambda a: a.update({"cls.predictions.bias": np.zeros(3, "float32")}),
            r"another shape: head/bias is f32\[60\]",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(change, message, tmp_path):
    arrays = safetensors.load(GOLDEN / "bert_masked_lm")
    change(arrays)
    safetensors.save(tmp_path / "model.safetensors", arrays)
    shutil.copy(GOLDEN / "bert_masked_lm" / "config.json", tmp_path)
    with pytest.raises(ValueError, match=message):
        models.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_act", "gelu_new"), ("position_embedding_type", "relative_key"), ("is_decoder", True),
        ("tie_word_embeddings", False), ("add_cross_attention", True),
        ("architectures", ["BertForSequenceClassification"]),
    ],
)  # fmt: skip
def test_what_would_change_the_numbers_is_refused(name, value):
    with pytest.raises(ValueError, match=f"BertConfig: {name} must be"):
        bert.Config.from_published({name: value})


def test_a_file_without_a_head_is_read_as_one():
    config = bert.Config.from_published({"architectures": ["BertModel"], "hidden_size": 8})
    assert config == bert.Config(hidden_size=8, architectures=("BertModel",))
    assert bert.Config.from_published(config.published()) == config


def made(kind):
    return bert.Model(dataclasses.replace(TINY, architectures=(kind,)), key=random.key(0)).eval()


def test_what_a_model_lacks_is_said():
    ids = jnp.ones((1, 13), "int32")
    model = made("BertForMaskedLM")
    with pytest.raises(ValueError, match="Bert: BertForMaskedLM has no pooler"):
        model.pooled(jnp.ones((1, 4, 16)))
    with pytest.raises(ValueError, match="Bert: there are 12 positions; got 13 tokens"):
        model(ids)
    with pytest.raises(ValueError, match=r"bert\.loss: BertModel has no head"):
        bert.loss(made("BertModel"), ids[:, :4], ids[:, :4], ids[:, :4] > 0)


def toy():
    labels = random.randint(random.key(3), (4, 8), 2, 30)
    where = random.bernoulli(random.key(4), 0.3, (4, 8))
    return jnp.where(where, 1, labels), labels, where


def test_dropout_is_for_training():
    ids, config = toy()[0], dataclasses.replace(TINY, hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    model = bert.Model(config, key=random.key(0))
    a, b = [atled.jit(lambda model, key: model(ids, key=key))(model, key) for key in random.split(random.key(1))]
    assert float(abs(a - b).max()) > 0.01


def test_the_loss_decreases_and_remat_changes_nothing():
    after = []
    for remat in (False, True):
        state = train.State(bert.Model(TINY, remat=remat, key=random.key(0)), optim.SGD(0.1, momentum=0.9))
        step, found = train.step(lambda model, ids, labels, where: bert.loss(model, ids, labels, where)), []
        for _ in range(40):
            state, told = step(state, *toy())
            found.append(float(told["loss"]))
            if len(found) == 1:
                after.append([np.array(x) for x in tree.leaves(state.model)])
        assert abs(found[0] - np.log(30)) < 0.5 and found[-1] < 0.7 * found[0]
    for a, b in zip(*after, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_sizes_are_those_of_the_papers():
    counts = {"bert-tiny": 4_385_920, "bert-base-uncased": 109_482_240, "bert-large-uncased": 335_141_888}
    for name, count in counts.items():  # without the heads
        config = dataclasses.replace(bert.SIZES[name], architectures=("BertModel",))
        model = atled.eval_shape(lambda key, config=config: bert.Model(config, key=key), random.key(0))
        assert sum([x.size for x in tree.leaves(model)]) == count
