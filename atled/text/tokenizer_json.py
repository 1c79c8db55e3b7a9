"""From the content of a `tokenizer.json` to a tokenizer.

Byte-level BPE in the forms of GPT-2, SmolLM2, Llama 3 and Qwen2 becomes a `ByteLevelBPE`; all else goes to the package
`tokenizers`. Nothing that would change ids is ignored: parts that neither knows are errors.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from atled.text.added_tokens import AddedToken
from atled.text.byte_pair import ByteLevelBPE
from atled.text.package_tokenizer import PackageTokenizer
from atled.text.tokenizer import Settings, Tokenizer, short

_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_OTHER = r" ?[^\s\p{L}\p{N}]+"
_SPACES = r"\s+(?!\S)|\s+"
# The regular expressions that files have for our word patterns.
_REGEXES = {
    rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+|{_OTHER}|{_SPACES}": "gpt2",
    rf"'(?:[sdmt]|ll|ve|re)| ?\p{{L}}+| ?\p{{N}}+|{_OTHER}|{_SPACES}": "gpt2",
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_OTHER}[\r\n]*|\s*[\r\n]+|{_SPACES}": "llama3",
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_OTHER}[\r\n]*|\s*[\r\n]+|{_SPACES}": "qwen2",
}
# The fields that our own code knows; with others, a tokenizer goes to `tokenizers`.
_FIELDS = "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model"
_FIELDS_OF_MODEL = """
    type vocab merges dropout unk_token fuse_unk byte_fallback ignore_merges continuing_subword_prefix
    end_of_word_suffix
"""
_FIELDS_OF_STEPS = {
    "ByteLevel": "type add_prefix_space trim_offsets use_regex",
    "Digits": "type individual_digits",
    "Split": "type pattern behavior invert",
}


class _UnsupportedError(Exception):
    """A part that our own code does not have, but `tokenizers` may."""


def from_json(content: Mapping[str, Any], settings: Settings) -> Tokenizer:
    """The tokenizer of a file. The file has the start and closing tokens, and the settings all else that is known."""
    before, after = post_processed(content.get("post_processor"))
    settings = settings._replace(start_tokens=tuple(before), closing_tokens=tuple(after))
    added = added_tokens(content)
    try:
        return _byte_level(content, list(added.values()), settings)
    except _UnsupportedError:
        _check_prefix(part(content, "model"))
        return PackageTokenizer({**content, "post_processor": None}, added.values(), settings)


def _byte_level(content: Mapping[str, Any], added: list[AddedToken], settings: Settings) -> ByteLevelBPE:
    model = part(content, "model")
    if model.get("type", "BPE") != "BPE" or not isinstance(model.get("merges"), list):
        raise _UnsupportedError
    if any([model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")]):
        raise _UnsupportedError
    if kind(content, "decoder") != "ByteLevel" or any([token["single_word"] for token in _added_entries(content)]):
        raise _UnsupportedError
    for given, known in ((content, _FIELDS), (model, _FIELDS_OF_MODEL)):
        if not set(given) <= set(known.split()):
            raise _UnsupportedError
    words, prefix_space = _words(part(content, "pre_tokenizer"))
    normalize = _normalization(part(content, "normalizer"))
    if normalize and any([t.is_normalized and unicodedata.normalize("NFC", t.text) != t.text for t in added]):
        raise _UnsupportedError
    unknown = model.get("unk_token")
    if not isinstance(unknown, (str, type(None))):
        raise ValueError(f"unk_token must be a string or null; got {short(unknown)}")
    vocab = vocabulary(content)
    _check_ids(vocab, added)
    return ByteLevelBPE(
        vocab,
        _merges(model["merges"]),
        words=words,
        added=added,
        normalize=normalize,
        prefix_space=prefix_space,
        is_merged_whole=_flag(model, "ignore_merges", False),
        unknown=unknown,
        fuse_unknown=_flag(model, "fuse_unk", False),
        settings=settings,
    )


def _check_prefix(model: Mapping[str, Any]) -> None:
    """Raise if merges lack the prefix of their second tokens: `tokenizers` ends the process then, without an error."""
    prefix = model.get("continuing_subword_prefix")
    if isinstance(prefix, str) and isinstance(model.get("merges"), list):
        for _, second in _merges(model["merges"]):
            if not second.startswith(prefix):
                raise ValueError(f"the second token of a merge must begin with {prefix!r}; got {short(second)}")


def _flag(found: Mapping[str, Any], key: str, default: bool) -> bool:
    value = found.get(key)
    if not isinstance(value, (bool, type(None))):
        raise ValueError(f"{key} must be true, false or null; got {short(value)}")
    return default if value is None else value


def part(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A part of the file; an empty one if it is missing or null."""
    found = content.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{key} must be an object or null; got {short(found)}")
    return found


def kind(content: Mapping[str, Any], key: str) -> Any:
    """The type of a part of the file, or None."""
    return part(content, key).get("type")


def vocabulary(content: Mapping[str, Any]) -> dict[str, int]:
    """The vocabulary without added tokens."""
    found = part(content, "model").get("vocab")
    if isinstance(found, list):  # Unigram: pairs of token and score
        if not all([isinstance(entry, list) and entry and isinstance(entry[0], str) for entry in found]):
            raise ValueError("vocab must be an object, or a list of pairs of token and score")
        return {entry[0]: id for id, entry in enumerate(found)}
    if not isinstance(found, dict):
        raise ValueError(f"model must have a vocab; got {short(found)}")
    return found


def _merges(found: list[Any]) -> list[tuple[str, str]]:
    """Pairs of strings, or strings with one blank."""
    pairs = [tuple(entry.split(" ") if isinstance(entry, str) else entry) for entry in found if _is_pair(entry)]
    if len(pairs) != len(found):
        raise ValueError(f"merges must be pairs of tokens; got {short(next(x for x in found if not _is_pair(x)))}")
    return pairs  # type: ignore[return-value]


def _is_pair(entry: Any) -> bool:
    if isinstance(entry, str):
        return entry.count(" ") == 1
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], str)


def _added_entries(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of `added_tokens`, with all fields."""
    found = content.get("added_tokens")
    found = [] if found is None else found
    if not isinstance(found, list):
        raise ValueError(f"added_tokens must be a list; got {short(found)}")
    entries = []
    for entry in found:
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or type(entry.get("id")) is not int:
            raise ValueError(f"an added token must have an id and content; got {short(entry)}")
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}
        whole = {**flags, "normalized": not entry.get("special", False), **entry}
        if not all([isinstance(whole[flag], bool) for flag in (*flags, "normalized")]):
            raise ValueError(f"the flags of an added token must be true or false; got {short(entry)}")
        entries.append(whole)
    return entries


def added_tokens(content: Mapping[str, Any]) -> dict[str, AddedToken]:
    """The added tokens by their text."""
    return {
        e["content"]: AddedToken(e["content"], e["id"], e["special"], e["lstrip"], e["rstrip"], e["normalized"])
        for e in _added_entries(content)
    }


def _check_ids(vocab: Mapping[str, int], added: list[AddedToken]) -> None:
    """Raise unless `tokenizers`, which numbers the tokens that are not in the vocabulary, gives them these ids."""
    following = len(vocab)
    for token in sorted(added, key=lambda t: t.id):
        expected = vocab.get(token.text, following)
        following += token.text not in vocab
        if token.id != expected:
            raise ValueError(f"the added token {token.text!r} must have the id {expected}; got {token.id}")


def _normalization(found: dict[str, Any]) -> str | None:
    steps = found.get("normalizers") if found.get("type") == "Sequence" else [found] if found else []
    if steps == []:
        return None
    if steps == [{"type": "NFC"}]:
        return "NFC"
    raise _UnsupportedError


def _words(found: dict[str, Any]) -> tuple[str, bool]:
    """The pattern that cuts text into words, and whether a space is put before the text."""
    steps = found.get("pretokenizers") if found.get("type") == "Sequence" else [found] if found else []
    if not isinstance(steps, list) or not all([isinstance(step, dict) for step in steps]):
        raise ValueError("pre_tokenizer must have a list of pretokenizers")
    for step in steps:
        name = step.get("type")
        if not isinstance(name, str) or not set(step) <= set(_FIELDS_OF_STEPS.get(name, "").split()):
            raise _UnsupportedError
    if not steps or steps[-1]["type"] != "ByteLevel":
        raise _UnsupportedError
    *first, last = steps
    prefix_space, use_regex = _flag(last, "add_prefix_space", True), _flag(last, "use_regex", True)
    if not first and use_regex:
        return "gpt2", prefix_space
    if len(first) != 1 or prefix_space:
        raise _UnsupportedError
    (step,) = first
    if step["type"] == "Digits" and step.get("individual_digits") is True and use_regex:
        return "smollm", False
    if step["type"] == "Split" and not use_regex and isinstance(step.get("pattern"), dict):
        whole = (step.get("behavior"), step.get("invert", False)) in (("Isolated", False), ("Removed", True))
        regex = step["pattern"].get("Regex")
        if whole and isinstance(regex, str) and regex in _REGEXES:
            return _REGEXES[regex], False
    raise _UnsupportedError


def post_processed(found: Any) -> tuple[list[int], list[int]]:
    """The ids that a post-processor puts before and after a text."""
    if found is None:
        return [], []
    if not isinstance(found, dict):
        raise ValueError(f"post_processor must be an object or null; got {short(found)}")
    name = found.get("type")
    if name == "ByteLevel":  # changes offsets only
        return [], []
    if name == "Sequence" and isinstance(found.get("processors"), list):
        before, after = [], []
        for step in found["processors"]:
            more_before, more_after = post_processed(step)
            before, after = more_before + before, after + more_after
        return before, after
    if name in ("BertProcessing", "RobertaProcessing"):
        return _checked([_second(found.get("cls"))]), _checked([_second(found.get("sep"))])
    if name == "TemplateProcessing":
        return _template(found)
    raise ValueError(f"post_processor must be of a known type; got {short(name)}")


def _template(found: dict[str, Any]) -> tuple[list[int], list[int]]:
    entries, tokens = found.get("single"), found.get("special_tokens", {})
    sides: list[list[int]] = [[]]
    if not isinstance(entries, list) or not isinstance(tokens, dict):
        raise ValueError("post_processor must have single and special_tokens")
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("Sequence"), dict) and entry["Sequence"].get("id") == "A":
            sides.append([])
            continue
        name = entry["SpecialToken"].get("id") if isinstance(entry, dict) and _is_special(entry) else None
        token = tokens.get(name) if isinstance(name, str) else None
        if not isinstance(token, dict) or not isinstance(token.get("ids"), list):
            raise ValueError(f"post_processor has the entry {short(entry)}, which is not defined")
        sides[-1].extend(_checked(token["ids"]))
    if len(sides) != 2:
        raise ValueError("post_processor must have the text exactly once")
    return sides[0], sides[1]


def _is_special(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("SpecialToken"), dict)


def _second(pair: Any) -> Any:
    return pair[1] if isinstance(pair, list) and len(pair) == 2 else None


def _checked(ids: list[Any]) -> list[int]:
    if not all([type(id) is int and 0 <= id < 2**31 for id in ids]):
        raise ValueError(f"post_processor must have ids that are integers from 0 on; got {short(ids)}")
    return ids
