"""Tokenizers in the files of models: what files say, and files that are damaged or odd."""

from __future__ import annotations

import importlib
import json
import pathlib
import random
from typing import Any

import golden_cases as golden
import numpy as np
import pytest

from atled import data, models, text
from atled.checkpoints import gguf
from atled.random import key
from atled.text.byte_pair import ByteLevelBPE

CONTROL = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2}


def changed(path: str, value: Any, name: str = "gpt2") -> dict[str, Any]:
    """The content of a file with another value at a place such as "model.vocab"; `...` removes it."""
    found = golden.content(name)
    *parents, last = path.split(".")
    inner = found
    for part in parents:
        inner = inner[int(part) if isinstance(inner, list) else part]
    if value is ...:
        del inner[last]
    else:
        inner[int(last) if isinstance(inner, list) else last] = value
    return found


def metadata(name: str, pre: str, **more: Any) -> dict[str, Any]:
    """What a GGUF file has of a golden tokenizer."""
    content = golden.content(name)
    vocab, merges = content["model"]["vocab"], content["model"]["merges"]
    special = {entry["id"] for entry in content["added_tokens"]}
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": sorted(vocab, key=vocab.__getitem__),
        "tokenizer.ggml.token_type": np.array([3 if i in special else 1 for i in range(len(vocab))], "int32"),
        "tokenizer.ggml.merges": [pair if isinstance(pair, str) else " ".join(pair) for pair in merges],
        **{f"tokenizer.{key.replace('__', '.')}": value for key, value in more.items()},
    }


def written(there: pathlib.Path, found: dict[str, Any]) -> pathlib.Path:
    gguf.save(there / "model.gguf", {k: v for k, v in found.items() if v is not None}, {})
    return there / "model.gguf"


# -- directories ------------------------------------------------------------------------------------------------------


def test_a_directory(tmp_path):
    golden.put(
        tmp_path,
        tokenizer_config__json={
            "bos_token": "<|im_start|>",
            "eos_token": {"content": "<|im_end|>"},
            "chat_template": "x",
        },
        generation_config__json={"eos_token_id": [0, 2]},
        config__json={"eos_token_id": 7},
    )
    tokenizer = text.load_tokenizer(tmp_path)
    assert tokenizer.end_tokens == {0, 2} and tokenizer.chat_template == "x" and tokenizer.start_tokens == ()
    assert tokenizer.named_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    assert text.load_tokenizer(tmp_path / "tokenizer.json").end_tokens == {0, 2}


@pytest.mark.parametrize(
    "files, ends",
    [
        ({}, set()),
        ({"config__json": {"eos_token_id": 2}}, {2}),
        ({"config__json": {"eos_token_id": 2}, "generation_config__json": {"eos_token_id": 0}}, {0}),
        ({"config__json": {"eos_token_id": 2}, "generation_config__json": {}}, {2}),
        ({"config__json": {"eos_token_id": -1}}, set()),
        ({"config__json": {"eos_token_id": 0}, "tokenizer_config__json": {"eos_token": "<|im_end|>"}}, {0, 2}),
        ({"special_tokens_map__json": {"eos_token": "<|im_end|>"}}, {2}),
        ({"special_tokens_map__json": {"eos_token": "a"}, "tokenizer_config__json": {"eos_token": "<|im_end|>"}}, {2}),
        ({"tokenizer_config__json": {"eos_token": "no token"}}, set()),
    ],
)
def test_ends_of_generation(tmp_path, files, ends):
    assert text.load_tokenizer(golden.put(tmp_path, **files)).end_tokens == ends


def test_chat_templates(tmp_path):
    given = [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
    golden.put(tmp_path, tokenizer_config__json={"chat_template": given})
    assert text.load_tokenizer(tmp_path).chat_template == {"default": "a", "tool_use": "b"}
    golden.put(tmp_path, chat_template__jinja="\u00e9")
    assert text.load_tokenizer(tmp_path).chat_template == {"default": "\u00e9", "tool_use": "b"}
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("r")
    golden.put(tmp_path, tokenizer_config__json={})
    assert text.load_tokenizer(tmp_path).chat_template == {"default": "\u00e9", "rag": "r"}


def test_special_tokens_of_the_configuration(tmp_path):
    """Tokens that it names are special, even if `tokenizer.json` does not say so."""
    names = {"pad_token": "the", "additional_special_tokens": ["in"], "extra_special_tokens": {"image_token": "he"}}
    golden.put(tmp_path, changed("model.vocab", golden.content()["model"]["vocab"]), tokenizer_config__json=names)
    tokenizer = text.load_tokenizer(tmp_path)
    wanted = {name: tokenizer._vocab[name] for name in ("in", "he")}
    assert wanted.items() <= tokenizer.special_tokens.items() and "the" not in tokenizer.special_tokens
    assert tokenizer.named_tokens == {"image_token": "he"}
    assert tokenizer.encode("the", allow_special=True)[1] == wanted["he"]


def test_added_tokens_of_the_configuration(tmp_path):
    size = len(golden.content()["model"]["vocab"])
    extra = {"2": {"content": "<|im_end|>", "special": False}, str(size): {"content": "<new>", "lstrip": True}}
    golden.put(tmp_path, tokenizer_config__json={"added_tokens_decoder": extra})
    tokenizer = text.load_tokenizer(tmp_path)
    assert tokenizer.encode("<|im_end|>  <new>") == [2, size] and tokenizer.vocab_size == size + 1


def test_what_encode_adds_is_in_the_file(tmp_path):
    """Other libraries ignore add_bos_token if there is a `tokenizer.json`."""
    config = {"bos_token": "<|im_start|>", "add_bos_token": False}
    golden.put(tmp_path, golden.content("llama3"), tokenizer_config__json=config)
    assert text.load_tokenizer(tmp_path).start_tokens == (1,)
    template = {"type": "TemplateProcessing", "special_tokens": {"x": {"ids": [5, 6]}}}
    both = [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "x"}}]
    outer = {"type": "BertProcessing", "cls": ["c", 8], "sep": ["s", 9]}
    found = changed("post_processor", {"type": "Sequence", "processors": [{**template, "single": both}, outer]})
    tokenizer = text.load_tokenizer(golden.put(tmp_path, found))
    assert tokenizer.start_tokens == (8, 5, 6) and tokenizer.closing_tokens == (5, 6, 9)


def test_other_forms_of_the_same_tokenizer(tmp_path):
    want = golden.tokenizer("gpt2").encode("What's  12?\n x")
    regex = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Removed", "invert": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    for path, value in {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "normalizer": {"type": "Sequence", "normalizers": []},
        "model.type": ...,
        "model.dropout": 0.0,
        "post_processor": {"type": "ByteLevel", "trim_offsets": False},
        "truncation": {"max_length": 2, "direction": "Right", "strategy": "LongestFirst", "stride": 0},
        "model.ignore_merges": ...,
        "version": ...,
    }.items():
        tokenizer = text.load_tokenizer(golden.put(tmp_path, changed(path, value)))
        assert isinstance(tokenizer, ByteLevelBPE) and tokenizer.encode("What's  12?\n x") == want, path


# -- the package ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", golden.PACKAGE)
def test_ids_of_the_package(name):
    pytest.importorskip("tokenizers")
    tokenizer = golden.tokenizer(name)
    for case in golden.CASES[name]:
        ids = tokenizer.encode(case["text"], allow_special=True)
        assert ids == case["special"]
        assert tokenizer.encode(case["text"], allow_special=False) == case["text_ids"]
        assert tokenizer.decode(ids) == case["decoded"]


def test_the_package_has_the_same_interface():
    pytest.importorskip("tokenizers")
    tokenizer = golden.tokenizer("wordpiece")
    assert tokenizer.start_tokens == (2,) and tokenizer.closing_tokens == (3,)
    assert tokenizer.special_tokens["[SEP]"] == 3 and tokenizer.token_of(3) == "[SEP]"
    assert tokenizer.vocab_size == len(golden.content("wordpiece")["model"]["vocab"])
    with pytest.raises(ValueError, match=r"contains the special token '\[MASK\]'"):
        tokenizer.encode("[MASK]")
    with pytest.raises(ValueError, match="token_of: there is no token with id 100000"):
        tokenizer.token_of(100000)
    tokenizer.chat_template = "{{ messages[0].content }}[SEP]"
    ids = tokenizer.encode("the cat", add_special=False)
    assert tokenizer.chat([{"role": "user", "content": "the cat"}]) == [*ids, 3]
    with pytest.raises(ValueError, match="chat: a message contains a special token, which this tokenizer cannot"):
        tokenizer.chat([{"role": "user", "content": "[SEP]"}])


UNKNOWN = {
    "decoder": None,
    "decoder.type": "Fuse",
    "model.dropout": 0.1,
    "model.byte_fallback": True,
    "model.end_of_word_suffix": "</w>",
    "model.something_new": True,
    "something_new": {},
    "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"},
    "pre_tokenizer.something_new": 1,
    "pre_tokenizer.type": "ByteLevel2",
    "added_tokens.0.single_word": True,
}


@pytest.mark.parametrize("path", UNKNOWN)
def test_what_our_code_does_not_know_is_not_ignored(tmp_path, monkeypatch, path):
    importing = importlib.import_module

    def without_package(name):
        if name == "tokenizers":
            raise ImportError(name)
        return importing(name)

    monkeypatch.setattr(importlib, "import_module", without_package)
    golden.put(tmp_path, changed(path, UNKNOWN[path]))
    says = r"load_tokenizer: a tokenizer of .* needs the package tokenizers, which is not installed(?s:.*)pip install"
    with pytest.raises(ImportError, match=says):
        text.load_tokenizer(tmp_path)
    found = text.tokenizer_files.of_model(tmp_path)
    assert repr(found).startswith("Unavailable(load_tokenizer: a tokenizer of")
    with pytest.raises(ImportError, match="needs the package tokenizers"):
        found.encode("a")


# -- damaged and odd files --------------------------------------------------------------------------------------------

BAD = {
    "model": [..., None, 3, [], {}, {"type": "BPE"}, {"type": None, "vocab": {}, "merges": []}],
    "model.vocab": [..., None, 3, [1], {"a": "0"}, {"a": 0, "b": 0}, {"a": -1}, {"a": 1e300}, {"a": None}],
    "model.merges": [..., 3, ["a"], ["a b c"], [["a"]], [["a", 1]], [["a", "nothing"]], [[["a"], "b"]], {}],
    "model.unk_token": [3, {}],
    "model.ignore_merges": ["no", 1],
    "model.continuing_subword_prefix": ["a"],
    "model.fuse_unk": ["no", []],
    "added_tokens": [3, {}, [3], [{}], [{"id": 0}], [{"id": "0", "content": "a"}], [{"id": 1, "content": 3}]],
    "added_tokens.0.id": [-1, 1, 10**12, None, "0", 0.5, 421],
    "added_tokens.0.special": ["yes", 1, None],
    "added_tokens.0.content": ["", "\ud800", "<|im_end|>"],
    "pre_tokenizer": [3, [], {"type": "Sequence"}, {"type": "Sequence", "pretokenizers": [3]}],
    "pre_tokenizer.add_prefix_space": ["no", 0],
    "post_processor": [3, {}, {"type": "New"}, {"type": "Sequence"}, {"type": "RobertaProcessing", "cls": 1, "sep": 1}]
    + [{"type": "TemplateProcessing", "single": s} for s in (None, [], [3], [{"SpecialToken": {"id": "a"}}], "A")],
    "normalizer": [3, []],
    "decoder": [3, []],
}


@pytest.mark.parametrize("place", BAD)
def test_odd_files(tmp_path, place):
    for value in BAD[place]:
        golden.put(tmp_path, changed(place, value))
        try:
            text.load_tokenizer(tmp_path)
        except ImportError as error:  # for the package to judge
            assert "needs the package tokenizers" in str(error)
        except ValueError as error:
            assert str(error).startswith(f"load_tokenizer: {tmp_path}/tokenizer.json: "), error
        else:
            pytest.fail(f"{place} = {value!r} was accepted")


@pytest.mark.parametrize(
    "file, content, says",
    [
        ("tokenizer.json", "", "the file must be JSON"),
        ("tokenizer.json", "[]", "the file must be a JSON object"),
        ("tokenizer.json", "[" * 200_000, "the file must be JSON"),
        ("tokenizer.json", '{"a": "\x00"}', "the file must be JSON"),
        ("tokenizer_config.json", "{", "the file must be JSON"),
        ("tokenizer_config.json", '{"bos_token": 3}', "bos_token must be a token; got 3"),
        ("tokenizer_config.json", '{"extra_special_tokens": 3}', "extra_special_tokens must be a list or an object"),
        ("tokenizer_config.json", '{"additional_special_tokens": [3]}', "additional_special_tokens must be a token"),
        ("tokenizer_config.json", '{"added_tokens_decoder": []}', "added_tokens_decoder must be an object"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"a": {}}}', "added_tokens_decoder must have tokens by id"),
        ("tokenizer_config.json", '{"chat_template": 3}', "a chat template must be a string"),
        ("tokenizer_config.json", '{"chat_template": [3]}', "chat_template must be a string, or a list"),
        ("generation_config.json", '{"eos_token_id": "2"}', "eos_token_id must be an integer or a list of integers"),
        ("config.json", '{"eos_token_id": [true]}', "eos_token_id must be an integer or a list of integers"),
        ("special_tokens_map.json", "3", "the file must be a JSON object"),
    ],
)
def test_odd_files_of_a_directory(tmp_path, file, content, says):
    golden.put(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=says) as error:
        text.load_tokenizer(tmp_path)
    assert str(error.value).startswith(f"load_tokenizer: {tmp_path}/{file}: ")


def test_truncated_files(tmp_path):
    whole, rng = json.dumps(golden.content("llama3")).encode(), random.Random(0)
    for size in [0, 1, len(whole) - 1, *[rng.randrange(len(whole)) for _ in range(40)]]:
        (tmp_path / "tokenizer.json").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"tokenizer\.json: the file must be JSON"):
            text.load_tokenizer(tmp_path)


def test_changed_bytes(tmp_path):
    """A damaged file is an error, or a tokenizer that works."""
    whole, rng = bytearray(json.dumps(golden.content("llama3")).encode()), random.Random(1)
    for _ in range(150):
        damaged = whole.copy()
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.choice(b'0123456789abc"[]{},:\\\xff -')
        (tmp_path / "tokenizer.json").write_bytes(damaged)
        try:
            tokenizer = text.load_tokenizer(tmp_path)
        except (ValueError, ImportError) as error:
            assert str(error).startswith("load_tokenizer: ")
        else:
            tokenizer.decode(tokenizer.encode("What's 12?", allow_special=True))


def test_no_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no tokenizer\.json in"):
        text.load_tokenizer(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*other\.json"):
        text.load_tokenizer(tmp_path / "other.json")


# -- GGUF -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, pre", [("gpt2", "gpt-2"), ("smollm", "smollm"), ("llama3", "llama-bpe"), ("qwen2", "qwen2")]
)
def test_ids_of_gguf_files(tmp_path, name, pre):
    tokenizer = text.load_tokenizer(written(tmp_path, metadata(name, pre) | CONTROL))
    for case in golden.CASES[name]:
        assert tokenizer.encode(case["text"], allow_special=True) == case["special"]
        assert tokenizer.encode(case["text"], allow_special=False) == case["text_ids"]


def test_what_gguf_files_say(tmp_path):
    more = {"chat_template": "d", "chat_template__tool_use": "t", "ggml__add_eos_token": True}
    with gguf.open(written(tmp_path, metadata("gpt2", "gpt-2", **more) | CONTROL)) as file:
        tokenizer = text.load_tokenizer(file)
    assert tokenizer.end_tokens == {0, 2}  # <|endoftext|>, too
    assert tokenizer.start_tokens == () and tokenizer.closing_tokens == (2,)
    assert tokenizer.chat_template == {"tool_use": "t", "default": "d"}
    assert tokenizer.named_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    more = {"ggml__add_bos_token": False, "ggml__eot_token_id": 5, "chat_template": "d"}
    tokenizer = text.load_tokenizer(written(tmp_path, metadata("llama3", "llama-bpe", **more) | CONTROL))
    assert tokenizer.start_tokens == () and tokenizer.end_tokens == {0, 2, 5} and tokenizer.chat_template == "d"


def test_user_defined_tokens_of_gguf_files(tmp_path):
    found = metadata("gpt2", "gpt-2")
    found["tokenizer.ggml.tokens"] += ["<think>\u00e9", "  "]
    found["tokenizer.ggml.token_type"] = np.append(found["tokenizer.ggml.token_type"], [4, 4]).astype("int32")
    tokenizer = text.load_tokenizer(written(tmp_path, found))
    n = tokenizer.vocab_size
    assert tokenizer.encode("<think>\u00e9  ") == [n - 2, n - 1] and tokenizer.decode([n - 2]) == "<think>\u00e9"


@pytest.mark.parametrize(
    "key, value, says",
    [
        ("model", "llama", "tokenizer.ggml.model must be 'gpt2', which is byte-level BPE; got 'llama'"),
        ("pre", "new", "tokenizer.ggml.pre must be one of gpt-2, phi-2, smollm, .*; got 'new'"),
        ("pre", None, "tokenizer.ggml.pre must be one of .*; got None"),
        ("tokens", None, "tokenizer.ggml.tokens must be a list of strings; got None"),
        ("tokens", ["a", "a"], "tokenizer.ggml.tokens must not have a token twice"),
        ("tokens", ["a", "b"], "tokenizer.ggml.token_type must have 2 integers"),
        ("merges", np.array([1]), "tokenizer.ggml.merges must be a list of strings"),
        ("merges", ["a"], "tokenizer.ggml.merges must be pairs of tokens"),
        ("merges", ["a nothing"], "the tokens of a merge, and both together, must be in the vocabulary"),
        ("token_type", "x", "tokenizer.ggml.token_type must have 420 integers"),
        ("eos_token_id", 10**6, "tokenizer.ggml.eos_token_id must be the id of a token; got 1000000"),
        ("bos_token_id", "1", "tokenizer.ggml.bos_token_id must be the id of a token; got '1'"),
        ("add_bos_token", True, "tokenizer.ggml.add_bos_token must be a boolean, and true only if there is a token"),
        ("add_eos_token", 1, "tokenizer.ggml.add_eos_token must be a boolean"),
    ],
)
def test_odd_gguf_files(tmp_path, key, value, says):
    path = written(tmp_path, metadata("gpt2", "gpt-2") | {f"tokenizer.ggml.{key}": value})
    with pytest.raises(ValueError, match=f"load_tokenizer: {path}: .*{says}"):
        text.load_tokenizer(path)


# -- models -----------------------------------------------------------------------------------------------------------


def test_models_have_tokenizers(tmp_path):
    model = models.gpt2.Model(models.gpt2.Config(420, 8, n_embd=16, n_layer=1, n_head=2), key=key(0))
    models.save(tmp_path, model)
    assert models.load(tmp_path)[1] is None
    golden.put(tmp_path)
    assert models.load(tmp_path)[1].encode("hi") == golden.tokenizer("gpt2").encode("hi")
    (tmp_path / "tokenizer.json").write_text("{")
    tokenizer = models.load(tmp_path)[1]
    with pytest.raises(ValueError, match=r"tokenizer\.json: the file must be JSON"):
        tokenizer.encode("hi")


def test_gguf_files_without_a_tokenizer(tmp_path):
    for found in ({}, {"tokenizer.ggml.model": "none"}):
        with gguf.open(written(tmp_path, found)) as file:
            assert text.tokenizer_files.of_model(file) is None


def test_smollm2(monkeypatch, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"there is no SmolLM2-135M-Instruct.Q4_1.gguf in(?s:.*)atled data smollm2"
    ):
        data.sets.smollm2(tmp_path)
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"sets.smollm2: .* is damaged or another version"):
        data.sets.smollm2(tmp_path)
    try:
        path = data.sets.smollm2()
    except FileNotFoundError:
        pytest.skip("atled data smollm2")
    tokenizer = text.load_tokenizer(path)
    assert tokenizer.encode("The capital of France is 12  3.") == [504, 3575, 282, 4649, 314, 216, 33, 34, 256, 35, 30]
    assert tokenizer.end_tokens == {0, 2} and tokenizer.vocab_size == 49152
