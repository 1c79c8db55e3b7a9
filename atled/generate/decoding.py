"""Prefill, decoding steps and the loop around them.

A model for generation is a module with `features(ids)` and `logits(features)`, whose attention takes a key-value cache
(`nn.init_cache`); an encoder-decoder model also has `encode(ids, where)`. Prompts are padded on the right to a bucket,
and each row continues at the end of its own prompt, so that padding is never attended to.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import nn, random
from atled.core import errors, tree
from atled.core.array import ArrayLike
from atled.generate.sampling import GREEDY, Sampling
from atled.nn.quantization import transpose_narrow
from atled.staging.jit import library_function
from atled.transforms.vmap import vmap

_SMALLEST = 32  # the smallest bucket


def tokens(
    model: Any,
    prompts: Sequence[ArrayLike],
    *,
    max_new_tokens: int,
    sampling: Sampling = GREEDY,
    stop_tokens: Sequence[int] = (),
    key: ArrayLike | None = None,
) -> list[np.ndarray]:
    """The tokens that a model adds to each prompt, up to and including a stop token.

    A row depends on its own prompt, its row number and the key only: not on other rows, their number or padding.

    Args:
        model: a decoder, such as `models.llama.Model`; or an encoder-decoder model, which encodes the prompts.
        prompts: integers, one array for each prompt; they may differ in length.
        sampling: see `Sampling`; greedy by default.
        stop_tokens: tokens that end a row.
        key: a random key, needed unless decoding is greedy.

    >>> from atled import generate, models, random
    >>> config = models.gpt2.Config(100, 64, n_embd=16, n_layer=2, n_head=2)
    >>> model = models.gpt2.Model(config, key=random.key(0))
    >>> [len(row) for row in generate.tokens(model, [[1, 2, 3], [4]], max_new_tokens=5)]
    [5, 5]
    """
    rows: list[list[int]] = [[] for _ in prompts]
    for new in steps(model, prompts, max_new_tokens, sampling, stop_tokens, key):
        for row, token in zip(rows, new, strict=True):
            if token is not None:
                row.append(token)
    return [np.array(row, "int32") for row in rows]


def steps(
    model: Any, prompts: Sequence[ArrayLike], max_new_tokens: int, sampling: Sampling, stop_tokens: Sequence[int],
    key: ArrayLike | None,
) -> Iterator[list[int | None]]:  # fmt: skip
    """The new token of each row, step by step; None for rows that have ended."""
    if key is None and sampling.temperature:
        raise ValueError(
            errors.explained("generate: sampling with a temperature needs a random key.", "key=random.key(0).")
        )
    model, prompts = started(model, prompts)
    ids, lengths = padded(prompts)
    if max_new_tokens < 1:
        return
    length = bucket(ids.shape[1] + max_new_tokens)
    keys = vmap(lambda row: random.fold_in(random.key(0) if key is None else key, row))(jnp.arange(len(prompts)))
    weights, cache, logits = prefill(model, ids, lengths, length)
    seen = None
    if sampling.repetition_penalty != 1:
        seen = np.zeros((len(prompts), logits.shape[-1]), bool)
        for i, prompt in enumerate(prompts):
            seen[i, prompt] = True
    drawn = _first(sampling, logits, keys, seen)
    ended, stops = np.zeros(len(prompts), bool), set(stop_tokens)
    for i in range(max_new_tokens):
        token, seen = drawn
        if i + 1 < max_new_tokens:  # the next step runs while this one's tokens are read
            drawn, cache = _step(sampling, weights, cache, token, seen, keys, i + 1)
        out = [None if end else int(t) for t, end in zip(np.asarray(token), ended, strict=True)]
        yield out
        ended |= np.array([t in stops for t in out])
        if ended.all():
            return


def started(model: Any, prompts: Sequence[ArrayLike]) -> tuple[Any, list[np.ndarray]]:
    """The model and prompts of the decoder: for an encoder-decoder model, the encoded prompts and a start token."""
    rows = [np.asarray(p) for p in prompts]
    for row in rows:
        if row.ndim != 1 or not row.size or row.dtype.kind not in "iu":
            raise ValueError(
                errors.explained(
                    "generate: each prompt must be a sequence of one or more integers; got an array of shape "
                    f"{row.shape} and dtype {row.dtype}.",
                    "[[1, 2, 3]] for one prompt.",
                )
            )
    if not rows:
        raise ValueError(errors.explained("generate: there must be one or more prompts; got none."))
    model = model.eval() if model.training else model
    if not hasattr(model, "encode"):
        return model, rows
    ids, lengths = padded(rows)
    where = np.arange(ids.shape[1]) < lengths[:, None]
    return _encode(model, ids, where), [np.array([model.config.decoder_start_token_id], "int32") for _ in rows]


def padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Prompts in one array (batch, bucket), with zeros on the right; and their lengths."""
    lengths = np.array([len(r) for r in rows], "int32")
    ids = np.zeros((len(rows), bucket(int(lengths.max()))), "int32")
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    return ids, lengths


def bucket(length: int) -> int:
    """The smallest of 32, 64, 128, … and multiples of 1,024 that is not less."""
    return max(_SMALLEST, 1 << (length - 1).bit_length()) if length <= 1024 else -(-length // 1024) * 1024


@library_function
def _encode(model: Any, ids: Any, where: Any) -> Any:
    return model.encode(ids, where)


def prefill(model: Any, ids: np.ndarray, lengths: np.ndarray, length: int) -> tuple[Any, Any, Any]:
    """The model without the arrays of its cache, the cache after the prompts, and the logits that follow them."""
    cache, logits = _prefill(model, ids, lengths, length)
    if _is_on_cpu(model):  # a loop over stacked layers would copy the weights of each layer at each step
        model, arrays = _unstacked(model), tree.leaves(nn.unstack(cache))
        cache = tree.structure(nn.filter(nn.init_cache(model, 1, length), nn.Cache)).unflatten(arrays)
    return without_cache(nn.init_cache(model, 1, length)), cache, logits


def _is_on_cpu(model: Any) -> bool:
    return all([d.platform == "cpu" for x in tree.leaves(model)[:1] for d in x.devices()])


_unstacked_models: weakref.WeakKeyDictionary[Any, tuple[list[Any], Any, Any]] = weakref.WeakKeyDictionary()


def _unstacked(model: Any) -> Any:
    """The model with separate layers, which is kept until the model is gone or has other arrays."""
    leaves, structure = tree.flatten(model)
    found = _unstacked_models.get(model)
    if found is None or found[1] != structure or any([a is not b for a, b in zip(leaves, found[0], strict=True)]):
        found = _unstacked_models[model] = (leaves, structure, transpose_narrow(nn.unstack(model)))
    return found[2]


@library_function(static=("length",))
def _prefill(model: Any, ids: Any, lengths: Any, length: int) -> tuple[Any, Any]:
    model = nn.init_cache(model, len(ids), length)
    features = model.features(ids)
    last = jnp.take_along_axis(features, (lengths - 1)[:, None, None], 1)[:, 0]
    return nn.filter(nn.seek(model, lengths), nn.Cache), model.logits(last)


def without_cache(model: Any) -> Any:
    """The model with None in place of the arrays of its cache."""
    leaves, structure = tree.flatten(model)
    is_cache = [kind is not None and issubclass(kind, nn.Cache) for kind in structure.kinds]
    return structure.unflatten([None if c else x for x, c in zip(leaves, is_cache, strict=True)])


def following_logits(weights: Any, cache: Any, token: Any) -> tuple[Any, Any]:
    """The logits (batch, vocabulary) after one more token of each row, and the new cache."""
    model = nn.merge(weights, cache)
    logits = model.logits(model.features(token[:, None])[:, 0])
    return logits, nn.filter(model, nn.Cache)


@library_function(static=("sampling",))
def _first(sampling: Sampling, logits: Any, keys: Any, seen: Any) -> tuple[Any, Any]:
    return _drawn(sampling, logits, keys, seen, 0)


@library_function(static=("sampling",), donate=("cache", "seen"))
def _step(
    sampling: Sampling, weights: Any, cache: Any, token: Any, seen: Any, keys: Any, i: Any
) -> tuple[tuple[Any, Any], Any]:
    logits, cache = following_logits(weights, cache, token)
    return _drawn(sampling, logits, keys, seen, i), cache


def _drawn(sampling: Sampling, logits: Any, keys: Any, seen: Any, i: Any) -> tuple[Any, Any]:
    """The tokens of step i, and the tokens seen up to it."""
    token = sampling.draw(vmap(random.fold_in, (0, None))(keys, i), logits, seen)
    return token, None if seen is None else seen.at[jnp.arange(len(token)), token].set(True)
