"""`MultiHeadAttention`, and decoding step by step with what it kept of earlier steps."""

from __future__ import annotations

import math
from typing import Any

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors
from atled.core.array import type_of
from atled.core.trace import Tracer
from atled.nn.functions import softmax
from atled.nn.layers import Dropout, Linear, kept, needed
from atled.nn.module import Buffer, Module
from atled.nn.replacing import replace


class Cache(Buffer):
    """Declares what attention keeps of earlier steps."""


class MultiHeadAttention(Module):
    """Attention of (batch, time, features), by several heads side by side.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> attention = nn.MultiHeadAttention(8, 2, key=random.key(0))
    >>> attention(jnp.ones((1, 5, 8)), is_causal=True).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        features: int,
        heads: int,
        *,
        context: int | None = None,
        outputs: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        init: Any = None,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        if features % heads:
            raise ValueError(
                errors.explained(
                    f"MultiHeadAttention: heads must divide features; got {heads} for {features}.",
                    f"heads={next(n for n in range(heads, 0, -1) if features % n == 0)}.",
                )
            )
        self.features, self.heads = int(features), int(heads)
        keys = random.split(needed(self, key), 4)
        common = {"bias": bias, "init": init, "dtype": dtype, "param_dtype": param_dtype}
        other = features if context is None else context
        self.query = Linear(features, features, key=keys[0], **common)
        self.key = Linear(other, features, key=keys[1], **common)
        self.value = Linear(other, features, key=keys[2], **common)
        self.out = Linear(features, outputs or features, key=keys[3], **common)
        self.dropout: Any = Dropout(dropout) if dropout else None
        self.cache: Any = None
        self.dtype = kept(dtype)

    def __call__(
        self, x: Any, context: Any = None, *, mask: Any = None, is_causal: bool = False, key: Any = None
    ) -> Any:
        """What the queries of `x` find in `context`, or in `x` itself.

        Args:
            mask: True where a query may look, in a shape that broadcasts to (batch, heads, queries, keys).
            is_causal: no query looks at what comes later.
            key: for dropout, while training.
        """
        source = x if context is None else context
        query, found, value = [
            layer(v).reshape(*type_of(v).shape[:-1], self.heads, -1)
            for layer, v in ((self.query, x), (self.key, source), (self.value, source))
        ]
        if self.cache is not None and context is None:
            found, value, mask = self._remembered(found, value, mask)
            is_causal = False
        y = self._attended(query, found, value, mask, is_causal, key)
        return self.out(y.reshape(*type_of(y).shape[:-2], -1))

    def _attended(self, query: Any, key: Any, value: Any, mask: Any, is_causal: bool, random_key: Any) -> Any:
        """Means of values by the softmax of logits, which is taken in float32 at least."""
        t = type_of(query)
        logits = jnp.einsum("...tnh,...snh->...nts", query, key) * (1 / math.sqrt(t.shape[-1]))
        logits = logits.astype("float32") if t.dtype.itemsize < 4 else logits
        if is_causal:
            allowed = jnp.tril(jnp.ones(logits.shape[-2:], bool))
            mask = allowed if mask is None else mask & allowed
        if mask is not None:
            logits = jnp.where(mask, logits, jnp.finfo(logits.dtype).min)
        weights = softmax(logits, -1)
        if self.dropout is not None:
            weights = self.dropout(weights, key=random_key)
        return jnp.einsum("...nts,...snh->...tnh", weights.astype(value.dtype), value)

    def _remembered(self, key: Any, value: Any, mask: Any) -> tuple[Any, Any, Any]:
        """All keys and values so far, and which of them each query may see."""
        if mask is not None:
            raise ValueError(
                errors.explained("MultiHeadAttention: masks are not for decoding; everything so far is seen.")
            )
        at, (count, length) = self.cache["at"], [type_of(v).shape[-3] for v in (key, self.cache["key"])]
        if type_of(key).ndim != 4:
            raise ValueError(
                errors.explained(
                    f"MultiHeadAttention: decoding takes (batch, time, features); got keys {type_of(key)}."
                )
            )
        if not isinstance(at, Tracer) and int(at) + count > length:
            raise ValueError(
                errors.explained(
                    f"MultiHeadAttention: there is room for {length} steps in its cache; got {int(at) + count}.",
                    f"start_decoding(model, batch, length={int(at) + count}).",
                )
            )
        keys, values = [
            lax.dynamic_update_slice(self.cache[n], v.astype(self.cache[n].dtype), (0, at, 0, 0))
            for n, v in (("key", key), ("value", value))
        ]
        self.cache = {"key": keys, "value": values, "at": at + count}
        seen = jnp.arange(length) <= at + jnp.arange(count)[:, None]
        fits = jnp.where(at + count <= length, 0, jnp.nan).astype(value.dtype)  # compiled code cannot complain
        return keys, values + fits if isinstance(at, Tracer) else values, seen[None, None]


def start_decoding(model: Any, batch: int, length: int, dtype: Any = None) -> Any:
    """A copy of a model, not training, whose attention keeps keys and values: it takes a text part by part.

    Each part sees itself up to each place, and all before it, as with `is_causal=True`. Beyond `length` steps, it
    raises; compiled code gives NaN.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> attention = nn.MultiHeadAttention(8, 2, key=random.key(0)).eval()
    >>> x = random.normal(random.key(1), (1, 3, 8))
    >>> whole = attention(x, is_causal=True)
    >>> decoding = nn.start_decoding(attention, batch=1, length=3)
    >>> parts = [decoding(x[:, i : i + 1]) for i in range(3)]
    >>> bool(abs(jnp.concatenate(parts, 1) - whole).max() < 1e-5)
    True
    """

    def with_cache(layer: Any) -> Any:
        dims = (batch, length, layer.heads, layer.features // layer.heads)
        kind = dtype or layer.dtype or layer.key.weight.dtype
        made = layer.__copy__()
        made.cache = Cache({"key": jnp.zeros(dims, kind), "value": jnp.zeros(dims, kind), "at": 0})
        return made

    return replace(model.eval(), MultiHeadAttention, with_cache)
