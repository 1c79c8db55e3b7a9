"""Shuffled orders that are computed, not stored: a keyed permutation of 0 … n-1 with random access.

A position is split into two digits, and each in turn is shifted by a hash of the other digit: an unbalanced Feistel
network over numbers (Black and Rogaway, 2002). The product of the two bases is n or a little more; results of n or more
are permuted again (cycle walking).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import SeedSequence  # at module level, because this module is only imported on first use

ROUNDS = 32  # short permutations need more rounds to be uniform
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def round_keys(*words: int) -> np.ndarray:
    """The keys of all rounds, from a seed and the other numbers that determine the order."""
    return SeedSequence(fixed_width(*words)).generate_state(ROUNDS, np.uint64)


def fixed_width(*words: int) -> list[int]:
    """Two 32-bit words for each number, whereas `SeedSequence` alone uses as many words as a number needs."""
    return [part for word in words for part in (word & 0xFFFFFFFF, word >> 32)]


def permuted(positions: np.ndarray, size: int, keys: np.ndarray) -> np.ndarray:
    """The elements at `positions` of the permutation of 0 … size-1 that `keys` determine.

    >>> sorted(permuted(np.arange(5), 5, round_keys(0)).tolist())
    [0, 1, 2, 3, 4]
    """
    if size < 2:
        return np.zeros_like(positions)
    digit = math.isqrt(size - 1) + 1
    other = -(-size // digit)
    targets = _shifted(positions.astype(np.uint64), digit, other, keys)
    outside = np.flatnonzero(targets >= size)
    while outside.size:
        targets[outside] = _shifted(targets[outside], digit, other, keys)
        outside = outside[targets[outside] >= size]
    return targets.astype(np.int64)


def _shifted(x: np.ndarray, digit: int, other: int, keys: np.ndarray) -> np.ndarray:
    """Permute numbers below digit * other by all rounds, once."""
    a, b = np.uint64(digit), np.uint64(other)
    high, low = np.divmod(x, a)  # high < other, low < digit
    for i in range(0, ROUNDS if digit < 256 else 8, 2):
        low = (low + _hashed(high, keys[i]) % a) % a
        high = (high + _hashed(low, keys[i + 1]) % b) % b
    return high * a + low


def _hashed(x: np.ndarray, key: np.uint64) -> np.ndarray:
    """A 64-bit hash of 64-bit numbers and a key (the finalizer of SplitMix64)."""
    x = x ^ key
    x = (x ^ (x >> _SHIFTS[0])) * _FACTORS[0]
    x = (x ^ (x >> _SHIFTS[1])) * _FACTORS[1]
    return x ^ (x >> _SHIFTS[2])
