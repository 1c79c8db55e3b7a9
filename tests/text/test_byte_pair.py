"""Byte-level BPE: the ids of the reference, and laws."""

from __future__ import annotations

import itertools
import pickle
import random
import time
import unicodedata

import golden_cases as golden
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atled import text
from atled.text import byte_pair, word_patterns
from atled.text.byte_pair import ByteLevelBPE, merged

LOADED = {name: golden.tokenizer(name) for name in golden.OURS}
WHOLE = ("gpt2", "smollm", "llama3")  # which decode what they encode


def plain(name: str, string: str) -> list[int]:
    return LOADED[name].encode(string, allow_special=False, add_special=False)


@pytest.mark.parametrize("name", golden.OURS)
def test_ids_are_those_of_the_reference(name):
    tokenizer = LOADED[name]
    assert isinstance(tokenizer, ByteLevelBPE)
    for case in golden.CASES[name]:
        ids = tokenizer.encode(case["text"], allow_special=True)
        assert (ids, case["text"]) == (case["special"], case["text"])
        assert tokenizer.encode(case["text"], allow_special=False) == case["text_ids"]
        assert tokenizer.decode(ids) == case["decoded"]


characters = st.one_of(
    st.characters(codec="utf-8"),
    st.sampled_from(" \n\r\t'sSlLdDrReEvV12\u00e9\u0301\u017f\u3000\x1c\u0661\u6f22\U0001f600\U00020000"),
)
strings = st.text(characters, max_size=60)


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=150, deadline=None)
@given(strings)
def test_decoding_is_the_inverse_of_encoding(name, string):
    ids = plain(name, string)
    assert LOADED[name].decode(ids) == string
    assert LOADED[name].decode(np.array(ids, "int32")) == string


@settings(max_examples=150, deadline=None)
@given(strings, st.sampled_from(WHOLE))
def test_text_that_grows_with_the_ids(string, name):
    """What is complete in the text of the first ids stays: generated text can be shown as it comes."""
    ids, whole = plain(name, string), string
    for n in range(len(ids)):
        assert whole.startswith(LOADED[name].decode(ids[:n]).rstrip("\ufffd"))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=20))
def test_bytes_that_are_not_text(data):
    tokenizer = LOADED["gpt2"]
    ids = [tokenizer.id_of(byte_pair.byte_alphabet()[b]) for b in data]
    assert tokenizer.decode(ids) == data.decode("utf-8", "replace")


@settings(max_examples=200, deadline=None)
@given(st.text("abc", max_size=12), st.permutations(["ab", "bc", "ca", "aa", "abc", "aab", "bca", "abab"]))
def test_merges_come_in_their_order(word, order):
    pairs = [(t[:n], t[n:]) for t in order for n in range(1, len(t))]
    ranks = {pair: i for i, pair in enumerate(pairs)}
    symbols = list(word)
    while found := [(ranks[p], i) for i, p in enumerate(itertools.pairwise(symbols)) if p in ranks]:
        _, i = min(found)
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    assert merged(list(word), ranks) == symbols


@pytest.mark.parametrize("kind", word_patterns.KINDS)
def test_words_are_the_whole_text_whatever_is_in_it(kind):
    split, rng = word_patterns.splitter(kind), random.Random(0)
    for last in (0x7F, 0xFFFF, 0x10FFFF):
        points = [i for i in (rng.randrange(last + 1) for _ in range(5000)) if not 0xD800 <= i < 0xE000]
        string = "".join([chr(i) + rng.choice(["", " ", "a", "1", "'s", "\n"]) for i in points])
        assert "".join(split(string)) == string


@pytest.mark.parametrize("kind", word_patterns.KINDS)
def test_characters_elsewhere_do_not_change_words(kind):
    """There is a pattern for ASCII, one for the basic plane and one for all of Unicode."""
    split, string = word_patterns.splitter(kind), "Don't  WE'RE 1234x\t\r\n ..!? a's\n\n b  1"
    for more in ("\u00e9", "\U0001f600"):
        assert split(f"{string}\n{more}")[:-2] == split(f"{string}\na")[:-2]


def test_classes_of_characters():
    """The tables agree with Python where it knows the character; it may have an older or a newer Unicode."""
    version = tuple(map(int, unicodedata.unidata_version.split(".")))
    for table, wanted in (("_LETTERS", "L"), ("_NUMBERS", "N")):
        members = {i for a, b in word_patterns.ranges(getattr(word_patterns, table)) for i in range(a, b + 1)}
        known = {i for i in range(0x110000) if unicodedata.category(chr(i))[0] == wanted}
        if version <= (16, 0, 0):
            assert known <= members
        assert {unicodedata.category(chr(i)) for i in members - known} <= {"Cn"}
    assert [c for c in word_patterns.SPACES if not c.isspace()] == [] and len(word_patterns.SPACES) == 25


def test_special_tokens():
    tokenizer = LOADED["gpt2"]
    assert tokenizer.special_tokens == {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}
    string = "a<|im_end|>b"
    assert 2 in tokenizer.encode(string, allow_special=True)
    ids = tokenizer.encode(string, allow_special=False)
    assert 2 not in ids and tokenizer.decode(ids) == string
    assert tokenizer.decode([1, *tokenizer.encode("hi"), 2], skip_special=True) == "hi"
    with pytest.raises(
        ValueError, match=r"encode: the text contains the special token '<\|im_end\|>'(?s:.*)False makes"
    ):
        tokenizer.encode(string)


def test_added_tokens_that_are_not_special_are_always_found():
    tokenizer = LOADED["added"]
    for allowed in (None, False, True):
        assert tokenizer.encode("<tool>", allow_special=allowed) == [tokenizer.id_of("<tool>")]


def test_the_longest_token_is_found():
    added = [text.AddedToken("<a>", 3), text.AddedToken("<a>b", 4), text.AddedToken("a>b<", 5)]
    tokenizer = ByteLevelBPE({"<": 0, "a": 1, ">": 2}, [], added=added)
    assert tokenizer.encode("<a>b<a><a") == [4, 3, 0, 1]


def test_what_encode_puts_around_the_text():
    tokenizer = LOADED["roberta"]
    assert tokenizer.start_tokens == (0,) and tokenizer.closing_tokens == (1,)
    ids = tokenizer.encode("hi", add_special=False)
    assert tokenizer.encode("hi") == [0, *ids, 1] and tokenizer.encode("") == [0, 1]


def test_tokens_and_ids():
    tokenizer = LOADED["gpt2"]
    assert tokenizer.vocab_size == len(golden.content()["model"]["vocab"])
    for id in range(tokenizer.vocab_size):
        assert tokenizer.id_of(tokenizer.token_of(id)) == id
    with pytest.raises(ValueError, match="id_of: there is no token 'nothing'"):
        tokenizer.id_of("nothing")
    with pytest.raises(ValueError, match=f"token_of: there is no token with id {10**6}"):
        tokenizer.token_of(10**6)
    assert repr(tokenizer) == f"ByteLevelBPE({tokenizer.vocab_size} tokens, 3 special)"


def test_ids_to_decode():
    tokenizer = LOADED["gpt2"]
    assert tokenizer.decode([]) == "" and tokenizer.decode([tokenizer.vocab_size]) == "\ufffd"
    for ids in (3, [1.0], ["a"], [[1]], np.ones(2)):
        with pytest.raises(TypeError, match="decode: ids must be integers in a list or a 1-d array"):
            tokenizer.decode(ids)
    with pytest.raises(ValueError, match="decode: ids must not be negative; got -1"):
        tokenizer.decode([1, -1])


def test_text_to_encode():
    with pytest.raises(TypeError, match="encode: text must be a string; got list"):
        LOADED["gpt2"].encode(["a"])
    with pytest.raises(ValueError, match=r"encode: text must not have lone surrogates; got U\+D800 at 1"):
        LOADED["gpt2"].encode("a\ud800")


def test_processes_get_tokenizers():
    for tokenizer in LOADED.values():
        again = pickle.loads(pickle.dumps(tokenizer))
        assert again.encode("What's 12?\n <b>") == tokenizer.encode("What's 12?\n <b>")


@pytest.mark.parametrize("name", ["gpt2", "smollm", "llama3", "added"])
@pytest.mark.parametrize(
    "unit", ["a", "ab", " ", "\n", " \n", "!", "\u00e9", "\U0001f600", "1", "'", "<", "<|im_end|>"]
)
def test_time_is_not_quadratic(name, unit):
    """Eight times as much text takes at most some 16 times as long; quadratic time would be 64 times."""

    def seconds(n: int) -> float:
        string = (unit * n)[:n]
        start = time.process_time()
        LOADED[name].encode(string, allow_special=True)
        return time.process_time() - start

    seconds(100)  # compiles the pattern
    short = min(seconds(2000) for _ in range(3))
    assert seconds(16000) < 24 * short + 0.05


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(byte_pair, "_CACHED", 10)
    tokenizer = golden.tokenizer("gpt2")
    words = [f" {a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    assert tokenizer.encode("".join(words)) == plain("gpt2", "".join(words)) and len(tokenizer._ids) <= 10


@pytest.mark.parametrize(
    "vocab, merges, options, says",
    [
        ({"a": 0, "b": 0}, [], {}, "each token must have its own id"),
        ({"a": -1}, [], {}, "ids must be integers from 0 on; got -1"),
        ({"a": 1.0}, [], {}, "ids must be integers from 0 on; got 1.0"),
        ({"a": True}, [], {}, "ids must be integers from 0 on; got True"),
        ({"a": 0, "b": 1}, [("a", "b")], {}, "the tokens of a merge, and both together, must be in the vocabulary"),
        ({"a": 0, "ab": 1}, [("a", "b")], {}, "the tokens of a merge, and both together, must be in the vocabulary"),
        ({"a": 0, "": 1}, [("a", "")], {}, "the tokens of a merge, and both together, must be in the vocabulary"),
        ({"a": 0}, [], {"unknown": "b"}, "the unknown token must be in the vocabulary; got 'b'"),
        ({"a": 0}, [], {"added": [text.AddedToken("b", 0)]}, "an added token must have a text and an id of its own"),
        ({"a": 0}, [], {"added": [text.AddedToken("", 1)]}, "an added token must have a text and an id of its own"),
        (
            {"a": 0},
            [],
            {"words": "gpt9"},
            "words must be one of gpt2, smollm, llama3, qwen2, and normalize NFC or None",
        ),
        ({"a\ud800": 0}, [], {}, "must not have lone surrogates"),
    ],
)
def test_parts_that_do_not_fit(vocab, merges, options, says):
    with pytest.raises(ValueError, match=says):
        ByteLevelBPE(vocab, merges, **options)
