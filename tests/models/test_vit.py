"""ViT: the numbers of transformers, its files byte for byte, training, and what is refused."""

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
from atled.models import vit

GOLDEN = pathlib.Path(__file__).with_name("golden")
KINDS = ("vit_plain", "vit_rectangles")
TINY = vit.Config(16, 2, 2, 24, 4, 8, num_labels=3)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_those_of_transformers(kind):
    model, tokenizer = models.load(GOLDEN / kind)
    assert not model.training and tokenizer is None
    there = np.load(GOLDEN / kind / "computed.npz")
    logits = atled.jit(lambda model, images: model(images))(model, there["images"])
    np.testing.assert_allclose(logits, there["logits"], rtol=0, atol=2e-5 * abs(there["logits"]).max())


@pytest.mark.parametrize("kind", KINDS)
def test_saved_files_have_the_same_bytes(kind, tmp_path):
    model, _ = models.load(GOLDEN / kind)
    models.save(tmp_path, model)
    before, after = safetensors.load(GOLDEN / kind), safetensors.load(tmp_path)
    assert {name: x.tobytes() for name, x in before.items()} == {name: x.tobytes() for name, x in after.items()}
    wanted, found = [json.loads((d / "config.json").read_text()) for d in (GOLDEN / kind, tmp_path)]
    both = found.keys() & wanted.keys()
    assert len(both) > 14 and {n: found[n] for n in both} == {n: wanted[n] for n in both}
    again, _ = models.load(tmp_path)
    assert again.config == model.config and tree.structure(again) == tree.structure(model)


def test_classes_have_their_published_names():
    config = models.load(GOLDEN / "vit_rectangles")[0].config
    assert config.labels == ("cat", "dog", "owl") and config.num_labels == 3
    assert config.image_shape == (8, 18) and config.num_patches == 6
    config = models.load(GOLDEN / "vit_plain")[0].config
    assert config.labels == () and config.num_labels == 2
    eleven = {"id2label": {str(i): f"class {i}" for i in (10, *range(10))}}
    assert vit.Config.from_published(eleven).labels == tuple([f"class {i}" for i in range(11)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("vit.embeddings.cls_token"), r"missing: embeddings/cls_token \(vit\.embeddings\.cls_token\)"),
        (lambda a: a.update(more=np.zeros(3)), "unused: more"),
        (lambda a: a.update({"classifier.bias": np.zeros(5, "float32")}), r"another shape: head/bias is f32\[2\]"),
    ],
)
def test_weights_that_do_not_fit_are_named(change, message, tmp_path):
    arrays = safetensors.load(GOLDEN / "vit_plain")
    change(arrays)
    safetensors.save(tmp_path / "model.safetensors", arrays)
    shutil.copy(GOLDEN / "vit_plain" / "config.json", tmp_path)
    with pytest.raises(ValueError, match=message):
        models.load(tmp_path)


@pytest.mark.parametrize(("name", "value"), [("hidden_act", "quick_gelu"), ("architectures", ["ViTModel"])])
def test_what_would_change_the_numbers_is_refused(name, value):
    with pytest.raises(ValueError, match=f"ViTConfig: {name} must be"):
        vit.Config.from_published({name: value})


@pytest.mark.parametrize("shape", [(2, 4, 16, 3), (2, 8, 8, 1), (8, 8, 3), (2, 12, 12, 3)])
def test_images_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"ViT: images must have the shape \(batch, 8, 8, 3\); got"):
        vit.Model(TINY, key=random.key(0))(jnp.ones(shape))


def toy():
    return random.normal(random.key(3), (8, 8, 8, 3)), jnp.arange(8) % 3


def test_dropout_is_for_training():
    config = dataclasses.replace(TINY, hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    model, (images, _) = vit.Model(config, key=random.key(0)), toy()
    a, b = [atled.jit(lambda model, key: model(images, key=key))(model, key) for key in random.split(random.key(1))]
    assert float(abs(a - b).max()) > 1e-3
    np.testing.assert_allclose(model.eval()(images), vit.Model(TINY, key=random.key(0))(images), rtol=1e-5, atol=1e-6)


def test_the_loss_decreases_and_remat_changes_nothing():
    after = []
    for remat in (False, True):
        state = train.State(vit.Model(TINY, remat=remat, key=random.key(0)), optim.SGD(0.1, momentum=0.9))
        step, found = train.step(lambda model, images, labels: vit.loss(model, images, labels)), []
        for _ in range(40):
            state, told = step(state, *toy())
            found.append(float(told["loss"]))
            if len(found) == 1:
                after.append([np.array(x) for x in tree.leaves(state.model)])
        assert abs(found[0] - np.log(3)) < 0.2 and found[-1] < 0.5 * found[0]
    for a, b in zip(*after, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_sizes_are_those_of_the_papers():
    counts = {
        "vit-ti-16": 5_717_416, "vit-s-16": 22_050_664, "vit-s-32": 22_878_952, "vit-b-16": 86_567_656,
        "vit-b-32": 88_224_232, "vit-l-16": 304_326_632, "vit-l-32": 306_535_400, "vit-h-14": 632_045_800,
    }  # fmt: skip
    assert counts.keys() == vit.SIZES.keys()
    for name, count in counts.items():
        model = atled.eval_shape(lambda key, name=name: vit.Model(vit.SIZES[name], key=key), random.key(0))
        assert sum([x.size for x in tree.leaves(model)]) == count
