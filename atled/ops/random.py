"""Random bits: the Threefry generator, the compiler's own generators, and the conversion between words and keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import Op
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import conversion, elementwise, shape
from atled.ops.elementwise_family import align

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


class Threefry2x32(Op):
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011): two counter words, encrypted with two key words."""

    gives_tuple = True

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ArrayType]:
        dims = max([t.shape for t in types], key=len)
        if any(t.dtype is not dtypes.uint32 or t.shape not in ((), dims) for t in types):
            raise TypeError(
                f"threefry2x32: four uint32 operands of the same shape, or scalars, are needed; got {list(types)}."
            )
        out = ArrayType(dims, dtypes.uint32)
        return out, out

    def lower(self, build: Any, *words: Any) -> Any:
        dims = self.result_type(*[w.type for w in words])[0].shape
        k0, k1, x0, x1 = (build.spread(w, dims) for w in words)
        if math.prod(dims) < _MANY:
            return build.apply(_rounds, k0, k1, x0, x1)
        # one loop over 64-bit counters that pack both words, instead of a dozen passes over memory
        both = build.map(_rounds_of_both, build.apply(_joined, x0, x1), k0, k1)
        return build.apply(_parted, both)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        return out, tuple([Zero(type_of(x).tangent()) for x in out])

    def batch(self, batched: tuple[bool, ...], *words: Any) -> Any:
        return bind(self, *align(batched, words))


_MANY = 1024


def _joined(high: Any, low: Any) -> Any:
    """Two 32-bit words packed into a 64-bit word."""
    high, low = (conversion.convert(w, np.uint64) for w in (high, low))
    return elementwise.logical_or(elementwise.shift_left(high, np.uint64(32)), low)


def _parted(both: Any) -> tuple[Any, Any]:
    """The two 32-bit words that are packed in a 64-bit word."""
    high = elementwise.shift_right_logical(both, np.uint64(32))
    return conversion.convert(high, np.uint32), conversion.convert(both, np.uint32)


def _rounds_of_both(counters: Any, k0: Any, k1: Any) -> Any:
    return _joined(*_rounds(k0, k1, *_parted(counters)))


def _rounds(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    add, xor = elementwise.add, elementwise.logical_xor
    keys = (k0, k1, xor(xor(k0, k1), np.uint32(0x1BD11BDA)))
    x0, x1 = add(x0, keys[0]), add(x1, keys[1])
    for i in range(5):
        for distance in _ROTATIONS[i % 2]:
            x0 = add(x0, x1)
            left = elementwise.shift_left(x1, np.uint32(distance))
            right = elementwise.shift_right_logical(x1, np.uint32(32 - distance))
            x1 = xor(elementwise.logical_or(left, right), x0)
        x0 = add(x0, keys[(i + 1) % 3])
        x1 = add(add(x1, keys[(i + 2) % 3]), np.uint32(i + 1))
    return x0, x1


class RngBitGenerator(Op):
    """The next state, and random bits of a shape and dtype; fast, but the bits depend on the platform."""

    gives_tuple = True
    shape: tuple[int, ...]
    dtype: Any
    algorithm: str = "THREE_FRY"

    def result_type(self, state: ArrayType) -> tuple[ArrayType, ArrayType]:
        if state.dtype is not dtypes.uint64 or state.ndim != 1:
            raise TypeError(f"rng_bit_generator: the state must be a uint64 vector; got {state}.")
        return state, ArrayType(self.shape, self.dtype)

    def lower(self, build: Any, state: Any) -> Any:
        attributes = {"rng_algorithm": f"#stablehlo<rng_algorithm {self.algorithm}>"}
        return build.emit("stablehlo.rng_bit_generator", (state,), self.result_type(state.type), attributes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        return out, tuple([Zero(type_of(x).tangent()) for x in out])

    def batch(self, batched: Any, state: Any) -> Any:
        rows = [bind(self, shape.index_in_axis(state, i, 0)) for i in range(type_of(state).shape[0])]
        stack = lambda xs: shape.concatenate([shape.add_axis(x, 1) for x in xs], 0)  # noqa: E731
        return stack([s for s, _ in rows]), stack([b for _, b in rows])


class RngUniform(Op):
    """Uniform random numbers between two bounds from the device's stateful generator; each run gives other numbers."""

    shape: tuple[int, ...]

    def result_type(self, low: ArrayType, high: ArrayType) -> ArrayType:
        # XLA aborts for other dtypes
        is_known = low.kind in "iuf" and dtypes.bits(low.dtype) >= (16 if low.kind == "f" else 32)
        if not is_known or low.dtype is not high.dtype or low.shape != () or high.shape != ():
            raise TypeError(
                f"rng_uniform: bounds must be two numbers of one dtype, floating or 32 bits wide; got {low} and {high}."
            )
        return ArrayType(self.shape, low.dtype, low.weak and high.weak)

    def lower(self, build: Any, low: Any, high: Any) -> Any:
        out = self.result_type(low.type, high.type)
        dims = build.constant(np.asarray(self.shape, np.int64), ArrayType((len(self.shape),), np.dtype(np.int64)))
        attributes = {"rng_distribution": "#stablehlo<rng_distribution UNIFORM>"}
        return build.emit("stablehlo.rng", (low, high, dims), (out,), attributes)


class WrapKey(Op):
    """Random keys made of the pairs of words on the last axis."""

    takes_keys = True

    def result_type(self, words: ArrayType) -> ArrayType:
        if words.dtype is not dtypes.uint32 or words.ndim == 0 or words.shape[-1] != 2:
            raise TypeError(f"wrap_key_data: keys are made of uint32 arrays whose last axis has length 2; got {words}.")
        return ArrayType(words.shape[:-1], dtypes.key_dtype)

    def lower(self, build: Any, words: Any) -> Any:
        last = words.type.ndim - 1
        moved = build.apply(lambda w: shape.move_axis(w, last, 0), words)
        return type(words)(moved.handle, self.result_type(words.type))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        return out, Zero(type_of(out).tangent())

    def batch(self, batched: Any, words: Any) -> Any:
        return bind(self, words)


class UnwrapKey(Op):
    """The words of random keys, as pairs on a new last axis."""

    takes_keys = True

    def result_type(self, keys: ArrayType) -> ArrayType:
        if keys.kind != "k":
            raise TypeError(f"key_data: expected random keys; got {keys}.")
        return ArrayType((*keys.shape, 2), dtypes.uint32)

    def lower(self, build: Any, keys: Any) -> Any:
        out = self.result_type(keys.type)
        stored = type(keys)(keys.handle, ArrayType((2, *keys.type.shape), dtypes.uint32))
        return build.apply(lambda w: shape.move_axis(w, 0, out.ndim - 1), stored)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        return out, Zero(type_of(out).tangent())

    def batch(self, batched: Any, keys: Any) -> Any:
        return bind(self, keys)


def threefry2x32(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Threefry-2x32: the counter words x0 and x1, encrypted with the key words k0 and k1."""
    return bind(Threefry2x32(), k0, k1, x0, x1)


def wrap_key(words: Any) -> Any:
    """Random keys made of the pairs of words on the last axis."""
    return bind(WrapKey(), words)


def unwrap_key(keys: Any) -> Any:
    """The words of random keys, as pairs on a new last axis."""
    return bind(UnwrapKey(), keys)


def rng_uniform(low: Any, high: Any, dims: Sequence[int]) -> Any:
    """Uniform random numbers in [low, high) from the device's stateful generator."""
    return bind(RngUniform(tuple(dims)), low, high)


def rng_bit_generator(state: Any, dims: Sequence[int], dtype: Any, algorithm: str = "THREE_FRY") -> tuple[Any, Any]:
    """The next state of a generator, and random bits of a shape and dtype."""
    return bind(RngBitGenerator(tuple(dims), dtypes.canonical(dtype), algorithm), state)
