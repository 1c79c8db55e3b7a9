"""Seeds and the threefry hash, with the API of `jax.extend.random`. There is only one PRNG implementation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atled import random
from atled.core.array import Array, type_of
from atled.numpy import concatenate, reshape, uint32, zeros
from atled.ops.random import threefry2x32
from atled.transforms.vmap import vmap

__all__ = ["random_seed", "seed_with_impl", "threefry_2x32", "threefry_prng_impl"]
__dir__ = __all__.copy


class PRNGImpl(NamedTuple):
    """The implementation of a kind of keys."""

    name: str
    key_shape: tuple[int, ...]
    tag: str


threefry_prng_impl = PRNGImpl("threefry2x32", (2,), "fry")


def random_seed(seeds: Any, impl: PRNGImpl = threefry_prng_impl) -> Array:
    """An array of keys, one for each seed.

    >>> random_seed(np.arange(3), threefry_prng_impl).shape
    (3,)
    """
    make = lambda seed: random.key(seed, impl=impl.name)  # noqa: E731
    for _ in range(np.ndim(seeds)):
        make = vmap(make)
    return make(seeds)


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Array:
    """A key for a seed.

    >>> random.key_data(seed_with_impl(threefry_prng_impl, 3))
    Array([0, 3], dtype=uint32)
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """The threefry hash of an array of counts, with the same shape.

    >>> threefry_2x32((np.uint32(1), np.uint32(2)), np.arange(3, dtype="uint32")).shape
    (3,)
    """
    key1, key2 = keypair
    types = [type_of(x) for x in (key1, key2, count)]
    if any([t.dtype != np.uint32 for t in types]):
        raise TypeError(f"threefry_2x32: the key and the counts must be uint32; got {types}.")
    size = types[2].size
    flat = concatenate([reshape(count, (size,)), zeros(size % 2, uint32)])
    half = (size + 1) // 2
    parts = threefry2x32(_filled(key1, half), _filled(key2, half), flat[:half], flat[half:])
    return reshape(concatenate(parts)[:size], types[2].shape)


def _filled(word: Any, count: int) -> Array:
    return zeros(count, uint32) + word
