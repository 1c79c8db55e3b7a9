"""From the metadata of a GGUF file to a tokenizer: byte-level BPE, which the format calls "gpt2"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from atled.text.added_tokens import AddedToken
from atled.text.byte_pair import ByteLevelBPE
from atled.text.tokenizer import Settings, short

_CONTROL, _USER_DEFINED = 3, 4


class _Kind(NamedTuple):
    """What `tokenizer.ggml.pre` means."""

    words: str
    normalize: str | None = None
    is_merged_whole: bool = False
    has_start: bool = False  # if the file does not say so


_LLAMA3 = _Kind("llama3", is_merged_whole=True, has_start=True)
_KINDS = {
    "gpt-2": _Kind("gpt2"), "phi-2": _Kind("gpt2"),
    "smollm": _Kind("smollm"), "starcoder": _Kind("smollm"), "refact": _Kind("smollm"),
    "llama-bpe": _LLAMA3, "llama3": _LLAMA3, "llama-v3": _LLAMA3,
    "qwen2": _Kind("qwen2", normalize="NFC"),
}  # fmt: skip
_NAMES = {
    "bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id",
    "sep_token": "seperator_token_id", "pad_token": "padding_token_id", "cls_token": "cls_token_id",
    "mask_token": "mask_token_id",
}  # fmt: skip
# Ends of texts and of messages. Many files have several, but name only one.
_ENDS = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>")


def has_tokenizer(metadata: Mapping[str, Any]) -> bool:
    """Whether a file has a tokenizer of any kind."""
    return metadata.get("tokenizer.ggml.model", "none") not in ("none", "no_vocab")


def from_gguf(metadata: Mapping[str, Any]) -> ByteLevelBPE:
    """The tokenizer in the metadata of a file."""
    model, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if model != "gpt2":
        raise ValueError(f"tokenizer.ggml.model must be 'gpt2', which is byte-level BPE; got {short(model)}")
    if not isinstance(pre, str) or pre not in _KINDS:
        raise ValueError(f"tokenizer.ggml.pre must be one of {', '.join(_KINDS)}; got {short(pre)}")
    tokens = _strings(metadata, "tokenizer.ggml.tokens")
    merges = [tuple(entry.split(" ")) for entry in _strings(metadata, "tokenizer.ggml.merges")]
    if not all([len(pair) == 2 for pair in merges]):
        raise ValueError("tokenizer.ggml.merges must be pairs of tokens with one blank between them")
    vocab = {token: id for id, token in enumerate(tokens)}
    if len(vocab) != len(tokens):
        raise ValueError("tokenizer.ggml.tokens must not have a token twice")
    added = _added(metadata, tokens)
    named = _named(metadata, tokens)
    for name in named.values():  # special, even if the types of the tokens do not say so
        added[name] = added.get(name, AddedToken(name, vocab[name]))._replace(is_special=True)
    kind = _KINDS[pre]
    return ByteLevelBPE(
        vocab,
        merges,  # type: ignore[arg-type]
        words=kind.words,
        added=added.values(),
        normalize=kind.normalize,
        is_merged_whole=kind.is_merged_whole,
        settings=Settings(
            _start(metadata, "add_bos_token", kind.has_start, named.get("bos_token"), vocab),
            _start(metadata, "add_eos_token", False, named.get("eos_token"), vocab),
            _ends(metadata, added, tokens),
            named,
            _templates(metadata),
        ),
    )


def _strings(metadata: Mapping[str, Any], key: str) -> list[str]:
    found = metadata.get(key)
    if isinstance(found, np.ndarray) and not found.size:
        return []
    if not isinstance(found, list) or not all([isinstance(x, str) for x in found]):
        raise ValueError(f"{key} must be a list of strings; got {short(found)}")
    return found


def _added(metadata: Mapping[str, Any], tokens: list[str]) -> dict[str, AddedToken]:
    """The tokens that are found before text is cut into words."""
    types = metadata.get("tokenizer.ggml.token_type")
    if types is None:
        return {}
    if not isinstance(types, np.ndarray) or types.dtype.kind not in "iu" or len(types) != len(tokens):
        raise ValueError(f"tokenizer.ggml.token_type must have {len(tokens)} integers, one for each token")
    ids = np.flatnonzero((types == _CONTROL) | (types == _USER_DEFINED)).tolist()
    return {tokens[i]: AddedToken(tokens[i], i, bool(types[i] == _CONTROL)) for i in ids if tokens[i]}


def _id(metadata: Mapping[str, Any], name: str, tokens: list[str]) -> int | None:
    key = f"tokenizer.ggml.{name}"
    found = metadata.get(key)
    if found is None:
        return None
    if type(found) is not int or not 0 <= found < len(tokens) or not tokens[found]:
        raise ValueError(f"{key} must be the id of a token; got {short(found)}")
    return found


def _named(metadata: Mapping[str, Any], tokens: list[str]) -> dict[str, str]:
    ids = {name: _id(metadata, key, tokens) for name, key in _NAMES.items()}
    return {name: tokens[id] for name, id in ids.items() if id is not None}


def _start(
    metadata: Mapping[str, Any], name: str, default: bool, token: str | None, vocab: Mapping[str, int]
) -> tuple[int, ...]:
    """The token that is put before or after each text, if any."""
    is_put = metadata.get(f"tokenizer.ggml.{name}", default and token is not None)
    if not isinstance(is_put, bool) or (is_put and token is None):
        raise ValueError(f"tokenizer.ggml.{name} must be a boolean, and true only if there is a token; got {is_put!r}")
    return (vocab[token],) if is_put and token is not None else ()


def _ends(metadata: Mapping[str, Any], added: Mapping[str, AddedToken], tokens: list[str]) -> frozenset[int]:
    ids = [_id(metadata, name, tokens) for name in ("eos_token_id", "eot_token_id", "eom_token_id")]
    found = [added[text].id for text in _ENDS if text in added and added[text].is_special]
    return frozenset([*found, *[id for id in ids if id is not None]])


def _templates(metadata: Mapping[str, Any]) -> str | dict[str, str] | None:
    start = "tokenizer.chat_template"
    named = {key.removeprefix(f"{start}."): value for key, value in metadata.items() if key.startswith(f"{start}.")}
    default = metadata.get(start)
    found = {**named, **({} if default is None else {"default": default})}
    if not all([isinstance(value, str) for value in found.values()]):
        raise ValueError(f"{start} must be a string")
    return found if named else default
