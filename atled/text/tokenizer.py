"""`Tokenizer`: what all tokenizers have in common, and how a chat becomes ids.

`byte_pair.py` has our own tokenizer, `package_tokenizer.py` one around the package `tokenizers`; `tokenizer_files.py`
makes them from files.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from atled.core import errors
from atled.text import chat_template
from atled.text.added_tokens import AddedToken, Finder


class Settings(NamedTuple):
    """What files say about a tokenizer besides how it cuts text.

    Attributes:
        start_tokens: ids that `encode` puts before the text.
        closing_tokens: ids that `encode` puts after the text.
        end_tokens: ids that end generation.
        named_tokens: the texts of special tokens by the names that templates use, such as `bos_token`.
        chat_template: a Jinja template, or several by name; "default" and "tool_use" are used.

    >>> from atled import text
    >>> text.Settings(end_tokens=frozenset([2])).end_tokens
    frozenset({2})
    """

    start_tokens: tuple[int, ...] = ()
    closing_tokens: tuple[int, ...] = ()
    end_tokens: frozenset[int] = frozenset()
    named_tokens: Mapping[str, str] = {}
    chat_template: str | Mapping[str, str] | None = None


NO_SETTINGS = Settings()


class Tokenizer:
    """From text to ids, and back.

    Attributes:
        vocab_size: the largest id, plus 1.
        start_tokens: ids that `encode` puts before the text.
        closing_tokens: ids that `encode` puts after the text.
        end_tokens: ids that end generation.
        special_tokens: the ids of special tokens, by their text.
        named_tokens: the texts of special tokens, by names such as `bos_token` and `eos_token`.
        chat_template: the Jinja template of chats, several by name, or None.

    >>> from atled import text
    >>> tokenizer = text.ByteLevelBPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    >>> isinstance(tokenizer, text.Tokenizer), tokenizer.encode("abb"), tokenizer.vocab_size
    (True, [2, 1], 3)
    """

    def __init__(self, vocab_size: int, special: Iterable[AddedToken], settings: Settings) -> None:
        specials = Finder([token for token in special if token.is_special])
        self.vocab_size = vocab_size
        self.start_tokens, self.closing_tokens, self.end_tokens, self.named_tokens, self.chat_template = settings
        self.special_tokens = {token.text: token.id for token in specials.tokens.values()}
        self._specials, self._special_ids = specials, frozenset(self.special_tokens.values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vocab_size} tokens, {len(self.special_tokens)} special)"

    def encode(self, text: str, *, add_special: bool = True, allow_special: bool | None = None) -> list[int]:
        """The ids of a text.

        Args:
            add_special: whether `start_tokens` and `closing_tokens` are added.
            allow_special: what happens to the text of a special token, such as "<|im_end|>". True makes it this token,
                as other libraries do by default; then text from users can end their message and write another one. With
                False it is text like any other. By default, it is an error.

        >>> from atled import text
        >>> end = text.AddedToken("<b>", 3, is_special=True)
        >>> tokenizer = text.ByteLevelBPE({"<": 0, "b": 1, ">": 2}, [], added=[end])
        >>> tokenizer.encode("b<b>", allow_special=True), tokenizer.encode("b<b>", allow_special=False)
        ([1, 3], [1, 0, 1, 2])
        """
        if not isinstance(text, str):
            raise TypeError(errors.explained(f"encode: text must be a string; got {type(text).__name__}."))
        if not text.isascii():
            check_surrogates(text)
        if allow_special is None:
            self._check_special(text)
        ids = self._encode(text, bool(allow_special))
        return [*self.start_tokens, *ids, *self.closing_tokens] if add_special else ids

    def decode(self, ids: Any, *, skip_special: bool = False) -> str:
        """The text of ids, a list or an array. Bytes that are not UTF-8 become U+FFFD; in byte-level BPE, ids without a
        token do, too.

        Args:
            skip_special: whether special tokens are left out.

        >>> from atled import text
        >>> tokenizer = text.ByteLevelBPE({"a": 0, "Ã": 1}, [])
        >>> tokenizer.decode([0, 1, 0]) == "a" + chr(0xFFFD) + "a"
        True
        """
        numbers = listed(ids)
        return self._decode([i for i in numbers if i not in self._special_ids] if skip_special else numbers)

    def id_of(self, token: str) -> int:
        """The id of a token, as the vocabulary spells it."""
        found = self._id_of(token)
        if found is None:
            raise ValueError(errors.explained(f"id_of: there is no token {short(token)}."))
        return found

    def token_of(self, id: int) -> str:
        """The token with an id, as the vocabulary spells it."""
        found = self._token_of(operator.index(id))
        if found is None:
            raise ValueError(
                errors.explained(f"token_of: there is no token with id {id}; there are {self.vocab_size}.")
            )
        return found

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        allow_special: bool = False,
        **variables: Any,
    ) -> list[int]:
        """The ids of a chat, in the format of `chat_template`.

        Special tokens of the template become tokens. Those in messages are text like any other, unless `allow_special`:
        whoever writes a message cannot end it and write another one. This concerns all strings but roles and the keys
        of dicts. Added tokens that are not special, such as "<think>" of some models, are always tokens.

        Args:
            messages: dicts with `role` and `content`, and further keys that the template uses. Entries that are None
                are left out.
            add_generation_prompt: whether the ids end with the beginning of an answer.
            allow_special: whether special tokens in messages are encoded as tokens, not as text; other libraries do.
            variables: more variables of the template, such as `tools`, a list of dicts.

        >>> from atled import text
        >>> vocab = {"<": 0, "b": 1, ">": 2, "h": 3, "i": 4}
        >>> settings = text.Settings(chat_template="{% for m in messages %}{{ m.content }}<b>{% endfor %}")
        >>> added = [text.AddedToken("<b>", 5, is_special=True)]
        >>> tokenizer = text.ByteLevelBPE(vocab, [], added=added, settings=settings)
        >>> tokenizer.chat([{"role": "user", "content": "hi"}]), tokenizer.chat([{"role": "user", "content": "<b>"}])
        ([3, 4, 5], [0, 1, 2, 5])
        """
        text, mark = self._rendered(messages, add_generation_prompt, variables, allow_special)
        whole = text.replace(mark, "") if mark else text
        if mark and self._found(whole) != self._found(text):  # some of the special tokens are from messages
            return self._encode_marked(text, mark)
        return self._encode(whole, True)

    def chat_text(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """The text of a chat, in the format of `chat_template`. Use `chat` for ids: text does not tell the special
        tokens of the template from those in messages.
        """
        return self._rendered(messages, add_generation_prompt, variables, True)[0]

    def _rendered(
        self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool, variables: dict[str, Any],
        allow_special: bool,
    ) -> tuple[str, str]:  # fmt: skip
        """The text of a chat, and the mark in special tokens of messages, which is empty if these are allowed."""
        template = self.chat_template
        if isinstance(template, Mapping):
            template = (variables.get("tools") and template.get("tool_use")) or template.get("default")
        if template is None:
            raise ValueError(errors.explained("chat: the tokenizer has no chat template.", "encode(text)."))
        if isinstance(messages, (str, Mapping)) or not messages or not all([isinstance(m, Mapping) for m in messages]):
            says = "chat: messages must be a list of dicts with role and content, at least one"
            raise ValueError(errors.explained(f"{says}; got {short(messages)}."))
        given = {"messages": list(messages), "tools": None, "documents": None, **variables}
        plain = {name: chat_template.plain(value) for name, value in given.items()}
        mark = "" if allow_special else chat_template.unused_character([plain, template])
        if mark:
            plain = chat_template.marked(plain, self._specials, mark)
        text = chat_template.render(
            template, {**self.named_tokens, **plain, "add_generation_prompt": add_generation_prompt}
        )
        check_surrogates(text)
        return text, mark

    def _found(self, text: str) -> list[AddedToken]:
        """The special tokens in a text."""
        return [piece for piece in self._specials.split(text, True) if isinstance(piece, AddedToken)]

    def _check_special(self, text: str) -> None:
        if found := self._found(text):
            says = f"encode: the text contains the special token {found[0].text!r}, and allow_special is not given."
            raise ValueError(
                errors.explained(says, "allow_special=True makes it this token, False makes it text like any other.")
            )

    def _encode(self, text: str, allow_special: bool) -> list[int]:
        raise NotImplementedError

    def _encode_marked(self, text: str, mark: str) -> list[int]:
        """The ids of a text without the marks, which are inside of special tokens that are text like any other."""
        raise NotImplementedError

    def _decode(self, ids: list[int]) -> str:
        raise NotImplementedError

    def _id_of(self, token: str) -> int | None:
        raise NotImplementedError

    def _token_of(self, id: int) -> str | None:
        raise NotImplementedError


def listed(ids: Any) -> list[int]:
    """The ids of a list or an array as Python integers, none of them negative."""
    try:
        numbers = list(map(operator.index, ids.tolist() if hasattr(ids, "tolist") else ids))
    except TypeError:
        says = f"decode: ids must be integers in a list or a 1-d array; got {short(ids)}."
        raise TypeError(errors.explained(says)) from None
    if numbers and min(numbers) < 0:
        raise ValueError(errors.explained(f"decode: ids must not be negative; got {min(numbers)}."))
    return numbers


def check_surrogates(text: str) -> None:
    """Raise if a text has a lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        says = f"encode: text must not have lone surrogates; got U+{ord(text[error.start]):X} at {error.start}."
        raise ValueError(errors.explained(says, 'text.encode("utf-16", "surrogatepass").decode("utf-16").')) from None


def short(x: Any) -> str:
    """A value in an error message."""
    text = repr(x)
    return text if len(text) <= 80 else f"{text[:77]}..."
