"""Tokens, `dce_sink` and `stage`, which compute nothing; the device's stateful random generator."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.creation import asarray
from atled.ops import random, shape


class FftType(enum.IntEnum):
    """The kind of Fourier transform that `fft` computes.

    >>> FftType.RFFT
    <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def create_token(_: Any = None) -> Array:
    """A token: an empty array. The argument is ignored.

    >>> create_token().shape
    (0,)
    """
    return shape.zeros(_TOKEN)


_TOKEN = type_of(np.zeros((0,), bool))


def after_all(*operands: Any) -> Array:
    """One token that is ready when all of the given ones are.

    >>> after_all(create_token(), create_token()).shape
    (0,)
    """
    for x in operands:
        t = type_of(x)
        if t.dtype is not dtypes.bool_ or t.shape[-1:] != (0,):
            raise TypeError(errors.explained(f"after_all: tokens are needed; got {t}.", "lax.create_token()."))
    return shape.optimization_barrier(*operands)[0] if operands else create_token()


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Marks a value as used, in JAX. No effect here: dead code is still removed.

    >>> dce_sink(1.0)
    """


def stage(x: ArrayLike, /) -> Array:
    """A number or NumPy array as an array: a tracer while tracing, else on the device.

    >>> stage(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return asarray(x)


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array of integers.

    >>> shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return asarray(np.asarray(tuple(shape), dtypes.default("i")))


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Numbers from `a` up to `b` from the device's stateful generator, different in each run.

    They are not reproducible; use `random.uniform` with a key instead.

    >>> bool((rng_uniform(0.0, 1.0, (3,)) < 1).all())
    True
    """
    return random.rng_uniform(a, b, shape)
