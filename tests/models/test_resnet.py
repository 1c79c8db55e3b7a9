"""ResNet: the numbers of transformers, its files byte for byte, torchvision's names, training, and what is refused."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import models, nn, optim, random, train, tree
from atled.checkpoints import safetensors
from atled.models import resnet

GOLDEN = pathlib.Path(__file__).with_name("golden")
KINDS = ("resnet_basic", "resnet_bottleneck", "resnet_downsampled")
TINY = resnet.Config((1, 1), (8, 16), "basic", embedding_size=8, num_labels=3)


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
    before = {name: x for name, x in before.items() if not name.endswith("num_batches_tracked")}  # not a number we have
    assert {name: x.tobytes() for name, x in before.items()} == {name: x.tobytes() for name, x in after.items()}
    wanted, found = [json.loads((d / "config.json").read_text()) for d in (GOLDEN / kind, tmp_path)]
    both = found.keys() & wanted.keys()
    assert len(both) > 9 and {n: found[n] for n in both if n != "id2label"} == {
        n: wanted[n] for n in both if n != "id2label"
    }
    again, _ = models.load(tmp_path)
    assert again.config == model.config and tree.structure(again) == tree.structure(model)


def test_classes_have_their_published_names():
    assert models.load(GOLDEN / "resnet_bottleneck")[0].config.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    config = models.load(GOLDEN / "resnet_downsampled")[0].config
    assert config.labels == () and config.num_labels == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("classifier.1.bias"), r"missing: head/bias \(classifier\.1\.bias\)"),
        (lambda a: a.update(more=np.zeros(3)), "unused: more"),
        (
            lambda a: a.update({"resnet.embedder.embedder.normalization.running_var": np.ones(5, "float32")}),
            r"another shape: stem/normalization/variance is f32\[8\]",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(change, message, tmp_path):
    arrays = safetensors.load(GOLDEN / "resnet_basic")
    change(arrays)
    safetensors.save(tmp_path / "model.safetensors", arrays)
    shutil.copy(GOLDEN / "resnet_basic" / "config.json", tmp_path)
    with pytest.raises(ValueError, match=message):
        models.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_act", "gelu"), ("layer_type", "dense"), ("architectures", ["ResNetModel"])]
)
def test_what_would_change_the_numbers_is_refused(name, value):
    with pytest.raises(ValueError, match=f"ResNetConfig: {name} must be"):
        resnet.Config.from_published({name: value})


def test_each_stage_needs_a_depth_and_a_size():
    with pytest.raises(
        ValueError, match="ResNetConfig: depths and hidden_sizes must have an entry for each stage; got"
    ):
        resnet.Config((1, 2), (8, 16, 32))


@pytest.mark.parametrize("layer_type", ["basic", "bottleneck"])
def test_names_of_torchvision(layer_type):
    config = resnet.Config((2, 1), (16, 24), layer_type, embedding_size=16, num_labels=3)
    names = resnet.torchvision_names(config)
    model = resnet.Model(config, key=random.key(0))
    found = nn.state_dict(model, names)
    convolutions = [n for n in found if found[n].ndim == 4]
    assert convolutions == {
        "basic": [
            "conv1.weight", "layer1.0.conv1.weight", "layer1.0.conv2.weight", "layer1.1.conv1.weight",
            "layer1.1.conv2.weight", "layer2.0.conv1.weight", "layer2.0.conv2.weight", "layer2.0.downsample.0.weight",
        ],
        "bottleneck": [
            "conv1.weight", "layer1.0.conv1.weight", "layer1.0.conv2.weight", "layer1.0.conv3.weight",
            "layer1.1.conv1.weight", "layer1.1.conv2.weight", "layer1.1.conv3.weight", "layer2.0.conv1.weight",
            "layer2.0.conv2.weight", "layer2.0.conv3.weight", "layer2.0.downsample.0.weight",
        ],
    }[layer_type]  # fmt: skip
    for name in ("bn1.running_mean", "layer1.1.bn2.running_var", "layer2.0.downsample.1.bias", "fc.weight"):
        assert name in found
    counted = {**found, "bn1.num_batches_tracked": np.int64(3)}  # which PyTorch stores, and is ignored
    again = nn.load_state_dict(resnet.Model(config, key=random.key(1)), counted, names)
    for a, b in zip(tree.leaves(model), tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)


def toy():
    return random.normal(random.key(3), (8, 32, 32, 3)), jnp.arange(8) % 3


@pytest.mark.parametrize("remat", [False, True])
def test_statistics_are_not_lost_in_a_compiled_function(remat):
    model = resnet.Model(TINY, remat=remat, key=random.key(0))
    with pytest.raises(atled.errors.UnexpectedTracerError, match=r"mean|stages"):
        atled.jit(lambda images: model(images))(toy()[0])


def test_the_loss_decreases_and_remat_changes_nothing():
    after = []
    for remat in (False, True):
        state = train.State(resnet.Model(TINY, remat=remat, key=random.key(0)), optim.SGD(0.05, momentum=0.9))
        step, found = train.step(resnet.loss), []
        for _ in range(30):
            state, told = step(state, *toy())
            found.append(float(told["loss"]))
            if len(found) == 1:
                after.append([np.array(x) for x in tree.leaves(state.model)])
                moved = state.model.stages[1][0].layers[1].normalization
                assert float(abs(moved.mean).max()) > 0 and float(abs(moved.variance - 1).max()) > 0
        assert found[-1] < 0.3 * found[0]
    for a, b in zip(*after, strict=True):  # parameters and statistics
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_sizes_are_those_of_the_paper():
    counts = {
        "resnet-18": 11_689_512, "resnet-34": 21_797_672, "resnet-50": 25_557_032, "resnet-101": 44_549_160,
        "resnet-152": 60_192_808,
    }  # fmt: skip
    assert counts.keys() == resnet.SIZES.keys()
    for name, count in counts.items():  # without statistics
        model = atled.eval_shape(lambda key, name=name: resnet.Model(resnet.SIZES[name], key=key), random.key(0))
        assert sum([x.size for x in tree.leaves(nn.params(model))]) == count
