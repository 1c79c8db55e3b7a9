"""How the next token is chosen from its logits."""

from __future__ import annotations

import dataclasses
from typing import Any

import atled.numpy as jnp
from atled import lax, nn, random
from atled.core import errors
from atled.transforms.vmap import vmap

_CANDIDATES = 256  # tokens that are sorted first for top_p; all are sorted where these are not enough


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; the default is greedy decoding, the token with the largest logit.

    Args:
        temperature: divides the logits; 0 is greedy decoding.
        top_k: only the k most likely tokens are kept.
        top_p: only the most likely tokens whose probabilities sum to `top_p` are kept; at least one.
        min_p: only tokens with at least this fraction of the largest probability are kept.
        repetition_penalty: positive logits of tokens that were seen are divided by it, negative ones multiplied.

    They are applied in the order penalty, temperature, top_k, top_p, min_p; each renormalizes what the previous one
    kept.

    >>> from atled import generate, random
    >>> import atled.numpy as jnp
    >>> generate.Sampling(temperature=0.8, top_k=40).log_probabilities(jnp.array([[2.0, 1.0, 0.0]])).shape
    (1, 3)
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        limits = {
            "temperature": self.temperature >= 0, "top_k": self.top_k is None or self.top_k >= 1,
            "top_p": self.top_p is None or 0 < self.top_p <= 1, "min_p": self.min_p is None or 0 <= self.min_p <= 1,
            "repetition_penalty": self.repetition_penalty > 0,
        }  # fmt: skip
        wrong = [name for name, is_valid in limits.items() if not is_valid]
        if wrong:
            got = getattr(self, wrong[0])
            raise ValueError(errors.explained(f"generate.Sampling: {wrong[0]} is out of range; got {got!r}."))

    def log_probabilities(self, logits: Any, seen: Any = None) -> Any:
        """The log-probabilities (…, vocabulary) to draw from; -inf for tokens that are not kept.

        Args:
            seen: True for tokens of the prompt and of the text so far, (…, vocabulary); for the repetition penalty.
        """
        logits = self.penalized(logits, seen)
        if self.temperature == 0:
            best = jnp.argmax(logits, -1, keepdims=True)
            return jnp.where(jnp.arange(logits.shape[-1]) == best, 0.0, -jnp.inf)
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = lax.top_k(logits, self.top_k)[0][..., -1:]
            logits = jnp.where(logits < least, -jnp.inf, logits)
        if self.top_p is not None and self.top_p < 1:
            logits = jnp.where(logits < _nucleus(logits, self.top_p), -jnp.inf, logits)
        if self.min_p:
            least = jnp.max(logits, -1, keepdims=True) + jnp.log(self.min_p)
            logits = jnp.where(logits < least, -jnp.inf, logits)
        return nn.log_softmax(logits)

    def penalized(self, logits: Any, seen: Any) -> Any:
        """The logits in float32 or wider, after the repetition penalty."""
        logits = logits.astype(jnp.promote_types(logits.dtype, "float32"))
        if self.repetition_penalty == 1 or seen is None:
            return logits
        penalty = self.repetition_penalty
        return jnp.where(seen, jnp.where(logits > 0, logits / penalty, logits * penalty), logits)

    def draw(self, keys: Any, logits: Any, seen: Any = None) -> Any:
        """The next token of each row, (batch,), from logits (batch, vocabulary) and a key for each row."""
        if self.temperature == 0:
            return jnp.argmax(self.penalized(logits, seen), -1).astype("int32")
        return vmap(random.categorical)(keys, self.log_probabilities(logits, seen)).astype("int32")


GREEDY = Sampling()


def _nucleus(logits: Any, top_p: float) -> Any:
    """The smallest logit that is kept: the first at which the sum of probabilities reaches `top_p`."""
    total = nn.logsumexp(logits, axis=-1, keepdims=True)

    def least(ordered: Any) -> Any:
        before = jnp.cumsum(jnp.exp(ordered - total), -1) - jnp.exp(ordered - total)
        kept = jnp.sum(before < top_p, -1, keepdims=True)
        return jnp.take_along_axis(ordered, kept - 1, -1)

    def among_all(logits: Any) -> Any:
        return least(-jnp.sort(-logits, axis=-1))

    count = min(_CANDIDATES, logits.shape[-1])
    if count == logits.shape[-1]:
        return among_all(logits)
    top, _ = lax.top_k(logits, count)
    is_enough = jnp.all(jnp.sum(jnp.exp(top - total), -1) >= top_p)
    return lax.cond(is_enough, lambda _: least(top), among_all, logits)
