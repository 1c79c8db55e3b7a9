"""`MultiHeadAttention`, and incremental decoding with a key-value cache."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors, tree
from atled.core.array import DTypeLike, type_of
from atled.core.former_names import formerly
from atled.core.trace import Tracer
from atled.nn.attention import attend
from atled.nn.chunked_attention import boolean, memory_efficient_attention
from atled.nn.decoding_cache import Cache, Incremental, following
from atled.nn.dropout_layers import Dropout
from atled.nn.linear_layers import Linear, kept, needed
from atled.nn.module import Module
from atled.nn.position_encodings import RoPE, SinusoidalPositions
from atled.transforms.vmap import vmap


@formerly(
    features="in_features",
    heads="num_heads",
    kv_heads="num_kv_heads",
    window="local_window_size",
    context="in_kv_features",
    outputs="out_features",
    bias="use_bias",
    dropout="dropout_rate",
    init="weight_init",
    query="query_proj",
    key="key_proj",
    value="value_proj",
    out="out_proj",
)
class MultiHeadAttention(Incremental):
    """Multi-head attention over (batch, time, features).

    Each head has queries, keys and values of length features / heads: `softmax(query @ key / sqrt(length)) @ value`. A
    fully masked query gives the mean of all values; with `memory_efficient`, the mean of the values that its chunk
    reads.

    Args:
        in_kv_features: number of features of the context; None is `in_features`.
        head_dim: number of features of each head; in_features / num_heads by default.
        scale: the factor of the logits; 1 / sqrt(head_dim) by default.
        num_kv_heads: number of key and value heads; each serves num_heads / num_kv_heads query heads (grouped-query
            attention). 1 is multi-query attention, None is `num_heads`.
        dropout_rate: the dropout rate while training.
        positions: `RoPE`, which rotates queries and keys, or `RelativePositions` or `ALiBi`, which add to the logits;
            or a module that gives such a bias, (heads, queries, keys), for integer positions of queries and of keys and
            a dtype.
        local_window_size: how many positions before and after its own a query attends to; (left, right) if they differ.
        memory_efficient: use `memory_efficient_attention`, which never materializes all weights.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> attention = nn.MultiHeadAttention(8, 2, key=random.key(0))
    >>> attention(jnp.ones((1, 5, 8)), is_causal=True).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        in_features: int,
        num_heads: int,
        *,
        in_kv_features: int | None = None,
        out_features: int | None = None,
        use_bias: bool = True,
        dropout_rate: float = 0.0,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        scale: float | None = None,
        positions: Any = None,
        local_window_size: int | tuple[int, int] | None = None,
        memory_efficient: bool = False,
        weight_init: Any = None,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.in_features, self.num_heads = int(in_features), int(num_heads)
        self.num_kv_heads = self.num_heads if num_kv_heads is None else int(num_kv_heads)
        _check_heads(self.in_features, self.num_heads, self.num_kv_heads, head_dim)
        self.head_dim = length = in_features // num_heads if head_dim is None else int(head_dim)
        self.scale = 1 / math.sqrt(length) if scale is None else float(scale)
        _check_options(positions, num_heads, length, memory_efficient, dropout_rate)
        self.positions: Any = positions
        self.local_window_size, self.memory_efficient = _pair(local_window_size), bool(memory_efficient)
        keys = random.split(needed(self, key), 4)
        common = {"use_bias": use_bias, "weight_init": weight_init, "dtype": dtype, "param_dtype": param_dtype}
        other = in_features if in_kv_features is None else in_kv_features
        self.query_proj = Linear(in_features, num_heads * length, key=keys[0], **common)
        self.key_proj = Linear(other, self.num_kv_heads * length, key=keys[1], **common)
        self.value_proj = Linear(other, self.num_kv_heads * length, key=keys[2], **common)
        self.out_proj = Linear(num_heads * length, out_features or in_features, key=keys[3], **common)
        self.dropout: Any = Dropout(dropout_rate) if dropout_rate else None
        self.cache: Any = None
        self.dtype = kept(dtype)

    def __call__(
        self, x: Any, context: Any = None, *, mask: Any = None, bias: Any = None, is_causal: bool = False,
        key: Any = None,
    ) -> Any:  # fmt: skip
        """Attention from `x` to `context`, or to `x` itself.

        Args:
            mask: True where a query may attend, in a shape that broadcasts to (batch, heads, queries, keys).
            bias: added to the logits; broadcasts to the same shape.
            is_causal: whether to mask later positions.
            key: a random key for dropout while training.
        """
        query = self._heads(self.query_proj, x, self.num_heads)
        if self.cache is not None and context is None and "at" not in self.cache:  # keys and values of a context
            return self._finished(query, self.cache["key"], self.cache["value"], bias, self.cache["mask"], key)
        mask, source = None if mask is None else boolean(mask), x if context is None else context
        keys, value = [self._heads(p, source, self.num_kv_heads) for p in (self.key_proj, self.value_proj)]
        cache = self.cache if context is None else None
        is_decoding, at = cache is not None, 0 if cache is None else cache["at"]
        if self.cache is not None and not is_decoding:
            _check_context(self)

        def places() -> tuple[Any, Any]:
            return following(at, query.shape[-3]), jnp.arange(keys.shape[-3])

        if isinstance(self.positions, RoPE):
            query, keys = [self.positions(v, following(at, v.shape[-3])) for v in (query, keys)]
        if cache is not None:
            if cache["key"].dtype == _cache_dtype(self):  # not a dtype passed to `init_cache`
                wide = jnp.promote_types(cache["key"].dtype, type_of(keys).dtype)
                cache = {**cache, "key": cache["key"].astype(wide), "value": cache["value"].astype(wide)}
            keys, value, mask, self.cache = _remembered(cache, keys, value, mask)
            is_causal = False
        window, is_ragged = self.local_window_size, bool(type_of(at).ndim)
        in_parts = self.memory_efficient and bias is None and not is_ragged
        if window is not None and (is_decoding or not in_parts):
            mask, window = _near(window, *places(), mask), None
        by_place = None if isinstance(self.positions, RoPE) else self.positions
        if in_parts:
            y = _attended_in_parts(at, query, keys, value, by_place, mask, is_causal, window, self.scale)
            return self.out_proj(y.reshape(*type_of(y).shape[:-2], self.num_heads * self.head_dim))
        if by_place is not None:
            by_distance = by_place(*places(), jnp.promote_types(query.dtype, "float32"))
            bias = by_distance if bias is None else bias + by_distance
        if is_causal:
            causal = jnp.tril(jnp.ones((type_of(query).shape[-3], type_of(keys).shape[-3]), bool))
            mask = causal if mask is None else mask & causal
        return self._finished(query, keys, value, bias, mask, key)

    def _heads(self, layer: Any, x: Any, count: int) -> Any:
        """Queries, keys or values (…, time, heads, head_dim)."""
        return layer(x).reshape(*type_of(x).shape[:-1], count, self.head_dim)

    def _finished(self, query: Any, keys: Any, value: Any, bias: Any, mask: Any, key: Any) -> Any:
        dropout = None if self.dropout is None else functools.partial(self.dropout, key=key)
        y, _ = attend(query, keys, value, bias, [] if mask is None else [mask], self.scale, dropout)
        return self.out_proj(y.reshape(*type_of(y).shape[:-2], self.num_heads * self.head_dim))

    def with_cache(self, batch_size: int, max_length: int, dtype: DTypeLike | None = None) -> Any:
        """A copy with an empty key-value cache; a layer with the keys and values of a context is returned unchanged."""
        if self.cache is not None and "at" not in self.cache:
            return self
        dims = (batch_size, self.num_kv_heads, max_length, self.head_dim)  # as the products of attention read them
        kind, attention = dtype or _cache_dtype(self), self.__copy__()
        attention.cache = Cache({"key": jnp.zeros(dims, kind), "value": jnp.zeros(dims, kind), "at": 0})
        return attention

    def with_context(self, context: Any, mask: Any = None) -> Any:
        """A copy that attends to this context in all calls: its keys and values are computed once.

        Args:
            mask: False for padding of the context, (batch, time).

        >>> from atled import nn, random
        >>> x = random.normal(random.key(1), (1, 3, 8))
        >>> cross = nn.MultiHeadAttention(8, 2, key=random.key(0))
        >>> bool((abs(cross.with_context(x)(x) - cross(x, x)) < 1e-6).all())
        True
        """
        _check_context(self)
        keys, value = [self._heads(p, context, self.num_kv_heads) for p in (self.key_proj, self.value_proj)]
        mask = jnp.ones(keys.shape[:-2], bool) if mask is None else boolean(jnp.asarray(mask))
        attention = self.__copy__()
        attention.cache = Cache({"key": keys, "value": value, "mask": mask[..., None, None, :]})
        return attention


def _attended_in_parts(
    at: Any, query: Any, key: Any, value: Any, by_place: Any, mask: Any, is_causal: bool, window: Any,
    scale: float,
) -> Any:  # fmt: skip
    """Attention that never materializes all weights or the whole bias; the first query is at position `at`."""
    if query.ndim != 4:
        raise ValueError(
            errors.explained(
                "MultiHeadAttention: with memory_efficient, the input must be (batch, time, features); got queries "
                f"{query.type}.",
                "x[None], or vmap.",
            )
        )

    def bias(queries: Any, keys: Any) -> Any:
        position_bias = by_place(at + queries[:, 0], keys, jnp.promote_types(query.dtype, "float32"))
        return position_bias.reshape((1,) * (4 - position_bias.ndim) + position_bias.shape)

    key, value = key.astype(query.dtype), value.astype(query.dtype)
    return memory_efficient_attention(
        query,
        key,
        value,
        scale=scale,
        bias=None if by_place is None else bias,
        mask=mask,
        is_causal=is_causal,
        local_window_size=window,
    )


def _remembered(cache: dict[str, Any], key: Any, value: Any, mask: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    """All keys and values so far, the mask for each query, and the new cache."""
    if mask is not None:
        raise ValueError(
            errors.explained(
                "MultiHeadAttention: masks are not supported while decoding; all earlier steps are visible."
            )
        )
    at, (count, length) = cache["at"], (type_of(key).shape[-3], type_of(cache["key"]).shape[-2])
    if type_of(key).ndim != 4:
        raise ValueError(
            errors.explained(f"MultiHeadAttention: decoding takes (batch, time, features); got keys {type_of(key)}.")
        )
    batch, kept_for = key.shape[0], cache["key"].shape[0]
    if batch != kept_for:
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: its cache was made for a batch of {kept_for}; got {batch}.",
                f"init_cache(model, batch_size={batch}, max_length={length}).",
            )
        )
    needed_length = count if isinstance(at, Tracer) else int(np.asarray(at).max()) + count
    if needed_length > length:
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: its cache has room for {length} steps; got {needed_length}.",
                f"init_cache(model, batch_size, max_length={needed_length}).",
            )
        )
    new = {n: jnp.swapaxes(v, 1, 2).astype(cache[n].dtype) for n, v in (("key", key), ("value", value))}
    after = {**{n: _written(cache[n], v, at) for n, v in new.items()}, "at": at + count}
    keys, values = [jnp.swapaxes(after[n], 1, 2) for n in new]
    seen = jnp.arange(length) <= following(at, count)[..., None]
    fits = jnp.where(at + count <= length, 0, jnp.nan).astype(value.dtype)  # compiled code cannot raise
    values = values + fits.reshape(-1, 1, 1, 1) if isinstance(at, Tracer) else values
    return keys, values, jnp.expand_dims(seen, -3), after


def _written(cache: Any, new: Any, at: Any) -> Any:
    """A cache (batch, heads, length, features) with new entries from position `at` on, one number for each row."""
    if type_of(at).ndim:
        return vmap(lambda row, x, i: lax.dynamic_update_slice(row, x, (0, i, 0)))(cache, new, at)
    return lax.dynamic_update_slice(cache, new, (0, 0, at, 0))


def _cache_dtype(layer: MultiHeadAttention) -> Any:
    """The dtype of keys for inputs whose dtype is not wider than that of the parameters."""
    kinds = [type_of(x).dtype for x in tree.leaves(layer.key_proj) if type_of(x).kind == "f"]
    return np.dtype(layer.dtype or (functools.reduce(jnp.promote_types, kinds) if kinds else "float32"))


def _check_heads(features: int, heads: int, kv_heads: int, head_dim: int | None) -> None:
    """Raise an error for incompatible numbers of heads."""
    if heads < 1 or (head_dim is None and features % heads):
        way = next(n for n in range(max(heads, 1), 0, -1) if features % n == 0)
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: num_heads must divide in_features; got {heads} for {features}.",
                f"num_heads={way}.",
            )
        )
    if kv_heads < 1 or heads % kv_heads:
        way = next(n for n in range(max(min(heads, kv_heads), 1), 0, -1) if heads % n == 0)
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: num_kv_heads must divide num_heads; got {kv_heads} for {heads}.",
                f"num_kv_heads={way}.",
            )
        )


def _check_context(layer: MultiHeadAttention) -> None:
    """Raise an error for a context while decoding, if the result depends on query positions."""
    if layer.positions is not None or layer.local_window_size is not None:
        raise ValueError(
            errors.explained(
                "MultiHeadAttention: with positions or local_window_size, decoding with a context is not supported: "
                "the positions of its queries are not known.",
                "attention to a context without positions and local_window_size.",
            )
        )


def _near(window: tuple[int, int], queries: Any, keys: Any, mask: Any) -> Any:
    """A mask that is also False outside of a window."""
    back = queries[..., None] - keys
    near = jnp.expand_dims((back <= window[0]) & (back >= -window[1]), -3)
    return near if mask is None else mask & near


def _pair(window: Any) -> tuple[int, int] | None:
    """The window before and after a query; None if unlimited."""
    if window is None:
        return None
    pair = tuple(window) if isinstance(window, (tuple, list)) else (window, window)
    if len(pair) != 2 or not all([isinstance(n, (int, np.integer)) and n >= 0 for n in pair]):
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: local_window_size must be a number of positions, or (left, right); got {window}.",
                "local_window_size=None for all.",
            )
        )
    return int(pair[0]), int(pair[1])


def _check_options(positions: Any, heads: int, length: int, memory_efficient: bool, dropout: float) -> None:
    """Raise an error for incompatible options."""
    if positions is not None:
        _check_positions(positions, heads, length)
    if memory_efficient and dropout:
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: with memory_efficient, dropout_rate must be 0; got {dropout}.",
                "dropout_rate=0.0, and nn.Dropout after attention.",
            )
        )


def _check_positions(positions: Any, heads: int, length: int) -> None:
    """Raise an error for positions that do not match the heads."""
    what = type(positions).__name__
    if not isinstance(positions, Module) or isinstance(positions, SinusoidalPositions):
        raise TypeError(
            errors.explained(
                f"MultiHeadAttention: positions must be RoPE, RelativePositions or ALiBi; got {what}.",
                "x + nn.SinusoidalPositions(features)(jnp.arange(time)) before the first layer."
                if isinstance(positions, SinusoidalPositions)
                else f"positions=nn.RoPE({length}).",
            )
        )
    got = getattr(positions, "head_dim", length)
    if got != length:
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: RoPE must be for heads of length {length}; got {got}.", f"nn.RoPE({length})."
            )
        )
    if getattr(positions, "num_heads", heads) != heads:
        raise ValueError(
            errors.explained(
                f"MultiHeadAttention: {what} must be for {heads} heads; got {positions.num_heads}.",
                f"nn.{what}({heads}).",
            )
        )
