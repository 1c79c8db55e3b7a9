"""Functions of `lax` that compute nothing (tokens, barriers, `dce_sink`, `stage`); random generators; `fft`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, errors, tree
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.lax.conversion import bitcast_convert_type
from atled.numpy.creation import asarray
from atled.ops import fft as _fft
from atled.ops import random, shape
from atled.ops.placement import placed


class FftType(enum.IntEnum):
    """The kind of Fourier transform that `fft` computes.

    >>> FftType.RFFT
    <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class RandomAlgorithm(enum.IntEnum):
    """The algorithm with which `rng_bit_generator` generates bits.

    >>> from atled import lax
    >>> state, bits = rng_bit_generator(lax.iota("uint64", 3), (4,), algorithm=RandomAlgorithm.RNG_PHILOX)
    >>> bits.shape, bits.dtype
    ((4,), dtype('uint32'))
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def create_token(_: Any = None) -> Array:
    """A token: an empty array. The argument is ignored.

    >>> create_token().shape
    (0,)
    """
    return shape.zeros(_TOKEN)


_TOKEN = type_of(np.zeros((0,), bool))


def after_all(*operands: Any) -> Array:
    """A token that is ready when all operands are ready.

    >>> after_all(create_token(), create_token()).shape
    (0,)
    """
    for x in operands:
        t = type_of(x)
        if t.dtype is not dtypes.bool_ or t.shape[-1:] != (0,):
            raise TypeError(errors.explained(f"after_all: tokens are needed; got {t}.", "lax.create_token()."))
    return shape.optimization_barrier(*operands)[0] if operands else create_token()


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """No effect: in JAX it marks a value as used, but atled removes dead code that computes the value.

    >>> dce_sink(1.0)
    """


def stage(x: ArrayLike, /) -> Array:
    """A number or NumPy array as an array: a tracer inside of a trace, else an array on the device.

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
    """Uniform numbers from `a` up to `b` from the device's stateful generator, different in each run.

    The numbers are not reproducible; use `random.uniform` with a key instead.

    >>> bool((rng_uniform(0.0, 1.0, (3,)) < 1).all())
    True
    """
    return random.rng_uniform(a, b, shape)


def rng_bit_generator(
    key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm | int | str = RandomAlgorithm.RNG_DEFAULT, *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """The next state of a generator, and random bits; the default algorithm depends on the platform (CPU: Philox).

    The state is a vector of uint64, or four words of uint32.

    >>> from atled import lax
    >>> state, bits = rng_bit_generator(lax.iota("uint64", 2), (2, 3))
    >>> bits.shape, bits.dtype, state.shape
    ((2, 3), dtype('uint32'), (2,))
    """
    name = RandomAlgorithm(algorithm).name if not isinstance(algorithm, str) else algorithm
    chosen = {"RNG_DEFAULT": "DEFAULT", "RNG_THREE_FRY": "THREE_FRY", "RNG_PHILOX": "PHILOX"}.get(name, name)
    words = asarray(key)
    is_narrow = words.dtype == np.uint32 and words.shape == (4,)  # like JAX's "rbg" keys: two 64-bit words
    seed = bitcast_convert_type(words.reshape(2, 2), np.uint64) if is_narrow else words
    state, bits = random.rng_bit_generator(seed, tuple(shape), dtypes.canonical(dtype), chosen)
    if is_narrow:
        state = bitcast_convert_type(state, np.uint32).reshape(4)
    return state, placed(bits, out_sharding, "rng_bit_generator")


def fft(x: ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> Array:
    """A Fourier transform of the last axes.

    >>> import atled.numpy as jnp
    >>> fft(jnp.array([1.0, 0.0, -1.0, 0.0]), "rfft", (4,))
    Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)
    """
    return _fft.fft(x, str(getattr(fft_type, "name", fft_type)).upper(), tuple(fft_lengths))


def optimization_barrier(operand: Any) -> Any:
    """The same pytree, behind an optimization barrier.

    >>> import atled
    >>> f = atled.jit(lambda x: optimization_barrier(x + 1) * 2)  # the two ops are not fused
    >>> f(3.0)
    Array(8., dtype=float32, weak_type=True)
    """
    leaves, structure = tree.flatten(operand)
    return structure.unflatten(shape.optimization_barrier(*leaves)) if leaves else operand
