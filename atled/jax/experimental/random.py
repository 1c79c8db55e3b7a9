"""A stateful random generator, with the API of `jax.experimental.random`.

>>> rng = stateful_rng(0)
>>> rng.uniform(size=2).shape, bool(rng.normal() == rng.normal())
((2,), False)
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled import random
from atled.core import dtypes
from atled.core.array import Array, type_of
from atled.jax.ref import Ref, new_ref

__all__ = ["StatefulPRNG", "stateful_rng"]
__dir__ = __all__.copy
Size = int | Sequence[int] | None


def _size(size: Size, *parameters: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*[np.shape(p) for p in parameters])
    return (operator.index(size),) if isinstance(size, (int, np.number)) else tuple([operator.index(n) for n in size])


class StatefulPRNG:
    """A key and a counter; each draw uses a new key. See `stateful_rng`.

    >>> rng = stateful_rng(0)
    >>> isinstance(rng, StatefulPRNG), bool(rng.random() == rng.random())
    (True, False)
    """

    def __init__(self, base_key: Array, counter: Ref) -> None:
        if not (isinstance(base_key, Array) and dtypes.issubdtype(base_key.dtype, dtypes.prng_key)):
            raise ValueError(f"StatefulPRNG: a key is needed; got {base_key}.")
        if not isinstance(counter, Ref):
            raise ValueError(f"StatefulPRNG: the counter must be a reference; got {counter}.")
        self._base_key, self._counter = base_key, counter

    def __repr__(self) -> str:
        return f"StatefulPRNG({self._base_key}, {self._counter})"

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key, or an array of new keys with the given shape."""
        if type_of(self._base_key).shape:
            raise ValueError("StatefulPRNG: the base key must be a single key; got an array of keys.")
        new_key = random.fold_in(self._base_key, self._counter[...])
        self._counter.addupdate(1)
        dims = _size(shape)
        return random.split(new_key, dims) if dims else new_key

    def random(self, size: Size = None, dtype: Any = float) -> Array:
        """Uniformly distributed numbers in [0, 1)."""
        return random.uniform(self.key(), _size(size), dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float) -> Array:
        """Uniformly distributed numbers in [`low`, `high`)."""
        return random.uniform(self.key(), _size(size, low, high), dtype, low, high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float) -> Array:
        """Normally distributed numbers with a given mean and standard deviation."""
        drawn = random.normal(self.key(), _size(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * drawn).astype(dtype)

    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int) -> Array:
        """Uniformly distributed integers in [`low`, `high`), or in [0, `low`) without `high`."""
        low, high = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _size(size, low, high), low, high, dtype)

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of `n_children` independent generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A stateful generator from an integer seed or a key; without a seed, it is seeded randomly.

    The generator's counter is a reference, so a jitted function must create its own generator from a key argument.

    >>> int(stateful_rng(3).integers(10)) == int(stateful_rng(3).integers(10))
    True
    """
    if seed is None:
        seed = np.int64(int.from_bytes(os.urandom(7), "little"))
    is_key = isinstance(seed, Array) and dtypes.issubdtype(seed.dtype, dtypes.prng_key)
    return StatefulPRNG(seed if is_key else random.key(seed, impl=impl), new_ref(0))
