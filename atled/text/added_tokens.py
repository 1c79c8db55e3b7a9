"""Tokens that are found in text before it is cut into words, such as `<|im_end|>`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from atled.text.word_patterns import SPACES

_SPACES = re.compile(f"[{SPACES}]*")


class AddedToken(NamedTuple):
    """A token that is found in text before it is cut into words.

    Attributes:
        text: its text.
        id: its id.
        is_special: whether it structures text, such as the end of a message. Text of users should not contain it.
        takes_left: whether the spaces before it belong to it.
        takes_right: whether the spaces after it belong to it.
        is_normalized: whether it is found in normalized text, after all tokens that are found in the text as it is.

    >>> AddedToken("<|im_end|>", 2, is_special=True).id
    2
    """

    text: str
    id: int
    is_special: bool = False
    takes_left: bool = False
    takes_right: bool = False
    is_normalized: bool = False


class Finder:
    """Finds tokens in text: the leftmost one, of these the longest, and so on."""

    def __init__(self, tokens: Iterable[AddedToken]) -> None:
        self.tokens = {token.text: token for token in tokens}
        self.lengths = sorted({len(text) for text in self.tokens}, reverse=True)
        shared = min([3, *self.lengths])
        starts = sorted({text[:shared] for text in self.tokens})
        # One alternative for each beginning, then a look into the dict for each length: the time does not grow with the
        # number of tokens.
        self.start = re.compile("|".join(map(re.escape, starts))) if starts else None

    def split(self, text: str, allow_special: bool) -> Iterator[str | AddedToken]:
        """The tokens in a text and the text between them; special tokens only if they are allowed."""
        if self.start is None:
            if text:
                yield text
            return
        done = at = 0
        while found := self.start.search(text, at):
            start = found.start()
            token = self.longest(text, start)
            if token is None:
                at = start + 1
                continue
            at = end = start + len(token.text)  # tokens that begin in the spaces that this one takes are found, too
            if token.is_special and not allow_special:
                continue
            while token.takes_left and start > done and text[start - 1] in SPACES:
                start -= 1
            if token.takes_right and (spaces := _SPACES.match(text, end)):
                end = spaces.end()
            if start > done:
                yield text[done:start]
            yield token
            done = end
        if done < len(text):
            yield text[done:]

    def overlapping(self, text: str) -> Iterator[tuple[int, AddedToken]]:
        """The longest token at each place of a text where one begins."""
        at = 0
        while self.start is not None and (found := self.start.search(text, at)):
            at = found.start() + 1
            if token := self.longest(text, found.start()):
                yield found.start(), token

    @functools.cached_property
    def beginnings(self) -> set[str]:
        """All beginnings of tokens."""
        return {text[:n] for text in self.tokens for n in range(1, len(text) + 1)}

    def longest(self, text: str, start: int) -> AddedToken | None:
        """The longest token that begins there."""
        for length in self.lengths:
            token = self.tokens.get(text[start : start + length])
            if token is not None and len(token.text) == length:
                return token
        return None
