"""Attention for long sequences: queries are processed in chunks, so not all weights are in memory at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import lax
from atled.core import errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.former_names import formerly
from atled.higher_order.remat import checkpoint_name, remat, save_only_these_names
from atled.nn.attention import averaged, dot_product_attention, logits_of
from atled.transforms.grad import stop_gradient

_BANDS = 4  # how many parts a causal sequence is split into, each attending only to keys up to its own end


@formerly(window="local_window_size", chunk="chunk_size")
def memory_efficient_attention(
    query: Array | np.ndarray,
    key: Array | np.ndarray,
    value: Array | np.ndarray,
    *,
    bias: ArrayLike | Callable[[Array, Array], ArrayLike] | None = None,
    mask: ArrayLike | Callable[[Array, Array], ArrayLike] | None = None,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    local_window_size: tuple[int, int] | None = None,
    chunk_size: int = 256,
) -> Array:
    """softmax(query @ key * scale + bias) @ value for each head, with the weights of only `chunk_size` queries in
    memory.

    `query` is [B, T, N, H], `key` and `value` are [B, S, K, H]; each of the K heads serves N / K heads of the query.
    Plain attention holds B·N·T·S weights, and more in the backward pass. `memory_efficient_attention` holds
    B·N·chunk_size·S weights at a time, and recomputes them in the backward pass.

    Args:
        bias, mask: a bias for the logits, and a boolean mask, in shapes that broadcast to [B, N, T, S]; or functions
            that take the positions of queries and keys, integer arrays [t, 1] and [s], and return the block for these
            positions, in a shape that broadcasts to [B, N, t, s]. A fully masked query gives the mean of the values
            that its chunk reads.
        scale: the factor of the products; by default 1 / sqrt(H).
        is_causal: whether to mask later keys.
        local_window_size: how many positions a query attends to before and after its own; work and memory then scale
            with the window.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> x = jnp.ones((1, 1000, 2, 4))
    >>> nn.memory_efficient_attention(x, x, x, is_causal=True, chunk_size=128).shape
    (1, 1000, 2, 4)
    """
    batch, targets, heads, length = _checked(query, key, value, chunk_size, local_window_size)
    sources = type_of(key).shape[1]
    if not type_of(query).size or not type_of(key).size:
        return dot_product_attention(query, key, value)
    chunk_size = min(chunk_size, targets)
    scale = 1 / math.sqrt(length) if scale is None else scale
    bias, mask = [_part(what, x, (batch, heads, targets, sources)) for what, x in (("bias", bias), ("mask", mask))]
    query = jnp.asarray(query)

    def run(queries: Any, first: int, keys: Any, values: Any) -> Any:
        """The results of `queries`, the first of which is at position `first`."""
        count = type_of(queries).shape[1]
        parts = -(-count // chunk_size)
        padded = jnp.pad(queries, [(0, 0), (0, parts * chunk_size - count), (0, 0), (0, 0)])
        xs = jnp.moveaxis(padded.reshape(batch, parts, chunk_size, heads, length), 1, 0)
        one = lambda x: _attended(x[1], keys, values, x[0], scale, bias, mask, is_causal, local_window_size)  # noqa: E731
        out = lax.map(remat(one, policy=save_only_these_names("highest")), (first + chunk_size * jnp.arange(parts), xs))
        return jnp.moveaxis(out, 0, 1).reshape(batch, parts * chunk_size, heads, length)[:, :count]

    if not is_causal or local_window_size is not None or targets != sources or targets < 2 * _BANDS * chunk_size:
        return run(query, 0, key, value)
    ends = [targets * (i + 1) // _BANDS for i in range(_BANDS)]
    parts = [run(query[:, a:b], a, key[:, :b], value[:, :b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return jnp.concatenate(parts, 1)


def _attended(
    query: Any, key: Any, value: Any, first: Any, scale: Any, bias: Any, mask: Any, is_causal: bool, window: Any
) -> Any:
    """The results of a chunk of queries, the first of which is at position `first`."""
    (chunk, sources), start = (query.shape[1], key.shape[1]), 0
    if window is not None:  # only keys that some query of the chunk attends to
        span = min(sources, chunk + window[0] + window[1])
        start = jnp.clip(first - window[0], 0, sources - span)
        key, value = [lax.dynamic_slice_in_dim(x, start, span, 1) for x in (key, value)]
        sources = span
    targets, places = first + jnp.arange(chunk)[:, None], start + jnp.arange(sources)
    rules = [boolean(mask(targets, places))] if mask is not None else []
    rules += [places <= targets] if is_causal else []
    rules += [targets <= places + window[0], targets >= places - window[1]] if window is not None else []
    logits = logits_of(query, key, scale, None if bias is None else bias(targets, places), rules)
    # normalize the output instead of the weights: one pass over the weights forward, and one backward
    highest = checkpoint_name(stop_gradient(logits.max(-1, keepdims=True)), "highest")
    weights = jnp.exp(logits - highest)
    out = averaged(weights.astype(value.dtype), value, logits.dtype)
    total = jnp.moveaxis(weights.sum(-1).reshape(out.shape[0], out.shape[2], chunk), -1, 1)
    return (out / total[..., None]).astype(value.dtype)


def boolean(mask: Any) -> Any:
    """The mask, if it is boolean; raises for numbers, which could be an additive mask."""
    if type_of(mask).kind != "b":
        raise TypeError(
            errors.explained(
                f"attention: a mask must be booleans, True where a query may attend; got {type_of(mask)}.",
                "mask == 0 for a mask that is added to the logits, mask != 0 for a mask of ones and zeros.",
            )
        )
    return mask


def _part(what: str, x: Any, dims: tuple[int, int, int, int]) -> Callable[[Any, Any], Any] | None:
    """A bias or a mask as a function of query and key positions; raises if its shape does not broadcast."""
    if x is None or callable(x):
        return x
    x = jnp.asarray(x)
    x = x.reshape((1,) * (4 - x.ndim) + x.shape)
    if x.ndim != 4 or any([n not in (1, m) for n, m in zip(x.shape, dims, strict=True)]):
        raise ValueError(
            errors.explained(f"memory_efficient_attention: {what} must broadcast to {dims}; got {type_of(x)}.")
        )

    def part(targets: Any, places: Any) -> Any:
        rows = x if x.shape[2] == 1 else x[:, :, jnp.clip(targets[:, 0], 0, dims[2] - 1)]
        return rows if x.shape[3] == 1 else rows[..., places]

    return part


def _checked(query: Any, key: Any, value: Any, chunk: int, window: Any) -> tuple[int, ...]:
    """The shape of the query; raises for invalid operands or settings."""
    q, k, v = [type_of(x) for x in (query, key, value)]
    fits = q.ndim == k.ndim == 4 and k.shape[:3] == v.shape[:3] and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not fits or v.ndim != 4 or q.shape[2] % max(k.shape[2], 1):
        raise ValueError(
            errors.explained(
                "memory_efficient_attention: query must be [B, T, N, H], key and value [B, S, K, H], and K divide N; "
                f"got {q}, {k} and {v}."
            )
        )
    if chunk < 1 or (window is not None and (len(window) != 2 or min(window) < 0)):
        raise ValueError(
            errors.explained(
                "memory_efficient_attention: chunk_size must be 1 or more, and local_window_size two numbers; got "
                f"{chunk}, {window}."
            )
        )
    return q.shape
