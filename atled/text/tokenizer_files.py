"""`load_tokenizer`: tokenizers in the files in which models are published.

A directory has `tokenizer.json` and, next to it, what belongs to the model: names of special tokens and the chat
template (`tokenizer_config.json`, `special_tokens_map.json`, `chat_template.jinja`), and the tokens that end generation
(`generation_config.json`, `config.json`). A GGUF file has all of this in its metadata.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from atled.checkpoints import gguf
from atled.core import errors
from atled.text import tokenizer_gguf, tokenizer_json
from atled.text.tokenizer import Settings, Tokenizer, short

_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def load_tokenizer(path: str | os.PathLike[str] | gguf.File) -> Tokenizer:
    """The tokenizer of a published model.

    Byte-level BPE (GPT-2, SmolLM2, Llama 3, Qwen2) needs no other package. Other tokenizers, such as WordPiece and
    Unigram, need the package `tokenizers`, and chats need `jinja2`: `pip install "atled[text]"`.

    Args:
        path: a directory with `tokenizer.json`, this file, or a GGUF file, which may be open.

    >>> import json, pathlib, tempfile
    >>> model = {"type": "BPE", "vocab": {"h": 0, "i": 1, "hi": 2}, "merges": [["h", "i"]]}
    >>> level = {"type": "ByteLevel", "add_prefix_space": False}
    >>> content = {"model": model, "pre_tokenizer": level, "decoder": level}
    >>> with tempfile.TemporaryDirectory() as there:
    ...     _ = pathlib.Path(there, "tokenizer.json").write_text(json.dumps(content))
    ...     tokenizer = load_tokenizer(there)
    >>> tokenizer.encode("hi"), tokenizer.decode([2, 0])
    ([2], 'hih')
    """
    if isinstance(path, gguf.File):
        return _of_gguf(path)
    path = pathlib.Path(path)
    if path.is_dir():
        return _of_directory(path)
    if path.suffix == ".json":
        return _of_json(path, path.parent if path.name == "tokenizer.json" else None)
    with gguf.open(path) as file:
        return _of_gguf(file)


def of_model(source: pathlib.Path | gguf.File) -> Tokenizer | Unavailable | None:
    """The tokenizer in the directory or file of a model, or None if it has none. A tokenizer that cannot be loaded does
    not keep anyone from loading the model: its first use raises the error.
    """
    if isinstance(source, gguf.File):
        is_there = tokenizer_gguf.has_tokenizer(source.metadata)
    else:
        is_there = (source / "tokenizer.json").is_file()
    try:
        return load_tokenizer(source) if is_there else None
    except (ImportError, ValueError) as error:
        return Unavailable(error)


class Unavailable:
    """A tokenizer that could not be loaded: using it raises the error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise type(self._error)(str(self._error))

    def __repr__(self) -> str:
        return f"Unavailable({str(self._error).splitlines()[0]})"


def _bad(path: pathlib.Path, says: str) -> ValueError:
    return ValueError(errors.explained(f"load_tokenizer: {path}: {says}."))


def _of_gguf(file: gguf.File) -> Tokenizer:
    try:
        return tokenizer_gguf.from_gguf(file.metadata)
    except ValueError as error:
        raise _bad(file.path, _first_line(error)) from None


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].removesuffix(".")


def _of_directory(path: pathlib.Path) -> Tokenizer:
    if not (path / "tokenizer.json").is_file():
        raise FileNotFoundError(errors.explained(f"load_tokenizer: there is no tokenizer.json in {path}."))
    return _of_json(path / "tokenizer.json", path)


def _of_json(path: pathlib.Path, directory: pathlib.Path | None) -> Tokenizer:
    if not path.is_file():
        raise FileNotFoundError(errors.explained(f"load_tokenizer: there is no file {path}."))
    content = _read(path)
    config = _merged_config(directory) if directory else {}
    generation = _end_ids(directory) if directory else set()
    at = directory / "tokenizer_config.json" if directory else path
    try:
        named, others = _special_names(config)
        templates = _templates(config, directory)
        extra = _configured_tokens(config)
    except ValueError as error:
        raise _bad(at, _first_line(error)) from None
    try:
        content = _with_tokens(content, extra, [*named.values(), *others])
        ids = {name: _known(content, text) for name, text in named.items()}
        named = {name: text for name, text in named.items() if ids[name] is not None}
        eos = ids.get("eos_token")
        ends = frozenset(generation | ({eos} if eos is not None else set()))
        settings = Settings(end_tokens=ends, named_tokens=named, chat_template=templates)
        return tokenizer_json.from_json(content, settings)
    except RecursionError:
        raise _bad(path, "the file must not be nested that deeply") from None
    except ValueError as error:
        raise _bad(path, _first_line(error)) from None


def _read(path: pathlib.Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"the file must be JSON: {error}") from None
    if not isinstance(found, dict):
        raise _bad(path, f"the file must be a JSON object; got {short(found)}")
    return found


def _merged_config(directory: pathlib.Path) -> dict[str, Any]:
    """`tokenizer_config.json`, and from `special_tokens_map.json` what it does not have."""
    files = [directory / name for name in ("special_tokens_map.json", "tokenizer_config.json")]
    merged: dict[str, Any] = {}
    for file in files:
        if file.is_file():
            merged |= {key: value for key, value in _read(file).items() if value is not None}
    return merged


def _special_names(config: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The texts of special tokens: by name, and those without one."""
    named = {name: _text(config[name], name) for name in _NAMED if name in config}
    others: list[str] = []
    for key in ("additional_special_tokens", "extra_special_tokens"):
        found = config.get(key, [])
        if isinstance(found, dict):
            named |= {name: _text(token, key) for name, token in found.items()}
        elif isinstance(found, list):
            others += [_text(token, key) for token in found]
        else:
            raise ValueError(f"{key} must be a list or an object; got {short(found)}")
    return named, others


def _text(token: Any, what: str) -> str:
    found = token.get("content") if isinstance(token, dict) else token
    if not isinstance(found, str):
        raise ValueError(f"{what} must be a token; got {short(token)}")
    return found


def _configured_tokens(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of `added_tokens_decoder`, as `tokenizer.json` has them."""
    found = config.get("added_tokens_decoder", {})
    if not isinstance(found, dict):
        raise ValueError(f"added_tokens_decoder must be an object; got {short(found)}")
    entries = []
    for id, token in found.items():
        if not isinstance(token, dict) or not id.isdecimal() or not id.isascii() or len(id) > 9:
            raise ValueError(f"added_tokens_decoder must have tokens by id; got {short(id)}: {short(token)}")
        entries.append({"id": int(id), **{key: value for key, value in token.items() if key != "__type"}})
    return sorted(entries, key=lambda entry: entry["id"])


def _with_tokens(content: dict[str, Any], extra: list[dict[str, Any]], special: list[str]) -> dict[str, Any]:
    """The content of `tokenizer.json` with more added tokens: those of the configuration, and special tokens that are
    in the vocabulary. The configuration decides whether a token is special.
    """
    found = content.get("added_tokens")
    found = [] if found is None else found
    if not isinstance(found, list) or not all([isinstance(entry, dict) for entry in found]):
        raise ValueError(f"added_tokens must be a list of objects; got {short(found)}")
    entries = {entry.get("content"): dict(entry) for entry in found if isinstance(entry.get("content"), str)}
    if len(entries) != len(found):
        raise ValueError("added_tokens must have each token once, with its content")
    for entry in extra:
        text = entry.get("content")
        if not isinstance(text, str):
            raise ValueError(f"added_tokens_decoder must have tokens with content; got {short(entry)}")
        entries[text] = {**entries.get(text, {}), **entry}
    vocab = tokenizer_json.vocabulary(content)
    for text in special:
        if text in entries:
            entries[text]["special"] = True
        elif text in vocab:
            entries[text] = {"id": vocab[text], "content": text, "special": True, "normalized": False}
    fields = ("single_word", "lstrip", "rstrip")
    added = [{**dict.fromkeys(fields, False), **entry} for entry in entries.values()]
    return {**content, "added_tokens": sorted(added, key=lambda e: e["id"] if type(e.get("id")) is int else -1)}


def _known(content: Mapping[str, Any], text: str) -> int | None:
    """The id of an added token; None if there is none."""
    ids = [entry["id"] for entry in content["added_tokens"] if entry["content"] == text and "id" in entry]
    return ids[0] if ids and type(ids[0]) is int else None


def _end_ids(directory: pathlib.Path) -> set[int]:
    """The ids that end generation, from the first file that has them."""
    for name in ("generation_config.json", "config.json"):
        file = directory / name
        found = _read(file).get("eos_token_id") if file.is_file() else None
        if found is not None:
            ids = found if isinstance(found, list) else [found]
            if not all([type(id) is int for id in ids]):
                raise _bad(file, f"eos_token_id must be an integer or a list of integers; got {short(found)}")
            return {id for id in ids if id >= 0}
    return set()


def _templates(config: Mapping[str, Any], directory: pathlib.Path | None) -> str | dict[str, str] | None:
    """The chat template, or several by name. Files of their own come before those in the configuration."""
    given = config.get("chat_template")
    if isinstance(given, list):
        if not all([isinstance(t, dict) and isinstance(t.get("name"), str) for t in given]):
            raise ValueError("chat_template must be a string, or a list of objects with name and template")
        found = {t["name"]: t.get("template") for t in given}
    else:
        found = {} if given is None else {"default": given}
    if directory is not None:
        files = {"default": directory / "chat_template.jinja"}
        files |= {file.stem: file for file in sorted((directory / "additional_chat_templates").glob("*.jinja"))}
        found |= {name: file.read_bytes().decode() for name, file in files.items() if file.is_file()}
    if not all([isinstance(template, str) for template in found.values()]):
        raise ValueError("a chat template must be a string")
    return found["default"] if found.keys() == {"default"} else found or None  # type: ignore[return-value]
