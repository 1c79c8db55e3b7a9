"""The basic samplers: bits, uniform and normal numbers, integers, choices. The bits equal those of JAX's threefry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any, SupportsIndex

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axis
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.types import ArrayType
from atled.numpy.creation import asarray, static_shape
from atled.numpy.promotion import broadcast_shapes, broadcast_to, cast, inexact_dtype
from atled.numpy.searching import searchsorted
from atled.ops import conversion, cumulative, elementary, elementwise, indexing, reduction, shape, sorting, special
from atled.ops import random as ops
from atled.ops.placement import placed
from atled.random.keys import counters, split_key, split_words, use
from atled.staging.jit import library_function


def float_dtype(name: str, dtype: Any, kinds: str = "f") -> Any:
    """The dtype of a draw, floating by default; raises if its kind ("f", "c") is not among `kinds`."""
    canonical = dtypes.canonical(float if dtype is None else dtype)
    if dtypes.kind(canonical) not in kinds:
        what = "floating" if kinds == "f" else "floating or complex"
        raise ValueError(f"random.{name}: the dtype must be {what}; got {canonical.name}.")
    return canonical


def integer_dtype(name: str, dtype: Any) -> Any:
    """The dtype of a draw; raises if it is not an integer dtype."""
    canonical = dtypes.canonical(int if dtype is None else dtype)
    if dtypes.kind(canonical) not in "iu":
        raise ValueError(f"random.{name}: the dtype must be an integer; got {canonical.name}.")
    return canonical


def _wide(dtype: Any) -> Any:
    """The dtype in which random numbers are compared: float32 for 16-bit floats, which have too few random bits."""
    return dtypes.float32 if dtypes.bits(dtype) < 32 else dtype


def sample_shape(name: str, dims: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of a draw: the requested one, by default the broadcast shape of the parameters."""
    common_shape = broadcast_shapes(*[type_of(p).shape for p in parameters]) if parameters else ()
    if dims is None:
        return common_shape
    asked = static_shape(name, dims)
    tail = asked[len(asked) - len(common_shape) :]
    if len(common_shape) > len(asked) or any([n not in (1, m) for n, m in zip(common_shape, tail)]):
        raise ValueError(f"random.{name}: shape {asked} is not compatible with parameters of shape {common_shape}.")
    return asked


def random_bits(key: Any, dims: tuple[int, ...], width: int) -> Any:
    """Unsigned integers of `width` random bits: 8, 16, 32 or 64."""
    a, b = ops.threefry2x32(*split_words(key), *counters(dims))
    if type_of(a).shape != dims:
        a, b = shape.reshape(a, dims), shape.reshape(b, dims)
    if width == 64:
        high, low = (conversion.convert(w, dtypes.uint64) for w in (a, b))
        return elementwise.logical_or(elementwise.shift_left(high, 32), low)
    mixed = elementwise.logical_xor(a, b)
    return mixed if width == 32 else conversion.convert(mixed, np.dtype(f"uint{width}"))


@library_function(static=("dims", "dtype"))
def _bits(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return random_bits(key, dims, dtypes.bits(dtype))


def bits(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Random bits as unsigned integers.

    >>> from atled import random
    >>> bits(random.key(0), (2,)).dtype
    dtype('uint32')
    """
    target_dtype = dtypes.canonical("uint32" if dtype is None else dtype)
    if dtypes.kind(target_dtype) != "u":
        raise ValueError(f"random.bits: the dtype must be unsigned; got {target_dtype.name}.")
    return placed(_bits(use("bits", key), static_shape("bits", shape), target_dtype), out_sharding, "random.bits")


def uniform_floats(key: Any, dims: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Numbers in [low, high): random mantissas give numbers in [1, 2), which are shifted and scaled."""
    info = dtypes.finfo(dtype)
    width, mantissa = dtypes.bits(dtype), int(info.nmant)
    drawn = 8 if mantissa < 8 else width
    word = np.dtype(f"uint{width}")
    raw = random_bits(key, dims, drawn)
    raw = conversion.convert(raw, word) if drawn != width else raw
    one = np.ones((), dtype).view(word)
    raw = elementwise.logical_or(elementwise.shift_right_logical(raw, drawn - mantissa), one)
    unit = elementwise.sub(conversion.bitcast_convert(raw, dtype), 1)
    low, high = (v if isinstance(v, Array) else np.asarray(v, dtype) for v in (low, high))
    spread = lambda v: broadcast_to(v, dims) if type_of(v).shape else v  # noqa: E731
    low, high = spread(low), spread(high)
    span = high - low if not isinstance(low, Array) and not isinstance(high, Array) else elementwise.sub(high, low)
    scaled = elementwise.add(elementwise.mul(unit, np.asarray(span) if not isinstance(span, Array) else span), low)
    return elementwise.maximum(low, scaled)


@library_function(static=("dims", "dtype"))
def _uniform(key: Any, dims: tuple[int, ...], dtype: Any, minval: Any, maxval: Any) -> Any:
    return uniform_floats(key, dims, dtype, cast(minval, dtype), cast(maxval, dtype))


def uniform(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniformly distributed numbers in [minval, maxval).

    >>> from atled import random
    >>> bool((uniform(random.key(0), (100,)) < 1).all())
    True
    """
    dtype = float_dtype("uniform", dtype)
    dims = sample_shape("uniform", shape, minval, maxval)
    return placed(_uniform(use("uniform", key), dims, dtype, minval, maxval), out_sharding, "random.uniform")


def normal_floats(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """Normal numbers, by inverting the distribution function."""
    low = np.nextafter(np.asarray(-1.0, dtype), np.asarray(0.0, dtype), dtype=dtype)
    unit = uniform_floats(key, dims, dtype, low, np.asarray(1.0, dtype))
    return elementwise.mul(special.erf_inv(unit), np.asarray(math.sqrt(2), dtype))


def normals(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """Normal numbers, real or complex."""
    if dtypes.kind(dtype) == "c":
        part = dtypes.real_part(dtype)
        pair = split_key(key, (2,))
        re, im = (normal_floats(shape.index_in_axis(pair, i, 0), dims, part) for i in (0, 1))
        return elementwise.div(conversion.complex(re, im), math.sqrt(2))
    return normal_floats(key, dims, dtype)


@library_function(static=("dims", "dtype"))
def _normal(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    return normals(key, dims, dtype)


def normal(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Normally distributed numbers, real or complex, with mean 0 and variance 1.

    >>> from atled import random
    >>> normal(random.key(0), (2, 3)).shape
    (2, 3)
    """
    target_dtype = float_dtype("normal", dtype, "fc")
    return placed(
        _normal(use("normal", key), static_shape("normal", shape), target_dtype), out_sharding, "random.normal"
    )


@library_function(static=("dims", "dtype"))
def _randint(key: Any, dims: tuple[int, ...], low: Any, high: Any, dtype: Any) -> Any:
    """Twice as many random bits as the dtype has, modulo the span: the bias is negligible."""
    width = dtypes.bits(dtype)
    word = np.dtype(f"uint{width}")
    low, _ = _clipped(low, dtype)
    high, is_above = _clipped(high, dtype)
    low, high, is_above = (broadcast_to(v, dims) for v in (low, high, is_above))
    pair = split_key(key, (2,))
    upper, lower = (random_bits(shape.index_in_axis(pair, i, 0), dims, width) for i in (0, 1))
    is_empty = elementwise.le(high, low)
    span = conversion.convert(elementwise.sub(high, low), word)
    span = elementwise.select(is_empty, np.ones((), word), span)
    is_full = elementwise.logical_and(is_above, elementwise.logical_not(is_empty))
    span = elementwise.select(is_full, elementwise.add(span, 1), span)
    half = elementary.rem(shape.broadcast(np.asarray(2 ** (width // 2), word), dims, ()), span)
    factor = elementary.rem(elementwise.mul(half, half), span)
    offset = elementwise.add(elementwise.mul(elementary.rem(upper, span), factor), elementary.rem(lower, span))
    return elementwise.add(low, conversion.convert(elementary.rem(offset, span), dtype))


def _clipped(x: Any, dtype: Any) -> tuple[Any, Any]:
    """A bound clipped to the range of a dtype, and whether it exceeded the largest value."""
    info = dtypes.iinfo(dtype)
    t = type_of(x)
    if t.kind not in "iu":
        x, t = conversion.convert(x, dtypes.int64), ArrayType(t.shape, dtypes.int64)
    own = dtypes.iinfo(t.dtype)
    top = np.asarray(min(int(info.max), int(own.max)), t.dtype)
    bottom = np.asarray(max(int(info.min), int(own.min)), t.dtype)
    is_above = elementwise.gt(x, top)
    inside = elementwise.minimum(elementwise.maximum(x, bottom), top)
    return conversion.convert(inside, dtype), is_above


def randint(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex],
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: Any = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniformly distributed integers in [minval, maxval).

    >>> from atled import random
    >>> x = randint(random.key(0), (100,), -2, 3)
    >>> int(x.min()), int(x.max())
    (-2, 2)
    """
    dtype = dtypes.canonical(int if dtype is None else dtype)
    if dtypes.kind(dtype) not in "iu":
        raise TypeError(f"random.randint: the dtype must be an integer; got {dtype.name}.")
    low, high = (v if isinstance(v, Array) else _bound(v) for v in (minval, maxval))
    dims = sample_shape("randint", shape, low, high)
    if dtypes.bits(dtype) >= 32:
        return placed(_randint(use("randint", key), dims, low, high, dtype), out_sharding, "random.randint")
    info = dtypes.iinfo(dtype)
    low, high = (v.astype("int32") for v in (low, high))
    low, high = low.clip(int(info.min), int(info.max)), high.clip(int(info.min), int(info.max) + 1)
    integers = _randint(use("randint", key), dims, low, high, dtypes.int32).astype(dtype)
    return placed(integers, out_sharding, "random.randint")


def _bound(v: Any) -> Any:
    if isinstance(v, int):
        return asarray(v, "int32" if -(2**31) <= v < 2**31 else "int64" if v < 2**63 else "uint64")
    return asarray(v)


@library_function(static=("dims", "mode"))
def _bernoulli(key: Any, p: Any, dims: tuple[int, ...], mode: str) -> Any:
    t = type_of(p)
    p = broadcast_to(p, dims)
    if mode == "high":
        unit = uniform_floats(key, (2, *dims), t.dtype, 0.0, 1.0)
        first, second = (shape.index_in_axis(unit, i, 0) for i in (0, 1))
        fine = elementwise.mul(second, float(2.0 ** -int(dtypes.finfo(t.dtype).nmant)))
        return elementwise.lt(fine, elementwise.sub(p, first))
    return elementwise.lt(uniform_floats(key, dims, t.dtype, 0.0, 1.0), p)


def signs(key: Any, dims: tuple[int, ...], dtype: Any) -> Any:
    """-1 or 1, both with probability one half."""
    is_up = elementwise.lt(uniform_floats(key, dims, dtypes.float32, 0.0, 1.0), 0.5)
    spread = lambda v: shape.broadcast(np.asarray(v, dtype), dims, ())  # noqa: E731
    return elementwise.select(is_up, spread(1), spread(-1))


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    mode: str = "low",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """True with probability p; mode "high" resolves probabilities below 1e-7. 16-bit floats are compared in float32.

    >>> from atled import random
    >>> bernoulli(random.key(0), 0.5, (3,)).dtype
    dtype('bool')
    """
    prob = p if isinstance(p, Array) else asarray(p)
    if prob.type.kind not in "fiub":
        raise TypeError(f"random.bernoulli: probabilities are real numbers; got {prob.type}.")
    if mode not in ("high", "low"):
        raise ValueError(f"random.bernoulli: the mode is 'high' or 'low'; got {mode!r}.")
    prob = prob.astype(_wide(inexact_dtype(prob.dtype)))
    dims = sample_shape("bernoulli", shape, prob)
    return placed(_bernoulli(use("bernoulli", key), prob, dims, mode), out_sharding, "random.bernoulli")


def gumbel_floats(key: Any, dims: tuple[int, ...], dtype: Any, mode: str) -> Any:
    """Gumbel-distributed numbers; mode "high" resolves the upper tail, "highest" both tails, with 64 random bits."""
    if mode == "highest" and dtype is dtypes.float32:
        pair = random_bits(key, (2, *dims), 32)
        high, low = (conversion.convert(shape.index_in_axis(pair, i, 0), dtypes.uint64) for i in (0, 1))
        whole = elementwise.logical_or(elementwise.shift_left(high, 32), low)
        is_low = elementwise.lt(whole, np.uint64(1 << 63))
        part = elementwise.select(is_low, whole, elementwise.sub(np.uint64(0), whole))
        x = elementwise.mul(conversion.convert(part, dtype), np.float32(2.0**-64))
        x = elementwise.maximum(x, np.float32(2.0**-65))  # instead of 0, the middle of [0, 2**-64)
        logs = elementwise.select(is_low, elementary.log1p(elementwise.neg(x)), elementary.log(x))
        return elementwise.neg(elementary.log(elementwise.neg(logs)))
    if mode in ("high", "highest"):
        info = dtypes.finfo(dtype)
        unit = uniform_floats(key, (2, *dims), dtype, 0.0, 1.0)
        high, low = (shape.index_in_axis(unit, i, 0) for i in (0, 1))
        fine = elementwise.add(
            elementwise.add(high, elementwise.mul(low, float(2.0 ** -int(info.nmant)))), float(info.tiny)
        )
        x = elementwise.select(elementwise.ge(high, 0.5), high, fine)
        return elementwise.neg(elementary.log(elementwise.neg(elementary.log1p(elementwise.neg(x)))))
    unit = uniform_floats(key, dims, dtype, np.asarray(dtypes.finfo(dtype).tiny, dtype), 1.0)
    return elementwise.neg(elementary.log(elementwise.neg(elementary.log(unit))))


@library_function(static=("dims", "dtype", "mode"))
def _gumbel(key: Any, dims: tuple[int, ...], dtype: Any, mode: str) -> Any:
    return gumbel_floats(key, dims, dtype, mode)


def gumbel_mode(name: str, mode: str | None) -> str:
    """The mode of Gumbel numbers, "low" by default; raises if it is unknown."""
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"random.{name}: the mode is 'low', 'high' or 'highest'; got {mode!r}.")
    return mode or "low"


def gumbel(
    key: ArrayLike,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Numbers with the Gumbel distribution: `-log(-log(u))` of uniform u.

    Mode "low" uses 23 random bits in float32, which limits values to 16; "high" and "highest" use more.

    >>> from atled import random
    >>> logits = np.log(np.asarray([0.25, 0.75], "float32"))
    >>> abs(float((logits + gumbel(random.key(0), (1000, 2))).argmax(1).mean()) - 0.75) < 0.05
    True
    """
    dims, dtype = static_shape("gumbel", shape), float_dtype("gumbel", dtype)
    return placed(_gumbel(use("gumbel", key), dims, dtype, gumbel_mode("gumbel", mode)), out_sharding, "random.gumbel")


@library_function(static=("dims", "axis", "replace", "mode"))
def _categorical(key: Any, logits: Any, dims: tuple[int, ...], axis: int, replace: bool, mode: str) -> Any:
    t = type_of(logits)
    lead = t.shape[:axis] + t.shape[axis + 1 :]
    prefix = dims[: len(dims) - len(lead)]
    if not replace:
        k = prod(prefix)
        noisy = elementwise.add(logits, gumbel_floats(key, t.shape, t.dtype, mode))
        _, indices = sorting.top_k(shape.move_axis(noisy, axis, t.ndim - 1), k)
        return shape.reshape(shape.move_axis(indices, len(lead), 0), dims)
    inner = list(dims[len(prefix) :])
    inner.insert(axis, t.shape[axis])
    full = (*prefix, *inner)
    noise = gumbel_floats(key, full, t.dtype, mode)
    total = elementwise.add(noise, broadcast_to(logits, full))
    return reduction.argmax(total, len(prefix) + axis, dtypes.default("i"))


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Random indices along an axis, with probabilities proportional to exp(logits). 16-bit logits become float32.

    >>> from atled import random
    >>> import atled.numpy as jnp
    >>> int(categorical(random.key(0), jnp.array([-1e9, 0.0])))
    1
    """
    x = logits if isinstance(logits, Array) else asarray(logits)
    if x.type.kind not in "fiub":
        raise TypeError(f"random.categorical: logits are real numbers; got {x.type}.")
    x = x.astype(_wide(inexact_dtype(x.dtype)))
    at = check_axis("categorical", axis, x.ndim)
    lead = x.shape[:at] + x.shape[at + 1 :]
    dims = lead if shape is None else static_shape("categorical", shape)
    if broadcast_shapes(lead, dims[len(dims) - len(lead) :]) != dims[len(dims) - len(lead) :]:
        raise ValueError(f"random.categorical: shape {dims} does not end with the batch shape {lead} of the logits.")
    if not replace and prod(dims[: len(dims) - len(lead)]) > x.shape[at]:
        raise ValueError(
            f"random.categorical: at most {x.shape[at]} draws, the number of categories, are "
            f"possible without replacement."
        )
    mode = gumbel_mode("categorical", mode)
    return placed(_categorical(use("categorical", key), x, dims, at, replace, mode), out_sharding, "random.categorical")


def shuffled(key: Any, x: Any, axis: int) -> Any:
    """x in random order along an axis: sorted by random 32-bit keys, in several rounds, because keys can be equal."""
    t = type_of(x)
    rounds = int(np.ceil(3 * np.log(max(1, t.size)) / np.log(2**32 - 1)))
    for _ in range(rounds):
        pair = split_key(key, (2,))
        key, sub = (shape.index_in_axis(pair, i, 0) for i in (0, 1))
        _, x = sorting.sort((random_bits(sub, t.shape, 32), x), axis)
    return x


@library_function(static=("axis", "independent"))
def _permutation(key: Any, x: Any, axis: int, independent: bool) -> Any:
    t = type_of(x)
    if independent or t.ndim == 1:
        return shuffled(key, x, axis)
    order = shuffled(key, shape.iota(dtypes.default("i"), (t.shape[axis],), 0), 0)
    return _take(x, order, axis)


def _take(x: Any, positions: Any, axis: int) -> Any:
    t, at = type_of(x), type_of(positions)
    offset = tuple([k for k in range(t.ndim - 1 + at.ndim) if not axis <= k < axis + at.ndim])
    sizes = tuple([1 if k == axis else n for k, n in enumerate(t.shape)])
    op = indexing.Gather(indexing.GatherAxes(offset, (axis,), (axis,)), sizes, "clip")
    return indexing.bind(op, x, shape.reshape(positions, (*at.shape, 1)))


@library_function(static=("n",))
def _permutation_of(key: Any, n: int) -> Any:
    return shuffled(key, shape.iota(dtypes.default("i"), (n,), 0), 0)


def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The integers 0 to x - 1, or the slices of an array x along an axis, in random order.

    >>> from atled import random
    >>> sorted(permutation(random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    operand = x if isinstance(x, (int, np.integer, Array)) else asarray(x)
    t = type_of(operand)
    at = check_axis("permutation", axis, t.ndim or 1)
    if t.ndim == 0:
        if t.kind not in "iu":
            raise TypeError(f"random.permutation: an integer or an array with at least one axis is needed; got {t}.")
        return placed(_permutation_of(use("permutation", key), int(operand)), out_sharding, "random.permutation")
    return placed(_permutation(use("permutation", key), operand, at, independent), out_sharding, "random.permutation")


@library_function(static=("dims",))
def _weighted(key: Any, p: Any, dims: tuple[int, ...]) -> Any:
    """Random indices with probabilities p: the inverse of their cumulative sum at uniform numbers."""
    t = type_of(p)
    sums = cumulative.cumsum(p, 0)
    total = shape.index_in_axis(sums, t.shape[0] - 1, 0)
    unit = elementwise.sub(1, uniform_floats(key, dims, t.dtype, 0.0, 1.0))
    return searchsorted(sums, elementwise.mul(unit, total))


@library_function(static=("count", "mode"))
def _weighted_without(key: Any, p: Any, count: int, mode: str) -> Any:
    noisy = elementwise.add(gumbel_floats(key, type_of(p).shape, type_of(p).dtype, mode), elementary.log(p))
    return conversion.convert(sorting.top_k(noisy, count)[1], dtypes.default("i"))


def choice(
    key: ArrayLike,
    a: int | np.integer | np.ndarray | Array,
    shape: SupportsIndex | Sequence[SupportsIndex] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Draws from the integers 0 to a - 1, or the slices of an array a along an axis, with or without replacement.

    >>> from atled import random
    >>> len(set(choice(random.key(0), 10, (10,), replace=False).tolist()))
    10
    """
    dims = static_shape("choice", shape)
    source = None if isinstance(a, (int, np.integer)) else a if isinstance(a, Array) else asarray(a)
    if source is not None and source.ndim == 0:
        a, source = int(source), None
    at = 0 if source is None else check_axis("choice", axis, source.ndim)
    n = int(a) if source is None else source.shape[at]
    count = prod(dims)
    full = dims if source is None else source.shape[:at] + dims + source.shape[at + 1 :]
    if count == 0:
        return asarray(np.zeros(full, dtypes.default("i") if source is None else source.dtype))
    if n <= 0:
        raise ValueError("random.choice: at least one element is needed to choose from.")
    if not replace and count > n:
        raise ValueError(f"random.choice: {count} draws from {n} elements need replace=True.")
    if p is None:
        if not replace:
            mixed = permutation(key, n if source is None else source, at)
            out = mixed[(slice(None),) * at + (slice(count),)]
            return out.reshape(full)
        indices = randint(key, dims, 0, n)
    else:
        weights = p if isinstance(p, Array) else asarray(p)
        weights = weights.astype(_wide(inexact_dtype(weights.dtype)))
        if weights.shape != (n,):
            raise ValueError(f"random.choice: p needs one entry for each of {n} elements; got shape {weights.shape}.")
        used = use("choice", key)
        indices = (
            _weighted(used, weights, dims)
            if replace
            else _weighted_without(used, weights, count, gumbel_mode("choice", mode)).reshape(dims)
        )
    if source is None:
        return indices
    return _gather(source, indices, at)


@library_function(static=("axis",))
def _gather(x: Any, positions: Any, axis: int) -> Any:
    return _take(x, positions, axis)
