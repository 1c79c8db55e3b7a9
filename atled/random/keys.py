"""Random keys: creating them, deriving new ones, and detecting reuse.

A draw or a split consumes a key. Using the key again gives the same numbers, which is rarely intended; a
`KeyReuseWarning` names both lines. `fold_in` does not consume the key; `clone` marks intentional reuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, error_hints, errors, settings, source
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.engine.array import DeviceArray, wrap
from atled.numpy.creation import asarray
from atled.ops import conversion, elementwise, shape
from atled.ops import random as ops
from atled.staging.jit import library_function


class KeyReuseWarning(UserWarning):
    """A random key was used twice, which repeats the same random numbers.

    Split the key first, `key, sub = random.split(key)`, and use each new key once; use `random.clone(key)` if the
    repetition is intended.

    >>> import warnings
    >>> from atled import random
    >>> key = random.key(0)
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     _ = random.normal(key), random.normal(key)
    >>> [w.category.__name__ for w in found]
    ['KeyReuseWarning']
    """


def check_key(name: str, key: Any) -> Any:
    """A single typed key, from a key or from its data (two uint32 words)."""
    if not isinstance(key, (Array, np.ndarray)):
        template = "random.key({})" if isinstance(key, int) else "random.key(0), {}"
        line = error_hints.with_operand(0, template, name)
        raise TypeError(
            errors.explained(
                f"random.{name}: the first argument must be a key; got {describe(key)}.",
                line or "random.key(0), which makes a key from a seed.",
            )
        )
    t = type_of(key)
    if t.kind != "k":
        if t.dtype is not dtypes.uint32 or t.shape[-1:] != (2,):
            raise TypeError(
                errors.explained(
                    f"random.{name}: the first argument must be a key; got {t}.",
                    "random.key(0), which makes a key from a seed.",
                )
            )
        key = wrap_key_data(key)
        t = type_of(key)
    if t.shape != ():
        raise TypeError(
            errors.explained(
                f"random.{name}: one key is needed; got {t}.",
                f"vmap(lambda k: random.{name}(k, ...))(keys), or keys[0].",
            )
        )
    return key


def use(name: str, key: Any) -> Any:
    """A single key, marked as consumed; warns if it was consumed before."""
    checked = check_key(name, key)
    if type(key) is DeviceArray:
        before = getattr(key, "_used", None)
        if before is None:
            where = source.here()
            key._used = f"in {where.function}, {where}" if where else "elsewhere"
        else:
            says = f"random.{name}: this key was used before, {before}, so it gives the same random numbers again."
            instead = "key, sub = random.split(key), or random.clone(key) if that is intended."
            if settings.read("key_reuse") == "raise":
                raise errors.KeyReuseError(errors.explained(says, instead))
            errors.warn(says, KeyReuseWarning, instead)
    return checked


def _words_of_seed(seed: Any) -> Any:
    """The high and the low 32 bits of a seed, the data of its key."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, np.bool_):
        n = int(seed)
        if not -(2**63) <= n < 2**64:
            raise OverflowError(f"random.key: a seed has at most 64 bits; got {n}.")
        high = 0 if -(2**31) <= n < 0 else (n >> 32) & 0xFFFFFFFF
        return np.array([high, n & 0xFFFFFFFF], np.uint32)
    if not isinstance(seed, (Array, np.ndarray)):
        raise TypeError(errors.explained(f"random.key: a seed is an integer; got {describe(seed)}.", "random.key(0)."))
    t = type_of(seed)
    if t.kind not in "iu" or t.shape != ():
        raise TypeError(f"random.key: a seed is an integer scalar; got {t}.")
    return _words_of_traced(seed)


@library_function
def _words_of_traced(seed: Any) -> Any:
    t = type_of(seed)
    low = conversion.convert(seed, dtypes.uint32)
    if dtypes.bits(t.dtype) == 64:
        wide = conversion.convert(seed, dtypes.uint64)
        high = conversion.convert(elementwise.shift_right_logical(wide, 32), dtypes.uint32)
    else:
        high = elementwise.mul(low, np.uint32(0))
    return shape.concatenate([shape.reshape(high, (1,)), shape.reshape(low, (1,))], 0)


@library_function
def _wrap(words: Any) -> Any:
    return ops.wrap_key(words)


@library_function
def _unwrap(keys: Any) -> Any:
    return ops.unwrap_key(keys)


def _check_impl(name: str, impl: Any, dtype: Any = None) -> None:
    if impl is not None and dtype is not None:
        raise ValueError(f"random.{name}: give the generator as dtype or as impl, not both.")
    generator = dtype if impl is None else impl
    if generator is not None and generator is not dtypes.key_dtype and generator not in ("threefry2x32", "fry"):
        raise NotImplementedError(f"random.{name}: the only generator is threefry2x32; got {generator!r}.")


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of keys.

    >>> key_dtype() == key(0).dtype
    True
    """
    _check_impl("key_dtype", impl_spec)
    return dtypes.key_dtype


def key(seed: ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Array:
    """A random key from an integer seed. The same seed gives the same numbers, everywhere.

    >>> key(0)
    Array((), dtype=key<fry>)
    """
    _check_impl("key", impl, dtype)
    return _wrap(asarray(_words_of_seed(seed)))


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A random key as an array of two uint32 words; `key` returns a typed key.

    >>> PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    _check_impl("PRNGKey", impl)
    return asarray(_words_of_seed(seed))


def key_data(keys: ArrayLike) -> Array:
    """The data of keys: two uint32 words for each key, on a new last axis.

    >>> key_data(key(5))
    Array([0, 5], dtype=uint32)
    """
    return _unwrap(keys) if type_of(keys).kind == "k" else asarray(keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Array:
    """Keys from their data: two uint32 words for each key, on the last axis.

    >>> bool(wrap_key_data(key_data(key(7))) == key(7))
    True
    """
    _check_impl("wrap_key_data", impl, dtype)
    return _wrap(key_bits_array if isinstance(key_bits_array, Array) else asarray(key_bits_array))


def key_impl(keys: ArrayLike) -> str:
    """The name of the generator of keys: always threefry2x32.

    >>> key_impl(key(0))
    'threefry2x32'
    """
    return "threefry2x32"


def clone(key: Array) -> Array:
    """The same key as a new object, for intentional reuse.

    >>> first = key(0)
    >>> bool(clone(first) == first)
    True
    """
    return wrap(key._buffer) if type(key) is DeviceArray else key


def counters(dims: Sequence[int]) -> tuple[Any, Any]:
    """The row-major positions of all elements, as two uint32 words; an iota per axis lets each shard draw its own."""
    size = int(np.prod(dims, dtype=object)) if dims else 1
    wide = dtypes.uint32 if size <= 2**32 else dtypes.uint64
    total, step = None, 1
    for axis in reversed(range(len(dims))):
        count = shape.iota(wide, dims, axis)
        term = elementwise.mul(count, step) if step != 1 else count
        total = term if total is None else elementwise.add(total, term)
        step *= dims[axis]
    if total is None:
        total = np.zeros((), wide)
    if wide is dtypes.uint32:
        return np.zeros((), dtypes.uint32), total
    high = conversion.convert(elementwise.shift_right_logical(total, 32), dtypes.uint32)
    return high, conversion.convert(total, dtypes.uint32)


def split_words(key: Any) -> tuple[Any, Any]:
    """The two uint32 words of a single key, as scalars."""
    words = ops.unwrap_key(key)
    return shape.index_in_axis(words, 0, 0), shape.index_in_axis(words, 1, 0)


@library_function(static=("dims",))
def split_key(key: Any, dims: tuple[int, ...]) -> Any:
    """An array of new keys of shape `dims`, derived from a key."""
    a, b = ops.threefry2x32(*split_words(key), *counters(dims))
    pair = [shape.reshape(shape.broadcast(w, dims, range(type_of(w).ndim)), (*dims, 1)) for w in (a, b)]
    return ops.wrap_key(shape.concatenate(pair, len(dims)))


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """`num` new keys, or an array of that shape, derived from a key, which is consumed.

    >>> keys = split(key(0), 3)
    >>> keys.shape
    (3,)
    """
    dims = tuple(num) if isinstance(num, (tuple, list)) else (int(num),)
    out = split_key(use("split", key), dims)
    return out if type_of(key).kind == "k" else _unwrap(out)


@library_function
def _fold_in(key: Any, words: Any) -> Any:
    high, low = (shape.index_in_axis(words, i, 0) for i in (0, 1))
    a, b = ops.threefry2x32(*split_words(key), high, low)
    return ops.wrap_key(shape.concatenate([shape.reshape(w, (1,)) for w in (a, b)], 0))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key derived from a key and an integer; the key is not consumed.

    >>> same = key_data(fold_in(key(0), 7)) == key_data(fold_in(key(0), 7))
    >>> bool(same.all())
    True
    """
    checked = check_key("fold_in", key)
    if isinstance(data, (int, np.integer)):
        words: Any = np.array([0, int(data) & 0xFFFFFFFF], np.uint32)
    else:
        t = type_of(data)
        if t.kind not in "iu" or t.shape != ():
            raise TypeError(f"random.fold_in: the data is an integer scalar; got {t}.")
        words = _words_of_traced(_narrow(data))
    out = _fold_in(checked, words if isinstance(words, Array) else asarray(words))
    return out if type_of(key).kind == "k" else _unwrap(out)


def _narrow(data: Any) -> Any:
    """The low 32 bits of an integer."""
    return conversion.convert(data, dtypes.uint32)
