"""`PackageTokenizer`: WordPiece, Unigram and all other tokenizers that the package `tokenizers` has."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from atled.core import errors
from atled.text import extras
from atled.text.added_tokens import AddedToken
from atled.text.tokenizer import NO_SETTINGS, Settings, Tokenizer


class PackageTokenizer(Tokenizer):
    """A tokenizer of the package `tokenizers`.

    Args:
        content: the content of a `tokenizer.json`.
        added: its added tokens.
        settings: what else is known, such as the ids that end generation.
    """

    def __init__(
        self, content: Mapping[str, Any], added: Iterable[AddedToken], settings: Settings = NO_SETTINGS
    ) -> None:
        self._package = _package_tokenizer({**content, "padding": None, "truncation": None})
        self._without_special: Any = None
        ids = self._package.get_vocab(with_added_tokens=True).values()
        super().__init__(1 + max(ids, default=-1), added, settings)

    def _encode(self, text: str, allow_special: bool) -> list[int]:
        package = self._package
        if not allow_special and self._found(text):
            if self._without_special is None:
                without = copy.deepcopy(package)
                without.encode_special_tokens = True
                self._without_special = without
            package = self._without_special
        return package.encode(text, add_special_tokens=False).ids

    def _encode_marked(self, text: str, mark: str) -> list[int]:
        says = "chat: a message contains a special token, which this tokenizer cannot encode as text within a chat."
        raise ValueError(errors.explained(says, "allow_special=True, if nobody else writes the messages."))

    def _decode(self, ids: list[int]) -> str:
        return self._package.decode(ids, skip_special_tokens=False)

    def _id_of(self, token: str) -> int | None:
        return self._package.token_to_id(token)

    def _token_of(self, id: int) -> str | None:
        return self._package.id_to_token(id)


def _package_tokenizer(content: Mapping[str, Any]) -> Any:
    tokenizers = extras.package("tokenizers", "load_tokenizer", f"{describe(content)} needs")
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(content))
    except BaseException as error:  # panics of the package are not of the class Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
            raise
        raise ValueError(errors.explained(f"load_tokenizer: the package tokenizers says: {error}.")) from None


def describe(content: Mapping[str, Any]) -> str:
    """What a `tokenizer.json` consists of, in an error message."""
    parts = [(content.get(key) or {}) for key in ("model", "normalizer", "pre_tokenizer", "post_processor", "decoder")]
    kinds = [str(part.get("type", "untyped")) if isinstance(part, dict) else "?" for part in parts if part]
    return f"a tokenizer of {', '.join(kinds) or 'unknown parts'}"
