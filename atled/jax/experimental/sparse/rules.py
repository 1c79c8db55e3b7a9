"""The rules of `sparsify` for ops on sparse arrays: `RULES` has one for each class of ops.

Ops without sparse operands run unchanged. Between ops, a value may be an array, a `BCOO`, or one of two lazy forms,
converted only when an op requires it: `Broadcast`, a value broadcast to more axes, and `Filled`, a sparse array whose
other elements have a nonzero value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from atled import lax
from atled import numpy as jnp
from atled.core import errors
from atled.core.array import type_of
from atled.core.program import Literal, Program, Var
from atled.core.trace import Tracer, bind
from atled.higher_order import call, cond, remat, scan, while_loop
from atled.jax.experimental.sparse import parts, products, shaping
from atled.jax.experimental.sparse.bcoo import BCOO, stored
from atled.jax.experimental.sparse.layout import sum_duplicates
from atled.ops import contraction, conversion, convolution, elementwise, indexing, reduction, shape
from atled.ops.elementwise_family import Elementwise
from atled.staging.compile_time_eval import ensure_compile_time_eval

DENSE = "sparse.todense"  # the name that `todense` gives a traced value


class Broadcast(NamedTuple):
    """A value to broadcast to `shape`: its axis i is axis `axes[i]` of the shape."""

    value: Any
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def thin(self) -> Any:
        """The value with axes of length one inserted for the missing axes."""
        dims = [1] * len(self.shape)
        for axis, n in zip(self.axes, self.value.shape, strict=True):
            dims[axis] = n
        if isinstance(self.value, BCOO):
            return shaping.bcoo_broadcast_in_dim(self.value, shape=dims, broadcast_dimensions=self.axes)
        return self.value.reshape(dims)

    def made(self) -> Any:
        """The value broadcast to the full shape."""
        if isinstance(self.value, BCOO):
            return shaping.bcoo_broadcast_in_dim(self.value, shape=self.shape, broadcast_dimensions=self.axes)
        return bind(shape.Broadcast(self.shape, self.axes), self.value)


class Filled(NamedTuple):
    """A sparse array whose other elements are `fill`; `op` is the name of the op that produced it."""

    mat: BCOO
    fill: Any
    op: str


def _missing(name: str, why: str = "has no rule for sparse arrays") -> NotImplementedError:
    says = f"sparsify: {name} {why}."
    return NotImplementedError(errors.explained(says, "sparse.todense(x) of the operand, if x may become dense."))


def _settled(x: Any) -> Any:
    """A value converted from its lazy form to an array or a `BCOO`."""
    if type(x) is Filled:
        raise _missing(x.op, "of a sparse array is dense, because the op maps zero to another value")
    return x.made() if type(x) is Broadcast else x


def _is_sparse(x: Any) -> bool:
    return isinstance(x, BCOO) or type(x) is Filled or (type(x) is Broadcast and isinstance(x.value, BCOO))


# -- running a program ------------------------------------------------------------------------------------------------


def run(program: Program, operands: Sequence[Any]) -> list[Any]:
    """Run a program on operands that may be sparse."""
    env: dict[Any, Any] = dict(zip(program.inputs, operands, strict=True))
    read = lambda v: env[v] if type(v) is Var else v  # noqa: E731
    for e in program.equations:
        values = [read(v) for v in e.operands]
        rule = None
        if type(e.op) is shape.Broadcast and type(values[0]) is not Broadcast and type(values[0]) is not Filled:
            env[e.results[0]] = Broadcast(values[0], e.op.shape, e.op.axes)
            continue
        if any([_is_sparse(x) for x in values]):
            rule = RULES.get(type(e.op)) or (_elementwise if isinstance(e.op, Elementwise) else None)
            if rule is None and isinstance(e.op, call.Call):
                rule = _call
            if rule is None:
                raise _missing(e.op.name)
            if rule not in _LAZY:
                values = [_settled(x) for x in values]
            out = rule(e.op, *values)
        else:
            out = bind(e.op, *[_settled(x) for x in values])
        for v, x in zip(e.results, out if type(out) is tuple else (out,), strict=True):
            env[v] = x
    return [_settled(read(v)) for v in program.outputs]


def _call(op: Any, *operands: Any) -> Any:
    return tuple(run(op.program, operands))


# -- elementwise ------------------------------------------------------------------------------------------------------


def _dense(x: Any) -> Any:
    """A dense operand for a product with a sparse array, before broadcasting."""
    return x.thin() if type(x) is Broadcast else x.value if type(x) is Literal else x


def _multiply(op: Any, x: Any, y: Any) -> Any:
    if type(x) is Filled or type(y) is Filled:
        return _elementwise(op, x, y)
    if _is_sparse(x) and _is_sparse(y):
        if x is y and x.unique_indices:
            return x.with_data(x.data * x.data)
        return products.bcoo_multiply_sparse(*[v.thin() if type(v) is Broadcast else v for v in (x, y)])
    mat, other = (x, y) if _is_sparse(x) else (y, x)
    mat = _settled(mat)
    return mat.with_data(products.bcoo_multiply_dense(mat, jnp.asarray(_dense(other), mat.dtype)))


def _divide(op: Any, x: Any, y: Any) -> Any:
    if type(x) is Filled or _is_sparse(y):
        if type(y) is Filled:
            return _elementwise(op, x, y)
        raise _missing("div", "by a sparse array would be dense")
    mat = _settled(x)
    other = jnp.asarray(_dense(y), mat.dtype)
    if mat.dtype.kind in "iu":
        divisors = products.bcoo_multiply_dense(mat.with_data(jnp.ones_like(mat.data)), other)
        return mat.with_data(lax.div(mat.data, divisors))
    return (
        mat.with_data(products.bcoo_multiply_dense(mat, 1 / other)) if other.ndim else mat.with_data(mat.data / other)
    )


def _add(op: Any, x: Any, y: Any) -> Any:
    if type(x) is Filled or type(y) is Filled:
        return _elementwise(op, x, y)
    is_sub = type(op) is elementwise.Sub
    if _is_sparse(x) and _is_sparse(y):
        if any([type(v) is Broadcast and v.value.shape != v.shape for v in (x, y)]):
            raise _missing(op.name, "of sparse arrays needs arrays of the same shape")
        x, y = _settled(x), _settled(y)
        if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
            raise _missing(op.name, f"of sparse arrays needs arrays of the same layout; got {x!r} and {y!r}")
        return _joined(x, y.with_data(-y.data) if is_sub else y)
    mat, other = (x, y) if _is_sparse(x) else (y, x)
    if is_sub:
        raise _missing("sub", "of a sparse and a dense array is dense")
    mat, full = _settled(mat), type(other) is not Broadcast or 1 not in other.thin().shape
    is_scalar = type(other) is Literal or type_of(other.value if type(other) is Broadcast else other).ndim == 0
    if mat.ndim and (is_scalar or not full):
        raise _missing("add", "of a sparse array and a smaller dense one would make the sparse one dense")
    return mat.todense() + _settled(other)


def _joined(x: BCOO, y: BCOO) -> BCOO:
    """The sum of two sparse arrays: the entries of both."""
    (a, i), (b, j) = stored(x), stored(y)
    joined = jnp.concatenate([a, b], x.n_batch), jnp.concatenate([i, j.astype(i.dtype)], x.n_batch)
    return BCOO(joined, shape=x.shape)


def _pattern(op: Any, operands: Sequence[Any]) -> tuple[BCOO, list[Any], list[Any]]:
    """A sparse array with the indices that all operands share, the operands' data, and their values elsewhere."""
    mats = [x.mat if type(x) is Filled else _settled(x) if _is_sparse(x) else None for x in operands]
    if not _acts_on_entries(op):
        mats = [m if m is None or m.unique_indices else _summed(m) for m in mats]
    first = next(m for m in mats if m is not None)
    numbers, fills = [], []
    for x, m in zip(operands, mats, strict=True):
        if m is not None:
            if m.indices is not first.indices:
                raise _missing(op.name, "of sparse arrays needs operands with the same indices")
            numbers.append(m.data)
            fills.append(x.fill if type(x) is Filled else np.zeros((), m.dtype))
        else:
            value = x.value if type(x) in (Literal, Broadcast) else x
            known = value.known() if isinstance(value, Tracer) else value
            if type_of(value).ndim or known is None:
                raise _missing(op.name)
            numbers.append(x if type(x) is Literal else value)
            fills.append(np.asarray(known, type_of(x if type(x) is not Broadcast else value).dtype))
    return first, numbers, fills


def _summed(mat: BCOO) -> BCOO:
    """The array with duplicates summed; cached on `mat`, so that all its ops use the same `indices` object."""
    cached = getattr(mat, "_summed", None)
    if cached is None:
        mat._summed = cached = sum_duplicates(mat, mat.nse, False)  # type: ignore[attr-defined]
    return cached


def _acts_on_entries(op: Any) -> bool:
    """Whether a unary op may be applied before duplicate entries are summed."""
    linear = (elementwise.Neg, conversion.Real, conversion.Imag, conversion.Conj)
    return isinstance(op, linear)


def _elementwise(op: Any, *operands: Any) -> Any:
    """An elementwise op on entries and scalars; a nonzero value at zero makes the result `Filled`."""
    first, numbers, fills = _pattern(op, operands)
    with ensure_compile_time_eval():
        fill = np.asarray(bind(op, *[jnp.asarray(x) for x in fills]))
    out = first.with_data(bind(op, *numbers))
    return out if not fill else Filled(out, fill, op.name)


def _select(op: Any, mask: Any, x: Any, y: Any) -> Any:
    """`where` with a sparse, scalar or dense mask; a dense mask selects at the indices of the entries."""
    value = mask.value if type(mask) is Broadcast else mask
    if _is_sparse(mask) or type(mask) is Literal or type_of(value).ndim == 0:
        return _elementwise(op, mask, x, y)
    first, numbers, fills = _pattern(elementwise.Neg(), (x, y))
    if any(fills):
        raise _missing(op.name)
    ones = first.with_data(jnp.ones(first.data.shape, np.int8))
    is_on = products.bcoo_multiply_dense(ones, _dense(mask).astype(np.int8)) != 0
    x, y = [jnp.broadcast_to(jnp.asarray(v.value if type(v) is Literal else v), is_on.shape) for v in numbers]
    return first.with_data(bind(op, is_on, x, y))


# -- other ops --------------------------------------------------------------------------------------------------------


def _reduce_sum(op: Any, x: Any) -> Any:
    out = parts.bcoo_reduce_sum(x, axes=op.axes)
    return out if out.ndim else out.todense()


def _dot_general(op: Any, x: Any, y: Any) -> Any:
    numbers = (op.contracting, op.batch_axes)
    x, y = [v.value if type(v) is Literal else v for v in (x, y)]
    return products.bcoo_dot_general(x, y, dimension_numbers=numbers, preferred_element_type=op.result)


def _concatenate(op: Any, *xs: Any) -> Any:
    return shaping.bcoo_concatenate(xs, dimension=op.axis)


def _slice(op: Any, x: Any) -> Any:
    return parts.bcoo_slice(x, start_indices=op.start, limit_indices=op.limit, strides=op.stride)


def _dynamic_slice(op: Any, x: Any, *starts: Any) -> Any:
    if not isinstance(x, BCOO) or any([_is_sparse(s) for s in starts]):
        raise _missing(op.name)
    starts = tuple([s.value if type(s) is Literal else s for s in starts])
    return parts.bcoo_dynamic_slice(x, [jnp.maximum(jnp.asarray(s), 0) for s in starts], op.sizes)


def _gather(op: Any, x: Any, indices: Any) -> Any:
    if not isinstance(x, BCOO):
        raise _missing(op.name)
    numbers = lax.GatherDimensionNumbers(*op.axes)
    mode = {"promise": "promise_in_bounds"}.get(op.mode, op.mode)
    return parts.bcoo_gather(x, indices, numbers, op.sizes, mode=mode)


def _split(op: Any, x: Any) -> Any:
    ends = np.cumsum(op.sizes)
    slices = []
    for size, end in zip(op.sizes, ends, strict=True):
        low = [0] * x.ndim
        high = list(x.shape)
        low[op.axis], high[op.axis] = int(end - size), int(end)
        slices.append(parts.bcoo_slice(x, start_indices=low, limit_indices=high))
    return tuple(slices)


def _reshape(op: Any, x: Any) -> Any:
    return shaping.bcoo_reshape(x, new_sizes=op.shape)


def _broadcast(op: Any, x: Any) -> Any:
    return shaping.bcoo_broadcast_in_dim(_settled(x), shape=op.shape, broadcast_dimensions=op.axes)


def _convolution(op: Any, x: Any, kernel: Any) -> Any:
    spec = lax.ConvDimensionNumbers(*op.axes)
    return products.bcoo_conv_general_dilated(
        x, kernel, window_strides=op.strides, padding=op.padding, lhs_dilation=op.x_dilation,
        rhs_dilation=op.kernel_dilation, dimension_numbers=spec, feature_group_count=op.feature_groups,
        batch_group_count=op.batch_groups,
    )  # fmt: skip


def _name(op: Any, x: Any) -> Any:
    if op.label == DENSE:
        return x.todense()
    return x.with_data(bind(op, x.data))


# -- ops that hold programs -------------------------------------------------------------------------------------------


def _plain(xs: Sequence[Any]) -> list[Any]:
    return [jnp.asarray(x.value) if type(x) is Literal else x for x in xs]


def _cond(op: Any, index: Any, *operands: Any) -> Any:
    runs = [lambda *xs, program=program: run(program, xs) for program in op.branches]
    return tuple(lax.switch(index.value if type(index) is Literal else index, runs, *_plain(operands)))


def _while(op: Any, *operands: Any) -> Any:
    a, b = op.condition_constants, op.condition_constants + op.body_constants
    values = _plain(operands)
    goes_on = lambda carry: run(op.condition, [*values[:a], *carry])[0]  # noqa: E731
    return tuple(lax.while_loop(goes_on, lambda carry: run(op.body, [*values[a:b], *carry]), values[b:]))


def _scan(op: Any, *operands: Any) -> Any:
    values = _plain(operands)
    constants, carry = values[: op.constants], values[op.constants : op.constants + op.carries]

    def step(carry: Any, xs: Any) -> Any:
        out = run(op.body, [*constants, *carry, *xs])
        return out[: op.carries], out[op.carries :]

    rest = values[op.constants + op.carries :]
    for x in rest:
        if isinstance(x, BCOO) and not x.n_batch:
            raise _missing("scan", "over a sparse array needs a batch axis to iterate over")
    carry, ys = lax.scan(step, carry, rest, length=op.length, reverse=op.is_reversed, unroll=op.unroll)
    return (*carry, *ys)


RULES: dict[type, Callable[..., Any]] = {
    elementwise.Mul: _multiply,
    elementwise.Slope: _multiply,
    elementwise.Div: _divide,
    elementwise.Add: _add,
    elementwise.Sub: _add,
    elementwise.Select: _select,
    **dict.fromkeys(elementwise.GATES, _select),
    reduction.ReduceSum: _reduce_sum,
    contraction.DotGeneral: _dot_general,
    convolution.Convolution: _convolution,
    indexing.DynamicSlice: _dynamic_slice,
    indexing.Gather: _gather,
    shape.Broadcast: _broadcast,
    shape.Concatenate: _concatenate,
    shape.Reshape: _reshape,
    shape.Reverse: lambda op, x: shaping.bcoo_rev(x, op.axes),
    shape.Slice: _slice,
    shape.Split: _split,
    shape.Transpose: lambda op, x: shaping.bcoo_transpose(x, permutation=op.permutation),
    remat.Name: _name,
    cond.Cond: _cond,
    while_loop.While: _while,
    scan.Scan: _scan,
}
_LAZY = {_multiply, _divide, _add, _select, _elementwise, _broadcast}  # rules that accept the lazy forms
