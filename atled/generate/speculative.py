"""Speculative decoding: a small model drafts several tokens, the large model checks all of them in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import lax, nn, random
from atled.core import errors
from atled.core.array import ArrayLike
from atled.generate.decoding import bucket, following_logits, padded, prefill, started
from atled.generate.sampling import GREEDY, Sampling
from atled.staging.jit import library_function
from atled.transforms.vmap import vmap


def speculate(
    model: Any,
    draft: Any,
    prompts: Sequence[ArrayLike],
    *,
    max_new_tokens: int,
    num_draft_tokens: int = 4,
    sampling: Sampling = GREEDY,
    stop_tokens: Sequence[int] = (),
    key: ArrayLike | None = None,
) -> list[np.ndarray]:
    """The tokens that a model adds to each prompt, drafted by a smaller model with the same tokens.

    The distribution is that of `generate.tokens` with the model alone (Leviathan et al., 2023): a drafted token with
    probability q is accepted with probability min(1, p / q), and replaced by a draw from max(p - q, 0) otherwise.
    Greedy decoding gives the same tokens. It is faster where the draft is often right.

    Args:
        num_draft_tokens: how many tokens are drafted for each call of the model.

    The other arguments are those of `generate.tokens`, without the repetition penalty.

    >>> from atled import generate, models, random
    >>> config = models.gpt2.Config(100, 64, n_embd=16, n_layer=2, n_head=2)
    >>> model, draft = [models.gpt2.Model(config, key=random.key(i)) for i in range(2)]
    >>> fast = generate.speculate(model, draft, [[1, 2, 3]], max_new_tokens=6)
    >>> bool((fast[0] == generate.tokens(model, [[1, 2, 3]], max_new_tokens=6)[0]).all())
    True
    """
    if sampling.repetition_penalty != 1:
        raise ValueError(errors.explained("generate.speculate: a repetition penalty is not supported."))
    if key is None and sampling.temperature:
        raise ValueError(
            errors.explained("generate: sampling with a temperature needs a random key.", "key=random.key(0).")
        )
    if num_draft_tokens < 1:
        raise ValueError(errors.explained("generate.speculate: num_draft_tokens must be 1 or more."))
    (model, prompts), (draft, _) = started(model, prompts), started(draft, prompts)
    ids, lengths = padded(prompts)
    length = bucket(ids.shape[1] + max_new_tokens + num_draft_tokens + 1)
    keys = vmap(lambda row: random.fold_in(random.key(0) if key is None else key, row))(jnp.arange(len(prompts)))
    weights, cache, logits = prefill(model, ids, lengths, length)
    draft_weights, draft_cache, _ = prefill(draft, ids, lengths, length)
    token = np.asarray(_first(sampling, logits, keys))
    rows, stops, at = [[int(t)] for t in token], set(stop_tokens), np.array(lengths)
    for i in range(1, max_new_tokens):
        if all([len(row) >= max_new_tokens or row[-1] in stops for row in rows]):
            break
        (new, counts), cache, draft_cache = _round(
            sampling, num_draft_tokens, weights, cache, draft_weights, draft_cache, token, at, keys, i
        )
        new, counts = np.asarray(new), np.asarray(counts)
        for r, row in enumerate(rows):
            for t in new[r, : counts[r]]:
                if len(row) < max_new_tokens and row[-1] not in stops:
                    row.append(int(t))
        is_open = np.array([len(row) < max_new_tokens and row[-1] not in stops for row in rows])
        at, token = np.where(is_open, at + counts, at), new[np.arange(len(rows)), counts - 1]
    return [np.array(row, "int32") for row in rows]


@library_function(static=("sampling",))
def _first(sampling: Sampling, logits: Any, keys: Any) -> Any:
    return sampling.draw(vmap(random.fold_in, (0, None))(keys, 0), logits)


@library_function(static=("sampling", "count"), donate=("cache", "draft_cache"))
def _round(
    sampling: Sampling, count: int, weights: Any, cache: Any, draft_weights: Any, draft_cache: Any, token: Any,
    at: Any, keys: Any, i: Any,
) -> tuple[tuple[Any, Any], Any, Any]:  # fmt: skip
    """The next tokens (batch, count + 1), of which the first `counts` are valid, from the last token at position at."""
    keys = vmap(random.fold_in, (0, None))(keys, i)
    draft_cache = nn.filter(nn.seek(nn.merge(draft_weights, draft_cache), at), nn.Cache)

    def drafted(carry: Any, n: Any) -> Any:
        cache, last = carry
        logits, cache = following_logits(draft_weights, cache, last)
        own = vmap(random.fold_in, (0, None))(keys, n)
        logs = sampling.log_probabilities(logits)
        new = vmap(random.categorical)(own, logs).astype("int32")
        return (cache, new), (new, logs)

    # One step more than is drafted, so that the cache has all drafted tokens.
    (draft_cache, _), (drafts, q) = lax.scan(drafted, (draft_cache, token), jnp.arange(count + 1))
    drafts, q = drafts[:count].T, jnp.moveaxis(q[:count], 0, 1)
    model = nn.seek(nn.merge(weights, cache), at)
    logits = model.logits(model.features(jnp.concatenate([token[:, None], drafts], 1)))
    p = sampling.log_probabilities(logits)
    ratio = jnp.take_along_axis(p[:, :count] - q, drafts[..., None], -1)[..., 0]
    uniform = vmap(lambda k: random.uniform(random.fold_in(k, count + 1), (count,)))(keys)
    accepted = jnp.cumprod(jnp.log(uniform) < ratio, -1).sum(-1)
    # Where a draft was rejected, draw from what the model has in excess of it; after the last one, from the model.
    q = jnp.concatenate([q, jnp.full_like(p[:, :1], -jnp.inf)], 1)
    p, q = [jnp.take_along_axis(x, accepted[:, None, None], 1)[:, 0] for x in (p, q)]
    excess = jnp.log(jnp.maximum(jnp.exp(p) - jnp.exp(q), 0))
    excess = jnp.where(jnp.isneginf(excess).all(-1, keepdims=True), p, excess)  # p and q are equal up to rounding
    last = vmap(lambda k, logits: random.categorical(random.fold_in(k, count + 2), logits))(keys, excess)
    new = jnp.where(jnp.arange(count + 1) == accepted[:, None], last[:, None], jnp.pad(drafts, [(0, 0), (0, 1)]))
    return (new.astype("int32"), accepted + 1), nn.filter(model, nn.Cache), draft_cache
