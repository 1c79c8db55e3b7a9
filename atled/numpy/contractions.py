"""Products that sum over axes (dot, matmul, tensordot, einsum, ...), kron, cross, and diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes, error_hints, errors
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axis
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.types import ArrayType
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes, broadcast_to, operand_type, promote_dtypes
from atled.numpy.reductions import sum as _sum
from atled.ops import contraction, conversion, reduction, shape
from atled.ops import elementwise as ew
from atled.ops.contraction import precision_name
from atled.ops.placement import placed
from atled.staging.jit import library_function
from atled.staging.jit_signature import refuse_out

_STATIC = ("precision", "preferred_element_type")


def _product(x: Any, y: Any, contracting: Any, batch: Any, precision: Any, result: Any) -> Any:
    """`dot_general` on operands of the same dtype; bools are combined by `or`."""
    result_dtype = None if result is None else dtypes.canonical(result)
    if type_of(x).kind == "b":
        x, y = (conversion.convert(v, dtypes.int32) for v in (x, y))
        out = contraction.dot_general(x, y, contracting, batch)
        return conversion.convert(ew.ne(out, 0) if result_dtype is None else out, result_dtype or dtypes.bool_)
    return contraction.dot_general(x, y, contracting, batch, precision_name(precision), result_dtype)


def _transposed(s: ArrayType, t: ArrayType) -> str:
    """The hint for two matrices whose shapes do not match: transpose the one whose transpose fits, else einsum."""
    for number, fits in ((1, s.shape[-1] == t.shape[-1]), (0, s.ndim > 1 and s.shape[-2] == t.shape[-min(t.ndim, 2)])):
        operand = (s, t)[number]
        if fits and operand.ndim > 1:
            line = error_hints.with_operand(number, "{}.T" if operand.ndim == 2 else "{}.mT", "matmul")
            return line or f"the transpose of {operand}, x.mT."
    return "the transpose of one operand, or einsum, which names the axes."


@library_function(static=(*_STATIC, "out_sharding"))
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Matrix products over the last two axes; 1-d operands are rows or columns, leading axes broadcast.

    >>> matmul(np.eye(2, dtype="float32"), np.ones((2, 1), "float32"))
    Array([[1.],
           [1.]], dtype=float32)
    """
    x, y = promote_dtypes("matmul", a, b)
    s, t = type_of(x), type_of(y)
    if not s.ndim or not t.ndim:
        raise ValueError(
            f"matmul: operands must have at least one axis; got {s} and {t}.\n  try: * instead of @ for a scalar."
        )
    inner = (s.shape[-1], t.shape[-2] if t.ndim > 1 else t.shape[0])
    if inner[0] != inner[1]:
        raise errors.ShapeError(
            f"matmul: the last axis of {s} and the {'second to last' if t.ndim > 1 else 'only'} axis of {t} must have "
            f"the same length; got {inner[0]} and {inner[1]} (shapes {s.shape} and {t.shape})."
            f"\n  try: {_transposed(s, t)}"
        )
    lead = broadcast_shapes(s.shape[:-2], t.shape[:-2])
    return placed(_matmul(x, y, lead, precision, preferred_element_type), out_sharding, "matmul")


def _matmul(x: Any, y: Any, lead: tuple[int, ...], precision: Any, result: Any) -> Any:
    s, t = type_of(x), type_of(y)
    is_row, is_column = s.ndim == 1, t.ndim == 1
    x_lead, y_lead = s.shape[:-2], t.shape[:-2]
    # leading axes of both operands are batch axes, those of one operand are free; those of length one are dropped here
    # and restored at the end
    n = len(lead)
    x_lead, y_lead = ((1,) * (n - len(v)) + v for v in (x_lead, y_lead))
    x_keep = [i for i in range(n) if x_lead[i] != 1]
    y_keep = [i for i in range(n) if y_lead[i] != 1]
    shared = [i for i in x_keep if i in y_keep]
    x_core, y_core = s.shape[-1:] if is_row else s.shape[-2:], t.shape[-1:] if is_column else t.shape[-2:]
    x = shape.reshape(x, (*[x_lead[i] for i in x_keep], *x_core))
    y = shape.reshape(y, (*[y_lead[i] for i in y_keep], *y_core))
    contracting = ((len(x_keep) + len(x_core) - 1,), (len(y_keep),))
    batch = ([x_keep.index(i) for i in shared], [y_keep.index(i) for i in shared])
    out = _product(x, y, contracting, batch, precision, result)
    # axes of the product: batch axes, free axes of x, rows, free axes of y, columns
    x_only = [i for i in x_keep if i not in shared]
    y_only = [i for i in y_keep if i not in shared]
    row = [] if is_row else ["row"]
    column = [] if is_column else ["column"]
    have = [*shared, *x_only, *row, *y_only, *column]
    want = [*sorted([*shared, *x_only, *y_only]), *row, *column]
    out = shape.transpose(out, [have.index(v) for v in want])
    core = [] if is_row else [s.shape[-2]]
    core += [] if is_column else [t.shape[-1]]
    return shape.reshape(out, (*lead, *core))


@library_function(static=(*_STATIC, "out_sharding"))
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sum of products over the last axis of a and the second to last of b.

    >>> dot(asarray([1.0, 2.0]), asarray([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    x, y = promote_dtypes("dot", a, b)
    s, t = type_of(x), type_of(y)
    if not s.ndim or not t.ndim:
        return placed(ew.mul(x, y) if s.shape == t.shape else ew.mul(*_spread(x, y)), out_sharding, "dot")
    if s.shape[-1] != t.shape[-2 if t.ndim > 1 else 0]:
        raise errors.ShapeError(
            f"dot: the contracted axes must have the same length; got {s} and {t} (shapes {s.shape} and {t.shape})."
        )
    contracting = ((s.ndim - 1,), (max(t.ndim - 2, 0),))
    return placed(_product(x, y, contracting, ((), ()), precision, preferred_element_type), out_sharding, "dot")


def _spread(x: Any, y: Any) -> tuple[Any, Any]:
    dims = broadcast_shapes(type_of(x).shape, type_of(y).shape)
    return broadcast_to(x, dims), broadcast_to(y, dims)


@library_function(static=_STATIC)
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Sum of products of all elements; the first operand is conjugated.

    >>> vdot(asarray([1j, 2.0]), asarray([1j, 3.0]))
    Array(7.+0.j, dtype=complex64)
    """
    x, y = promote_dtypes("vdot", a, b)
    x, y = (shape.reshape(v, (type_of(v).size,)) for v in (x, y))
    x = conversion.conj(x) if type_of(x).kind == "c" else x
    return _product(x, y, ((0,), (0,)), ((), ()), precision, preferred_element_type)


@library_function(static=("axis", *_STATIC))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum of products along one axis; the first operand is conjugated.

    >>> vecdot(asarray([[1, 2], [3, 4]]), asarray([1, 10]))
    Array([21, 43], dtype=int32)
    """
    x, y = promote_dtypes("vecdot", x1, x2)
    n = max(type_of(x).ndim, type_of(y).ndim)
    i, j = (check_axis("vecdot", axis, type_of(v).ndim) for v in (x, y))
    if type_of(x).shape[i] != type_of(y).shape[j]:
        raise errors.ShapeError(
            f"vecdot: axis {axis} of both operands must have the same length; got {type_of(x)} and {type_of(y)}."
        )
    x, y = shape.move_axis(x, i, type_of(x).ndim - 1), shape.move_axis(y, j, type_of(y).ndim - 1)
    x, y = _spread(x, y)
    x = conversion.conj(x) if type_of(x).kind == "c" else x
    lead = tuple(range(n - 1))
    return _product(x, y, ((n - 1,), (n - 1,)), (lead, lead), precision, preferred_element_type)


@library_function(static=_STATIC)
def matvec(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Matrices times vectors on the last axis.

    >>> matvec(asarray([[1, 2], [3, 4]]), asarray([1, 10]))
    Array([21, 43], dtype=int32)
    """
    x, y = promote_dtypes("matvec", x1, x2)
    column = shape.reshape(y, (*type_of(y).shape, 1))
    out = matmul(x, column, precision=precision, preferred_element_type=preferred_element_type)
    return shape.reshape(out, type_of(out).shape[:-1])


@library_function(static=_STATIC)
def vecmat(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Vectors on the last axis times matrices; the vectors are conjugated.

    >>> vecmat(asarray([1, 10]), asarray([[1, 2], [3, 4]]))
    Array([31, 42], dtype=int32)
    """
    x, y = promote_dtypes("vecmat", x1, x2)
    x = conversion.conj(x) if type_of(x).kind == "c" else x
    row = shape.reshape(x, (*type_of(x).shape[:-1], 1, type_of(x).shape[-1]))
    out = matmul(row, y, precision=precision, preferred_element_type=preferred_element_type)
    dims = type_of(out).shape
    return shape.reshape(out, (*dims[:-2], dims[-1]))


@library_function(static=_STATIC)
def inner(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Sum of products over the last axes.

    >>> inner(asarray([[1, 2], [3, 4]]), asarray([1, 10]))
    Array([21, 43], dtype=int32)
    """
    x, y = promote_dtypes("inner", a, b)
    s, t = type_of(x), type_of(y)
    if not s.ndim or not t.ndim:
        return ew.mul(*_spread(x, y))
    if s.shape[-1] != t.shape[-1]:
        raise errors.ShapeError(f"inner: the last axes must have the same length; got {s} and {t}.")
    return _product(x, y, ((s.ndim - 1,), (t.ndim - 1,)), ((), ()), precision, preferred_element_type)


@library_function
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Products of every element of a with every element of b.

    >>> outer(asarray([1, 2]), asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x, y = promote_dtypes("outer", a, b)
    n, m = type_of(x).size, type_of(y).size
    x, y = shape.reshape(x, (n,)), shape.reshape(y, (m,))
    left, right = shape.broadcast(x, (n, m), (0,)), shape.broadcast(y, (n, m), (1,))
    return ew.logical_and(left, right) if type_of(x).kind == "b" else ew.mul(left, right)


@library_function(static=("axes", *_STATIC))
def _tensordot(a: Any, b: Any, axes: Any, precision: Any, preferred_element_type: Any) -> Any:
    x, y = promote_dtypes("tensordot", a, b)
    s, t = type_of(x), type_of(y)
    if isinstance(axes, int):
        left, right = tuple(range(s.ndim - axes, s.ndim)), tuple(range(axes))
    else:
        left = tuple([check_axis("tensordot", i, s.ndim) for i in axes[0]])
        right = tuple([check_axis("tensordot", i, t.ndim) for i in axes[1]])
    if [s.shape[i] for i in left] != [t.shape[i] for i in right]:
        raise ValueError(
            f"tensordot: contracted axes must have the same lengths; got {s} at {left} and {t} at {right}."
        )
    return _product(x, y, (left, right), ((), ()), precision, preferred_element_type)


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sum of products over pairs of axes, or over the last n of a and the first n of b.

    >>> tensordot(np.ones((2, 3, 4)), np.ones((4, 3)), axes=([1, 2], [1, 0]))
    Array([12., 12.], dtype=float64)
    """
    if isinstance(axes, np.integer):
        axes = int(axes)
    elif not isinstance(axes, int):
        axes = tuple([tuple(v) if isinstance(v, (tuple, list)) else tuple(np.ravel(v).tolist()) for v in axes])
    return placed(_tensordot(a, b, axes, precision, preferred_element_type), out_sharding, "tensordot")


# -- einsum -----------------------------------------------------------------------------------------------------------


def einsum(
    subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto", precision: Any = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None,
    _dot_general: Any = None,
) -> Array:  # fmt: skip
    """Sums of products in Einstein notation; several operands are contracted along an inexpensive path.

    `_dot_general` replaces `lax.dot_general`: quantization libraries for JAX pass their own.

    >>> einsum("ij,jk->ik", np.eye(2, dtype="float32"), np.ones((2, 2), "float32"))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    refuse_out("einsum", out)
    if not isinstance(subscripts, str):  # the form einsum(x, [0, 1], y, [1, 2], [0, 2])
        subscripts, operands = _from_lists((subscripts, *operands))
    text = subscripts.replace(" ", "")
    if not isinstance(optimize, (bool, str)):
        optimize = tuple(optimize)
    arrays = [x if isinstance(x, Array) else asarray(x) for x in operands]
    if _dot_general is None:
        out = _einsum(arrays, text, optimize, precision, preferred_element_type)
    else:
        out = _along_path(arrays, text, optimize, precision, preferred_element_type, _as_product(_dot_general))
    return placed(out, out_sharding, "einsum")


def _as_product(dot_general: Callable[..., Any]) -> Callable[..., Any]:
    def product(x: Any, y: Any, contracting: Any, batch: Any, precision: Any, result: Any) -> Any:
        return dot_general(x, y, (contracting, batch), precision=precision, preferred_element_type=result)

    return product


def _from_lists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    letter = lambda v: "..." if v is Ellipsis else chr(97 + v) if v < 26 else chr(65 + v - 26)  # noqa: E731
    pairs = list(zip(arguments[0::2], arguments[1::2], strict=False))
    text = ",".join("".join(map(letter, labels)) for _, labels in pairs)
    if len(arguments) % 2:
        text += "->" + "".join(map(letter, arguments[-1]))
    return text, tuple([x for x, _ in pairs])


@library_function(static=("subscripts", "optimize", *_STATIC))
def _einsum(operands: list[Any], subscripts: str, optimize: Any, precision: Any, preferred_element_type: Any) -> Any:
    return _along_path(operands, subscripts, optimize, precision, preferred_element_type, _product)


def _along_path(
    operands: list[Any], subscripts: str, optimize: Any, precision: Any, result: Any, product: Callable[..., Any]
) -> Any:
    xs = promote_dtypes("einsum", *operands)
    inputs, output = parse_einsum(subscripts, [type_of(x) for x in xs])
    if len(xs) <= 2:
        return _contract(xs, inputs, output, precision, result, product)
    import opt_einsum  # imported here: only three or more operands need a path

    text = f"{','.join(inputs)}->{output}"
    shapes = [type_of(x).shape for x in xs]
    path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=_path_name(optimize))
    for step in path:
        chosen = sorted(step, reverse=True)
        parts = [(xs.pop(i), inputs.pop(i)) for i in chosen]
        if len(parts) > 2:
            raise ValueError("einsum: a path must combine two operands at a time.")
        rest = set("".join(inputs)) | set(output)
        letters = "".join(dict.fromkeys("".join(t for _, t in parts)))
        label = "".join(c for c in letters if c in rest) if inputs else output
        xs.append(_contract([x for x, _ in parts], [t for _, t in parts], label, precision, result, product))
        inputs.append(label)
    return xs[0]


def _path_name(optimize: Any) -> Any:
    if optimize is True:
        return "optimal"
    return "auto" if optimize is False else list(optimize) if isinstance(optimize, tuple) else optimize


def parse_einsum(subscripts: str, types: Sequence[ArrayType]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with ellipses expanded."""
    left, arrow, right = subscripts.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(types):
        raise ValueError(
            f"einsum: {subscripts!r} is for {len(inputs)} operands; got {len(types)}."
            "\n  try: one group of labels for each operand, with commas between them."
        )
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts]
    hidden = max(
        [t.ndim - len(s.replace("...", "")) for s, t in zip(inputs, types, strict=True) if "..." in s], default=0
    )
    dots = "".join(free[:hidden])
    full, sizes = [], {}
    for s, t in zip(inputs, types, strict=True):
        count = t.ndim - len(s.replace("...", ""))
        labels = s.replace("...", dots[hidden - count :]) if "..." in s else s
        if len(labels) != t.ndim or count < 0:
            raise ValueError(
                f"einsum: every axis must have a label; got {len(s.replace('...', ''))} labels {s!r} for {t}, which "
                f"has {t.ndim} axes."
                f"\n  try: {'ijklmnopqr'[: t.ndim]!r}, or '...' for the axes that are kept."
            )
        for c, n in zip(labels, t.shape, strict=True):
            if sizes.setdefault(c, n) != n and 1 not in (n, sizes[c]):
                raise ValueError(
                    f"einsum: axes with the same label must have the same length; got {sizes[c]} and {n} for {c!r} in "
                    f"{subscripts!r}.\n  try: the labels in the order of the axes of {' and '.join(map(str, types))}."
                )
            sizes[c] = n if sizes[c] == 1 else sizes[c]
        full.append(labels)
    if arrow:
        output = right.replace("...", dots)
    else:
        seen = "".join(full)
        output = dots + "".join(sorted(c for c in set(seen) if seen.count(c) == 1 and c not in dots))
    unknown = [c for c in output if c not in sizes]
    if unknown or len(set(output)) != len(output):
        raise ValueError(
            f"einsum: the result {output!r} of {subscripts!r} must use each label of the operands at most once."
            f"\n  try: labels out of {''.join(dict.fromkeys(''.join(inputs)))!r} after the arrow."
        )
    return full, output


def _contract(
    xs: list[Any], labels: list[str], output: str, precision: Any, result: Any, product: Callable[..., Any]
) -> Any:
    """Contract one or two operands to the given labels."""
    sizes: dict[str, int] = {}
    for x, text in zip(xs, labels, strict=True):
        for c, n in zip(text, type_of(x).shape, strict=True):
            sizes[c] = n if sizes.get(c, 1) == 1 else sizes[c]
    parts = []
    left = [_unstretch(x, text, sizes) for x, text in zip(xs, labels, strict=True)]
    for i, (x, text) in enumerate(left):
        x, text = _diagonals(x, text)
        others = set(output).union(*(left[j][1] for j in range(len(xs)) if j != i))
        gone = [k for k, c in enumerate(text) if c not in others]
        x = reduction.reduce_sum(x, gone) if type_of(x).kind != "b" else reduction.reduce_or(x, gone)
        parts.append((x, "".join(c for c in text if c in others)))
    if len(parts) == 1:
        out, text = parts[0]
        if result is not None:
            out = conversion.convert(out, dtypes.canonical(result))
    else:
        (x, a), (y, b) = parts
        both = [c for c in a if c in b]
        batch = [c for c in both if c in output]
        summed = [c for c in both if c not in output]
        at = lambda text, cs: tuple([text.index(c) for c in cs])  # noqa: E731
        out = product(x, y, (at(a, summed), at(b, summed)), (at(a, batch), at(b, batch)), precision, result)
        text = "".join([*batch, *[c for c in a if c not in both], *[c for c in b if c not in both]])
    missing = [c for c in output if c not in text]
    if missing:  # labels of broadcast axes, which have length one in every operand
        out = shape.reshape(out, (*type_of(out).shape, *[1] * len(missing)))
        text += "".join(missing)
    out = shape.transpose(out, [text.index(c) for c in output])
    return broadcast_to(out, tuple([sizes[c] for c in output]))


def _unstretch(x: Any, text: str, sizes: dict[str, int]) -> tuple[Any, str]:
    """Drop axes of length one whose label has another length in another operand."""
    dims = type_of(x).shape
    axes = [i for i, c in enumerate(text) if not (dims[i] == 1 and sizes[c] != 1)]
    return shape.reshape(x, [dims[i] for i in axes]), "".join(text[i] for i in axes)


def _diagonals(x: Any, text: str) -> tuple[Any, str]:
    """Take the diagonal for labels that occur twice."""
    for c in dict.fromkeys(text):
        while text.count(c) > 1:
            i = text.index(c)
            j = text.index(c, i + 1)
            dims = type_of(x).shape
            n = dims[i]
            order = [k for k in range(len(dims)) if k not in (i, j)]
            x = shape.transpose(x, (*order, i, j))
            lead = [dims[k] for k in order]
            flat = shape.reshape(x, (*lead, n * n))
            x = shape.slice_in_axis(flat, 0, n * n, len(lead), n + 1) if n else shape.reshape(flat, (*lead, 0))
            text = "".join(text[k] for k in order) + c
    return x, text


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Any:
    """The contraction path that `einsum` uses, and a description.

    >>> path, _ = einsum_path("ij,jk,k->i", np.ones((9, 9)), np.ones((9, 9)), np.ones(9))
    >>> path
    [(1, 2), (0, 1)]
    """
    import opt_einsum

    return opt_einsum.contract_path(
        subscripts, *[np.empty(asarray(x).shape) for x in operands], optimize=_path_name(optimize)
    )


# -- functions built on products, and diagonals ------------------------------------------------------------------------


@library_function
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product.

    >>> kron(asarray([1, 10]), asarray([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    x, y = promote_dtypes("kron", a, b)
    n = max(type_of(x).ndim, type_of(y).ndim)
    s, t = ((1,) * (n - type_of(v).ndim) + type_of(v).shape for v in (x, y))
    wide = [v for pair in zip(s, t, strict=True) for v in pair]
    left = shape.broadcast(shape.reshape(x, s), wide, tuple(range(0, 2 * n, 2)))
    right = shape.broadcast(shape.reshape(y, t), wide, tuple(range(1, 2 * n, 2)))
    out = ew.logical_and(left, right) if type_of(x).kind == "b" else ew.mul(left, right)
    return shape.reshape(out, [p * q for p, q in zip(s, t, strict=True)])


@library_function(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross product of vectors with two or three components.

    >>> cross(asarray([1, 0, 0]), asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_dtypes("cross", a, b)
    x = shape.move_axis(x, check_axis("cross", axisa, type_of(x).ndim), type_of(x).ndim - 1)
    y = shape.move_axis(y, check_axis("cross", axisb, type_of(y).ndim), type_of(y).ndim - 1)
    n, m = type_of(x).shape[-1], type_of(y).shape[-1]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError(f"cross: vectors must have two or three components; got {n} and {m}.")
    lead = broadcast_shapes(type_of(x).shape[:-1], type_of(y).shape[:-1])
    x, y = broadcast_to(x, (*lead, n)), broadcast_to(y, (*lead, m))
    part = lambda v, i: shape.index_in_axis(v, i, len(lead))  # noqa: E731
    zero = np.zeros((), type_of(x).dtype)
    xs = [part(x, i) if i < n else zero for i in range(3)]
    ys = [part(y, i) if i < m else zero for i in range(3)]
    term = lambda i, j: ew.sub(ew.mul(xs[i], ys[j]), ew.mul(xs[j], ys[i]))  # noqa: E731
    if n == m == 2:
        return term(0, 1)
    out = shape.concatenate([shape.reshape(term(i, j), (*lead, 1)) for i, j in ((1, 2), (2, 0), (0, 1))], len(lead))
    return shape.move_axis(out, len(lead), check_axis("cross", axisc, len(lead) + 1))


@library_function(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of the matrices on two axes; it is the last axis of the result.

    >>> diagonal(asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    t = operand_type("diagonal", a)
    i, j = (check_axis("diagonal", v, t.ndim) for v in (axis1, axis2))
    order = [k for k in range(t.ndim) if k not in (i, j)]
    x = shape.transpose(a, (*order, i, j))
    n, m = t.shape[i], t.shape[j]
    top, left = min(max(-offset, 0), n), min(max(offset, 0), m)
    k = min(n - top, m - left)
    lead = [t.shape[v] for v in order]
    cut = shape.slice(x, [0] * len(lead) + [top, left], [*lead, top + k, left + k])
    flat = shape.reshape(cut, (*lead, k * k))
    return shape.slice_in_axis(flat, 0, k * k, len(lead), k + 1) if k else shape.reshape(flat, (*lead, 0))


@library_function(static=("offset", "axis1", "axis2", "dtype"))
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The sum of a diagonal.

    >>> trace(asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return _sum(diagonal(a, offset=offset, axis1=axis1, axis2=axis2), axis=-1, dtype=dtype)


@library_function(static=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or a matrix with a vector on it.

    >>> diag(asarray([1, 2])), diag(asarray([[1, 2], [3, 4]]))
    (Array([[1, 0],
           [0, 2]], dtype=int32), Array([1, 4], dtype=int32))
    """
    t = operand_type("diag", v)
    if t.ndim == 2:
        return diagonal(v, offset=k)
    if t.ndim != 1:
        raise ValueError(f"diag: one or two axes are needed; got {t}.")
    n = t.shape[0] + abs(k)
    rows, columns = (shape.iota(dtypes.int32, (n, n), i) for i in (0, 1))
    padded = shape.pad(v, np.zeros((), t.dtype), [(max(k, 0), max(-k, 0), 0)])
    on = ew.eq(ew.add(rows, k), columns)
    return ew.select(on, shape.broadcast(padded, (n, n), (1,)), np.zeros((), t.dtype))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the elements of an array on its k-th diagonal.

    >>> diagflat(asarray([1, 2]), 1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    x = asarray(v)
    return diag(shape.reshape(x, (prod(x.shape),)), k=k)
