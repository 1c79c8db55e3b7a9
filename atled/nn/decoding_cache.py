"""Caches of modules that take a sequence in chunks: keys and values of attention, and the number of positions so far.

Every row of a batch has its own position, so prompts of different lengths are in one batch: padding is on the right,
`seek` moves each row back to the end of its prompt, and the next tokens overwrite the padding.
"""

from __future__ import annotations

from typing import Any

import atled.numpy as jnp
from atled.core import tree
from atled.core.array import ArrayLike, DTypeLike, type_of
from atled.nn.module import Module
from atled.nn.module_surgery import replace
from atled.nn.variable_kinds import Buffer


class Cache(Buffer):
    """Declares the key-value cache of attention.

    >>> Cache(jnp.zeros((2, 8)))
    Cache(f32[2,8])
    """


class Incremental(Module):
    """A module that takes a sequence in chunks when it has a `cache`, a dict of arrays.

    `"at"` is the number of positions so far, one for all rows or one for each; all other arrays have a row for each
    example.
    """

    cache: Any

    def with_cache(self, batch_size: int, max_length: int, dtype: DTypeLike | None = None) -> Any:
        """A copy with an empty cache."""
        raise NotImplementedError


class Positions(Incremental):
    """The positions of the next steps of a sequence, and of all steps that they may attend to.

    >>> from atled import nn
    >>> nn.Positions()(3)
    (Array([0, 1, 2], dtype=int32), Array([0, 1, 2], dtype=int32))
    """

    def __init__(self) -> None:
        self.cache = None
        self.max_length = 0

    def __call__(self, length: int) -> tuple[Any, Any]:
        """Positions of queries, (length,) or (batch, length), and of keys."""
        if self.cache is None:
            return jnp.arange(length), jnp.arange(length)
        at = self.cache["at"]
        self.cache = {"at": at + length}
        return following(at, length), jnp.arange(self.max_length)

    def with_cache(self, batch_size: int, max_length: int, dtype: DTypeLike | None = None) -> Any:
        """A copy that counts the positions from call to call."""
        counter = self.__copy__()
        counter.cache, counter.max_length = Cache({"at": 0}), int(max_length)
        return counter


def following(at: Any, length: int) -> Any:
    """The next positions: (length,), or (batch, length) if each row has its own."""
    steps = jnp.arange(length)
    return jnp.asarray(at)[:, None] + steps if type_of(at).ndim else at + steps


def init_cache(model: Any, batch_size: int, max_length: int, dtype: DTypeLike | None = None) -> Any:
    """A copy of a model in evaluation mode with a key-value cache, so that calls take a sequence in chunks.

    Each token attends to itself and all tokens before it, as with `is_causal=True`. A call beyond `max_length` steps
    raises an error; compiled code gives NaN. Without a `dtype`, the cache has the dtype of the parameters, or that of
    the keys if it is wider.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> attention = nn.MultiHeadAttention(8, 2, key=random.key(0)).eval()
    >>> x = random.normal(random.key(1), (1, 3, 8))
    >>> whole = attention(x, is_causal=True)
    >>> decoding = nn.init_cache(attention, batch_size=1, max_length=3)
    >>> parts = [decoding(x[:, i : i + 1]) for i in range(3)]
    >>> bool(abs(jnp.concatenate(parts, 1) - whole).max() < 1e-5)
    True
    """
    return replace(model.eval(), Incremental, lambda m: m.with_cache(batch_size, max_length, dtype))


def seek(model: Any, positions: ArrayLike) -> Any:
    """A copy whose caches hold this many positions: one number, or one for each row. Later entries are overwritten.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> decoding = nn.init_cache(nn.MultiHeadAttention(8, 2, key=random.key(0)), batch_size=2, max_length=8)
    >>> y = decoding(jnp.ones((2, 4, 8)))  # a prompt of 4 tokens and one of 3, padded
    >>> nn.seek(decoding, jnp.array([4, 3])).cache["at"]
    Array([4, 3], dtype=int32)
    """
    return _changed(model, lambda cache: {**cache, "at": jnp.asarray(positions)} if "at" in cache else cache)


def take_rows(model: Any, rows: ArrayLike) -> Any:
    """A copy whose caches have these rows of the batch, in this order; a row may be repeated.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> decoding = nn.init_cache(nn.MultiHeadAttention(8, 2, key=random.key(0)), batch_size=2, max_length=8)
    >>> nn.take_rows(decoding, jnp.array([1, 1, 0])).cache["key"].shape
    (3, 2, 8, 4)
    """
    return _changed(model, lambda cache: tree.map(lambda x: x[rows] if type_of(x).ndim else x, cache))


def _changed(model: Any, change: Any) -> Any:
    def changed(m: Any) -> Any:
        if m.cache is None:
            return m
        new = m.__copy__()
        new.cache = Cache(change(m.cache))
        return new

    return replace(model, Incremental, changed)
