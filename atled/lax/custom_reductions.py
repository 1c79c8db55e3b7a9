"""Reductions over axes and windows with any function, and cumulative functions, with the arguments of JAX's `lax`.

A function that consists of one op (sum, product, minimum, maximum, and, or) is lowered to XLA's reduction. Any other
function is applied to pairs of neighbours in log2(n) rounds, so it must be associative.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import tree
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.dtypes import kind
from atled.core.program import record
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.types import ArrayType
from atled.lax.convolution import padding_amounts
from atled.numpy.creation import asarray
from atled.ops import cumulative, elementwise, reduction, shape, window_reductions
from atled.ops.conversion import convert
from atled.ops.convolution import dilated
from atled.ops.placement import placed
from atled.transforms.vmap import vmap

_KNOWN: dict[type, str] = {
    elementwise.Add: "add", elementwise.Mul: "mul", elementwise.Max: "max", elementwise.Min: "min",
    elementwise.And: "and", elementwise.Or: "or",
}  # fmt: skip
_APPLY = {
    "add": elementwise.add, "mul": elementwise.mul, "max": elementwise.maximum, "min": elementwise.minimum,
    "and": elementwise.logical_and, "or": elementwise.logical_or,
}  # fmt: skip
_REDUCE = {
    "add": reduction.reduce_sum, "mul": reduction.reduce_prod, "max": reduction.reduce_max,
    "min": reduction.reduce_min, "and": reduction.reduce_and, "or": reduction.reduce_or,
}  # fmt: skip


def combination(computation: Callable[[Any, Any], Any], dtype: Any) -> str | None:
    """The name of XLA's reduction with a binary function, or None; the function is traced to find its op."""
    program, captured = record(lambda a, b: [computation(a, b)], [ArrayType((), dtype)] * 2, "reduce")
    if captured or len(program.equations) != 1 or program.output_types[0].dtype != dtype:
        return None
    (e,) = program.equations
    is_plain = len(e.operands) == 2 and {*e.operands} == {*program.inputs} and program.outputs[0] is e.results[0]
    return _KNOWN.get(type(e.op)) if is_plain else None


def _elementwise(
    name: str, computation: Callable[..., Any], structure: Any, xs: Sequence[Any], ys: Sequence[Any]
) -> list[Any]:
    """Apply a function of scalars, or pytrees of them, to arrays of equal shape."""
    dims = type_of(xs[0]).shape
    flat = [[shape.reshape(v, (prod(dims),)) for v in vs] for vs in (xs, ys)]
    results = tree.leaves(vmap(computation)(*[structure.unflatten(vs) for vs in flat]))
    for v, x in zip(results, xs):
        if type_of(v).dtype != type_of(x).dtype:
            raise TypeError(
                f"{name}: the computation must return the dtype of its arguments; "
                f"got {type_of(v).dtype.name} for {type_of(x).dtype.name}.\n  try: operands of the wider dtype."
            )
    return [shape.reshape(v, dims) for v, _ in zip(results, xs, strict=True)]


def _starts(name: str, structure: Any, init_values: Any, xs: Sequence[Any]) -> list[Any]:
    """The initial values; raises if the dtype of an operand cannot hold its initial value."""
    starts: list[Any] = structure.flatten_up_to(init_values)
    for start, x in zip(starts, xs):
        t, dtype = type_of(start), type_of(x).dtype
        is_whole = isinstance(start, (float, np.floating)) and (np.isinf(start) or float(start).is_integer())
        if _RANK.get(t.kind, 0) > _RANK.get(kind(dtype), 0) and not is_whole:
            raise TypeError(
                f"{name}: an initial value must have the dtype of its operand, {dtype.name}; got {t.dtype.name}."
            )
    return starts


_RANK = {"b": 1, "u": 2, "i": 2, "f": 3, "c": 4}  # kinds of dtypes by rank; each can hold those of lower rank


def _filled(start: Any, like: Any, dims: Sequence[int]) -> Any:
    return shape.broadcast(convert(start, type_of(like).dtype), tuple(dims), ())


def reduce(
    operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int],
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Any:  # fmt: skip
    """Reduce elements over axes with an associative function; the initial value must be its identity element.

    `operands` may be a pytree of arrays of equal shape; `computation` then takes two such pytrees of scalars.

    >>> import atled.numpy as jnp
    >>> float(reduce(jnp.arange(1.0, 5.0), 1.0, lambda a, b: a * b, (0,)))
    24.0
    """
    xs, structure = tree.flatten(operands)
    starts = _starts("reduce", structure, init_values, xs)
    dims = type_of(xs[0]).shape
    axes = check_axes("reduce", tuple(dimensions), len(dims))
    name = combination(computation, type_of(xs[0]).dtype) if xs[0] is operands else None
    if name is not None:
        return placed(_with_start(_REDUCE[name](xs[0], axes), starts[0], name), out_sharding, "reduce")
    free_axes = [i for i in range(len(dims)) if i not in axes]
    count = prod([dims[i] for i in axes])
    rest = tuple([dims[i] for i in free_axes])
    rows = [shape.reshape(shape.transpose(x, (*free_axes, *axes)), (*rest, count)) for x in xs]
    last = len(rest)
    while count > 1:  # neighbours are combined, so that the order is preserved
        even, odd = [[shape.slice_in_axis(r, i, count - count % 2, last, 2) for r in rows] for i in (0, 1)]
        pairs = _elementwise("reduce", computation, structure, even, odd)
        if count % 2:
            left = [shape.slice_in_axis(r, count - 1, count, last) for r in rows]
            pairs = [shape.concatenate([p, r], last) for p, r in zip(pairs, left)]
        rows, count = pairs, (count + 1) // 2
    first = [_filled(s, x, rest) for s, x in zip(starts, xs, strict=True)]
    if count:
        first = _elementwise("reduce", computation, structure, first, [shape.reshape(r, rest) for r in rows])
    return structure.unflatten([placed(x, out_sharding, "reduce") for x in first])


def reduce_window(
    operand: ArrayLike, init_value: Any, computation: Callable[[Any, Any], Any], window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None, padding: str | Sequence[Sequence[int]] = "VALID",
    base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """Reduce elements in sliding windows with an associative function and an initial value.

    `operand` may be a pytree of arrays of equal shape; `computation` then takes two such pytrees of scalars.

    >>> import atled.numpy as jnp
    >>> reduce_window(jnp.arange(4.0), 0.0, elementwise.add, (2,), (2,), "VALID")
    Array([1., 5.], dtype=float32)
    """
    xs, structure = tree.flatten(operand)
    starts = _starts("reduce_window", structure, init_value, xs)
    dims = type_of(xs[0]).shape
    ones = (1,) * len(dims)
    strides = ones if window_strides is None else tuple(window_strides)
    base, wide = tuple(base_dilation or ones), tuple(window_dilation or ones)
    _check_sizes(len(dims), window=tuple(window_dimensions), strides=strides, base_dilation=base, window_dilation=wide)
    lengths = [dilated(n, d) for n, d in zip(dims, base, strict=True)]
    reach = [dilated(n, d) for n, d in zip(window_dimensions, wide, strict=True)]
    pairs = padding_amounts("reduce_window", padding, lengths, reach, strides)
    name = combination(computation, type_of(xs[0]).dtype) if xs[0] is operand else None
    if name is not None:
        out = window_reductions.reduce_window(xs[0], name, window_dimensions, strides, pairs, base, wide)
        return _with_start(out, starts[0], name)
    config = [(low, high, d - 1) for (low, high), d in zip(pairs, base)]
    padded = [shape.pad(x, convert(s, type_of(x).dtype), config) for x, s in zip(xs, starts, strict=True)]
    counts = [max((n + low + high - r) // s + 1, 0) for n, (low, high), r, s in zip(lengths, pairs, reach, strides)]
    totals = [_filled(s, x, counts) for s, x in zip(starts, xs)]
    inside = [_inside(n, low, high, d) for n, (low, high), d in zip(dims, pairs, base)]
    for place in itertools.product(*[range(n) for n in window_dimensions] if all(counts) else [()]):
        parts, counted = padded, np.ones(counts, bool)
        for axis, (i, n, d, step) in enumerate(zip(place, counts, wide, strides)):
            first, last = i * d, i * d + (n - 1) * step + 1
            parts = [shape.slice_in_axis(p, first, last, axis, step) for p in parts]
            counted &= inside[axis][first:last:step].reshape([n if k == axis else 1 for k in range(len(dims))])
        if counted.any():  # padding is ignored
            new = _elementwise("reduce_window", computation, structure, totals, parts)
            totals = new if counted.all() else [elementwise.select(counted, v, old) for v, old in zip(new, totals)]
    return structure.unflatten(totals)


def _inside(length: int, low: int, high: int, dilation: int) -> Any:
    """A mask of the positions of a padded and dilated axis that hold elements."""
    own = np.zeros(dilated(length, dilation), bool)
    own[::dilation] = True
    own = np.concatenate([np.zeros(max(low, 0), bool), own, np.zeros(max(high, 0), bool)])
    return own[max(-low, 0) : len(own) - max(-high, 0)]


def _check_sizes(ndim: int, **given: tuple[int, ...]) -> None:
    for name, sizes in given.items():
        if len(sizes) != ndim or any([n < 1 for n in sizes]):
            raise TypeError(f"reduce_window: {name} must be a positive number for each of {ndim} axes; got {sizes}.")


def _with_start(out: Any, start: Any, combine: str) -> Any:
    """A result combined with an initial value, unless that is the identity element."""
    dtype = type_of(out).dtype
    if not hasattr(start, "interpreter"):
        host = np.asarray(start)
        if host.ndim == 0 and host.astype(dtype) == np.asarray(window_reductions.identity(combine, dtype)).astype(
            dtype
        ):
            return out
    return _APPLY[combine](out, np.asarray(start, dtype) if not hasattr(start, "interpreter") else start)


def cumulative_function(name: str, op: Callable[..., Any]):
    """A cumulative op as a function (operand, axis, reverse), such as `cumsum`."""

    def f(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        return op(operand, check_axis(name, axis, type_of(operand).ndim), reverse)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = op.__doc__
    return f


cumsum = cumulative_function("cumsum", cumulative.cumsum)
cumprod = cumulative_function("cumprod", cumulative.cumprod)
cummax = cumulative_function("cummax", cumulative.cummax)
cummin = cumulative_function("cummin", cumulative.cummin)
cumlogsumexp = cumulative_function("cumlogsumexp", cumulative.cumlogsumexp)


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of a pytree of arrays, combined with an associative function in log2(n) rounds.

    >>> import atled.numpy as jnp
    >>> associative_scan(jnp.add, jnp.arange(4.0))
    Array([0., 1., 3., 6.], dtype=float32)
    """
    leaves, structure = tree.flatten(elems)
    xs = tuple([asarray(x) for x in leaves])
    axis = check_axis("associative_scan", axis, xs[0].ndim)
    if len({x.shape[axis] for x in xs}) != 1:
        raise ValueError(
            f"associative_scan: all arrays must have the same length along axis {axis}; got {[x.shape for x in xs]}."
        )

    def combine(p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        out = tree.leaves(fn(structure.unflatten(p), structure.unflatten(q)))
        return tuple(out)

    return structure.unflatten(cumulative.scan(combine, xs, axis, reverse))
