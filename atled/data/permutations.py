"""Shuffled orders that are computed, not stored: a keyed permutation of 0 … n-1 with random access.

Positions are split into two digits, and each in turn is shifted by a hash of the other one: an unbalanced Feistel
network over numbers (Black and Rogaway, 2002). The digits' product is a little above n; results beyond n are permuted
again (cycle walking).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import SeedSequence  # imported here, because it is slow and only needed on first use

ROUNDS = 32  # short permutations need more rounds to be uniform
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def round_keys(*words: int) -> np.ndarray:
    """The keys of all rounds, from a seed and the other numbers that the order depends on."""
    return SeedSequence(fixed_width(*words)).generate_state(ROUNDS, np.uint64)


def fixed_width(*words: int) -> list[int]:
    """Numbers as 32-bit words, always two for each number, whereas NumPy uses as many as a number needs."""
    return [part for word in words for part in (word & 0xFFFFFFFF, word >> 32)]


def permuted(positions: np.ndarray, size: int, keys: np.ndarray) -> np.ndarray:
    """The numbers at these positions of a permutation of 0 … size-1.

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
    """One pass of all rounds over numbers below digit * other."""
    a, b = np.uint64(digit), np.uint64(other)
    high, low = np.divmod(x, a)  # below other, below digit
    for i in range(0, ROUNDS if digit < 256 else 8, 2):
        low = (low + _hashed(high, keys[i]) % a) % a
        high = (high + _hashed(low, keys[i + 1]) % b) % b
    return high * a + low


def _hashed(x: np.ndarray, key: np.uint64) -> np.ndarray:
    """A 64-bit hash of 64 bits and a key (the finalizer of SplitMix64)."""
    x = x ^ key
    x = (x ^ (x >> _SHIFTS[0])) * _FACTORS[0]
    x = (x ^ (x >> _SHIFTS[1])) * _FACTORS[1]
    return x ^ (x >> _SHIFTS[2])
