"""The ops by their short names: strict about shapes and dtypes, and close to XLA's operations."""

from __future__ import annotations

import enum
import importlib as _importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as _np

from atled.core import dtypes as _dtypes
from atled.core import errors as _errors
from atled.core import tree as _tree
from atled.core.array import Array as _Array
from atled.core.array import ArrayLike as _ArrayLike
from atled.core.array import DTypeLike as _DTypeLike
from atled.core.array import type_of as _type_of
from atled.core.axes import check_axis as _check_axis
from atled.core.sharding import NamedSharding as _NamedSharding
from atled.core.sharding import PartitionSpec as _PartitionSpec
from atled.higher_order.branches import cond, switch  # noqa: F401
from atled.higher_order.composites import composite  # noqa: F401
from atled.higher_order.implicit import custom_linear_solve, custom_root  # noqa: F401
from atled.higher_order.loops import fori_loop, while_loop  # noqa: F401
from atled.higher_order.platforms import platform_dependent  # noqa: F401
from atled.higher_order.scan import map, scan  # noqa: F401
from atled.lax import arrays as _arrays
from atled.lax import linalg  # noqa: F401
from atled.lax.arithmetic import (  # noqa: F401
    add,
    atan2,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    clamp,
    complex,
    div,
    eq,
    ge,
    gt,
    integer_pow,
    le,
    lt,
    max,
    min,
    mul,
    ne,
    nextafter,
    polygamma,
    pow,
    rem,
    select,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sub,
    zeta,
)
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
from atled.lax.collectives import (  # noqa: F401
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
    pvary,
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
    asin,
    asinh,
    atan,
    atanh,
    bessel_i0e,
    bessel_i1e,
    bitwise_not,
    cbrt,
    ceil,
    clz,
    conj,
    cos,
    cosh,
    digamma,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    imag,
    is_finite,
    lgamma,
    log,
    log1p,
    logistic,
    neg,
    population_count,
    real,
    reciprocal,
    rsqrt,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)
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
from atled.lax.shaping import (  # noqa: F401
    broadcast,
    broadcast_in_dim,
    broadcast_shapes,
    broadcasted_iota,
    collapse,
    concatenate,
    expand_dims,
    full,
    full_like,
    iota,
    pad,
    reshape,
    rev,
    slice,
    split,
    squeeze,
    transpose,
    zeros_like_array,
)  # fmt: skip
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
from atled.numpy.promotion import converted as _converted
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
    """How `rng_bit_generator` makes bits.

    >>> state, bits = rng_bit_generator(iota("uint64", 3), (4,), algorithm=RandomAlgorithm.RNG_PHILOX)
    >>> bits.shape, bits.dtype
    ((4,), dtype('uint32'))
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


class RoundingMethod(enum.IntEnum):
    """Where halves go.

    >>> [float(round(2.5, method)) for method in RoundingMethod]
    [3.0, 2.0]
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: _ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> _Array:
    """The nearest integer.

    >>> round(full((2,), 0.5)), round(full((2,), 0.5), RoundingMethod.TO_NEAREST_EVEN)
    (Array([1., 1.], dtype=float32), Array([0., 0.], dtype=float32))
    """
    return _rounding[int(rounding_method)](x)


def bitcast_convert_type(operand: _ArrayLike, new_dtype: _DTypeLike) -> _Array:
    """The bits of x reinterpreted as another dtype.

    >>> bitcast_convert_type(full((2,), -1, "int32"), "uint32")
    Array([4294967295, 4294967295], dtype=uint32)
    >>> bitcast_convert_type(full((2,), 1, "int32"), "int16").shape  # narrower: a new last axis
    (2, 2)
    """
    return _conversion.bitcast_convert(operand, new_dtype)


def reduce_precision(operand: _ArrayLike, exponent_bits: int, mantissa_bits: int) -> _Array:
    """x rounded to fewer bits of exponent and mantissa.

    >>> reduce_precision(full((), 1.0 + 2**-10), 8, 7)
    Array(1., dtype=float32)
    """
    return _conversion.reduce_precision(operand, exponent_bits, mantissa_bits)


def convert_element_type(operand: _ArrayLike, new_dtype: _DTypeLike) -> _Array:
    """x in another dtype.

    >>> convert_element_type(full((2,), 1.5), "int32")
    Array([1, 1], dtype=int32)
    """
    return _converted(operand, _dtypes.canonical(new_dtype))


def bitcast(operand: _ArrayLike, new_dtype: _DTypeLike) -> _Array:
    """The bits of x reinterpreted as another dtype.

    >>> bitcast(full((), 1.0), "uint32") == 0x3F800000
    Array(True, dtype=bool)
    """
    return bitcast_convert_type(operand, new_dtype)


def select_n(which: _ArrayLike, *cases: Any) -> _Array:
    """Select elementwise from cases by `which`: a bool chooses between two, an integer between any number.

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


def dot_general(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: _DTypeLike | None = None,
    *,
    out_sharding: _NamedSharding | _PartitionSpec | None = None,
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
    lhs: _ArrayLike, rhs: _ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None, preferred_element_type: _DTypeLike | None = None,
    out_sharding: _NamedSharding | _PartitionSpec | None = None,
) -> _Array:  # fmt: skip
    """Vector and matrix products, or the contraction given by `dimension_numbers`.

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


def batch_matmul(lhs: _ArrayLike, rhs: _ArrayLike, precision: PrecisionLike = None) -> _Array:
    """Matrix products for each index of the leading axes.

    >>> batch_matmul(full((5, 2, 3), 1.0), full((5, 3, 4), 1.0)).shape
    (5, 2, 4)
    """
    n = _type_of(lhs).ndim
    lead = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (lead, lead)), precision)


def reduce_sum(
    operand: _ArrayLike, axes: Sequence[int], *, out_sharding: _NamedSharding | _PartitionSpec | None = None
) -> _Array:
    """The sum over axes.

    >>> reduce_sum(full((2, 3), 1), (1,))
    Array([3, 3], dtype=int32)
    """
    return _placed(_reduction.reduce_sum(operand, tuple(axes)), out_sharding, "reduce_sum")


def reduce_prod(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The product over axes.

    >>> import atled.numpy as jnp
    >>> reduce_prod(jnp.array([[1, 5], [4, 2]]), (1,))
    Array([5, 8], dtype=int32)
    """
    return _reduction.reduce_prod(operand, tuple(axes))


def reduce_max(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The largest element over axes.

    >>> import atled.numpy as jnp
    >>> reduce_max(jnp.array([[1, 5], [4, 2]]), (1,))
    Array([5, 4], dtype=int32)
    """
    return _reduction.reduce_max(operand, tuple(axes))


def reduce_min(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The smallest element over axes.

    >>> import atled.numpy as jnp
    >>> reduce_min(jnp.array([[1, 5], [4, 2]]), (0,))
    Array([1, 2], dtype=int32)
    """
    return _reduction.reduce_min(operand, tuple(axes))


def reduce_and(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The bitwise and over axes: for bools, whether all hold.

    >>> import atled.numpy as jnp
    >>> reduce_and(jnp.array([[True, True], [True, False]]), (1,))
    Array([ True, False], dtype=bool)
    """
    return _reduction.reduce_and(operand, tuple(axes))


def reduce_or(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The bitwise or over axes: for bools, whether any holds.

    >>> import atled.numpy as jnp
    >>> reduce_or(jnp.array([[0b01, 0b10], [0b00, 0b10]]), (1,))
    Array([3, 2], dtype=int32)
    """
    return _reduction.reduce_or(operand, tuple(axes))


def reduce_xor(operand: _ArrayLike, axes: Sequence[int]) -> _Array:
    """The bitwise exclusive or over axes.

    >>> import atled.numpy as jnp
    >>> reduce_xor(jnp.array([True, True, True]), (0,))  # whether an odd number holds
    Array(True, dtype=bool)
    """
    return _reduction.reduce_xor(operand, tuple(axes))


def rng_bit_generator(
    key: _ArrayLike, shape: Sequence[int], dtype: _DTypeLike = _np.uint32,
    algorithm: RandomAlgorithm | int | str = RandomAlgorithm.RNG_DEFAULT, *,
    out_sharding: _NamedSharding | _PartitionSpec | None = None,
) -> tuple[_Array, _Array]:  # fmt: skip
    """The next state of a generator, and random bits; the default algorithm depends on the platform (CPU: Philox).

    The state is a vector of uint64, or four words of uint32.

    >>> state, bits = rng_bit_generator(iota("uint64", 2), (2, 3))
    >>> bits.shape, bits.dtype, state.shape
    ((2, 3), dtype('uint32'), (2,))
    """
    name = RandomAlgorithm(algorithm).name if not isinstance(algorithm, str) else algorithm
    chosen = {"RNG_DEFAULT": "DEFAULT", "RNG_THREE_FRY": "THREE_FRY", "RNG_PHILOX": "PHILOX"}.get(name, name)
    words = _asarray(key)
    is_narrow = words.dtype == _np.uint32 and words.shape == (4,)  # as JAX's "rbg" keys: two words of 64 bits
    seed = bitcast_convert_type(words.reshape(2, 2), _np.uint64) if is_narrow else words
    state, bits = _random.rng_bit_generator(seed, tuple(shape), _dtypes.canonical(dtype), chosen)
    if is_narrow:
        state = bitcast_convert_type(state, _np.uint32).reshape(4)
    return state, _placed(bits, out_sharding, "rng_bit_generator")


def argmax(operand: _ArrayLike, axis: int, index_dtype: _DTypeLike) -> _Array:
    """The position of the first largest element along an axis.

    >>> import atled.numpy as jnp
    >>> argmax(jnp.array([[1, 5, 5], [7, 2, 3]]), 1, "int32")
    Array([1, 0], dtype=int32)
    """
    return _reduction.argmax(operand, _check_axis("argmax", axis, _type_of(operand).ndim), index_dtype)


def argmin(operand: _ArrayLike, axis: int, index_dtype: _DTypeLike) -> _Array:
    """The position of the first smallest element along an axis.

    >>> import atled.numpy as jnp
    >>> argmin(jnp.array([[4, 1, 1], [7, 2, 0]]), 1, "int32")
    Array([1, 2], dtype=int32)
    """
    return _reduction.argmin(operand, _check_axis("argmin", axis, _type_of(operand).ndim), index_dtype)


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """One array sorted along an axis, or several, by the first `num_keys` of them.

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


def fft(x: _ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> _Array:
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
            f"associative_scan: all arrays must have the same length along axis {axis}; got {[x.shape for x in xs]}."
        )

    def combine(p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        out = _tree.leaves(fn(structure.unflatten(p), structure.unflatten(q)))
        return tuple(out)

    return structure.unflatten(_cumulative.scan(combine, xs, axis, reverse))


# -- collectives over named axes --------------------------------------------------------------------------------------


with_sharding_constraint = _placing.with_sharding_constraint


dtype = _arrays.dtype


def __getattr__(name: str) -> Any:
    """Primitives by the names of JAX: `add_p`."""
    if name.endswith("_p") and not name.startswith("_"):
        return getattr(_importlib.import_module("atled.extend.core.primitives"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
