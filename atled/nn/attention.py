"""Dot-product attention: averages of values, weighted by the match of their keys with a query.

Shape letters: B batch, T queries, S keys and values, N query heads, K key and value heads, each of which serves N / K
query heads, H features per head.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.nn.activations import constant, logsumexp, softmax
from atled.staging.jit import library_function

_NAME = "dot_product_attention"


def _checked(what: str, x: Any, dims: tuple[int | None, ...], dtype: Any = None) -> None:
    """Raise unless x has the shape `dims`, where None allows any length, and the dtype."""
    t = type_of(x)
    fits = t.ndim == len(dims) and all([n is None or n == m for n, m in zip(dims, t.shape)])
    if not fits:
        expected = ", ".join("any" if n is None else str(n) for n in dims)
        raise ValueError(f"{_NAME}: {what} must have the shape ({expected}); got {t}.")
    if dtype is not None and t.dtype != dtype:
        raise ValueError(f"{_NAME}: {what} must have the dtype {dtype.name}; got {t}.")


def _four_axes(x: Any) -> Array:
    x = jnp.asarray(x)
    return x.reshape((1,) * (4 - x.ndim) + x.shape) if x.ndim < 4 else x


def logits_of(query: Any, key: Any, scale: Any, bias: Any, rules: Sequence[Any]) -> Any:
    """The logits of queries [..., T, N, H] and keys [..., S, K, H], in float32 or wider, masked by the boolean `rules`.

    Bias and rules broadcast to [..., N, T, S]. The logits are [..., N, T, S], or [..., K, N / K, T, S] if a key head
    serves several query heads; a group axis of length 1 made a training step of a small GPT 30 % slower on the CPU.
    Where a rule is False, the logit is a large negative but finite number, so a query without keys has equal weights
    and finite gradients.
    """
    q, k = type_of(query), type_of(key)
    wide, heads = jnp.promote_types(jnp.promote_types(q.dtype, k.dtype), "float32"), k.shape[-2]
    groups = q.shape[-2] // heads if heads else 1
    if groups == 1:
        products = jnp.einsum("...tnh,...snh->...nts", query, key, preferred_element_type=wide)
    else:
        query = query.reshape(*q.shape[:-2], heads, groups, q.shape[-1])
        products = jnp.einsum("...tkgh,...skh->...kgts", query, key, preferred_element_type=wide)

    def by_groups(x: Any) -> Any:
        t = type_of(x)
        if groups == 1 or t.ndim < 3:
            return x
        return x.reshape(*t.shape[:-3], *((1, 1) if t.shape[-3] == 1 else (heads, groups)), *t.shape[-2:])

    logits = products * (scale if type_of(scale).weak else jnp.asarray(scale).astype(wide))
    if bias is not None:
        logits = logits + by_groups(bias).astype(wide)
    if not rules:
        return logits
    allowed = functools.reduce(operator.and_, [by_groups(rule) for rule in rules])
    return jnp.where(allowed, logits, np.asarray(-0.7 * np.finfo("float32").max, wide))


def averaged(weights: Any, value: Any, dtype: Any = None) -> Any:
    """The sums of values [..., S, K, H], weighted by the attention weights of each query: [..., T, N, H]."""
    w, heads = type_of(weights), type_of(value).shape[-2]
    if w.ndim == type_of(value).ndim:
        return jnp.einsum("...nts,...snh->...tnh", weights, value, preferred_element_type=dtype)
    out = jnp.einsum("...kgts,...skh->...tkgh", weights, value, preferred_element_type=dtype)
    return out.reshape(*type_of(out).shape[:-3], heads * w.shape[-3], type_of(out).shape[-1])


def attend(
    query: Any, key: Any, value: Any, bias: Any, rules: Sequence[Any], scale: Any, dropout: Callable[[Any], Any] | None
) -> tuple[Any, Any]:
    """The attention outputs of queries [..., T, N, H], and the logits."""
    logits = logits_of(query, key, scale, bias, rules)
    weights = softmax(logits, -1)
    weights = (weights if dropout is None else dropout(weights)).astype(type_of(value).dtype)
    return averaged(weights, value), logits


def _rules(
    dims: tuple[int, int], is_causal: bool, window: tuple[int, int] | None, query_lengths: Any, key_lengths: Any
) -> list[Any]:
    """Masks, True where a query may attend to a key, in shapes that broadcast to [B, N, T, S]."""
    query, key = jnp.arange(dims[0])[:, None], jnp.arange(dims[1])
    rules = [key <= query] if is_causal else []
    if window is not None:
        rules += [query <= key + window[0], query >= key - window[1]]
    for place, lengths in ((query, query_lengths), (key, key_lengths)):
        if lengths is not None:
            rules.append(place < lengths.reshape(-1, 1, 1, 1))
    return rules


@library_function(static=("is_causal", "window", "with_residual"))
def _attend(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: Any, query_lengths: Any, key_lengths: Any,
    is_causal: bool, window: tuple[int, int] | None, with_residual: bool,
) -> Any:  # fmt: skip
    (batch, targets, heads, _), sources = query.shape, key.shape[1]
    for what, x in (("bias", bias), ("mask", mask)):
        dims = (batch, heads, targets, sources)
        if x is not None and (x.ndim != 4 or any([n not in (1, m) for n, m in zip(x.shape, dims)])):
            raise ValueError(f"{_NAME}: {what} must broadcast to the shape {dims}; got {type_of(x)}.")
    rules = _rules((targets, sources), is_causal, window, query_lengths, key_lengths)
    out, logits = attend(query, key, value, bias, rules if mask is None else [*rules, mask], scale, None)
    if query_lengths is not None:
        is_inside = jnp.arange(targets)[:, None, None] < query_lengths.reshape(-1, 1, 1, 1)
        out = jnp.where(is_inside, out, np.zeros((), out.dtype))
    if not with_residual:
        return out
    total = logsumexp(constant(logits), axis=-1).reshape(batch, heads, targets)
    return out, total.transpose(0, 2, 1).astype(key.dtype)


@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None, *,
    scale: ArrayLike | None = None, is_causal: bool = False, query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None, local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None, return_residual: Literal[False] = False,
) -> Array: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None, *,
    scale: ArrayLike | None = None, is_causal: bool = False, query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None, local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None, return_residual: Literal[True],
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None, *,
    scale: ArrayLike | None = None, is_causal: bool = False, query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None, local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None, return_residual: bool,
) -> Any: ...  # fmt: skip
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query @ key * scale + bias) @ value, for each head.

    `query` is [B, T, N, H], or [T, N, H]; `key` and `value` are [B, S, K, H], and each of their K heads serves N / K
    heads of the query. `bias` is added to the logits, and `mask` is False for masked keys; both broadcast to [B, N, T,
    S]. `is_causal` masks later keys, and `local_window_size` masks keys more than (left, right) positions away. The
    sequence lengths, one per example, mask keys past the end, and make results of queries past the end zero. A fully
    masked query gives the mean of all values, as in JAX. Logits and softmax are in float32, or in float64 for float64
    operands. With `return_residual`, also returns the log-sum-exp of the logits, [B, T, N], without a derivative.

    >>> import atled.numpy as jnp
    >>> x = jnp.arange(6.0).reshape(1, 3, 1, 2)
    >>> dot_product_attention(x, x, x, is_causal=True)[0, 0, 0]
    Array([0., 1.], dtype=float32)
    """
    if implementation not in (None, "xla"):
        raise ValueError(f"{_NAME}: implementation must be None or 'xla'; got {implementation!r}.")
    shape = jnp.asarray(query).shape
    query, key, value = (_four_axes(x) for x in (query, key, value))
    if key.ndim != 4:
        raise ValueError(f"{_NAME}: key must have the axes (batch, positions, heads, features); got {key.type}.")
    batch, sources, heads, length = key.shape
    _checked("value", value, (batch, sources, heads, length), key.dtype)
    _checked("query", query, (batch, None, None, length), key.dtype)
    if dtypes.kind(key.dtype) != "f":
        raise ValueError(f"{_NAME}: operands must be floating; got {key.type}.")
    if query.shape[2] % max(heads, 1):
        raise ValueError(
            f"{_NAME}: the number of query heads must be a multiple of the {heads} key heads; got {query.type}."
        )
    if mask is not None:
        mask = _four_axes(mask)
        if mask.dtype != bool:
            raise ValueError(
                f"{_NAME}: mask must be bool; got {mask.type}.\n  try: bias, which is added to the logits."
            )
    lengths = [n if n is None else jnp.asarray(n) for n in (query_seq_lengths, key_value_seq_lengths)]
    for what, seq_lengths in zip(("query_seq_lengths", "key_value_seq_lengths"), lengths):
        if seq_lengths is not None:
            _checked(what, seq_lengths, (batch,))
            if seq_lengths.type.kind not in "iu":
                raise ValueError(f"{_NAME}: {what} must be integers; got {seq_lengths.type}.")
    window = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size
    out = _attend(
        query, key, value, bias if bias is None else _four_axes(bias), mask,
        1 / math.sqrt(length) if scale is None else scale, lengths[0], lengths[1],
        bool(is_causal), window if window is None else (int(window[0]), int(window[1])), bool(return_residual),
    )  # fmt: skip
    if return_residual:
        return out[0].reshape(shape), out[1].reshape(shape[:-1])
    return out.reshape(shape)
