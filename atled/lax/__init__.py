"""The ops by their short names: strict about shapes and dtypes, close to what the compiler sees."""

from __future__ import annotations

import builtins as _builtins
import enum
import importlib as _importlib
from collections.abc import Callable, Sequence
from math import prod as _prod
from typing import Any

import numpy as _np

from atled.core import dtypes as _dtypes
from atled.core import errors as _errors
from atled.core import tree as _tree
from atled.core.array import Array as _Array
from atled.core.array import ArrayLike as _ArrayLike
from atled.core.array import type_of as _type_of
from atled.core.axes import check_axes as _check_axes
from atled.core.axes import check_axis as _check_axis
from atled.higher_order.branches import cond, switch  # noqa: F401
from atled.higher_order.composites import composite  # noqa: F401
from atled.higher_order.implicit import custom_linear_solve, custom_root  # noqa: F401
from atled.higher_order.loops import fori_loop, while_loop  # noqa: F401
from atled.higher_order.platforms import platform_dependent  # noqa: F401
from atled.higher_order.scan import map, scan  # noqa: F401
from atled.lax import arrays as _arrays
from atled.lax import linalg  # noqa: F401
from atled.lax.arrays import (  # noqa: F401
    approx_max_k,
    approx_min_k,
    broadcast_like,
    broadcast_to_rank,
    empty,
    mulhi,
    ragged_dot,
    stack,
    tile,
    unstack,
)  # fmt: skip
from atled.lax.convolution import (  # noqa: F401
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
)  # fmt: skip
from atled.lax.convolution import rounding as _rounding
from atled.lax.elementwise import (  # noqa: F401
    AccuracyMode,
    Tolerance,
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bessel_i0e,
    bessel_i1e,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cbrt,
    ceil,
    clamp,
    clz,
    complex,
    conj,
    cos,
    cosh,
    digamma,
    div,
    eq,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    ge,
    gt,
    imag,
    integer_pow,
    is_finite,
    le,
    lgamma,
    log,
    log1p,
    logistic,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    nextafter,
    polygamma,
    population_count,
    pow,
    real,
    reciprocal,
    rem,
    rsqrt,
    select,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    tan,
    tanh,
    zeta,
)  # fmt: skip
from atled.lax.incomplete import betainc, igamma, igamma_grad_a, igammac, random_gamma_grad  # noqa: F401
from atled.lax.precision import (  # noqa: F401
    DotAlgorithm,
    DotAlgorithmPreset,
    DotDimensionNumbers,
    Precision,
    PrecisionLike,
)  # fmt: skip
from atled.lax.ragged import RaggedDotDimensionNumbers, ragged_dot_general, scaled_dot  # noqa: F401
from atled.lax.reducing import (  # noqa: F401
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce,
    reduce_window,
)
from atled.lax.slicing import (  # noqa: F401
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    gather,
    index_in_dim,
    index_take,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
    slice_in_dim,
)  # fmt: skip
from atled.lax.staging import (  # noqa: F401
    FftType,
    after_all,
    create_token,
    dce_sink,
    rng_uniform,
    shape_as_value,
    stage,
)  # fmt: skip
from atled.lax.window_shapes import (  # noqa: F401
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
    padtype_to_pads,
    reduce_window_shape_tuple,
)  # fmt: skip
from atled.numpy.creation import asarray as _asarray
from atled.numpy.creation import located as _located
from atled.numpy.promotion import broadcast_shapes as _broadcast_shapes
from atled.ops import collectives as _collectives
from atled.ops import contraction as _contraction
from atled.ops import conversion as _conversion
from atled.ops import cumulative as _cumulative
from atled.ops import fft as _fft
from atled.ops import placing as _placing
from atled.ops import random as _random
from atled.ops import reduction as _reduction
from atled.ops import shape as _shape
from atled.ops import sorting as _sorting
from atled.ops.placing import placed as _placed
from atled.transforms.grad import stop_gradient  # noqa: F401


class RandomAlgorithm(enum.IntEnum):
    """How `rng_bit_generator` makes bits."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


class RoundingMethod(enum.IntEnum):
    """Where halves go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: _ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> _Array:
    """The nearest integer.

    >>> round(full((2,), 0.5)), round(full((2,), 0.5), RoundingMethod.TO_NEAREST_EVEN)
    (Array([1., 1.], dtype=float32), Array([0., 0.], dtype=float32))
    """
    return _rounding[int(rounding_method)](x)


def bitcast_convert_type(operand: _ArrayLike, new_dtype: Any) -> _Array:
    """The bits of x read as another dtype."""
    return _conversion.bitcast_convert(operand, new_dtype)


def reduce_precision(operand: _ArrayLike, exponent_bits: int, mantissa_bits: int) -> _Array:
    """x rounded to fewer bits of exponent and mantissa.

    >>> reduce_precision(full((), 1.0 + 2**-10), 8, 7)
    Array(1., dtype=float32)
    """
    return _conversion.reduce_precision(operand, exponent_bits, mantissa_bits)


def convert_element_type(operand: _ArrayLike, new_dtype: Any) -> _Array:
    """x in another dtype.

    >>> convert_element_type(full((2,), 1.5), "int32")
    Array([1, 1], dtype=int32)
    """
    return _conversion.convert(operand, new_dtype)


def bitcast(operand: _ArrayLike, new_dtype: Any) -> _Array:
    """The bits of x read as another dtype."""
    return bitcast_convert_type(operand, new_dtype)


def select_n(which: _ArrayLike, *cases: Any) -> _Array:
    """Case number `which`, elementwise: a bool chooses between two, an integer between any number.

    >>> select_n(iota("int32", 3), full((3,), 10), full((3,), 20), full((3,), 30))
    Array([10, 20, 30], dtype=int32)
    """
    if _type_of(which).kind == "b":
        if len(cases) != 2:
            raise ValueError(f"select_n: a bool chooses between two cases; got {len(cases)}.")
        return select(which, cases[1], cases[0])
    out = cases[0]
    for i, case in enumerate(cases[1:], 1):
        out = select(ge(which, i), case, out)
    return out


def broadcast(operand: _ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> _Array:
    """An array repeated along new leading axes."""
    t = _type_of(operand)
    out = _shape.broadcast(operand, (*sizes, *t.shape), tuple(range(len(sizes), len(sizes) + t.ndim)))
    return _placed(out, out_sharding, "broadcast")


def broadcast_in_dim(
    operand: _ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> _Array:
    """An array in a larger shape, with its axes at given positions.

    >>> broadcast_in_dim(iota("int32", 2), (2, 3), (0,))
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32)
    """
    return _placed(_shape.broadcast(operand, shape, broadcast_dimensions), out_sharding, "broadcast_in_dim")


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    return _broadcast_shapes(*shapes)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> _Array:
    """0, 1, 2, ... along one axis of a shape."""
    return _placed(_shape.iota(dtype, shape, dimension), out_sharding, "broadcasted_iota")


def iota(dtype: Any, size: int) -> _Array:
    """0, 1, 2, ..."""
    return _shape.iota(dtype, (size,), 0)


def reshape(
    operand: _ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> _Array:
    """The same elements in another shape, after the axes were brought into the order of `dimensions`."""
    x = operand if dimensions is None else transpose(operand, dimensions)
    return _placed(_shape.reshape(x, new_sizes), out_sharding, "reshape")


def transpose(operand: _ArrayLike, permutation: Sequence[int]) -> _Array:
    """The axes in another order."""
    return _shape.transpose(operand, permutation)


def concatenate(operands: Sequence[Any], dimension: int) -> _Array:
    """Arrays one after another along an axis.

    >>> concatenate([iota("int32", 2), full((1,), 7)], 0)
    Array([0, 1, 7], dtype=int32)
    """
    return _shape.concatenate(operands, dimension)


def split(operand: _ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[_Array]:
    """An array cut along an axis into parts of given lengths.

    >>> split(iota("int32", 3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    return list(_shape.split(operand, sizes, _check_axis("split", axis, _type_of(operand).ndim)))


def pad(operand: _ArrayLike, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> _Array:
    """An array with (low, high, interior) elements added on each axis.

    >>> pad(iota("int32", 3), 9, [(1, 0, 1)])
    Array([9, 0, 9, 1, 9, 2], dtype=int32)
    """
    return _shape.pad(operand, padding_value, padding_config)


def rev(operand: _ArrayLike, dimensions: Sequence[int]) -> _Array:
    """The order along axes turned around.

    >>> rev(iota("int32", 3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    return _shape.reverse(operand, tuple(dimensions))


def squeeze(array: _ArrayLike, dimensions: Sequence[int]) -> _Array:
    """Axes of length one taken away."""
    dims = _type_of(array).shape
    gone = _check_axes("squeeze", tuple(dimensions), len(dims))
    return _shape.reshape(array, [n for i, n in enumerate(dims) if i not in gone])


def expand_dims(array: _ArrayLike, dimensions: Sequence[int]) -> _Array:
    """New axes of length one."""
    dims = _type_of(array).shape
    total = len(dims) + len(dimensions)
    new = _check_axes("expand_dims", tuple(dimensions), total)
    rest = iter(dims)
    return _shape.reshape(array, [1 if i in new else next(rest) for i in range(total)])


def collapse(operand: _ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> _Array:
    """Neighbouring axes joined into one.

    >>> collapse(full((2, 3, 4), 0), 1).shape
    (2, 12)
    """
    dims = _type_of(operand).shape
    start, stop, _ = _builtins.slice(start_dimension, stop_dimension).indices(len(dims))
    return _shape.reshape(operand, (*dims[:start], _prod(dims[start:stop]), *dims[stop:]))


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> _Array:
    """An array with one value everywhere."""
    value = (
        fill_value
        if dtype is None and hasattr(fill_value, "dtype")
        else _np.asarray(fill_value, _dtypes.canonical(dtype or _type_of(fill_value).dtype))
    )
    out = _shape.broadcast(value, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), ())
    return _located(out, sharding, name="full")


def full_like(x: _ArrayLike, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None) -> _Array:
    """One value everywhere, like another array."""
    t = _type_of(x)
    return full(t.shape if shape is None else shape, fill_value, dtype or t.dtype, sharding=sharding)


def zeros_like_array(x: _ArrayLike) -> _Array:
    """Zeros like another array."""
    return full_like(x, 0)


def dot_general(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> _Array:
    """Products summed over contracting axes, for each index of the batch axes.

    >>> dot_general(full((5, 2, 3), 1.0), full((5, 3, 4), 1.0), (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    contracting, batch = dimension_numbers
    result = None if preferred_element_type is None else _dtypes.canonical(preferred_element_type)
    out = _contraction.dot_general(lhs, rhs, contracting, batch, _contraction.precision_name(precision), result)
    return _placed(out, out_sharding, "dot_general")


def dot(
    lhs: _ArrayLike, rhs: _ArrayLike, *, dimension_numbers: Any = None, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> _Array:  # fmt: skip
    """Vector and matrix products, or those that `dimension_numbers` says.

    >>> dot(full((2, 3), 1.0), full((3,), 2.0))
    Array([6., 6.], dtype=float32)
    """
    options = {"preferred_element_type": preferred_element_type, "out_sharding": out_sharding}
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, **options)
    a, b = _type_of(lhs), _type_of(rhs)
    if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2) or a.shape[-1] != b.shape[0]:
        raise TypeError(
            _errors.explained(
                f"dot: the last axis of {a} and the first of {b} must have the same length, and at most two axes each.",
                "a transpose, x.T; or numpy.matmul for more axes.",
            )
        )
    return dot_general(lhs, rhs, (((a.ndim - 1,), (0,)), ((), ())), precision, **options)


def batch_matmul(lhs: _ArrayLike, rhs: _ArrayLike, precision: Any = None) -> _Array:
    """Matrix products for each index of the leading axes."""
    n = _type_of(lhs).ndim
    lead = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (lead, lead)), precision)


def reduce_sum(operand: _ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> _Array:
    """The sum over axes.

    >>> reduce_sum(full((2, 3), 1), (1,))
    Array([3, 3], dtype=int32)
    """
    return _placed(_reduction.reduce_sum(operand, tuple(axes)), out_sharding, "reduce_sum")


def reduce_prod(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The product over axes."""
    return _reduction.reduce_prod(operand, tuple(axes))


def reduce_max(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The largest element over axes."""
    return _reduction.reduce_max(operand, tuple(axes))


def reduce_min(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The smallest element over axes."""
    return _reduction.reduce_min(operand, tuple(axes))


def reduce_and(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The bitwise and over axes: for bools, whether all hold."""
    return _reduction.reduce_and(operand, tuple(axes))


def reduce_or(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The bitwise or over axes: for bools, whether any holds."""
    return _reduction.reduce_or(operand, tuple(axes))


def reduce_xor(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The bitwise exclusive or over axes."""
    return _reduction.reduce_xor(operand, tuple(axes))


def slice(
    operand: _ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> _Array:
    """The elements from start up to limit on each axis, in strides.

    >>> slice(iota("int32", 6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    return _shape.slice(operand, start_indices, limit_indices, strides)


def rng_bit_generator(
    key: Any, shape: Sequence[int], dtype: Any = _np.uint32, algorithm: Any = RandomAlgorithm.RNG_DEFAULT, *,
    out_sharding: Any = None,
) -> tuple[_Array, _Array]:  # fmt: skip
    """The next state of a generator, and random bits; the default algorithm is Threefry."""
    name = RandomAlgorithm(algorithm).name if not isinstance(algorithm, str) else algorithm
    chosen = {"RNG_DEFAULT": "THREE_FRY", "RNG_THREE_FRY": "THREE_FRY", "RNG_PHILOX": "PHILOX"}.get(name, name)
    state, bits = _random.rng_bit_generator(key, tuple(shape), _dtypes.canonical(dtype), chosen)
    return state, _placed(bits, out_sharding, "rng_bit_generator")


def argmax(operand: _ArrayLike, axis: int, index_dtype: Any) -> _Array:
    """The position of the first largest element along an axis."""
    return _reduction.argmax(operand, _check_axis("argmax", axis, _type_of(operand).ndim), index_dtype)


def argmin(operand: _ArrayLike, axis: int, index_dtype: Any) -> _Array:
    """The position of the first smallest element along an axis."""
    return _reduction.argmin(operand, _check_axis("argmin", axis, _type_of(operand).ndim), index_dtype)


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """One array, or several in the order of the first ones, sorted along an axis.

    >>> sort(rev(iota("int32", 3), (0,)))
    Array([0, 1, 2], dtype=int32)
    """
    several = isinstance(operand, (tuple, list))
    xs = tuple(operand) if several else (operand,)
    out = _sorting.sort(xs, _check_axis("sort", dimension, _type_of(xs[0]).ndim), num_keys, is_stable)
    return out if several else out[0]


def sort_key_val(
    keys: _ArrayLike, values: _ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[_Array, _Array]:
    """Keys sorted along an axis, and values in the same order.

    >>> sort_key_val(rev(iota("int32", 3), (0,)), iota("int32", 3))
    (Array([0, 1, 2], dtype=int32), Array([2, 1, 0], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand: _ArrayLike, k: int, *, axis: int = -1) -> tuple[_Array, _Array]:
    """The k largest elements along an axis, largest first, and their positions.

    >>> top_k(rev(iota("int32", 5), (0,)), 2)
    (Array([4, 3], dtype=int32), Array([0, 1], dtype=int32))
    """
    n = _type_of(operand).ndim
    axis = _check_axis("top_k", axis, n)
    if axis == n - 1:
        return _sorting.top_k(operand, k)
    values, positions = _sorting.top_k(_shape.move_axis(operand, axis, n - 1), k)
    return _shape.move_axis(values, n - 1, axis), _shape.move_axis(positions, n - 1, axis)


def fft(x: _ArrayLike, fft_type: Any, fft_lengths: Sequence[int]) -> _Array:
    """A Fourier transform of the last axes."""
    return _fft.fft(x, str(getattr(fft_type, "name", fft_type)).upper(), tuple(fft_lengths))


def optimization_barrier(operand: Any) -> Any:
    """A tree unchanged, behind an optimization barrier."""
    leaves, structure = _tree.flatten(operand)
    return structure.unflatten(_shape.optimization_barrier(*leaves)) if leaves else operand


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of a tree of arrays, combined with an associative function in log2(n) rounds.

    >>> import atled.numpy as jnp
    >>> associative_scan(jnp.add, jnp.arange(4.0))
    Array([0., 1., 3., 6.], dtype=float32)
    """
    leaves, structure = _tree.flatten(elems)
    xs = tuple([_asarray(x) for x in leaves])
    axis = _check_axis("associative_scan", axis, xs[0].ndim)
    if len({x.shape[axis] for x in xs}) != 1:
        raise ValueError(
            f"associative_scan: all arrays must have one length along axis {axis}; got {[x.shape for x in xs]}."
        )

    def combine(p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        out = _tree.leaves(fn(structure.unflatten(p), structure.unflatten(q)))
        return tuple(out)

    return structure.unflatten(_cumulative.scan(combine, xs, axis, reverse))


# -- collectives over named axes --------------------------------------------------------------------------------------


def _no_groups(groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError(
            f"axis_index_groups: collectives over a part of an axis are not there; got {groups}."
            "\n  try: a mesh, or two vmaps, with one axis more, and the collective over that."
        )


def _over_tree(f: Callable[..., Any], x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    _no_groups(axis_index_groups)
    return _tree.map(lambda v: f(v, axis_name), x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over named axes; every place gets it.

    >>> import atled
    >>> atled.vmap(lambda x: psum(x, "i"), axis_name="i")(iota("int32", 3))
    Array([3, 3, 3], dtype=int32)
    """
    return _over_tree(_collectives.psum, x, axis_name, axis_index_groups)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest value over named axes.

    >>> import atled
    >>> atled.vmap(lambda x: pmax(x, "i"), axis_name="i")(iota("int32", 3))
    Array([2, 2, 2], dtype=int32)
    """
    return _over_tree(_collectives.pmax, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest value over named axes.

    >>> import atled
    >>> atled.vmap(lambda x: pmin(x, "i"), axis_name="i")(iota("int32", 3))
    Array([0, 0, 0], dtype=int32)
    """
    return _over_tree(_collectives.pmin, x, axis_name, axis_index_groups)


def pvary(x: Any, axis_name: Any) -> Any:
    """A replicated value as a varying one along named axes: the identity."""
    return _over_tree(_collectives.pvary, x, axis_name, None)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """A value as one that varies along named axes, or as one that is summed up: the value itself.

    Types do not track how values vary, so it is the identity. "unreduced" is not supported.
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: `to` is 'varying', 'reduced' or 'unreduced'; got {to!r}.")
    if to == "unreduced":
        raise NotImplementedError("pcast: values whose sum is still to be taken are not there; got to='unreduced'.")
    return pvary(x, axis_name)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one place of a named axis, at all places.

    >>> import atled
    >>> atled.vmap(lambda x: pbroadcast(x, "i", 2), axis_name="i")(iota("int32", 3))
    Array([2, 2, 2], dtype=int32)
    """
    return _tree.map(lambda v: _collectives.pbroadcast(v, axis_name, source), x)


def axis_index(axis_name: Any) -> _Array:
    """The position along a named axis of the place that the function runs at.

    >>> import atled
    >>> atled.vmap(lambda x: 10 * axis_index("i") + x, axis_name="i")(iota("int32", 3))
    Array([ 0, 11, 22], dtype=int32)
    """
    return _collectives.axis_index(axis_name)


def axis_size(axis_name: Any) -> int:
    """The number of places along named axes.

    >>> import atled
    >>> atled.vmap(lambda x: x * axis_size("i"), axis_name="i")(iota("int32", 3))
    Array([0, 3, 6], dtype=int32)
    """
    return _collectives.axis_size(axis_name)


with_sharding_constraint = _placing.with_sharding_constraint


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over named axes.

    >>> import atled
    >>> atled.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(iota("float32", 3))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    _no_groups(axis_index_groups)
    count = axis_size(axis_name)
    return _tree.map(lambda v: div(_collectives.psum(v, axis_name), count), x)


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The values of all places of a named axis side by side on a new axis, or joined along one if `tiled`.

    The result counts as replicated, whether `to` is "varying" or "reduced".

    >>> import atled
    >>> atled.vmap(lambda x: all_gather(x, "i"), axis_name="i")(iota("int32", 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if to not in ("varying", "reduced"):
        raise ValueError(f"all_gather: `to` is 'varying' or 'reduced'; got {to!r}.")
    _no_groups(axis_index_groups)
    return _tree.map(lambda v: _collectives.all_gather(v, axis_name, axis, tiled), x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Reduce-scatter: the sum over a named axis, of which every device keeps its slice.

    >>> import atled
    >>> atled.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(reshape(iota("int32", 4), (2, 2)))
    Array([2, 4], dtype=int32)
    """
    _no_groups(axis_index_groups)
    return _tree.map(lambda v: _collectives.psum_scatter(v, axis_name, scatter_dimension, tiled), x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Values sent along a named axis, by pairs of (source, target); places that get nothing have zero.

    >>> import atled
    >>> atled.vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(iota("int32", 3) + 5)
    Array([0, 5, 6], dtype=int32)
    """
    return _tree.map(lambda v: _collectives.ppermute(v, axis_name, perm), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Values exchanged along a named axis: place i gets what place perm[i] had.

    >>> import atled
    >>> atled.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(iota("int32", 3))
    Array([2, 0, 1], dtype=int32)
    """
    return ppermute(x, axis_name, [(s, t) for t, s in enumerate(perm)])


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """All-to-all: slices along one axis are sent to the devices of a named axis, and received slices concatenated along
    another.

    >>> import atled
    >>> atled.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(reshape(iota("int32", 4), (2, 2)))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    _no_groups(axis_index_groups)

    def one(v: Any) -> Any:
        if tiled:
            return _collectives.all_to_all(v, axis_name, split_axis, concat_axis)
        # the split axis has the length of the named axis, and moves
        n = _type_of(v).ndim
        moved = _shape.move_axis(v, _check_axis("all_to_all", split_axis, n), 0)
        dealt = _collectives.all_to_all(moved, axis_name, 0, 0)
        return _shape.move_axis(dealt, 0, _check_axis("all_to_all", concat_axis, n))

    return _tree.map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """An axis exchanged with a named one of the same length."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


dtype = _arrays.dtype


def __getattr__(name: str) -> Any:
    """Primitives by the names of JAX: `add_p`."""
    if name.endswith("_p") and not name.startswith("_"):
        return getattr(_importlib.import_module("atled.extend.core.primitives"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
