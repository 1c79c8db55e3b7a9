"""Llama, Mistral and GPT-2 against golden files of `transformers`, and the laws of decoding with a cache."""

import json
import pathlib

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import generate, models, nn, optim, random, train
from atled.checkpoints import gguf, safetensors

GOLDEN = pathlib.Path(__file__).parent / "golden"
DECODERS = ["llama", "llama_scaled", "llama_linear", "mistral", "gpt2"]
_loaded = {}


def loaded(name):
    if name not in _loaded:
        _loaded[name] = models.load(GOLDEN / name)[0]
    return _loaded[name]


def until_end(row):
    return row[: row.index(2) + 1] if 2 in row else row


@pytest.mark.parametrize("name", DECODERS)
def test_logits(name):
    found = np.load(GOLDEN / name / "logits.npz")
    ours = np.asarray(atled.jit(loaded(name).__class__.__call__)(loaded(name), found["ids"]))
    assert abs(ours - found["logits"]).max() <= 2e-5 * abs(found["logits"]).max()


@pytest.mark.parametrize("name", DECODERS)
def test_greedy_and_beams(name):
    found = json.loads((GOLDEN / name / "generated.json").read_text())
    rows = generate.tokens(loaded(name), found["prompts"], max_new_tokens=16, stop_tokens=[2])
    assert [row.tolist() for row in rows] == [until_end(row) for (row,) in found["greedy"]]
    beams = generate.beams(loaded(name), found["prompts"], max_new_tokens=16, num_beams=4, stop_tokens=[2])
    assert [[b.tokens.tolist() for b in row] for row in beams] == [
        [until_end(r) for r in row] for row in found["beams"]
    ]


@pytest.mark.parametrize("is_unstacked", [False, True])
@pytest.mark.parametrize("name", DECODERS)
def test_decoding_with_a_cache_is_the_whole_forward_pass(name, is_unstacked):
    """At every position, for rows of different lengths, in chunks of different lengths."""
    model = nn.unstack(loaded(name)) if is_unstacked else loaded(name)
    ids, lengths = np.random.default_rng(0).integers(0, 60, (3, 20)).astype("int32"), np.array([7, 3, 5])
    whole = np.asarray(model(ids))
    decoding = nn.init_cache(model, 3, 20)
    prompt = np.where(np.arange(7) < lengths[:, None], ids[:, :7], 59)  # padding of any kind
    first = np.asarray(decoding(prompt))
    for row, n in enumerate(lengths):
        np.testing.assert_allclose(first[row, :n], whole[row, :n], rtol=1e-4, atol=1e-4)
    decoding, at = nn.seek(decoding, lengths), lengths
    for count in (1, 4, 1, 2):
        chunk = np.stack([ids[row, n : n + count] for row, n in enumerate(at)])
        out = np.asarray(decoding(chunk))
        for row, n in enumerate(at):
            np.testing.assert_allclose(out[row], whole[row, n : n + count], rtol=1e-4, atol=1e-4)
        at = at + count


@pytest.mark.parametrize("name", DECODERS)
def test_rows_do_not_depend_on_other_rows(name):
    """Greedily and sampled: alone, in a batch, and with longer prompts beside them."""
    model, rng = loaded(name), np.random.default_rng(1)
    prompts = [rng.integers(3, 60, n).tolist() for n in (5, 1, 40)]
    for sampling in (generate.Sampling(), generate.Sampling(temperature=1.0, top_k=20, top_p=0.9, min_p=0.01)):
        how = {"max_new_tokens": 8, "sampling": sampling, "key": random.key(3)}
        together = generate.tokens(model, prompts, **how)
        for n in (1, 2):
            alone = generate.tokens(model, prompts[:n], **how)
            assert [r.tolist() for r in alone] == [r.tolist() for r in together[:n]]


def test_sampling_is_that_of_the_forward_pass():
    """With the same key, decoding draws what the whole forward pass would."""
    model, prompt, key = loaded("llama"), [5, 9, 4], random.key(7)
    sampling = generate.Sampling(temperature=0.9, top_p=0.8, repetition_penalty=1.3)
    row = generate.tokens(model, [prompt], max_new_tokens=10, sampling=sampling, key=key)[0].tolist()
    own, so_far = random.fold_in(key, 0), list(prompt)
    for i, token in enumerate(row):
        logits = model(np.array([so_far], "int32"))[:, -1]
        seen = jnp.zeros((1, 60), bool).at[0, np.array(so_far)].set(True)
        assert int(sampling.draw(random.fold_in(own, i)[None], logits, seen)[0]) == token
        so_far.append(token)


def test_speculative_decoding_has_the_same_distribution():
    """Greedily the same tokens; sampled, the frequencies of pairs of tokens agree with those of the model alone."""
    model, draft = loaded("llama"), loaded("mistral")
    found = json.loads((GOLDEN / "llama" / "generated.json").read_text())
    rows = generate.speculate(model, draft, found["prompts"], max_new_tokens=16, num_draft_tokens=3, stop_tokens=[2])
    assert [row.tolist() for row in rows] == [until_end(row) for (row,) in found["greedy"]]
    sampling, count = generate.Sampling(temperature=0.7, top_k=4), 3000
    how = {"max_new_tokens": 3, "sampling": sampling}
    alone = generate.tokens(model, [[7, 8]] * count, key=random.key(0), **how)
    drafted = generate.speculate(model, draft, [[7, 8]] * count, key=random.key(1), num_draft_tokens=2, **how)
    again = generate.tokens(model, [[7, 8]] * count, key=random.key(2), **how)
    expected, got, other = [counted(rows) for rows in (alone, drafted, again)]
    assert distance(expected, got, count) < max(0.05, 1.6 * distance(expected, other, count))


def counted(rows):
    seen = {}
    for row in rows:
        seen[tuple(row.tolist())] = seen.get(tuple(row.tolist()), 0) + 1
    return seen


def distance(a, b, count):
    """The total variation distance of two counts of the same number of draws."""
    return sum([abs(a.get(k, 0) - b.get(k, 0)) for k in {*a, *b}]) / (2 * count)


@pytest.mark.parametrize("name", DECODERS)
def test_saving_gives_the_published_bytes(name, tmp_path):
    models.save(tmp_path, loaded(name))
    ours, theirs = safetensors.load(tmp_path), safetensors.load(GOLDEN / name)
    assert ours.keys() == theirs.keys()
    for key, x in theirs.items():
        assert x.dtype == ours[key].dtype and x.tobytes() == ours[key].tobytes(), key
    assert models.load(tmp_path)[0].config == loaded(name).config


@pytest.mark.parametrize("name", DECODERS)
def test_loading_into_shards(name):
    mesh = atled.make_mesh((1, 1), ("data", "model"), devices=atled.devices()[:1])
    sharded = models.load(GOLDEN / name, mesh=mesh)[0]
    for a, b in zip(atled.tree.leaves(sharded), atled.tree.leaves(loaded(name)), strict=True):
        assert a.sharding.mesh == mesh and (np.asarray(a) == np.asarray(b)).all()
    half = models.load(GOLDEN / name, dtype="bfloat16")[0]
    assert {x.dtype.name for x in atled.tree.leaves(half)} == {"bfloat16"}


def test_wrong_weights_are_reported_by_path(tmp_path):
    models.save(tmp_path, loaded("llama"))
    arrays = {k: np.array(x) for k, x in safetensors.load(tmp_path).items()}
    norm = arrays.pop("model.layers.1.mlp.up_proj.weight")
    arrays["model.layers.0.self_attn.rotary"] = norm
    arrays["model.layers.1.self_attn.q_proj.weight"] = norm
    safetensors.save(tmp_path / "model.safetensors", arrays)
    with pytest.raises(ValueError) as raised:
        models.load(tmp_path)
    for text in ("missing: blocks/layers/up/weight", "of another shape: blocks/layers/attention/query_proj/weight",
                 "q_proj.weight gives (16, 24)", "unused: model.layers.0.self_attn.rotary"):  # fmt: skip
        assert text in str(raised.value)


@pytest.mark.parametrize(("entry", "value"), [("hidden_act", "gelu"), ("model_type", "llama5"),
                                              ("rope_parameters", {"rope_type": "yarn", "factor": 2.0})])  # fmt: skip
def test_unsupported_configurations_raise(entry, value, tmp_path):
    models.save(tmp_path, loaded("llama"))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, entry: value}))
    with pytest.raises(ValueError, match=entry if isinstance(value, str) else "rope_type"):
        models.load(tmp_path)


@pytest.mark.parametrize("architecture", [models.llama, models.gpt2])
def test_training_with_and_without_remat(architecture):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2} if architecture is models.llama else {
        "n_layer": 2, "n_head": 2, "n_embd": 16, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "attn_pdrop": 0.0,
    }  # fmt: skip
    if architecture is models.llama:
        sizes.update(hidden_size=16, intermediate_size=24)
    config, ids = architecture.Config(vocab_size=30, **sizes), np.arange(24).reshape(2, 12).astype("int32")
    plain, saved = [architecture.Model(config, key=random.key(0), remat=r) for r in (False, True)]
    (a, _, ga), (b, _, gb) = [train.gradients(architecture.loss)(m, ids) for m in (plain, saved)]
    assert abs(a - b) < 1e-6
    for x, y in zip(atled.tree.leaves(ga), atled.tree.leaves(gb), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), atol=1e-5)
    state, step = train.State(plain, optim.Adam(1e-2)), None
    for _ in range(10):
        step, model, grads = train.gradients(architecture.loss)(state.model, ids)
        state = state.apply_gradients(model, grads)
    assert step < 0.8 * a
    where = np.ones_like(ids, bool)
    where[:, 6:] = False
    np.testing.assert_allclose(architecture.loss(plain, ids, where), architecture.loss(plain, ids[:, :6]), rtol=1e-5)


def test_quantized_models_decode():
    model = loaded("llama")
    small = nn.quantize(model)
    found = np.load(GOLDEN / "llama" / "logits.npz")
    assert abs(np.asarray(small(found["ids"])) - found["logits"]).max() < 0.1 * abs(found["logits"]).max()
    rows = generate.tokens(small, [[5, 6], [7]], max_new_tokens=4)
    whole = np.asarray(small(np.array([[5, 6, *rows[0][:3]]], "int32")))
    assert whole[0, 1:].argmax(-1).tolist() == rows[0].tolist()


@pytest.mark.parametrize("name", ["llama", "llama_plain"])
def test_gguf_files(name, tmp_path):
    """Written with GGUF's names and its order of rotated rows; with an own head and with a tied one."""
    config = models.llama.Config(60, 16, 24, 2, 4, 2, tie_word_embeddings=name == "llama_plain")
    model = models.llama.Model(config, key=random.key(0)).eval()
    arrays = {}
    models.save(tmp_path, model)
    parts = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "ffn_norm"}  # fmt: skip
    outer = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
             "lm_head.weight": "output.weight"}  # fmt: skip
    for full, x in safetensors.load(tmp_path).items():
        if full in outer:
            arrays[outer[full]] = np.array(x)
            continue
        _, _, layer, *path, _ = full.split(".")
        short, x = parts[".".join(path)], np.array(x)
        if short in ("attn_q", "attn_k"):
            x = x.reshape(4 if short == "attn_q" else 2, 2, -1, 16).swapaxes(1, 2).reshape(x.shape)
        arrays[f"blk.{layer}.{short}.weight"] = x
    metadata = {
        "general.architecture": "llama", "llama.embedding_length": 16, "llama.feed_forward_length": 24,
        "llama.block_count": 2, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
        "llama.context_length": 4096, "llama.attention.layer_norm_rms_epsilon": np.float32(1e-5),
    }  # fmt: skip
    gguf.save(tmp_path / "model.gguf", metadata, arrays)
    loaded, tokenizer = models.load(tmp_path / "model.gguf")
    ids = np.arange(20, dtype="int32").reshape(2, 10)
    assert tokenizer is None and loaded.config.tie_word_embeddings == config.tie_word_embeddings
    np.testing.assert_allclose(np.asarray(loaded(ids)), np.asarray(model(ids)), atol=1e-5)
    gguf.save(tmp_path / "other.gguf", {**metadata, "general.architecture": "rwkv"}, arrays)
    with pytest.raises(ValueError, match="must be of llama; got 'rwkv'"):
        models.load(tmp_path / "other.gguf")
