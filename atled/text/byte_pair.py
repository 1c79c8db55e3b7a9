"""`ByteLevelBPE`: byte-level byte-pair encoding, the tokenizer of GPT-2, SmolLM2, Llama 3 and Qwen2.

Text is cut at added tokens (`added_tokens.py`), then into words (`word_patterns.py`). The UTF-8 bytes of a word, each
spelled as one character, are the first symbols; then the pair of adjacent symbols that is first in the list of merges
becomes one symbol, until no pair is in the list. A vocabulary with all 256 bytes encodes every text.
"""

from __future__ import annotations

import heapq
import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from atled.core import errors
from atled.text.added_tokens import AddedToken, Finder
from atled.text.tokenizer import NO_SETTINGS, Settings, Tokenizer, short
from atled.text.word_patterns import KINDS, splitter

_CACHED, _LONGEST = 2**16, 100  # words in the cache, and characters of these
_REPLACEMENT = "\ufffd".encode()


def byte_alphabet() -> list[str]:
    """The character that spells each byte in vocabularies: itself if it is visible, else one from U+0100 on.

    >>> byte_alphabet()[ord("a")], byte_alphabet()[ord(" ")]
    ('a', 'Ġ')
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = itertools.count(0x100)
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


_SPELLING = dict(enumerate(byte_alphabet()))  # for str.translate
_BYTES = {character: byte for byte, character in _SPELLING.items()}


class ByteLevelBPE(Tokenizer):
    """A tokenizer that merges the bytes of words.

    Args:
        vocab: the id of each token, spelled with `byte_alphabet()`.
        merges: pairs of tokens, in the order in which they were learned.
        words: how text is cut into words: "gpt2", "smollm", "llama3" or "qwen2".
        added: tokens that are found before text is cut into words.
        normalize: "NFC", or None for text as it is. NFC is that of Python's `unicodedata`.
        prefix_space: whether text that does not begin with a blank gets one.
        is_merged_whole: whether a word that is in the vocabulary becomes this token, whatever the merges give.
        unknown: the token for bytes that are not in the vocabulary; None leaves them out.
        fuse_unknown: whether several unknown bytes in a row become one token.
        settings: what else is known, such as the ids that end generation.

    >>> tokenizer = ByteLevelBPE({"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4}, [("a", "b"), ("Ġ", "ab")])
    >>> tokenizer.encode("ab abba"), tokenizer.decode([3, 4, 1, 0])
    ([3, 4, 1, 0], 'ab abba')
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        merges: Iterable[tuple[str, str]],
        *,
        words: str = "gpt2",
        added: Iterable[AddedToken] = (),
        normalize: str | None = None,
        prefix_space: bool = False,
        is_merged_whole: bool = False,
        unknown: str | None = None,
        fuse_unknown: bool = False,
        settings: Settings = NO_SETTINGS,
    ) -> None:
        if words not in KINDS or normalize not in (None, "NFC"):
            says = f"ByteLevelBPE: words must be one of {', '.join(KINDS)}, and normalize NFC or None"
            raise ValueError(errors.explained(f"{says}; got {words!r} and {normalize!r}."))
        self._vocab, self._ranks = dict(vocab), {pair: rank for rank, pair in enumerate(merges)}
        added = list(added)
        _check(self._vocab, self._ranks, added, unknown)
        self._tokens = {id: token for token, id in self._vocab.items()} | {token.id: token.text for token in added}
        super().__init__(1 + max(self._tokens, default=-1), added, settings)
        self._split, self._normalize, self._prefix_space = splitter(words), normalize, prefix_space
        self._is_merged_whole, self._unknown, self._fuse_unknown = is_merged_whole, unknown, fuse_unknown
        self._finders = [Finder([t for t in added if t.is_normalized == late]) for late in (False, True)]
        self._ids, self._bytes = _Ids(self), _Bytes(self._tokens, {token.id for token in added})

    def _encode(self, text: str, allow_special: bool) -> list[int]:
        ids: list[int] = []
        for piece in self._pieces(text, allow_special):
            if isinstance(piece, AddedToken):
                ids.append(piece.id)
            else:
                ids.extend(self._encode_plain(piece))
        return ids

    def _encode_marked(self, text: str, mark: str) -> list[int]:
        ids: list[int] = []
        for piece in self._pieces(text, True):
            if isinstance(piece, AddedToken):
                ids.append(piece.id)
            elif plain := piece.replace(mark, ""):
                ids.extend(self._encode_plain(plain))
        return ids

    def _pieces(self, text: str, allow_special: bool) -> Iterator[str | AddedToken]:
        """The added tokens in a text, and the normalized text between them."""
        first, second = self._finders
        for piece in first.split(text, allow_special):
            if isinstance(piece, AddedToken):
                yield piece
            else:
                yield from second.split(
                    unicodedata.normalize("NFC", piece) if self._normalize else piece, allow_special
                )

    def _encode_plain(self, text: str) -> Iterator[int]:
        """The ids of text without added tokens."""
        if self._prefix_space and text[0] != " ":
            text = " " + text
        return itertools.chain.from_iterable(map(self._ids.__getitem__, self._split(text)))

    def _encode_word(self, word: str) -> list[int]:
        spelled = word.encode().decode("latin-1").translate(_SPELLING)
        vocab = self._vocab
        if self._is_merged_whole and spelled in vocab and vocab[spelled] not in self._special_ids:
            return [vocab[spelled]]
        return [vocab[symbol] for symbol in merged(self._symbols(spelled), self._ranks)]

    def _symbols(self, spelled: str) -> list[str]:
        """The characters of a word, without those that the vocabulary does not have."""
        symbols: list[str] = []
        is_unknown = False
        for c in spelled:
            was_unknown, is_unknown = is_unknown, c not in self._vocab
            if not is_unknown:
                symbols.append(c)
            elif self._unknown is not None and not (was_unknown and self._fuse_unknown):
                symbols.append(self._unknown)
        return symbols

    def _decode(self, ids: list[int]) -> str:
        return b"".join(map(self._bytes.__getitem__, ids)).decode("utf-8", "replace")

    def _id_of(self, token: str) -> int | None:
        for finder in self._finders:
            if token in finder.tokens:
                return finder.tokens[token].id
        return self._vocab.get(token)

    def _token_of(self, id: int) -> str | None:
        return self._tokens.get(id)


def merged(symbols: list[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """The symbols of a word after all merges: always of the pair with the least rank, the leftmost of several.

    >>> merged(list("abab"), {("a", "b"): 0, ("ab", "ab"): 1})
    ['abab']
    """
    last = len(symbols)
    after, before = list(range(1, last + 1)), list(range(-1, last - 1))
    pairs = enumerate(itertools.pairwise(symbols))
    queue = [(rank, i) for i, pair in pairs if (rank := ranks.get(pair)) is not None]
    heapq.heapify(queue)
    while queue:
        rank, i = heapq.heappop(queue)
        j = after[i]
        if j >= last or ranks.get((symbols[i], symbols[j])) != rank:
            continue  # another merge took one of the two
        symbols[i] += symbols[j]
        symbols[j] = ""
        after[i] = after[j]
        if after[i] < last:
            before[after[i]] = i
        for left, right in ((before[i], i), (i, after[i])):
            if left >= 0 and right < last and (rank := ranks.get((symbols[left], symbols[right]))) is not None:
                heapq.heappush(queue, (rank, left))
    return [symbol for symbol in symbols if symbol]


class _Ids(dict[str, list[int]]):
    """The ids of words, computed when they are needed first."""

    def __init__(self, tokenizer: ByteLevelBPE) -> None:
        self.tokenizer = tokenizer

    def __missing__(self, word: str) -> list[int]:
        ids = self.tokenizer._encode_word(word)
        if len(word) <= _LONGEST:
            if len(self) >= _CACHED:
                self.clear()
            self[word] = ids
        return ids


class _Bytes(dict[int, bytes]):
    """The bytes of tokens, computed when they are needed first."""

    def __init__(self, tokens: Mapping[int, str], added: set[int]) -> None:
        self.tokens, self.added = tokens, added

    def __missing__(self, id: int) -> bytes:
        token = self.tokens.get(id)
        if token is None:
            return _REPLACEMENT
        if id in self.added or not all([c in _BYTES for c in token]):
            self[id] = token.encode()
        else:
            self[id] = bytes([_BYTES[c] for c in token])
        return self[id]


def _check(
    vocab: Mapping[str, int], ranks: Mapping[tuple[str, str], int], added: list[AddedToken], unknown: str | None
) -> None:
    """Raise unless the parts of a tokenizer fit together."""

    def bad(says: str) -> ValueError:
        return ValueError(errors.explained(f"ByteLevelBPE: {says}."))

    for id in vocab.values():
        if type(id) is not int or not 0 <= id < 2**31:
            raise bad(f"ids must be integers from 0 on; got {short(id)}")
    if len(set(vocab.values())) != len(vocab):
        raise bad("each token must have its own id")
    for pair in ranks:
        parts = (*pair, "".join(pair))
        if len(pair) != 2 or not all(pair) or not all([part in vocab for part in parts]):
            raise bad(f"the tokens of a merge, and both together, must be in the vocabulary; got {short(pair)}")
    if unknown is not None and unknown not in vocab and not all([c in vocab for c in _BYTES]):
        raise bad(f"the unknown token must be in the vocabulary; got {short(unknown)}")
    names = {id: token for token, id in vocab.items()}
    for token in added:
        is_alone = names.setdefault(token.id, token.text) == token.text
        if not token.text or not is_alone or vocab.get(token.text, token.id) != token.id:
            raise bad(f"an added token must have a text and an id of its own; got {short(token)}")
    try:
        "".join([*vocab, *[token.text for token in added]]).encode()
    except UnicodeEncodeError:
        raise bad("tokens must not have lone surrogates") from None
