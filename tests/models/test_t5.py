"""T5: the numbers and tokens of transformers, its files byte for byte, decoding, training, and what is refused."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import generate, models, nn, optim, random, train, tree
from atled.checkpoints import safetensors
from atled.models import t5

GOLDEN = pathlib.Path(__file__).with_name("golden")
KINDS = ("t5", "t5_v1_1", "t5_published")


def close(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


def loaded(kind):
    (model, tokenizer), there = models.load(GOLDEN / kind), np.load(GOLDEN / kind / "computed.npz")
    assert not model.training and tokenizer is None
    return model, there, np.arange(30) < there["lengths"][:, None]


@pytest.mark.parametrize("kind", ["t5", "t5_published"])  # t5_v1_1: see decoding
def test_numbers_are_those_of_transformers(kind):
    model, there, where = loaded(kind)

    def outputs(model, ids, decoder_ids, labels, where):
        return model(ids, decoder_ids), model(ids, decoder_ids, where), t5.loss(model, ids, labels, where)

    got = atled.jit(outputs)(model, there["ids"], there["decoder_ids"], there["labels"], where)
    for name, x in zip(("logits", "padded_logits", "loss"), got, strict=True):
        close(x, there[name])


@pytest.mark.parametrize("kind", ["t5", "t5_published"])
def test_tokens_are_those_of_transformers(kind):
    model, there, _ = loaded(kind)
    prompts = [row[:n] for row, n in zip(there["ids"], there["lengths"], strict=True)]
    end = model.config.eos_token_id
    got = generate.tokens(model, prompts, max_new_tokens=12, stop_tokens=[end])
    for row, wanted in zip(got, there["tokens"], strict=True):
        stops = np.nonzero(wanted == end)[0]
        assert row.tolist() == wanted[: stops[0] + 1 if len(stops) else None].tolist()
    assert len({len(row) for row in got}) > 1


def test_decoding_with_a_cache_gives_the_numbers_of_the_whole():
    model, there, where = loaded("t5_v1_1")
    decoder_ids, whole = there["decoder_ids"], there["padded_logits"]
    encoded = atled.jit(t5.T5.encode)(model, there["ids"], where)
    assert encoded.encoder is None and encoded.config == model.config
    decoding, run = nn.init_cache(encoded, 6, 30), atled.jit(lambda m, x: (m.logits(m.features(x)), m))
    cross, own = [getattr(decoding.decoder.blocks.layers, n).cache for n in ("cross_attention", "attention")]
    assert sorted(cross) == ["key", "mask", "value"] and own["key"].shape == (2, 6, 3, 30, 4)
    close(run(encoded, decoder_ids)[0], whole)
    for start, end in [(0, 8), *[(i, i + 1) for i in range(8, 25)]]:
        logits, decoding = run(decoding, decoder_ids[:, start:end])
        close(logits, whole[:, start:end])
    here = np.array([3, 9, 20, 0, 24, 7])  # each row at its own position
    logits, _ = run(nn.seek(decoding, here), np.take_along_axis(decoder_ids, here[:, None], 1))
    close(logits, np.take_along_axis(whole, here[:, None, None], 1))


def test_a_cache_of_the_whole_model_is_the_decoders():
    model, there, where = loaded("t5")
    decoding, run = nn.init_cache(model, 6, 30), atled.jit(lambda m, *args: (m(*args), m))
    for i in range(0, 6, 3):
        logits, decoding = run(decoding, there["ids"], there["decoder_ids"][:, i : i + 3], where)
        close(logits, there["padded_logits"][:, i : i + 3])


def test_features_need_a_context():
    model, there, _ = loaded("t5")
    with pytest.raises(ValueError, match="T5: features need the tokens of the encoder"):
        model.features(there["decoder_ids"])


@pytest.mark.parametrize("kind", KINDS)
def test_saved_files_have_the_same_bytes(kind, tmp_path):
    model, _, _ = loaded(kind)
    models.save(tmp_path, model)
    before, after = safetensors.load(GOLDEN / kind), safetensors.load(tmp_path)
    assert {n: x.tobytes() for n, x in before.items()} == {n: x.tobytes() for n, x in after.items()}
    wanted, found = [json.loads((d / "config.json").read_text()) for d in (GOLDEN / kind, tmp_path)]
    both = found.keys() & wanted.keys() - {"tie_word_embeddings"}  # always True in transformers 5
    assert {n: found[n] for n in both} == {n: wanted[n] for n in both} | (
        {"num_decoder_layers": None} if found["num_decoder_layers"] is None else {}
    )
    again, _ = models.load(tmp_path)
    assert again.config == model.config and tree.structure(again) == tree.structure(model)


@pytest.mark.parametrize("kind", ["t5", "t5_v1_1"])
def test_loading_into_shards(kind):
    mesh = atled.make_mesh((1, 1), ("data", "model"), devices=atled.devices()[:1])
    sharded, _ = models.load(GOLDEN / kind, mesh=mesh)
    model, _, _ = loaded(kind)
    for a, b in zip(tree.leaves(sharded), tree.leaves(model), strict=True):
        assert a.sharding.mesh == mesh and (np.asarray(a) == np.asarray(b)).all()
    specs = nn.shardings(model, t5.SHARDING, mesh)
    assert str(specs.decoder.blocks.layers.mlp["wo"].weight.spec) == "P(None, 'model', 'data')"
    assert str(specs.encoder.relative.weight.spec) == "P()"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("lm_head.weight"), r"missing: head/weight \(lm_head.weight\)"),
        (
            lambda a: a.pop("decoder.block.1.layer.2.DenseReluDense.wo.weight"),
            r"missing: decoder/blocks/layers/mlp/wo/weight \(decoder.block.1.layer.2.DenseReluDense.wo.weight\)",
        ),
        (lambda a: a.update(more=np.zeros(3)), "unused: more"),
        (
            lambda a: a.update({"encoder.final_layer_norm.weight": np.zeros(3, "float32")}),
            r"another shape: encoder/norm/scale is f32\[16\]",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(change, message, tmp_path):
    arrays = safetensors.load(GOLDEN / "t5_v1_1")
    change(arrays)
    safetensors.save(tmp_path / "model.safetensors", arrays)
    shutil.copy(GOLDEN / "t5_v1_1" / "config.json", tmp_path)
    with pytest.raises(ValueError, match=message):
        models.load(tmp_path)


def test_copies_of_the_embedding_and_an_unused_table_are_ignored(tmp_path):
    arrays = safetensors.load(GOLDEN / "t5")
    for side in ("encoder", "decoder"):
        arrays[f"{side}.embed_tokens.weight"] = arrays["shared.weight"]
    arrays["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = np.ones((8, 3), "float32")
    safetensors.save(tmp_path / "model.safetensors", arrays)
    shutil.copy(GOLDEN / "t5" / "config.json", tmp_path)
    assert models.load(tmp_path)[0].config == loaded("t5")[0].config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("feed_forward_proj", "gated-silu"), ("dense_act_fn", "gelu"), ("is_encoder_decoder", False),
        ("is_decoder", True), ("architectures", ["T5EncoderModel"]),
    ],
)  # fmt: skip
def test_what_would_change_the_numbers_is_refused(name, value):
    with pytest.raises(ValueError, match=f"T5Config: {name} must be"):
        t5.Config.from_published({name: value})


def test_the_head_is_tied_unless_a_file_says_otherwise():
    def tied(**found):
        return t5.Config.from_published(found).tie_word_embeddings

    assert tied() and tied(tie_word_embeddings=True) and tied(tie_word_embeddings=None)
    assert not tied(tie_word_embeddings=False)
    assert not tied(tie_word_embeddings=True, scale_decoder_outputs=False)  # T5 1.1, written by transformers 5
    config = t5.Config.from_published({"decoder_start_token_id": None, "num_decoder_layers": None, "eos_token_id": 5})
    assert config == t5.Config(eos_token_id=5) and t5.Config.from_published(config.published()) == config


def test_the_loss_decreases_and_remat_changes_nothing():
    model, there, where = loaded("t5")
    before, batch = tree.leaves(model), [x[:, :5] for x in (there["ids"], there["labels"], where)]
    config = model.config
    remade = atled.eval_shape(lambda key: t5.Model(config, remat=True, key=key), random.key(0)).eval()
    assert remade.encoder.blocks.remat and remade.decoder.blocks.remat and not model.decoder.blocks.remat
    step, found = train.step(t5.loss), []
    for structure in map(tree.structure, (model, remade)):
        state, losses = train.State(structure.unflatten([jnp.array(x) for x in before]), optim.Adam(2e-2)), []
        for _ in range(30):
            state, told = step(state, *batch)
            losses.append(float(told["loss"]))
        assert losses[-1] < 0.5 * losses[0]
        assert all([bool((a != b).any()) for a, b in zip(before, tree.leaves(state.model), strict=True)])
        found.append(losses[:10])
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_dropout_is_for_training():
    model, there, _ = loaded("t5")
    encoder = model.train().encoder
    run, x = atled.jit(lambda key: encoder(model.embedding.weight[there["ids"][:2]], key=key)), jnp.ones((2, 3, 16))
    assert bool((run(random.key(1)) != run(random.key(2))).any())
    with pytest.raises(TypeError, match="Dropout: a key must be given while training"):
        atled.eval_shape(encoder, x)


def test_sizes_are_those_of_the_papers():
    counts = {
        "t5-small": 60_506_624, "t5-11b": 11_307_321_344, "t5-v1_1-small": 76_961_152, "t5-v1_1-xxl": 11_135_332_352,
    }  # fmt: skip
    for name, count in counts.items():
        model = atled.eval_shape(lambda key, name=name: t5.Model(t5.SIZES[name], key=key), random.key(0))
        assert sum([x.size for x in tree.leaves(model)]) == count
